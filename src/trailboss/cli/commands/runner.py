"""Runner jobs: ``runner``, ``jobs``, ``reply``. Decision: D-113."""

import json
from typing import Annotated, Final

from trailboss.chain.jobs import FAILURE_REASONS, JOBS_MAX, JobAnswer, JobFailure, runner_of
from trailboss.cli import options, output
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.primitives.units import U32_MAX
from trailboss.views.jobs import JOB_STATES, OPEN, JobView, job_of, list_jobs
from trailboss.views.text import value_words

COLUMNS: Final = output.columns("job | kind | actor | asks | >sent in | state")
ASKED_MAX: Final = 60  # characters of what a job asks that a list shows
ALL: Final = "all"


@command()
def runner(
    run: Invocation,
    jobs_max: Annotated[
        options.Number, options.number("Most jobs that wait at a time.", str(JOBS_MAX), least=1, most=U32_MAX)
    ] = None,
    stop: Annotated[bool, options.flag("--stop", "Have them refused again.")] = False,
) -> None:
    """Have runner jobs wait for replies instead of being refused.

    Example: trailboss runner
    """
    if stop and jobs_max is not None:
        raise Mistake("both --jobs-max and --stop are given", "give one of the two")
    most = 0 if stop else jobs_max or JOBS_MAX
    receipt = run.chain.set_runner(most)
    words = f"takes jobs; at most {most:,} wait for a reply at a time" if most else "none: jobs are refused"
    run.show_receipts({"instruction": receipt}, {"runner": words if receipt.ok else None})


@command()
def jobs(
    run: Invocation,
    state: Annotated[str, options.option("STATE", f"Only these: {', '.join((*JOB_STATES, ALL))}.")] = OPEN,
    actor: Annotated[options.Text, options.option("ACTOR", "Only of this actor.")] = None,
) -> None:
    """List the runner jobs that actors have sent, oldest first.

    Example: trailboss jobs --state all
    """
    if state not in (*JOB_STATES, ALL):
        raise Mistake(f"there is no state {state!r}", f"give one of {', '.join((*JOB_STATES, ALL))}")
    chain, owner = run.chain, run.actor(actor)
    found, most = list_jobs(chain, None if state == ALL else state, owner), runner_of(chain).jobs_max
    if run.as_json:
        output.print_json({"height": chain.height, "jobs_max": most, "jobs": found})
        return
    empty = f"no such jobs after block {chain.height}"
    if not most:
        empty += "; the chain has no runner: start one with `trailboss runner`"
    output.print_table(f"Runner jobs after block {chain.height}", COLUMNS, list(map(_row, found)), empty)


def _row(job: JobView) -> tuple[output.Cell, ...]:
    options_words = ", ".join(f"{name}={value_words(value)}" for name, value in job.options.items())
    asked = job.text or options_words or ", ".join(map(value_words, job.arguments))
    state = job.state if job.replied_at is None else f"{job.state} in {job.replied_at}"
    return (
        str(job.job),
        job.kind,
        job.actor,
        asked if len(asked) <= ASKED_MAX else f"{asked[:ASKED_MAX]}…",
        str(job.block),
        state,
    )


@command()
def reply(
    run: Invocation,
    job: Annotated[int, options.argument("JOB", "Number of the job.", parser=options.whole_number(1))],
    value: Annotated[options.Text, options.argument("VALUE", "What the runner returns, as text.", "--failure")] = None,
    from_json: Annotated[bool, options.flag("--from-json", "The value is JSON, not text.")] = False,
    failure: Annotated[
        options.Text, options.option("REASON", f"The chain gives up instead: {', '.join(FAILURE_REASONS)}.")
    ] = None,
) -> None:
    """Reply to a runner job: its actor resumes, and pays.

    Example: trailboss reply 3 '{"text": "sunny"}' --from-json
    """
    if (value is None) is (failure is None):
        raise Mistake("a reply has a value or --failure", "give one of the two")
    asked = job_of(run.chain, job)
    receipt = run.chain.reply(job, _answer(value, failure, from_json=from_json))
    resumed = f"{asked.handler} of {asked.actor}" if receipt.ok else None
    waiting = list_jobs(run.chain, OPEN, asked.actor)
    more = f"it waits for job {waiting[-1].job} ({waiting[-1].kind})" if receipt.ok and waiting else None
    run.show_receipts({"reply": receipt}, {"resumed": resumed, "then": more})


def _answer(value: str | None, failure: str | None, *, from_json: bool) -> JobAnswer:
    if failure is not None:
        if failure not in FAILURE_REASONS:
            raise Mistake(f"there is no failure {failure!r}", f"give one of {', '.join(FAILURE_REASONS)}")
        return JobFailure(failure)
    if not from_json or value is None:
        return value
    try:
        answer: JobAnswer = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise Mistake(f"the value is no JSON: {error}", 'quote it for the shell, as \'{"text": "sunny"}\'') from None
    return answer
