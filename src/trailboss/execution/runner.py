"""The runner of a development chain: jobs that actors send wait in the state until a transaction replies to them.

A job is what the public SDK sends to the job dispatcher for each ``await runner.llm(…)``. A chain without a runner
refuses it, and only a development chain can have one. Source: cowboy-facts §3, §6. Decision: D-92, D-113
"""

from typing import Any, Final

from msgspec.structs import replace

from trailboss.codec.canonical import decode_canonical
from trailboss.execution.checks import check_size, invalid
from trailboss.execution.session import BlockSession, Scope
from trailboss.fees import Prices, max_cost
from trailboss.governance.parameters import Read
from trailboss.governance.rules import RUNNER_KEY
from trailboss.model.configs import Runner, RunnerJob, encode_record, stored
from trailboss.model.transactions import ReplyJob
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import U64_MAX, Cells, Cycles
from trailboss.state.keys import job_key

JOB_DISPATCHER: Final = system_address(2)  # Whom the SDK sends runner jobs. Source: cowboy-facts §6.
REPLY_CYCLES: Final = 1_000_000  # Cycles of a reply's handler if the job asks for no other number; as in the SDK.
REPLY_CELLS: Final = 150_000  # Cells of it likewise.
REPLY_LEAST: Final = 102_000  # Least cycles, and least cells, that a job may ask for. Source: cowboy-facts §3.
_JOB_KIND: Final = "runner_job"
_TEXT: Final = "text"
_FIELDS: Final = {"job_type": (str, _TEXT), "cid": (bytes, "bytes"), "reply_handler": (str, _TEXT)}


def read_runner(read: Read) -> Runner:
    """Return what the state holds of the runner; one with room for no job if there never was any."""
    return stored(read, RUNNER_KEY, Runner) or Runner()


def find_job(read: Read, number: int) -> RunnerJob:
    """Return a job; ``NOT_FOUND`` if there never was one of that number."""
    job = stored(read, job_key(number), RunnerJob) if 0 < number <= U64_MAX else None
    if job is None:
        raise Rejection(RejectionReason.NOT_FOUND, f"there is no runner job {number}", job=str(number))
    return job


def find_open_job(read: Read, number: int) -> RunnerJob:
    """Return a job that waits; ``NOT_FOUND`` as `find_job`, ``JOB_ANSWERED`` for one that has its reply."""
    job = find_job(read, number)
    if job.replied_at:
        what = f"runner job {number} has had its reply in block {job.replied_at}"
        raise Rejection(RejectionReason.JOB_ANSWERED, what, job=str(number), height=job.replied_at)
    return job


def set_runner(scope: Scope, jobs_max: int) -> None:
    """Set how many jobs may wait for a reply; with 0 there is no runner. Jobs that wait can be replied to as before."""
    overlay = scope.session.overlay
    overlay.write(RUNNER_KEY, encode_record(replace(read_runner(overlay.read), jobs_max=jobs_max)))


