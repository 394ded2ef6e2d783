"""The decision record of a block, put together as its deliveries go on.

Decision: D-53
"""

from typing import Final

from trailboss.execution.agents import AgentDesk
from trailboss.execution.session import BlockSession
from trailboss.governance.markets import GLOBALBOX_KEY
from trailboss.mechanisms.base import Decision, Mechanism, Rest, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.model.configs import decode_record
from trailboss.model.decisions import APART_MAX, ENTRIES_MAX, DecisionRecord, ExaminedTimer, Stop
from trailboss.model.globalbox import GlobalboxState, standing_of
from trailboss.model.terms import GlobalboxTerms
from trailboss.model.timers import DeferralReason
from trailboss.primitives.units import Amount

CANCELLED: Final = "cancelled"
"""Outcome of a timer that was to fire, and that an earlier fire of the block has cancelled. Decision: D-07."""
APART: Final = (Verdict.ENQUEUE, Verdict.MATERIALIZE, Verdict.EXPIRE, Verdict.DELAY, Verdict.CANCEL)
"""Decisions that come before any turn to fire: a crowd of them must not hide who had one."""


class Recorder:
    """What one block's decisions come to."""

    __slots__ = ("_apart", "_count", "_cut_off", "_decisions", "_deferred", "_used")

    def __init__(self) -> None:
        self._count = 0
        self._deferred: list[bytes] = []
        self._cut_off = 0
        self._decisions: list[Decision] = []
        self._apart = dict.fromkeys((*APART, DeferralReason.UNFUNDED), 0)
        self._used: dict[tuple[bytes, int | None], int] = {}

    def decided(self, decision: Decision) -> None:
        """Note a decision; beyond ``ENTRIES_MAX``, or ``APART_MAX`` of those that are bounded apart, only its number.

        Apart are `APART`, and those found unfunded before their turn.
        """
        self._count += 1
        kind = decision.verdict if decision.rank or decision.reason is None else decision.reason
        if kind is Verdict.UNFUND and decision.fire is not None:
            kind = DeferralReason.UNFUNDED
        if kind in self._apart:
            self._apart[kind] += 1
            if self._apart[kind] > APART_MAX:
                return
        if decision.verdict is Verdict.DEFER and decision.max_cost:  # What has expired was decided before any price.
            self._deferred.append(decision.timer.timer_id)
        if len(self._decisions) < ENTRIES_MAX:
            self._decisions.append(decision)

    def fired(self, decision: Decision, cycles_used: int) -> None:
        """Note that a timer which was to fire has fired."""
        self._used[_fire_of(decision)] = cycles_used
        self._cut_off = max(self._cut_off, decision.rank)

    def record(
        self,
        session: BlockSession,
        mechanism: Mechanism,
        context: SelectionContext[Market],
        rest: Rest,
        desk: AgentDesk | None,
    ) -> DecisionRecord | None:
        """Return the record, after the deliveries; None if nothing was decided, could have been, or moved."""
        if not self._is_needed(session, rest):
            return None
        rules, market = session.context.rules, context.market
        waiting = session.queue.due_count - session.queue.expired_count
        runners_up = rest.runners_up[: ENTRIES_MAX - len(self._decisions)]
        has_index = mechanism.policy.joined_max > 0
        queued, in_mailbox = _box_counts(session)
        return DecisionRecord(
            mechanism=mechanism.name,
            order=mechanism.policy.order,
            cycle_basefee=context.cycle_basefee,
            cell_basefee=context.cell_basefee,
            lane_basefee=rules.market.basefee,
            next_lane_basefee=rules.market.next_basefee(session.timer_cycles_used),
            previous_tip=market.previous_tip,
            median_fires=market.median_fires,
            lane_cycles_max=context.lane_cycles_max,
            lane_cycles_used=session.timer_cycles_used,
            max_cycles_per_fire=market.max_cycles_per_fire,
            lane_burned=Amount(session.lane_burned),
            examined=tuple(map(self._examined, (*self._decisions, *runners_up))),
            runner_up_count=len(runners_up),
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
            agent_bids=() if desk is None else tuple(desk.bids[:ENTRIES_MAX]),
            queued=queued,
            in_mailbox=in_mailbox,
            carried=len(rest.carried),
        )

    def _is_needed(self, session: BlockSession, rest: Rest) -> bool:
        # Timers above the cap only wait: with nothing else due there is no choice, and the block may be idle.
        if self._count or rest.outranked or rest.stopped is not Stop.NONE_LEFT:
            return True
        if session.queue.due_count > rest.over_cap:
            return True
        market = session.context.rules.market
        is_moved = market.next_basefee(session.timer_cycles_used) != market.basefee
        return market.is_new or market.previous_tip > 0 or is_moved

    def _still_deferred(self, session: BlockSession) -> int:
        """Return how many of those deferred still wait; a fire may have cancelled one."""
        return sum(session.queue.height_of(timer_id) is not None for timer_id in self._deferred)

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
            standing=None if decision.fire is None else standing_of(decision.fire.standing),
            fire_seq=_fire_seq(decision),
            deliver_seq=None if decision.entry is None else decision.entry.deliver_seq,
        )


def _fire_of(decision: Decision) -> tuple[bytes, int | None]:
    """Return which fire a decision is about: a watch may have several entries of the mailbox in one block."""
    return decision.timer.timer_id, None if decision.entry is None else decision.entry.deliver_seq


def _fire_seq(decision: Decision) -> int | None:
    if decision.entry is not None:
        return decision.entry.fire_seq
    terms = decision.timer.terms
    return terms.fire_seq if decision.fire is not None and isinstance(terms, GlobalboxTerms) else None


def _box_counts(session: BlockSession) -> tuple[int, int]:
    """Return how many fires stand in Globalbox after the deliveries, and how many entries wait in its mailbox."""
    octets = session.overlay.read(GLOBALBOX_KEY)
    if octets is None:
        return 0, 0
    state = decode_record(octets, GlobalboxState)
    return state.queued, state.next - state.first
