"""The delivery of due timers, read top to bottom: collect, select, charge, run, settle.

The mechanism decides which due timers run, in what order and at what price. Its policy says when that happens and how
the unfunded are treated; what else is different under its market stands in `trailboss.execution.markets`.
Spec: CIP-5 §5, CIP-5 §6.3, CIP-5 §6.5.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_flag, encode_integer, encode_octets, fields_template
from trailboss.execution.agents import BUDGET_SPENT, emit_fallback
from trailboss.execution.decision_recorder import Recorder
from trailboss.execution.due_admission import admit_timers
from trailboss.execution.paid_execution import handler_body, run_envelope
from trailboss.execution.session import BlockSession, Envelope, Fired, Reservation
from trailboss.execution.timers import end_timer, expired_timers, load_timers
from trailboss.mechanisms.base import Charging, Decision, DeliveryPolicy, DueTimers, LeftOut, Mechanism, Verdict
from trailboss.mechanisms.context import Market, SelectionContext
from trailboss.mechanisms.selection import FIRE
from trailboss.model.blocks import Origin, ReceiptRecord, Status
from trailboss.model.decisions import FeeSource
from trailboss.model.events import TIMER_DEFERRED, TIMER_EXPIRED, TIMER_FIRED, TIMER_UNFUNDED, EventRecord
from trailboss.model.timers import Timer, TimerEnd, asks_agent

# Bound once, as in `trailboss.mechanisms.selection`.
_TIMER, _REVERTED, _FALLBACK = Origin.TIMER, Status.REVERTED, FeeSource.FALLBACK
_FIRED: Final = fields_template(
    *("tip", "refund", "fee_paid", "reverted", "timer_id", "fee_payer", "cells_used", "cycles_used", "lane_burned"),
    "blocks_deferred",
)


def deliver_timers(session: BlockSession, mechanism: Mechanism) -> Callable[[], None]:
    """Deliver the block's due timers, and return what closes their market when the block ends.

    Spec: CIP-5 §5.1, CIP-1v3 §3. Decision: D-09, D-12, D-39
    """
    # CHECK
    session.has_delivered = True
    if not (session.hooks.opens_empty or session.queue.due_count):
        return lambda: None
    mechanism.expire(session.queue.died())
    recorder = Recorder(session)
    opened = session.hooks.open(session)
    context = selection_context(session, opened.market)
    selection = mechanism.select(due_timers(session, mechanism.policy), context)
    all_first = mechanism.policy.charging is Charging.ALL_FIRST
    # In turn, each decision is asked for only when those before it have been carried out.
    for decisions in [list(selection)] if all_first else ([decision] for decision in selection):
        # CHARGE
        for decision in decisions:
            recorder.decided(decision)
            apply_decision(session, decision)
        # RUN, SETTLE
        for decision in decisions:
            _fire(session, decision, recorder)
    rest = selection.rest()
    session.decisions = recorder.record(mechanism, context, rest, opened.collected)
    return partial(opened.close, rest)


def due_timers(session: BlockSession, policy: DeliveryPolicy) -> DueTimers:
    """Return the due timers, older heights first, in order of insertion within a height. Spec: CIP-5 §3.2."""
    if policy.joined_max:
        return admit_timers(session, policy.joined_max, partial(_least_cost, session))
    out = LeftOut()
    due = session.queue.due(session.context.height, is_out=out.__contains__)
    return DueTimers(waiting=load_timers(session, due), expired=expired_timers(session), out=out)


def _least_cost(session: BlockSession, timer: Timer) -> int:
    """Return the least pre-charge of a fire in this block, base units: without a tip. Decision: D-14, D-79."""
    rules = session.context.rules
    cycle_basefee, cell_basefee = rules.timer_basefees()
    gas_limit = min(timer.gas_limit, rules.market.max_cycles_per_fire)
    return gas_limit * (cycle_basefee + rules.market.surcharge) + rules.timer.max_cells_per_fire * cell_basefee


def selection_context(session: BlockSession, market: Market) -> SelectionContext[Market]:
    """Return what the block offers its mechanism."""
    rules = session.context.rules
    cycle_basefee, cell_basefee = rules.timer_basefees()
    lane_cycles_max, lane_cells_max = rules.market.timer_cycles_max, rules.timer_cells_max()
    return SelectionContext(
        height=session.context.height,
        cycle_basefee=cycle_basefee,
        cell_basefee=cell_basefee,
        max_cells_per_fire=rules.timer.max_cells_per_fire,
        lane_cycles_max=lane_cycles_max,
        gc_cycles_max=rules.timer.gc_cycles_per_block,
        gc_cycles_per_timer=rules.params.timers.gc_cycles_per_timer,
        balance_of=session.ledger.balance,
        lane_cycles_left=lambda: lane_cycles_max - session.timer_cycles_used,
        lane_cells_max=lane_cells_max,
        lane_cells_left=lambda: lane_cells_max - session.timer_cells_used,
        market=market,
    )


def apply_decision(session: BlockSession, decision: Decision) -> None:
    """Carry out one decision up to the point where a handler would run. Spec: CIP-5 §5.1, CIP-5 §5.4."""
    timer = decision.timer
    if decision.verdict is FIRE:
        session.reservations[timer.timer_id] = Reservation(decision, session.hooks.take(session, decision))
        return
    match decision.verdict:
        case Verdict.EXPIRE:
            facts = {"expires_at": timer.expires_at, "current_height": session.context.height}
            end_timer(session, timer, TimerEnd.EXPIRED, TIMER_EXPIRED, facts)
        case Verdict.UNFUND:
            unpaid = {"fee_payer": timer.fee_payer, "required": decision.max_cost, "available": decision.available}
            end_timer(session, timer, TimerEnd.UNFUNDED, TIMER_UNFUNDED, unpaid)
        case Verdict.DEFER:
            _defer(session, decision)
        case own:
            session.hooks.verdicts[own](session, decision)


def _defer(session: BlockSession, decision: Decision) -> None:
    """Leave a timer due; write and emit its reason once, when the wait begins or the reason changes. Decision: D-44."""
    timer, reason = decision.timer, decision.reason
    if timer.deferred_for == reason:
        return
    deferred = replace(timer, deferred_for=str(reason))
    session.write_timer(deferred)
    session.follower.replace(deferred)
    facts = {"reason": str(reason), "gas_limit": timer.gas_limit, "height": timer.height}
    session.emit(TIMER_DEFERRED, timer, facts)


def _fire(session: BlockSession, decision: Decision, recorder: Recorder) -> None:
    """Run a reserved timer's handler, unless an earlier one of this block has cancelled it. Spec: CIP-5 §5.2."""
    # CHECK
    reservation = session.reservations.pop(decision.timer.timer_id, None)
    if reservation is None:
        return
    timer, prices = decision.timer, decision.prices
    envelope = Envelope(
        origin=_TIMER,
        sender=timer.actor,
        signer=timer.actor,
        payer=timer.fee_payer,
        cycles_limit=decision.gas_limit,
        cells_limit=reservation.cells_limit,
        intrinsic_cycles=decision.agent_cycles,
        prices=prices,
        timer_id=timer.timer_id,
        actor=timer.target,
        facts=partial(session.hooks.fire_facts, decision),
    )
    if decision.fee_source is _FALLBACK and asks_agent(timer.fees):
        emit_fallback(session, timer, BUDGET_SPENT)
    body = handler_body(timer.target, timer.handler, timer.payload, timer.actor)
    # RUN, SETTLE
    receipt = run_envelope(session, envelope, decision.max_cost, body)
    cycles = receipt.cycles_used
    burned = cycles * prices.lane_basefee
    session.timer_cycles_used += cycles
    session.timer_cells_used += receipt.cells_used
    session.fired.append(Fired(timer.actor, prices.cycle_tip, cycles, burned))
    recorder.fired(decision, cycles)
    events = receipt.events + session.hooks.fire_events(decision, receipt)
    if session.hooks.is_last(decision):
        session.ends.fired += 1
        events = (*events, _fired(session, timer, receipt, burned))
    session.receipts.append(replace(receipt, events=events))


def _fired(session: BlockSession, timer: Timer, receipt: ReceiptRecord, lane_burned: int) -> EventRecord:
    """Return the event of a natural fire, reverted ones included. Decision: D-27."""
    facts = _FIRED % (
        encode_integer(receipt.tip),
        encode_integer(receipt.refund),
        encode_integer(receipt.fee_paid),
        encode_flag(receipt.status is _REVERTED),
        encode_octets(timer.timer_id),
        encode_octets(timer.fee_payer),
        encode_integer(receipt.cells_used),
        encode_integer(receipt.cycles_used),
        encode_integer(lane_burned),
        encode_integer(session.context.height - timer.height),
    )
    return EventRecord(TIMER_FIRED, timer.actor, facts, timer.timer_id)
