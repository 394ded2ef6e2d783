"""A read-only call: a handler runs on the present state, may change nothing, and nobody pays."""

from msgspec.structs import replace

from trailboss.execution.frames import run_handler
from trailboss.execution.ledger import Ledger
from trailboss.execution.session import BlockContext, BlockSession, Envelope, Scope
from trailboss.fees.settlement import Prices
from trailboss.mechanisms.base import Memoryless
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Cells, Cycles, Price
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
    overlay = Overlay(store)
    session = BlockSession(context, overlay, Ledger(overlay), queue, engine, Memoryless())
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
    scope = Scope(session, envelope)
    try:
        outcome = run_handler(scope, actor, handler, payload, sender=sender, meter=meter, read_only=True)
    except OutOfGas:
        outcome = Outcome(b"", None)
    exhausted = exhaustion(meter)
    if exhausted is not None:
        outcome = Outcome(b"", located(exhausted, outcome.error))
    return replace(outcome, printed=scope.printing.lines())
