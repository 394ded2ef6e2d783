"""CIP-5: first come, first served, within two budgets."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trailboss.fees import Prices
from trailboss.mechanisms.base import Charging, Decision, DeliveryPolicy, DueTimers, Mechanism, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.selection import FIRE
from trailboss.model import calls
from trailboss.model.decisions import Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params import ChainParams
from trailboss.primitives.units import Amount

NAME: Final = "fifo"


class Fifo(Mechanism):
    """After the transactions, all are pre-charged before any runs. Spec: CIP-5 §5. Decision: D-09."""

    name = NAME

    def select(self, due: DueTimers, context: SelectionContext[Market]) -> "FifoSelection":
        """Walk due timers in order and classify each.

        Spec: CIP-5 §5.1, CIP-5 §5.4, CIP-5 §6.5. Decision: D-09, D-39, D-78. Complexity: O(1) a timer, at most
        ``policy.examined_max`` that are alive, as many dead ones as the clean-up budget removes, and
        ``policy.dead_examined_max`` more; and O(1) for each payer that is left out.
        """
        return FifoSelection(due, context, self.policy)


def build_fifo(params: ChainParams) -> Fifo:
    """Return the mechanism with the chain's parameters."""
    return Fifo(
        DeliveryPolicy(
            charging=Charging.ALL_FIRST,
            examined_max=params.timers.due_examined_max,
            dead_examined_max=params.timers.dead_examined_max,
            calls=frozenset({calls.SCHEDULE, calls.EXTEND, calls.CANCEL, calls.SET_AGENT}),
        )
    )


class FifoSelection:
    """One block's walk: what earlier decisions have left of timer budget, clean-up budget and balances."""

    def __init__(self, due: DueTimers, context: SelectionContext[Market], policy: DeliveryPolicy) -> None:
        self._due, self._context, self._policy = due, context, policy
        self._rank = 0
        self._stopped = Stop.NONE_LEFT
        self._prices = Prices(context.cycle_basefee, context.cell_basefee)
        self._cells_cost = context.max_cells_per_fire * context.cell_basefee
        self._lane_left: int = context.lane_cycles_max
        self._cells_left: int = context.lane_cells_max
        self._gc_left: int = context.gc_cycles_max
        self._dead_left = policy.dead_examined_max
        self._kept: set[bytes] = set()
        self._spendable: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[Decision]:
        """Yield a decision for each timer, in due order: of the expired, the first to expire, and of all others."""
        expired = self._take_expired()
        examined = 0
        for timer in self._due.waiting:
            while expired and _place(expired[-1]) < _place(timer):
                yield self._end_expired(expired.pop())
            if examined == self._policy.examined_max:
                self._stopped = Stop.EXAMINED_MAX
                break
            decision = self._classify(timer)
            if decision is not None:
                examined += decision.available >= decision.max_cost
                yield decision
        while expired:
            yield self._end_expired(expired.pop())

    def rest(self) -> Rest:
        """Return why the walk ended."""
        return Rest(stopped=self._stopped)

    def _take_expired(self) -> list[Timer]:
        """Return expired timers, the last due first: those that the budget removes at once, and a few that are kept."""
        removable = self._gc_left // self._context.gc_cycles_per_timer
        found = list(islice(self._due.expired, removable + self._dead_left))
        self._gc_left -= len(found[:removable]) * self._context.gc_cycles_per_timer
        self._dead_left -= len(found[removable:])
        self._kept = {timer.timer_id for timer in found[removable:]}
        return sorted(found, key=_place, reverse=True)

    def _end_expired(self, timer: Timer) -> Decision:
        if timer.timer_id in self._kept:
            return self._decide(timer, Verdict.DEFER, 0, 0, DeferralReason.GC_EXHAUSTED)
        return self._decide(timer, Verdict.EXPIRE, 0, 0)

    def _classify(self, timer: Timer) -> Decision | None:
        """Decide about the next timer, and reserve what its fate uses up; None if its payer is left out."""
        payer = timer.fee_payer
        available = self._available(payer)
        max_cost = timer.gas_limit * self._context.cycle_basefee + self._cells_cost
        # Funds come before room: a timer that cannot be paid does not wait for room in which it would not run either.
        if available < max_cost:
            return self._unfund(timer, max_cost, available)
        if timer.gas_limit > self._lane_left:
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.LANE_FULL)
        if self._context.max_cells_per_fire > self._cells_left:
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.CELLS_FULL)
        self._lane_left -= timer.gas_limit
        self._cells_left -= self._context.max_cells_per_fire
        self._spendable[payer] = available - max_cost
        return self._decide(timer, FIRE, max_cost, available)

    def _unfund(self, timer: Timer, max_cost: int, available: int) -> Decision | None:
        """Remove a timer whose payer cannot pay, or leave it; without budget, leave out all of its payer's."""
        if self._gc_left >= self._context.gc_cycles_per_timer:
            self._gc_left -= self._context.gc_cycles_per_timer
            return self._decide(timer, Verdict.UNFUND, max_cost, available)
        if self._dead_left:
            self._dead_left -= 1
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.GC_EXHAUSTED)
        self._due.out.payers.add(timer.fee_payer)
        self._due.out.cannot_pay = self._cannot_pay
        return None

    def _cannot_pay(self, payer: bytes) -> bool:
        """Return whether a payer could not even pay for a fire of one cycle: then no record of it need be read."""
        return self._available(payer) < self._context.cycle_basefee + self._cells_cost

    def _available(self, payer: bytes) -> int:
        available = self._spendable.get(payer, -1)
        if available < 0:
            available = self._spendable[payer] = self._context.balance_of(payer)
        return available

    def _decide(
        self, timer: Timer, verdict: Verdict, max_cost: int, available: int, reason: DeferralReason | None = None
    ) -> Decision:
        self._rank += 1
        return Decision(
            timer=timer,
            verdict=verdict,
            max_cost=Amount(max_cost),
            available=Amount(available),
            reason=reason,
            prices=self._prices,
            gas_limit=timer.gas_limit,
            rank=self._rank,
        )


def _place(timer: Timer) -> tuple[int, int]:
    return timer.height, timer.sequence
