"""Runner jobs of a development chain, decoded. Decision: D-113."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.jobs import job_hash, runner_of
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical
from trailboss.execution.runner import find_job
from trailboss.primitives.octets import Address, Hash32

OPEN: Final = "open"
ANSWERED: Final = "answered"
JOB_STATES: Final = (OPEN, ANSWERED)


class JobView(Struct, frozen=True):
    """A runner job."""

    job: int  # its number, by which a reply names it
    actor: Address  # who waits for the reply
    kind: str  # ``llm``, ``http``, ``mcp``, ``agent`` or ``container``: which runner the actor asks
    arguments: list[Any]  # what is asked by position, as the prompt or the URL
    options: Mapping[str, Any]  # what is asked by keyword
    handler: str  # the actor's handler that takes the reply
    block: int  # height of the block in which it was sent
    state: str  # ``open``, or ``answered``
    replied_at: int | None  # height of the block with the reply; None while there is none
    hash: Hash32  # the id that the public network gives it; shared by all jobs of one transaction

    @property
    def text(self) -> str:
        """The first text among its arguments: the prompt, the URL; empty if there is none."""
        return next((each for each in self.arguments if isinstance(each, str)), "")


def list_jobs(chain: ChainReader, state: str | None = None, actor: Address | None = None) -> list[JobView]:
    """Return the runner jobs of a chain, the oldest first; of one state, and of one actor, if given."""
    jobs = (job_of(chain, number) for number in range(1, runner_of(chain).next))
    return [each for each in jobs if state in (None, each.state) and actor in (None, each.actor)]


def job_of(chain: ChainReader, number: int) -> JobView:
    """Return a runner job; `Rejection` with ``NOT_FOUND`` if there is none of that number."""
    job = find_job(chain.store.read, number)
    request: Any = decode_canonical(job.request)
    payload = request.get("payload")
    asked = payload if isinstance(payload, dict) else {}
    arguments, options = asked.get("args"), asked.get("kwargs")
    return JobView(
        job=number,
        actor=Address(job.actor),
        kind=request["job_type"],
        arguments=arguments if isinstance(arguments, list) else [],
        options=options if isinstance(options, dict) else {},
        handler=job.handler,
        block=job.sent_at,
        state=ANSWERED if job.replied_at else OPEN,
        replied_at=job.replied_at or None,
        hash=job_hash(job),
    )
