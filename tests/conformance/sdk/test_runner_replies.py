"""Jobs and replies are those of the public SDK: what it sends is kept whole, and it reads what is replied."""

import json

import pytest
from cowboy_sdk import codec, runner
from cowboy_sdk.testing import llm_failure, llm_value

from trailboss.chain.jobs import FAILURE_REASONS, JobFailure, encode_reply
from trailboss.codec.canonical import decode_canonical
from trailboss.model.configs import RunnerJob
from trailboss.testing import LocalChain

CID = bytes(range(32))
SCHEMA = json.dumps(
    {
        "additionalProperties": False,
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "type": "object",
    },
    sort_keys=True,
    separators=(",", ":"),
)
STRUCTURED = f"""
from cowboy_sdk import actor, capture, public, runner


@actor
class Guide:
    @public
    @runner.continuation
    async def ask(self, question):
        ctx = capture()
        ctx.reply = await runner.llm(question, response_schema={SCHEMA!r}, temperature=0.5, max_tokens=64)
        self.storage["failure"] = ctx.reply.failure
        self.storage["value"] = ctx.reply.value
        return None

    @public
    @runner.continuation
    async def walk(self, question):
        ctx = capture()
        ctx.answer = await runner.agent("kimi-k2", question, max_iterations=3)
        ctx.files = await runner.mcp("files", "read", path="/a")
        ctx.run = await runner.container("cby-runner-base", ["true"], volumes=[("ws", "rw")])
        self.storage["all"] = [ctx.run.data]
        return None
"""


def stored_job() -> RunnerJob:
    request = codec.encode({"kind": "runner_job", "job_type": "llm", "cid": CID, "reply_handler": "ask__resume"})
    return RunnerJob(b"\1" * 20, request, 5, b"\2" * 32, "ask__resume", 1_000_000, 150_000)


@pytest.mark.parametrize("value", ["text", {"text": "x"}, ["a", 1, None, b"b"], None, 2.5, 2**70])
def test_value_is_what_the_sdk_would_encode(value: object) -> None:
    """Byte for byte as the SDK's own test chain writes a reply, and the SDK reads it back."""
    reply = encode_reply(1, stored_job(), value)
    members = {"cid": CID.hex(), "result": value, "reply_handler": "ask__resume", "correlation_id": None}
    assert reply == codec.encode(members)
    assert runner._extract_result(reply) == (CID, value)


@pytest.mark.parametrize("reason", FAILURE_REASONS)
def test_failure_is_what_the_sdk_takes_for_the_chains_report(reason: str) -> None:
    """With its reason, its attempts and the id of the job; these are all the reasons that the SDK knows."""
    cid, report = runner._extract_result(encode_reply(1, stored_job(), JobFailure(reason, attempts=3)))
    assert cid == CID
    assert runner._is_chain_failure(report)
    assert (report.error.reason, report.error.attempts) == (reason, 3)
    assert set(FAILURE_REASONS) == runner._JOB_FAILURE_REASONS


@pytest.mark.parametrize(
    ("reply", "failure", "value"),
    [
        (llm_value({"city": "Cody"}), None, {"city": "Cody"}),
        (llm_failure("provider_refusal"), "provider_refusal", None),
    ],
)
def test_structured_call_takes_the_sdks_own_replies(
    chain: LocalChain, reply: object, failure: str | None, value: object
) -> None:
    """The schema and the settings come with the job; `.value` and `.failure` are what the SDK makes of the reply."""
    chain.start_runner()
    actor = chain.deploy(STRUCTURED, sender=chain.accounts[0], value=10**12)
    actor.call("ask", codec.encode("where?"), sender=chain.accounts[0], check=True)
    [job] = chain.jobs()
    assert job.options == {"response_schema": SCHEMA, "temperature": 0.5, "max_tokens": 64}
    chain.reply(job, reply, check=True)
    stored = {name: decode_canonical(content) for name, content in actor.storage.items() if b"__" not in name}
    assert stored.get(b"failure") == failure
    assert stored.get(b"value") == value


def test_every_kind_of_job_waits(chain: LocalChain) -> None:
    """Agents, tools and containers as the SDK sends them, one await after the other."""
    chain.start_runner()
    actor = chain.deploy(STRUCTURED, sender=chain.accounts[0], value=10**12)
    actor.call("walk", codec.encode("why?"), sender=chain.accounts[0], check=True)
    for value in ({"answer": "because"}, {"content": "text"}, {"exit": 0}):
        chain.reply(chain.jobs(state="open")[0], value, check=True)
    assert [(job.kind, job.arguments, dict(job.options)) for job in chain.jobs()] == [
        ("agent", ["kimi-k2", "why?"], {"max_iterations": 3}),
        ("mcp", ["files", "read"], {"path": "/a"}),
        ("container", ["cby-runner-base", ["true"]], {"volumes": [["ws", "rw"]]}),
    ]
    assert decode_canonical(actor.storage[b"all"]) == [{"exit": 0}]
