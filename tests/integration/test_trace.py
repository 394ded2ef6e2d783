"""Traces: frames, host calls and cycles by line of blocks that are built again."""

from collections.abc import Iterator

import pytest

from trailboss.chain.trace import BlockTrace, trace_block
from trailboss.testing import CBY, LocalChain
from trailboss.vm.trace import FrameTrace

RELAY = """
import pvm_host

def relay(payload):
    total = 0
    for each in range(3):
        total += each
        total += each
    try:
        pvm_host.call_actor(payload, "boom", b"", 50_000)
    except pvm_host.HostError:
        pvm_host.set_state(b"failed", b"%d" % total)
    return pvm_host.call_actor(payload, "answer", b"", 50_000)
"""
CALLEE = """
import pvm_host

def boom(payload):
    pvm_host.set_state(b"gone", b"1")
    raise ValueError("boom")

def answer(payload):
    pvm_host.emit_event("answered", b"")
    return b"42"

def endless(payload):
    while True:
        pass
"""


def frames(trace: BlockTrace) -> Iterator[FrameTrace]:
    waiting = [each.frame for each in trace.executions if each.frame is not None]
    for frame in waiting:
        yield frame
        waiting += frame.nested


def test_nested_frames_and_lines_add_up_when_a_callee_fails(chain: LocalChain) -> None:
    """The cycles of a receipt are those of its frames, and of a frame those of its base, its lines and its callees."""
    alice = chain.accounts[0]
    relay, callee = chain.deploy(RELAY, sender=alice), chain.deploy(CALLEE, sender=alice)
    receipt = relay.call("relay", callee.address, sender=alice, check=True)
    trace = trace_block(chain.chain, receipt.block_height)
    [execution] = trace.executions
    frame = execution.frame
    assert frame is not None
    boom, answer = frame.nested
    assert [call.name for call in frame.calls] == ["call_actor", "set_state", "call_actor"]
    assert execution.intrinsic_cycles + frame.cycles == receipt.cycles_used
    for each in frames(trace):
        assert each.base + sum(each.lines.values()) + sum(nested.cycles for nested in each.nested) == each.cycles
    assert boom.error is not None
    assert boom.error.context["exception_message"] == "boom"
    assert "ValueError: boom" in frame.calls[0].refusal
    assert (answer.return_value, answer.sender, frame.calls[2].answer) == (b"42", relay.address, b"42")


@pytest.mark.skipif("config.getoption('--trailboss-vm') == 'sandbox'", reason="the sandbox counts no lines")
def test_blocks_are_split_among_their_lines_when_the_engine_is_native(chain: LocalChain) -> None:
    """A loop and both statements of its body have cycles, and host calls stand in the line that makes them."""
    alice = chain.accounts[0]
    relay, callee = chain.deploy(RELAY, sender=alice), chain.deploy(CALLEE, sender=alice)
    receipt = relay.call("relay", callee.address, sender=alice, check=True)
    frame = trace_block(chain.chain, receipt.block_height).executions[0].frame
    assert frame is not None
    turns, first, second = (frame.lines[line] for line in (6, 7, 8))
    assert turns > first == second > 0, "the turns of a loop are noted for its own line"
    assert [call.line for call in frame.calls] == [10, 12, 13]


def test_cycles_end_at_the_limit_when_a_frame_exhausts_it(chain: LocalChain) -> None:
    """The charge that passes the limit counts up to the limit."""
    alice = chain.accounts[0]
    callee = chain.deploy(CALLEE, sender=alice)
    receipt = callee.call("endless", sender=alice, cycles_limit=60_000)
    [execution] = trace_block(chain.chain, receipt.block_height).executions
    frame = execution.frame
    assert frame is not None
    assert frame.cycles == frame.cycles_limit == 60_000 - execution.intrinsic_cycles
    assert sum(frame.lines.values()) == frame.own_cycles


def test_fires_of_a_block_have_their_own_frames(chain: LocalChain) -> None:
    """Each fire's frame is that of its receipt, in the order of the receipts."""
    clocks = [chain.deploy("examples/actors/clock.py", sender=each, value=100 * CBY) for each in chain.accounts[:3]]
    chain.advance_to(8)
    traced = [trace_block(chain.chain, height) for height in range(1, 9)]
    fires = [each for trace in traced for each in trace.executions if each.receipt.timer_id]
    assert [each.frame.frame.actor for each in fires if each.frame] == [clock.address for clock in clocks]
