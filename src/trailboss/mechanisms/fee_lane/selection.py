"""One block's selection in the lane: who ends, who is set aside, who is asked, and then the walk by rank.

Spec: CIP-1v3 §3, CIP-1v3 §9, CIP-1v3 §10
Decision: D-54
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

import msgspec

from trailboss.fees.settlement import Prices, offered_cell_tip, offered_tip
from trailboss.mechanisms.base import Decision, DeliveryPolicy, DueTimers, Rest, Verdict
from trailboss.mechanisms.context import Bid, LaneMarket, SelectionContext
from trailboss.mechanisms.fee_lane.index import Entry, LaneIndex
from trailboss.mechanisms.fee_lane.ranking import Lineup, Row, ranked_all, ranked_first
from trailboss.mechanisms.fee_lane.shelf import Group
from trailboss.mechanisms.fee_lane.weight import weight_of
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Amount, Cycles, Price

SORTED_MAX: Final = 8
"""Up to so many timers for each that may be asked for, sorting all takes less time than a search for the first."""

Fate = tuple[Verdict, DeferralReason | None]
FIRES: Final[Fate] = (Verdict.FIRE, None)
OUTRANKED: Final[Fate] = (Verdict.DEFER, DeferralReason.OUTRANKED)
FROZEN: Final = FeeSource.FROZEN
"""Bound once, as the fates are: looking up a member of an enum takes a third of the time of a decision."""
NO_TIP: Final = Price(0)
NO_CYCLES: Final = Cycles(0)


class Offer(msgspec.Struct, frozen=True, gc=False):
    """What a timer offers in this block, and what follows from it.

    Attributes:
        prices: What a fire is charged at.
        cycle_price: What it is charged for a cycle in all. Decision: D-14.
        cells_cost: What the cells of a fire can cost at most. Decision: D-86.
        weight: W(actor).
        max_fee: Cap of lane basefee and tip together.
        source: Where the fees come from.
        agent_cycles: What the question to the agent has used.
    """

    prices: Prices
    cycle_price: int
    cells_cost: int
    weight: int
    max_fee: Price
    source: FeeSource
    agent_cycles: Cycles


class LaneSelection:
    """One block's decisions, each made when the one before has been carried out."""

    __slots__ = (
        "_answers", "_cells_cost", "_context", "_dead_left", "_deferred", "_due", "_gc_left", "_index", "_market",
        "_offers", "_out", "_policy", "_rest", "_weights",
    )  # fmt: skip

    def __init__(
        self, index: LaneIndex, due: DueTimers, context: SelectionContext[LaneMarket], policy: DeliveryPolicy
    ) -> None:
        self._index = index
        self._due = due
        self._context = context
        self._market = context.market
        self._policy = policy
        self._gc_left: int = context.gc_cycles_max
        self._cells_cost = context.max_cells_per_fire * context.cell_basefee
        self._dead_left = policy.dead_examined_max
        self._out: set[bytes] = set()
        self._answers: dict[bytes, Bid] = {}
        self._offers: dict[Group, Offer] = {}
        self._weights: dict[int, int] = {}
        self._deferred: list[bytes] = []
        self._rest: Rest | None = None

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: of the expired, of the barred, of those above the cap, and then by rank.

        Complexity: O(log n) a decision of n joined timers, beside what `Ranking` says.
        """
        return chain(self._expire(), self._clear(), self._set_aside(), self._walk())

    def rest(self) -> Rest:
        """Return what was left, after the walk.

        Raises:
            InvariantError: If the walk is not over.
        """
        if self._rest is None:
            raise InvariantError("what a walk leaves is known when it is over")
        return self._rest

    def _expire(self) -> Iterator[Decision]:
        """Remove expired timers for as long as the clean-up budget lasts. Spec: CIP-1v3 §9. Decision: D-78."""
        for timer in self._removable(self._due.expired):
            yield self._decide_unranked(timer, timer.gas_limit, Verdict.EXPIRE)

    def _clear(self) -> Iterator[Decision]:
        """Remove timers that have not joined because their payers cannot pay. Spec: CIP-1v3 §9. Decision: D-79."""
        context = self._context
        for timer in self._removable(self._due.unfunded):
            gas_limit = min(timer.gas_limit, self._market.max_cycles_per_fire)
            cost = gas_limit * (context.cycle_basefee + self._market.basefee)
            cost += context.max_cells_per_fire * context.cell_basefee
            yield self._decide_unranked(timer, timer.gas_limit, Verdict.UNFUND, cost=cost)

    def _removable(self, timers: Iterable[Timer]) -> list[Timer]:
        """Return as many of some timers as the clean-up budget removes, and take the cost. Decision: D-23."""
        price = self._context.gc_cycles_per_timer
        found = list(islice(timers, self._gc_left // price))
        self._gc_left -= len(found) * price
        return found

    def _set_aside(self) -> Iterator[Decision]:
        """Tell the owners of timers above the cap, once. Spec: CIP-1v3 §10. Decision: D-13."""
        told = 0
        for _, _, timer_id in self._index.untold:
            if told == self._policy.joined_max:
                return
            entry = self._index.entries.get(timer_id)
            if entry is not None:
                told += 1
                timer = self._market.timer_of(entry.height, timer_id)
                yield self._decide_unranked(timer, entry.gas_limit, Verdict.DEFER, DeferralReason.OVER_CAP)

    def _ask(self) -> None:
        """Ask agents until the block's budget is spent: first of the block's own height, then the oldest.

        Spec: CIP-1v3 §7.2
        Decision: D-17
        """
        asking, own = self._index.asking, (self._context.height,)
        for height, _, timer_id in chain(asking.irange(own), asking.irange(None, own)):
            if timer_id not in self._index.entries:
                continue
            bid = self._market.ask(self._market.timer_of(height, timer_id))
            if bid is None:
                return
            self._answers[timer_id] = bid
            # One that could not be asked has taken the default agent's fees for good.
            self._index.replace(self._market.timer_of(height, timer_id))

    def _walk(self) -> Iterator[Decision]:
        """Ask agents; take timers by rank while the smallest that waits has room; then see who comes next.

        A timer that has been cancelled meanwhile leaves its rank unused.

        Spec: CIP-1v3 §3, CIP-1v3 §9
        Decision: D-12, D-39, D-78, D-80
        """
        context, index, answers, offers = self._context, self._index, self._answers, self._offers
        lane_cycles_left, balance_of, timer_of = context.lane_cycles_left, context.balance_of, self._market.timer_of
        examined_max, passed_over_max = self._policy.examined_max, self._policy.passed_over_max
        self._ask()
        index.forget_left()
        gas_limits = index.gas_limits
        stopped: Stop | None = None
        examined = passed_over = 0
        runners_up: list[Decision] = []
        for rank, entry in self._present():
            lane_left, gas_limit = lane_cycles_left(), entry.gas_limit
            if lane_left < gas_limits.smallest or context.lane_cells_left() < context.max_cells_per_fire:
                stopped = stopped or (Stop.LANE_FULL if lane_left < gas_limits.smallest else Stop.CELLS_FULL)
            elif passed_over == passed_over_max:
                stopped = stopped or Stop.PASSED_OVER_MAX
            elif examined == examined_max:
                stopped = stopped or Stop.EXAMINED_MAX
            if stopped is None and entry.group not in offers and self._is_hopeless(entry):
                continue
            offer = offers.get(entry.group)
            if offer is None or answers:
                offer = self._offer(entry.group, answers.get(entry.timer_id))
            timer = timer_of(entry.height, entry.timer_id)
            cost = gas_limit * offer.cycle_price + offer.cells_cost
            available = balance_of(timer.fee_payer)
            fate: Fate | None = FIRES
            if stopped is not None:
                fate = OUTRANKED
            elif available < cost or gas_limit > lane_left:
                fate = self._refuse(entry, has_funds=available >= cost)
            if fate is None:
                continue
            verdict, reason = fate
            decision = Decision(
                timer, verdict, Amount(cost), available, reason, offer.prices, gas_limit, rank,
                offer.weight, offer.max_fee, offer.source, offer.agent_cycles,
            )  # fmt: skip
            if stopped is None:
                examined += available >= cost
                passed_over += reason is DeferralReason.LANE_FULL
                yield decision
                continue
            runners_up.append(decision)
            if len(runners_up) == RUNNERS_UP_MAX:
                break
        self._rest = self._count(stopped or Stop.NONE_LEFT, tuple(runners_up))

    def _present(self) -> Iterator[tuple[int, Entry]]:
        """Yield rank and entry of the ranked timers that are still there, but for those of payers left out by then."""
        index, entries, out = self._index, self._index.entries, self._out
        rank = 0
        for timer_id in self._order():
            entry = entries.get(timer_id)
            if entry is None:
                left = index.left.get(timer_id)
                rank += left is not None and left.group.payer not in out
            elif entry.group.payer not in out:
                rank += 1
                yield rank, entry

    def _order(self) -> Iterator[bytes]:
        """Return the ids of all timers that can pay the lane basefee, in rank. Spec: CIP-1v3 §3."""
        index, basefee = self._index, self._market.basefee
        default_tip = offered_tip(2 * basefee, self._market.previous_tip, basefee)
        rows = [
            Row(shelf, self._weight(fires), None if is_frozen else default_tip)
            for (fires, is_frozen), shelf in index.shelves.items()
        ]
        answered = {timer_id: self._priority(timer_id) for timer_id in self._answers if timer_id in index.entries}
        lineup = Lineup(rows, basefee, self._context.height, answered, self._out)
        # How many may be asked for; more, if they use less than their gas limits.
        room = self._context.lane_cycles_left() // max(1, index.gas_limits.smallest)
        asked_for = min(room, self._policy.examined_max) + RUNNERS_UP_MAX
        return ranked_all(lineup) if len(index.entries) <= SORTED_MAX * asked_for else ranked_first(lineup)

    def _priority(self, timer_id: bytes) -> int:
        """Return the effective priority of a timer whose agent was asked; -1 if it is priced out. Decision: D-86."""
        bid = self._answers[timer_id]
        tip = offered_tip(bid.max_fee, bid.max_priority_fee, self._market.basefee)
        if tip < 0 or offered_cell_tip(bid.cell_fees, self._context.cell_basefee) < 0:
            return -1
        return tip * self._weight(self._index.fires_of(self._index.entries[timer_id].group.actor))

    def _weight(self, fires: int) -> int:
        weight = self._weights.get(fires)
        if weight is None:
            market = self._market
            weight = weight_of(fires, market.median_fires, market.weight_min, market.weight_max)
            self._weights[fires] = weight
        return weight

    def _is_hopeless(self, entry: Entry) -> bool:
        """Leave out the payer of a ranked timer that could not be paid without any tip, once the budget is spent.

        What `_refuse` would come to, without a look at the record and the offer.
        """
        context = self._context
        if self._dead_left or self._gc_left >= context.gc_cycles_per_timer:
            return False
        least = entry.gas_limit * (context.cycle_basefee + self._market.basefee) + self._cells_cost
        if context.balance_of(entry.group.payer) >= least:
            return False
        self._out.add(entry.group.payer)
        return True

    def _refuse(self, entry: Entry, *, has_funds: bool) -> Fate | None:
        """Decide about a ranked timer that cannot fire: lack of funds counts before lack of room.

        Once the clean-up budget and a few more are spent, all timers of a payer that lacks funds are left: None.

        Spec: CIP-1v3 §3, CIP-1v3 §9
        Decision: D-78
        """
        if not has_funds and self._gc_left >= self._context.gc_cycles_per_timer:
            self._gc_left -= self._context.gc_cycles_per_timer
            return Verdict.UNFUND, None
        if not has_funds and not self._dead_left:
            self._out.add(entry.group.payer)
            return None
        self._dead_left -= not has_funds
        self._deferred.append(entry.timer_id)
        return Verdict.DEFER, DeferralReason.LANE_FULL if has_funds else DeferralReason.GC_EXHAUSTED

    def _offer(self, group: Group, answer: Bid | None) -> Offer:
        """Work out what the timers of a group offer, or one of them whose agent has answered."""
        context, market = self._context, self._market
        basefee, used, cell_tip = market.basefee, NO_CYCLES, NO_TIP
        if answer is not None:
            cell_tip = offered_cell_tip(answer.cell_fees, context.cell_basefee)
            max_fee, priority, source, used = answer.max_fee, answer.max_priority_fee, answer.source, answer.cycles_used
        elif group.is_frozen:
            max_fee, priority, source = group.max_fee, group.max_priority, FROZEN
        else:
            max_fee, priority = Price(2 * basefee), market.previous_tip
            source = FeeSource.FALLBACK if group.is_asking else FeeSource.DEFAULT
        tip = offered_tip(max_fee, priority, basefee)
        prices = Prices(context.cycle_basefee, context.cell_basefee, tip, cell_tip, basefee)
        cycle_price = context.cycle_basefee + basefee + tip
        cells_cost = context.max_cells_per_fire * (context.cell_basefee + cell_tip)
        weight = self._weight(self._index.fires_of(group.actor))
        offer = Offer(prices, cycle_price, cells_cost, weight, max_fee, source, used)
        if answer is None:
            self._offers[group] = offer
        return offer

    def _decide_unranked(
        self, timer: Timer, gas_limit: Cycles, verdict: Verdict, reason: DeferralReason | None = None, cost: int = 0
    ) -> Decision:
        context = self._context
        prices = Prices(context.cycle_basefee, context.cell_basefee, lane_basefee=self._market.basefee)
        available = context.balance_of(timer.fee_payer) if cost else Amount(0)
        return Decision(timer, verdict, Amount(cost), available, reason, prices, gas_limit)

    def _count(self, stopped: Stop, runners_up: tuple[Decision, ...]) -> Rest:
        """Count the others, and why they were not examined."""
        index, basefee = self._index, self._market.basefee
        index.forget_left()
        joined = len(index.entries)
        priced_out = index.priced_out(basefee) + sum(
            timer_id in index.entries and self._priority(timer_id) < 0 for timer_id in self._answers
        )
        examined = sum(timer_id in index.entries for timer_id in self._deferred)
        return Rest(
            stopped=stopped,
            joined=joined,
            outranked=joined - index.over_cap - priced_out - examined,
            priced_out=priced_out,
            over_cap=index.over_cap,
            smallest_gas=0 if stopped is Stop.NONE_LEFT else index.gas_limits.smallest,
            runners_up=runners_up,
        )
