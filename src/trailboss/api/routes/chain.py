"""Height, blocks and parameters of the chain."""

from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import malformed, missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import BLOCK_RULE, LATEST, LIMIT_DEFAULT, PATH, U64, BlockName, Limit, Offset, text
from trailboss.chain.outcomes import BlockOutcome, outcome_of
from trailboss.chain.view import ChainView
from trailboss.index.answers.blocks import BlockSummary, BlockView, block_view, recent_summaries
from trailboss.model.blocks import Block
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.status import ChainStatus, Setting, lies_under, settings_of, status_of

routes: Final = Routes("chain")
PATH_CHARACTERS_MAX: Final = 64
HASH_CHARACTERS_MIN: Final = 64


class HeightAnswer(Struct, frozen=True):
    """How high the chain is."""

    height: int


class BasefeeAnswer(Struct, frozen=True, kw_only=True):
    """What the next block asks at least, base units."""

    height: int
    cycle_basefee: int  # for a cycle of a transaction
    cell_basefee: int  # for a cell of a transaction
    timer_cycle_basefee: int  # for a cycle of a fire
    timer_cell_basefee: int  # for a cell of a fire
    lane_basefee: int | None  # on top of the cycle basefee, in the timer lane; None before its activation


class BlockPage(Struct, frozen=True):
    """Blocks, the latest first."""

    height: int
    total_count: int
    blocks: list[BlockSummary]


class Parameters(Struct, frozen=True):
    """The parameters in force in the next block."""

    preset: str  # what they come from
    parameters: list[Setting]  # by subject


@routes.get("/height")
async def height(call: Call) -> HeightAnswer:
    """Return the height of the chain."""
    return HeightAnswer(call.view.height)


@routes.get("/basefee")
async def basefee(call: Call) -> BasefeeAnswer:
    """Return the basefees of the next block."""
    rules = call.view.rules()
    cycle, cell = rules.user_basefees()
    timer_cycle, timer_cell = rules.timer_basefees()
    return BasefeeAnswer(
        height=call.view.height,
        cycle_basefee=cycle,
        cell_basefee=cell,
        timer_cycle_basefee=timer_cycle,
        timer_cell_basefee=timer_cell,
        lane_basefee=rules.market.lane_basefee,
    )


@routes.get("/block/{block}", refuses=NOT_FOUND)
def block(
    call: Call,
    *,
    block: BlockName,  # height or hash of the block, or `latest`
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> BlockView:
    """Return one block: its header, and a page of its transactions, receipts and own events."""
    return block_view(find_block(call, block), offset, limit)


@routes.get("/blocks")
def blocks(call: Call, *, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT) -> BlockPage:
    """List blocks, the latest first."""
    view = call.view
    return BlockPage(view.height, view.height + 1 - view.blocks.base, recent_summaries(view, offset, limit))


@routes.get("/status")
def status(call: Call) -> ChainStatus:
    """Return the state of the chain: roots, money, timers, mechanism."""
    return status_of(call.view)


@routes.get("/params", refuses=NOT_FOUND)
def params(
    call: Call,
    *,
    path: Annotated[str, text(PATH_CHARACTERS_MAX)] | None = None,  # only what lies under this dotted path, as `timers`
) -> Parameters:
    """Return the parameters in force in the next block, and who set them."""
    found = list(settings_of(call.view))
    if path is not None:
        found = [each for each in found if lies_under(each.path, path)]
        if not found:
            raise missing(f"there is no parameter {path!r}", path=path)
    return Parameters(call.view.genesis.preset, found)


def find_block(call: Call, name: str) -> Block:
    """Return the block of a height, of a hash, or the latest.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain has no such block; ``BAD_REQUEST`` for a height above 64 bits.
    """
    view = call.view
    if name == LATEST:
        return view.head
    if len(name) < HASH_CHARACTERS_MIN:
        if int(name) > U64_MAX:
            raise malformed(PATH, "block", name, BLOCK_RULE)
        return block_at(view, int(name))
    tx_hash = Hash32.parse(name)
    height = call.node.index.block_height(tx_hash, view.blocks)
    if height is None:
        raise missing(f"there is no block {tx_hash}", block=str(tx_hash))
    return view.blocks[height]


def block_at(view: ChainView, height: int) -> Block:
    """Return the block of a height.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain is not that high.
        Rejection: ``NOT_FOUND`` if it lies below the first block that this node has.
    """
    if height > view.height:
        raise missing(f"there is no block {height}: the chain is at height {view.height}", height=height)
    return view.blocks[height]


@routes.get("/block/{height}/outcome", refuses=NOT_FOUND)
async def outcome(call: Call, *, height: U64) -> BlockOutcome:
    """Return a recent block as the node keeps it, and what it changed in the state: for comparing two nodes."""
    return await call.node.do(lambda builder: outcome_of(builder.chain, height))
