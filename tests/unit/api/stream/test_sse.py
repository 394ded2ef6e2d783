"""Blocks and events as server-sent events: what is chosen, how it is written, and where a reader goes on."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.api.stream.broadcasts import CBY, SPEAKER, Broadcasts, Told, read_told
from trailboss.api import sse
from trailboss.api.sse import EVENT, EncodedBlock, EncodedBlocks, Past, Position, StreamFilter, read_page, sse_event
from trailboss.chain import ChainReader
from trailboss.codec.canonical import encode_canonical
from trailboss.model.events import PROTOCOL_TOPICS
from trailboss.node.feed import size_of, tag_of
from trailboss.primitives.octets import Address
from trailboss.views.records import block_events, event_view

NAMES = ("price", "note", "timer.fired", "timer.scheduled", "nobody")


@pytest.fixture(scope="module")
def world() -> Iterator[Broadcasts]:
    """Return a chain on which two actors speak and timers fire, with idle stretches in between."""
    with Broadcasts(has_index=True) as found:
        local = found.local
        first, second = (local.deploy(SPEAKER, sender=each, value=100 * CBY) for each in local.accounts[:2])
        for round_ in range(3):
            first.call("arm", b"", sender=local.accounts[0], check=True)
            named = encode_canonical({"who": bytes(second.address), "round": round_})
            first.call("say", b"price=1;note=" + named, sender=local.accounts[0], check=True)
            second.call("say", b"price=2;price=3;reorg=x", sender=local.accounts[1], check=True)
            local.mine(4)
        found.publish()
        yield found


def past_of(world: Broadcasts) -> Past:
    """Return where the past of a chain is read."""
    return Past(world.chain, world.index, EncodedBlocks())


def everything(world: Broadcasts, selection: StreamFilter, place: Position) -> list[Told]:
    """Return what a reader is told who reads a chain to its head, page by page."""
    found, chain = "", world.chain
    while (place.height, place.index) < (chain.height + 1, 0):
        page = read_page(past_of(world), place, selection)
        assert page is not None
        assert (page[1].height, page[1].index) > (place.height, place.index)
        found += page[0].decode()
        place = page[1]
    assert place == Position.after(chain.blocks[-1])
    return read_told(found)


def expected(chain: ChainReader, selection: StreamFilter, since: int) -> list[tuple[str, int, int]]:
    """Return, the slow way, name, height and place of what is to be told from a height on."""
    found = []
    for block in chain.blocks[since:]:
        if selection.blocks:
            found.append(("block", block.height, 0))
        for place, event in enumerate(block_events(block), start=1):
            data = event_view(event, block.height).data
            fields = list(data.values()) if event.name in PROTOCOL_TOPICS else []
            wanted = (
                selection.events
                and selection.name in (None, event.name)
                and selection.emitter in (None, event.emitter)
                and selection.timer_id in (None, event.timer_id)
                and (selection.address is None or selection.address in [event.emitter, *fields])
            )
            if wanted:
                found.append((event.name, block.height, place))
    return found


def outline(all_told: list[Told]) -> list[tuple[str, int, int]]:
    """Return name, height and place of what was told, and check that ids say the same."""
    found = []
    for each in all_told:
        if each.kind == "block":
            found.append(("block", each.data["height"], 0))
        else:
            assert each.kind in (each.data["name"], EVENT)
            found.append((each.data["name"], each.data["block_height"], each.data["index"] + 1))
        assert each.mark is not None
        assert each.mark.split(".")[:2] == [str(found[-1][1]), str(found[-1][2])]
    return found


@settings(max_examples=60)
@given(st.data())
def test_reader_is_told_what_he_selects_when_he_reads_the_past(world: Broadcasts, data: st.DataObject) -> None:
    """Page by page he gets what the slow search finds, in order, whatever he selects and wherever he begins."""
    chain = world.chain
    events = [event for block in chain.blocks for event in block_events(block)]
    addresses = sorted({event.emitter for event in events} | {bytes(each.address) for each in world.local.accounts})
    timers = sorted({event.timer_id for event in events if event.timer_id})
    blocks = data.draw(st.booleans())
    selection = StreamFilter(
        name=data.draw(st.sampled_from((None, *NAMES))),
        emitter=data.draw(st.sampled_from((None, *addresses))),
        timer_id=data.draw(st.sampled_from((None, *timers))),
        address=data.draw(st.sampled_from((None, *addresses))),
        blocks=blocks,
        events=not blocks or data.draw(st.booleans()),
    )
    since = data.draw(st.integers(0, chain.height))
    assert outline(everything(world, selection, Position(since))) == expected(chain, selection, since)


@settings(max_examples=25)
@given(st.data())
def test_reader_goes_on_behind_what_he_has_when_he_comes_back(world: Broadcasts, data: st.DataObject) -> None:
    """With the id of anything that he was told, he is told exactly the rest."""
    selection = data.draw(
        st.sampled_from((StreamFilter(), StreamFilter(name="price"), StreamFilter(name="price", blocks=False)))
    )
    all_told = everything(world, selection, Position(0))
    at = data.draw(st.integers(0, len(all_told) - 1))
    place = Position.after_mark(all_told[at].mark or "")
    assert place is not None
    assert everything(world, selection, place) == all_told[at + 1 :]


def test_page_ends_when_it_is_long_enough(world: Broadcasts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of one block, or of a few bytes, tell together what one page tells."""
    whole = everything(world, StreamFilter(), Position(0))
    for name in ("PAGE_BLOCKS", "PAGE_EVENTS", "PAGE_OCTETS"):
        with monkeypatch.context() as patch:
            patch.setattr(sse, name, 1)
            page = read_page(past_of(world), Position(0), StreamFilter())
            assert page is not None
            assert page[1].height == 1 or name == "PAGE_EVENTS"
            assert everything(world, StreamFilter(), Position(0)) == whole
            only = StreamFilter(name="price", blocks=False)
            assert [each.data["raw"] for each in everything(world, only, Position(0))] == ["0x31", "0x32", "0x33"] * 3


