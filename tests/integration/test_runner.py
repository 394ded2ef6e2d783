"""A development chain with a runner: jobs wait in the state until a transaction replies to them. Decision: D-113."""

from pathlib import Path
from typing import Any

import pytest
from cowboy_sdk import recipes

from tests.integration.development import ordinary_chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_transaction
from trailboss.chain.export import export_chain, load_chain
from trailboss.chain.replay import verify_chain
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.transactions import ReplyJob, SetRunner
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing import ActorHandle, LocalChain, RevertedError
from trailboss.views.records import build_block

ORACLE = """
from cowboy_sdk import actor, capture, public, runner


@actor
class Oracle:
    @public
    @runner.continuation(timeout_blocks=5)
    async def ask(self, city):
        ctx = capture()
        ctx.city = city
        ctx.page = await runner.http("https://weather.example/" + ctx.city)
        ctx.summary = await runner.llm("Summarize: " + ctx.page.text)
        self.storage["summary"] = ctx.city + ": " + ctx.summary.text
        return ctx.summary.text

    @public
    @runner.continuation
    async def measure(self, image):
        ctx = capture()
        ctx.out = await runner.container(image, ["measure"], resume_cycles=120_000, resume_cells=110_000)
        self.storage["twice"] = 2 * ctx.out.data["exit"]
        return None
"""
RAW = """
def go(payload):
    pvm_host.send_message(bytes(19) + b"\\x02", payload)


def take(payload):
    pvm_host.set_state(b"taken", payload)


def refuse(payload):
    pvm_host.set_state(b"taken", payload)
    raise ValueError("not that")
"""
FUNDS = 1_000 * BASE_UNITS_PER_CBY


def oracle(chain: LocalChain) -> ActorHandle:
    return chain.deploy(ORACLE, sender=chain.accounts[0], value=FUNDS)


def ask(chain: LocalChain, actor: ActorHandle, city: str = "Laramie") -> None:
    actor.call("ask", encode_canonical(city), sender=chain.accounts[0], check=True)


def raw_job(handler: str = "take", **changes: object) -> bytes:
    job = {"kind": "runner_job", "job_type": "llm", "cid": b"cid", "reply_handler": handler}
    return encode_canonical({**job, "payload": {"args": ["hello"], "kwargs": {}}, **changes})


def raw_actor(chain: LocalChain, value: int = FUNDS) -> ActorHandle:
    return chain.deploy(RAW, sender=chain.accounts[0], value=value)


def test_continuation_with_two_awaits_ends_with_the_second_reply(chain: LocalChain) -> None:
    """Each reply resumes it in a block of its own, as the actor, with the state that it kept."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    [page] = chain.jobs()
    assert (page.job, page.actor, page.kind, page.state) == (1, actor.address, "http", "open")
    assert (page.arguments, page.options, page.text) == (["https://weather.example/Laramie"], {}, page.arguments[0])
    assert (page.block, page.handler) == (chain.height, "ask__resume")
    resumed = chain.reply(page, {"text": "sleet"}, check=True)
    assert (resumed.origin, resumed.actor, resumed.payer) == ("transaction", actor.address, actor.address)
    [summary] = chain.jobs(state="open")
    assert (summary.job, summary.kind, summary.text) == (2, "llm", "Summarize: sleet")
    receipt = chain.reply(summary, "wet", check=True)
    assert decode_canonical(receipt.return_value) == "wet"
    assert decode_canonical(actor.storage[b"summary"]) == "Laramie: wet"
    assert [(each.state, each.replied_at) for each in chain.jobs()] == [
        ("answered", chain.height - 1),
        ("answered", chain.height),
    ]
    assert actor.storage[b"__continuation_count"] == bytes(4)


def test_recipe_of_the_sdk_runs_to_its_end(chain: LocalChain) -> None:
    """But for @public, without which nobody may call it, and a map's entry, which is no attribute of it."""
    source = recipes.get("runner_continuation").replace("    @runner", "    @public\n    @runner")
    source = source.replace("import actor,", "import actor, public,").replace("msg.text", 'msg["text"]')
    replies = []

    @chain.runner
    def summarize(job: Any) -> str:
        replies.append(job.text)
        return "short"

    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    actor.call("analyze", encode_canonical({"text": "long"}), sender=chain.accounts[0], check=True)
    chain.mine()
    [resumed] = [each for each in chain.receipts(actor=actor) if each.block_height == chain.height]
    assert resumed.ok
    assert replies == ["Summarize: long"]
    assert decode_canonical(resumed.return_value) == "short"


