"""Handlers that run on the present state and leave it as it is: a read-only call, and a fire that is tried.

What they write stays in an overlay that is thrown away, and nobody pays.
"""

from msgspec.structs import replace

from trailboss.execution.frames import run_handler
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockContext, BlockSession, Envelope, Scope
from trailboss.execution.timers import remove_timer
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Follower
from trailboss.model.blocks import Origin
from trailboss.model.timers import Timer, TimerEnd
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Amount, Cells, Cycles, Price
from trailboss.state.overlay import Overlay
from trailboss.state.store import KeyValue
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine, Outcome
from trailboss.vm.failures import exhaustion, located
from trailboss.vm.meter import Meter, OutOfGas


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
) -> Outcome:
    """Run a handler as the block of ``context`` would, in a read-only frame over state that stays as it is.

    Source: cowboy-facts §2.3 (nested calls inherit it)

    Args:
        context: Facts of the block that the handler sees.
        store: Committed state.
        queue: Calendar queue over that state; only read.
        engine: What runs actor code.
        actor: Whose handler, 20 bytes.
        handler: Function or method.
        payload: Its argument.
        sender: Immediate caller that the handler sees, 20 bytes.
        meter: What it may use, and then what it has used.
    """
    envelope = Envelope(
        origin=Origin.TRANSACTION,
        origin_hash=ZERO_HASH,
        sender=sender,
        signer=sender,
        payer=sender,
        cycles_limit=Cycles(meter.cycles_limit),
        cells_limit=Cells(meter.cells_limit),
        prices=Prices(Price(0), Price(0)),
    )
    scope = _open_scope(context, store, queue, engine, envelope)
    return _run(scope, actor, handler, payload, sender=sender, meter=meter, read_only=True)


def try_fire(
    context: BlockContext,
    store: KeyValue,
    *,
    queue: TimerQueue,
    engine: Engine,
    timer: Timer,
    reserve: Amount,
) -> ErrorObject | None:
    """Run a live timer's handler as its fire in the block of ``context`` would, over state that stays as it is.

    Decision: D-96

    Args:
        context: Facts of the block that the handler sees.
        store: Committed state.
        queue: Calendar queue over that state; only read.
        engine: What runs actor code.
        timer: The timer, with what this fire of it brings.
        reserve: Base units that are held back from its payer while the handler runs, if it has them.

    Returns:
        What the fire would revert with; None if it would end well.
    """
    cells_limit = Cells(context.rules.timer.max_cells_per_fire)
    envelope = Envelope(
        origin=Origin.TIMER,
        origin_hash=ZERO_HASH,
        sender=timer.actor,
        signer=timer.actor,
        payer=timer.fee_payer,
        cycles_limit=timer.gas_limit,
        cells_limit=cells_limit,
        prices=Prices(Price(0), Price(0)),
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
    """Return a transaction over an overlay that nothing will ever be committed from."""
    overlay = Overlay(store)
    return Scope(
        BlockSession(context, overlay, Ledger(overlay), queue, engine, Follower(), MARKETS[context.rules.market.kind]),
        envelope,
    )


def _run(
    scope: Scope,
    actor: bytes,
    handler: str,
    payload: bytes,
    *,
    sender: bytes,
    meter: Meter,
    read_only: bool = False,
) -> Outcome:
    try:
        outcome = run_handler(scope, actor, handler, payload, sender=sender, meter=meter, read_only=read_only)
    except OutOfGas:
        outcome = Outcome(b"", None)
    exhausted = exhaustion(meter)
    if exhausted is not None:
        outcome = Outcome(b"", located(exhausted, outcome.error))
    return replace(outcome, printed=scope.printing.lines())
