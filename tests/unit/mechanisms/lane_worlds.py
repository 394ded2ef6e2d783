"""A world of due timers that carries out decisions, and the lane's rules as a full sort over it.

`Sorted` is written from the rules alone: it looks at every joined timer in every block and keeps nothing between two.
What fires do to other timers is drawn from the timer's id and the height, so that two worlds that carry out the same
decisions stay the same.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec

from tests.unit.mechanisms.due_timers import decided, due_order, expiry_order
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Decision, DueTimers, Follower, Rest, Verdict
from trailboss.mechanisms.context import Bid, LaneMarket, SelectionContext
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.timers import ASK_AGENT, NO_FEES, RECORD_VERSION, DeferralReason, Timer

ACTOR = b"\x01" * 20
WHOLE = 10**9
TIMER = Timer(
    version=RECORD_VERSION,
    actor=ACTOR,
    height=20,
    timer_id=bytes(32),
    sequence=0,
    handler="handle_timer",
    payload=b"",
    fee_payer=ACTOR,
    gas_limit=100,
    access_limit=0,
    expires_at=1_000,
    schedule_block=1,
)


def make_timers(*changes: dict[str, object]) -> list[Timer]:
    """Return one timer for each change of `TIMER`; sequence and id follow the position."""
    return [
        msgspec.structs.replace(TIMER, **({"sequence": number, "timer_id": b"%032d" % number} | change))
        for number, change in enumerate(changes)
    ]


@dataclass(kw_only=True)
class Terms:
    """What a block finds, beside its timers."""

    height: int = 20
    basefee: int = 10
    previous_tip: int = 3
    cap: int = 1_000
    clamps_before: int = 0
    median: int = 4
    weight_min: int = WHOLE
    weight_max: int = 2 * WHOLE
    lane: int = 1_000
    gc: int = 400
    examined_max: int = 1_000
    dead_examined_max: int = 256
    passed_over_max: int = 256
    joined_max: int = 100
    questions: int = 0
    cycle_basefee: int = 7


@dataclass(kw_only=True)
class World:
    """Timers, money and fires, and who hears of them.

    Those that have joined, and those that are barred, are among them for as long as they are there.
    """

    timers: dict[bytes, Timer] = field(default_factory=dict)
    joined: set[bytes] = field(default_factory=set)
    barred: set[bytes] = field(default_factory=set)
    balances: dict[bytes, int] = field(default_factory=dict)
    fires: dict[bytes, int] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    used: dict[bytes, int] = field(default_factory=dict)
    wild: bool = False
    follower: Follower | None = None
    lane_left: int = 0
    questions_left: int = 0

    def context(self) -> SelectionContext[LaneMarket]:
        """Open a block."""
        terms = self.terms
        self.lane_left, self.questions_left = terms.lane, terms.questions
        market = LaneMarket(
            basefee=terms.basefee,
            previous_tip=terms.previous_tip,
            max_cycles_per_fire=terms.cap,
            clamps_before=terms.clamps_before,
            median_fires=terms.median,
            weight_min=terms.weight_min,
            weight_max=terms.weight_max,
            fires_of=lambda actor: self.fires.get(actor, 0),
            ask=self.ask,
            timer_of=self.timer_of,
        )
        return SelectionContext(
            height=terms.height,
            cycle_basefee=terms.cycle_basefee,
            cell_basefee=3,
            max_cells_per_fire=50,
            lane_cycles_max=terms.lane,
            gc_cycles_max=terms.gc,
            gc_cycles_per_timer=200,
            balance_of=lambda payer: self.balances.get(payer, 2**200),
            lane_cycles_left=lambda: self.lane_left,
            market=market,
        )

    def timer_of(self, height: int, timer_id: bytes) -> Timer:
        """Return a record, as a look-up by the state's key would."""
        assert self.timers[timer_id].height == height
        return self.timers[timer_id]

    def due_order(self) -> list[Timer]:
        """Return all timers in due order."""
        return sorted(self.timers.values(), key=due_order)

    def is_alive(self, timer: Timer) -> bool:
        """Return whether a timer may fire in the present block."""
        return timer.expires_at >= self.terms.height

    def waiting(self) -> Iterator[Timer]:
        """Yield the joined timers that are alive, in due order."""
        return (timer for timer in self.due_order() if timer.timer_id in self.joined and self.is_alive(timer))

    def expired(self) -> list[Timer]:
        """Return the timers that have expired, joined or not, the first to expire first."""
        return sorted((timer for timer in self.timers.values() if not self.is_alive(timer)), key=expiry_order)

    def unfunded(self) -> Iterator[Timer]:
        """Return the barred timers that are alive and cannot be paid, in due order."""
        barred = [timer for timer in self.due_order() if timer.timer_id in self.barred and self.is_alive(timer)]
        return (timer for timer in barred if self.balances.get(timer.fee_payer, 2**200) < self.least_cost(timer))

    def least_cost(self, timer: Timer) -> int:
        """Return what a fire costs at least."""
        terms = self.terms
        return min(timer.gas_limit, terms.cap) * (terms.cycle_basefee + terms.basefee) + 50 * 3

    def ask(self, timer: Timer) -> Bid | None:
        """Answer as the timer's agent, drawn from its id and the height; one in three fails for good."""
        assert timer == self.timers[timer.timer_id]
        assert timer.fees == ASK_AGENT
        if not self.questions_left:
            return None
        self.questions_left -= 1
        dice = Random(timer.timer_id + self.terms.height.to_bytes(8, "big"))
        if dice.randrange(3):
            max_fee = self.terms.basefee * dice.randrange(30) // 10
            return Bid(max_fee, dice.randint(0, max_fee), FeeSource.AGENT, 5)
        self.write(msgspec.structs.replace(timer, fees=NO_FEES), heard=bool(dice.randrange(2)))
        return Bid(2 * self.terms.basefee, self.terms.previous_tip, FeeSource.FALLBACK, 7)

    def write(self, timer: Timer, *, heard: bool = True) -> None:
        """Change a record."""
        self.timers[timer.timer_id] = timer
        if self.follower is not None and heard:
            self.follower.replace(timer)

    def remove(self, timer_id: bytes) -> None:
        """End a timer."""
        del self.timers[timer_id]
        self.joined.discard(timer_id)
        self.barred.discard(timer_id)
        if self.follower is not None:
            self.follower.leave(timer_id)

    def carry_out(self, decision: Decision) -> None:
        """Do what a decision says; a fire uses cycles, and in a wild world does things to other timers."""
        timer = decision.timer
        if decision.verdict is Verdict.DEFER:
            if timer.deferred_for != decision.reason:
                self.write(msgspec.structs.replace(timer, deferred_for=str(decision.reason)))
            return
        self.remove(timer.timer_id)
        if decision.verdict is not Verdict.FIRE:
            return
        self.lane_left -= self.used.get(timer.timer_id, decision.gas_limit)
        if self.wild:
            self.run_wild(Random(timer.timer_id + self.terms.height.to_bytes(8, "big")))

    def run_wild(self, dice: Random) -> None:
        """Cancel timers, extend and shorten those that are alive, and spend money."""
        for _ in range(dice.randrange(3)):
            if self.timers:
                other = self.timers[dice.choice(sorted(self.timers))]
                if dice.randrange(2):
                    self.remove(other.timer_id)
                elif self.is_alive(other):
                    expires_at = self.terms.height + dice.randint(0, 4)
                    self.write(msgspec.structs.replace(other, expires_at=expires_at))
        for payer in self.balances:
            if not dice.randrange(5):
                self.balances[payer] = dice.choice([0, self.balances[payer] // 2, 2**200])


class Sorted:
    """The rules of one block as they are told: classify all, sort all, walk."""

    def __init__(self, world: World) -> None:
        self.world, self.terms = world, world.terms
        self.context = world.context()
        self.gc, self.dead_left = self.terms.gc, self.terms.dead_examined_max
        self.found = Rest(stopped=Stop.NONE_LEFT)

    def gas(self, timer: Timer) -> int:
        clamps = timer.schedule_block < self.terms.clamps_before
        return min(timer.gas_limit, self.terms.cap) if clamps else timer.gas_limit

    def is_over(self, timer: Timer) -> bool:
        return self.gas(timer) > self.terms.cap

    def joined(self) -> list[Timer]:
        return list(self.world.waiting())

    def removable(self, timers: list[Timer]) -> list[Timer]:
        found = timers[: self.gc // 200]
        self.gc -= 200 * len(found)
        return found

    def __iter__(self) -> Iterator[Decision]:
        terms, joined = self.terms, self.joined()
        prices = Prices(terms.cycle_basefee, 3, 0, 0, terms.basefee)
        for timer in self.removable(self.world.expired()):
            yield decided(timer, Verdict.EXPIRE, 0, 0, None, prices, timer.gas_limit)
        for timer in self.removable(list(self.world.unfunded())):
            amounts = self.world.least_cost(timer), self.context.balance_of(timer.fee_payer)
            yield decided(timer, Verdict.UNFUND, *amounts, None, prices, timer.gas_limit)
        untold = [timer for timer in joined if self.is_over(timer) and timer.deferred_for != "over_cap"]
        for timer in untold[: terms.joined_max]:
            yield decided(timer, Verdict.DEFER, 0, 0, DeferralReason.OVER_CAP, prices, self.gas(timer))
        offers = self.offers([timer for timer in joined if not self.is_over(timer)])
        yield from self.walk(self.ranked(offers))
        self.count(offers)

    def offers(self, timers: list[Timer]) -> dict[bytes, Bid]:
        offers, default = {}, (2 * self.terms.basefee, self.terms.previous_tip)
        is_asking = True
        for timer in sorted(
            timers, key=lambda timer: (timer.height != self.terms.height, timer.height, timer.sequence)
        ):
            frozen = timer.frozen_fees()
            if frozen is not None:
                offers[timer.timer_id] = Bid(*frozen, FeeSource.FROZEN)
            elif timer.fees == NO_FEES:
                offers[timer.timer_id] = Bid(*default, FeeSource.DEFAULT)
            else:
                bid = self.world.ask(timer) if is_asking else None
                is_asking = bid is not None
                offers[timer.timer_id] = bid or Bid(*default, FeeSource.FALLBACK)
        return offers

    def ranked(self, offers: dict[bytes, Bid]) -> list[tuple[int, bytes, Bid, int, int]]:
        terms, ranked = self.terms, []
        for timer_id, bid in offers.items():
            if bid.max_fee >= terms.basefee:
                tip = min(bid.max_priority_fee, bid.max_fee - terms.basefee)
                fires = self.world.fires.get(self.world.timers[timer_id].actor, 0)
                ratio = -(-fires * WHOLE // max(1, terms.median))
                weight = min(max(2 * WHOLE - ratio, terms.weight_min), terms.weight_max)
                ranked.append((-tip * weight, timer_id, bid, tip, weight))
        return sorted(ranked, key=lambda each: each[:2])

    def walk(self, ranked: list[tuple[int, bytes, Bid, int, int]]) -> Iterator[Decision]:
        self.decided: list[bytes] = []
        self.examined = self.passed_over = rank = 0
        runners_up: list[Decision] = []
        stopped = Stop.NONE_LEFT
        payers = {timer_id: self.world.timers[timer_id].fee_payer for _, timer_id, *_ in ranked}
        out: set[bytes] = set()
        for _, timer_id, bid, tip, weight in ranked:
            if payers[timer_id] in out:
                continue
            rank += 1
            timer = self.world.timers.get(timer_id)
            if timer is None:
                continue
            if stopped is Stop.NONE_LEFT:
                if self.world.lane_left < self.smallest():
                    stopped = Stop.LANE_FULL
                elif self.passed_over == self.terms.passed_over_max:
                    stopped = Stop.PASSED_OVER_MAX
                elif self.examined == self.terms.examined_max:
                    stopped = Stop.EXAMINED_MAX
            verdict, reason = Verdict.DEFER, DeferralReason.OUTRANKED
            gas = self.gas(timer)
            cost = gas * (self.terms.cycle_basefee + self.terms.basefee + tip) + 50 * 3
            available = self.context.balance_of(timer.fee_payer)
            if stopped is Stop.NONE_LEFT:
                if available < cost and self.gc < 200 and not self.dead_left:
                    out.add(timer.fee_payer)
                    continue
                verdict, reason = self.verdict(gas, cost, available)
                self.decided.append(timer_id)
            prices = Prices(self.terms.cycle_basefee, 3, tip, 0, self.terms.basefee)
            facts = (rank, weight, bid.max_fee, bid.source, bid.cycles_used)
            decision = decided(timer, verdict, cost, available, reason, prices, gas, *facts)
            if stopped is Stop.NONE_LEFT:
                yield decision
            elif len(runners_up) < RUNNERS_UP_MAX:
                runners_up.append(decision)
        smallest = 0 if stopped is Stop.NONE_LEFT else self.smallest()
        self.found = Rest(stopped=stopped, smallest_gas=smallest, runners_up=tuple(runners_up))

    def verdict(self, gas: int, cost: int, available: int) -> tuple[Verdict, DeferralReason | None]:
        if available < cost:
            if self.gc < 200:
                self.dead_left -= 1
                return Verdict.DEFER, DeferralReason.GC_EXHAUSTED
            self.gc -= 200
            return Verdict.UNFUND, None
        self.examined += 1
        if gas > self.world.lane_left:
            self.passed_over += 1
            return Verdict.DEFER, DeferralReason.LANE_FULL
        return Verdict.FIRE, None

    def smallest(self) -> int:
        return min((self.gas(timer) for timer in self.joined() if not self.is_over(timer)), default=0)

    def count(self, offers: dict[bytes, Bid]) -> None:
        """Count those that are left by why they were not examined."""
        joined = self.joined()
        priced_out, over_cap, outranked = 0, 0, 0
        for timer in joined:
            if self.is_over(timer):
                over_cap += 1
            elif offers[timer.timer_id].max_fee < self.terms.basefee:
                priced_out += 1
            elif timer.timer_id not in self.decided:
                outranked += 1
        facts = {"joined": len(joined), "outranked": outranked, "priced_out": priced_out, "over_cap": over_cap}
        self.found = Rest(
            stopped=self.found.stopped,
            smallest_gas=self.found.smallest_gas,
            runners_up=self.found.runners_up,
            **facts,
        )


def due(world: World, joining: list[Timer], barred: Collection[Timer] = ()) -> DueTimers:
    """Let timers join the world unless they have expired, and return what a mechanism is given.

    The mechanism hears which of those that have joined are alive no more.
    """
    waiting = list(world.waiting())
    world.timers |= {timer.timer_id: timer for timer in (*joining, *barred)}
    world.barred |= {timer.timer_id for timer in barred}
    alive = [timer for timer in joining if world.is_alive(timer)]
    if world.follower is not None:
        world.follower.expire([timer.timer_id for timer in world.expired() if timer.timer_id in world.joined])
    world.joined |= {timer.timer_id for timer in alive}
    return DueTimers(waiting=iter(waiting), joining=alive, expired=iter(world.expired()), unfunded=world.unfunded())
