"""Traces of actors that do what they can to break, slow or fool the one who reads them."""

import re

import pytest

from trailboss.chain.trace import TraceBounds
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.trace.executions import trace_height
from trailboss.views.trace.tree import NODES_MAX

DISGUISE = r"""
import pvm_host


class Meta(type):
    def __repr__(cls):
        return "RAN"
    __str__ = __repr__


class Own(metaclass=Meta):
    def __repr__(self):
        return "RAN"
    __str__ = __format__ = __bytes__ = __hash__ = __len__ = __iter__ = __eq__ = __repr__

    def __getattribute__(self, name):
        return "RAN"


class OwnBytes(bytes):
    def __repr__(self):
        return "RAN"
    __str__ = __len__ = __iter__ = __getitem__ = hex = __repr__


class OwnText(str):
    def __str__(self):
        return "RAN"
    __repr__ = __len__ = __iter__ = __getitem__ = __repr__ = isprintable = __str__


class OwnNumber(int):
    def __repr__(self):
        return "RAN"
    __str__ = __format__ = __index__ = bit_length = __repr__


def disguise(payload):
    values = [Own(), Own, OwnBytes(b"plain"), OwnText("plain"), OwnNumber(7), [Own()], {"own": Own()}, 1 << 9_999]
    for value in values:
        for call in (pvm_host.get_state, pvm_host.keccak256, pvm_host.emit_event, pvm_host.transfer_balance):
            try:
                call(value, value)
            except (TypeError, ValueError, AttributeError, pvm_host.HostError):
                pass
            try:
                call(value)
            except (TypeError, ValueError, AttributeError, pvm_host.HostError):
                pass
    try:
        pvm_host.get_state(**{OwnText("key"): Own()})
    except (TypeError, ValueError, AttributeError, pvm_host.HostError):
        pass
    pvm_host.set_state(b"a", b"1")
    rows = pvm_host.scan_state_prefix(b"", 10)
    rows.append(Own())
    rows[0] = Own()
    pvm_host.emit_event("note", b"1")["emit_id"] = Own()


def litter(payload):
    for number in range(3_000):
        pvm_host.get_state(b"k")


def swell(payload):
    pvm_host.keccak256(bytes(300_000))
    pvm_host.emit_event("\x1b[31m\u202e<img src=x onerror=alert(1)>", b"<script>alert(1)</script>")
    print("\x1b[2J\u202e<script>alert(1)</script>")
    raise ValueError("\x1b[31m<script>alert(1)</script>\n├─ forged line")
"""
OBEYED = re.compile("[\x1b\u202e\x00-\x09\x0b-\x1f]")


@pytest.fixture
def actor(chain: LocalChain) -> ActorHandle:
    """The hostile actor."""
    return chain.deploy(DISGUISE, sender=chain.accounts[0])


def test_no_code_of_a_program_runs_when_its_arguments_are_shown(actor: ActorHandle) -> None:
    """Objects of its own classes are shown by class and attributes, and what it does to an answer is not seen."""
    receipt = actor.call("disguise", sender=actor.chain.accounts[0], cycles_limit=5_000_000)
    assert receipt.ok, receipt.error
    trace = receipt.trace
    for shown in (trace.text(lines=True), trace._repr_html_(), trace.to_json(), repr(trace)):
        assert "RAN" not in re.sub(r'return "RAN"|return &quot;RAN&quot;|return \\"RAN\\"', "", shown)
    assert trace.frame is not None
    scanned = next(call for call in trace.frame.calls if call.name == "scan_state_prefix")
    assert scanned.answer == [(b"a", b"1")]
    assert trace.frame.calls[-1].answer["emit_id"] == 1
    assert {type(name) for call in trace.frame.calls for name in call.arguments} == {str}


def test_texts_hold_nothing_that_a_terminal_or_a_browser_obeys(actor: ActorHandle) -> None:
    """Names, prints and messages stand in one line each, as escapes and entities; long values are cut, and say so."""
    trace = actor.call("swell", sender=actor.chain.accounts[0], cycles_limit=5_000_000).trace
    shown = str(trace)
    assert not OBEYED.search(shown)
    assert "\\n├─ forged line" in shown
    assert max(map(len, shown.splitlines())) < 1_000
    page = trace._repr_html_()
    assert not OBEYED.search(page)
    assert not re.search("<(img|script)", page)
    assert "(300,000 bytes)" in trace.to_json()


def test_long_traces_are_cut_and_say_what_is_left_out(actor: ActorHandle) -> None:
    """A tree shows some calls of a frame; within bounds a trace keeps some, and the sums stay right."""
    chain = actor.chain
    receipt = actor.call("litter", sender=chain.accounts[0], cycles_limit=5_000_000)
    frame = receipt.trace.frame
    assert frame is not None
    assert len(frame.calls) == 3_000
    assert "… 2,800 more host calls" in str(receipt.trace)
    assert len(str(receipt.trace).splitlines()) < NODES_MAX
    [bounded] = trace_height(chain.chain, receipt.block_height, None, TraceBounds(calls=5)).traces
    assert bounded.frame is not None
    assert (len(bounded.frame.calls), bounded.frame.left_out_calls) == (5, 2_995)
    assert (bounded.frame.cycles, bounded.frame.own_cycles) == (frame.cycles, frame.own_cycles)
    assert "… 2,995 more host calls" in str(bounded)
