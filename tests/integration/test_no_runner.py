"""Continuations that wait for a runner, which this chain does not have. Decision: D-92."""

import pytest

from trailboss.codec.canonical import encode_canonical
from trailboss.testing import ActorHandle, LocalChain, RevertedError

ASSISTANT = """
from cowboy_sdk import actor, capture, deferred, public, runner


@actor
class Assistant:
    @public
    @runner.continuation
    async def ask(self, prompt):
        ctx = capture()
        ctx.prompt = prompt
        answer = await runner.JOB(ctx.prompt)
        self.storage["answer"] = answer
        return answer

    @public
    @deferred
    def ask_by_hand(self, prompt):
        runner.send_message("llm", b"cid", "ask__resume", [prompt])
"""
RAW = """
def go(payload):
    pvm_host.send_message(bytes(19) + b"\\x02", payload)


def tries(payload):
    try:
        go(payload)
    except pvm_host.HostError as error:
        return error.name
"""


def deploy(chain: LocalChain, source: str) -> ActorHandle:
    return chain.deploy(source, sender=chain.accounts[0], value=10**12)


@pytest.mark.parametrize("job", ["llm", "http"])
def test_continuation_that_asks_the_runner_is_refused_by_name(chain: LocalChain, job: str) -> None:
    """The transaction reverts, with the job, the reason and what to do; nothing waits for a reply."""
    actor = deploy(chain, ASSISTANT.replace("JOB", job))
    before = dict(actor.storage)
    receipt = actor.call("ask", encode_canonical("how are you?"), sender=chain.accounts[0])
    assert receipt.error is not None
    assert (receipt.status, receipt.error.code, receipt.error.slug) == ("reverted", 1920, "no_runner")
    assert receipt.error.what == f"{actor.address} asks for a runner job ({job}), and this chain has no runner"
    assert "LocalChain.start_runner" in receipt.error.fix
    assert dict(actor.storage) == before
    chain.mine(3)
    assert chain.receipts(origin="message") == []


def test_job_that_the_sdk_is_told_to_send_is_refused(chain: LocalChain) -> None:
    """`runner.send_message` is what continuations compiled elsewhere call."""
    actor = deploy(chain, ASSISTANT.replace("JOB", "llm"))
    with pytest.raises(RevertedError, match="asks for a runner job \\(llm\\)"):
        actor.call("ask_by_hand", encode_canonical("hello"), sender=chain.accounts[0], check=True)


def test_message_to_the_dispatcher_is_refused_and_can_be_caught(chain: LocalChain) -> None:
    """Whatever it brings, as any other refusal of a host call."""
    actor = deploy(chain, RAW)
    for payload in (b"", b"no CBOR", encode_canonical([1]), encode_canonical({"job_type": 5})):
        receipt = actor.call("go", payload, sender=chain.accounts[0])
        assert receipt.error is not None
        assert receipt.error.what == f"{actor.address} asks for a runner job, and this chain has no runner"
    assert actor.call("tries", sender=chain.accounts[0], check=True).return_value == b"no_runner"
