"""One block of Globalbox: who ends, who enters the queue, what leaves it for the mailbox, and what of that runs.

Spec: CIP-5old §7, CIP-5old §8, CIP-5old §9, CIP-5old §10
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import TypeVar

from msgspec.structs import replace

from trailboss.fees.settlement import Prices, max_cost
from trailboss.mechanisms.base import Decision, DeliveryPolicy, DueTimers, Rest, Verdict
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox.candidates import Candidate, Scoring, order_candidates
from trailboss.mechanisms.globalbox.index import GlobalboxIndex
from trailboss.model.configs import amount_of
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource, Stop
from trailboss.model.globalbox import FRACTION_BITS, CarriedHit, MailboxEntry, bid_of
from trailboss.model.terms import GlobalboxTerms, QueuedFire
from trailboss.model.timers import DeferralReason, Timer, terms_of
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Amount, Price

Removable = TypeVar("Removable")


class GlobalboxSelection:
    """One block's decisions, each made when the one before has been carried out."""

    __slots__ = (
        "_carried", "_context", "_due", "_gc_left", "_index", "_market", "_policy", "_runners_up", "_shards",
        "_smallest_gas", "_stopped",
    )  # fmt: skip

    def __init__(
        self,
        index: GlobalboxIndex,
        context: SelectionContext[GlobalboxMarket],
        policy: DeliveryPolicy,
        *,
        due: DueTimers,
        shards: int,
    ) -> None:
        self._index = index
        self._due = due
        self._context = context
        self._market = context.market
        self._policy = policy
        self._shards = shards
        self._gc_left: int = context.gc_cycles_max
        self._carried: tuple[CarriedHit, ...] = ()
        self._runners_up: tuple[Decision, ...] = ()
        self._smallest_gas = 0
        self._stopped: Stop | None = None

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: of the expired, of the candidates, of the queue's head, and of the mailbox.

        Spec: CIP-5old §4
        Complexity: O(log n) a decision of n timers, beside what the index says.
        """
        return chain(self._expire(), self._clear(), self._enqueue(), self._materialize(), self._execute())

    def rest(self) -> Rest:
        """Return what was left, after the walk.

        Raises:
            InvariantError: If the walk is not over.
        """
        if self._stopped is None:
            raise InvariantError("what a walk leaves is known when it is over")
        return Rest(
            stopped=self._stopped,
            joined=self._index.joined,
            outranked=self._index.queued,
            smallest_gas=self._smallest_gas,
            runners_up=self._runners_up,
            carried=self._carried,
        )

    def _expire(self) -> Iterator[Decision]:
        """Remove expired timers for as long as the clean-up budget lasts. Spec: CIP-5old §14."""
        index = self._index
        not_joined = (
            (timer.expires_at, timer.height, timer.sequence, timer.timer_id)
            for timer in self._due.expired
            if not index.knows(timer.timer_id)
        )
        for _, height, _, timer_id in self._removable(merge(index.overdue(self._context.height), not_joined)):
            yield self._decide(self._market.timer_of(height, timer_id), Verdict.EXPIRE)

    def _clear(self) -> Iterator[Decision]:
        """Remove timers that have not joined because their owners cannot pay. Spec: CIP-5old §14. Decision: D-79."""
        context = self._context
        for timer in self._removable(self._due.unfunded):
            decision = self._decide(timer, Verdict.UNFUND)
            prices = Prices(context.cycle_basefee, context.cell_basefee, Price(0))
            cost = max_cost(timer.gas_limit, context.max_cells_per_fire, prices)
            yield replace(decision, max_cost=cost, available=context.balance_of(timer.fee_payer))

    def _removable(self, found: Iterable[Removable]) -> list[Removable]:
        """Return as many as the clean-up budget removes, and take the cost. Decision: D-23."""
        price = self._context.gc_cycles_per_timer
        removed = list(islice(found, self._gc_left // price))
        self._gc_left -= len(removed) * price
        return removed

    def _enqueue(self) -> Iterator[Decision]:
        """Insert the block's candidates: timers that are due, and watches that a change has hit.

        Spec: CIP-5old §7, CIP-5old §8.3
        Decision: D-65
        """
        height, market = self._context.height, self._market
        hits, self._carried = self._index.match(market.modified, market.hits_max, height)
        candidates = [Candidate(market.timer_of(at, timer_id), at) for at, timer_id in self._index.ready()]
        candidates += [
            Candidate(market.timer_of(hit.height, hit.timer_id), hit.hit_height, hit.matched_keys) for hit in hits
        ]
        scoring = Scoring(height, market.age_weight, market.bid_weight, market.clock)
        for rank, (_, timer, fire) in enumerate(order_candidates(candidates, scoring, self._shards), 1):
            yield self._decide(timer, Verdict.ENQUEUE, rank, fire)

    def _materialize(self) -> Iterator[Decision]:
        """Move fires from the head of the queue to the mailbox, within the quotas, as their owners pay.

        One that its owner cannot pay takes no place. Its timer ends, or, when the clean-up budget is spent, is passed
        over and stays. Whatever expiries have used of that budget, as many as the block's quota can be removed.

        Spec: CIP-5old §8.3, CIP-5old §9
        Decision: D-63
        """
        market, context = self._market, self._context
        self._gc_left = max(self._gc_left, market.max_fires * context.gc_cycles_per_timer)
        consumption = self._index.consume(market.max_fires, market.max_fires_per_target, context.height)
        passed_over = 0
        for rank, place in enumerate(consumption, 1):
            timer = market.timer_of(place.height, place.timer_id)
            decision = self._decide(timer, Verdict.MATERIALIZE, rank, terms_of(timer, GlobalboxTerms).fire)
            cost = max_cost(decision.gas_limit, context.max_cells_per_fire, decision.prices)
            available = context.balance_of(timer.fee_payer)
            if available >= cost:
                consumption.take(place)
                yield replace(decision, max_cost=cost, available=available)
            elif self._gc_left >= context.gc_cycles_per_timer:
                self._gc_left -= context.gc_cycles_per_timer
                yield replace(decision, verdict=Verdict.UNFUND, max_cost=cost, available=available)
            else:
                consumption.keep(place)
                passed_over += 1
                if passed_over == self._policy.passed_over_max:
                    consumption.stop()

    def _execute(self) -> Iterator[Decision]:
        """Run entries of the mailbox, the oldest first, up to the first that does not fit what is left of the block.

        Spec: CIP-5old §10
        Decision: D-67, D-80
        """
        rank = 0
        # Each decision takes the first entry away, so that the next is the first again.
        while self._stopped is None:
            entry = next(self._market.entries(), None)
            if entry is None:
                self._stopped = Stop.NONE_LEFT
            elif (full := self._why_full(entry)) is not None:
                self._stopped = full
                self._smallest_gas = entry.timer.gas_limit
            elif rank == self._policy.examined_max:
                self._stopped = Stop.EXAMINED_MAX
            else:
                rank += 1
                yield self._fire(entry, rank)
        self._runners_up = tuple(self._look_ahead())

    def _why_full(self, entry: MailboxEntry) -> Stop | None:
        """Return why an entry may not run in what is left of the block, if so.

        What nothing has used yet is there for any entry: or one above a limit that governance has lowered since would
        hold up the mailbox for ever. Decision: D-67, D-80.
        """
        context = self._context
        cycles, cells = context.lane_cycles_left(), context.lane_cells_left()
        if entry.timer.gas_limit > cycles and cycles < context.lane_cycles_max:
            return Stop.LANE_FULL
        return Stop.CELLS_FULL if entry.cells_limit > cells and cells < context.lane_cells_max else None

    def _fire(self, entry: MailboxEntry, rank: int) -> Decision:
        """Return the decision about the mailbox's first entry; it is settled at the prices at which it was paid."""
        timer = entry.timer
        tip = Price(bid_of(terms_of(timer, GlobalboxTerms).bid) >> FRACTION_BITS)
        prices = Prices(Price(amount_of(entry.cycle_basefee)), Price(amount_of(entry.cell_basefee)), tip)
        return Decision(
            timer,
            Verdict.FIRE,
            amount_of(entry.reserved),
            Amount(0),
            None,
            prices,
            timer.gas_limit,
            rank,
            fee_source=FeeSource.FROZEN,
            entry=entry,
        )

    def _look_ahead(self) -> Iterator[Decision]:
        """Yield the first of those that stay in the queue."""
        for place in self._index.first(RUNNERS_UP_MAX, self._context.height):
            timer = self._market.timer_of(place.height, place.timer_id)
            yield self._decide(timer, Verdict.DEFER, 0, terms_of(timer, GlobalboxTerms).fire, DeferralReason.OUTRANKED)

    def _decide(
        self,
        timer: Timer,
        verdict: Verdict,
        rank: int = 0,
        fire: QueuedFire | None = None,
        reason: DeferralReason | None = None,
    ) -> Decision:
        bid, gas_limit = (
            (terms_of(timer, GlobalboxTerms).bid, timer.gas_limit) if fire is None else (fire.bid, fire.gas_limit)
        )
        return Decision(
            timer, verdict, Amount(0), Amount(0), reason, self._prices(bid), gas_limit, rank,
            fee_source=FeeSource.FROZEN, fire=fire,
        )  # fmt: skip

    def _prices(self, bid: bytes) -> Prices:
        """Return what a fire is charged at: the bid's whole part is the tip. Decision: D-63."""
        return Prices(self._context.cycle_basefee, self._context.cell_basefee, Price(bid_of(bid) >> FRACTION_BITS))
