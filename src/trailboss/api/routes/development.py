"""What only `trailboss dev` does, to its clock, branches, balances and timers; and the faucet."""

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct, ValidationError

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import U64, Positive, choice, integer, octets, text, unhex
from trailboss.api.routes.chain import HeightAnswer
from trailboss.api.routes.submission import TIMEOUT_DEFAULT, SubmissionOutcome, outcome_answer
from trailboss.api.transaction_shape import INSTRUCTION_RULE, INSTRUCTION_SCHEMA
from trailboss.chain.crowd import BLOCKS, LOAD, Storm
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms
from trailboss.chain.jobs import JOBS_MAX, read_answer
from trailboss.codec.layout import INSTRUCTION
from trailboss.model.transactions import ClearMocks, SetBalance, SetCode, SetMock, SetStorage
from trailboss.node.block_builder import ADVANCE_MAX
from trailboss.node.dev_controls import FAUCET_AMOUNT
from trailboss.node.options import BLOCK_TIME_MAX_MS, BLOCK_TIME_MS, Pace, Rhythm
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, U32_MAX, U128_MAX

if TYPE_CHECKING:
    from trailboss.node.dev_controls import Development

routes: Final = Routes("development")
REFUSES: Final = (HttpReason.DEVELOPMENT_ONLY, HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE)
CONGESTION: Final = "congestion"
BLOCKS_MAX: Final = 1_000
PERCENT: Final = 100
LOAD_PERCENT: Final = round(LOAD * PERCENT)
LOAD_PERCENT_MAX: Final = 10_000
ANSWER_RULE: Final = {"rule": 'an object: {"value": …}, or {"failure": reason} if the chain gives up on the job'}
OCTETS_MAX: Final = 1_000_000  # bytes of a source, a slot, a payload or an answer
WORDS_MAX: Final = 1_000  # characters of a handler or a message


class PaceAnswer(Struct, frozen=True):
    """What makes the node build blocks."""

    pace: str  # ``interval``, ``auto``, ``due`` or ``manual``
    block_time_ms: int  # milliseconds from one block to the next; 0 under ``due`` and ``manual``


class CrowdAnswer(Struct, frozen=True):
    """A crowd on its way."""

    tx_hashes: list[Hash32]  # of its transactions, which wait for a block


class SnapshotAnswer(Struct, frozen=True):
    """A point to go back to."""

    snapshot: int  # its number, for ``/dev/revert``


class FaucetAnswer(Struct, frozen=True):
    """A gift that is on its way."""

    status: str  # ``submitted``
    finality: str  # ``pending``: it waits for a block
    tx_hash: Hash32  # of the transaction that brings it
    amount: int  # base units
    amount_cby: int  # the same in CBY


@routes.post("/faucet", refuses=REFUSES)
async def faucet(call: Call, *, address: Address) -> FaucetAnswer:
    """Give an account 5,000 CBY. Only a development chain has a faucet."""
    tx_hash = await _development(call).faucet(address)
    amount_cby = FAUCET_AMOUNT // BASE_UNITS_PER_CBY
    return FaucetAnswer("submitted", "pending", tx_hash, amount=FAUCET_AMOUNT, amount_cby=amount_cby)


@routes.post("/dev/mine", refuses=REFUSES)
async def dev_mine(
    call: Call,
    *,
    blocks: Annotated[int, integer(ADVANCE_MAX, 1)] = 1,  # number of blocks
) -> HeightAnswer:
    """Build blocks at once, the first one from the mempool."""
    return HeightAnswer(await _development(call).mine(blocks))


@routes.post("/dev/advance", refuses=REFUSES)
async def dev_advance(
    call: Call,
    *,
    height: U64,  # height of the last block to build
) -> HeightAnswer:
    """Build blocks up to a height; every due timer runs in its own block."""
    return HeightAnswer(await _development(call).advance(height))


@routes.post("/dev/crowd", refuses=REFUSES)
async def dev_crowd(
    call: Call,
    *,
    kind: Annotated[str, choice(CONGESTION, *Storm)] = CONGESTION,  # what the crowd does
    blocks: Annotated[int, integer(BLOCKS_MAX, 1)] = BLOCKS,  # blocks whose cycles it asks for
    # Of `congestion`: cycles that it asks for in each block, in hundredths of what the fires of one may use.
    load_percent: Annotated[int, integer(LOAD_PERCENT_MAX, 1)] = LOAD_PERCENT,
) -> CrowdAnswer:
    """Let strangers schedule timers that compete with others: over several blocks, or all due at one height."""
    development = _development(call)
    if kind == CONGESTION:
        return CrowdAnswer(await development.congest(blocks, load_percent / PERCENT))
    return CrowdAnswer(await development.storm(kind, blocks))


