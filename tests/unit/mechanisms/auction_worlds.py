"""A world of due timers that carries out decisions.

What agents answer and fires do to other timers is drawn from the timer's id and the height, so that two worlds that
carry out the same decisions stay the same.
"""

from dataclasses import dataclass, field
from random import Random

import msgspec

from trailboss.mechanisms.base import Decision, DueTimers, Follower, Verdict
from trailboss.mechanisms.context import AuctionMarket, Bid, SelectionContext
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import FeeSource
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, RECORD_VERSION, Timer, freeze_fees

ACTOR, AGENT = b"\x01" * 20, b"\x0a" * 20
CELLS, CELL_BASEFEE = 50, 3
HALF = 500_000_000
FOREVER = 2**64 - 1
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
    expires_at=FOREVER,
    schedule_block=1,
    fees=ASK_AGENT,
    terms=AuctionTerms(AGENT),
)


def terms_of(timer: Timer) -> AuctionTerms:
    assert isinstance(timer.terms, AuctionTerms)
    return timer.terms


def make_timers(*changes: dict[str, object]) -> list[Timer]:
    """Return one timer for each change of `TIMER`; sequence and id follow the position, the payer the actor.

    ``bid`` stands for a bid (max_fee, tip) that an agent gave in block 1, ``late`` for the mark.
    """
    timers = []
    for number, change in enumerate(changes):
        fields: dict[str, object] = {"sequence": number, "timer_id": b"%032d" % number} | change
        bid, is_late = fields.pop("bid", None), bool(fields.pop("late", False))
        fields["terms"] = AuctionTerms(AGENT, 1 if bid else 0, is_late)
        if isinstance(bid, tuple):
            fields["fees"] = freeze_fees(*bid)
        fields["fee_payer"] = fields.get("actor", ACTOR)
        timers.append(msgspec.structs.replace(TIMER, **fields))
    return timers


@dataclass(kw_only=True)
class Terms:
    """What a block finds, beside its timers; ``spent`` of its budget is used before the first of them."""

    height: int = 20
    basefee: int = 10
    budget: int = 1_000
    spent: int = 0
    examined_max: int = 1_000
    dead_examined_max: int = 256
    passed_over_max: int = 256
    joined_max: int = 100
    actors_weighed_max: int = 100
    delays_max: int = 256
    delay_action: DelayAction = DelayAction.EVENT
    questions: int = 0
    epoch: int = 0
    rescales: int = 0


