"""Replies that a node knows beforehand: which jobs they answer, and how often. Decision: D-113."""

from pathlib import Path

import pytest

from tests.event_loop import on_loop
from tests.integration.test_runner import FUNDS, RAW, raw_job
from trailboss.chain.jobs import JobFailure
from trailboss.node.canned_replies import CannedReply, Replier, read_replies
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_HASH, Hash32
from trailboss.testing import LocalChain

REPLIES = """
[[reply]]
kind = "llm"
contains = "hello"
value = "hi"

[[reply]]
kind = "http"
failure = "retries_exhausted"
attempts = 3

[[reply]]
value = [1, 2.5, true]
"""


class Sent:
    """What a replier has sent."""

    def __init__(self) -> None:
        self.runners: list[int] = []
        self.replies: list[tuple[int, object]] = []

    async def start_runner(self, jobs_max: int) -> Hash32:
        self.runners.append(jobs_max)
        return ZERO_HASH

    async def reply(self, job: int, answer: object) -> Hash32:
        if job == 2:
            raise Rejection(RejectionReason.INSUFFICIENT_GAS_BALANCE, "it holds 0 base units")
        self.replies.append((job, answer))
        return ZERO_HASH


def chain_with_jobs(count: int) -> LocalChain:
    chain = LocalChain()
    chain.start_runner()
    actor = chain.deploy(RAW, sender=chain.accounts[0], value=count * FUNDS)
    for _ in range(count):
        actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    return chain


def test_first_reply_that_fits_answers_a_job(tmp_path: Path) -> None:
    """By its kind and the text of what it asks; one without conditions fits all others."""
    (tmp_path / "replies.toml").write_text(REPLIES)
    replies = read_replies(tmp_path / "replies.toml")
    assert replies == (
        CannedReply("hi", kind="llm", contains="hello"),
        CannedReply(JobFailure("retries_exhausted", 3), kind="http"),
        CannedReply([1, 2.5, True]),
    )
    with chain_with_jobs(1) as chain:
        [job] = chain.jobs()
        assert [each.fits(job) for each in replies] == [True, False, True]
        assert not CannedReply("x", contains="goodbye").fits(job)


def test_each_job_is_answered_once_until_the_chain_goes_back() -> None:
    """What no reply fits is looked at once, too."""
    replier = Replier((CannedReply("hi", kind="llm"),), Sent().start_runner, Sent().reply)
    with chain_with_jobs(2) as chain:
        view = chain.chain.publish()
        assert list(replier.answers(view)) == [1, 2]
        assert replier.answers(view) == {}
        assert list(replier.answers(view, has_gone_back=True)) == [1, 2]
        assert Replier((), Sent().start_runner, Sent().reply).answers(view) == {}


@on_loop
async def test_reply_that_is_refused_is_logged_and_the_others_are_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """With the job and the reason; the runner comes first."""
    sent = Sent()
    replier = Replier((CannedReply("hi"),), sent.start_runner, sent.reply)
    await replier.send({job: CannedReply("hi") for job in (1, 2, 3)}, starts_runner=True)
    assert (sent.runners, sent.replies) == ([1_000], [(1, "hi"), (3, "hi")])
    told = capsys.readouterr().err
    assert "runner job without a reply" in told
    assert "it holds 0 base units" in told