@routes.post("/dev/pace", refuses=REFUSES)
async def dev_pace(
    call: Call,
    *,
    pace: Annotated[str, choice(*(each.value for each in Rhythm))],  # what makes the node build blocks
    # Of `interval` and `auto`: milliseconds from one block to the next; `auto` takes 1,000 without it.
    block_time_ms: Annotated[int, integer(BLOCK_TIME_MAX_MS)] = 0,
) -> PaceAnswer:
    """Set the pace of blocks: at an interval, for transactions and timers, up to the next timer, or only on request."""
    development = _development(call)
    try:
        rhythm = Rhythm(pace)
        wanted = Pace(rhythm, block_time_ms or (BLOCK_TIME_MS if rhythm is Rhythm.AUTO else 0))
    except ConfigurationError as error:
        raise HttpError(HttpReason.INVALID_VALUE, str(error), parameter="block_time_ms") from None
    await development.set_pace(wanted)
    return PaceAnswer(wanted.rhythm.value, wanted.block_time_ms)


@routes.post("/dev/snapshot", refuses=REFUSES)
async def dev_snapshot(call: Call) -> SnapshotAnswer:
    """Save the present state of chain and mempool."""
    return SnapshotAnswer(await _development(call).snapshot())


@routes.post("/dev/revert", refuses=REFUSES)
async def dev_revert(call: Call, *, snapshot: Positive) -> HeightAnswer:
    """Go back to a snapshot: state, clock, timers, fees and mempool. Later snapshots are dropped."""
    return HeightAnswer(await _development(call).revert(snapshot))


@routes.post("/dev/reorg", refuses=REFUSES)
async def dev_reorg(
    call: Call,
    *,
    depth: Positive,  # number of blocks to drop
    keep_transactions: bool = True,  # whether their transactions wait in the mempool again
) -> HeightAnswer:
    """Drop the last blocks, as when another branch wins."""
    return HeightAnswer(await _development(call).reorg(depth, keep_transactions=keep_transactions))


@routes.post("/dev/set_balance", refuses=REFUSES)
async def dev_set_balance(
    call: Call,
    *,
    address: Address,  # account
    amount: Annotated[int, integer(U128_MAX)],  # its new balance, base units
    wait: bool = False,
) -> SubmissionOutcome:
    """Set a balance; a missing account is created, and the supply changes with it."""
    return await _sent(call, await _development(call).interfere(SetBalance(address, amount)), wait=wait)


@routes.post("/dev/set_storage", refuses=REFUSES)
async def dev_set_storage(
    call: Call,
    *,
    actor: Address,  # whose slot
    slot: Annotated[str, octets(OCTETS_MAX)],  # the slot's name, as `0x…`
    value: Annotated[str, octets(OCTETS_MAX)] | None = None,  # its new value, as `0x…`; deletes the slot if left out
    wait: bool = False,
) -> SubmissionOutcome:
    """Set or delete a slot of an actor."""
    instruction = SetStorage(actor, unhex(slot), None if value is None else unhex(value))
    return await _sent(call, await _development(call).interfere(instruction), wait=wait)


@routes.post("/dev/set_code", refuses=REFUSES)
async def dev_set_code(
    call: Call,
    *,
    address: Address,  # an actor, or an address that becomes one
    code: Annotated[str, octets(OCTETS_MAX)],  # source of the actor in UTF-8, as `0x…`
    manifest: Annotated[str, octets(OCTETS_MAX)] | None = None,  # encoded entitlements, as `0x…`
    wait: bool = False,
) -> SubmissionOutcome:
    """Put code at an address; its money and storage stay, and no creation call runs."""
    instruction = SetCode(address, unhex(code), None if manifest is None else unhex(manifest))
    return await _sent(call, await _development(call).interfere(instruction), wait=wait)


@routes.post("/dev/mock", refuses=REFUSES)
async def dev_mock(
    call: Call,
    *,
    target: Address,  # whose handler is called; there need be no actor
    handler: Annotated[str, text(WORDS_MAX)],  # its handler
    payload: Annotated[str, octets(OCTETS_MAX)] | None = None,  # which calls, as `0x…`; all if left out
    returns: Annotated[str, octets(OCTETS_MAX)] = "0x",  # what they return
    reverts: Annotated[str, text(WORDS_MAX)] | None = None,  # message that they fail with, instead
    times: Annotated[int, integer(U32_MAX, 1)] | None = None,  # how many calls it answers; all if left out
    wait: bool = False,
) -> SubmissionOutcome:
    """Answer calls of a handler by other actors without running it."""
    calls = None if payload is None else unhex(payload)
    instruction = SetMock(target, handler, calls, unhex(returns), reverts, times)
    return await _sent(call, await _development(call).interfere(instruction), wait=wait)


