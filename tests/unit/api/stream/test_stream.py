"""One reader of the stream: the past, then the present, without a gap or a repeat, whatever the chain does."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.event_loop import on_loop
from tests.unit.api.stream.broadcasts import CBY, SPEAKER, Believer, Broadcasts, read_told, truth_of
from tests.unit.chain.joining import filled_chain, offer_of
from trailboss.api import sse, stream
from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.sse import Position, StreamFilter
from trailboss.api.stream import Streams
from trailboss.index import Index
from trailboss.node.feed import Feed
from trailboss.node.metrics import Metrics
from trailboss.testing import LocalChain


class Client:
    """A server's end of one connection: it takes what is sent, unless it is stalled, and says when the client goes."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile
        self.sent: list[dict[str, Any]] = []
        self.goes = asyncio.Event()
        self.flows = asyncio.Event()
        self.flows.set()

    @property
    def text(self) -> str:
        """What the stream has said."""
        return b"".join(each.get("body", b"") for each in self.sent).decode()

    async def receive(self) -> dict[str, Any]:
        """Wait for the client to go."""
        await self.goes.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Take a message, once the client reads; forget it if he has gone."""
        self.meanwhile()
        waits = [asyncio.ensure_future(each.wait()) for each in (self.flows, self.goes)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        if not self.goes.is_set():
            self.sent.append(message)

    @property
    def scope(self) -> dict[str, Any]:
        """The request."""
        return {"type": "http"}


@asynccontextmanager
async def reading(
    streams: Streams,
    selection: StreamFilter,
    place: Position | None = None,
    since: int = 0,
    meanwhile: Callable[[], None] = lambda: None,
):
    """Have a client read, and go in the end; something may happen whenever the stream waits for him."""
    client = Client(meanwhile)
    answer = streams.open(selection, place, since)
    task = asyncio.create_task(answer(client.scope, client.receive, client.send))
    try:
        yield client, task
    finally:
        client.goes.set()
        client.flows.set()
        await task


async def until(condition: Callable[[], bool]) -> None:
    """Let others go on until something holds."""
    while not condition():
        await asyncio.sleep(0.0005)


@pytest.fixture
def world() -> Iterator[Broadcasts]:
    with Broadcasts() as world:
        yield world


@on_loop
async def test_reader_waits_when_he_begins_in_the_future(world: Broadcasts) -> None:
    """What is below does not concern him, also after the chain went back."""
    async with reading(world.streams(), StreamFilter(), Position(5), 5) as (client, _):
        await until(lambda: client.sent != [] and len(world.feed) == 1)
        world.grow(4)
        world.reorg(2)
        world.vary()
        world.publish()
        world.grow(3)
        await until(lambda: "id: 6.0" in client.text)
        told = read_told(client.text)
        assert [(each.kind, each.data["height"]) for each in told] == [("reorg", 2), ("block", 5), ("block", 6)]


@on_loop
async def test_reader_that_follows_holds_no_view(world: Broadcasts) -> None:
    """The state would record what it changes for as long as the client stays."""
    async with reading(world.streams(), StreamFilter()) as (client, _):
        await until(lambda: client.sent != [] and len(world.feed) == 1)
        began = ref(world.feed.view)
        for height in range(1, 4):
            world.grow()
            await until(lambda mark=f"id: {height}.0": mark in client.text)
        gc.collect()
        assert began() is None


@pytest.mark.parametrize(("since", "fork"), [(0, 2), (5, 2)])
@on_loop
async def test_reader_is_told_how_far_the_chain_went_back_when_he_comes_back(
    world: Broadcasts, since: int, fork: int
) -> None:
    """The blocks he knew are gone; he gets those in their place, but none below the height he asked for."""
    world.vary()
    world.grow(5)
    mark = f"6.0.{world.chain.head.hash[:8].hex()}"
    world.reorg(4)
    world.publish()
    world.vary()
    world.grow(5)
    async with reading(world.streams(), StreamFilter(), Position.after_mark(mark), since) as (client, _):
        await until(lambda: "id: 8.0" in client.text)
        first, *blocks = read_told(client.text)
        assert (first.kind, first.data, first.mark) == ("reorg", {"height": fork}, None)
        assert [each.data["height"] for each in blocks] == list(range(max(fork + 1, since), 9))


@on_loop
async def test_reader_is_told_all_anew_when_nobody_remembers_his_block(world: Broadcasts) -> None:
    """A node that was started again knows no block that it lost before."""
    world.grow(4)
    place = Position.after_mark("9.3.0123456789abcdef")
    async with reading(world.streams(), StreamFilter(), place) as (client, _):
        await until(lambda: "id: 4.0" in client.text)
        told = [(each.kind, each.data["height"]) for each in read_told(client.text)]
        assert told == [("reorg", 0), ("block", 1), ("block", 2), ("block", 3), ("block", 4)]


@on_loop
async def test_reader_is_told_what_there_is_when_the_node_lacks_his_blocks(tmp_path: Path) -> None:
    """A node that joined at block 15 begins there, whether the reader knows an earlier block or wants all."""
    local, _ = filled_chain()
    with local:
        offer_of(local.chain).restore(tmp_path / "chain").close()
        known = f"3.0.{local.chain.blocks[3].hash[:8].hex()}"
    with LocalChain(preset="minimal", data_dir=tmp_path / "chain") as joined:
        joined.mine(2)
        index = Index.open(None, joined.chain)
        streams = Streams(Feed(joined.chain.publish()), index, Metrics())
        for place, expected in (
            (Position.after_mark(known), [("reorg", 15), ("block", 16), ("block", 17)]),
            (Position(0, 0, None), [("block", 15), ("block", 16), ("block", 17)]),
        ):
            async with reading(streams, StreamFilter(blocks=True, events=False), place) as (client, _):
                await until(lambda client=client: "id: 17." in client.text)
                assert [(each.kind, each.data["height"]) for each in read_told(client.text)] == expected
        index.close()


def script(patch: pytest.MonkeyPatch, **acts: Callable[[], object]) -> None:
    """Have workers answer at once, and things happen after some of their answers: ``after_2=...``."""
    calls = 0

    async def work(function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        result = function(*arguments)
        acts.get(f"after_{calls}", lambda: None)()
        return result

    patch.setattr(asyncio, "to_thread", work)
    patch.setattr(sse, "PAGE_BLOCKS", 2)


@on_loop
async def test_reader_is_told_nothing_when_his_block_comes_back(
    world: Broadcasts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty block that was lost and built again is the same block."""

    def lose() -> None:
        world.reorg(world.chain.height - 1)
        world.vary()
        world.publish()

    def bring_back() -> None:
        world.reorg(1)
        world.grow(5)

    world.grow(4)
    script(monkeypatch, after_1=lose, after_2=bring_back)
    async with reading(world.streams(), StreamFilter(), Position(1), 1) as (client, _):
        await until(lambda: "id: 6.0" in client.text)
        told = [(each.kind, each.data["height"]) for each in read_told(client.text)]
        assert told == [("block", height) for height in range(1, 7)]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(("speak", "speak", "reorg", "reorg", "publish", "nothing")), max_size=24), st.data())
