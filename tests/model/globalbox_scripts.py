"""What actors ask of Globalbox in the slow model, and what it answers. Spec: CIP-5old §6."""

from typing import Any, NamedTuple

from tests.model.envelopes import routed
from tests.model.language import Frame, delivered, enveloped
from tests.model.other_calls import OtherCalls
from tests.model.timer_scripts import check_writable
from tests.model.world import Meter, Refused, Timer, keccak256

HEIGHT, WATCH = "HEIGHT", "STATE_WATCH"
ACTIVE, COMPLETED, CANCELLED = "ACTIVE", "COMPLETED", "CANCELLED"
FRACTION = 96
BID_LIMIT = 2**128
ADDRESS_WIDTH = 20
INVALID, NO_TARGET, NO_TIMER, QUOTA, NO_HEIGHT = 1511, 1512, 1513, 1514, 1515


class QueuedFire(NamedTuple):
    """A fire in Globalbox: where it stands, and with what it will be delivered."""

    standing: int
    bucket: int
    cursor: int
    hit_height: int
    queued_at: int
    matched_keys: tuple[bytes, ...]
    handler: str
    payload: bytes
    gas_limit: int
    bid: int


class GlobalboxTerms(NamedTuple):
    """What a timer of Globalbox has besides."""

    kind: str
    target: bytes
    bid: int
    watch_keys: tuple[bytes, ...] = ()
    client_nonce: bytes = b""
    fire_seq: int = 0
    last_fire_height: int = 0
    in_mailbox: int = 0
    fire: QueuedFire | None = None


class Ended(NamedTuple):
    """A timer that has ended and is remembered."""

    timer_id: bytes
    owner: bytes
    target: bytes
    kind: str
    status: str
    fire_seq: int
    last_fire_height: int
    ended_at: int


def is_delivered(timer: Timer) -> bool:
    """Tell whether the one fire of a height timer is in the mailbox."""
    return timer.terms.kind == HEIGHT and timer.terms.in_mailbox > 0


def ended(timer: Timer, status: str, height: int) -> Ended:
    """Return what is remembered of a timer that ends now."""
    terms = timer.terms
    facts = (status, terms.fire_seq, terms.last_fire_height, height)
    return Ended(timer.timer_id, timer.actor, terms.target, terms.kind, *facts)


def lives_to_see(height: int, last: int) -> bool:
    """Return whether a timer that may live up to a last height can see another height. Decision: D-82."""
    return height <= last


