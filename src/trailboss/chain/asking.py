"""Asking an actor: a handler run read-only, with an answer for people."""

from trailboss.chain.chain import Chain
from trailboss.chain.views import Answer, printed_views
from trailboss.primitives.octets import Address
from trailboss.vm.meter import Meter


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
    """Run a handler read-only, as the next block would; nothing changes and nobody pays.

    Args:
        chain: Where.
        actor: Whose handler.
        handler: Function or method.
        payload: Its argument.
        sender: Immediate caller that the handler sees.
        cycles_limit: Most cycles it may use; None for those of a block.
        cells_limit: Most cells it may use; None for those of a block.
    """
    limits = chain.params.limits
    meter = Meter(
        limits.block_cycles_max if cycles_limit is None else cycles_limit,
        limits.block_cells_max if cells_limit is None else cells_limit,
    )
    outcome = chain.ask(actor, handler, payload, sender=sender, meter=meter)
    printed = printed_views(outcome.printed, chain.height)
    return Answer(outcome.return_value, outcome.error, meter.cycles_charged, meter.cells_charged, printed)