def test_reply_runs_with_the_budget_that_the_job_asks_for(chain: LocalChain) -> None:
    """Its own cycles and cells, and the actor pays for what is used; one that needs more runs out."""
    chain.start_runner()
    actor = oracle(chain)
    actor.call("measure", encode_canonical("base"), sender=chain.accounts[0], check=True)
    before = chain.balance(actor)
    receipt = chain.reply(1, {"exit": 21}, check=True)
    assert chain.balance(actor) == before - receipt.fee_paid
    assert receipt.fee_paid + receipt.refund == 10_000 * (120_000 + chain.chain.params.costs.transaction_base + 110_000)
    assert decode_canonical(actor.storage[b"twice"]) == 42
    spends = chain.deploy(
        'def go(payload):\n    pvm_host.send_message(bytes(19) + b"\\x02", payload)\n\n\n'
        "def take(payload):\n    while True:\n        pass\n",
        sender=chain.accounts[0],
        value=FUNDS,
    )
    budget = {"args": [], "kwargs": {"resume_cycles": 102_000}}
    spends.call("go", raw_job(payload=budget), sender=chain.accounts[0], check=True)
    out = chain.reply(2, "x")
    assert out.error is not None
    assert (out.status, out.error.slug) == ("reverted", "out_of_cycles")
    assert out.cycles_used == 102_000 + chain.chain.params.costs.transaction_base


def test_chain_that_gives_up_ends_the_method(chain: LocalChain) -> None:
    """An await with nothing around it: the SDK frees the continuation, and what follows does not run."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    receipt = chain.reply(1, error="retries_exhausted", check=True)
    assert receipt.ok
    assert b"summary" not in actor.storage
    assert actor.storage[b"__continuation_count"] == bytes(4)
    assert chain.jobs(state="open") == []


def test_continuation_that_waits_too_long_times_out(chain: LocalChain) -> None:
    """The SDK refuses the reply by its own clock; the job is over, the continuation is stored for ever."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    chain.mine(6)
    receipt = chain.reply(1, "too late")
    assert receipt.error is not None
    assert "RunnerTimeoutError" in receipt.error.what
    assert chain.jobs()[0].state == "answered"
    assert actor.storage[b"__continuation_count"] == b"\x00\x00\x00\x01"


def test_reply_that_the_handler_refuses_is_still_the_reply(chain: LocalChain) -> None:
    """As in public: what the handler did is rolled back and paid, and nobody asks again."""
    chain.start_runner()
    actor = raw_actor(chain)
    actor.call("go", raw_job("refuse"), sender=chain.accounts[0], check=True)
    with pytest.raises(RevertedError, match="not that"):
        chain.reply(1, "x", check=True)
    assert b"taken" not in actor.storage
    assert chain.jobs()[0].replied_at == chain.height
    with pytest.raises(Rejection, match=f"runner job 1 has had its reply in block {chain.height}"):
        chain.reply(1, "x")


def test_replies_have_the_form_of_a_public_chain(chain: LocalChain) -> None:
    """The id as text, the handler, and either a result or the chain's report, as the SDK's own test chain writes it."""
    chain.start_runner()
    actor = raw_actor(chain)
    for _ in range(2):
        actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    chain.reply(1, {"text": "x", "n": [1, None, b"y"]}, check=True)
    common = {"cid": b"cid".hex(), "reply_handler": "take", "correlation_id": None}
    assert decode_canonical(actor.storage[b"taken"]) == {**common, "result": {"text": "x", "n": [1, None, b"y"]}}
    chain.reply(2, error="no_replacement_available", check=True)
    failure = decode_canonical(actor.storage[b"taken"])
    assert failure == {
        **common,
        "failure": {
            "kind": "failure",
            "v": 1,
            "job_id": str(chain.jobs()[1].hash),
            "reason": "no_replacement_available",
            "attempts": 1,
        },
    }


