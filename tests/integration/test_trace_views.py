"""What people see of traces: the sums, what calls asked for, and where an execution is found."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.lives import ACTORS, BLOCKS, LIVES, MECHANISMS
from tests.integration import auctions, boxes
from tests.integration.helpers import FUNDS, PUPPET, perform, step
from tests.integration.test_deferred_transactions import ACTOR as DEFERRER
from tests.integration.test_gas_bidding_agents import actor_with_agent
from tests.integration.test_trace import CALLEE
from trailboss.chain import Chain
from trailboss.chain.export import export_chain, import_chain
from trailboss.model.transactions import UpgradeActor
from trailboss.primitives.errors import Rejection
from trailboss.testing import CBY, ActorHandle, LocalChain, Receipt
from trailboss.views.json_values import to_json_value
from trailboss.views.trace.executions import trace_height
from trailboss.views.trace.records import BlockTraces, FrameView, HostCallView, Trace

LONE = """
import pvm_host

class Till:
    def pay(self, payload):
        print("paying")
        pvm_host.set_state(b"paid", b"1")
        pvm_host.set_state(value=b"2", key=b"paid")
        pvm_host.delete_state(b"paid")
        timer = pvm_host.schedule_timer(pvm_host.block_height() + 9, b"later", gas_limit=50_000)
        print("armed")
        pvm_host.cancel_timer(timer)
        pvm_host.transfer_balance(payload, 7)
        pvm_host.emit_event("paid", b"\\xa1aaao")
        try:
            pvm_host.transfer_balance(payload, 2**120)
        except pvm_host.HostError:
            pass
"""
ENDLESS = """
import pvm_host

def spin(payload):
    pvm_host.set_state(b"k", b"v")
    while True:
        pass
"""
DEEP = """
import pvm_host

def dig(payload):
    depth = int(payload)
    if depth == 0:
        raise ValueError("bottom")
    return pvm_host.call_actor(pvm_host.self_address(), "dig", b"%d" % (depth - 1), pvm_host.gas_left())
"""


def frames_of(frame: FrameView | None) -> Iterator[FrameView]:
    waiting = [] if frame is None else [frame]
    for each in waiting:
        yield each
        waiting += [call.frame for call in each.calls if call.frame is not None]


def calls_of(frame: FrameView | None) -> list[HostCallView]:
    return [call for each in frames_of(frame) for call in each.calls]


def check_sums(trace: Trace) -> None:
    """Check the sums of a trace at every node: cycles and cells are those of what is below, up to the receipt's."""
    outermost = 0 if trace.frame is None else trace.frame.cycles
    assert trace.intrinsic_cycles + outermost == trace.receipt.cycles_used
    if trace.receipt.origin == "timer":
        assert trace.intrinsic_cycles == sum(question.cycles for question in trace.questions)
    settled = trace.receipt.fee_burned + trace.receipt.tip + trace.receipt.refund
    assert settled == trace.reserved
    for frame in frames_of(trace.frame):
        assert frame.cycles == frame.base_cycles + frame.own_cycles + frame.nested_cycles <= frame.cycles_limit
        assert frame.nested_cycles == sum(call.frame.cycles for call in frame.calls if call.frame is not None)
        assert frame.own_cycles == sum(line.cycles for line in frame.lines) >= 0
        assert frame.cells == sum(call.cells for call in frame.calls)
        for call in frame.calls:
            assert call.cycles == call.own_cycles + (0 if call.frame is None else call.frame.cycles)


def traces_of(chain: LocalChain) -> Iterator[BlockTraces]:
    """Yield the traces of all blocks in which something ran; they are those of the receipts, in their order."""
    for block in chain.chain.blocks.eventful():
        if block.height:
            traces = chain.trace_block(block.height)
            assert [trace.receipt for trace in traces.traces] == chain.receipts(block.height)[: len(traces.traces)]
            yield traces


def check_all(chain: LocalChain) -> list[Trace]:
    found = [trace for traces in traces_of(chain) for trace in traces.traces]
    for trace in found:
        check_sums(trace)
        assert json.loads(trace.to_json())["receipt"]["cycles_used"] == trace.receipt.cycles_used
        assert str(trace)
    return found


