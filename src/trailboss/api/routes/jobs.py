"""Runner jobs of a development chain, and replies to them. Decision: D-113."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, Limit, Offset, Positive, choice, integer
from trailboss.api.routes.development import REFUSES, development_of, sent
from trailboss.api.routes.submission import SubmissionOutcome
from trailboss.chain.jobs import JOBS_MAX, JobAnswer, read_answer, runner_of
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U32_MAX
from trailboss.views.jobs import JOB_STATES, JobView, job_of, list_jobs

routes: Final = Routes("development")
ANSWER_RULE: Final = {"rule": 'an object: {"value": …}, or {"failure": reason} if the chain gives up on the job'}


class JobPage(Struct, frozen=True):
    """Runner jobs, the oldest first."""

    height: int
    total_count: int
    jobs_max: int  # jobs that may wait for a reply; 0 if the chain has no runner
    jobs: list[JobView]


@routes.get("/jobs")
def jobs(
    call: Call,
    *,
    state: Annotated[str, choice(*JOB_STATES)] | None = None,  # only jobs that are `open`, or `answered`
    actor: Address | None = None,  # only jobs of this actor
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> JobPage:
    """List the runner jobs that actors have sent. Only a development chain can have any."""
    found = list_jobs(call.view, state, actor)
    runner = runner_of(call.view)
    return JobPage(call.view.height, len(found), runner.jobs_max, found[offset : offset + limit])


@routes.get("/jobs/{job}", refuses=NOT_FOUND)
def job(call: Call, *, job: Positive) -> JobView:
    """Return one runner job."""
    try:
        return job_of(call.view, job)
    except Rejection as rejection:
        raise HttpError(HttpReason.NOT_FOUND, rejection.what, job=job) from None


@routes.post("/jobs/{job}/reply", refuses=REFUSES)
async def job_reply(
    call: Call,
    *,
    job: Positive,
    answer: Annotated[dict[str, Any], Meta(extra=ANSWER_RULE)],  # what the runner returns
    wait: bool = False,
) -> SubmissionOutcome:
    """Reply to a runner job: its actor's handler resumes, and the actor pays."""
    development = development_of(call)
    try:
        reply: JobAnswer = read_answer(answer)
    except msgspec.ValidationError as error:
        raise HttpError(HttpReason.INVALID_VALUE, f"answer: {error}", parameter="answer") from None
    return await sent(call, await development.reply(job, reply), wait=wait)


@routes.post("/dev/runner", refuses=REFUSES)
async def dev_runner(
    call: Call,
    *,
    jobs_max: Annotated[int, integer(U32_MAX)] = JOBS_MAX,  # jobs that may wait for a reply; 0 for no runner
    wait: bool = False,
) -> SubmissionOutcome:
    """Have runner jobs wait for replies, or be refused."""
    return await sent(call, await development_of(call).set_runner(jobs_max), wait=wait)
