"""One block's selection in the auction: late timers, agents, bids that cannot run, and then two walks by rank.

Spec: CIP-1v1 §3, CIP-1v1 §5, overview. Decision: D-19, D-57, D-60, D-68.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice

import msgspec

from trailboss.fees import Prices, max_cost, offered_cell_tip, offered_tip
from trailboss.mechanisms.auction.index import AuctionEntry, AuctionGroup, AuctionIndex, Due, WeighedActor
from trailboss.mechanisms.base import Decision, DeliveryPolicy, Rest, Verdict
from trailboss.mechanisms.context import AuctionMarket, Bid, SelectionContext
from trailboss.mechanisms.ranking import Lineup, PricedTree, ranked
from trailboss.mechanisms.selection import FIRE, FROZEN, NO_CYCLES, IndexSelection, PricedBid
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import RUNNERS_UP_MAX, Stop
from trailboss.model.timers import DeferralReason, cell_fees
from trailboss.primitives.units import Amount, Cycles

Ranked = tuple[int, Due]  # rank and place in due order


class Slice(msgspec.Struct, gc=False):
    """What is left of what is kept of a block's budget for one actor. Spec: CIP-1v1 §3. Decision: D-68."""

    cycles: int
    smallest_gas: Cycles  # smallest gas limit of its joined timers, before the walk
    to_come: int  # ranked timers of the actor that the walk has not come to


