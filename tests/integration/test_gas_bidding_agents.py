"""Gas bidding agents on a chain: what a good one brings about, and that a bad one brings about nothing."""

import pytest

from trailboss.execution import agents
from trailboss.model.decisions import AgentFailure
from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9

AGENT = """
import json


def serve(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())


def behave(payload):
    pvm_host.set_state(b"mode", payload)


def arm(payload):
    for number in range(int(payload)):
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"%d" % number, gas_limit=100_000)


def get_gas_bid(payload):
    mode = pvm_host.get_state(b"mode") or b"good"
    if mode == b"loops":
        while True:
            pass
    if mode == b"writes":
        pvm_host.set_state(b"trace", b"x")
    if mode == b"deletes":
        pvm_host.delete_state(b"mode")
    if mode == b"sends":
        pvm_host.send_message(bytes(19) + b"\\x77", b"x")
    if mode == b"pays":
        pvm_host.transfer_balance(bytes(19) + b"\\x77", 1)
    if mode == b"emits":
        pvm_host.emit_event("trace", b"x")
    if mode == b"schedules":
        pvm_host.schedule_timer(pvm_host.block_height() + 1, b"trace")
    if mode == b"cancels":
        pvm_host.cancel_timer(bytes(32))
    if mode == b"raises":
        raise ValueError("no bid today")
    if mode == b"recurses":
        pvm_host.call_actor(pvm_host.self_address(), "get_gas_bid", payload, 10**9)
    if mode == b"garbage":
        return b"\\xff\\xff"
    if mode == b"text":
        return "a lot"
    if mode == b"negative":
        return {"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": -1}
    if mode == b"huge":
        return {"max_fee_per_cycle": 2**127, "max_priority_fee_per_cycle": 0}
    if mode == b"inverted":
        return {"max_fee_per_cycle": 1, "max_priority_fee_per_cycle": 2}
    if mode == b"more":
        return {"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": 0, "bid": 1}
    if mode == b"swallows":
        try:
            pvm_host.set_state(b"trace", b"x")
        except Exception:
            pass
    return {"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": 77}


def handle_timer(payload):
    pvm_host.set_state(b"ran:" + payload, b"1")
"""

FAILURES = {
    "loops": "out_of_cycles",
    "writes": "failed",
    "deletes": "failed",
    "sends": "failed",
    "pays": "failed",
    "emits": "failed",
    "schedules": "failed",
    "cancels": "failed",
    "raises": "failed",
    "recurses": "failed",
    "garbage": "malformed",
    "text": "malformed",
    "negative": "malformed",
    "huge": "malformed",
    "inverted": "malformed",
    "more": "malformed",
}


def actor_with_agent(chain: LocalChain, mode: str = "good") -> ActorHandle:
    """Deploy an actor that is its own agent and behaves in one way."""
    actor = chain.deploy(AGENT, sender=chain.accounts[0], value=1_000 * CBY)
    actor.call("serve", b"", sender=chain.accounts[0], check=True)
    actor.call("behave", mode.encode(), sender=chain.accounts[0], check=True)
    return actor


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("mode", ["good", "swallows"])
def test_fire_pays_what_the_agent_bids_when_it_answers(mode: str) -> None:
    """The tip is the agent's, its cycles are the fire's; what it tried and was refused leaves no trace."""
    chain = LocalChain(mechanism="lane")
    actor = actor_with_agent(chain, mode)
    actor.call("arm", b"1", sender=chain.accounts[0], check=True)
    chain.mine(2)
    (fire,) = chain.receipts(chain.height, origin="timer")
    record = chain.chain.decisions(chain.height)
    assert fire.ok
    assert fire.tip == 77 * fire.cycles_used
    assert record.examined[0].fee_source == "agent"
    assert 10_000 < record.agent_cycles < fire.cycles_used
    assert b"trace" not in actor.storage
    chain.check_invariants()


@pytest.mark.spec("L-20", "L-21")
@pytest.mark.parametrize(("mode", "reason"), FAILURES.items())
def test_agent_changes_nothing_and_delays_nobody_when_it_fails(mode: str, reason: str) -> None:
    """Its timer runs in its own block at the default fees, and so does everybody else's; one event says why."""
    chain = LocalChain(mechanism="lane")
    bad, good = actor_with_agent(chain, mode), actor_with_agent(chain)
    with chain.one_block():
        bad.call("arm", b"1", sender=chain.accounts[0])
        good.call("arm", b"1", sender=chain.accounts[1])
    before = dict(bad.storage)
    chain.mine(2)
    (event,) = chain.events("gba.fallback")
    assert (event.emitter, event.data["agent"], event.data["reason"]) == (bad.address, bad.address, reason)
    fires = {receipt.actor: receipt for receipt in chain.receipts(chain.height, origin="timer")}
    assert {actor: fire.ok for actor, fire in fires.items()} == {bad.address: True, good.address: True}
    assert fires[bad.address].tip == 0
    assert dict(bad.storage) == before | {b"ran:0": b"1"}
    assert chain.events("trace") == []
    assert chain.timers() == []
    chain.check_invariants()