def check_job(scope: Scope, actor: bytes, request: bytes) -> RunnerJob:
    """Return what is kept of a job that an actor sends.

    Raises:
        Rejection: ``NO_RUNNER`` on a chain without a runner, ``MAILBOX_FULL`` if as many jobs wait as may,
            ``INVALID_INPUT`` for what is no job of the SDK, ``INSUFFICIENT_GAS_BALANCE`` if the actor could not pay for
            the reply.
    """
    session, rules = scope.session, scope.session.context.rules
    runner, shown = read_runner(session.overlay.read), Address(actor)
    table = _decoded(request)
    kind = table.get("job_type")
    asks = f"{shown} asks for a runner job" + (f" ({kind:.64})" if isinstance(kind, str) else "")
    if not runner.jobs_max:
        what = f"{asks}, and this chain has no runner"
        raise Rejection(RejectionReason.NO_RUNNER, what, target=str(JOB_DISPATCHER))
    if runner.waiting >= runner.jobs_max:
        what = f"{asks}: {runner.waiting} wait for a reply and the limit is {runner.jobs_max}"
        raise Rejection(RejectionReason.MAILBOX_FULL, what, target=str(JOB_DISPATCHER), limit=runner.jobs_max)
    if table.get("kind") != _JOB_KIND:
        raise invalid(f"{asks}: the message is no job, a map of canonical CBOR with kind = {_JOB_KIND}")
    for name, (wanted, words) in _FIELDS.items():
        if not isinstance(table.get(name), wanted):
            raise invalid(f"{asks}: {name} = {table.get(name)!r:.64} must be {words}", field=name)
    handler = table["reply_handler"]
    check_size("reply_handler", len(handler.encode()), rules.params.timers.handler_bytes_max)
    base = rules.params.costs.transaction_base
    cycles = _budget(asks, table, "resume_cycles", REPLY_CYCLES, rules.params.limits.block_cycles_max - base)
    cells = _budget(asks, table, "resume_cells", REPLY_CELLS, rules.params.limits.block_cells_max)
    cost = max_cost(Cycles(base + cycles), Cells(cells), Prices(*rules.user_basefees()))
    available = session.ledger.balance(actor)
    if available < cost:
        what = f"{asks}, holds {available} base units, and the reply may cost it {cost}"
        raise Rejection(RejectionReason.INSUFFICIENT_GAS_BALANCE, what, required=str(cost), available=str(available))
    height, origin_hash = session.context.height, scope.envelope.origin_hash
    return RunnerJob(bytes(actor), request, height, bytes(origin_hash), handler, cycles, cells)


def add_job(session: BlockSession, job: RunnerJob) -> int:
    """Have a job wait for its reply, and return its number."""
    runner = read_runner(session.overlay.read)
    session.overlay.write(job_key(runner.next), encode_record(job))
    more = replace(runner, waiting=runner.waiting + 1, next=runner.next + 1)
    session.overlay.write(RUNNER_KEY, encode_record(more))
    return runner.next


def check_reply(session: BlockSession, sender: Address, reply: ReplyJob) -> RunnerJob:
    """Return the job that a transaction replies to.

    Raises:
        Rejection: ``UNSUPPORTED_INSTRUCTION`` unless it is a development chain, ``NOT_FOUND`` for a job that there is
            not, ``JOB_ANSWERED`` for one that has its reply, ``INVALID_INPUT`` for one of another actor.
    """
    if not session.context.is_development:
        what = "ReplyJob is executed by development chains only, which say so in their genesis"
        raise Rejection(RejectionReason.UNSUPPORTED_INSTRUCTION, what, instruction=reply.name)
    job = find_open_job(session.overlay.read, reply.job)
    if sender != job.actor:
        what = f"runner job {reply.job} is {Address(job.actor)}'s, and {sender} sends a reply: the actor's account does"
        raise invalid(what, job=str(reply.job), owner=str(Address(job.actor)))
    return job


def close_job(session: BlockSession, number: int, job: RunnerJob) -> None:
    """Note that a job has its reply, whatever becomes of the handler that takes it."""
    runner = read_runner(session.overlay.read)
    session.overlay.write(job_key(number), encode_record(replace(job, replied_at=session.context.height)))
    session.overlay.write(RUNNER_KEY, encode_record(replace(runner, waiting=runner.waiting - 1)))


def _decoded(request: bytes) -> dict[Any, Any]:
    """Return the map that a message brings; an empty one if it brings none."""
    try:
        table = decode_canonical(request)
    except Rejection:
        table = None
    return table if isinstance(table, dict) else {}


def _budget(asks: str, table: dict[Any, Any], name: str, usual: int, most: int) -> int:
    """Return what a job lets its reply's handler use. Source: the public SDK's runner, version 0.1.6."""
    payload = table.get("payload")
    arguments = payload.get("kwargs") if isinstance(payload, dict) else None
    given = arguments.get(name, usual) if isinstance(arguments, dict) else usual
    if type(given) is not int or not REPLY_LEAST <= given <= most:
        raise invalid(f"{asks}: {name} = {given!r:.64} must be an integer within {REPLY_LEAST}..={most}", field=name)
    return given
