"""CIP-5: first come, first served, within two budgets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trailboss.mechanisms.base import (
    Charging,
    Decision,
    LaneContext,
    LanePolicy,
    Phase,
    Selection,
    Unfunded,
    Verdict,
)
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params import ChainParams
from trailboss.primitives.units import Amount

NAME: Final = "fifo"


@dataclass(frozen=True, slots=True)
class Fifo:
    """The mechanism of CIP-5. Spec: CIP-5 §5. Decision: D-09.

    Attributes:
        policy: After the transactions; all pre-charged before any runs; the unfunded end.
        name: Always ``fifo``.
    """

    policy: LanePolicy
    name: str = NAME

    def select(self, due: Iterable[Timer], context: LaneContext) -> Selection:
        """Walk due timers in order and classify each.

        Spec: CIP-5 §5.1, CIP-5 §5.4, CIP-5 §6.5
        Decision: D-09, D-39
        Complexity: O(1) a timer, at most ``policy.examined_max`` timers.

        Args:
            due: The due timers, older heights first, FIFO within a height; read lazily.
            context: The block's prices, budgets and balances.
        """
        walk = _Walk(context)
        decisions: list[Decision] = []
        exhausted = False
        for timer in due:
            if len(decisions) == self.policy.examined_max:
                exhausted = True
                break
            decisions.append(walk.classify(timer))
        return Selection(tuple(decisions), exhausted)


def build_fifo(params: ChainParams) -> Fifo:
    """Return the mechanism with the chain's parameters."""
    return Fifo(
        LanePolicy(
            phase=Phase.AFTER_TRANSACTIONS,
            unfunded=Unfunded.REMOVE,
            charging=Charging.ALL_FIRST,
            examined_max=params.timers.due_examined_max,
        )
    )


class _Walk:
    """One block's walk: what earlier decisions have left of lane, clean-up budget and balances."""

    __slots__ = ("_cells_cost", "_context", "_gc_left", "_lane_left", "_spendable")

    def __init__(self, context: LaneContext) -> None:
        self._context = context
        self._cells_cost = context.max_cells_per_fire * context.cell_basefee
        self._lane_left: int = context.lane_cycles_max
        self._gc_left: int = context.gc_cycles_max
        self._spendable: dict[bytes, int] = {}

    def classify(self, timer: Timer) -> Decision:
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
        self._lane_left -= timer.gas_limit
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
        context = self._context
        return Decision(
            timer, verdict, Amount(max_cost), Amount(available), reason, context.cycle_basefee, context.cell_basefee
        )
