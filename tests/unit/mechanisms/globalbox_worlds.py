"""A world of Globalbox that carries out decisions, and the rules of a block told over plain lists.

`Told` is written from the draft's words alone. It looks at every timer in every block, and its queue is the one of
CIP-5old §15: every fire carries a score that grows by W_age a block. What fires do to other timers is drawn from the
entry, so that two worlds that carry out the same decisions stay the same. Owners pay when a fire is materialized, and
nothing comes back: what a fire uses is delivery's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec

from tests.unit.mechanisms.due_timers import decided
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Decision, DueTimers, Follower, Rest, Verdict
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox import Globalbox, build_globalbox
from trailboss.model.configs import amount_octets
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.globalbox import CarriedHit, MailboxEntry, bid_octets, bid_of, standing_octets
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import RECORD_VERSION, DeferralReason, Timer
from trailboss.params import load_params

OWNER = b"\x01" * 20
TARGET = b"\x02" * 20
ONE = 1 << 96
"""One base unit per cycle, and one block of age at the usual weight."""
TIMER = Timer(
    version=RECORD_VERSION,
    actor=OWNER,
    height=20,
    timer_id=bytes(32),
    sequence=0,
    handler="handle_timer",
    payload=b"",
    fee_payer=OWNER,
    gas_limit=100,
    access_limit=0,
    expires_at=1_000,
    schedule_block=1,
)
HEIGHT_TERMS = GlobalboxTerms(Trigger.HEIGHT, TARGET, bid_octets(0))
GC_CYCLES = 200
CELLS_LIMIT = 50
CELL_BASEFEE = 3
RICH = 2**100
"""What an owner holds of whom nothing else is said."""


def height_timer(number: int, *, target: bytes = TARGET, bid: int = 0, **changes: object) -> Timer:
    """Return a height timer; sequence and id follow the number."""
    terms = msgspec.structs.replace(HEIGHT_TERMS, target=target, bid=bid_octets(bid))
    facts = {"sequence": number, "timer_id": b"%032d" % number, "terms": terms} | changes
    return msgspec.structs.replace(TIMER, **facts)


def watch_timer(number: int, *keys: bytes, target: bytes = TARGET, bid: int = 0, **changes: object) -> Timer:
    """Return a state watch; it stands in the calendar one block after its expiry."""
    terms = GlobalboxTerms(Trigger.STATE_WATCH, target, bid_octets(bid), tuple(sorted(keys)))
    expires_at = changes.pop("expires_at", 1_000)
    facts = {"sequence": number, "timer_id": b"%032d" % number, "terms": terms}
    facts |= {"expires_at": expires_at, "height": expires_at + 1} | changes
    return msgspec.structs.replace(TIMER, **facts)


def terms_of(timer: Timer) -> GlobalboxTerms:
    """Return what Globalbox keeps with a timer."""
    assert isinstance(timer.terms, GlobalboxTerms)
    return timer.terms


@dataclass(kw_only=True)
class Terms:
    """What is governed, and what a block offers."""

    age_weight: int = ONE
    bid_weight: int = 1
    max_fires: int = 8
    share: int = 8
    hits_max: int = 10
    joined_max: int = 100
    examined_max: int = 1_000
    passed_over_max: int = 256
    lane: int = 1_000
    gc: int = 400
    cycle_basefee: int = 7


@dataclass(kw_only=True)
class World:
    """Timers, mailbox and money, and who hears of them."""

    height: int = 19
    clock: int = 0
    timers: dict[bytes, Timer] = field(default_factory=dict)
    joined: set[bytes] = field(default_factory=set)
    mailbox: list[MailboxEntry] = field(default_factory=list)
    materialized: int = 0
    modified: tuple[CarriedHit, ...] = ()
    balances: dict[bytes, int] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    wild: bool = False
    sequence: int = 0
    follower: Follower | None = field(default=None, compare=False)
    lane_left: int = 0

    def begin(self, modified: tuple[bytes, ...] = (), carried: tuple[CarriedHit, ...] = ()) -> None:
        """Begin the next block, with keys that its transactions have modified."""
        self.height += 1
        self.clock += self.terms.age_weight
        hits = {hit.key: hit for hit in carried} | {key: CarriedHit(key, 0, self.height) for key in modified}
        self.modified = tuple(hits[key] for key in sorted(hits))

    def put_in(self, timer: Timer) -> None:
        """Set a timer."""
        self.timers[timer.timer_id] = timer
        self.sequence = max(self.sequence, timer.sequence + 1)
        if self.follower is not None:
            self.follower.schedule(timer)

    def write(self, timer: Timer) -> None:
        """Change a record."""
        self.timers[timer.timer_id] = timer
        if self.follower is not None:
            self.follower.replace(timer)

    def remove(self, timer_id: bytes) -> None:
        """End a timer, if it is there."""
        if self.timers.pop(timer_id, None) is not None:
            self.joined.discard(timer_id)
            if self.follower is not None:
                self.follower.leave(timer_id)

    def due(self) -> DueTimers:
        """Let timers join, those of the block's own height first, and return what a mechanism is given."""
        order = sorted(self.timers.values(), key=lambda timer: (timer.height, timer.sequence))
        waiting = [timer for timer in order if timer.timer_id in self.joined]
        due = [timer for timer in order if timer.height <= self.height and timer.timer_id not in self.joined]
        due = [timer for timer in due if timer.expires_at >= timer.height]
        due.sort(key=lambda timer: timer.height != self.height)
        joining = due[: self.terms.joined_max]
        self.joined |= {timer.timer_id for timer in joining}
        return DueTimers(iter(waiting), joining)

    def timer_of(self, height: int, timer_id: bytes) -> Timer:
        """Return a record, as a look-up by the state's key would."""
        assert self.timers[timer_id].height == height
        return self.timers[timer_id]

    def balance(self, payer: bytes) -> int:
        """Return what an owner holds."""
        return self.balances.get(payer, RICH)

    def context(self) -> SelectionContext[GlobalboxMarket]:
        """Open the block's deliveries."""
        terms = self.terms
        self.lane_left = terms.lane
        market = GlobalboxMarket(
            max_cycles_per_fire=2**64,
            age_weight=terms.age_weight,
            bid_weight=terms.bid_weight,
            clock=self.clock,
            max_fires=terms.max_fires,
            max_fires_per_target=terms.share,
            hits_max=terms.hits_max,
            modified=self.modified,
            timer_of=self.timer_of,
            entries=lambda: iter(tuple(self.mailbox)),
        )
        return SelectionContext(
            height=self.height,
            cycle_basefee=terms.cycle_basefee,
            cell_basefee=CELL_BASEFEE,
            max_cells_per_fire=CELLS_LIMIT,
            lane_cycles_max=terms.lane,
            gc_cycles_max=terms.gc,
            gc_cycles_per_timer=GC_CYCLES,
            balance_of=self.balance,
            lane_cycles_left=lambda: self.lane_left,
            market=market,
        )

    def carry_out(self, decision: Decision) -> None:
        """Do what a decision says."""
        timer = decision.timer
        match decision.verdict:
            case Verdict.EXPIRE:
                self.remove(timer.timer_id)
            case Verdict.ENQUEUE:
                assert decision.fire is not None
                self._write_terms(timer, fire=decision.fire)
            case Verdict.MATERIALIZE:
                self._materialize(decision)
            case Verdict.UNFUND:
                assert self.balance(timer.fee_payer) == decision.available < decision.max_cost
                self.remove(timer.timer_id)
            case Verdict.FIRE:
                self._take_entry(decision)
                self._run(decision)

    def _write_terms(self, timer: Timer, **changes: object) -> None:
        terms = msgspec.structs.replace(terms_of(timer), **changes)
        self.write(msgspec.structs.replace(timer, terms=terms))

    def _materialize(self, decision: Decision) -> None:
        timer = decision.timer
        self.balances[timer.fee_payer] = self.balance(timer.fee_payer) - decision.max_cost
        assert self.balances[timer.fee_payer] >= 0
        terms = terms_of(timer)
        fire = terms.fire
        assert fire is not None
        snapshot = msgspec.structs.replace(
            timer,
            handler=fire.handler,
            payload=fire.payload,
            gas_limit=fire.gas_limit,
            terms=msgspec.structs.replace(terms, bid=fire.bid, fire=None),
        )
        facts = (snapshot, terms.fire_seq, fire.hit_height, fire.matched_keys, self.height)
        amounts = (decision.max_cost, decision.prices.cycle_basefee, decision.prices.cell_basefee)
        paid = (*map(amount_octets, amounts), CELLS_LIMIT)
        self.mailbox.append(MailboxEntry(b"%032d" % self.materialized, self.materialized, *facts, *paid))
        self.materialized += 1
        self._write_terms(timer, fire=None, fire_seq=terms.fire_seq + 1, in_mailbox=terms.in_mailbox + 1)

    def _take_entry(self, decision: Decision) -> None:
        entry = self.mailbox.pop(0)
        assert decision.entry == entry
        assert decision.timer == entry.timer
        timer = self.timers.get(entry.timer.timer_id)
        if timer is not None and entry.is_last:
            self.remove(timer.timer_id)
        elif timer is not None:
            self._write_terms(timer, in_mailbox=terms_of(timer).in_mailbox - 1)

    def _run(self, decision: Decision) -> None:
        entry = decision.entry
        assert entry is not None
        dice = Random(entry.deliver_seq * 1_000 + self.height)
        self.lane_left -= dice.randint(1, decision.gas_limit) if self.wild else decision.gas_limit
        for _ in range(dice.randrange(3) if self.wild else 0):
            self.act(dice)

    # What transactions and handlers do

    def act(self, dice: Random) -> None:
        """Set, cancel or update a timer, or spend money."""
        deed = dice.randrange(6)
        if deed < 3:
            self.put_in(self.draw(dice))
        elif deed == 3 and self.timers:
            timer = self.timers[dice.choice(sorted(self.timers))]
            if terms_of(timer).kind is Trigger.STATE_WATCH or not terms_of(timer).fire_seq:
                self.remove(timer.timer_id)
        elif deed == 4 and self.timers:
            timer = self.timers[dice.choice(sorted(self.timers))]
            if terms_of(timer).kind is Trigger.STATE_WATCH or not terms_of(timer).fire_seq:
                terms = msgspec.structs.replace(terms_of(timer), bid=bid_octets(dice.randrange(6) * ONE // 2))
                self.write(msgspec.structs.replace(timer, gas_limit=dice.choice([50, 150]), terms=terms))
        else:
            payer = dice.choice(ACTORS)
            self.balances[payer] = dice.choice([0, 1_000, RICH])

    def draw(self, dice: Random) -> Timer:
        """Return a timer that is set in this block."""
        number = self.sequence
        owner = dice.choice(ACTORS)
        facts = {
            "actor": owner,
            "fee_payer": owner,
            "gas_limit": dice.choice([50, 100, 300]),
            "schedule_block": self.height,
            "expires_at": self.height + dice.randint(1, 12),
            "target": dice.choice(ACTORS),
            "bid": dice.choice([0, ONE // 3, ONE, 5 * ONE]),
        }
        if dice.randrange(2):
            return height_timer(number, height=self.height + dice.randint(1, 8), **facts)
        keys = dice.sample(WATCH_KEYS, dice.randint(1, 3))
        return watch_timer(number, *keys, **facts)


ACTORS = tuple(bytes([number]) * 20 for number in range(1, 5))
KEYS = tuple(actor + slot for actor in ACTORS for slot in (b"", b"a", b"ab", b"abc", b"b"))
WATCH_KEYS = tuple(actor + slot for actor in ACTORS for slot in (b"", b"a", b"abc", b"c"))


class Told:
    """The rules of Globalbox as the draft tells them, block after block, without anything to look up by."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.scores: dict[bytes, int] = {}
        self.passed_over = 0
        self.found = Rest(stopped=Stop.NONE_LEFT)

    def begin(self) -> None:
        """Age everything that is queued by a block."""
        for timer_id in self.scores:
            self.scores[timer_id] += self.world.terms.age_weight

    def decisions(self) -> Iterator[Decision]:
        """Yield the block's decisions; each must have been carried out before the next is asked for."""
        self.gc = self.world.terms.gc
        self.carried: tuple[CarriedHit, ...] = ()
        yield from self.expire()
        yield from self.enqueue()
        yield from self.materialize()
        yield from self.execute()

    def decide(self, timer: Timer, verdict: Verdict, rank: int = 0, fire: QueuedFire | None = None) -> Decision:
        bid, gas = (terms_of(timer).bid, timer.gas_limit) if fire is None else (fire.bid, fire.gas_limit)
        prices = Prices(self.world.terms.cycle_basefee, CELL_BASEFEE, int.from_bytes(bid, "big") // ONE)
        reason = DeferralReason.OUTRANKED if verdict is Verdict.DEFER else None
        return decided(
            timer, verdict, 0, 0, reason, prices, gas, rank, fee_source=FeeSource.FROZEN, fire=fire
        )  # fmt: skip

    def can_remove(self) -> bool:
        if self.gc < GC_CYCLES:
            return False
        self.gc -= GC_CYCLES
        return True

    def is_delivered(self, timer: Timer) -> bool:
        return terms_of(timer).kind is Trigger.HEIGHT and terms_of(timer).fire_seq == 1

    def expire(self) -> Iterator[Decision]:
        world = self.world
        over = [timer for timer in world.timers.values() if timer.expires_at < world.height]
        over = [
            timer for timer in over
            if (timer.expires_at < timer.height or timer.timer_id in world.joined or terms_of(timer).fire)
            and not self.is_delivered(timer)
        ]  # fmt: skip
        for timer in sorted(over, key=lambda timer: (timer.expires_at, timer.height, timer.sequence)):
            if self.can_remove():
                yield self.decide(timer, Verdict.EXPIRE)

    def enqueue(self) -> Iterator[Decision]:
        world, terms = self.world, self.world.terms
        candidates = [(timer, timer.height, ()) for timer in world.timers.values() if self.is_due(timer)]
        candidates += self.hits()
        rows = []
        for timer, hit_height, keys in candidates:
            bid = bid_of(terms_of(timer).bid)
            score = terms.age_weight * (world.height - hit_height) + terms.bid_weight * bid
            bucket = len(f"{bid // ONE:b}".strip("0") and f"{bid // ONE:b}")
            rows.append([score, bucket, hit_height, timer, keys])
        rows.sort(key=lambda row: (-row[0], -row[1], row[2], row[3].timer_id))
        placed = []
        for number, (score, bucket, hit_height, timer, keys) in enumerate(rows):
            cursor = sum(row[3].target == timer.target for row in rows[:number])
            placed.append((-score, -bucket, cursor, hit_height, timer.target, timer.timer_id, timer, keys))
        for rank, row in enumerate(sorted(placed, key=lambda row: row[:6]), 1):
            score, bucket, cursor, hit_height, _, timer_id, timer, keys = row
            standing = standing_octets(-score - world.clock)
            when = (hit_height, world.height, keys)
            what = (timer.handler, timer.payload, timer.gas_limit, terms_of(timer).bid)
            fire = QueuedFire(standing, -bucket, cursor, *when, *what)
            self.scores[timer_id] = -score
            yield self.decide(timer, Verdict.ENQUEUE, rank, fire)

    def is_due(self, timer: Timer) -> bool:
        terms = terms_of(timer)
        is_there = timer.timer_id in self.world.joined and timer.expires_at >= self.world.height
        return is_there and terms.kind is Trigger.HEIGHT and terms.fire is None and not self.is_delivered(timer)

    def hears(self, timer: Timer, hit: CarriedHit) -> bool:
        is_told = timer.sequence >= hit.next_sequence and timer.schedule_block < hit.modified_at
        return is_told and any(hit.key[: len(key)] == key for key in terms_of(timer).watch_keys)

    def hits(self) -> list[tuple[Timer, int, tuple[bytes, ...]]]:
        world, found = self.world, []
        armed = [timer for timer in world.timers.values() if terms_of(timer).kind is Trigger.STATE_WATCH]
        armed = [timer for timer in armed if terms_of(timer).fire is None and timer.expires_at >= world.height]
        for timer in sorted(armed, key=lambda timer: timer.sequence):
            heard = [hit for hit in world.modified if self.hears(timer, hit)]
            if heard and len(found) < world.terms.hits_max:
                keys = tuple(sorted(hit.key for hit in heard)[:16])
                found.append((timer, min(hit.modified_at for hit in heard), keys))
        if len(found) == world.terms.hits_max:
            following = found[-1][0].sequence + 1
            late = [timer for timer in armed if timer.sequence >= following]
            self.carried = tuple(
                CarriedHit(hit.key, max(following, hit.next_sequence), hit.modified_at)
                for hit in world.modified
                if any(self.hears(timer, hit) for timer in late)
            )
        return found

    def queue(self) -> list[Timer]:
        """Return those whose fires are queued and have not expired, in order."""
        queued = [timer for timer in self.world.timers.values() if terms_of(timer).fire is not None]
        queued = [timer for timer in queued if timer.expires_at >= self.world.height]

        def order(timer: Timer) -> tuple[object, ...]:
            fire = terms_of(timer).fire
            assert fire is not None
            rest = (-fire.bucket, fire.cursor, fire.hit_height, timer.target, timer.timer_id)
            return -self.scores[timer.timer_id], *rest

        return sorted(queued, key=order)

    def materialize(self) -> Iterator[Decision]:
        terms, taken, passed_over, rank = self.world.terms, [], 0, 0
        self.gc = max(self.gc, terms.max_fires * GC_CYCLES)
        for timer in self.queue():
            if len(taken) == terms.max_fires or passed_over == terms.passed_over_max:
                return
            if taken.count(timer.target) == terms.share:
                continue
            rank += 1
            decision = self.decide(timer, Verdict.MATERIALIZE, rank, terms_of(timer).fire)
            price = decision.prices.cycle_basefee + decision.prices.cycle_tip
            cost, available = decision.gas_limit * price + CELLS_LIMIT * CELL_BASEFEE, self.world.balance(timer.actor)
            verdict = Verdict.UNFUND if available < cost else Verdict.MATERIALIZE
            if verdict is Verdict.MATERIALIZE:
                taken.append(timer.target)
            elif not self.can_remove():
                passed_over += 1
                self.passed_over += 1
                continue
            yield msgspec.structs.replace(decision, verdict=verdict, max_cost=cost, available=available)
            del self.scores[timer.timer_id]

    def execute(self) -> Iterator[Decision]:
        world, rank = self.world, 0
        stopped, smallest = Stop.NONE_LEFT, 0
        while world.mailbox:
            entry = world.mailbox[0]
            if entry.timer.gas_limit > world.lane_left < world.terms.lane:
                stopped, smallest = Stop.LANE_FULL, entry.timer.gas_limit
                break
            if rank == world.terms.examined_max:
                stopped = Stop.EXAMINED_MAX
                break
            paid = (entry.reserved, entry.cycle_basefee, entry.cell_basefee)
            reserved, cycle, cell = (int.from_bytes(amount, "big") for amount in paid)
            prices = Prices(cycle, cell, bid_of(terms_of(entry.timer).bid) // ONE)
            rank += 1
            yield decided(
                entry.timer, Verdict.FIRE, reserved, 0, None, prices, entry.timer.gas_limit, rank,
                fee_source=FeeSource.FROZEN, entry=entry,
            )  # fmt: skip
        self.scores = {timer_id: score for timer_id, score in self.scores.items() if timer_id in world.timers}
        following = [
            self.decide(timer, Verdict.DEFER, 0, terms_of(timer).fire) for timer in self.queue()[:RUNNERS_UP_MAX]
        ]
        self.found = Rest(
            stopped=stopped,
            joined=len(world.joined),
            outranked=sum(terms_of(timer).fire is not None for timer in world.timers.values()),
            smallest_gas=smallest,
            runners_up=tuple(following),
            carried=self.carried,
        )


def make_mechanism(world: World, *, shards: int = 1) -> Globalbox:
    """Return a mechanism that hears of a world."""
    bounds = {
        "globalbox.shards": shards,
        "globalbox.passed_over_max": world.terms.passed_over_max,
        "timers.due_examined_max": world.terms.examined_max,
    }
    params = load_params(overrides=bounds)
    world.follower = build_globalbox(params)
    return world.follower


def deliver(world: World, mechanism: Globalbox) -> tuple[list[Decision], Rest]:
    """Carry out a block's decisions."""
    decisions = []
    selection = mechanism.select(world.due(), world.context())
    for decision in selection:
        decisions.append(decision)
        world.carry_out(decision)
    return decisions, selection.rest()


def tell(world: World, told: Told) -> tuple[list[Decision], Rest]:
    """Carry out a block's decisions as they are told."""
    decisions = []
    told.begin()
    world.due(), world.context()
    for decision in told.decisions():
        decisions.append(decision)
        world.carry_out(decision)
    return decisions, told.found
