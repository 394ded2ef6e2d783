"""What only `trailboss dev` does, to its clock, branches, balances and timers; and the faucet."""

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import U64, Nothing, Positive, choice, integer
from trailboss.api.routes.chain import HeightAnswer
from trailboss.api.routes.submission import INCLUDED, REFUSED, TIMEOUT_DEFAULT, WAITING, SubmissionOutcome
from trailboss.api.transaction_shape import INSTRUCTION_SCHEMA
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms
from trailboss.codec.layout import INSTRUCTION
from trailboss.index.answers.transactions import receipt_of
from trailboss.node.block_builder import ADVANCE_MAX
from trailboss.node.dev_controls import FAUCET_AMOUNT
from trailboss.node.options import BLOCK_TIME_MAX_MS, BLOCK_TIME_MS, Pace, Rhythm
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, U128_MAX

if TYPE_CHECKING:
    from trailboss.node.dev_controls import Development

routes: Final = Routes("development")
SUBMITTED: Final = "submitted"
PENDING: Final = "pending"
REFUSES: Final = (HttpReason.DEVELOPMENT_ONLY, HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE)
INSTRUCTION_RULE: Final = {"rule": "an instruction in the public JSON shape"}


class FaucetAsked(Nothing, frozen=True, kw_only=True):
    """A gift.

    Attributes:
        address: Account that receives it.
    """

    address: Address


class MineAsked(Nothing, frozen=True, kw_only=True):
    """Blocks to build.

    Attributes:
        blocks: Number of blocks.
    """

    blocks: Annotated[int, integer(ADVANCE_MAX, 1)] = 1


class AdvanceAsked(Nothing, frozen=True, kw_only=True):
    """Blocks to build.

    Attributes:
        height: U64 of the last block to build.
    """

    height: U64


class PaceAsked(Nothing, frozen=True, kw_only=True):
    """A pace.

    Attributes:
        pace: What makes the node build blocks.
        block_time_ms: Of `interval` and `auto`: milliseconds from one block to the next; `auto` takes 1,000 without it.
    """

    pace: Annotated[str, choice(*(each.value for each in Rhythm))]
    block_time_ms: Annotated[int, integer(BLOCK_TIME_MAX_MS)] = 0


class RevertAsked(Nothing, frozen=True, kw_only=True):
    """A snapshot.

    Attributes:
        snapshot: Number that /dev/snapshot answered.
    """

    snapshot: Positive


class ReorgAsked(Nothing, frozen=True, kw_only=True):
    """Blocks to drop.

    Attributes:
        depth: Number of blocks to drop.
        keep_transactions: Whether their transactions wait in the mempool again.
    """

    depth: Positive
    keep_transactions: bool = True


class WaitAsked(Nothing, frozen=True, kw_only=True):
    """A change that needs a block.

    Attributes:
        wait: Whether to wait for its block, at most 5,000 ms.
    """

    wait: bool = False


class BalanceAsked(WaitAsked, frozen=True, kw_only=True):
    """A balance.

    Attributes:
        address: Account.
        amount: Its new balance, base units.
    """

    address: Address
    amount: Annotated[int, integer(U128_MAX)]


class ImpersonationAsked(WaitAsked, frozen=True, kw_only=True):
    """A transaction without a signature.

    Attributes:
        sender: Account that sends it.
        instruction: What it does.
        cycles_limit: Most cycles that it may use.
        cells_limit: Most cells that it may use.
        max_priority_fee_per_cycle: Tip a cycle, base units.
        max_priority_fee_per_cell: Tip a cell, base units.
    """

    sender: Address
    instruction: Annotated[dict[str, Any], Meta(extra_json_schema=INSTRUCTION_SCHEMA, extra=INSTRUCTION_RULE)]
    cycles_limit: U64 = CYCLES_LIMIT
    cells_limit: U64 = CELLS_LIMIT
    max_priority_fee_per_cycle: U64 = 0
    max_priority_fee_per_cell: U64 = 0


class TimerChangeAsked(WaitAsked, frozen=True, kw_only=True):
    """A timer.

    Attributes:
        timer_id: Id of the timer.
    """

    timer_id: Hash32


class HoldAsked(TimerChangeAsked, frozen=True, kw_only=True):
    """A timer to hold.

    Attributes:
        until: U64 until which to hold it; the last one at which it may fire if left out.
    """

    until: U64 | None = None


class PaceAnswer(Struct, frozen=True):
    """What makes the node build blocks.

    Attributes:
        pace: ``interval``, ``auto`` or ``manual``.
        block_time_ms: Milliseconds from one block to the next; 0 under ``manual``.
    """

    pace: str
    block_time_ms: int


class SnapshotAnswer(Struct, frozen=True):
    """A point to go back to.

    Attributes:
        snapshot: Its number, for ``/dev/revert``.
    """

    snapshot: int


class FaucetAnswer(Struct, frozen=True, kw_only=True):
    """A gift that is on its way.

    Attributes:
        status: ``submitted``.
        finality: ``pending``: it waits for a block.
        tx_hash: Of the transaction that brings it.
        amount: Base units.
        amount_cby: The same in CBY.
    """

    status: str
    finality: str
    tx_hash: Hash32
    amount: int
    amount_cby: int