class AuctionSelection(IndexSelection[AuctionIndex, AuctionMarket]):
    """One block's decisions in the auction."""

    def __init__(self, index: AuctionIndex, context: SelectionContext[AuctionMarket], policy: DeliveryPolicy) -> None:
        super().__init__(index, context, policy)
        self._answers: dict[bytes, Bid] = {}
        self._bids: dict[AuctionGroup, PricedBid] = {}
        self._passed_over: list[bytes] = []
        self._marked: list[bytes] = []
        self._examined = 0

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: about late timers, about bids that cannot run, and then by rank.

        Complexity: O(log n) a decision of n joined timers, beside what `ranking` says.
        """
        return chain.from_iterable(self._parts())

    def _emit_late(self) -> Iterator[Decision]:
        """Mark timers as late, once, or cancel them; a bounded number, the oldest first. Decision: D-19."""
        index, context, market = self._index, self._context, self._market
        is_cancelled = market.delay_action is DelayAction.CANCEL
        on_time = (context.height - market.delays_max,)
        lists = (index.prompt, index.late) if is_cancelled else (index.prompt,)
        overdue = merge(*(each.irange(None, on_time) for each in lists))
        present = (due for due in overdue if due[2] in index.timers)
        for height, _, timer_id in islice(present, self._policy.joined_max):
            yield Decision(
                timer=market.timer_of(height, timer_id),
                verdict=Verdict.CANCEL if is_cancelled else Verdict.DELAY,
                prices=Prices(context.cycle_basefee, context.cell_basefee),
                gas_limit=index.timers[timer_id].gas_limit,
            )

    def _ask(self) -> None:
        """Ask agents until the block's budget is spent.

        First those never asked, of the block's own height before older ones; then the longest ago. Spec: CIP-1v1 §3.
        Decision: D-57.
        """
        index, market, own = self._index, self._market, (self._context.height,)
        unasked = chain(index.unasked.irange(own), index.unasked.irange(None, own))
        for height, _, timer_id in chain(unasked, (asked[1:] for asked in index.asked)):
            bid = market.ask(market.timer_of(height, timer_id))
            if bid is None:
                return
            self._answers[timer_id] = bid
            index.replace(market.timer_of(height, timer_id))

    def _set_aside(self) -> Iterator[Decision]:
        """Set aside timers whose new bids offer less for a cell than it costs, or more than their owners can pay.

        Spec: CIP-1v1 §4.1, CIP-1v1 §4.2. Decision: D-44, D-60, D-86.
        """
        index, context = self._index, self._context
        for timer_id, bid in self._answers.items():
            if bid.max_fee < context.cycle_basefee:
                continue
            entry = index.timers[timer_id]
            tip = offered_tip(bid.max_fee, bid.max_priority_fee, context.cycle_basefee)
            cell_tip = offered_cell_tip(bid.cell_fees, context.cell_basefee)
            prices = Prices(context.cycle_basefee, context.cell_basefee, tip, cell_tip)
            cost = max_cost(entry.gas_limit, context.max_cells_per_fire, prices)
            timer = self._market.timer_of(entry.due[0], timer_id)
            available = context.balance_of(timer.fee_payer)
            reason = DeferralReason.PRICED_OUT if cell_tip < 0 else DeferralReason.UNFUNDED
            if available >= cost and cell_tip >= 0:
                continue
            index.refused.add(timer_id)
            if timer.deferred_for != reason:
                yield Decision(
                    timer=timer,
                    verdict=Verdict.DEFER,
                    max_cost=cost,
                    available=available,
                    reason=reason,
                    prices=prices,
                    gas_limit=entry.gas_limit,
                    weight=entry.group.owner.weight,
                    max_fee=bid.max_fee,
                    fee_source=bid.source,
                    agent_cycles=bid.cycles_used,
                )

    def _parts(self) -> Iterator[Iterator[Decision]]:
        """Yield the decisions part by part. Spec: CIP-1v1 §3, CIP-1v1 §5. Decision: D-60, D-68."""
        yield self._emit_late()
        context, index, market = self._context, self._index, self._market
        index.settle(context.height, market.weight_of)
        self._ask()
        yield self._set_aside()
        index.settle(context.height, market.weight_of)
        ranking = enumerate(self._without_out(), 1)
        kept: list[Ranked] = []
        yield self._walk_slices(islice(ranking, self._policy.examined_max), kept)
        yield self._walk_pool(chain(kept, ranking))

    def _walk_slices(self, ranking: Iterable[Ranked], kept: list[Ranked]) -> Iterator[Decision]:
        """Decide about timers that fit their actors' slices, and keep the others for the second walk.

        It ends as soon as no slice holds a timer to come, or the block is over; the second walk comes to the same end.
        """
        index, entries, budget_left = self._index, self._index.timers, self._context.lane_cycles_left
        decide, passed_over, passed_over_max = self._decide, self._passed_over, self._policy.passed_over_max
        slices = _cut_slices(index, self._context.lane_cycles_max, self._context.cycle_basefee)
        if not slices:
            return
        for rank, due in ranking:
            entry = entries.get(due[2])
            if entry is None:
                _skip_timer(slices, index.left[due[2]].group.owner)
            else:
                left, owner = budget_left(), entry.group.owner
                own = slices.get(owner)
                if own is None or entry.gas_limit > own.cycles:
                    kept.append((rank, due))
                    _skip_timer(slices, owner)
                elif self._why_full(left) or len(passed_over) == passed_over_max:
                    kept.append((rank, due))
                    return
                else:
                    yield from decide(rank, due, entry, left)
                    own.cycles -= left - budget_left()
                    own.to_come -= 1
                    if not own.to_come or own.cycles < own.smallest_gas or owner.address in self._out:
                        del slices[owner]
            if not slices:
                return

    def _walk_pool(self, ranking: Iterable[Ranked]) -> Iterator[Decision]:
        """Decide about timers by what is left of the budget, until the block is over; then list the runners-up.

        A timer that has been cancelled meanwhile leaves its rank unused.
        """
        entries, budget_left = self._index.timers, self._context.lane_cycles_left
        stopped: Stop | None = None
        runners_up: list[Decision] = []
        for rank, due in ranking:
            entry = entries.get(due[2])
            if entry is None or entry.group.owner.address in self._out:
                continue
            left = budget_left()
            stopped = stopped or self._stop(left)
            if stopped is None:
                yield from self._decide(rank, due, entry, left)
                continue
            runners_up += self._decide(rank, due, entry, None)
            if len(runners_up) == RUNNERS_UP_MAX:
                break
        self._rest = self._count(stopped or Stop.NONE_LEFT, tuple(runners_up))

    def _stop(self, left: int) -> Stop | None:
        """Return why a timer is not decided any more, if so. Decision: D-39, D-68, D-78."""
        if len(self._passed_over) == self._policy.passed_over_max:
            return self._why_full(left) or Stop.PASSED_OVER_MAX
        return self._why_full(left) or (Stop.EXAMINED_MAX if self._examined == self._policy.examined_max else None)

    def _why_full(self, left: int) -> Stop | None:
        """Return why the block holds no other fire, if so; a whole budget is there for any. Decision: D-68, D-80."""
        if left < self._index.gas_limits.smallest and left < self._context.lane_cycles_max:
            return Stop.LANE_FULL
        return Stop.CELLS_FULL if self._context.lane_cells_left() < self._context.max_cells_per_fire else None

    def _without_out(self) -> Iterator[Due]:
        """Yield the ranked timers but for those of owners that are left out by then, however they were found."""
        entries, left = self._index.timers, self._index.left
        for due in self._order():
            entry = entries.get(due[2]) or left[due[2]]
            if entry.group.owner.address not in self._out:
                yield due

    def _order(self) -> Iterator[Due]:
        """Return all timers that are ranked, in rank. Spec: overview, CIP-1v1 §3. Decision: D-19."""
        index, context, market = self._index, self._context, self._market
        basefee, default = context.cycle_basefee, market.default_bid
        default_tip = offered_tip(default.max_fee, default.max_priority_fee, basefee)
        has_late_first = market.delay_action is DelayAction.FRONT
        trees = [
            PricedTree(tree, None if is_stated else default_tip)
            for (is_late, is_stated), tree in index.trees.items()
            if not (is_late and has_late_first)
        ]
        lineup = Lineup(trees, basefee, self._out)
        in_rank = ranked(lineup, len(index.timers), self._asked_for(index.gas_limits.smallest))
        late = index.late_by_due.items(basefee) if has_late_first else ()
        return chain((each.place for each in late), in_rank)

    def _decide(self, rank: int, due: Due, entry: AuctionEntry, left: int | None) -> Iterator[Decision]:
        """Decide about a ranked timer; not at all if its owner cannot pay, and enough of these have been set aside.

        ``left`` is the cycles of the budget that are left, None once the block is over. As long as that is all of it,
        any timer fits. Decision: D-68.
        """
        height, _, timer_id = due
        bid = self._bids.get(entry.group) or self._bid(timer_id, entry.group)
        timer, gas_limit = self._market.timer_of(height, timer_id), entry.gas_limit
        cost = gas_limit * bid.cycle_price + bid.cells_cost
        available = self._context.balance_of(timer.fee_payer)
        is_paid = available >= cost and bid.prices.cell_tip >= 0
        if left is not None and available < cost and bid.prices.cell_tip >= 0:
            if not self._dead_left:
                self._out.add(entry.group.owner.address)
                return
            self._dead_left -= 1
        elif left is not None:
            self._examined += 1
        if left is None:
            verdict, reason = Verdict.DEFER, DeferralReason.OUTRANKED
        elif is_paid and (gas_limit <= left or left == self._context.lane_cycles_max):
            verdict, reason = FIRE, None
        else:
            verdict, reason = Verdict.DEFER, self._refusal(timer_id, bid, is_paid=is_paid)
        yield Decision(
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

    def _refusal(self, timer_id: bytes, bid: PricedBid, *, is_paid: bool) -> DeferralReason:
        if is_paid:
            self._passed_over.append(timer_id)
            return DeferralReason.LANE_FULL
        self._marked.append(timer_id)
        return DeferralReason.PRICED_OUT if bid.prices.cell_tip < 0 else DeferralReason.UNFUNDED

    def _bid(self, timer_id: bytes, group: AuctionGroup) -> PricedBid:
        """Work out what the timers of a group bid, or one of them whose agent was asked."""
        answer, default = self._answers.get(timer_id), self._market.default_bid
        (max_fee, priority), source = group.caps, FROZEN
        if not group.is_stated:
            max_fee, priority, source = default.max_fee, default.max_priority_fee, default.source
        bid = self._price(
            max_fee,
            source if answer is None else answer.source,
            offered_tip(max_fee, priority, self._context.cycle_basefee),
            weight=group.owner.weight,
            cell_tip=offered_cell_tip(cell_fees(group.fees), self._context.cell_basefee),
            agent_cycles=NO_CYCLES if answer is None else answer.cycles_used,
        )
        if not self._answers:
            self._bids[group] = bid
        return bid

    def _count(self, stopped: Stop, runners_up: tuple[Decision, ...]) -> Rest:
        """Count the others, and why they were not examined."""
        index = self._index
        index.forget_left()
        priced_out: int = index.max_fees.bisect_left(self._context.cycle_basefee)
        examined = sum(timer_id in index.timers for timer_id in chain(self._passed_over, self._marked))
        return Rest(
            stopped=stopped,
            joined=len(index.timers),
            outranked=len(index.max_fees) - priced_out - examined,
            priced_out=priced_out,
            smallest_gas=0 if stopped is Stop.NONE_LEFT else index.gas_limits.smallest,
            runners_up=runners_up,
        )


def _cut_slices(index: AuctionIndex, budget: int, basefee: int) -> dict[WeighedActor, Slice]:
    """Cut a budget among the actors that have joined timers, by their weights.

    Only slices from which a timer could run are returned: without any, the first walk keeps all timers for the second.
    Complexity: O(log n) for each actor whose slice holds the smallest gas limit that waits.
    """
    slices: dict[WeighedActor, Slice] = {}
    for weight, address in reversed(index.by_weight):
        cycles = budget * weight // max(1, index.total_weight)
        if cycles < index.gas_limits.smallest:
            break
        owner: WeighedActor = index.actors[address]
        to_come = owner.count_ranked(basefee)
        if to_come and cycles >= owner.gas_limits[0]:
            slices[owner] = Slice(cycles, owner.gas_limits[0], to_come)
    return slices


def _skip_timer(slices: dict[WeighedActor, Slice], owner: WeighedActor) -> None:
    """Skip a timer, which takes nothing from its actor's slice; drop the slice after the actor's last timer."""
    own = slices.get(owner)
    if own is not None:
        own.to_come -= 1
        if not own.to_come:
            del slices[owner]
