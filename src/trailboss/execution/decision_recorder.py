"""The decision record of a block, put together as its deliveries go on. Decision: D-53."""

from typing import Final

from trailboss.execution.session import BlockSession, CollectedBids
from trailboss.mechanisms.base import Decision, Mechanism, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.model.decisions import APART_MAX, ENTRIES_MAX, DecisionRecord, ExaminedTimer, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.units import Amount

CANCELLED: Final = "cancelled"
"""Outcome of a timer that was to fire, and that an earlier fire of the block has cancelled. Decision: D-07."""
APART: Final = (Verdict.ENQUEUE, Verdict.MATERIALIZE, Verdict.EXPIRE, Verdict.DELAY, Verdict.CANCEL)
"""Decisions that come before any turn to fire: a crowd of them must not hide who had one."""


class Recorder:
    """What one block's decisions come to."""

    __slots__ = ("_apart", "_count", "_cut_off", "_decisions", "_deferred", "_session", "_used")

    def __init__(self, session: BlockSession) -> None:
        self._session = session
        self._count = 0
        self._deferred: list[bytes] = []
        self._cut_off = 0
        self._decisions: list[Decision] = []
        self._apart = dict.fromkeys((*APART, DeferralReason.UNFUNDED), 0)
        self._used: dict[tuple[bytes, int | None], int] = {}

    def decided(self, decision: Decision) -> None:
        """Note a decision; beyond ``ENTRIES_MAX``, and ``APART_MAX`` of those before any turn, only count it."""
        self._count += 1
        kind = decision.verdict if decision.rank or decision.reason is None else decision.reason
        if decision.fire is not None and kind is Verdict.UNFUND:
            kind = DeferralReason.UNFUNDED
        if kind in self._apart:
            self._apart[kind] += 1
            if self._apart[kind] > APART_MAX:
                return
        # What has expired was decided before any price.
        if decision.reason is not None and decision.max_cost and decision.verdict is Verdict.DEFER:
            self._deferred.append(decision.timer.timer_id)
        if len(self._decisions) < ENTRIES_MAX:
            self._decisions.append(decision)

    def fired(self, decision: Decision, cycles_used: int) -> None:
        """Note that a timer which was to fire has fired."""
        self._used[_fire_of(decision)] = cycles_used
        self._cut_off = max(self._cut_off, decision.rank)

    def record(
        self, mechanism: Mechanism, context: SelectionContext[Market], rest: Rest, collected: CollectedBids
    ) -> DecisionRecord | None:
        """Return the record, after the deliveries; None if nothing was decided, could have been, or moved."""
        session, market = self._session, context.market
        terms = session.context.rules.market
        next_basefee = terms.next_basefee(session.timer_cycles_used)
        is_moved = terms.is_new or terms.previous_tip > 0 or next_basefee != terms.basefee
        if not (is_moved or self._has_choice(rest)):
            return None
        waiting = session.queue.due_count - session.queue.expired_count
        runners_up = rest.runners_up[: ENTRIES_MAX - len(self._decisions)]
        has_index = mechanism.policy.joined_max > 0
        return DecisionRecord(
            mechanism=mechanism.name,
            order=mechanism.policy.order,
            cycle_basefee=context.cycle_basefee,
            cell_basefee=context.cell_basefee,
            lane_basefee=terms.basefee,
            next_lane_basefee=next_basefee,
            previous_tip=market.previous_tip,
            median_fires=market.median_fires,
            lane_cycles_max=context.lane_cycles_max,
            lane_cycles_used=session.timer_cycles_used,
            max_cycles_per_fire=market.max_cycles_per_fire,
            lane_burned=Amount(sum(fired.burned for fired in session.fired)),
            examined=tuple(map(self._examined, (*self._decisions, *runners_up))),
            runner_up_count=len(runners_up),
            examined_count=self._count,
            cut_off=self._cut_off,
            stopped=rest.stopped,
            smallest_gas=rest.smallest_gas,
            outranked=rest.outranked if has_index else waiting - self._still_deferred(),
            priced_out=rest.priced_out,
            over_cap=rest.over_cap,
            not_joined=waiting - rest.joined if has_index else 0,
            gaps=session.admission.gaps,
            agent_cycles=collected.cycles_used,
            agent_failures=tuple(collected.failures),
            agent_bids=tuple(collected.bids[:ENTRIES_MAX]),
            carried=len(rest.carried),
            **session.hooks.recorded(session),
        )

    def _has_choice(self, rest: Rest) -> bool:
        # Timers above the cap only wait: with nothing else due there is no choice, and the block may be idle.
        if self._count or rest.outranked or rest.stopped is not Stop.NONE_LEFT:
            return True
        return self._session.queue.due_count > rest.over_cap

    def _still_deferred(self) -> int:
        """Return how many of those deferred still wait; a fire may have cancelled one."""
        height_of = self._session.queue.height_of
        return sum(height_of(timer_id) is not None for timer_id in self._deferred)

    def _examined(self, decision: Decision) -> ExaminedTimer:
        timer, prices = decision.timer, decision.prices
        used = self._used.get(_fire_of(decision))
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
            target=b"" if timer.target == timer.actor else timer.target,
            **self._session.hooks.examined(decision),
        )


def _fire_of(decision: Decision) -> tuple[bytes, int | None]:
    """Return which fire a decision is about: a watch may have several entries of the mailbox in one block."""
    return decision.timer.timer_id, None if decision.entry is None else decision.entry.deliver_seq
