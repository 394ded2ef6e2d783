"""Runner jobs of a development chain. Decision: D-113."""

from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, Limit, Offset, Positive, choice
from trailboss.chain.jobs import runner_of
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address
from trailboss.views.jobs import JOB_STATES, JobView, job_of, list_jobs

routes: Final = Routes("development")


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