@routes.post("/dev/clear_mocks", refuses=REFUSES)
async def dev_clear_mocks(call: Call, *, wait: bool = False) -> SubmissionOutcome:
    """Remove all mocks."""
    return await _sent(call, await _development(call).interfere(ClearMocks()), wait=wait)


@routes.post("/dev/impersonate", refuses=REFUSES)
async def dev_impersonate(
    call: Call,
    *,
    sender: Address,  # account that sends it
    # What it does.
    instruction: Annotated[dict[str, Any], Meta(extra_json_schema=INSTRUCTION_SCHEMA, extra=INSTRUCTION_RULE)],
    wait: bool = False,
    cycles_limit: U64 = CYCLES_LIMIT,  # most cycles that it may use
    cells_limit: U64 = CELLS_LIMIT,  # most cells that it may use
    max_fee_per_cycle: U64 | None = None,  # most a cycle may cost; the tip and twice the basefee if left out
    max_fee_per_cell: U64 | None = None,  # most a cell may cost; the tip and twice the basefee if left out
    max_priority_fee_per_cycle: U64 = 0,  # tip a cycle, base units
    max_priority_fee_per_cell: U64 = 0,  # tip a cell, base units
) -> SubmissionOutcome:
    """Send a transaction of any account, without its key."""
    development = _development(call)
    parsed = INSTRUCTION.parse(instruction, "instruction")
    terms = Terms(
        cycles_limit=cycles_limit,
        cells_limit=cells_limit,
        max_fee_per_cycle=max_fee_per_cycle,
        max_fee_per_cell=max_fee_per_cell,
        max_priority_fee_per_cycle=max_priority_fee_per_cycle,
        max_priority_fee_per_cell=max_priority_fee_per_cell,
    )
    return await _sent(call, await development.impersonate(sender, parsed, terms), wait=wait)


@routes.post("/dev/hold", refuses=REFUSES)
async def dev_hold(
    call: Call,
    *,
    timer_id: Hash32,
    wait: bool = False,
    until: U64 | None = None,  # height until which to hold it; the last one at which it may fire if left out
) -> SubmissionOutcome:
    """Hold a timer until a height, or until the last one at which it may fire."""
    return await _sent(call, await _development(call).hold(timer_id, until), wait=wait)


@routes.post("/dev/force", refuses=REFUSES)
async def dev_force(call: Call, *, timer_id: Hash32, wait: bool = False) -> SubmissionOutcome:
    """Make a timer due as early as possible."""
    return await _sent(call, await _development(call).force(timer_id), wait=wait)


@routes.post("/dev/drop", refuses=REFUSES)
async def dev_drop(call: Call, *, timer_id: Hash32, wait: bool = False) -> SubmissionOutcome:
    """Remove a timer without running it."""
    return await _sent(call, await _development(call).drop(timer_id), wait=wait)


@routes.post("/jobs/{job}/reply", refuses=REFUSES)
async def job_reply(
    call: Call,
    *,
    job: Positive,
    answer: Annotated[dict[str, Any], Meta(extra=ANSWER_RULE)],  # what the runner returns
    wait: bool = False,
) -> SubmissionOutcome:
    """Reply to a runner job: its actor's handler resumes, and the actor pays."""
    development = _development(call)
    try:
        reply = read_answer(answer)
    except ValidationError as error:
        raise HttpError(HttpReason.INVALID_VALUE, f"answer: {error}", parameter="answer") from None
    return await _sent(call, await development.reply(job, reply), wait=wait)


@routes.post("/dev/runner", refuses=REFUSES)
async def dev_runner(
    call: Call,
    *,
    jobs_max: Annotated[int, integer(U32_MAX)] = JOBS_MAX,  # jobs that may wait for a reply; 0 for no runner
    wait: bool = False,
) -> SubmissionOutcome:
    """Have runner jobs wait for replies, or be refused."""
    return await _sent(call, await _development(call).set_runner(jobs_max), wait=wait)


def _development(call: Call) -> "Development":
    development = call.node.development
    if development is None:
        raise HttpError(HttpReason.DEVELOPMENT_ONLY, "this node does not run as `trailboss dev`")
    return development


async def _sent(call: Call, tx_hash: Hash32, *, wait: bool) -> SubmissionOutcome:
    """Return the result of a transaction that was just sent, after the wait that the client asked for."""
    return outcome_answer(tx_hash, await call.node.outcome(tx_hash, TIMEOUT_DEFAULT) if wait else None)
