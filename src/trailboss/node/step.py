"""What the chain thread tells the event loop after each step of the chain."""

from collections.abc import Mapping

from msgspec import Struct, field

from trailboss.chain.view import ChainView
from trailboss.model.blocks import Block
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32


class Published(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """One step of the chain, after the index has it.

    Attributes:
        view: The chain after the step.
        blocks: The blocks that came, ascending; none if the chain only went back.
        reorg_from: Height of the last block that is left of the chain before, if blocks were dropped: those above it
            are gone. None if the chain went on from where it was.
        refused: Transactions that waited and now wait no more, though no block holds them, each with the reason.
        seconds: Time that building and publishing took.
        late: Seconds that a block of the interval came after its place in the grid; None for any other step.
    """

    view: ChainView
    blocks: tuple[Block, ...] = ()
    reorg_from: int | None = None
    refused: Mapping[Hash32, Rejection] = field(default_factory=dict)
    seconds: float = 0.0
    late: float | None = None
