"""The delivery of due timers, read top to bottom: collect, select, charge, run, settle.

The mechanism decides which due timers run, in what order and at what price; its policy says when that happens and
how the unfunded are treated; what happens to money, state and events is the same for every mechanism and stands here.

Spec: CIP-5 §5, CIP-5 §6.3, CIP-5 §6.5
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from trailboss.codec.canonical import encode_canonical, fields_encoder
from trailboss.execution.frames import run_handler
from trailboss.execution.session import BlockSession, Envelope, Reservation, Scope
from trailboss.execution.settling import Run, run_envelope
from trailboss.execution.timers import find_timer, load_timer, remove_timer, write_timer
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Charging, Decision, LaneContext, Mechanism, Unfunded, Verdict
from trailboss.model.blocks import Origin, ReceiptRecord, Status
from trailboss.model.events import TIMER_DEFERRED, TIMER_EXPIRED, TIMER_FIRED, TIMER_UNFUNDED, EventRecord
from trailboss.model.timers import DeferralReason, Timer, TimerEnd
from trailboss.primitives.octets import ZERO_HASH
from trailboss.vm.meter import Meter

_encode_fired: Final = fields_encoder(
    "timer_id", "reverted", "cycles_used", "cells_used", "fee_payer", "fee_paid", "refund", "blocks_deferred"
)


def deliver_timers(session: BlockSession, mechanism: Mechanism) -> None:
    """Deliver the block's due timers under a mechanism.

    Spec: CIP-5 §5.1
    Decision: D-09, D-39
    """
    # CHECK
    selection = mechanism.select(_due_timers(session), _lane_context(session))
    if mechanism.policy.charging is Charging.ALL_FIRST:
        # CHARGE
        for decision in selection.decisions:
            _apply(session, decision)
        # RUN, SETTLE
        for timer_id in list(session.reservations):
            _fire(session, timer_id)
    else:
        for decision in selection.decisions:
            # CHECK
            timer = find_timer(session, decision.timer.timer_id)
            if timer is None:  # A fire before it has cancelled it.
                continue
            present = msgspec.structs.replace(decision, timer=timer)
            # CHARGE
            _apply(session, _rechecked(session, present, mechanism.policy.unfunded))
            # RUN, SETTLE
            _fire(session, timer.timer_id)


def _due_timers(session: BlockSession) -> Iterator[Timer]:
    """Yield due timers, older heights first, in order of insertion within a height. Spec: CIP-5 §3.2."""
    for height, _, timer_id in session.queue.due(session.context.height):
        yield load_timer(session, height, timer_id)


def _lane_context(session: BlockSession) -> LaneContext:
    rules = session.context.rules
    cycle_basefee, cell_basefee = rules.timer_basefees()
    return LaneContext(
        height=session.context.height,
        cycle_basefee=cycle_basefee,
        cell_basefee=cell_basefee,
        max_cells_per_fire=rules.timer.max_cells_per_fire,
        lane_cycles_max=rules.params.timers.lane_cycles_per_block,
        gc_cycles_max=rules.timer.gc_cycles_per_block,
        gc_cycles_per_timer=rules.params.timers.gc_cycles_per_timer,
        balance_of=session.ledger.balance,
    )


def _apply(session: BlockSession, decision: Decision) -> None:
    """Carry out one decision up to the point where a handler would run. Spec: CIP-5 §5.1, CIP-5 §5.4."""
    facts: dict[str, object]
    match decision.verdict:
        case Verdict.FIRE:
            _reserve(session, decision)
        case Verdict.EXPIRE:
            facts = {"expires_at": decision.timer.expires_at, "current_height": session.context.height}
            _end(session, decision.timer, TimerEnd.EXPIRED, TIMER_EXPIRED, facts)
        case Verdict.UNFUND:
            facts = {
                "fee_payer": decision.timer.fee_payer,
                "required": decision.max_cost,
                "available": decision.available,
            }
            _end(session, decision.timer, TimerEnd.UNFUNDED, TIMER_UNFUNDED, facts)
        case Verdict.DEFER:
            _defer(session, decision)


def _rechecked(session: BlockSession, decision: Decision, unfunded: Unfunded) -> Decision:
    """Hold a decision to fire against what the fires before it have used and spent. Decision: D-12."""
    if decision.verdict is not Verdict.FIRE:
        return decision
    timer = decision.timer
    left = session.context.rules.params.timers.lane_cycles_per_block - session.timer_cycles_used
    available = session.ledger.balance(timer.fee_payer)
    if timer.gas_limit > left:
        return msgspec.structs.replace(decision, verdict=Verdict.DEFER, reason=DeferralReason.LANE_FULL)
    if available >= decision.max_cost:
        return decision
    if unfunded is Unfunded.REMOVE:
        return msgspec.structs.replace(decision, verdict=Verdict.UNFUND, available=available)
    return msgspec.structs.replace(decision, verdict=Verdict.DEFER, reason=DeferralReason.UNFUNDED)


def _reserve(session: BlockSession, decision: Decision) -> None:
    """Take a timer's worst-case cost from its fee payer and the timer from the store. Spec: CIP-5 §6.3."""
    timer = decision.timer
    session.ledger.debit(timer.fee_payer, decision.max_cost)
    prices = Prices(decision.cycle_price, decision.cell_price)
    session.reservations[timer.timer_id] = Reservation(timer, decision.max_cost, prices)
    remove_timer(session, timer)
    session.queue.cancel(timer.timer_id)