@on_loop
async def test_filtered_reader_is_told_what_stays_when_the_chain_changes_whenever_he_waits(
    acts: list[str], data: st.DataObject
) -> None:
    """What the index finds, and what comes, is together what the chain's blocks hold, whatever was lost meanwhile."""
    with Broadcasts(has_index=True) as world, pytest.MonkeyPatch.context() as patch:
        local, pending = world.local, list(acts)
        actor = local.deploy(SPEAKER, sender=local.accounts[0], value=100 * CBY)

        def meanwhile() -> None:
            while pending and (act := pending.pop(0)) != "nothing":
                if act == "speak":
                    actor.call("say", b"a=%d;b=%d;a=" % (len(pending), len(pending)), sender=local.accounts[1])
                elif act == "publish":
                    world.publish()
                elif world.chain.height > 3:
                    world.reorg(1 + len(pending) % 3)

        async def work(function: Callable[..., Any], *arguments: Any) -> Any:
            meanwhile()
            try:
                return function(*arguments)
            finally:
                meanwhile()

        patch.setattr(asyncio, "to_thread", work)
        patch.setattr(sse, "PAGE_EVENTS", data.draw(st.integers(1, 3)))
        for _ in range(4):
            actor.call("say", b"a=1;b=2;a=3", sender=local.accounts[1])
        world.publish()
        streams = world.streams()
        selection = StreamFilter(name="a", emitter=actor.address, blocks=False)
        heard: list[tuple[int, str]] = []
        async with reading(streams, selection, Position(2), 2, meanwhile) as (client, _):
            await asyncio.sleep(0)
            while pending:
                meanwhile()
                await asyncio.sleep(0)
            actor.call("say", b"a=last", sender=local.accounts[2])
            world.publish()
            await until(lambda: "0x6c617374" in client.text)
            for each in read_told(client.text):
                if each.kind == "reorg":
                    heard = [(height, raw) for height, raw in heard if height <= each.data["height"]]
                else:
                    heard.append((each.data["block_height"], each.data["raw"]))
        found = local.events(name="a", since=2)
        assert heard == [(event.block_height, f"0x{event.raw.hex()}") for event in found]


