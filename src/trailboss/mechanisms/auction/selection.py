"""One block's selection in the auction: who is late, who is asked, who cannot pay, and then two walks by rank.

Spec: CIP-1v1 §3, CIP-1v1 §5, overview
Decision: D-19, D-57, D-60, D-68
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Final

import msgspec

from trailboss.fees.settlement import Prices, max_cost, offered_cell_tip, offered_tip
from trailboss.mechanisms.auction.index import AuctionIndex, Due, Entry, Group
from trailboss.mechanisms.auction.ranking import Row, late_first, ranked_all, ranked_first
from trailboss.mechanisms.auction.slices import cut_slices, pass_by
from trailboss.mechanisms.base import Decision, DeliveryPolicy, Rest, Verdict
from trailboss.mechanisms.context import AuctionMarket, Bid, SelectionContext
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Amount, Cycles, Price

SORTED_MAX: Final = 8
"""Up to so many timers for each that may be asked for, sorting all takes less time than a search for the first."""

FIRE: Final = Verdict.FIRE
"""Bound once: looking up a member of an enum takes a third of the time of a decision."""

Ranked = tuple[int, Due]
"""Rank and place in due order."""


class Offer(msgspec.Struct, frozen=True, gc=False):
    """What a timer bids in this block, and what follows from it.

    Attributes:
        prices: What a fire is charged at.
        cycle_price: What it is charged for a cycle in all.
        cells_cost: What the cells of a fire can cost at most.
        weight: Of its actor.
        max_fee: Cap of cycle basefee and tip together.
        source: Where the bid comes from.
        agent_cycles: What the question to the agent has used.
    """

    prices: Prices
    cycle_price: int
    cells_cost: int
    weight: int
    max_fee: Price
    source: FeeSource
    agent_cycles: Cycles


class AuctionSelection:
    """One block's decisions, each made when the one before has been carried out."""

    __slots__ = (
        "_answers",
        "_balance_of",
        "_context",
        "_dead_left",
        "_examined",
        "_index",
        "_marked",
        "_market",
        "_offers",
        "_out",
        "_passed_over",
        "_policy",
        "_rest",
        "_timer_of",
    )

    def __init__(self, index: AuctionIndex, context: SelectionContext[AuctionMarket], policy: DeliveryPolicy) -> None:
        self._index = index
        self._context = context
        self._market = context.market
        self._policy = policy
        self._balance_of, self._timer_of = context.balance_of, context.market.timer_of
        self._answers: dict[bytes, Bid] = {}
        self._offers: dict[Group, Offer] = {}
        self._passed_over: list[bytes] = []
        self._marked: list[bytes] = []
        self._out: set[bytes] = set()
        self._examined = 0
        self._dead_left = policy.dead_examined_max
        self._rest: Rest | None = None

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: about those that are late, about those that cannot pay, and then by rank.

        Complexity: O(log n) a decision of n joined timers, beside what `ranking` says.
        """
        return chain.from_iterable(self._parts())

    def rest(self) -> Rest:
        """Return what was left, after the walk.

        Raises:
            InvariantError: If the walk is not over.
        """
        if self._rest is None:
            raise InvariantError("what a walk leaves is known when it is over")
        return self._rest

    def _tell_late(self) -> Iterator[Decision]:
        """Tell timers that they are late, once, or cancel them; a bounded number, the oldest first.

        Spec: overview
        Decision: D-19
        """
        index, context, market = self._index, self._context, self._market
        is_cancelled = market.delay_action is DelayAction.CANCEL
        on_time = (context.height - market.delays_max,)
        lists = (index.prompt, index.late) if is_cancelled else (index.prompt,)
        overdue = merge(*(each.irange(None, on_time) for each in lists))
        told = 0
        for height, _, timer_id in overdue:
            if told == self._policy.joined_max:
                return
            entry = index.entries.get(timer_id)
            if entry is not None:
                told += 1
                prices = Prices(context.cycle_basefee, context.cell_basefee)
                verdict = Verdict.CANCEL if is_cancelled else Verdict.DELAY
                timer = market.timer_of(height, timer_id)
                yield Decision(timer, verdict, Amount(0), Amount(0), None, prices, entry.gas_limit)

    def _ask(self) -> None:
        """Ask agents until the block's budget is spent.

        First those never asked, of the block's own height before older ones; then the longest ago.

        Spec: CIP-1v1 §3
        Decision: D-57
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
        """Leave timers out of this block's ranking whose bids of just now cannot run in it; tell them why, once.

        Either they offer less for a cell than it costs, or their owners cannot pay them.

        Spec: CIP-1v1 §4.1, CIP-1v1 §4.2
        Decision: D-44, D-60, D-86
        """
        index, context = self._index, self._context
        for timer_id, bid in self._answers.items():
            if bid.max_fee < context.cycle_basefee:
                continue
            entry = index.entries[timer_id]
            tip = offered_tip(bid.max_fee, bid.max_priority_fee, context.cycle_basefee)
            cell_tip = offered_cell_tip(bid.cell_fees, context.cell_basefee)
            prices = Prices(context.cycle_basefee, context.cell_basefee, tip, cell_tip)
            cost = max_cost(entry.gas_limit, context.max_cells_per_fire, prices)
            timer = self._timer_of(entry.due[0], timer_id)
            available = self._balance_of(timer.fee_payer)
            reason = DeferralReason.PRICED_OUT if cell_tip < 0 else DeferralReason.UNFUNDED
            if available >= cost and cell_tip >= 0:
                continue
            index.refused.add(timer_id)
            if timer.deferred_for != reason:
                yield Decision(
                    timer, Verdict.DEFER, cost, available, reason, prices, entry.gas_limit,
                    0, entry.group.owner.weight, bid.max_fee, bid.source, bid.cycles_used,
                )  # fmt: skip

    def _parts(self) -> Iterator[Iterator[Decision]]:
        """Yield decisions about the late; ask agents; yield those about bids that cannot run, and of the walks.

        Spec: CIP-1v1 §3, CIP-1v1 §5
        Decision: D-60, D-68
        """
        yield self._tell_late()
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
        index, entries, budget_left = self._index, self._index.entries, self._context.lane_cycles_left
        decide, passed_over, passed_over_max = self._decide, self._passed_over, self._policy.passed_over_max
        slices = cut_slices(index, self._context.lane_cycles_max, self._context.cycle_basefee)
        if not slices:
            return
        for rank, due in ranking:
            entry = entries.get(due[2])
            if entry is None:
                pass_by(slices, index.left[due[2]].group.owner)
            else:
                left, owner = budget_left(), entry.group.owner
                own = slices.get(owner)
                if own is None or entry.gas_limit > own.cycles:
                    kept.append((rank, due))
                    pass_by(slices, owner)
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
        """Decide about timers by what is left of the budget, until the block is over; then see who comes next.

        A timer that has been cancelled meanwhile leaves its rank unused.
        """
        entries, budget_left = self._index.entries, self._context.lane_cycles_left
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
        full = self._why_full(left)
        if full is not None:
            return full
        if len(self._passed_over) == self._policy.passed_over_max:
            return Stop.PASSED_OVER_MAX
        return Stop.EXAMINED_MAX if self._examined == self._policy.examined_max else None

    def _why_full(self, left: int) -> Stop | None:
        """Return why the block holds no other fire, if so; a whole budget is there for any. Decision: D-68, D-80."""
        if left < self._index.smallest_gas and left < self._context.lane_cycles_max:
            return Stop.LANE_FULL
        return Stop.CELLS_FULL if self._context.lane_cells_left() < self._context.max_cells_per_fire else None

    def _without_out(self) -> Iterator[Due]:
        """Yield the ranked timers but for those of owners that are left out by then, however they were found."""
        entries, left = self._index.entries, self._index.left
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
        rows = [
            Row(shelf, None if is_standing else default_tip)
            for (is_late, is_standing), shelf in index.shelves.items()
            if not (is_late and has_late_first)
        ]
        # How many may be asked for; more, if they use less than their gas limits.
        room = context.lane_cycles_left() // max(1, index.smallest_gas)
        asked_for = min(room, self._policy.examined_max) + RUNNERS_UP_MAX
        if len(index.entries) <= SORTED_MAX * asked_for:
            in_rank = ranked_all(rows, basefee)
        else:
            in_rank = ranked_first(rows, basefee, self._out)
        return chain(late_first(index, basefee) if has_late_first else (), in_rank)

    def _decide(self, rank: int, due: Due, entry: Entry, left: int | None) -> Iterator[Decision]:
        """Decide about a ranked timer; not at all if its owner cannot pay, and enough of these have been set aside.

        Args:
            rank: Its place in the order.
            due: Its place in due order.
            entry: What the index keeps of it.
            left: Cycles of the budget that are left; None once the block is over. As long as that is all of it, any
                timer fits. Decision: D-68.
        """
        height, _, timer_id = due
        offer = self._offers.get(entry.group) or self._offer(timer_id, entry.group)
        timer, gas_limit = self._timer_of(height, timer_id), entry.gas_limit
        cost = gas_limit * offer.cycle_price + offer.cells_cost
        available = self._balance_of(timer.fee_payer)
        is_paid = available >= cost and offer.prices.cell_tip >= 0
        if left is not None and available < cost and offer.prices.cell_tip >= 0:
            if not self._dead_left:
                self._out.add(entry.group.owner.address)
                return
            self._dead_left -= 1
        elif left is not None:
            self._examined += 1
        if left is not None and is_paid and (gas_limit <= left or left == self._context.lane_cycles_max):
            verdict, reason = FIRE, None
        elif left is None:
            verdict, reason = Verdict.DEFER, DeferralReason.OUTRANKED
        else:
            verdict, reason = Verdict.DEFER, self._refusal(timer_id, offer, is_paid=is_paid)
        yield Decision(
            timer, verdict, Amount(cost), available, reason, offer.prices, gas_limit, rank,
            offer.weight, offer.max_fee, offer.source, offer.agent_cycles,
        )  # fmt: skip

    def _refusal(self, timer_id: bytes, offer: Offer, *, is_paid: bool) -> DeferralReason:
        """Return why a ranked timer cannot fire: what it pays counts before lack of room."""
        if is_paid:
            self._passed_over.append(timer_id)
            return DeferralReason.LANE_FULL
        self._marked.append(timer_id)
        return DeferralReason.PRICED_OUT if offer.prices.cell_tip < 0 else DeferralReason.UNFUNDED

    def _offer(self, timer_id: bytes, group: Group) -> Offer:
        """Work out what the timers of a group bid, or one of them whose agent was asked."""
        context, answer = self._context, self._answers.get(timer_id)
        basefee, default = context.cycle_basefee, self._market.default_bid
        if group.is_standing:
            max_fee, highest_tip, source = group.max_fee, group.tip, FeeSource.FROZEN
        else:
            max_fee, highest_tip, source = default.max_fee, default.max_priority_fee, default.source
        tip = offered_tip(max_fee, highest_tip, basefee)
        cell_tip = offered_cell_tip(group.cell_fees, context.cell_basefee)
        prices = Prices(basefee, context.cell_basefee, tip, cell_tip)
        cells_cost = context.max_cells_per_fire * (context.cell_basefee + cell_tip)
        agent_cycles = Cycles(0)
        if answer is not None:
            source, agent_cycles = answer.source, answer.cycles_used
        offer = Offer(prices, basefee + tip, cells_cost, group.owner.weight, max_fee, source, agent_cycles)
        if not self._answers:
            self._offers[group] = offer
        return offer

    def _count(self, stopped: Stop, runners_up: tuple[Decision, ...]) -> Rest:
        """Count the others, and why they were not examined."""
        index = self._index
        index.forget_left()
        priced_out: int = index.max_fees.bisect_left(self._context.cycle_basefee)
        examined = sum(timer_id in index.entries for timer_id in chain(self._passed_over, self._marked))
        return Rest(
            stopped=stopped,
            joined=len(index.entries),
            outranked=len(index.max_fees) - priced_out - examined,
            priced_out=priced_out,
            smallest_gas=0 if stopped is Stop.NONE_LEFT else index.smallest_gas,
            runners_up=runners_up,
        )