def test_delivery_without_a_frame_says_what_its_cycles_are(chain: LocalChain) -> None:
    """A message to an address without an actor costs the base price of a frame; no agent has been asked."""
    source = "import pvm_host\n\ndef send(payload):\n    pvm_host.send_message(payload, b'')\n"
    sender = chain.deploy(source, sender=chain.accounts[0], value=5 * CBY)
    sent = sender.call("send", chain.accounts[1].address, sender=chain.accounts[0], check=True)
    delivery = chain.trace_block(sent.block_height).traces[-1]
    check_sums(delivery)
    assert delivery.receipt.origin == "message"
    assert "10,000 cycles before any handler: the base price of a frame that did not begin" in str(delivery)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIVES)
def test_sums_are_those_of_the_receipts_in_the_life_of_an_example(name: str) -> None:
    """Cycles and cells add up at every node, whatever the example does, and each execution has its trace."""
    with LocalChain(mechanism=MECHANISMS.get(name, "fifo")) as chain:

        def deploy(file: str, value: int, payload: bytes = b"") -> ActorHandle:
            source = (ACTORS / f"{file}.py").read_text(encoding="utf-8")
            return chain.deploy(source, sender=chain.accounts[0], value=value, init_payload=payload)

        LIVES[name](chain, deploy)
        chain.advance_to(BLOCKS)
        assert len(check_all(chain)) == len(chain.receipts())


def test_calls_show_their_arguments_by_name_and_what_they_asked_for(chain: LocalChain) -> None:
    """Slots, timers, money, events and prints stand where they happened, and a refusal says why."""
    person = chain.accounts[1].address
    till = chain.deploy(LONE, sender=chain.accounts[0], value=CBY)
    trace = till.call("pay", person, sender=chain.accounts[0], check=True).trace
    check_sums(trace)
    frame = trace.frame
    assert frame is not None
    assert (frame.label, frame.handler, frame.sender_name) == ("Till", "pay", "account 0")
    assert [(each.after_calls, each.text) for each in frame.printed] == [(0, "paying"), (4, "armed")]
    calls = frame.calls
    assert calls[1].arguments == {"key": b"paid", "value": b"2"}
    slots = [call.effects[0].facts for call in calls[:3]]
    assert [(each["before"], each["after"]) for each in slots] == [(None, b"1"), (b"1", b"2"), (b"2", None)]
    armed, dropped = calls[3].effects[0], calls[4].effects[0]
    assert (armed.kind, armed.facts["gas_limit"]) == ("timer_scheduled", 50_000)
    assert armed.facts["timer_id"] == calls[3].answer == dropped.facts["timer_id"]
    assert dropped.kind == "timer_cancelled"
    assert calls[3].arguments == {"height": trace.receipt.block_height + 9, "payload": b"later", "gas_limit": 50_000}
    assert calls[5].effects[0].facts == {"from": till.address, "to": person, "amount": 7}
    assert calls[6].effects[0].facts["data"] == {"a": "o"}
    assert "balance" in calls[7].refusal
    assert not calls[7].effects
    shown = str(trace)
    assert "slot paid: 1 → 2" in shown
    assert "moves 0.000000007 CBY" in shown
    assert shown.index("paying") < shown.index("schedule_timer") < shown.index("armed") < shown.index("cancel_timer")
    assert "set_state" not in trace.text(calls=False)


def test_failure_of_a_nested_call_names_its_own_line(chain: LocalChain) -> None:
    """The tree leads to the callee's frame, and its first line says what happened there."""
    source = 'def go(payload):\n    return pvm_host.call_actor(payload, "boom", b"", 50_000)\n'
    callee = chain.deploy(CALLEE, sender=chain.accounts[0])
    receipt = chain.deploy(source, sender=chain.accounts[0]).call("go", callee.address, sender=chain.accounts[0])
    check_sums(receipt.trace)
    heading, *rest = str(receipt.trace).splitlines()
    assert heading.endswith('reverted: E1210 pvm_error: ValueError: boom, line 6, in boom: raise ValueError("boom")')
    assert any("its call of boom failed" in line for line in rest)


