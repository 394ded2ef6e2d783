"""The slow model of the first draft of CIP-5: one list of timers, looked through and sorted in every block."""

from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple

from tests.model.globalbox_candidates import Candidate, CandidateBlocks, Hit
from tests.model.globalbox_scripts import (
    COMPLETED,
    FRACTION,
    HEIGHT,
    GlobalboxInterpreter,
    QueuedFire,
    ended,
    is_delivered,
)
from tests.model.language import Frame
from tests.model.world import Event, Meter, Receipt, Terms, Timer

AGE_UNIT = 64
"""W_age is a parameter in units of 2⁻³²; scores are in units of 2⁻⁹⁶."""
COLLECTED_LEAST = 16


class Entry(NamedTuple):
    """A fire in the mailbox, with the timer as it will be delivered."""

    deliver_id: bytes
    deliver_seq: int
    timer: Timer
    fire_seq: int
    hit_height: int
    matched_keys: tuple[bytes, ...]
    materialized_at: int
    reserved: int
    cycle_basefee: int
    cell_basefee: int
    cells_limit: int


def digest(domain: bytes, *parts: bytes) -> bytes:
    """Return the digest of parts, each preceded by its length."""
    return sha256(b"".join(len(part).to_bytes(8, "big") + part for part in (domain, *parts))).digest()


def queue_order(timer: Timer) -> Any:
    """Return where a queued fire stands. Spec: CIP-5old §8.2. Decision: D-20, D-31, D-61, D-62."""
    fire = timer.terms.fire
    return -fire.standing, -fire.bucket, fire.cursor, fire.hit_height, timer.terms.target, timer.timer_id