STEPS = st.sampled_from(("mine", "vary", "reorg", "reorg", "publish", "publish", "publish", "nothing"))


@settings(max_examples=40)
@given(st.data(), st.integers(1, 8), st.integers(1, 3), st.booleans(), st.sampled_from((0, 3_000, 10**6)))
@on_loop
async def test_reader_believes_in_the_chain_when_it_changes_whenever_he_waits(
    data: st.DataObject, before: int, page: int, is_new: bool, room: int
) -> None:
    """Every time that the stream waits, for a worker or for him, the chain may do anything."""
    acts = data.draw(st.lists(st.tuples(STEPS, st.integers(1, 4)), max_size=30))
    with Broadcasts() as world, pytest.MonkeyPatch.context() as patch:
        pending = list(acts)

        def meanwhile() -> None:
            while pending and (act := pending.pop(0))[0] != "nothing":
                change(world, *act)

        async def work(function: Callable[..., Any], *arguments: Any) -> Any:
            meanwhile()
            try:
                return function(*arguments)
            finally:
                meanwhile()

        patch.setattr(asyncio, "to_thread", work)
        patch.setattr(sse, "PAGE_BLOCKS", page)
        world.vary()
        world.mine(before)
        world.publish()
        believer = Believer()
        if is_new:
            believer.blocks = truth_of(world.chain.blocks[1:])
        streams = world.streams(waiting_max=room)
        place = None if is_new else Position(1)
        async with reading(streams, StreamFilter(), place, 0 if is_new else 1, meanwhile) as (client, _):
            await asyncio.sleep(0)
            while pending:
                meanwhile()
                await asyncio.sleep(0)
            world.vary()
            world.publish()
            await until(lambda: str(world.chain.head.hash) in client.text)
            for each in read_told(client.text):
                believer.hear(each)
        assert believer.blocks == truth_of(world.chain.blocks[1:])


def change(world: Broadcasts, act: str, count: int) -> None:
    """Do one thing to the chain."""
    match act:
        case "mine":
            world.mine(count)
        case "vary":
            world.vary()
        case "reorg" if world.chain.height:
            world.reorg(min(count, world.chain.height))
        case "publish":
            world.publish()


@on_loop
async def test_filtered_reader_is_told_of_reorgs_when_nothing_else_concerns_him(world: Broadcasts) -> None:
    """What he was told before may be gone, whatever he selects."""
    world.grow(3)
    streams = world.streams()
    async with reading(streams, StreamFilter(name="nobody", blocks=False)) as (client, _):
        await until(lambda: client.sent != [] and len(world.feed) == 1)
        world.grow()
        world.reorg(2)
        world.publish()
        await until(lambda: "event: reorg" in client.text)
        assert [(each.kind, each.data) for each in read_told(client.text)] == [("reorg", {"height": 2})]


@on_loop
async def test_step_is_encoded_once_when_many_read(world: Broadcasts, monkeypatch: pytest.MonkeyPatch) -> None:
    """All unfiltered readers are sent the same bytes, and those with filters share its pieces."""
    encoded = []
    encode = stream.encode_step
    monkeypatch.setattr(stream, "encode_step", lambda *step: encoded.append(step) or encode(*step))
    streams = world.streams()
    everything, blocks = StreamFilter(), StreamFilter(events=False)
    async with (
        reading(streams, everything) as (one, _),
        reading(streams, everything) as (two, _),
        reading(streams, blocks) as (three, _),
    ):
        await until(lambda: one.sent and two.sent and three.sent and len(world.feed) == 3)
        world.vary()
        world.publish()
        await until(lambda: all("id: 1.0" in each.text for each in (one, two, three)))
        assert one.text == two.text
    assert len(encoded) == 1


