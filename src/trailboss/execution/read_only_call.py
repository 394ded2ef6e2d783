"""Handlers that run on the present state and change nothing: a read-only call, and the trial of a fire."""

from msgspec.structs import replace

from trailboss.execution.host import run_handler
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockContext, BlockSession, Envelope, Scope
from trailboss.execution.timers import remove_timer
from trailboss.mechanisms.base import Follower
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Origin
from trailboss.model.timers import Timer, TimerEnd
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.units import Amount, Cells, Cycles
from trailboss.state.overlay import Overlay
from trailboss.state.store import KeyValue
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine, FrameOutcome


def ask(
    context: BlockContext,
    store: KeyValue,
    *,
    queue: TimerQueue,
    engine: Engine,
    actor: bytes,
    handler: str,
    payload: bytes,
    sender: bytes,
    meter: Meter,
) -> FrameOutcome:
    """Run a handler as the block of ``context`` would, in a read-only frame; the meter has what it used.

    Source: cowboy-facts §2.3 (nested calls inherit it)
    """
    envelope = Envelope(
        origin=Origin.TRANSACTION,
        sender=sender,
        signer=sender,
        payer=sender,
        cycles_limit=Cycles(meter.cycles_limit),
        cells_limit=Cells(meter.cells_limit),
    )
    scope = _open_scope(context, store, queue, engine, envelope)
    return _run(scope, actor, handler, payload, sender=sender, meter=meter, read_only=True)


def try_fire(
    context: BlockContext, store: KeyValue, *, queue: TimerQueue, engine: Engine, timer: Timer, reserve: Amount
) -> ErrorObject | None:
    """Run a live timer's handler as the block of ``context`` would; return the error of the fire, or None.

    The timer is given as this fire runs it; ``reserve`` is held back from its payer, if it has that. Decision: D-96.
    """
    cells_limit = Cells(context.rules.timer.max_cells_per_fire)
    envelope = Envelope(
        origin=Origin.TIMER,
        sender=timer.actor,
        signer=timer.actor,
        payer=timer.fee_payer,
        cycles_limit=timer.gas_limit,
        cells_limit=cells_limit,
        timer_id=timer.timer_id,
        actor=timer.target,
    )
    scope = _open_scope(context, store, queue, engine, envelope)
    session = scope.session
    session.has_delivered = True
    # As the delivery does before a handler runs.
    if session.ledger.balance(timer.fee_payer) >= reserve:
        session.ledger.debit(timer.fee_payer, reserve)
    if not session.hooks.keeps_fired:
        remove_timer(session, timer, TimerEnd.FIRED)
    meter = Meter(timer.gas_limit, cells_limit)
    return _run(scope, timer.target, timer.handler, timer.payload, sender=timer.actor, meter=meter).error


def _open_scope(context: BlockContext, store: KeyValue, queue: TimerQueue, engine: Engine, envelope: Envelope) -> Scope:
    """Return a transaction over an overlay that is never committed."""
    overlay = Overlay(store)
    return Scope(
        BlockSession(context, overlay, Ledger(overlay), queue, engine, Follower(), MARKETS[context.rules.market.kind]),
        envelope,
    )


def _run(
    scope: Scope, actor: bytes, handler: str, payload: bytes, *, sender: bytes, meter: Meter, read_only: bool = False
) -> FrameOutcome:
    outcome = run_handler(scope, actor, handler, payload, sender=sender, meter=meter, read_only=read_only)
    return replace(outcome, printed=scope.printing.lines())
