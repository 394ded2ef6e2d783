"""Handlers that run on a chain and leave it as it is: asked read-only, or tried as the fire of a timer."""

from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.execution.read_only_call import ask, try_fire
from trailboss.metering.meter import Meter
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX, Amount, Height
from trailboss.views.explain.life import reserve_of
from trailboss.views.mechanism.registry import views_for
from trailboss.views.records import Answer, printed_views


def ask_actor(
    chain: Chain,
    actor: Address,
    handler: str,
    payload: bytes,
    *,
    sender: Address,
    cycles_limit: int | None = None,
    cells_limit: int | None = None,
) -> Answer:
    """Run a handler read-only, as the next block would, within given limits or those of a block; it costs nothing."""
    limits = chain.params.limits
    meter = Meter(
        limits.block_cycles_max if cycles_limit is None else cycles_limit,
        limits.block_cells_max if cells_limit is None else cells_limit,
    )
    outcome = ask(
        chain.next_context(),
        chain.store,
        queue=chain.queue,
        engine=chain.engine,
        actor=actor,
        handler=handler,
        payload=payload,
        sender=sender,
        meter=meter,
    )
    printed = printed_views(outcome.printed, chain.height)
    return Answer(outcome.return_value, outcome.error, *meter.charged(), printed)


def try_timer(chain: Chain, timer: Timer) -> ErrorObject | None:
    """Run a live timer's handler as its next fire would, on the present state; it changes nothing and costs nothing.

    The handler sees the height at which the timer is due, or that of the next block if it is due already. What its fire
    reserves at the present basefees is held back from its payer, as far as the payer has it. Decision: D-96.

    Returns:
        What the fire would revert with; None if it would end well.
    """
    rules, context, views = chain.rules(), chain.next_context(), views_for(chain)
    later = 0 if views.is_watch(timer) else max(0, timer.height - context.height)
    timestamp_ms = context.timestamp_ms + later * chain.params.governance.block_interval_ms
    return try_fire(
        replace(context, height=Height(context.height + later), timestamp_ms=min(timestamp_ms, U64_MAX)),
        chain.store,
        queue=chain.queue,
        engine=chain.engine,
        timer=views.next_fire(rules, timer),
        reserve=Amount(reserve_of(chain, timer)),
    )
