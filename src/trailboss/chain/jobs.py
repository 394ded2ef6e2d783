"""Runner jobs of a development chain: the replies to them, in the form in which a public chain delivers them.

Decision: D-113
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import replace

from trailboss.chain.drafts import Terms, draft_unsigned
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.runner import find_open_job, read_runner
from trailboss.fees import Prices, max_cost
from trailboss.model.configs import Runner, RunnerJob
from trailboss.model.transactions import ReplyJob, Transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Cells, Cycles

JOBS_MAX: Final = 1_000  # jobs that wait for a reply at most, unless said otherwise
JOB_KINDS: Final = ("llm", "http", "mcp", "agent", "container")
"""Kinds of jobs that the public SDK has calls for. Source: its runner, version 0.1.6."""
FailureReason = Literal[
    "pending_key_delivery_timeout", "retries_exhausted", "private_attachment_timeout", "no_replacement_available"
]
"""Why a public chain gives up on a job. Source: the public SDK's runner, version 0.1.6."""
FAILURE_REASONS: Final[tuple[str, ...]] = get_args(FailureReason)


class JobFailure(Struct, frozen=True):
    """The reply that no runner has done a job: the chain has given up. The SDK raises JobFailed, or ends the method."""

    reason: str = "retries_exhausted"  # one of `FAILURE_REASONS`
    attempts: int = 1  # runners that have tried

    def __post_init__(self) -> None:
        if self.reason not in FAILURE_REASONS:
            rule = f"the SDK knows {', '.join(FAILURE_REASONS)}"
            raise Rejection(RejectionReason.INVALID_DATA, f"a job's failure {self.reason!r} is unknown: {rule}")


JobAnswer = object
"""What answers a job: the value that the runner returns, or a `JobFailure`."""


class _Answered(Struct, frozen=True, forbid_unknown_fields=True):
    value: Any = UNSET
    failure: FailureReason | UnsetType = UNSET
    attempts: Annotated[int, Meta(ge=1)] = 1


def read_answer(members: Mapping[str, Any]) -> JobAnswer:
    """Return the answer that a table states: its ``value``, or a ``failure``, which may have ``attempts``.

    Raises:
        msgspec.ValidationError: If it states none, or both.
    """
    stated = convert(members, _Answered)
    if (stated.value is UNSET) is (stated.failure is UNSET):
        raise ValidationError("give either a value or a failure")
    return stated.value if isinstance(stated.failure, UnsetType) else JobFailure(stated.failure, stated.attempts)


def check_kind(kind: str) -> None:
    """Refuse a kind of job that the SDK has no call for, with ``INVALID_DATA``: it may be misspelt."""
    if kind not in JOB_KINDS:
        rule = f"the SDK asks for {', '.join(JOB_KINDS)}; what answers every kind names none"
        raise Rejection(RejectionReason.INVALID_DATA, f"there is no kind of runner job {kind!r:.40}: {rule}")


def runner_of(chain: ChainReader) -> Runner:
    """Return what a chain's state holds of its runner."""
    return read_runner(chain.store.read)


def job_hash(job: RunnerJob) -> Hash32:
    """Return the id that the public network gives a job, one for all of a transaction. Source: cowboy-facts §9."""
    return Hash32(sha256(job.origin_hash + job.sent_at.to_bytes(8, "big")).digest())


def draft_reply(chain: ChainReader, number: int, answer: JobAnswer, *, waiting: int = 0) -> Transaction:
    """Return the unsigned transaction that replies to a job with a value, or with a `JobFailure`.

    Its actor sends and pays it. The handler may use what the job asked for, by default 1,000,000 cycles and 150,000
    cells. ``waiting`` counts the actor's transactions before it that no block holds yet.

    Raises:
        Rejection: ``NOT_FOUND`` for a job that there is not, ``JOB_ANSWERED`` for one that has its reply,
            ``INVALID_DATA`` or ``OVERFLOW`` for a value without canonical CBOR.
    """
    job = find_open_job(chain.store.read, number)
    base, prices = chain.params.costs.transaction_base, Prices(*chain.rules().user_basefees())
    terms = Terms(cycles_limit=base + job.cycles, cells_limit=job.cells)
    needed = max_cost(Cycles(terms.cycles_limit), Cells(terms.cells_limit), prices)
    if chain.balance(job.actor) < 2 * needed:
        # Without room for a rise of the basefees, as an actor can afford that had the least when it sent the job.
        terms = replace(terms, max_fee_per_cycle=prices.cycle_basefee, max_fee_per_cell=prices.cell_basefee)
    reply = ReplyJob(number, encode_reply(number, job, answer))
    return draft_unsigned(chain, reply, Address(job.actor), terms=terms, waiting=waiting)


def encode_reply(number: int, job: RunnerJob, answer: JobAnswer) -> bytes:
    """Return what a job's handler takes, canonical CBOR. Source: the public SDK's testing.SimulatedChain, 0.1.6."""
    request: Any = decode_canonical(job.request)
    content: dict[str, object] = {"result": answer}
    if isinstance(answer, JobFailure):
        failure = {"kind": "failure", "v": 1, "job_id": str(job_hash(job)), "reason": answer.reason}
        content = {"failure": {**failure, "attempts": answer.attempts}}
    try:
        reply = {"cid": request["cid"].hex(), "reply_handler": job.handler, "correlation_id": None, **content}
        return encode_canonical(reply)
    except Rejection as rejection:
        what = f"the reply to runner job {number} has no canonical CBOR: {rejection.what}"
        raise Rejection(rejection.reason, what, job=str(number)) from None