def _end(session: BlockSession, timer: Timer, end: TimerEnd, event: str, facts: dict[str, object]) -> None:
    """Remove a timer that does not run, with its one event. Decision: D-27, D-35, D-38."""
    remove_timer(session, timer)
    session.queue.cancel(timer.timer_id)
    session.count_end(end)
    _block_event(session, event, timer, facts)


def _defer(session: BlockSession, decision: Decision) -> None:
    """Leave a timer due. What it waits for is written and told once, when it begins or changes.

    Decision: D-44
    """
    timer, reason = decision.timer, decision.reason
    if timer.deferred_for == reason:
        return
    since = timer.deferred_since or session.context.height
    write_timer(session, msgspec.structs.replace(timer, deferred_since=since, deferred_for=str(reason)))
    facts = {"reason": str(reason), "gas_limit": timer.gas_limit, "height": timer.height}
    _block_event(session, TIMER_DEFERRED, timer, facts)


def _fire(session: BlockSession, timer_id: bytes) -> None:
    """Run a reserved timer's handler, unless an earlier one of this block has cancelled it. Spec: CIP-5 §5.2."""
    # CHECK
    reservation = session.reservations.pop(timer_id, None)
    if reservation is None:
        return
    timer = reservation.timer
    rules = session.context.rules
    envelope = Envelope(
        origin=Origin.TIMER,
        origin_hash=ZERO_HASH,
        sender=timer.actor,
        signer=timer.actor,
        payer=timer.fee_payer,
        cycles_limit=timer.gas_limit,
        cells_limit=rules.timer.max_cells_per_fire,
        prices=reservation.prices,
        timer_id=timer_id,
        actor=timer.actor,
    )

    def body(scope: Scope, meter: Meter) -> Run:
        outcome = run_handler(scope, timer.actor, timer.handler, timer.payload, sender=timer.actor, meter=meter)
        return Run(outcome.return_value, outcome.error)

    # RUN, SETTLE
    receipt = run_envelope(session, envelope, reservation.amount, body)
    session.count_end(TimerEnd.FIRED)
    session.timer_cycles_used += receipt.cycles_used
    session.receipts.append(msgspec.structs.replace(receipt, events=(*receipt.events, _fired(session, timer, receipt))))


def _fired(session: BlockSession, timer: Timer, receipt: ReceiptRecord) -> EventRecord:
    """Return the event of a natural fire, reverted ones included. Decision: D-27."""
    waited = session.context.height - timer.deferred_since if timer.deferred_since else 0
    facts = _encode_fired(
        timer_id=timer.timer_id,
        reverted=receipt.status is Status.REVERTED,
        cycles_used=receipt.cycles_used,
        cells_used=receipt.cells_used,
        fee_payer=timer.fee_payer,
        fee_paid=receipt.fee_paid,
        refund=receipt.refund,
        blocks_deferred=waited,
    )
    return EventRecord(TIMER_FIRED, timer.actor, facts, timer.timer_id)


def _block_event(session: BlockSession, name: str, timer: Timer, facts: dict[str, object]) -> None:
    data = encode_canonical({"timer_id": timer.timer_id, **facts})
    session.events.append(EventRecord(name, timer.actor, data, timer.timer_id))
