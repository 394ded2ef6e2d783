"""The auction's rules as a full sort over a world, written from the rules alone.

`Sorted` looks at every joined timer in every block and keeps nothing between two.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from tests.unit.mechanisms.auction_worlds import CELL_BASEFEE, CELLS, World, terms_of
from tests.unit.mechanisms.due_timers import decided
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Decision, Rest, Verdict
from trailboss.mechanisms.context import Bid
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.timers import DeferralReason, Timer


class Ranked(NamedTuple):
    """A ranked timer, with what the order goes by."""

    order: tuple[int, ...]
    timer_id: bytes
    actor: bytes
    bid: Bid
    tip: int
    weight: int


class Sorted:
    """The rules of one block as they are told: freshen; tell the late; ask; tell who cannot pay; sort; walk twice."""

    def __init__(self, world: World, joining: list[Timer]) -> None:
        self.world, self.terms, self.joining = world, world.terms, joining
        self.context = world.context()
        self.prices = Prices(self.terms.basefee, CELL_BASEFEE)
        self.bids: dict[bytes, Bid] = {}
        self.aside: set[bytes] = set()
        self.out: set[bytes] = set()
        self.decided: set[bytes] = set()
        self.too_large = self.examined = self.dead = 0
        self.stopped: Stop | None = None
        self.found = Rest(stopped=Stop.NONE_LEFT)

    def __iter__(self) -> Iterator[Decision]:
        self.refresh_weight()
        yield from self.late()
        self.ask()
        cannot_pay = [each for each in self.asked() if self.balance(each) < self.cost(each)]
        for each in cannot_pay:
            if self.world.timers[each.timer_id].deferred_for != DeferralReason.UNFUNDED:
                yield self.decide(0, each, Verdict.DEFER, DeferralReason.UNFUNDED)
        not_heard_of = {timer.timer_id for timer in self.world.waiting() if self.is_unheard_of(timer)}
        self.aside = not_heard_of | {each.timer_id for each in cannot_pay}
        ranked = sorted(self.ranked(), key=lambda each: each.order)
        slices, to_come = self.slices(), Counter(each.actor for each in ranked)
        smallest = {actor: min(t.gas_limit for t in self.world.waiting() if t.actor == actor) for actor in slices}
        ranking = enumerate((each for each in ranked if each.actor not in self.out), 1)
        first, kept = islice(ranking, self.terms.examined_max), []
        # The first walk ends as soon as no slice holds a timer to come.
        while any(to_come[each] and each not in self.out and slices[each] >= smallest[each] for each in slices):
            rank, each = next(first, (0, None))
            if each is None:
                break
            to_come[each.actor] -= 1
            timer = self.world.timers.get(each.timer_id)
            if timer is not None and (self.stop() or timer.gas_limit > slices[each.actor]):
                kept.append((rank, each))
            elif timer is not None:
                before = self.world.budget_left
                yield from self.examine(rank, each)
                slices[each.actor] -= before - self.world.budget_left
        rest: list[tuple[int, Ranked]] = []
        for rank, each in chain(kept, ranking):
            if each.timer_id in self.world.timers and each.actor not in self.out:
                self.stopped = self.stopped or self.stop()
                if self.stopped is None:
                    yield from self.examine(rank, each)
                else:
                    rest.append((rank, each))
        left = {each.timer_id for each in ranked} & self.world.timers.keys()
        self.count(len(left - self.decided), rest)

    def refresh_weight(self) -> None:
        world = self.world
        for actor in dict.fromkeys(timer.actor for timer in self.joining):
            world.refresh_weight(actor)
        behind = sorted({timer.actor for timer in world.waiting() if world.is_behind(timer.actor)})
        for actor in behind[: self.terms.actors_weighed_max]:
            world.refresh_weight(actor)

    def late(self) -> Iterator[Decision]:
        terms, is_cancelled = self.terms, self.terms.delay_action is DelayAction.CANCEL
        late = [timer for timer in self.world.waiting() if terms.height - timer.height > terms.delays_max]
        told = [timer for timer in late if is_cancelled or not terms_of(timer).is_late]
        for timer in told[: terms.joined_max]:
            if timer.timer_id in self.world.timers:
                verdict = Verdict.CANCEL if is_cancelled else Verdict.DELAY
                yield decided(timer, verdict, 0, 0, None, self.prices, timer.gas_limit)

    def ask(self) -> None:
        for timer in sorted(self.world.waiting(), key=self.question):
            bid = self.world.ask(timer)
            if bid is None:
                return
            self.bids[timer.timer_id] = bid

    def question(self, timer: Timer) -> tuple[int, ...]:
        asked_at, is_of_old = terms_of(timer).asked_at, timer.height != self.terms.height
        return asked_at > 0, asked_at, is_of_old and not asked_at, timer.height, timer.sequence

    def bid(self, timer: Timer) -> Bid:
        standing = timer.frozen_fees()
        default = self.bids.get(timer.timer_id) or Bid(2 * self.terms.basefee, 0, FeeSource.FALLBACK)
        if timer.timer_id in self.bids or standing is None:
            return default
        return Bid(*standing, FeeSource.FROZEN)

    def is_unheard_of(self, timer: Timer) -> bool:
        return timer.deferred_for == DeferralReason.UNFUNDED and timer.timer_id not in self.bids

    def asked(self) -> Iterator[Ranked]:
        for timer_id in self.bids:
            yield from self.placed(self.world.timers[timer_id])

    def ranked(self) -> Iterator[Ranked]:
        for timer in self.world.waiting():
            if timer.timer_id not in self.aside:
                yield from self.placed(timer)

    def placed(self, timer: Timer) -> Iterator[Ranked]:
        """Yield a timer as it is ranked, unless it is priced out."""
        bid, weight = self.bid(timer), self.world.weight_of(timer.actor)
        tip = min(bid.max_priority_fee, bid.max_fee - self.terms.basefee)
        order = (1, -tip, -weight, timer.height, timer.sequence)
        if self.terms.delay_action is DelayAction.FRONT and terms_of(timer).is_late:
            order = (0, 0, 0, timer.height, timer.sequence)
        if tip >= 0:
            yield Ranked(order, timer.timer_id, timer.actor, bid, tip, weight)

    def slices(self) -> dict[bytes, int]:
        weights = {timer.actor: self.world.weight_of(timer.actor) for timer in self.world.waiting()}
        return {actor: self.terms.budget * weight // sum(weights.values()) for actor, weight in weights.items()}

    def smallest(self) -> int:
        return min((timer.gas_limit for timer in self.world.waiting()), default=0)

    def stop(self) -> Stop | None:
        if self.world.budget_left < min(self.smallest(), self.terms.budget):
            return Stop.LANE_FULL
        if self.too_large == self.terms.passed_over_max:
            return Stop.PASSED_OVER_MAX
        return Stop.EXAMINED_MAX if self.examined == self.terms.examined_max else None

    def cost(self, each: Ranked) -> int:
        gas_limit = self.world.timers[each.timer_id].gas_limit
        return gas_limit * (self.terms.basefee + each.tip) + CELLS * CELL_BASEFEE

    def balance(self, each: Ranked) -> int:
        return self.context.balance_of(self.world.timers[each.timer_id].fee_payer)

    def examine(self, rank: int, each: Ranked) -> Iterator[Decision]:
        """Yield the decision about the next timer; if it is one unfunded too many, its owner is out instead."""
        verdict, reason = self.verdict(each)
        if reason == DeferralReason.UNFUNDED and self.dead == self.terms.dead_examined_max:
            self.out.add(each.actor)
            return
        self.decided.add(each.timer_id)
        self.dead += reason == DeferralReason.UNFUNDED
        self.examined += reason != DeferralReason.UNFUNDED
        self.too_large += reason == DeferralReason.LANE_FULL
        yield self.decide(rank, each, verdict, reason)

    def verdict(self, each: Ranked) -> tuple[Verdict, DeferralReason | None]:
        timer = self.world.timers[each.timer_id]
        if self.balance(each) < self.cost(each):
            return Verdict.DEFER, DeferralReason.UNFUNDED
        if timer.gas_limit > self.world.budget_left < self.terms.budget:
            return Verdict.DEFER, DeferralReason.LANE_FULL
        return Verdict.FIRE, None

    def decide(self, rank: int, each: Ranked, verdict: Verdict, reason: DeferralReason | None) -> Decision:
        timer = self.world.timers[each.timer_id]
        prices = Prices(self.terms.basefee, CELL_BASEFEE, each.tip)
        available = self.balance(each)
        facts = (rank, each.weight, each.bid.max_fee, each.bid.source, each.bid.cycles_used)
        return decided(timer, verdict, self.cost(each), available, reason, prices, timer.gas_limit, *facts)

    def count(self, outranked: int, rest: list[tuple[int, Ranked]]) -> None:
        """Count those that are left, those of owners that are out included, and name the next in rank."""
        joined = self.world.waiting()
        stopped = self.stopped or Stop.NONE_LEFT
        fate = Verdict.DEFER, DeferralReason.OUTRANKED
        self.found = Rest(
            stopped=stopped,
            joined=len(joined),
            outranked=outranked,
            priced_out=sum(
                self.bid(timer).max_fee < self.terms.basefee for timer in joined if timer.timer_id not in self.aside
            ),
            smallest_gas=0 if stopped is Stop.NONE_LEFT else self.smallest(),
            runners_up=tuple(self.decide(rank, each, *fate) for rank, each in rest[:RUNNERS_UP_MAX]),
        )