def test_runner_that_stops_refuses_jobs_by_name(chain: LocalChain) -> None:
    """What waits can still be replied to."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    chain.stop_runner()
    with pytest.raises(RevertedError, match=r"asks for a runner job \(http\), and this chain has no runner"):
        ask(chain, actor)
    assert chain.reply(1, "sleet").error is not None  # its second job is refused
    assert [each.state for each in chain.jobs()] == ["answered"]


def test_as_many_jobs_wait_as_may(chain: LocalChain) -> None:
    """A reply makes room."""
    chain.start_runner(jobs_max=2)
    actor = raw_actor(chain)
    for _ in range(2):
        actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    receipt = actor.call("go", raw_job(), sender=chain.accounts[0])
    assert receipt.error is not None
    assert (receipt.error.slug, receipt.error.context["limit"]) == ("mailbox_full", 2)
    chain.reply(1, "x", check=True)
    actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    assert [each.job for each in chain.jobs(state="open")] == [2, 3]


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        (b"no CBOR", "the message is no job"),
        (encode_canonical([1]), "the message is no job"),
        (raw_job(kind="other"), "the message is no job"),
        (raw_job(job_type=5), "job_type = 5 must be text"),
        (raw_job(cid="cid"), "cid = 'cid' must be bytes"),
        (raw_job(reply_handler=None), "reply_handler = None must be text"),
        (raw_job(""), "reply_handler has 0 bytes"),
        (raw_job(payload={"args": [], "kwargs": {"resume_cycles": 101_999}}), "resume_cycles = 101999 must be"),
        (raw_job(payload={"args": [], "kwargs": {"resume_cells": "1"}}), "resume_cells = '1' must be"),
    ],
)
def test_message_that_is_no_job_is_refused_by_name(chain: LocalChain, payload: bytes, rule: str) -> None:
    """It reverts the call that sends it, and nothing waits."""
    chain.start_runner()
    receipt = raw_actor(chain).call("go", payload, sender=chain.accounts[0])
    assert receipt.error is not None
    assert receipt.error.slug == "invalid_input"
    assert rule in receipt.error.what
    assert chain.jobs() == []


def test_actor_that_cannot_pay_for_the_reply_is_refused_its_job(chain: LocalChain) -> None:
    """As in public, where the job is refused at once; with one base unit more the reply comes through."""
    chain.start_runner()
    needed = 10_000 * (1_000_000 + 150_000 + chain.chain.params.costs.transaction_base)
    poor = raw_actor(chain, needed - 1)
    receipt = poor.call("go", raw_job(), sender=chain.accounts[0])
    assert receipt.error is not None
    assert (receipt.error.slug, receipt.error.context["required"]) == ("insufficient_gas_balance", str(needed))
    chain.transfer(poor.address, 1, sender=chain.accounts[0], check=True)
    poor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    chain.reply(1, "x", check=True)


def test_reply_is_the_actors_and_comes_once(chain: LocalChain) -> None:
    """Nobody else's transaction, of no other job, and of this one no second; a refusal changes nothing."""
    chain.start_runner()
    actor = raw_actor(chain)
    actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    root = chain.state_root
    stranger = chain.send(ReplyJob(1, b""), sender=chain.accounts[1])
    unknown = chain.impersonate(actor, ReplyJob(2, b""))
    assert stranger.error is not None
    assert unknown.error is not None
    assert (stranger.status, unknown.status, chain.state_root) == ("refused", "refused", root)
    assert f"runner job 1 is {actor.address}'s" in stranger.error.what
    assert unknown.error.what == "there is no runner job 2"
    chain.reply(1, "x", check=True)
    again = chain.impersonate(actor, ReplyJob(1, b""))
    assert again.error is not None
    assert "has had its reply" in again.error.what


@pytest.mark.parametrize("call", [SetRunner(1), ReplyJob(1, b"")])
def test_only_a_development_chain_has_a_runner(call: SetRunner | ReplyJob) -> None:
    """On any other chain both instructions are unsupported, whoever sends them."""
    chain = ordinary_chain()
    sender = development_account("deployer").private_key
    [receipt] = build_block(chain, [draft_transaction(chain, call, sender)])
    assert receipt.error is not None
    assert receipt.error.slug == "unsupported_instruction"
    assert f"{call.name} is executed by development chains only" in receipt.error.what


def test_runner_is_the_deployers_to_set(chain: LocalChain) -> None:
    """Like every system instruction."""
    receipt = chain.send(SetRunner(1), sender=chain.accounts[0])
    assert receipt.error is not None
    assert receipt.error.slug == "unauthorized"


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_chain_with_jobs_replays_to_the_same_roots(tmp_path: Path, mechanism: str) -> None:
    """From its own blocks and from an export, with a job that waits, one that is answered, and one given up."""
    with LocalChain(mechanism=mechanism) as chain:
        chain.start_runner()
        actor = oracle(chain)
        for city in ("Laramie", "Cody"):
            ask(chain, actor, city)
        chain.reply(1, "sleet", check=True)
        chain.reply(2, error="retries_exhausted", check=True)
        chain.mine(20)
        chain.check_invariants()
        assert verify_chain(chain.chain).ok
        export_chain(chain.chain, tmp_path / "export")
        loaded = load_chain(tmp_path / "export")
        assert loaded.state_root == chain.state_root
        loaded.close()


