"""One block's selection in the lane: which timers end, are set aside, are priced by agents, and then the walk by rank.

Spec: CIP-1v3 §3, CIP-1v3 §9, CIP-1v3 §10. Decision: D-54.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from trailboss.fees import Prices, offered_cell_tip, offered_tip
from trailboss.mechanisms.base import Decision, DeliveryPolicy, DueTimers, Rest, Verdict
from trailboss.mechanisms.context import Bid, LaneMarket, SelectionContext
from trailboss.mechanisms.fee_lane.index import LaneEntry, LaneGroup, LaneIndex
from trailboss.mechanisms.fee_lane.weight import gained_weight, weight_of
from trailboss.mechanisms.ranking import Lineup, PricedTree, ranked
from trailboss.mechanisms.selection import FIRE, FROZEN, IndexSelection, PricedBid
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.units import Amount, Cycles, Price

Fate = tuple[Verdict, DeferralReason | None]
FIRES: Final[Fate] = (FIRE, None)
OUTRANKED: Final[Fate] = (Verdict.DEFER, DeferralReason.OUTRANKED)


class LaneSelection(IndexSelection[LaneIndex, LaneMarket]):
    """One block's decisions in the lane."""

    def __init__(
        self, index: LaneIndex, due: DueTimers, context: SelectionContext[LaneMarket], policy: DeliveryPolicy
    ) -> None:
        super().__init__(index, context, policy)
        self._due = due
        self._cells_cost = context.max_cells_per_fire * context.cell_basefee
        self._answers: dict[bytes, Bid] = {}
        self._bids: dict[LaneGroup, PricedBid] = {}
        self._weights: dict[tuple[int, int], int] = {}
        self._deferred: list[bytes] = []

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: of the expired, of the barred, of those above the cap, and then by rank.

        Complexity: O(log n) a decision of n joined timers, beside what `ranking` says.
        """
        return chain(self._expire(), self._remove_barred(), self._set_aside(), self._walk())

    def _expire(self) -> Iterator[Decision]:
        """Remove expired timers for as long as the clean-up budget lasts. Spec: CIP-1v3 §9. Decision: D-78."""
        for timer in self._removable(self._due.expired):
            yield self._decide_unranked(timer, timer.gas_limit, Verdict.EXPIRE)

    def _remove_barred(self) -> Iterator[Decision]:
        """Remove timers that have not joined because their payers cannot pay. Spec: CIP-1v3 §9. Decision: D-79."""
        price = self._context.cycle_basefee + self._market.basefee
        for timer in self._removable(self._due.unfunded):
            cost = min(timer.gas_limit, self._market.max_cycles_per_fire) * price + self._cells_cost
            yield self._decide_unranked(timer, timer.gas_limit, Verdict.UNFUND, cost=cost)

    def _set_aside(self) -> Iterator[Decision]:
        """Defer timers above the cap whose owners do not know it yet. Spec: CIP-1v3 §10. Decision: D-13."""
        index = self._index
        present = (index.timers[timer_id] for _, _, timer_id in index.unmarked if timer_id in index.timers)
        for entry in islice(present, self._policy.joined_max):
            timer = self._market.timer_of(entry.height, entry.timer_id)
            yield self._decide_unranked(timer, entry.gas_limit, Verdict.DEFER, DeferralReason.OVER_CAP)

    def _ask(self) -> None:
        """Ask agents, of the block's own height first, then of the oldest. Spec: CIP-1v3 §7.2. Decision: D-17."""
        asking, own = self._index.asking, (self._context.height,)
        for height, _, timer_id in chain(asking.irange(own), asking.irange(None, own)):
            if timer_id not in self._index.timers:
                continue
            bid = self._market.ask(self._market.timer_of(height, timer_id))
            if bid is None:
                return
            self._answers[timer_id] = bid
            # A timer whose agent fails takes the default agent's fees for good.
            self._index.replace(self._market.timer_of(height, timer_id))

    def _walk(self) -> Iterator[Decision]:
        """Ask agents; take timers by rank while the smallest that waits has room; then list the runners-up.

        A timer that has been cancelled meanwhile leaves its rank unused. Spec: CIP-1v3 §3, CIP-1v3 §9.
        Decision: D-12, D-39, D-78, D-80.
        """
        context, index, answers, bids = self._context, self._index, self._answers, self._bids
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
            if stopped is None and entry.group not in bids and self._is_hopeless(entry):
                continue
            timer_id = entry.timer_id
            bid = bids.get(entry.group)
            if bid is None or answers:
                bid = self._bid(entry.group, answers.get(timer_id))
            timer = timer_of(entry.height, timer_id)
            cost = gas_limit * bid.cycle_price + bid.cells_cost
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
                timer=timer,
                verdict=verdict,
                max_cost=Amount(cost),
                available=available,
                reason=reason,
                prices=bid.prices,
                gas_limit=gas_limit,
                rank=rank,
                weight=bid.weight,
                max_fee=bid.max_fee,
                fee_source=bid.source,
                agent_cycles=bid.agent_cycles,
            )
            if stopped is None:
                examined += available >= cost
                passed_over += reason is DeferralReason.LANE_FULL
                yield decision
                continue
            runners_up.append(decision)
            if len(runners_up) == RUNNERS_UP_MAX:
                break
        self._rest = self._count(stopped or Stop.NONE_LEFT, tuple(runners_up))

    def _present(self) -> Iterator[tuple[int, LaneEntry]]:
        """Yield rank and entry of the ranked timers that are still there, but for those of payers left out by then."""
        index, entries, out = self._index, self._index.timers, self._out
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
        trees = [
            PricedTree(tree, None if is_frozen else default_tip, self._weight(fires, aged_from))
            for (fires, is_frozen, aged_from), tree in index.trees.items()
        ]
        priorities = {timer_id: self._priority(timer_id) for timer_id in self._answers if timer_id in index.timers}
        apart = {
            timer_id: None if priority < 0 else (-priority, 0, timer_id) for timer_id, priority in priorities.items()
        }
        lineup = Lineup(trees, basefee, self._out, self._context.height, apart)
        return ranked(lineup, len(index.timers), self._asked_for(index.gas_limits.smallest))

    def _priority(self, timer_id: bytes) -> int:
        """Return the effective priority of a timer whose agent was asked; -1 if it is priced out. Decision: D-86."""
        bid = self._answers[timer_id]
        tip = offered_tip(bid.max_fee, bid.max_priority_fee, self._market.basefee)
        if tip < 0 or offered_cell_tip(bid.cell_fees, self._context.cell_basefee) < 0:
            return -1
        return tip * self._group_weight(self._index.timers[timer_id].group)

    def _group_weight(self, group: LaneGroup) -> int:
        return self._weight(self._index.fires_of(group.actor), group.aged_from)

    def _weight(self, fires: int, aged_from: int) -> int:
        """Return W(actor), and what waiting has added to it. Spec: CIP-1v3 §8. Decision: D-106."""
        weight = self._weights.get((fires, aged_from))
        if weight is None:
            market = self._market
            weight = weight_of(fires, market.median_fires, market.weight_min, market.weight_max)
            weight += gained_weight(aged_from, self._context.height, market.weight_age_blocks)
            self._weights[fires, aged_from] = weight
        return weight

    def _is_hopeless(self, entry: LaneEntry) -> bool:
        """Leave out the payer of a ranked timer that could not be paid without any tip, once the budget is spent.

        `_refuse` would do the same after a look at the record and the bid.
        """
        context = self._context
        if self._dead_left or self._gc_left >= context.gc_cycles_per_timer:
            return False
        least = entry.gas_limit * (context.cycle_basefee + self._market.basefee) + self._cells_cost
        if context.balance_of(entry.group.payer) >= least:
            return False
        self._out.add(entry.group.payer)
        return True

    def _refuse(self, entry: LaneEntry, *, has_funds: bool) -> Fate | None:
        """Decide about a ranked timer that cannot fire: lack of funds counts before lack of room.

        Once the clean-up budget and a few more are spent, all timers of a payer that lacks funds are left: None.
        Spec: CIP-1v3 §3, CIP-1v3 §9. Decision: D-78.
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

    def _bid(self, group: LaneGroup, answer: Bid | None) -> PricedBid:
        """Work out what the timers of a group bid, or one of them whose agent has answered."""
        basefee, weight = self._market.basefee, self._group_weight(group)
        if answer is not None:
            return self._price(
                answer.max_fee,
                answer.source,
                offered_tip(answer.max_fee, answer.max_priority_fee, basefee),
                weight=weight,
                cell_tip=offered_cell_tip(answer.cell_fees, self._context.cell_basefee),
                agent_cycles=answer.cycles_used,
                lane_basefee=basefee,
            )
        (max_fee, priority), source = group.caps, FROZEN
        if not group.is_stated:
            max_fee, priority = Price(2 * basefee), self._market.previous_tip
            source = FeeSource.FALLBACK if group.is_asking else FeeSource.DEFAULT
        tip = offered_tip(max_fee, priority, basefee)
        bid = self._bids[group] = self._price(max_fee, source, tip, weight=weight, lane_basefee=basefee)
        return bid

    def _decide_unranked(
        self, timer: Timer, gas_limit: Cycles, verdict: Verdict, reason: DeferralReason | None = None, cost: int = 0
    ) -> Decision:
        context = self._context
        return Decision(
            timer=timer,
            verdict=verdict,
            max_cost=Amount(cost),
            available=context.balance_of(timer.fee_payer) if cost else Amount(0),
            reason=reason,
            prices=Prices(context.cycle_basefee, context.cell_basefee, lane_basefee=self._market.basefee),
            gas_limit=gas_limit,
        )

    def _count(self, stopped: Stop, runners_up: tuple[Decision, ...]) -> Rest:
        """Count the others, and why they were not examined."""
        index, basefee = self._index, self._market.basefee
        index.forget_left()
        joined = len(index.timers)
        priced_out = index.priced_out(basefee) + sum(
            timer_id in index.timers and self._priority(timer_id) < 0 for timer_id in self._answers
        )
        examined = sum(timer_id in index.timers for timer_id in self._deferred)
        return Rest(
            stopped=stopped,
            joined=joined,
            outranked=joined - index.over_cap - priced_out - examined,
            priced_out=priced_out,
            over_cap=index.over_cap,
            smallest_gas=0 if stopped is Stop.NONE_LEFT else index.gas_limits.smallest,
            runners_up=runners_up,
        )
