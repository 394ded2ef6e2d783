"""The decision record of a block, put together as its deliveries go on.

Decision: D-53
"""

from typing import Final

from trailboss.execution.agents import AgentDesk
from trailboss.execution.session import BlockSession
from trailboss.mechanisms.base import Decision, LaneContext, Mechanism, Rest, Verdict
from trailboss.model.decisions import ENTRIES_MAX, DecisionRecord, ExaminedTimer
from trailboss.primitives.units import Amount, Price

CANCELLED: Final = "cancelled"
"""Outcome of a timer that was to fire, and that an earlier fire of the block has cancelled. Decision: D-07."""


class Recorder:
    """What one block's decisions come to."""

    __slots__ = ("_count", "_cut_off", "_decisions", "_deferred", "_used")

    def __init__(self) -> None:
        self._count = 0
        self._deferred: list[bytes] = []
        self._cut_off = 0
        self._decisions: list[Decision] = []
        self._used: dict[bytes, int] = {}

    def decided(self, decision: Decision) -> None:
        """Note a decision; beyond ``ENTRIES_MAX`` only its number."""
        self._count += 1
        if decision.verdict is Verdict.DEFER:
            self._deferred.append(decision.timer.timer_id)
        if len(self._decisions) < ENTRIES_MAX:
            self._decisions.append(decision)

    def fired(self, timer_id: bytes, rank: int, cycles_used: int) -> None:
        """Note that a timer which was to fire has fired, at its rank."""
        self._used[timer_id] = cycles_used
        self._cut_off = max(self._cut_off, rank)

    def record(
        self, session: BlockSession, mechanism: Mechanism, context: LaneContext, rest: Rest, desk: AgentDesk | None
    ) -> DecisionRecord | None:
        """Return the record, after the deliveries; None if nothing was decided, could have been, or moved."""
        if not self._is_needed(session, rest):
            return None
        rules, market, waiting = session.context.rules, context.market, session.queue.due_count
        shown = [*self._decisions, *rest.runners_up[: ENTRIES_MAX - len(self._decisions)]]
        examined = tuple(map(self._examined, shown))
        has_index = mechanism.policy.joined_max > 0
        return DecisionRecord(
            mechanism=mechanism.name,
            cycle_basefee=context.cycle_basefee,
            cell_basefee=context.cell_basefee,
            lane_basefee=rules.lane_basefee(),
            next_lane_basefee=_next_basefee(session),
            previous_tip=Price(0) if market is None else market.previous_tip,
            median_fires=0 if market is None else market.median_fires,
            lane_cycles_max=context.lane_cycles_max,
            lane_cycles_used=session.timer_cycles_used,
            max_cycles_per_fire=rules.timer.max_cycles_per_fire if market is None else market.max_cycles_per_fire,
            lane_burned=Amount(session.lane_burned),
            examined=examined,
            examined_count=self._count,
            cut_off=self._cut_off,
            stopped=rest.stopped,
            smallest_gas=rest.smallest_gas,
            outranked=rest.outranked if has_index else waiting - self._still_deferred(session),
            priced_out=rest.priced_out,
            over_cap=rest.over_cap,
            not_joined=waiting - rest.joined if has_index else 0,
            gaps=session.gaps,
            agent_cycles=0 if desk is None else desk.cycles_used,
            agent_failures=() if desk is None else tuple(desk.failures),
        )

    def _is_needed(self, session: BlockSession, rest: Rest) -> bool:
        # Timers above the cap only wait: with nothing else due there is no choice, and the block may be idle.
        if self._count or session.queue.due_count > rest.over_cap:
            return True
        lane = session.context.rules.lane
        return lane is not None and (lane.is_new or lane.previous_tip > 0 or _next_basefee(session) != lane.basefee)

    def _still_deferred(self, session: BlockSession) -> int:
        """Return how many of those deferred still wait; a fire may have cancelled one."""
        return sum(session.queue.height_of(timer_id) is not None for timer_id in self._deferred)

    def _examined(self, decision: Decision) -> ExaminedTimer:
        timer, prices = decision.timer, decision.prices
        used = self._used.get(timer.timer_id)
        cancelled = decision.verdict is Verdict.FIRE and used is None
        return ExaminedTimer(
            timer_id=timer.timer_id,
            actor=timer.actor,
            rank=decision.rank,
            outcome=CANCELLED if cancelled else decision.verdict.value,
            reason="" if decision.reason is None else decision.reason.value,
            gas_limit=decision.gas_limit,
            cycles_used=used or 0,
            tip=prices.cycle_tip,
            weight=decision.weight,
            max_fee=decision.max_fee,
            fee_source=decision.fee_source,
        )


def _next_basefee(session: BlockSession) -> Price:
    """Return the lane basefee of the next block; before the activation it is the cycle basefee."""
    rules = session.context.rules
    return rules.cycle_basefee if rules.lane is None else rules.next_lane_basefee(session.timer_cycles_used)
