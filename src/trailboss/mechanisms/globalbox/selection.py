"""One block of Globalbox: which timers end, which enter the queue, which fires leave it, and which run.

Spec: CIP-5old §7, CIP-5old §8, CIP-5old §9, CIP-5old §10
"""

from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Any

from trailboss.fees import Prices, max_cost
from trailboss.mechanisms.base import Decision, DeliveryPolicy, DueTimers, Rest, Verdict
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox.candidates import Candidate, Scoring, order_candidates
from trailboss.mechanisms.globalbox.index import GlobalboxIndex
from trailboss.mechanisms.selection import FIRE, FROZEN, IndexSelection
from trailboss.model.configs import amount_of
from trailboss.model.decisions import RUNNERS_UP_MAX, Stop
from trailboss.model.globalbox import FRACTION_BITS, CarriedHit, MailboxEntry, bid_of
from trailboss.model.terms import GlobalboxTerms, QueuedFire
from trailboss.model.timers import DeferralReason, Timer, terms_of
from trailboss.primitives.units import Cycles, Price


class GlobalboxSelection(IndexSelection[GlobalboxIndex, GlobalboxMarket]):
    """One block's decisions in Globalbox."""

    def __init__(
        self,
        index: GlobalboxIndex,
        context: SelectionContext[GlobalboxMarket],
        policy: DeliveryPolicy,
        *,
        due: DueTimers,
        shards: int,
    ) -> None:
        super().__init__(index, context, policy)
        self._due, self._shards = due, shards
        self._carried: tuple[CarriedHit, ...] = ()

    def __iter__(self) -> Iterator[Decision]:
        """Return the decisions: of the expired, of the candidates, of the queue's head, and of the mailbox.

        Spec: CIP-5old §4. Complexity: O(log n) a decision of n timers, beside what the index says.
        """
        return chain(self._expire(), self._remove_barred(), self._enqueue(), self._materialize(), self._execute())

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

    def _remove_barred(self) -> Iterator[Decision]:
        """Remove timers that have not joined because their owners cannot pay. Spec: CIP-5old §14. Decision: D-79."""
        context = self._context
        prices = Prices(context.cycle_basefee, context.cell_basefee)
        for timer in self._removable(self._due.unfunded):
            cost = max_cost(timer.gas_limit, context.max_cells_per_fire, prices)
            yield self._decide(timer, Verdict.UNFUND, max_cost=cost, available=context.balance_of(timer.fee_payer))

    def _enqueue(self) -> Iterator[Decision]:
        """Insert what is due, and watches that a change has hit. Spec: CIP-5old §7, CIP-5old §8.3. Decision: D-65."""
        height, market = self._context.height, self._market
        hits, self._carried = self._index.watches.match(market.modified, market.hits_max, height)
        candidates = [Candidate(market.timer_of(at, timer_id), at) for at, timer_id in self._index.ready()]
        candidates += [
            Candidate(market.timer_of(hit.height, hit.timer_id), hit.hit_height, hit.matched_keys) for hit in hits
        ]
        scoring = Scoring(height, market.age_weight, market.bid_weight, market.clock)
        for rank, (_, timer, fire) in enumerate(order_candidates(candidates, scoring, self._shards), 1):
            yield self._decide(timer, Verdict.ENQUEUE, fire, rank=rank)

    def _materialize(self) -> Iterator[Decision]:
        """Move fires from the head of the queue to the mailbox, within the quotas, as their owners pay.

        One that its owner cannot pay takes no place. Its timer ends, or, when the clean-up budget is spent, is passed
        over and stays. Whatever expiries have used of that budget, as many as the block's quota can be removed.
        Spec: CIP-5old §8.3, CIP-5old §9. Decision: D-63.
        """
        market, context = self._market, self._context
        self._gc_left = max(self._gc_left, market.max_fires * context.gc_cycles_per_timer)
        consumption = self._index.fires.consume(market.max_fires, market.max_fires_per_target, context.height)
        passed_over = 0
        for rank, position in enumerate(consumption, 1):
            timer = market.timer_of(position.height, position.timer_id)
            fire = terms_of(timer, GlobalboxTerms).fire
            bid, gas_limit = _bid_and_gas(timer, fire)
            cost = max_cost(gas_limit, context.max_cells_per_fire, self._prices(bid))
            available = context.balance_of(timer.fee_payer)
            verdict = Verdict.MATERIALIZE
            if available >= cost:
                consumption.take(position)
            elif self._gc_left >= context.gc_cycles_per_timer:
                self._gc_left -= context.gc_cycles_per_timer
                verdict = Verdict.UNFUND
            else:
                consumption.keep(position)
                passed_over += 1
                if passed_over == self._policy.passed_over_max:
                    consumption.stop()
                continue
            yield self._decide(timer, verdict, fire, rank=rank, max_cost=cost, available=available)

    def _execute(self) -> Iterator[Decision]:
        """Run the oldest entries of the mailbox while they fit. Spec: CIP-5old §10. Decision: D-67, D-80."""
        rank, smallest_gas = 0, 0
        stopped: Stop | None = None
        # Each decision takes the first entry away, so that the next is the first again.
        while stopped is None:
            entry = next(self._market.entries(), None)
            if entry is None:
                stopped = Stop.NONE_LEFT
            elif (full := self._why_full(entry)) is not None:
                stopped, smallest_gas = full, entry.timer.gas_limit
            elif rank == self._policy.examined_max:
                stopped = Stop.EXAMINED_MAX
            else:
                rank += 1
                yield self._fire(entry, rank)
        self._rest = Rest(
            stopped=stopped,
            joined=self._index.joined,
            outranked=self._index.queued,
            smallest_gas=smallest_gas,
            runners_up=tuple(self._look_ahead()),
            carried=self._carried,
        )

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
        return Decision(
            timer=timer,
            verdict=FIRE,
            max_cost=amount_of(entry.reserved),
            prices=Prices(Price(amount_of(entry.cycle_basefee)), Price(amount_of(entry.cell_basefee)), tip),
            gas_limit=timer.gas_limit,
            rank=rank,
            fee_source=FROZEN,
            entry=entry,
        )

    def _look_ahead(self) -> Iterator[Decision]:
        for position in self._index.fires.first(RUNNERS_UP_MAX, self._context.height):
            timer = self._market.timer_of(position.height, position.timer_id)
            fire = terms_of(timer, GlobalboxTerms).fire
            yield self._decide(timer, Verdict.DEFER, fire, reason=DeferralReason.OUTRANKED)

    def _decide(self, timer: Timer, verdict: Verdict, fire: QueuedFire | None = None, **facts: Any) -> Decision:
        """Return a decision about a timer, or about its queued fire, with what else is known."""
        bid, gas_limit = _bid_and_gas(timer, fire)
        prices = self._prices(bid)
        return Decision(
            timer=timer, verdict=verdict, prices=prices, gas_limit=gas_limit, fee_source=FROZEN, fire=fire, **facts
        )

    def _prices(self, bid: bytes) -> Prices:
        """Return what a fire is charged at: the bid's whole part is the tip. Decision: D-63."""
        return Prices(self._context.cycle_basefee, self._context.cell_basefee, Price(bid_of(bid) >> FRACTION_BITS))


def _bid_and_gas(timer: Timer, fire: QueuedFire | None) -> tuple[bytes, Cycles]:
    """Return bid and gas limit of a queued fire, or those of the timer's next one."""
    if fire is None:
        return terms_of(timer, GlobalboxTerms).bid, timer.gas_limit
    return fire.bid, fire.gas_limit
