"""Runner jobs on a local chain: they wait, a test replies, or functions of the test do so by themselves."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from trailboss.chain.jobs import JOBS_MAX, JobFailure, check_kind, draft_reply, runner_of
from trailboss.model.blocks import Block
from trailboss.model.transactions import ReplyJob, SetRunner, Transaction
from trailboss.primitives.errors import Rejection, RejectionReason, TrailbossError
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import Party, optional_address
from trailboss.views import Receipt
from trailboss.views.jobs import JOB_STATES, OPEN, JobView, job_of, list_jobs

Responder = Callable[[JobView], object]
"""A function of a test that answers jobs: with a value, a `JobFailure`, or None for not yet."""
EVERY_KIND: Final = ""


class Runners(BaseChain):
    """The runner of a local chain, which has none until it is started."""

    @cached_property
    def _responders(self) -> dict[str, Responder]:
        """The functions that answer jobs, by kind."""
        return {}

    def start_runner(self, *, jobs_max: int = JOBS_MAX) -> Receipt:
        """Have runner jobs wait for replies, up to ``jobs_max`` at a time, from the next transaction on."""
        if jobs_max < 1:
            what = f"start_runner(jobs_max={jobs_max}): at least one job must be able to wait"
            raise Rejection(RejectionReason.INVALID_DATA, what, jobs_max=jobs_max)
        return self.system(SetRunner(jobs_max), check=True)

    def stop_runner(self) -> Receipt:
        """Have runner jobs refused as before; those that wait can still be replied to."""
        return self.system(SetRunner(0), check=True)

    def jobs(self, actor: Party | None = None, *, state: str | None = None) -> list[JobView]:
        """Return the runner jobs so far, the oldest first; of an actor, and ``open`` or ``answered``, if given."""
        if state not in (None, *JOB_STATES):
            what = f"jobs(state={state!r}): a job is {' or '.join(JOB_STATES)}"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        return list_jobs(self.chain, state, optional_address(actor))

    def reply(
        self, job: JobView | int, value: object = None, *, error: str | None = None, check: bool = False
    ) -> Receipt:
        """Reply to a job in a block of its own, or in the open one, and return the receipt of the handler that resumes.

        Args:
            job: One of `jobs`, or its number.
            value: What the runner returns: None, a bool, an integer, a float, bytes, text, or lists and dicts of them.
            error: Instead of a value, why the chain has given up on the job: one of `JobFailure`'s reasons.
            check: Whether a handler that fails raises.

        Raises:
            Rejection: ``NOT_FOUND`` for a job that there is not, ``JOB_ANSWERED`` for one that has its reply,
                ``INVALID_DATA`` for a value that cannot be encoded or an error that the SDK does not know.
            RevertedError: With ``check``, if it did not end well; within `one_block` when the block is built.
        """
        if error is not None and value is not None:
            what = f"reply(…, {value!r:.40}, error={error!r}): give a value or an error"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        number = job.job if isinstance(job, JobView) else job
        answer = value if error is None else JobFailure(error)
        if type(number) is not int:
            raise TypeError(f"reply({number!r}): give one of `jobs`, or its number")
        actor = job_of(self.chain, number).actor
        account = self.chain.account(actor)
        waiting = self.nonce(actor) - (0 if account is None else account.nonce)
        return self.submit(draft_reply(self.chain, number, answer, waiting=waiting), check=check)

    def runner(self, kind: str | Responder) -> Any:
        """Have a function answer jobs, each in the block after the one that has it; `start_runner` runs if need be.

        ``@chain.runner`` answers jobs of every kind, ``@chain.runner("llm")`` those of one, which goes first. The
        function gets a `JobView` and returns the value; a `JobFailure` if the chain gives up on the job; or None if
        there is no answer yet: it is asked again before each block. Jobs are answered in order of number, behind the
        block's other transactions. What the function raises ends the call that builds the block, and no block is built.

        Raises:
            Rejection: ``INVALID_DATA`` for a kind that the SDK does not have.
            TrailbossError: If a function answers jobs of that kind already.
        """
        if callable(kind):
            return self._register(EVERY_KIND, kind)
        check_kind(kind)
        return lambda responder: self._register(kind, responder)

    def _advance(self, height: int) -> Iterator[Block]:
        """Build blocks up to a height, empty but for replies to jobs as they come."""
        if not self._responders or height < self.height:  # which the chain refuses
            yield from super()._advance(height)
            return
        while self.height < height:
            if any(self._responder_of(job) for job in self._open_jobs()):
                if self._outbox.build_additions():
                    yield self.chain.head
                else:
                    yield from super()._advance(self.height + 1)
                continue
            known = runner_of(self.chain).next
            for block in super()._advance(height):
                yield block
                if runner_of(self.chain).next != known:
                    break

    def _register(self, kind: str, responder: Responder) -> Responder:
        if kind in self._responders:
            words = f"of kind {kind}" if kind else "of every kind"
            name = getattr(self._responders[kind], "__name__", repr(self._responders[kind]))
            raise TrailbossError(f"{name} answers the runner jobs {words} already")
        if not runner_of(self.chain).jobs_max:
            self.start_runner()
        self._responders[kind] = responder
        self._outbox.additions = self._replies
        return responder

    def _replies(self, others: Sequence[Transaction]) -> list[Transaction]:
        """Return the replies that the next block is to hold behind other transactions."""
        replied = {each.instruction.job for each in others if isinstance(each.instruction, ReplyJob)}
        senders, replies = Counter(each.sender for each in others), list[Transaction]()
        for job in self._open_jobs():
            responder = self._responder_of(job)
            answer = None if responder is None or job.job in replied else responder(job)
            if answer is not None:
                replies.append(draft_reply(self.chain, job.job, answer, waiting=senders[job.actor]))
                senders[job.actor] += 1
        return replies

    def _open_jobs(self) -> list[JobView]:
        return list_jobs(self.chain, OPEN) if runner_of(self.chain).waiting else []

    def _responder_of(self, job: JobView) -> Responder | None:
        return self._responders.get(job.kind) or self._responders.get(EVERY_KIND)