@dataclass(kw_only=True)
class World:
    """Timers, money and weights, and who hears of them.

    Attributes:
        timers: All that there are.
        joined: Those that have joined.
        balances: Of payers that are not rich.
        weights: Of actors, where it is not one half.
        eras: Epoch and rescales of the weights.
        bids: What agents answer, where it is not drawn.
        used: Cycles of fires that do not use their gas limits.
        wild: Whether fires and ends do things to others.
        drawn: Whether weights change when they are freshened.
    """

    timers: dict[bytes, Timer] = field(default_factory=dict)
    joined: set[bytes] = field(default_factory=set)
    balances: dict[bytes, int] = field(default_factory=dict)
    weights: dict[bytes, int] = field(default_factory=dict)
    eras: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    bids: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    used: dict[bytes, int] = field(default_factory=dict)
    wild: bool = False
    drawn: bool = False
    follower: Follower | None = None
    budget_left: int = 0
    questions_left: int = 0
    refreshed: list[bytes] = field(default_factory=list)
    asked: list[bytes] = field(default_factory=list)

    def context(self) -> SelectionContext[AuctionMarket]:
        """Open a block."""
        terms = self.terms
        self.budget_left, self.questions_left = terms.budget - terms.spent, terms.questions
        self.refreshed, self.asked = [], []
        market = AuctionMarket(
            max_cycles_per_fire=2**64,
            epoch=terms.epoch,
            rescales=terms.rescales,
            actors_weighed_max=terms.actors_weighed_max,
            delays_max=terms.delays_max,
            delay_action=terms.delay_action,
            default_bid=Bid(2 * terms.basefee, 0, FeeSource.FALLBACK),
            weight_of=self.weight_of,
            is_behind=self.is_behind,
            refresh_weight=self.refresh_weight,
            ask=self.ask,
            timer_of=self.timer_of,
        )
        return SelectionContext(
            height=terms.height,
            cycle_basefee=terms.basefee,
            cell_basefee=CELL_BASEFEE,
            max_cells_per_fire=CELLS,
            lane_cycles_max=terms.budget,
            gc_cycles_max=0,
            gc_cycles_per_timer=200,
            balance_of=lambda payer: self.balances.get(payer, 2**200),
            lane_cycles_left=lambda: self.budget_left,
            market=market,
        )

    def timer_of(self, height: int, timer_id: bytes) -> Timer:
        """Return a record, as a look-up by the state's key would."""
        assert self.timers[timer_id].height == height
        return self.timers[timer_id]

    def waiting(self) -> list[Timer]:
        """Return the joined timers in due order."""
        joined = [self.timers[timer_id] for timer_id in self.joined]
        return sorted(joined, key=lambda timer: (timer.height, timer.sequence))

    def weight_of(self, actor: bytes) -> int:
        """Return a weight as of now."""
        return self.weights.get(actor, HALF)

    def is_behind(self, actor: bytes) -> bool:
        """Return whether it is one of another era."""
        return self.eras.get(actor) != (self.terms.epoch, self.terms.rescales)

    def refresh_weight(self, actor: bytes) -> int:
        """Bring a weight up to date."""
        self.refreshed.append(actor)
        if self.is_behind(actor):
            self.eras[actor] = era = self.terms.epoch, self.terms.rescales
            if self.drawn:
                self.weights[actor] = Random(repr((actor, era))).choice([HALF // 2, HALF, HALF * 2])
        return self.weight_of(actor)

    def ask(self, timer: Timer) -> Bid | None:
        """Answer as the timer's agent; one drawn answer in three is none, and the default bid stands from then on."""
        assert timer == self.timers[timer.timer_id]
        if not self.questions_left:
            return None
        self.questions_left -= 1
        self.asked.append(timer.timer_id)
        dice = Random(timer.timer_id + self.terms.height.to_bytes(8, "big"))
        max_fee = self.terms.basefee * dice.randrange(30) // 10
        bid = Bid(max_fee, dice.randint(0, max_fee), FeeSource.AGENT, 5)
        if timer.timer_id in self.bids:
            bid = Bid(*self.bids[timer.timer_id], FeeSource.AGENT, 5)
        elif not dice.randrange(3):
            bid = Bid(2 * self.terms.basefee, 0, FeeSource.FALLBACK, 7)
        terms = msgspec.structs.replace(terms_of(timer), asked_at=self.terms.height)
        fees = freeze_fees(bid.max_fee, bid.max_priority_fee)
        self.write(msgspec.structs.replace(timer, fees=fees, terms=terms), heard=bool(dice.randrange(2)))
        return bid

    def write(self, timer: Timer, *, heard: bool = True) -> None:
        """Change a record."""
        self.timers[timer.timer_id] = timer
        if self.follower is not None and heard:
            self.follower.replace(timer)

    def remove(self, timer_id: bytes) -> None:
        """End a timer; the weight of its actor may come up to date with that."""
        timer = self.timers.pop(timer_id)
        self.joined.discard(timer_id)
        if self.wild and timer_id[0] % 2:
            self.refresh_weight(timer.actor)
        if self.follower is not None:
            self.follower.leave(timer_id)

    def carry_out(self, decision: Decision) -> None:
        """Do what a decision says; a fire uses cycles, and in a wild world does things to other timers."""
        timer = decision.timer
        if decision.verdict is Verdict.DEFER:
            if timer.deferred_for != decision.reason:
                self.write(msgspec.structs.replace(timer, deferred_for=str(decision.reason)))
        elif decision.verdict is Verdict.DELAY:
            terms = msgspec.structs.replace(terms_of(timer), is_late=True)
            self.write(msgspec.structs.replace(timer, terms=terms))
        else:
            self.remove(timer.timer_id)
        if decision.verdict is Verdict.FIRE:
            self.budget_left -= self.used.get(timer.timer_id, decision.gas_limit)
            if self.wild:
                self.run_wild(Random(timer.timer_id + self.terms.height.to_bytes(8, "big")))

    def run_wild(self, dice: Random) -> None:
        """Cancel timers, and spend money."""
        for _ in range(dice.randrange(3)):
            if self.timers:
                self.remove(dice.choice(sorted(self.timers)))
        for payer in self.balances:
            if not dice.randrange(5):
                self.balances[payer] = dice.choice([0, self.balances[payer] // 2, 2**200])


def due(world: World, joining: list[Timer]) -> DueTimers:
    """Let timers join the world, and return what a mechanism is given."""
    waiting = world.waiting()
    for timer in joining:
        world.timers[timer.timer_id] = timer
        world.joined.add(timer.timer_id)
    return DueTimers(waiting=iter(waiting), joining=joining)
