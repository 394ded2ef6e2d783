"""The model's own interpreter of scripts: what actors ask of the scheduler, and what it answers."""

from typing import Any

from tests.model.envelopes import routed
from tests.model.language import IDS_SLOT, Frame, asks_facts, enveloped, id_at, priced, told, with_id
from tests.model.world import ASK, NAMED, Event, Finder, Meter, Refused, Terms, Timer, World, keccak256

FORBIDDEN = 1205
TIERS = ("economy", "standard", "fast", "urgent")


def check_writable(frame: Frame) -> None:
    """Refuse a change in a read-only frame."""
    if frame.read_only:
        raise Refused(FORBIDDEN)


class TimerScripts:
    """What an interpreter knows of the block, and the operations on timers. Rules hold for a block."""

    has_weights = False
    is_succeeded_by_lane = True

    def __init__(self, world: World, height: int, rules: dict[str, dict[str, int]], terms: Terms, find: Finder) -> None:
        self.world = world
        self.height = height
        self.rules = rules
        self.terms = terms
        self.costs = rules["costs"]
        self.limits = rules["limits"]
        self.timers = rules["timers"]
        self.band = rules["governance"]["reserved_band_max"]
        self.governance = rules["governance"]["governance_actor"].to_bytes(20, "big")
        self.find = find
        self.has_delivered = False

    def _who(self, frame: Frame, who: str) -> bytes:
        fixed = {"self": frame.actor, "sender": frame.sender, "zero": bytes(20), "system": bytes(19) + b"\x09"}
        return fixed[who] if who in fixed else self.find(who)

    def _write(self, frame: Frame, meter: Meter, slot: bytes, value: bytes) -> None:
        meter.use(self.costs["state_write"])
        check_writable(frame)
        meter.use(cells=len(slot) + len(value))
        self.world.slots[frame.actor, slot] = value

    def _ids(self, frame: Frame, meter: Meter) -> bytes:
        meter.use(self.costs["state_read"])
        return self.world.slots.get((frame.actor, IDS_SLOT), b"")

    # The lane

    def _lane(self, meter: Meter) -> dict[str, Any]:
        """Return what the host says about the timer lane. Spec: CIP-1v3 §7.2, §7.3."""
        meter.use(self.costs["context_read"])
        terms = self.terms
        most = self.timers["max_cycles_per_fire"]
        return {
            "active": terms.active,
            "basefee_lane_timer": terms.basefee,
            "basefee_cycle": terms.cycle_price,
            "basefee_cell": terms.cell_price,
            "previous_block_p50_priority_tip_per_cycle": terms.previous_tip,
            "last_block_cycle_usage": terms.last_used,
            "max_cycles_per_fire": min(most, terms.cap) if terms.active else most,
            "priority_tier_multipliers": {tier: self.rules["lane"][f"tier_{tier}"] for tier in TIERS},
            "priority_tier_unit": self.rules["fees"]["lane_multiplier_unit"],
        }

    def _op_lane(self, frame: Frame, meter: Meter) -> None:
        octets = told(self._lane(meter))
        meter.use(self.costs["event_emit"])
        check_writable(frame)
        meter.use(cells=len(b"note") + len(octets))
        self.world.events.append(Event("note", frame.actor, octets))

    def _op_agent(self, frame: Frame, meter: Meter, who: str | None) -> None:
        """Let another actor price the timers of this one. Spec: CIP-1v3 §7."""
        meter.use(self.costs["state_write"])
        check_writable(frame)
        agent = b"" if who is None else self._who(frame, who)
        if agent and self.world.account(agent).source is None:
            raise Refused(1203)
        self.world.change(frame.actor, agent=agent)
        self.world.events.append(Event("gba.set", frame.actor, {"agent": agent}))

    def fees_of(self, frame: Frame, offer: dict[str, Any]) -> tuple[Any, int | None]:
        """Return what a timer offers, and the priority it stated if that was too much. Spec: CIP-1v3 §6."""
        terms = self.terms
        stated = "max_fee" in offer or "priority" in offer
        if "gba" in offer:
            agent = self._who(frame, offer["gba"])
            if self.world.account(agent).source is None:
                raise Refused(1203)
            if stated:
                raise Refused(1202)
            return agent, None
        if stated and not terms.active:
            raise Refused(1202)
        default = 2 * terms.basefee, terms.previous_tip
        if not stated:
            if self.world.account(frame.actor).agent:
                return ASK, None
            is_open = self.rules["lane"]["caps_at_fire"] or not terms.active
            return (() if is_open else (default[0], min(default[1], terms.basefee))), None
        max_fee, priority = offer.get("max_fee", default[0]), offer.get("priority", default[1])
        if max_fee < terms.basefee:
            raise Refused(1504)
        room = max_fee - terms.basefee
        if priority <= room:
            return (max_fee, priority), None
        return (max_fee, room), (priority if "priority" in offer else None)

    # Timers

    def _op_schedule(self, frame: Frame, meter: Meter, *request: Any) -> None:
        delay, envelope, payer, gas_limit, life, *rest = request
        offer = rest[0] if rest else {}
        payload = enveloped(envelope)
        meter.use(self.costs["context_read"])
        facts = self._lane(meter) if asks_facts(offer) else {}
        meter.use(self.costs["timer_schedule"])
        check_writable(frame)
        most = min(self.timers["max_cycles_per_fire"], self.terms.cap)
        timer, stated = self._accepted(
            frame,
            meter,
            self.height + delay,
            payload,
            payer=frame.actor if payer is None else self._who(frame, payer),
            gas_limit=most if gas_limit is None else gas_limit,
            expires_at=self.height + (self.timers["max_ttl_blocks"] if life is None else life),
            offer={name: priced(price, facts) for name, price in offer.items()},
        )
        self.world.timers.append(timer)
        self.world.totals["scheduled"] += 1
        shown = {name: getattr(timer, name) for name in ("height", "handler", "fee_payer", "gas_limit", "expires_at")}
        if isinstance(timer.fees, tuple) and timer.fees:
            shown |= {"max_fee_per_cycle": timer.fees[0], "max_priority_fee_per_cycle": timer.fees[1]}
        if isinstance(timer.fees, NAMED):
            shown["gba"] = timer.fees
        self._tell("timer.scheduled", timer, **shown)
        if "bid" in offer:
            event = Event("timer.argument_deprecated", frame.actor, {"argument": "bid"}, timer.timer_id)
            self.world.events.append(event)
        if stated is not None:
            self._tell("TimerPriorityClampedAtSchedule", timer, stated=stated, clamped=timer.fees[1])
        ids = self._ids(frame, meter)
        self._write(frame, meter, IDS_SLOT, with_id(ids, timer.timer_id))

    def _accepted(
        self,
        frame: Frame,
        meter: Meter,
        height: int,
        payload: bytes,
        *,
        payer: bytes,
        gas_limit: int,
        expires_at: int,
        offer: dict[str, Any],
    ) -> tuple[Timer, int | None]:
        """Return the timer if every rule of CIP-5 §4.2 and CIP-1v3 §6 allows it, and a priority that is clamped."""
        terms = self.terms
        if height <= self.height:
            raise Refused(1202)
        if terms.active and "bid" in offer:
            raise Refused(1505)
        # A fire of the lane has a vote and a place in the window, and costs a frame at least.
        least = self.costs["frame_base"] if terms.active else 1
        fits = (
            len(payload) <= self.timers["payload_bytes_max"],
            payer in (frame.actor, frame.signer),
            not 0 <= int.from_bytes(payer, "big") <= self.band,
            least <= gas_limit <= min(self.timers["max_cycles_per_fire"], terms.cap),
            self.height < expires_at <= self.height + self.timers["max_ttl_blocks"],
        )
        if not all(fits):
            raise Refused(1202)
        fees, stated = self.fees_of(frame, offer)
        if sum(timer.actor == frame.actor for timer in self.world.timers) >= self.timers["max_timers_per_actor"]:
            raise Refused(1501)
        meter.use(cells=len(payload) + self.costs["timer_index_cells"])
        nonce = self.world.account(frame.actor).timer_nonce
        self.world.change(frame.actor, timer_nonce=nonce + 1)
        timer = Timer(
            actor=frame.actor,
            height=height,
            timer_id=keccak256(frame.actor + height.to_bytes(8, "big") + payload + nonce.to_bytes(8, "big")),
            sequence=self.world.totals["scheduled"],
            handler=routed(payload)[0],
            payload=routed(payload)[1],
            fee_payer=payer,
            gas_limit=gas_limit,
            expires_at=expires_at,
            schedule_block=self.height,
            fees=fees,
        )
        return timer, stated

    def _tell(self, name: str, timer: Timer, **fields: Any) -> None:
        emitter = self.governance if name.endswith("_by_governance") else timer.actor
        self.world.events.append(Event(name, emitter, {"timer_id": timer.timer_id, **fields}, timer.timer_id))

    def _which(self, frame: Frame, meter: Meter, which: int | str) -> bytes:
        return frame.payload if which == "payload" else id_at(self._ids(frame, meter), int(which))

    def _op_extend(self, frame: Frame, meter: Meter, which: int | str, life: int) -> None:
        timer_id = self._which(frame, meter, which)
        meter.use(self.costs["context_read"])
        meter.use(self.costs["timer_extend"])
        check_writable(frame)
        self.extend(timer_id, self.height + life, frame.actor)

    def extend(self, timer_id: bytes, expires_at: int, actor: bytes | None) -> None:
        """Move a timer's expiry, for its owner or, without an actor, for governance. Spec: CIP-5 §5.4."""
        if expires_at <= self.height:
            raise Refused(1202)
        for timer in self.world.timers:
            if timer.timer_id == timer_id:
                if max(timer.height, timer.expires_at + 1) < self.height + self.has_delivered:
                    return  # A block found it due and expired: still expired is still expired.
                if actor is not None and timer.actor != actor:
                    raise Refused(1503)
                ceiling = self.height + self.timers["max_ttl_blocks"]
                extended = timer._replace(expires_at=min(expires_at, ceiling))
                self.world.replace_timer(timer, extended)
                name = "timer.extended" if actor is not None else "timer.extended_by_governance"
                self._tell(name, timer, expires_at=extended.expires_at)
                return

    def _op_cancel(self, frame: Frame, meter: Meter, which: int | str) -> None:
        timer_id = self._which(frame, meter, which)
        meter.use(self.costs["timer_cancel"])
        check_writable(frame)
        self.cancel(timer_id, frame.actor)

    def cancel(self, timer_id: bytes, actor: bytes | None) -> None:
        """Cancel a timer, for its owner or, without an actor, for governance. Spec: CIP-5 §5.4. Decision: D-07."""
        waiting = [(timer, 0) for timer in self.world.timers] + self.world.paid
        for timer, paid in waiting:
            if timer.timer_id == timer_id:
                if actor is not None and timer.actor != actor:
                    raise Refused(1503)
                self.world.timers = [other for other in self.world.timers if other != timer]
                self.world.paid = [other for other in self.world.paid if other[0] != timer]
                self.world.owed.append((timer.fee_payer, paid))
                self.world.totals["cancelled"] += 1
                name = "timer.cancelled" if actor is not None else "timer.cancelled_by_governance"
                self._tell(name, timer, refund=paid)
                return
