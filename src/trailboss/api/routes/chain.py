"""Where the chain stands, its blocks, its rules."""

from typing import Final

from msgspec import Struct

from trailboss.api.common import BLOCK_NAME, LIMIT, OFFSET, find_block, missing
from trailboss.api.errors import HttpReason
from trailboss.api.kinds import words
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import query
from trailboss.index.answers.blocks import BlockSummary, BlockView, block_view, recent_summaries
from trailboss.model.markets import MarketKind
from trailboss.views.settings import Setting, lies_under, settings_of
from trailboss.views.status import ChainStatus, status_of

routes: Final = Routes("chain")
PATH_CHARACTERS_MAX: Final = 64
PARAMETER_PATH: Final = query("path", words(PATH_CHARACTERS_MAX), "Only what lies under this dotted path, as `timers`.")


class Height(Struct, frozen=True):
    """How high the chain is.

    Attributes:
        height: Of the last block.
    """

    height: int


class BasefeeAnswer(Struct, frozen=True, kw_only=True):
    """What the next block asks at least, base units.

    Attributes:
        height: Of the last block.
        cycle_basefee: For a cycle of a transaction.
        cell_basefee: For a cell of a transaction.
        timer_cycle_basefee: For a cycle of a fire.
        timer_cell_basefee: For a cell of a fire.
        lane_basefee: For a cycle of a fire besides, in the timer lane; None before its activation.
    """

    height: int
    cycle_basefee: int
    cell_basefee: int
    timer_cycle_basefee: int
    timer_cell_basefee: int
    lane_basefee: int | None


class BlockPage(Struct, frozen=True):
    """Blocks, the latest first.

    Attributes:
        height: Of the last block.
        total_count: How many there are.
        blocks: From ``offset`` on.
    """

    height: int
    total_count: int
    blocks: list[BlockSummary]


class Parameters(Struct, frozen=True):
    """The parameters in force in the next block.

    Attributes:
        preset: What they come from.
        parameters: By subject.
    """

    preset: str
    parameters: list[Setting]


@routes.get("/height", answers=Height)
async def height(call: Call) -> Height:
    """Tell how high the chain is."""
    return Height(call.view.height)


@routes.get("/basefee", answers=BasefeeAnswer)
async def basefee(call: Call) -> BasefeeAnswer:
    """Tell the basefees of the next block."""
    rules = call.view.rules()
    cycle, cell = rules.user_basefees()
    timer_cycle, timer_cell = rules.timer_basefees()
    return BasefeeAnswer(
        height=call.view.height,
        cycle_basefee=cycle,
        cell_basefee=cell,
        timer_cycle_basefee=timer_cycle,
        timer_cell_basefee=timer_cell,
        lane_basefee=None if rules.market.kind is not MarketKind.LANE else rules.market.basefee,
    )


@routes.get("/block/{block}", BLOCK_NAME, OFFSET, LIMIT, answers=BlockView, refuses=(HttpReason.NOT_FOUND,))
def block(call: Call) -> BlockView:
    """Look at one block: its header, and a page of its transactions, receipts and own events."""
    return block_view(find_block(call, call[BLOCK_NAME]), call[OFFSET], call[LIMIT])


@routes.get("/blocks", OFFSET, LIMIT, answers=BlockPage)
def blocks(call: Call) -> BlockPage:
    """List blocks, the latest first."""
    view = call.view
    return BlockPage(view.height, view.height + 1, recent_summaries(view, call[OFFSET], call[LIMIT]))


@routes.get("/status", answers=ChainStatus)
def status(call: Call) -> ChainStatus:
    """Tell where the chain stands: roots, money, timers, mechanism."""
    return status_of(call.view)


@routes.get("/params", PARAMETER_PATH, answers=Parameters, refuses=(HttpReason.NOT_FOUND,))
def params(call: Call) -> Parameters:
    """Tell the parameters in force in the next block, and who set them."""
    wanted = call[PARAMETER_PATH]
    found = list(settings_of(call.view))
    if wanted is not None:
        found = [each for each in found if lies_under(each.path, wanted)]
        if not found:
            raise missing(f"there is no parameter {wanted!r}", path=wanted)
    return Parameters(call.view.genesis.preset, found)