def test_out_of_gas_is_traced_up_to_the_limit(chain: LocalChain) -> None:
    """A frame that exhausts its cycles has used all of them, and its calls before that are there."""
    spinner = chain.deploy(ENDLESS, sender=chain.accounts[0])
    trace = spinner.call("spin", sender=chain.accounts[0], cycles_limit=40_000).trace
    check_sums(trace)
    assert trace.receipt.error is not None
    assert trace.receipt.error.slug == "out_of_cycles"
    assert trace.frame is not None
    assert trace.frame.cycles == trace.frame.cycles_limit
    assert [call.name for call in trace.frame.calls] == ["set_state"]


def test_frames_nest_as_deep_as_calls_can(chain: LocalChain) -> None:
    """Thirty-three frames, of which the innermost fails, are drawn and written as any others."""
    digger = chain.deploy(DEEP, sender=chain.accounts[0])
    receipt = digger.call("dig", b"32", sender=chain.accounts[0], cycles_limit=5_000_000)
    frames = list(frames_of(receipt.trace.frame))
    check_sums(receipt.trace)
    assert [frame.depth for frame in frames] == list(range(33))
    assert "ValueError: bottom" in str(receipt.trace).splitlines()[0]
    assert len(receipt.trace.to_json()) > len(receipt.trace._repr_html_()) > 0


def test_deploying_upgrading_and_paying_have_traces(chain: LocalChain) -> None:
    """What runs no handler has its price and settlement alone; a creation call has its frame."""
    owner = chain.accounts[0]
    source = 'def init(payload):\n    pvm_host.set_state(b"made", payload)\n'
    actor = chain.deploy(source, sender=owner, init_payload=b"now", value=5)
    upgrade = chain.system(UpgradeActor(actor.address, b"def tick(payload):\n    pass\n"), check=True)
    transfer = chain.transfer(chain.accounts[1], 5, sender=owner)
    created, funded = chain.trace_block(1).traces
    assert created.frame is not None
    assert (created.frame.handler, created.frame.raw_payload) == ("init", b"now")
    for trace in (created, funded, upgrade.trace, transfer.trace):
        check_sums(trace)
    assert [each.instruction for each in (funded, upgrade.trace, transfer.trace)] == [
        "FundActor",
        "UpgradeActor",
        "Transfer",
    ]
    assert funded.frame is upgrade.trace.frame is transfer.trace.frame is None


def test_questions_to_agents_stand_beside_the_fire_in_the_lane() -> None:
    """An agent's frame is read-only, and its cycles are what the fire had used before its handler ran."""
    with LocalChain(mechanism="lane") as chain:
        actor_with_agent(chain).call("arm", b"1", sender=chain.accounts[0], check=True)
        chain.mine(2)
        asked = [trace for trace in check_all(chain) if trace.questions]
        assert asked
        assert all(question.read_only for trace in asked for question in trace.questions)
        assert "asked its agent: get_gas_bid(" in str(asked[0])


def test_questions_without_a_fire_stand_in_their_block_in_the_auction() -> None:
    """Sums hold under the auction, and what an agent was asked is in the trace of the block, fire or not."""
    with auctions.open_auction() as chain:
        actor = auctions.bidder(chain)
        auctions.arm(actor, "a", "b", height=chain.height + 4)
        chain.mine(8)
        check_all(chain)
        frames = [question for traces in traces_of(chain) for question in traces.questions]
        fires = [trace for traces in traces_of(chain) for trace in traces.traces if trace.receipt.timer_id]
        assert fires
        assert all(each.frame.handler == "get_gas_bid" for each in frames)


def test_fires_of_globalbox_and_watches_have_traces() -> None:
    """A fire's frame is that of the target's handler, and the latest one is found by the timer's id."""
    with boxes.open_box() as chain:
        owner = boxes.deploy_box(chain)
        timer_id = boxes.set_timeout(owner, chain.height + 3)
        watching = boxes.watch(owner, boxes.key(owner, b"w"))
        with pytest.raises(Rejection, match="has not fired: it waits for a change"):
            chain.trace(watching)
        boxes.put(owner, b"w", b"1")
        chain.mine(6)
        check_all(chain)
        fired = chain.trace(timer_id)
        assert fired.receipt.timer_id == timer_id
        assert fired.frame is not None
        assert fired.frame.actor == owner.address
        boxes.put(owner, b"w", b"2")
        chain.mine(3)
        [set_watch] = [
            call for trace in check_all(chain) for call in calls_of(trace.frame) if call.name == "set_state_watch"
        ]
        assert set_watch.arguments["watch_keys"] == [boxes.key(owner, b"w")]
        assert chain.trace(watching).receipt == chain.receipts(origin="timer")[-1]


