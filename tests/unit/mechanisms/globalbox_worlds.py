"""A world of Globalbox that carries out decisions.

What fires do to other timers is drawn from the entry, so that two worlds that carry out the same decisions stay the
same. Owners pay when a fire is materialized, and nothing comes back: what a fire uses is delivery's.
"""

from dataclasses import dataclass, field
from random import Random

import msgspec

from trailboss.mechanisms.base import Decision, DueTimers, Follower, Rest, Verdict
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox import Globalbox, build_globalbox
from trailboss.model.configs import amount_octets
from trailboss.model.globalbox import CarriedHit, MailboxEntry, bid_octets
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import RECORD_VERSION, Timer
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