@routes.post("/faucet", refuses=REFUSES)
async def faucet(call: Call, asked: FaucetAsked) -> FaucetAnswer:
    """Give an account 5,000 CBY. Only a development chain has a faucet."""
    tx_hash = await _development(call).faucet(asked.address)
    return FaucetAnswer(
        status=SUBMITTED,
        finality=PENDING,
        tx_hash=tx_hash,
        amount=FAUCET_AMOUNT,
        amount_cby=FAUCET_AMOUNT // BASE_UNITS_PER_CBY,
    )


@routes.post("/dev/mine", refuses=REFUSES)
async def dev_mine(call: Call, asked: MineAsked) -> HeightAnswer:
    """Build blocks at once, the first one from the mempool."""
    return HeightAnswer(await _development(call).mine(asked.blocks))


@routes.post("/dev/advance", refuses=REFUSES)
async def dev_advance(call: Call, asked: AdvanceAsked) -> HeightAnswer:
    """Build blocks up to a height; every due timer runs in its own block."""
    return HeightAnswer(await _development(call).advance(asked.height))


@routes.post("/dev/pace", refuses=REFUSES)
async def dev_pace(call: Call, asked: PaceAsked) -> PaceAnswer:
    """Set the pace of blocks: at an interval, one for each transaction and for timers, or only on request."""
    development = _development(call)
    try:
        rhythm = Rhythm(asked.pace)
        pace = Pace(rhythm, asked.block_time_ms or (BLOCK_TIME_MS if rhythm is Rhythm.AUTO else 0))
    except ConfigurationError as error:
        raise HttpError(HttpReason.INVALID_VALUE, str(error), parameter="block_time_ms") from None
    await development.set_pace(pace)
    return PaceAnswer(pace.rhythm.value, pace.block_time_ms)


@routes.post("/dev/snapshot", refuses=REFUSES)
async def dev_snapshot(call: Call) -> SnapshotAnswer:
    """Save the present state of chain and mempool."""
    return SnapshotAnswer(await _development(call).snapshot())


@routes.post("/dev/revert", refuses=REFUSES)
async def dev_revert(call: Call, asked: RevertAsked) -> HeightAnswer:
    """Go back to a snapshot: state, clock, timers, fees and mempool. Later snapshots are dropped."""
    return HeightAnswer(await _development(call).revert(asked.snapshot))


@routes.post("/dev/reorg", refuses=REFUSES)
async def dev_reorg(call: Call, asked: ReorgAsked) -> HeightAnswer:
    """Drop the last blocks, as when another branch wins."""
    return HeightAnswer(await _development(call).reorg(asked.depth, keep_transactions=asked.keep_transactions))


@routes.post("/dev/set_balance", refuses=REFUSES)
async def dev_set_balance(call: Call, asked: BalanceAsked) -> SubmissionOutcome:
    """Set a balance; a missing account is created, and the supply changes with it."""
    return await _sent(call, asked, await _development(call).set_balance(asked.address, asked.amount))


@routes.post("/dev/impersonate", refuses=REFUSES)
async def dev_impersonate(call: Call, asked: ImpersonationAsked) -> SubmissionOutcome:
    """Send a transaction of any account, without its key."""
    development = _development(call)
    instruction = INSTRUCTION.parse(asked.instruction, "instruction")
    terms = Terms(
        cycles_limit=asked.cycles_limit,
        cells_limit=asked.cells_limit,
        max_priority_fee_per_cycle=asked.max_priority_fee_per_cycle,
        max_priority_fee_per_cell=asked.max_priority_fee_per_cell,
    )
    return await _sent(call, asked, await development.impersonate(asked.sender, instruction, terms))


@routes.post("/dev/hold", refuses=REFUSES)
async def dev_hold(call: Call, asked: HoldAsked) -> SubmissionOutcome:
    """Hold a timer until a height, or until the last one at which it may fire."""
    return await _sent(call, asked, await _development(call).hold(asked.timer_id, asked.until))


@routes.post("/dev/force", refuses=REFUSES)
async def dev_force(call: Call, asked: TimerChangeAsked) -> SubmissionOutcome:
    """Make a timer due as early as possible."""
    return await _sent(call, asked, await _development(call).force(asked.timer_id))


@routes.post("/dev/drop", refuses=REFUSES)
async def dev_drop(call: Call, asked: TimerChangeAsked) -> SubmissionOutcome:
    """Remove a timer without running it."""
    return await _sent(call, asked, await _development(call).drop(asked.timer_id))


def _development(call: Call) -> "Development":
    development = call.node.development
    if development is None:
        raise HttpError(HttpReason.DEVELOPMENT_ONLY, "this node does not run as `trailboss dev`")
    return development


async def _sent(call: Call, asked: WaitAsked, tx_hash: Hash32) -> SubmissionOutcome:
    """Return the result of a transaction that was just sent, after the wait that the client asked for."""
    outcome = await call.node.outcome(tx_hash, TIMEOUT_DEFAULT) if asked.wait else None
    call.look_again()
    if outcome is not None and outcome.rejection is not None:
        return SubmissionOutcome(tx_hash=tx_hash, status=REFUSED, error=outcome.rejection.error(), receipt=None)
    receipt = None
    if outcome is not None and outcome.block is not None and outcome.place is not None:
        receipt = receipt_of(outcome.block, outcome.place)
    return SubmissionOutcome(
        tx_hash=tx_hash, status=WAITING if receipt is None else INCLUDED, error=None, receipt=receipt
    )
