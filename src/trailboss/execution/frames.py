"""Frames: running a handler of an actor, from a transaction or from another actor's call."""

from typing import Final

from trailboss.execution.checks import no_actor
from trailboss.execution.host import ChainHost
from trailboss.execution.session import Scope
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.failures import exhaustion, traceback_of
from trailboss.vm.meter import Meter, OutOfGas

CREATION_HANDLERS: Final = ("init", "deploy")
"""What the creation call runs if the transaction names no handler: the first that the source has. Decision: D-36."""


def run_handler(
    scope: Scope,
    actor: bytes,
    handler: str,
    payload: bytes,
    *,
    sender: bytes,
    meter: Meter,
    depth: int = 0,
    read_only: bool = False,
    creation: bool = False,
) -> FrameOutcome:
    """Run one handler in a frame of its own. Its changes stay: the caller reverts them if the outcome has an error.

    Only the creation call may run `CREATION_HANDLERS`. The meter, if it can, pays for the frame's base.

    Spec: CIP-5 §5.2. Decision: D-24 (a missing actor or handler is a failure that costs the frame's base), D-32, D-36

    Raises:
        OutOfGas: If it cannot.
    """
    ledger = scope.session.ledger
    # CHARGE
    meter.charge_cycles(scope.session.context.rules.params.costs.frame_base)
    # CHECK
    if handler in CREATION_HANDLERS and not creation:
        what = f"{handler} of {Address(actor)} is called after its creation"
        return FrameOutcome(b"", Rejection(RejectionReason.CALL_NOT_PERMITTED, what, handler=handler).error())
    account = ledger.find(actor)
    if account is None or not account.code_hash:
        return FrameOutcome(b"", no_actor(actor).error())
    # RUN
    frame = Frame(
        source=ledger.code(account),
        code_hash=account.code_hash,
        actor=actor,
        deployer=account.owner,
        handler=handler,
        payload=payload,
        read_only=read_only,
        depth=depth,
    )
    host = ChainHost(scope=scope, frame=frame, sender=sender, meter=meter, call=call_actor)
    return scope.session.engine.run(frame, host, meter)


def call_actor(caller: ChainHost, target: bytes, handler: str, payload: bytes, cycles_limit: int) -> bytes:
    """Run a handler of another actor within a frame, and return what it returns.

    A call of an actor to itself keeps the outer sender; every other callee sees the calling actor.

    Source: cowboy-facts §2.3, §3

    Raises:
        Rejection: ``FORBIDDEN`` beyond the greatest depth, ``NOT_FOUND`` without such an actor, else ``PVM_ERROR`` with
            the callee's failure; its changes are rolled back, what it used is charged.
        OutOfGas: If what the callee used exhausts the caller.
    """
    scope, frame = caller.scope, caller.frame
    # CHECK
    depth, limit = frame.depth + 1, scope.session.context.rules.params.limits.call_depth_max
    if depth > limit:
        raise Rejection(RejectionReason.FORBIDDEN, f"call depth {depth} is over the limit of {limit}", depth=depth)
    # CHARGE
    meter = Meter(min(cycles_limit, caller.meter.cycles_left), caller.meter.cells_left)
    # RUN
    mark = scope.mark()
    try:
        outcome = run_handler(
            scope,
            target,
            handler,
            payload,
            sender=caller.sender if target == frame.actor else frame.actor,
            meter=meter,
            depth=depth,
            read_only=frame.read_only,
        )
    except OutOfGas:
        outcome = FrameOutcome(b"", exhaustion(meter))
    # SETTLE
    error = outcome.error
    if error is not None:
        scope.revert(mark)
    caller.meter.charge_cells(meter.cells_charged)
    caller.meter.charge_cycles(meter.cycles_charged)
    if error is None:
        return outcome.return_value
    is_missing = error.code == RejectionReason.ACTOR_NOT_FOUND.code
    raise Rejection(
        RejectionReason.NOT_FOUND if is_missing else RejectionReason.PVM_ERROR,
        f"call of {handler} on {Address(target)} failed: E{error.code} {error.slug}: {error.what}",
        target=str(Address(target)),
        handler=handler,
        callee_code=error.code,
        callee_traceback="\n".join((f"in {handler} of {Address(target)}:", *traceback_of(error))),
    )
