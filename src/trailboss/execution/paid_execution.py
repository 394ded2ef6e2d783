"""One paid execution, whatever it came from: run what was reserved for, keep or roll back, settle, receipt.

A transaction, a timer's fire, a deferred transaction and a message all come through `run_envelope`; they differ in who
checked and charged. Spec: CIP-5 §5.2, CIP-5 §6.3.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from trailboss.codec.canonical import (
    encode_canonical,
    encode_integer,
    encode_octets,
    encode_text,
    fields_template,
)
from trailboss.execution.development import count_mocked
from trailboss.execution.host import run_handler
from trailboss.execution.mailbox import keep_gas
from trailboss.execution.session import BlockSession, Envelope, Scope, timer_event
from trailboss.fees import settle
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import effects
from trailboss.model import events as topics
from trailboss.model.blocks import ReceiptRecord, Status
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject, InvariantError, Rejection
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import Amount, Cells, Cycles
from trailboss.timer_queue.source import pending_of
from trailboss.vm.failures import exhaustion, located


class Run(msgspec.Struct, frozen=True, gc=False):
    """What running an instruction came to."""

    return_value: bytes = b""  # what the handler returned; empty without one
    error: ErrorObject | None = None  # why it failed; everything it changed is rolled back
    actor: bytes = b""  # the actor that was made or changed, or empty
    events: tuple[EventRecord, ...] = ()  # the chain's own events about it, after those of its effects


Body = Callable[[Scope, Meter], Run]


def handler_body(actor: bytes, handler: str, payload: bytes, sender: bytes) -> Body:
    """Return a body that runs one handler of an actor for a sender."""

    def body(scope: Scope, meter: Meter) -> Run:
        outcome = run_handler(scope, actor, handler, payload, sender=sender, meter=meter)
        return Run(outcome.return_value, outcome.error)

    return body


_OK, _REVERTED = Status.OK, Status.REVERTED  # bound once: looking up a member of an enum takes as long as ten constants
_FIELDS: Final = ("height", "handler", "timer_id", "fee_payer", "gas_limit", "expires_at")
_SCHEDULED: Final = fields_template(*_FIELDS)
_PRICED: Final = fields_template(*_FIELDS, "max_fee_per_cycle", "max_priority_fee_per_cycle")
_ASKING: Final = fields_template("gba", *_FIELDS)


def run_envelope(session: BlockSession, envelope: Envelope, reserved: Amount, body: Body) -> ReceiptRecord:
    """Run a body whose cost, ``reserved``, has been taken from the payer, settle, and return the receipt.

    Spec: CIP-5 §4.3, CIP-5 §6.3

    Raises:
        InvariantError: If the body, which may raise `Rejection`, ran out of gas with both meters within their limits.
    """
    # CHECK
    meter = Meter(envelope.cycles_limit, envelope.cells_limit)
    scope = Scope(session, envelope)
    mark = session.overlay.mark(), 0
    # RUN
    try:
        meter.charge_cycles(envelope.intrinsic_cycles)
        meter.charge_cells(envelope.intrinsic_cells)
        run = body(scope, meter)
    except OutOfGas as stopped:
        if not meter.is_exhausted:
            raise InvariantError("an execution ran out of gas with both meters within their limits") from stopped
        run = Run()
    except Rejection as rejection:
        run = Run(error=rejection.error())
    cycles, cells = Cycles(meter.cycles_used), Cells(meter.cells_used)
    if meter.is_exhausted:
        run = Run(error=located(exhaustion(meter), run.error))
        cycles, cells = meter.charged()
    status, events = _OK, run.events
    if run.error is not None:
        scope.revert(mark)
        status, events = _REVERTED, ()
    elif scope.effects:
        events = (*[commit_effect(session, effect) for effect in scope.effects], *events)
    # SETTLE
    if scope.mocked:
        count_mocked(scope)
    settlement = settle(reserved, cycles, cells, envelope.prices)
    session.ledger.credit(envelope.payer, settlement.refund)
    session.ledger.credit(session.context.proposer, settlement.tip)
    session.ledger.burned += settlement.burned
    if scope.effects or envelope.pool is not None:
        keep_gas(scope, cycles, cells)
    session.cycles_used += cycles
    session.cells_used += cells
    return ReceiptRecord(
        # Four by their place: CPython makes a dictionary of more than 15 names, which takes four times as long.
        envelope.origin,
        envelope.origin_hash,
        envelope.sender,
        envelope.payer,
        status=status,
        error=run.error,
        cycles_used=cycles,
        cells_used=cells,
        reserved=reserved,
        fee_burned=settlement.burned,
        tip=settlement.tip,
        refund=settlement.refund,
        return_value=run.return_value if run.error is None else b"",
        events=events,
        timer_id=envelope.timer_id,
        actor=run.actor or envelope.actor,
        printed=session.kept(scope.printing),
    )


def commit_effect(session: BlockSession, effect: effects.Effect) -> EventRecord:
    """Apply an effect of a committed transaction and return its event. Spec: CIP-5 §4.3. Decision: D-27."""
    match effect:
        case effects.TimerScheduled():  # no fields in the pattern: a Struct lists its fields for each match
            timer, facts = effect.timer, effect.facts
            session.queue.place(pending_of(timer))
            session.follower.schedule(timer)
            return EventRecord(topics.TIMER_SCHEDULED, timer.actor, _scheduled_facts(timer, facts), timer.timer_id)
        case effects.TimerCancelled(timer, by_governance):
            session.take_out(timer)
            return _cancelled(session, timer, 0, by_governance=by_governance)
        case effects.ReservedTimerCancelled(timer, by_governance):
            reservation = session.reservations.pop(timer.timer_id, None)
            if reservation is None:
                raise InvariantError(f"timer {timer.timer_id.hex()} was cancelled twice, or after it ran")
            amount = reservation.decision.max_cost
            session.ledger.credit(timer.fee_payer, amount)
            return _cancelled(session, timer, amount, by_governance=by_governance)
        case effects.TimerExtended(timer, by_governance):
            session.queue.extend(timer.timer_id, timer.expires_at)
            session.follower.replace(timer)
            name = topics.TIMER_EXTENDED_BY_GOVERNANCE if by_governance else topics.TIMER_EXTENDED
            emitter = _governance(session) if by_governance else None
            return timer_event(name, timer, {"expires_at": timer.expires_at}, emitter)
        case effects.TimerMoved(timer, from_height):
            session.queue.move(pending_of(timer))
            session.follower.replace(timer)
            facts = {"from_height": from_height, "height": timer.height}
            return timer_event(topics.TIMER_MOVED, timer, facts, _governance(session))
        case effects.TimerUpdated(timer, bid):
            session.follower.replace(timer)
            facts = {"payload_size": len(timer.payload), "gas_limit": timer.gas_limit, "bid": bid}
            return timer_event(topics.TIMER_UPDATED, timer, facts)
        case effects.CallDeferred(actor, handler, size):
            return EventRecord(topics.DEFERRED_CREATED, actor, encode_canonical({"handler": handler, "size": size}))
        case _:
            return effect


def _scheduled_facts(timer: Timer, more: Mapping[str, object]) -> bytes:
    if more and not timer.own_agent:
        return encode_canonical({**{name: getattr(timer, name) for name in _FIELDS}, **more})
    facts = (
        encode_integer(timer.height),
        encode_text(timer.handler),
        encode_octets(timer.timer_id),
        encode_octets(timer.fee_payer),
        encode_integer(timer.gas_limit),
        encode_integer(timer.expires_at),
    )
    if not timer.fees and timer.terms is None:
        return _SCHEDULED % facts
    if timer.own_agent:
        return _ASKING % (encode_octets(timer.own_agent), *facts)
    fees = timer.frozen_fees()
    return _SCHEDULED % facts if fees is None else _PRICED % (*facts, *map(encode_integer, fees))


def _cancelled(session: BlockSession, timer: Timer, refund: int, *, by_governance: bool) -> EventRecord:
    name = topics.TIMER_CANCELLED_BY_GOVERNANCE if by_governance else topics.TIMER_CANCELLED
    return timer_event(name, timer, {"refund": refund}, _governance(session) if by_governance else None)


def _governance(session: BlockSession) -> bytes:
    return system_address(session.context.rules.params.governance.governance_actor)
