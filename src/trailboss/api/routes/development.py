"""What only `trailboss dev` does: to its clock, its branches, its balances and its timers. And the faucet."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.kinds import ADDRESS, BOOLEAN, HASH, HEIGHT, choice, integer, structure
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import member, member_or, required_member
from trailboss.api.routes.submission import INCLUDED, REFUSED, TIMEOUT_DEFAULT, WAITING, SubmissionOutcome
from trailboss.api.transaction_shape import INSTRUCTION_SCHEMA
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms
from trailboss.codec.layout import INSTRUCTION
from trailboss.index.answers.transactions import receipt_of
from trailboss.node.block_builder import ADVANCE_MAX
from trailboss.node.dev_controls import FAUCET_AMOUNT
from trailboss.node.options import BLOCK_TIME_MAX_MS, BLOCK_TIME_MS, Pace, Rhythm
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, U128_MAX

if TYPE_CHECKING:
    from trailboss.node.dev_controls import Development

routes: Final = Routes("development")
SUBMITTED: Final = "submitted"
PENDING: Final = "pending"
REFUSES: Final = (HttpReason.DEVELOPMENT_ONLY, HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE)

BLOCKS: Final = member_or("blocks", integer(ADVANCE_MAX, 1), "How many.", 1)
TO_HEIGHT: Final = required_member("height", HEIGHT, "Height of the last block to build.")
SNAPSHOT: Final = required_member("snapshot", integer(minimum=1), "Number that /dev/snapshot answered.")
DEPTH: Final = required_member("depth", integer(minimum=1), "Blocks to drop.")
KEEP: Final = member_or("keep_transactions", BOOLEAN, "Whether their transactions wait in the mempool again.", True)
ADDRESS_MEMBER: Final = required_member("address", ADDRESS, "Whose.")
AMOUNT: Final = required_member("amount", integer(U128_MAX), "Base units that it holds from then on.")
SENDER: Final = required_member("sender", ADDRESS, "Who sends it.")
INSTRUCTION_MEMBER: Final = required_member(
    "instruction", structure("an instruction in the public JSON shape", INSTRUCTION_SCHEMA), "What it does."
)
CYCLES: Final = member_or("cycles_limit", integer(), "Most cycles that it may use.", CYCLES_LIMIT)
CELLS: Final = member_or("cells_limit", integer(), "Most cells that it may use.", CELLS_LIMIT)
CYCLE_TIP: Final = member_or("max_priority_fee_per_cycle", integer(), "Tip a cycle, base units.", 0)
CELL_TIP: Final = member_or("max_priority_fee_per_cell", integer(), "Tip a cell, base units.", 0)
TIMER: Final = required_member("timer_id", HASH, "Which timer.")
UNTIL: Final = member("until", HEIGHT, "Height to hold it back to; the last one at which it may fire if left out.")
RHYTHM: Final = required_member("pace", choice(*(each.value for each in Rhythm)), "What makes it build blocks.")
BLOCK_TIME: Final = member_or(
    "block_time_ms",
    integer(BLOCK_TIME_MAX_MS),
    "Of `interval` and `auto`: milliseconds from one block to the next; `auto` takes 1,000 without it.",
    0,
)
WAIT: Final = member_or("wait", BOOLEAN, f"Whether to wait for its block, at most {TIMEOUT_DEFAULT:,} ms.", False)


class HeightAnswer(Struct, frozen=True):
    """Where the chain stands then.

    Attributes:
        height: Of the last block.
    """

    height: int


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


@routes.post("/faucet", ADDRESS_MEMBER, answers=FaucetAnswer, refuses=REFUSES)
async def faucet(call: Call) -> FaucetAnswer:
    """Give an account 5,000 CBY. A development chain alone has a faucet."""
    tx_hash = await _development(call).faucet(call[ADDRESS_MEMBER])
    return FaucetAnswer(
        status=SUBMITTED,
        finality=PENDING,
        tx_hash=tx_hash,
        amount=FAUCET_AMOUNT,
        amount_cby=FAUCET_AMOUNT // BASE_UNITS_PER_CBY,
    )


@routes.post("/dev/mine", BLOCKS, answers=HeightAnswer, refuses=REFUSES)
async def dev_mine(call: Call) -> HeightAnswer:
    """Build blocks at once, the first of what waits in the mempool."""
    return HeightAnswer(await _development(call).mine(call[BLOCKS]))


@routes.post("/dev/advance", TO_HEIGHT, answers=HeightAnswer, refuses=REFUSES)
async def dev_advance(call: Call) -> HeightAnswer:
    """Build blocks up to a height; every due timer runs in its own block."""
    return HeightAnswer(await _development(call).advance(call[TO_HEIGHT]))


@routes.post("/dev/pace", RHYTHM, BLOCK_TIME, answers=PaceAnswer, refuses=REFUSES)
async def dev_pace(call: Call) -> PaceAnswer:
    """Build blocks at another pace: one every so often, one for each transaction and for timers, or only when asked."""
    development = _development(call)
    try:
        rhythm = Rhythm(call[RHYTHM])
        pace = Pace(rhythm, call[BLOCK_TIME] or (BLOCK_TIME_MS if rhythm is Rhythm.AUTO else 0))
    except ConfigurationError as error:
        raise HttpError(HttpReason.INVALID_VALUE, str(error), parameter=BLOCK_TIME.name) from None
    await development.set_pace(pace)
    return PaceAnswer(pace.rhythm.value, pace.block_time_ms)


@routes.post("/dev/snapshot", answers=SnapshotAnswer, refuses=REFUSES)
async def dev_snapshot(call: Call) -> SnapshotAnswer:
    """Remember the present point of chain and mempool."""
    return SnapshotAnswer(await _development(call).snapshot())


@routes.post("/dev/revert", SNAPSHOT, answers=HeightAnswer, refuses=REFUSES)
async def dev_revert(call: Call) -> HeightAnswer:
    """Go back to a snapshot: state, clock, timers, fees, and what waits. Later snapshots are forgotten."""
    return HeightAnswer(await _development(call).revert(call[SNAPSHOT]))


@routes.post("/dev/reorg", DEPTH, KEEP, answers=HeightAnswer, refuses=REFUSES)
async def dev_reorg(call: Call) -> HeightAnswer:
    """Drop the last blocks, as when another branch wins."""
    return HeightAnswer(await _development(call).reorg(call[DEPTH], keep_transactions=call[KEEP]))


@routes.post("/dev/set_balance", ADDRESS_MEMBER, AMOUNT, WAIT, answers=SubmissionOutcome, refuses=REFUSES)
async def dev_set_balance(call: Call) -> SubmissionOutcome:
    """Set a balance; the account is made if there is none, and the supply moves with it."""
    return await _sent(call, await _development(call).set_balance(call[ADDRESS_MEMBER], call[AMOUNT]))


@routes.post(
    "/dev/impersonate",
    SENDER,
    INSTRUCTION_MEMBER,
    CYCLES,
    CELLS,
    CYCLE_TIP,
    CELL_TIP,
    WAIT,
    answers=SubmissionOutcome,
    refuses=REFUSES,
)
async def dev_impersonate(call: Call) -> SubmissionOutcome:
    """Send a transaction of any account, without its key."""
    development = _development(call)
    instruction = INSTRUCTION.parse(call[INSTRUCTION_MEMBER], INSTRUCTION_MEMBER.name)
    terms = Terms(
        cycles_limit=call[CYCLES],
        cells_limit=call[CELLS],
        max_priority_fee_per_cycle=call[CYCLE_TIP],
        max_priority_fee_per_cell=call[CELL_TIP],
    )
    return await _sent(call, await development.impersonate(call[SENDER], instruction, terms))


@routes.post("/dev/hold", TIMER, UNTIL, WAIT, answers=SubmissionOutcome, refuses=REFUSES)
async def dev_hold(call: Call) -> SubmissionOutcome:
    """Hold a timer back: to a height, or to the last one at which it may fire."""
    return await _sent(call, await _development(call).hold(call[TIMER], call[UNTIL]))


@routes.post("/dev/force", TIMER, WAIT, answers=SubmissionOutcome, refuses=REFUSES)
async def dev_force(call: Call) -> SubmissionOutcome:
    """Make a timer due as early as can be."""
    return await _sent(call, await _development(call).force(call[TIMER]))


@routes.post("/dev/drop", TIMER, WAIT, answers=SubmissionOutcome, refuses=REFUSES)
async def dev_drop(call: Call) -> SubmissionOutcome:
    """Take a timer away without running it."""
    return await _sent(call, await _development(call).drop(call[TIMER]))


def _development(call: Call) -> "Development":
    development = call.node.development
    if development is None:
        raise HttpError(HttpReason.DEVELOPMENT_ONLY, "this node does not run as `trailboss dev`")
    return development


async def _sent(call: Call, tx_hash: Hash32) -> SubmissionOutcome:
    """Return what became of a transaction that has just been sent, as far as the client wants to wait for it."""
    outcome = await call.node.outcome(tx_hash, TIMEOUT_DEFAULT) if call[WAIT] else None
    call.look_again()
    if outcome is not None and outcome.rejection is not None:
        return SubmissionOutcome(tx_hash=tx_hash, status=REFUSED, error=outcome.rejection.error(), receipt=None)
    receipt = None
    if outcome is not None and outcome.block is not None and outcome.place is not None:
        receipt = receipt_of(outcome.block, outcome.place)
    return SubmissionOutcome(
        tx_hash=tx_hash, status=WAITING if receipt is None else INCLUDED, error=None, receipt=receipt
    )