def test_messages_and_deferred_transactions_have_traces(chain: LocalChain) -> None:
    """Each has its own frame and names the transaction that it comes of, if it has one."""
    alice = chain.accounts[0]
    left, right = (chain.deploy(PUPPET, sender=alice, value=FUNDS) for _ in range(2))
    perform(left, step("send_message", right.address, b"[]"), sender=alice)
    deferrer = chain.deploy(DEFERRER, sender=alice, value=CBY)
    sent = deferrer.call("defer", b"2", sender=alice, check=True)
    chain.mine(2)
    later = [trace for trace in check_all(chain) if trace.receipt.origin == "message"]
    assert [trace.frame.handler for trace in later if trace.frame] == ["handle_message", "later", "later"]
    assert {trace.transaction_hash for trace in later} == {None, sent.trace.transaction_hash}
    assert sent.trace.frame is not None
    assert [call.effects[0].kind for call in sent.trace.frame.calls] == ["call_deferred"] * 2
    assert chain.trace(sent.trace.transaction_hash or b"") == sent.trace


def test_trace_says_what_is_wrong_when_there_is_none(chain: LocalChain) -> None:
    """A timer that waits, one that ended without a fire, an unknown id, a refusal and no id at all are told apart."""
    alice = chain.accounts[0]
    puppet = chain.deploy(PUPPET, sender=alice, value=CBY)
    perform(puppet, step("schedule_timer", 1_000, b""), sender=alice)
    timer_id = chain.timers()[0].timer_id
    with pytest.raises(Rejection, match="has not fired: it is due at 1000"):
        chain.trace(timer_id)
    chain.drop(timer_id)
    with pytest.raises(Rejection, match="ended without a fire"):
        chain.trace(timer_id)
    with pytest.raises(Rejection, match="no block holds a transaction 0xabab"):
        chain.trace(b"\xab" * 32)
    refused = chain.transfer(alice, 1, sender=alice, max_fee_per_cycle=1)
    with pytest.raises(Rejection, match="a refused transaction is in no block"):
        _ = refused.trace
    with pytest.raises(TypeError, match="give a receipt, the hash of a transaction, or the id of a timer"):
        chain.trace(None)  # type: ignore[arg-type]
    for height in (0, chain.height + 1):
        with pytest.raises(Rejection, match=f"there is no block {height} to trace"):
            chain.trace_block(height)


def test_trace_is_of_the_branch_that_holds_after_a_reorg(chain: LocalChain) -> None:
    """A receipt of the other branch has no trace any more, and the one in its place has its own."""
    alice = chain.accounts[0]
    callee = chain.deploy(CALLEE, sender=alice)
    gone = callee.call("boom", sender=alice)
    chain.reorg(1)
    chain.mine()
    stands = callee.call("answer", sender=alice)
    with pytest.raises(Rejection, match="the chain has gone back since"):
        _ = gone.trace
    assert stands.trace.frame is not None
    assert stands.trace.frame.raw_return_value == b"42"


def test_trace_is_the_same_after_export_and_import(chain: LocalChain, tmp_path: Path) -> None:
    """Traces come from blocks alone, so a copy of the chain gives the same ones, and the chain itself stays."""
    callee = chain.deploy(CALLEE, sender=chain.accounts[0])
    callee.call("boom", sender=chain.accounts[0])
    root = chain.state_root
    export_chain(chain.chain, tmp_path / "chain.trail")
    copy: Chain = import_chain(tmp_path / "chain.trail", tmp_path / "copy")
    try:
        assert trace_height(copy, 2) == chain.trace_block(2)
    finally:
        copy.close()
    assert chain.state_root == root


def test_receipts_compare_and_read_as_before_when_they_know_their_trace(chain: LocalChain) -> None:
    """The chain that a receipt knows is none of its fields."""
    callee = chain.deploy(CALLEE, sender=chain.accounts[0])
    receipt = callee.call("answer", sender=chain.accounts[0])
    assert receipt == chain.receipts()[-1]
    assert "trace" not in to_json_value(receipt)
    assert receipt.trace is receipt.trace
    assert Receipt.__struct_fields__ == tuple(to_json_value(receipt))