def test_text_of_a_block_is_all_of_its_pieces_when_nothing_is_left_out(world: Broadcasts) -> None:
    """What unfiltered readers share is what each would have selected."""
    for block in world.chain.blocks:
        telling = EncodedBlock(block)
        telling.prepare()
        assert telling.text() == StreamFilter().take(telling)
    assert StreamFilter().is_everything
    assert not any(
        each.is_everything for each in (StreamFilter(name="a"), StreamFilter(blocks=False), StreamFilter(events=False))
    )


def test_event_is_told_as_others_tell_it(world: Broadcasts) -> None:
    """Its members are those of an event anywhere, and its place in the block."""
    only = everything(world, StreamFilter(name="note", blocks=False), Position(0))
    event = next(event for event in world.local.events(name="note"))
    assert only[0].data == {
        "name": "note",
        "emitter": str(event.emitter),
        "data": {"who": str(Address(event.data["who"])).lower(), "round": 0},
        "raw": f"0x{event.raw.hex()}",
        "block_height": event.block_height,
        "timer_id": None,
        "index": only[0].data["index"],
    }


@pytest.mark.parametrize(
    "name", ["reorg", "end", "block", "error", "open", "message", "event", "a\nevent: end", "\r", ""]
)
def test_event_comes_under_a_name_of_ours_when_its_own_would_be_misread(name: str) -> None:
    """No actor can speak for the stream, break its lines, or for the browser."""
    assert sse.kind_of(name) == (EVENT if name else "")


def test_event_comes_under_its_own_name_when_that_is_plain(world: Broadcasts) -> None:
    """Also an actor's that is called like one of the stream's own is told, as data."""
    kinds = {(each.kind, each.data.get("name")) for each in everything(world, StreamFilter(), Position(0))}
    assert ("price", "price") in kinds
    assert (EVENT, "reorg") in kinds
    assert ("reorg", "reorg") not in kinds


def test_text_is_one_line_when_it_holds_line_breaks() -> None:
    """A line break inside of data would end the field."""
    text = sse_event("note", {"data": "a\nb\r\u2028c"}, "1.2.ab").decode()
    assert text.count("\n") == 4
    assert "\r" not in text
    assert json.loads(text.splitlines()[2].removeprefix("data: "))["data"] == "a\nb\r\u2028c"


@pytest.mark.parametrize(
    "mark",
    [
        "",
        "1",
        "1.2",
        "1.2.ab",
        "-1.0.0000000000000000",
        "01.0.0000000000000000",
        "1.0.000000000000000G",
        "1.0.0000000000000000 ",
        "99999999999999999999.0.0000000000000000",
        "1.9999999999.0000000000000000",
        "\u0661.0.0000000000000000",
    ],
)
def test_id_is_unknown_when_the_stream_has_not_given_it(mark: str) -> None:
    """Nothing else is read from it."""
    assert Position.after_mark(mark) is None


def test_reader_is_not_on_the_chain_when_his_block_is_gone(world: Broadcasts) -> None:
    """By its hash, or because the chain is not that high."""
    chain = world.chain
    for height in (0, 3, chain.height):
        here = tag_of(chain.blocks[height].hash)
        assert Position(height + 1, 0, here).is_on(chain)
        assert Position(height, 2, here).is_on(chain)
        assert not Position(height + 1, 0, bytes(8)).is_on(chain)
        assert read_page(past_of(world), Position(height, 1, bytes(8)), StreamFilter()) is None
    assert not Position(chain.height + 2, 0, tag_of(chain.head.hash)).is_on(chain)
    assert Position(chain.height + 9).is_on(chain)


def test_block_is_encoded_once_when_it_is_told_again(world: Broadcasts) -> None:
    """As long as there is room; those not asked for longest make it."""
    blocks = world.chain.blocks[:5]
    room = sum(map(size_of, blocks[:3]))
    tellings = EncodedBlocks(room)
    first = [tellings.of(block) for block in blocks[:3]]
    assert [tellings.of(block) for block in blocks[:3]] == first
    tellings.of(blocks[0])
    for block in blocks[3:]:
        tellings.of(block)
    assert tellings.of(blocks[1]) is not first[1]
    small = EncodedBlocks(0)
    assert small.of(blocks[0]).block is blocks[0]
    assert small.of(blocks[0]) is not small.of(blocks[0])
