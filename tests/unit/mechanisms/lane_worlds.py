"""A world of due timers that carries out decisions.

What fires do to other timers is drawn from the timer's id and the height, so that two worlds that carry out the same
decisions stay the same.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec

from tests.unit.mechanisms.due_timers import due_order, expiry_order
from trailboss.mechanisms.base import Decision, DueTimers, Follower, Verdict
from trailboss.mechanisms.context import Bid, LaneMarket, SelectionContext
from trailboss.model.decisions import FeeSource
from trailboss.model.timers import ASK_AGENT, NO_FEES, RECORD_VERSION, Timer

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
    age_blocks: int = 0
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
    deployers: dict[bytes, bytes] | None = None
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
            weight_age_blocks=terms.age_blocks,
            counted_for=self.counted_for,
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

    @property
    def counted_for(self) -> Callable[[bytes], bytes] | None:
        """Actor to its deployer, where fires count for deployers."""
        return None if self.deployers is None else self.deployers.__getitem__

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