class GlobalboxBlocks(CandidateBlocks):
    """A chain under Globalbox.

    Attributes:
        parent_root: State root of the block before, which the model does not compute; to be set before each block.
        clock: Sum of W_age over all blocks, in units of 2⁻⁹⁶. Decision: D-61.
        next_seq: deliver_seq of the next entry.
        first_ended: Number of the oldest ended timer that is remembered.
    """

    interpreter_class = GlobalboxInterpreter

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.parent_root = bytes(32)
        self.clock = 0
        self.next_seq = 0
        self.first_ended = 0

    def next_terms(self) -> Terms:
        """Return what the next block finds: there is no lane."""
        return Terms(False, self.basefees[0], 0, 2**64, *self._prices("timer", self.next_rules()), self.used[0])

    def next_payer(self) -> tuple[bytes, int]:
        """Return who pays a fire that comes soon, and what that account lacks for it at the next block's prices."""
        rules, terms = self.next_rules(), self.next_terms()
        timer = next(iter(self.queue()), self.world.timers[0])
        price = terms.cycle_price + (timer.terms.bid >> FRACTION)
        required = timer.gas_limit * price + rules["timers"]["max_cells_per_fire"] * terms.cell_price
        return timer.actor, required - self.world.account(timer.actor).balance

    def build(self, transactions: list[Any]) -> Any:
        """Build the next block; remember what storage was."""
        self.slots_before = dict(self.world.slots)
        return super().build(transactions)

    # The end of a block. Spec: CIP-5old §4.

    def deliver_timers(self) -> list[Receipt]:
        """Deliver, materialize and execute."""
        self.own = self.rules["globalbox"]
        self.gc_left = self.rules["timers"]["gc_cycles_per_block"]
        self.age_weight = self.own["age_weight"] << AGE_UNIT
        self.clock += self.age_weight
        self.slots_meanwhile = dict(self.world.slots)
        self.join()
        self.remove_expired([timer for timer in self.world.timers if self._may_expire(timer)])
        self.remove_barred()
        hits = self._modified()
        self.carried = {}
        self._enqueue([*self._due(), *self._hit(hits)])
        self._materialize()
        return self._execute()

    def close(self) -> None:
        """Carry over what deliveries and messages have modified, and collect ended timers."""
        for key in self._differences(self.slots_meanwhile):
            if any(key.startswith(prefix) for timer in self.world.timers for prefix in timer.terms.watch_keys):
                self.carried[key] = Hit(key, 0, self.height + 1)
                self.occurred.append("delivery modifies a watched key")
        self._collect()
        self._note()
        # An id may come again when it is forgotten.
        self.joined &= {timer.timer_id for timer in self.world.timers}

    def _note(self) -> None:
        self.occurred += ["set again"] * self.world.set_again
        self.world.set_again = 0
        for timer in self.world.timers:
            expired = timer.expires_at < self.height and self._may_expire(timer)
            self.occurred += ["expired timer not removed"] * expired
            self.occurred += ["fire waits in the queue"] * (timer.terms.fire is not None)
            self.occurred += ["several entries of a watch"] * (timer.terms.in_mailbox > 1)
            self.occurred += ["due timer not joined"] * (self.is_due(timer) and timer.timer_id not in self.joined)

    def _may_expire(self, timer: Timer) -> bool:
        return not is_delivered(timer)

    def expire(self, timer: Timer) -> None:
        """Remove a timer whose last height has passed, and remember it."""
        super().expire(timer)
        self.occurred += ["expired before its height"] * (timer.height > self.height)
        self.world.ended.append(ended(timer, COMPLETED, self.height))

    def unfund(self, timer: Timer, required: int) -> None:
        """Remove a timer that its owner cannot pay for, and remember it."""
        super().unfund(timer, required)
        self.world.ended.append(ended(timer, COMPLETED, self.height))

    def _collect(self) -> None:
        """Forget the oldest ended timers. Decision: D-64."""
        most = max(COLLECTED_LEAST, self.gc_left // self.rules["timers"]["gc_cycles_per_timer"])
        last = self.height - self.own["ended_kept_blocks"]
        for _ in range(most):
            if not self.world.ended or self.world.ended[0].ended_at >= last:
                break
            self.world.ended.pop(0)
            self.first_ended += 1
            self.occurred.append("ended timer collected")

    # Globalbox. Spec: CIP-5old §8.

    def _standing(self, timer: Timer, hit_height: int) -> int:
        score = self.age_weight * (self.height - hit_height) + self.own["bid_weight"] * timer.terms.bid
        return score - self.clock

    def _bucket(self, bid: int) -> int:
        return (bid >> FRACTION).bit_length()

    def _enqueue(self, candidates: list[Candidate]) -> None:
        """Queue the candidates' fires, the first in the order first."""
        queued = []
        for timer, hit_height, keys in candidates:
            bid = timer.terms.bid
            fire = QueuedFire(
                self._standing(timer, hit_height),
                self._bucket(bid),
                0,
                hit_height,
                self.height,
                keys,
                timer.handler,
                timer.payload,
                timer.gas_limit,
                bid,
            )
            queued.append(timer._replace(terms=timer.terms._replace(fire=fire)))
        # The cursor is a fire's place among those of its target, which are sorted by all else first.
        queued.sort(key=queue_order)
        places: Counter[bytes] = Counter()
        for place, timer in enumerate(queued):
            fire = timer.terms.fire._replace(cursor=places[timer.terms.target])
            places[timer.terms.target] += 1
            queued[place] = timer._replace(terms=timer.terms._replace(fire=fire))
        for timer in sorted(queued, key=queue_order):
            old = next(each for each in self.world.timers if each.timer_id == timer.timer_id)
            self.world.replace_timer(old, timer)
            facts = {"fire_seq": timer.terms.fire_seq, "hit_height": timer.terms.fire.hit_height}
            standing = timer.terms.fire.standing.to_bytes(32, "big", signed=True)
            self.announce("timer.queued", timer, **facts, standing=standing)

    def queue(self) -> list[Timer]:
        """Return the timers with a fire in Globalbox, in its order."""
        return sorted((timer for timer in self.world.timers if timer.terms.fire), key=queue_order)

    # The mailbox. Spec: CIP-5old §9, §10.

    def _materialize(self) -> None:
        """Move as many fires as the quotas allow from the head of the queue into the mailbox; their owners pay."""
        shares: Counter[bytes] = Counter()
        passed_over = 0
        # Expiries may have used the whole budget; a block's quota of unfunded fires can be removed all the same.
        least = self.own["max_fires_per_block"] * self.rules["timers"]["gc_cycles_per_timer"]
        besides = max(0, least - self.gc_left)
        self.gc_left += besides
        for timer in self.queue():
            target = timer.terms.target
            if sum(shares.values()) == self.own["max_fires_per_block"] or passed_over == self.own["passed_over_max"]:
                break
            if timer.expires_at < self.height:
                continue
            if shares[target] == self.own["max_fires_per_target"]:
                self.occurred.append("passed over for its target's share")
            elif self.world.account(timer.actor).balance >= self._cost(timer):
                shares[target] += 1
                self._deliver(timer)
            elif self.can_remove():
                self.unfund(timer, self._cost(timer))
            else:
                passed_over += 1
                self.occurred.append("passed over for want of funds")
        self.gc_left = max(0, self.gc_left - besides)

    def _cost(self, timer: Timer) -> int:
        """Return the most that a queued fire may cost at this block's prices."""
        fire = timer.terms.fire
        cells = self.rules["timers"]["max_cells_per_fire"] * self.terms.cell_price
        return int(fire.gas_limit * (self.terms.cycle_price + (fire.bid >> FRACTION)) + cells)

    @property
    def escrow(self) -> bytes:
        """The account that holds what has been paid for the fires in the mailbox."""
        return int(self.rules["governance"]["escrow_actor"]).to_bytes(20, "big")

    def _deliver(self, timer: Timer) -> None:
        terms, fire = timer.terms, timer.terms.fire
        parts = (self.height.to_bytes(8, "big"), self.parent_root, timer.timer_id, terms.fire_seq.to_bytes(8, "big"))
        snapshot = timer._replace(
            handler=fire.handler,
            payload=fire.payload,
            gas_limit=fire.gas_limit,
            terms=terms._replace(bid=fire.bid, fire=None),
        )
        entry = Entry(
            digest(b"globalbox-deliver-v1", *parts),
            self.next_seq,
            snapshot,
            terms.fire_seq,
            fire.hit_height,
            fire.matched_keys,
            self.height,
            self._cost(timer),
            self.terms.cycle_price,
            self.terms.cell_price,
            self.rules["timers"]["max_cells_per_fire"],
        )
        self.world.credit(timer.actor, -entry.reserved)
        self.world.credit(self.escrow, entry.reserved)
        self.world.entries.append(entry)
        self.occurred += ["fire delivered as it was queued"] * (fire.payload != timer.payload or fire.bid != terms.bid)
        self.next_seq += 1
        counted = terms._replace(
            fire=None, fire_seq=terms.fire_seq + 1, last_fire_height=self.height, in_mailbox=terms.in_mailbox + 1
        )
        self.world.replace_timer(timer, timer._replace(terms=counted))
        facts = {"deliver_id": entry.deliver_id, "deliver_seq": entry.deliver_seq, "fire_seq": entry.fire_seq}
        self.announce("timer.materialized", timer, **facts, target=terms.target, reserved=entry.reserved)

    def _execute(self) -> list[Receipt]:
        """Run a prefix of the mailbox. Decision: D-67."""
        receipts: list[Receipt] = []
        examined = self.rules["timers"]["due_examined_max"]
        left, cells = self.rules["timers"]["lane_cycles_per_block"], self.cells_max()
        # The first fire has the whole lane, even if its gas limit comes from a time when the lane was longer.
        while self.world.entries and (self.world.entries[0].timer.gas_limit <= left or not receipts):
            entry = self.world.entries[0]
            # So it is with cells, of which a fire may use none.
            if entry.cells_limit > cells and cells < self.cells_max():
                self.occurred.append("entry waits for cells")
                break
            if not examined:
                break
            examined -= 1
            receipts.append(self._run(entry))
            self.occurred += ["fire longer than the lane"] * (entry.timer.gas_limit > left)
            left -= receipts[-1].cycles_used
            cells -= receipts[-1].cells_used
        self.occurred += ["entries wait in the mailbox"] * bool(self.world.entries)
        return receipts

    def _live(self, entry: Entry) -> Timer | None:
        """Return the timer of an entry as it is now; another one may have its id meanwhile."""
        for timer in self.world.timers:
            if (timer.timer_id, timer.sequence) == (entry.timer.timer_id, entry.timer.sequence):
                return timer
        return None

    def _run(self, entry: Entry) -> Receipt:
        timer, live = entry.timer, self._live(entry)
        self.world.credit(self.escrow, -entry.reserved)
        self.world.entries.remove(entry)
        is_last = timer.terms.kind == HEIGHT
        if live is not None and is_last:
            self.world.timers.remove(live)
            self.world.totals["fired"] += 1
            self.world.ended.append(ended(live, COMPLETED, self.height))
        elif live is not None:
            fewer = live.terms._replace(in_mailbox=live.terms.in_mailbox - 1)
            self.world.replace_timer(live, live._replace(terms=fewer))
        meter = Meter(timer.gas_limit, entry.cells_limit)
        due_height, keys = (timer.height if is_last else None), list(entry.matched_keys)
        trigger = {"kind": timer.terms.kind, "due_height": due_height, "matched_keys": keys}
        facts = {"deliver_id": entry.deliver_id, "trigger_ctx": trigger}
        frame = Frame(timer.terms.target, timer.handler, timer.payload, timer.actor, timer.actor, delivery=facts)
        receipt = self.settle(
            "timer",
            lambda: self.interpreter.run(frame, meter),
            meter,
            sender=timer.actor,
            payer=timer.actor,
            reserved=entry.reserved,
            prices=(entry.cycle_basefee, entry.cell_basefee),
            tips=(timer.terms.bid >> FRACTION, 0),
            timer_id=timer.timer_id,
        )
        events = [*receipt.events, self._fire_receipt(entry, receipt)]
        if is_last:
            events.append(self.fired(timer, receipt))
        return receipt._replace(events=tuple(events))

    def _fire_receipt(self, entry: Entry, receipt: Receipt) -> Event:
        """Return the TimerFireReceipt. Spec: CIP-5old §9.2."""
        timer = entry.timer
        facts = {
            "deliver_id": entry.deliver_id,
            "deliver_seq": entry.deliver_seq,
            "timer_id": timer.timer_id,
            "fire_seq": entry.fire_seq,
            "target": timer.terms.target,
            "kind": timer.terms.kind,
            "due_height": timer.height if timer.terms.kind == HEIGHT else 0,
            "matched_keys": list(entry.matched_keys),
            "status": receipt.status,
            "cycles_used": receipt.cycles_used,
        }
        return Event("TimerFireReceipt", timer.actor, facts, timer.timer_id)