def test_jobs_follow_the_chain_back(chain: LocalChain) -> None:
    """They are state: a snapshot has them, and blocks that are dropped take theirs along."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    mark = chain.snapshot()
    chain.reply(1, "sleet", check=True)
    assert len(chain.jobs()) == 2
    chain.revert(mark)
    assert [each.state for each in chain.jobs()] == ["open"]
    chain.reorg(1)
    assert chain.jobs() == []


def test_chain_in_a_directory_keeps_its_jobs(tmp_path: Path) -> None:
    """A job that waits when the chain is closed is replied to after it opens again."""
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        chain.start_runner()
        actor = oracle(chain)
        ask(chain, actor)
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        chain.reply(1, "sleet", check=True)
        assert [each.kind for each in chain.jobs(actor.address)] == ["http", "llm"]


def test_job_of_a_fire_waits_like_any_other(chain: LocalChain) -> None:
    """A timer's handler may ask the runner; the reply resumes the actor."""
    chain.start_runner()
    source = RAW + (
        "\n\ndef arm(payload):\n    pvm_host.schedule_timer(pvm_host.current_block() + 2, payload)\n"
        "\n\ndef handle_timer(payload):\n    go(payload)\n"
    )
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS, entitlements=["timer.schedule"])
    actor.call("arm", raw_job(), sender=chain.accounts[0], check=True)
    chain.mine(2)
    [job] = chain.jobs()
    assert job.block == chain.height
    chain.reply(job, "x", check=True)
    assert b"taken" in actor.storage


def test_job_goes_with_the_call_that_fails(chain: LocalChain) -> None:
    """A frame that reverts has sent nothing, and the number is free again."""
    chain.start_runner()
    source = RAW + "\n\ndef fails(payload):\n    go(payload)\n    raise ValueError\n"
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    actor.call("fails", raw_job(), sender=chain.accounts[0])
    assert chain.jobs() == []
    actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    assert [each.job for each in chain.jobs()] == [1]


def test_chain_without_a_runner_has_the_state_that_it_had(chain: LocalChain) -> None:
    """A refused job leaves no record: nothing about runners is in the state before one is started."""
    actor = raw_actor(chain)
    refused = actor.call("go", raw_job(), sender=chain.accounts[0])
    assert refused.error is not None
    assert refused.error.slug == "no_runner"
    assert refused.error.context["target"] == str(system_address(2))
    assert chain.jobs() == []


def test_bad_replies_are_refused_where_they_are_made(chain: LocalChain) -> None:
    """By name and rule, before any block; the job still waits."""
    chain.start_runner()
    actor = oracle(chain)
    ask(chain, actor)
    height = chain.height
    for call, rule in (
        (lambda: chain.reply(9, "x"), "there is no runner job 9"),
        (lambda: chain.reply(1, object()), "the reply to runner job 1 has no canonical CBOR: .*object"),
        (lambda: chain.reply(1, float("nan")), "the reply to runner job 1 has no canonical CBOR"),
        (lambda: chain.reply(1, error="because"), "a job's failure 'because' is unknown: the SDK knows pending_key"),
        (lambda: chain.reply(1, "x", error="retries_exhausted"), "give a value or an error"),
        (lambda: chain.jobs(state="done"), "a job is open or answered"),
        (lambda: chain.start_runner(jobs_max=0), "at least one job must be able to wait"),
    ):
        with pytest.raises(Rejection, match=rule):
            call()
    with pytest.raises(TypeError, match=r"reply\('1'\): give one of `jobs`, or its number"):
        chain.reply("1", "x")  # type: ignore[arg-type]
    assert (chain.height, [each.state for each in chain.jobs()]) == (height, ["open"])


def test_replies_to_one_actor_share_a_block(chain: LocalChain) -> None:
    """Each is its own transaction, and their nonces follow one another."""
    chain.start_runner()
    actor = raw_actor(chain)
    with chain.one_block():
        for _ in range(2):
            actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    height = chain.height
    with chain.one_block():
        receipts = [chain.reply(job, "x", check=True) for job in chain.jobs()]
    assert (chain.height, [receipt.ok for receipt in receipts]) == (height + 1, [True, True])
