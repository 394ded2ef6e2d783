"""Functions of a test that answer runner jobs by themselves."""

from typing import Any

import pytest

from tests.integration.test_runner import FUNDS, ask, oracle, raw_actor, raw_job
from trailboss.chain.replay import verify_chain
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.transactions import Transfer
from trailboss.primitives.errors import Rejection, TrailbossError
from trailboss.testing import JobFailure, LocalChain, RevertedError
from trailboss.views.jobs import JobView

CLOCK = """
from cowboy_sdk import actor, capture, deferred, public, runner, runtime, timer


@actor
class Clock:
    @public
    @deferred
    def arm(self, _):
        timer.schedule(runtime.get_block_height() + 50, b"", handler="tick")

    @timer
    @runner.continuation
    async def tick(self, _):
        ctx = capture()
        ctx.answer = await runner.llm("tick")
        self.storage["answer"] = ctx.answer.text
        return None
"""


def test_function_answers_each_job_in_the_block_after(chain: LocalChain) -> None:
    """A function of one kind goes before that of every kind, and nothing happens before the next block."""

    @chain.runner("llm")
    def summarize(job: JobView) -> str:
        return job.text.upper()

    @chain.runner
    def fetch(job: JobView) -> dict[str, str]:
        return {"text": f"page of {job.text}"}

    actor = oracle(chain)
    ask(chain, actor)
    sent = chain.height
    assert [each.state for each in chain.jobs()] == ["open"]
    chain.mine(2)
    assert chain.height == sent + 2
    assert [(each.kind, each.block - sent, (each.replied_at or 0) - sent) for each in chain.jobs()] == [
        ("http", 0, 1),
        ("llm", 1, 2),
    ]
    summary = "Laramie: SUMMARIZE: PAGE OF HTTPS://WEATHER.EXAMPLE/LARAMIE"
    assert decode_canonical(actor.storage[b"summary"]) == summary


def test_advance_stops_at_each_job_on_its_way(chain: LocalChain) -> None:
    """Fires send jobs in blocks that an advance builds; each has its reply one block later."""
    chain.runner(lambda _: "tock")
    actor = chain.deploy(CLOCK, sender=chain.accounts[0], value=FUNDS, entitlements=["timer.schedule"])
    actor.call("arm", encode_canonical(None), sender=chain.accounts[0], check=True)
    fires_at = chain.height + 50
    chain.mine(1_000)
    assert chain.receipts(origin="timer")[0].ok, chain.receipts(origin="timer")[0].error
    assert [(each.block, each.replied_at) for each in chain.jobs()] == [(fires_at, fires_at + 1)]
    assert chain.height == fires_at + 950
    assert decode_canonical(actor.storage[b"answer"]) == "tock"


def test_jobs_are_answered_on_the_way_to_the_next_fire(chain: LocalChain) -> None:
    """As on any other way; a height that is past is refused with a function too."""
    chain.runner(lambda job: {"text": job.text})
    actor = oracle(chain)
    timer = chain.schedule(chain.height + 20)
    ask(chain, actor)
    [fire] = chain.mine_to_next_fire()
    assert (fire.timer_id, chain.height) == (timer.timer_id, timer.height)
    assert [each.state for each in chain.jobs()] == ["answered", "answered"]
    with pytest.raises(Rejection, match="cannot advance to height 1: the chain is at"):
        chain.advance_to(1)


def test_jobs_are_answered_in_order_behind_what_the_test_sends(chain: LocalChain) -> None:
    """Several replies of one actor in one block, after a transaction of its own; nonces fit."""
    asked = []

    @chain.runner
    def answer(job: JobView) -> str:
        asked.append(job.job)
        return "x"

    actor = raw_actor(chain)
    with chain.one_block():
        for _ in range(3):
            actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    receipt = chain.impersonate(actor, Transfer(chain.accounts[1].address, 5), check=True)
    block = chain.receipts(since=chain.height)
    assert asked == [1, 2, 3]
    assert [each.actor for each in block] == [None, *[actor.address] * 3]
    assert block[0] == receipt
    assert all(each.ok for each in block)