@on_loop
async def test_reader_of_blocks_does_not_wait_until_events_are_encoded(
    world: Broadcasts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the news of a block while a worker is still at the events, which others get when they are there."""
    encode, released = stream.encode_step, Event()
    monkeypatch.setattr(stream, "encode_step", lambda *step: released.wait() and encode(*step))
    streams = world.streams()
    try:
        async with (
            reading(streams, StreamFilter()) as (one, _),
            reading(streams, StreamFilter(events=False)) as (two, _),
        ):
            await until(lambda: one.sent and two.sent and len(world.feed) == 2)
            world.vary()
            world.publish()
            await until(lambda: "id: 1.0" in two.text)
            assert "id: 1.0" not in one.text
            released.set()
            await until(lambda: "id: 1.0" in one.text)
    finally:
        released.set()


@on_loop
async def test_reader_is_told_why_when_the_feed_ends(world: Broadcasts) -> None:
    """First what waits, then the last words, then the end of the answer."""
    async with reading(world.streams(), StreamFilter()) as (client, task):
        await until(lambda: client.sent != [] and len(world.feed) == 1)
        world.grow()
        world.feed.close("stopping")
        await task
        told = read_told(client.text)
        assert [each.kind for each in told] == ["block", "end"]
        assert told[-1].data == {"reason": "stopping"}
        assert client.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
    assert count_of(world, "stream_ends", reason="stopping") == 1
    assert count_of(world, "stream_readers") == 0


@on_loop
async def test_reader_is_cut_off_when_he_does_not_read(world: Broadcasts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for him, and what waited for him is forgotten long before."""
    monkeypatch.setattr(stream, "STALL_SECONDS", 0.2)
    streams = world.streams(waiting_max=2_000)
    async with reading(streams, StreamFilter()) as (slow, task), reading(streams, StreamFilter()) as (quick, _):
        await until(lambda: slow.sent and quick.sent and len(world.feed) == 2)
        slow.flows.clear()
        for _ in range(5):
            world.grow()
            await until(lambda: f"id: {world.chain.height}.0" in quick.text)
        assert len(world.feed) == 1
        await until(lambda: count_of(world, "stream_ends", reason=stream.STALLED) == 1)
        assert count_of(world, "stream_readers") == 1
        slow.flows.set()
        await task
        assert "id: 5.0" not in slow.text
        assert slow.sent[-1]["more_body"] is False
        assert quick.sent[-1]["more_body"] is True


@on_loop
async def test_reader_is_counted_out_when_he_goes(world: Broadcasts) -> None:
    """Also in the midst of what he is told."""
    world.grow(3)
    for stalls in (False, True):
        async with reading(world.streams(), StreamFilter(), Position(0)) as (client, task):
            await until(lambda: client.sent != [])
            if stalls:
                client.flows.clear()
                world.grow()
            client.goes.set()
            await asyncio.wait((task,), timeout=None if not stalls else 0.05)
    assert len(world.feed) == 0
    assert count_of(world, "stream_ends", reason=stream.DISCONNECTED) == 2


@on_loop
async def test_reader_is_refused_when_there_are_as_many_as_may_be(world: Broadcasts) -> None:
    """With an error, before anything is streamed; when one goes there is room again."""
    streams = world.streams(readers_max=1)
    async with reading(streams, StreamFilter()) as (client, _):
        await until(lambda: client.sent != [])
        with pytest.raises(HttpError, match="1 readers are served already") as caught:
            streams.open(StreamFilter(), None)
        assert caught.value.reason is HttpReason.UNAVAILABLE
    async with reading(streams, StreamFilter()):
        pass


def count_of(world: Broadcasts, name: str, **labels: str) -> float | None:
    """Return what the metrics say."""
    suffix = "_total" if labels else ""
    return world.metrics.registry.get_sample_value(f"trailboss_{name}{suffix}", labels)


class HandLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still until nothing is left to do; then it jumps to what comes next."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select

        def jump(timeout: float | None = None) -> list[Any]:
            found = select(0)
            if not found and timeout:
                self.now += timeout
            return found

        self._selector.select = jump

    def time(self) -> float:
        """Return the time."""
        return self.now


@pytest.mark.parametrize("is_busy", [True, False])
def test_sign_of_life_is_sent_when_nothing_was_told_for_long(is_busy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every quarter of a minute, whether nothing happens or nothing that the reader wants."""

    async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    # The clock does not know how long a worker takes.
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    selection = StreamFilter(name="nobody", blocks=False)

    async def test() -> None:
        with Broadcasts() as world:
            async with reading(world.streams(), selection) as (client, _):
                for _ in range(61):
                    await asyncio.sleep(1)
                    if is_busy:
                        world.grow()
                assert client.text == "retry: 2000\n\n" + 4 * ":\n\n"

    loop = HandLoop()
    try:
        loop.run_until_complete(test())
    finally:
        loop.close()