class GlobalboxInterpreter(OtherCalls):
    """Sets, updates and cancels timers of Globalbox."""

    def _op_aim(self, frame: Frame, meter: Meter, who: str, delay: int, *request: Any) -> None:
        """Set a timer that fires at a height."""
        self._set(frame, meter, self._who(frame, who), self.height + delay, None, *request)

    def _op_watch(self, frame: Frame, meter: Meter, who: str, keys: list[list[str]], *request: Any) -> None:
        """Set a timer that fires when what begins with its keys is modified."""
        watched = [self._who(frame, owner)[: int(width)] + bytes.fromhex(slot) for owner, slot, width in keys]
        self._set(frame, meter, self._who(frame, who), None, watched, *request)

    def _set(
        self, frame: Frame, meter: Meter, target: bytes, due: int | None, keys: list[bytes] | None, *request: Any
    ) -> None:
        envelope, gas_limit, bid, life, nonce = request
        payload, nonce = enveloped(envelope), bytes.fromhex(nonce)
        meter.use(self.costs["context_read"] + self.costs["timer_schedule"])
        check_writable(frame)
        if len(nonce) > self.box["client_nonce_bytes_max"]:
            raise Refused(INVALID)
        named = keccak256(b"globalbox-nonce" + frame.actor + target + nonce) if nonce else b""
        if named and self._is_known(named):
            self.world.set_again += 1
            self.keep_id(frame, meter, named)
            return
        gas_limit = self.timers["max_cycles_per_fire"] if gas_limit is None else gas_limit
        last = self.height + self.timers["max_ttl_blocks"]
        expires_at = last if life is None else self.height + life
        if due is not None and not lives_to_see(due, last):
            raise Refused(NO_HEIGHT)
        if (
            (due is not None and due <= self.height)
            or not self.height < expires_at <= last
            or (keys is not None and not self._are_keys(keys))
        ):
            raise Refused(INVALID)
        self._check_parameters(payload, gas_limit, bid)
        self._check_quotas(frame.actor, target)
        keys = sorted(keys or [])
        indexed = self.costs["timer_index_cells"] * (1 + len(keys))
        meter.use(cells=len(payload) + sum(map(len, keys)) + len(nonce) + indexed)
        height = expires_at + 1 if due is None else due
        count = self.count_nonce(frame.actor).to_bytes(8, "big")
        timer = Timer(
            actor=frame.actor,
            height=height,
            timer_id=named or keccak256(frame.actor + height.to_bytes(8, "big") + payload + count),
            sequence=self.world.totals["scheduled"],
            handler=routed(payload)[0],
            payload=routed(payload)[1],
            fee_payer=frame.actor,
            gas_limit=gas_limit,
            expires_at=expires_at,
            schedule_block=self.height,
            terms=GlobalboxTerms(WATCH if due is None else HEIGHT, target, bid, tuple(keys), nonce),
        )
        self.add(timer, kind=timer.terms.kind, target=target, bid=bid.to_bytes(16, "big"))
        self.keep_id(frame, meter, timer.timer_id)

    @property
    def box(self) -> dict[str, int]:
        """The parameters of Globalbox."""
        return self.rules["globalbox"]

    def _check_parameters(self, payload: bytes, gas_limit: int, bid: int) -> None:
        if (
            len(payload) > self.box["payload_bytes_max"]
            or not self.box["min_gas_limit"] <= gas_limit <= self.timers["max_cycles_per_fire"]
            or not 0 <= bid < BID_LIMIT
            or not self.box["bid_min"] <= bid >> FRACTION <= self.box["bid_max"]
        ):
            raise Refused(INVALID)

    def _are_keys(self, keys: list[bytes]) -> bool:
        widths = (ADDRESS_WIDTH, self.box["watch_key_bytes_max"])
        return (
            0 < len(keys) <= self.box["watch_keys_max"]
            and len(set(keys)) == len(keys)
            and all(widths[0] <= len(key) <= widths[1] for key in keys)
        )

    def _check_quotas(self, owner: bytes, target: bytes) -> None:
        if self.world.account(target).source is None:
            raise Refused(NO_TARGET)
        owned = sum(timer.actor == owner for timer in self.world.timers)
        aimed = sum(timer.terms.target == target for timer in self.world.timers)
        is_full = owner != target and aimed >= self.box["max_timers_per_target"]
        if owned >= self.box["max_timers_per_owner"] or is_full:
            raise Refused(QUOTA)

    def _is_known(self, timer_id: bytes) -> bool:
        live = any(timer.timer_id == timer_id for timer in self.world.timers)
        return live or any(each.timer_id == timer_id for each in self.world.ended)

    def _own(self, owner: bytes, target: bytes, timer_id: bytes) -> Timer | None:
        """Return a live timer of an owner and a target; None if it has ended and is remembered."""
        if not 1 <= len(timer_id) <= self.timers["timer_id_bytes_max"]:
            raise Refused(INVALID)
        for timer in self.world.timers:
            if (timer.timer_id, timer.actor, timer.terms.target) == (timer_id, owner, target):
                return timer
        for each in self.world.ended:
            if (each.timer_id, each.owner, each.target) == (timer_id, owner, target):
                return None
        raise Refused(NO_TIMER)

    def _op_update(self, frame: Frame, meter: Meter, who: str, which: int | str, changes: dict[str, Any]) -> None:
        """Change what later fires are delivered with. Spec: CIP-5old §6.2."""
        timer_id, target = self._which(frame, meter, which), self._who(frame, who)
        meter.use(self.costs["timer_extend"])
        check_writable(frame)
        payload = enveloped(changes["envelope"]) if "envelope" in changes else None
        gas_limit, bid = changes.get("gas", self.box["min_gas_limit"]), changes.get("bid", self.box["bid_min"] << 96)
        self._check_parameters(payload or b"", gas_limit, bid)
        timer = self._own(frame.actor, target, timer_id)
        no_more = timer is None or (timer.terms.kind == HEIGHT and bool(timer.terms.fire or timer.terms.in_mailbox))
        if timer is not None and not no_more:
            meter.use(cells=len(payload or b""))
            changed = timer
            if payload is not None:
                changed = changed._replace(handler=routed(payload)[0], payload=routed(payload)[1])
            changed = changed._replace(gas_limit=changes.get("gas", timer.gas_limit))
            changed = changed._replace(terms=timer.terms._replace(bid=changes.get("bid", timer.terms.bid)))
            self.world.replace_timer(timer, changed)
            facts = {"payload_size": len(changed.payload), "gas_limit": changed.gas_limit}
            self._tell("timer.updated", changed, **facts, bid=changed.terms.bid.to_bytes(16, "big"))
        self.note(frame, meter, answer=not no_more)

    def _op_delivery(self, frame: Frame, meter: Meter) -> None:
        """Emit what the fire that runs knows of itself. Spec: CIP-5old §9.1. Decision: D-83."""
        meter.use(self.costs["context_read"])
        self._op_emit(frame, meter, "delivery", delivered(frame.delivery).hex())

    def _op_drop(self, frame: Frame, meter: Meter, who: str, which: int | str) -> None:
        """Cancel a timer of a target. Spec: CIP-5old §6.1, §6.2."""
        timer_id, target = self._which(frame, meter, which), self._who(frame, who)
        meter.use(self.costs["timer_cancel"])
        check_writable(frame)
        timer = self._own(frame.actor, target, timer_id)
        is_there = timer is not None and not is_delivered(timer)
        if timer is not None and is_there:
            self._end(timer, frame.actor)
        self.note(frame, meter, answer=is_there)

    def cancel(self, timer_id: bytes, actor: bytes | None) -> None:
        """Cancel a timer by its id alone, for its owner or, without an actor, for governance."""
        for timer in self.world.timers:
            if timer.timer_id == timer_id:
                if actor is not None and timer.actor != actor:
                    raise Refused(1503)
                if not is_delivered(timer):
                    self._end(timer, actor)
                return

    def _end(self, timer: Timer, actor: bytes | None) -> None:
        self.world.timers.remove(timer)
        self.world.totals["cancelled"] += 1
        self.world.ended.append(ended(timer, CANCELLED, self.height))
        self._tell("timer.cancelled" if actor is not None else "timer.cancelled_by_governance", timer, refund=0)