def test_function_may_take_its_time_or_give_up(chain: LocalChain) -> None:
    """None is no answer yet; a failure is the chain's report."""

    @chain.runner("http")
    def slow(job: JobView) -> str | None:
        return "sleet" if chain.height >= job.block + 3 else None

    @chain.runner("llm")
    def broken(_: JobView) -> JobFailure:
        return JobFailure("no_replacement_available", attempts=3)

    actor = oracle(chain)
    ask(chain, actor)
    sent = chain.height
    chain.mine(10)
    assert [(each.replied_at or 0) - sent for each in chain.jobs()] == [4, 5]
    assert b"summary" not in actor.storage
    assert actor.storage[b"__continuation_count"] == bytes(4)


def test_what_a_function_raises_ends_the_call_that_builds_the_block(chain: LocalChain) -> None:
    """The test sees its own line; no block is built, and the job waits."""

    @chain.runner
    def wrong(job: JobView) -> str:
        return {"Laramie": "sleet"}[job.text]

    actor = oracle(chain)
    ask(chain, actor)
    height = chain.height
    for build in (chain.mine, lambda: chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0])):
        with pytest.raises(KeyError, match=r"weather\.example") as raised:
            build()
        assert raised.traceback[-1].name == "wrong"
        assert raised.traceback[-1].path.name == "test_runner_functions.py"
        assert (chain.height, chain.jobs()[0].state) == (height, "open")


@pytest.mark.parametrize("kind", ["", "llm"])
def test_second_function_of_a_kind_is_refused(chain: LocalChain, kind: str) -> None:
    """The message names the first."""

    def answer(_: JobView) -> str:
        return "x"

    def register() -> Any:
        return chain.runner(kind)(answer) if kind else chain.runner(answer)

    assert register() is answer
    words = "of kind llm" if kind else "of every kind"
    with pytest.raises(TrailbossError, match=f"answer answers the runner jobs {words} already"):
        register()


@pytest.mark.parametrize("kind", ["lm", "", 5])
def test_kind_that_the_sdk_does_not_have_is_refused(chain: LocalChain, kind: Any) -> None:
    """It would wait for ever for a job that never comes."""
    with pytest.raises(Rejection, match=f"there is no kind of runner job {kind!r}: the SDK asks for llm, http, mcp"):
        chain.runner(kind)
    assert chain.height == 0


def test_value_that_cannot_be_encoded_names_the_job(chain: LocalChain) -> None:
    """As a reply by hand does."""
    chain.runner(lambda _: {1, 2})
    ask(chain, oracle(chain))
    with pytest.raises(Rejection, match="the reply to runner job 1 has no canonical CBOR"):
        chain.mine()


def test_reply_that_no_block_takes_raises(chain: LocalChain) -> None:
    """An actor that has lost its money after it sent the job cannot take the reply."""
    chain.runner(lambda _: "x")
    actor = oracle(chain)
    ask(chain, actor)
    # The block of this call holds the reply, behind the call.
    with pytest.raises(RevertedError, match="insufficient_gas_balance"):
        chain.set_balance(actor, 0)


def test_function_that_is_registered_leaves_a_running_runner_as_it_is(chain: LocalChain) -> None:
    """And starts one where there is none."""
    chain.start_runner(jobs_max=1)
    height = chain.height
    chain.runner("llm")(lambda _: "x")
    assert chain.height == height
    actor = raw_actor(chain)
    actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    chain.mine()
    assert verify_chain(chain.chain).ok
    assert chain.jobs()[0].replied_at == chain.height


def test_job_that_no_function_answers_waits_while_time_passes(chain: LocalChain) -> None:
    """An advance does not ask about it in each block, and another job is answered meanwhile."""
    asked = []

    @chain.runner("http")
    def fetch(job: JobView) -> str:
        asked.append(job.job)
        return "sleet"

    actor = oracle(chain)
    ask(chain, actor)
    chain.mine(5_000)
    ask(chain, actor, "Cody")
    chain.mine()
    assert asked == [1, 3]
    assert [(each.job, each.kind, each.state) for each in chain.jobs(state="open")] == [
        (2, "llm", "open"),
        (4, "llm", "open"),
    ]
