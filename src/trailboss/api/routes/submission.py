"""Submission of transactions, with or without waiting for their results."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct
from starlette.responses import Response

from trailboss.api.errors import HttpError, HttpReason, clipped, shown
from trailboss.api.operations import JSON, Call, RawBody, Refusal, Routes, respond
from trailboss.api.requests import integer, read_document
from trailboss.api.transaction_shape import TRANSACTION, only
from trailboss.codec.textual import from_json
from trailboss.codec.wire import decode_submission, decode_transaction
from trailboss.index.answers.transactions import TransactionReceipt, find_transaction, receipt_of
from trailboss.mempool import AdmissionOutcome
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.octets import Hash32

if TYPE_CHECKING:
    from trailboss.node.service import TransactionOutcome

routes: Final = Routes("transactions")
OCTETS: Final = "application/octet-stream"
SUBMISSION_BYTES_MAX: Final = 512 * 1024
TRANSACTIONS_MAX: Final = 50
DECODED_HERE_MAX: Final = 8_192  # bytes that the event loop decodes itself; more take too much of its time
TIMEOUT_MIN: Final = 100
TIMEOUT_MAX: Final = 10_000
TIMEOUT_DEFAULT: Final = 5_000
INCLUDED: Final = "included"
REFUSED: Final = "refused"
WAITING: Final = "waiting"
ACCEPTED: Final = "accepted"
PARTIAL: Final = "partial"
MEMBER: Final = "transactions"
WIRE: Final = {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$", "description": "Its wire bytes."}
SUBMISSION: Final = RawBody(
    SUBMISSION_BYTES_MAX,
    {
        OCTETS: {
            "type": "string",
            "format": "submission",
            "description": "What `encode_submission` of the public codec gives: the byte 01, the number of "
            "transactions, and each of them.",
        },
        JSON: only(
            {
                MEMBER: {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": TRANSACTIONS_MAX,
                    "items": {"anyOf": [TRANSACTION, WIRE]},
                }
            }
        ),
    },
)


class SubmissionResult(Struct, frozen=True, kw_only=True):
    """What the node says of a transaction that was sent."""

    tx_hash: Hash32  # its hash
    # ``accepted``; ``replaced`` if it took the place of another; ``known`` if it waited already; ``included`` if a
    # block holds it already; ``refused``.
    status: str
    error: ErrorObject | None  # why it was refused; None otherwise


class SubmissionAnswer(Struct, frozen=True, kw_only=True):
    """What the node says of transactions that were sent."""

    status: str  # ``accepted``, or ``partial`` if some were refused
    results: list[SubmissionResult]  # one for each, in order


class SubmissionOutcome(Struct, frozen=True, kw_only=True):
    """What became of a transaction that was sent."""

    tx_hash: Hash32  # its hash
    status: str  # ``included`` in a block, ``refused``, or still ``waiting``
    error: ErrorObject | None  # why it was refused; None otherwise
    receipt: TransactionReceipt | None  # what it did and cost; None unless it is in a block


class SubmissionOutcomes(Struct, frozen=True, kw_only=True):
    """What became of transactions that were sent."""

    status: str  # ``included`` if all of them are in blocks, ``partial`` if some were refused
    results: list[SubmissionOutcome]  # one for each, in order


class SubmissionRefusal(Struct, frozen=True, kw_only=True):
    """Transactions of which none was taken."""

    error: ErrorObject  # why the first was not
    results: list[SubmissionResult]  # one for each, in order


class SubmissionTimeout(Refusal, frozen=True, kw_only=True):
    """Transactions of which some still wait."""

    results: list[SubmissionOutcome]  # one for each, in order


REFUSALS: Final = {HttpReason.BAD_REQUEST.status: Refusal | SubmissionRefusal}


@routes.post("/submit", body=SUBMISSION, refusals=REFUSALS)
async def submit(call: Call) -> SubmissionAnswer | Response:
    """Submit signed transactions, at most 50.

    An accepted transaction waits for a block; if the chain is in a directory, it outlives the node. A transaction that
    waits already, or is in a block already, is no error. If all are refused, the status is 400, with the error of the
    first.
    """
    verdicts = await _submit(call)
    if isinstance(verdicts, Response):
        return verdicts
    results = [_result(call, verdict) for verdict in verdicts]
    is_all = all(each.error is None for each in results)
    return SubmissionAnswer(status=ACCEPTED if is_all else PARTIAL, results=results)


@routes.post(
    "/submit_wait",
    refuses=(HttpReason.TIMEOUT,),
    body=SUBMISSION,
    refusals={**REFUSALS, HttpReason.TIMEOUT.status: SubmissionTimeout},
)
async def submit_wait(
    call: Call,
    *,
    timeout_ms: Annotated[int, integer(TIMEOUT_MAX, TIMEOUT_MIN)] = TIMEOUT_DEFAULT,  # longest wait, milliseconds
) -> SubmissionOutcomes | Response:
    """Submit signed transactions, and wait until each is in a block or refused.

    After the timeout the status is 408, and the answer has the state of each.
    """
    verdicts = await _submit(call)
    if isinstance(verdicts, Response):
        return verdicts
    outcomes = await call.node.outcomes([each.hash for each in verdicts if each.is_waiting], timeout_ms)
    if all(each.hash in outcomes and outcomes[each.hash].block is not None for each in verdicts):
        results = [outcome_answer(each.hash, outcomes[each.hash]) for each in verdicts]
    else:
        results = await asyncio.to_thread(_outcomes, call, verdicts, outcomes)
    pending = sum(each.status == WAITING for each in results)
    if pending:
        what = f"{pending} of {len(results)} transactions still wait after {timeout_ms:,} ms"
        error = HttpError(HttpReason.TIMEOUT, what, timeout_ms=timeout_ms, pending=pending)
        return respond(SubmissionTimeout(error=error.error(), results=results), HttpReason.TIMEOUT.status)
    is_all = all(each.status == INCLUDED for each in results)
    return SubmissionOutcomes(status=INCLUDED if is_all else PARTIAL, results=results)


async def _submit(call: Call) -> list[AdmissionOutcome] | Response:
    try:
        if len(call.body) <= DECODED_HERE_MAX:
            transactions = read_submission(call.body, call.media)
        else:
            transactions = await asyncio.to_thread(read_submission, call.body, call.media)
    except Rejection as rejection:
        return respond(Refusal(rejection.error()), HttpReason.BAD_REQUEST.status)
    verdicts = await call.node.submit(transactions)
    if any(verdict.is_waiting or _is_included(call, verdict) for verdict in verdicts):
        return verdicts
    results = [_result(call, verdict) for verdict in verdicts]
    first = next(each.error for each in results if each.error is not None)
    return respond(SubmissionRefusal(error=first, results=results), HttpReason.BAD_REQUEST.status)


def read_submission(body: bytes, media: str) -> list[Transaction]:
    """Return the transactions of a submission, in order: of what ``encode_submission`` gives, or of a JSON object.

    Raises:
        Rejection: As `decode_submission`, `from_json`.
        HttpError: ``BAD_REQUEST`` for other JSON, and for none or too many transactions.
    """
    if media == OCTETS:
        items: Any = decode_submission(body)
    else:
        document = read_document(body)
        items = document.get(MEMBER)
        if not isinstance(items, list) or len(document) != 1:
            what = f"the body is {shown(document)}, it must have the one member {MEMBER}, a list"
            raise HttpError(HttpReason.BAD_REQUEST, what, place="body", parameter=MEMBER, rule="a list of transactions")
    if not 1 <= len(items) <= TRANSACTIONS_MAX:
        rule = f"1..={TRANSACTIONS_MAX} transactions"
        what = f"the submission has {len(items)} transactions, it must have {rule}"
        raise HttpError(HttpReason.BAD_REQUEST, what, parameter=MEMBER, value=len(items), rule=rule)
    return items if media == OCTETS else [_read_item(item, at) for at, item in enumerate(items)]


def _read_item(item: object, at: int) -> Transaction:
    if isinstance(item, dict):
        return from_json(item)
    try:
        if isinstance(item, str) and item.startswith("0x"):
            return decode_transaction(bytes.fromhex(item[2:]))
    except ValueError:
        # Not hexadecimal: refused below, with everything else that is neither.
        pass
    rule = "a transaction in the public JSON shape, or 0x and the digits of its wire bytes"
    what = f"{MEMBER}[{at}] is {shown(item)}, it must be {rule}"
    raise HttpError(HttpReason.BAD_REQUEST, what, parameter=f"{MEMBER}[{at}]", value=clipped(item), rule=rule)


def _is_included(call: Call, verdict: AdmissionOutcome) -> bool:
    """Return whether a block holds a transaction that was refused: it has been sent twice."""
    rejection = verdict.rejection
    if verdict.is_waiting or rejection is None or rejection.reason is not RejectionReason.NONCE_MISMATCH:
        return False
    return call.node.index.transaction(verdict.hash, call.view.height) is not None


def _result(call: Call, verdict: AdmissionOutcome) -> SubmissionResult:
    if _is_included(call, verdict):
        return SubmissionResult(tx_hash=verdict.hash, status=INCLUDED, error=None)
    refusal = None if verdict.is_waiting or verdict.rejection is None else verdict.rejection.error()
    return SubmissionResult(tx_hash=verdict.hash, status=verdict.status.value, error=refusal)


def _outcomes(
    call: Call, verdicts: Sequence[AdmissionOutcome], outcomes: "dict[Hash32, TransactionOutcome]"
) -> list[SubmissionOutcome]:
    # The view of the block that was waited for, or a later one.
    call.look_again()
    return [_outcome(call, verdict, outcomes.get(verdict.hash)) for verdict in verdicts]


def _outcome(call: Call, verdict: AdmissionOutcome, outcome: "TransactionOutcome | None") -> SubmissionOutcome:
    if outcome is not None and outcome.block is not None:
        return outcome_answer(verdict.hash, outcome)
    found = find_transaction(call.view, call.node.index, verdict.hash)
    if found is not None:
        return SubmissionOutcome(tx_hash=verdict.hash, status=INCLUDED, error=None, receipt=receipt_of(*found))
    return outcome_answer(verdict.hash, outcome, None if verdict.is_waiting else verdict.rejection)


def outcome_answer(
    tx_hash: Hash32, outcome: "TransactionOutcome | None", rejection: Rejection | None = None
) -> SubmissionOutcome:
    """Return what came of a transaction by the end of a wait for it, unless it was refused at once."""
    if rejection is None and outcome is not None:
        rejection = outcome.rejection
        if outcome.block is not None and outcome.place is not None:
            receipt = receipt_of(outcome.block, outcome.place)
            return SubmissionOutcome(tx_hash=tx_hash, status=INCLUDED, error=None, receipt=receipt)
    error = None if rejection is None else rejection.error()
    return SubmissionOutcome(tx_hash=tx_hash, status=REFUSED if error else WAITING, error=error, receipt=None)