WORDS = [
    ("raises", 64, "E1210 pvm_error: ValueError: no bid today"),
    ("garbage", 64, "its answer is no bid: 0xffff"),
    ("garbage", 2, "its answer is no bid: 0xff"),
]


@pytest.mark.spec("L-21")
def test_roots_are_the_same_when_the_words_of_a_failure_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand in the decision record alone: another wording, and every hash stays."""
    heads: dict[str, set[bytes]] = {}
    for mode, shown, words in WORDS:
        monkeypatch.setattr(agents, "SHOWN", shown)
        with LocalChain(mechanism="lane") as chain:
            actor = actor_with_agent(chain, mode)
            timer = actor.call("arm", b"1", sender=chain.accounts[0], check=True).events[0].timer_id
            chain.mine(2)
            assert chain.decisions(chain.height).agent_failures == (AgentFailure(timer, words),)
            heads.setdefault(mode, set()).add(chain.block().hash)
    assert {mode: len(hashes) for mode, hashes in heads.items()} == {"raises": 1, "garbage": 1}


CLASS = "X" * 20_000
BOASTER = f"""
class {CLASS}(Exception):
    pass


def init(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())
    pvm_host.schedule_timer(int(payload), b"", gas_limit=100_000)


def get_gas_bid(payload):
    if pvm_host.get_state(b"answers"):
        return b"y" * 50_000
    raise {CLASS}


def answer(payload):
    pvm_host.set_state(b"answers", b"1")


def handle_timer(payload):
    pass
"""


@pytest.mark.parametrize(
    ("answers", "words"),
    [(False, ("E1210 pvm_error: " + CLASS)[:1_024]), (True, "its answer is no bid: 0x" + "79" * 32)],
)
def test_words_of_a_failure_are_bounded_when_the_agent_makes_them_long(answers: bool, words: str) -> None:
    """Nobody pays for the decision record, so nobody fills it: 1,024 characters a question, 64 digits of an answer."""
    with LocalChain(mechanism="lane") as chain:
        actor = chain.deploy(BOASTER, sender=chain.accounts[0], value=1_000 * CBY, init_payload=b"5")
        if answers:
            actor.call("answer", sender=chain.accounts[0], check=True)
        chain.advance_to(5)
        assert [failure.what for failure in chain.decisions(5).agent_failures] == [words]


LOOPER = """
def init(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())
    pvm_host.schedule_timer(int(payload), b"", gas_limit=100_000)


def get_gas_bid(payload):
    while True:
        pass


def handle_timer(payload):
    pass
"""


def loopers(chain: LocalChain, count: int, height: int, a_block: int = 50) -> None:
    """Deploy actors whose agents never end, each with a timer of one height."""
    for start in range(0, count, a_block):
        with chain.one_block():
            for number in range(start, min(start + a_block, count)):
                owner = chain.accounts[number % len(chain.accounts)]
                chain.deploy(LOOPER, sender=owner, value=20 * CBY, init_payload=b"%d" % height)


@pytest.mark.spec("L-21")
def test_questions_stay_within_the_budget_when_hundreds_of_agents_loop() -> None:
    """300 actors whose agents never end: 20 questions of 50,000 cycles a block, and none of the timers waits for them.

    Those asked are converted to default fees, those that fire unasked say so with one event, and what the questions of
    its block have used counts into a fire.
    """
    chain = LocalChain(mechanism="lane", params={"timers.lane_cycles_per_block": 40_000_000})
    loopers(chain, 300, height=20)
    chain.advance_to(20)
    record = chain.chain.decisions(20)
    assert (record.agent_cycles, record.examined_count, record.outranked) == (1_000_000, 300, 0)
    fires = chain.receipts(20, origin="timer")
    assert [fire.ok for fire in fires] == [True] * 300
    assert sorted(fire.cycles_used > 50_000 for fire in fires) == [False] * 280 + [True] * 20
    reasons = [event.data["reason"] for event in chain.events("gba.fallback")]
    assert (reasons.count("out_of_cycles"), reasons.count("budget")) == (20, 280)
    assert len(record.agent_failures) == 20
    chain.check_invariants()
