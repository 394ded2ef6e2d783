"""Traces over HTTP: those of the chain, one at a time, within bounds, and refused by name."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from tests.integration.node.apis import Api, lively_chain, serve
from trailboss.chain.replay import replay_to
from trailboss.chain.trace import TraceBounds
from trailboss.node import traces
from trailboss.node.block_builder import StoppingError
from trailboss.node.traces import TraceRoom
from trailboss.primitives.errors import Rejection
from trailboss.views.json_values import to_json_value
from trailboss.views.trace.executions import trace_height

MECHANISMS = ("fifo", "lane", "auction", "globalbox")


@pytest.fixture(scope="module", params=MECHANISMS)
def lively(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A node of each mechanism, whose chain stays as it is."""
    with serve(lively_chain(request.param)[0]) as api:
        yield api


@pytest.fixture
def fifo() -> Iterator[Api]:
    """A node of its own."""
    with serve(lively_chain("fifo")[0]) as api:
        yield api


def test_traces_are_those_of_the_chain(lively: Api) -> None:
    """Of every block, of each of its transactions and of the timers that fired, also as a tree."""
    chain = lively.local.chain
    for block in chain.blocks.eventful(1):
        expected = trace_height(chain, block.height, None, traces.BOUNDS)
        whole = lively.get(f"/trace/{block.height}")
        assert whole == to_json_value(expected)
        assert lively.get(f"/trace/{block.height}/tree?lines=true") == to_json_value(expected.tree(lines=True))
        for trace in expected.traces:
            found = trace.receipt.timer_id or trace.transaction_hash
            if found is None or trace.receipt.origin == "message":
                continue
            alone = lively.get(f"/trace/{found}")
            assert not alone["is_whole"]
            if alone["block_height"] == block.height:
                assert alone["traces"][0] in whole["traces"]


def test_trace_is_refused_by_name_when_there_is_none(fifo: Api) -> None:
    """What is unknown, waits or is no name at all, and heights beyond the chain."""
    [waiting, *_] = (timer.timer_id for timer in fifo.local.chain.timers())
    what = fifo.error("GET", f"/trace/0x{waiting.hex()}", 404)["what"]
    assert "has not fired: it is due at" in what
    assert "no block holds a transaction" in fifo.error("GET", f"/trace/{'ab' * 32}", 404)["what"]
    assert "there is no block 0 to trace" in fifo.error("GET", "/trace/0", 422)["what"]
    assert "no block" in fifo.error("GET", f"/trace/{fifo.local.height + 1}", 404)["what"]
    for path in ("/trace/0x12", f"/trace/{2**64}", "/trace/1/tree?calls=perhaps"):
        assert fifo.error("GET", path, 400)["slug"] == "bad_request"


def test_node_makes_one_trace_at_a_time(fifo: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second request is refused meanwhile, and what is made already is answered all the same."""
    begun, goes_on = Event(), Event()
    kept = fifo.get("/trace/1")

    def slow(*arguments: Any) -> Any:
        begun.set()
        goes_on.wait(10)
        return trace_height(*arguments)

    monkeypatch.setattr(traces, "trace_height", slow)
    other = Thread(target=fifo.node.traces.trace, args=(fifo.node.view, 2))
    other.start()
    begun.wait(10)
    refused = fifo.request("GET", "/trace/3")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert fifo.get("/trace/1") == kept
    goes_on.set()
    other.join()
    assert fifo.get("/trace/3")["block_height"] == 3


def test_trace_is_refused_when_too_much_comes_before_it(fifo: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many blocks, or too much time, with what to do instead; a block before the bound is traced."""
    monkeypatch.setattr(traces, "BOUNDS", TraceBounds(blocks=2, calls=1, value=10))
    head = fifo.local.chain.height
    error = fifo.error("GET", f"/trace/{head}", 422)
    assert f"more than 2 blocks with content come before block {head}" in error["what"]
    assert "trailboss trace" in error["fix"]
    assert fifo.get("/trace/2")["block_height"] == 2
    times = iter((0, *(31 for _ in range(100))))
    room = TraceRoom(fifo.node.index, lambda: next(times))
    with pytest.raises(Rejection, match="has reached block 1 after 30 s"):
        room.trace(fifo.node.view, 3)
    room.stop()
    times = iter(0 for _ in range(100))
    with pytest.raises(StoppingError):
        room.trace(fifo.node.view, 3)


def test_chain_goes_on_rightly_while_traces_are_made(fifo: Api) -> None:
    """Blocks that are built while frames of traces run on another thread come out again in a replay."""
    height, room = fifo.local.height, fifo.node.traces
    view = fifo.node.view
    found = []

    def trace_all() -> None:
        for _ in range(3):
            room._kept.clear()
            found.extend(room.trace(view, each) for each in range(1, height + 1))

    tracing = Thread(target=trace_all)
    tracing.start()
    for target in range(height + 1, height + 31):
        fifo.post("/dev/advance", {"height": target})
    tracing.join()
    assert len(found) == 3 * height
    assert found[:height] == found[-height:]
    assert replay_to(fifo.node.view, height + 30).head.hash == fifo.node.view.head.hash
