"""CIP-5: first come, first served, within two budgets."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Charging, Decision, DueTimers, LanePolicy, Memoryless, Phase, Rest, Verdict
from trailboss.mechanisms.context import LaneContext
from trailboss.model import calls
from trailboss.model.decisions import Stop
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params import ChainParams
from trailboss.primitives.units import Amount

NAME: Final = "fifo"


@dataclass(frozen=True, slots=True)
class Fifo(Memoryless):
    """The mechanism of CIP-5. Spec: CIP-5 §5. Decision: D-09.

    Attributes:
        policy: After the transactions; all pre-charged before any runs.
        name: Always ``fifo``.
    """

    policy: LanePolicy
    name: str = NAME

    def select(self, due: DueTimers, context: LaneContext) -> "FifoSelection":
        """Walk due timers in order and classify each.

        Spec: CIP-5 §5.1, CIP-5 §5.4, CIP-5 §6.5
        Decision: D-09, D-39
        Complexity: O(1) a timer, at most ``policy.examined_max`` timers.

        Args:
            due: The due timers; read lazily, at most one more than ``policy.examined_max``.
            context: The block's prices, budgets and balances.
        """
        return FifoSelection(chain(due.waiting, due.joining), context, self.policy.examined_max)


def build_fifo(params: ChainParams) -> Fifo:
    """Return the mechanism with the chain's parameters."""
    return Fifo(
        LanePolicy(
            phase=Phase.AFTER_TRANSACTIONS,
            charging=Charging.ALL_FIRST,
            examined_max=params.timers.due_examined_max,
            calls=frozenset({calls.SCHEDULE, calls.EXTEND, calls.CANCEL, calls.SET_AGENT}),
        )
    )


class FifoSelection:
    """One block's walk: what earlier decisions have left of lane, clean-up budget and balances."""

    __slots__ = (
        "_cells_cost", "_cells_left", "_context", "_due", "_examined", "_examined_max", "_gc_left", "_lane_left",
        "_prices", "_spendable", "_stopped",
    )  # fmt: skip

    def __init__(self, due: Iterable[Timer], context: LaneContext, examined_max: int) -> None:
        self._due = due
        self._context = context
        self._examined_max = examined_max
        self._examined = 0
        self._stopped = Stop.NONE_LEFT
        self._prices = Prices(context.cycle_basefee, context.cell_basefee)
        self._cells_cost = context.max_cells_per_fire * context.cell_basefee
        self._lane_left: int = context.lane_cycles_max
        self._cells_left: int = context.lane_cells_max
        self._gc_left: int = context.gc_cycles_max
        self._spendable: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[Decision]:
        """Yield a decision for each timer, in due order."""
        for timer in self._due:
            if self._examined == self._examined_max:
                self._stopped = Stop.EXAMINED_MAX
                return
            self._examined += 1
            yield self._classify(timer)

    def rest(self) -> Rest:
        """Return why the walk ended."""
        return Rest(stopped=self._stopped)

    def _classify(self, timer: Timer) -> Decision:
        """Decide about the next timer, and reserve what its fate uses up."""
        if self._context.height > timer.expires_at:
            return self._remove(timer, Verdict.EXPIRE, max_cost=0, available=0)
        payer = timer.fee_payer
        available = self._spendable.get(payer, -1)
        if available < 0:
            available = self._spendable[payer] = self._context.balance_of(payer)
        max_cost = timer.gas_limit * self._context.cycle_basefee + self._cells_cost
        # Funds come before the lane: who cannot pay does not wait for a lane in which it would not run either.
        if available < max_cost:
            return self._remove(timer, Verdict.UNFUND, max_cost=max_cost, available=available)
        if timer.gas_limit > self._lane_left:
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.LANE_FULL)
        if self._context.max_cells_per_fire > self._cells_left:
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.CELLS_FULL)
        self._lane_left -= timer.gas_limit
        self._cells_left -= self._context.max_cells_per_fire
        self._spendable[payer] = available - max_cost
        return self._decide(timer, Verdict.FIRE, max_cost, available)

    def _remove(self, timer: Timer, verdict: Verdict, *, max_cost: int, available: int) -> Decision:
        if self._gc_left < self._context.gc_cycles_per_timer:
            return self._decide(timer, Verdict.DEFER, max_cost, available, DeferralReason.GC_EXHAUSTED)
        self._gc_left -= self._context.gc_cycles_per_timer
        return self._decide(timer, verdict, max_cost, available)

    def _decide(
        self, timer: Timer, verdict: Verdict, max_cost: int, available: int, reason: DeferralReason | None = None
    ) -> Decision:
        amounts = Amount(max_cost), Amount(available)
        return Decision(timer, verdict, *amounts, reason, self._prices, timer.gas_limit, self._examined)
