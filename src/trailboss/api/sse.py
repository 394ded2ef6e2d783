"""Blocks and events as server-sent events, each encoded once for all readers.

The ``id`` of an event is ``height.place.tag``: place 0 is the block, 1 its first event; the tag is the beginning of the
block's hash, which says on a reconnection whether the block is still on the chain.

Decision: D-73
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain as chained
from itertools import islice
from threading import Lock
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from trailboss.chain import ChainReader
from trailboss.index import EventFilter, Index, mentions
from trailboss.index.answers.blocks import block_summary
from trailboss.model.blocks import Block
from trailboss.model.events import EventRecord
from trailboss.node.feed import TAG_OCTETS, size_of, tag_of
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value
from trailboss.views.records import block_events, event_view
from trailboss.views.shared_fields import extended

BLOCK: Final = "block"
REORG: Final = "reorg"
END: Final = "end"
EVENT: Final = "event"  # type of an event whose own name is reserved or not printable
TAKEN: Final = frozenset((BLOCK, REORG, END, EVENT, "message", "open", "error"))
HEARTBEAT: Final = b":\n\n"
PAGE_BLOCKS: Final = 1_024  # blocks of one page of the past
PAGE_EVENTS: Final = 1_024  # events of one page that the index finds
PAGE_OCTETS: Final = 2**19  # bytes after which a page ends, with the block that reaches them
KEPT_OCTETS: Final = 2**25  # bytes of encoded blocks that are kept, estimated

_MARK: Final = re.compile(rf"(0|[1-9]\d{{0,18}})\.(0|[1-9]\d{{0,8}})\.([0-9a-f]{{{2 * TAG_OCTETS}}})", re.ASCII)


def sse_event(kind: str, document: Mapping[str, Any], mark: str | None = None) -> bytes:
    """Return one server-sent event of a type, with a JSON object and perhaps an id."""
    head = f"event: {kind}\ndata: " if mark is None else f"id: {mark}\nevent: {kind}\ndata: "
    return b"".join((head.encode(), _encode(document), b"\n\n"))


def _encode(document: Mapping[str, Any]) -> bytes:
    encoded = msgspec.json.encode(document)
    # Some clients, Python's among them, end lines at more characters than the standard does.
    return encoded if encoded.isascii() else json.dumps(document, separators=(",", ":")).encode("ascii")


def kind_of(name: str) -> str:
    """Return the type of an event: its name, unless a client would misread that."""
    return name if name.isprintable() and name not in TAKEN else EVENT


_KEYS: Final[Mapping[str, Callable[[EventRecord], Iterable[object]]]] = {
    "name": lambda event: (event.name,),
    "emitter": lambda event: (event.emitter,),
    "timer_id": lambda event: (event.timer_id,),
    "address": lambda event: {event.emitter, *mentions(event)},
}
"""Filters of events, and the values by which each finds an event."""


class EncodedBlock:
    """A block with its events, each encoded at its first use."""

    __slots__ = ("_events", "_pieces", "_places", "block")

    def __init__(self, block: Block) -> None:
        self.block = block
        self._events = tuple(block_events(block))
        self._pieces: list[bytes | None] = [None] * (1 + len(self._events))
        self._places: dict[str, dict[object, list[int]]] = {}

    def __len__(self) -> int:
        """Return the number of pieces: one for the block, and one for each event."""
        return len(self._pieces)

    def piece(self, place: int) -> bytes:
        """Return the event at a place: 0 is the block, 1 its first event."""
        found = self._pieces[place]
        if found is None:
            found = self._pieces[place] = self._encode(place)
        return found

    def places(self, kind: str, value: object) -> Sequence[int]:
        """Return the places of the events that a filter finds by a value, ascending."""
        found = self._places.get(kind)
        if found is None:
            found = {}
            for place, event in enumerate(self._events, start=1):
                for key in _KEYS[kind](event):
                    found.setdefault(key, []).append(place)
            self._places[kind] = found
        return found.get(value, ())

    def text(self) -> bytes:
        """Return all pieces."""
        return b"".join(map(self.piece, range(len(self))))

    def prepare(self) -> None:
        """Build the tables of all filters."""
        for kind in _KEYS:
            self.places(kind, None)

    def _encode(self, place: int) -> bytes:
        height = self.block.height
        mark = f"{height}.{place}.{tag_of(self.block.hash).hex()}"
        if place == 0:
            return sse_event(BLOCK, to_json_value(block_summary(self.block)), mark)
        event = event_view(self._events[place - 1], height)
        return sse_event(kind_of(event.name), to_json_value(event) | {"index": place - 1}, mark)


class EncodedBlocks:
    """The blocks that were used last, encoded, for all readers and any thread."""

    def __init__(self, octets_max: int = KEPT_OCTETS) -> None:
        self._octets_max = octets_max
        self._octets = 0
        self._encoded: dict[bytes, EncodedBlock] = {}
        self._lock = Lock()

    def of(self, block: Block) -> EncodedBlock:
        """Return a block encoded, and keep it; the least recently used ones make room."""
        with self._lock:
            encoded = self._encoded.pop(block.hash, None)
            if encoded is None:
                encoded = EncodedBlock(block)
                self._octets += size_of(block)
            self._encoded[block.hash] = encoded
            while self._octets > self._octets_max:
                oldest = self._encoded.pop(next(iter(self._encoded)))
                self._octets -= size_of(oldest.block)
        return encoded


class StreamFilter(Struct, frozen=True):
    """What a reader wants."""

    name: str | None = None  # only events of this name
    emitter: Address | None = None  # only events of this emitter
    timer_id: Hash32 | None = None  # only events about this timer
    address: Address | None = None  # only events that it has emitted, and the chain's own events that name it
    blocks: bool = True  # whether blocks are sent
    events: bool = True  # whether events are sent

    @property
    def is_everything(self) -> bool:
        """Whether it selects everything."""
        return self.blocks and self.events and not self.has_conditions

    @property
    def has_conditions(self) -> bool:
        """Whether it selects among events."""
        return any(True for _ in self._wanted())

    def take(self, block: EncodedBlock, first: int = 0) -> bytes:
        """Return the selected pieces of a block, from a place on.

        Complexity: O(events selected), once the block is prepared; O(events) if all are selected.
        """
        places = self._places(block)
        return b"".join(block.piece(place) for place in places if place >= first)

    def _places(self, block: EncodedBlock) -> Iterable[int]:
        if self.blocks:
            yield 0
        if not self.events:
            return
        wanted = [block.places(kind, value) for kind, value in self._wanted()]
        if not wanted:
            yield from range(1, len(block))
            return
        wanted.sort(key=len)
        others = list(map(frozenset, wanted[1:]))
        yield from (place for place in wanted[0] if all(place in other for other in others))

    def _wanted(self) -> Iterator[tuple[str, object]]:
        for kind in _KEYS:
            value = getattr(self, kind)
            if value is not None:
                yield kind, value


class Position(Struct, frozen=True):
    """What a reader receives next."""

    height: int  # height of the next block
    index: int = 0  # the first place of it; 0 for all of it
    tag: bytes | None = None  # tag of the last block of which the reader has received something; None if there is none

    @classmethod
    def after_mark(cls, mark: str) -> Self | None:
        """Return the position after an id; None if the text is not one of our ids."""
        found = _MARK.fullmatch(mark)
        return None if found is None else cls(int(found[1]), int(found[2]) + 1, bytes.fromhex(found[3]))

    @classmethod
    def after(cls, block: Block) -> Self:
        """Return the position of a reader that has all up to a block."""
        return cls(block.height + 1, 0, tag_of(block.hash))

    def is_on(self, chain: ChainReader) -> bool:
        """Return whether the last block that the reader knows is on this chain.

        Raises:
            ViewGoneError: If the chain is a view that lacks the block.
        """
        if self.tag is None:
            return True
        return chain.blocks.base <= self.known <= chain.height and tag_of(chain.blocks[self.known].hash) == self.tag

    @property
    def known(self) -> int:
        """Height of the tag's block."""
        return self.height if self.index else self.height - 1


class Past(Struct, frozen=True):
    """Where the past is read."""

    chain: ChainReader  # read up to its head
    index: Index  # its index; it may be ahead, or already on another branch
    encoded: EncodedBlocks  # blocks that are encoded already


def read_page(past: Past, place: Position, selection: StreamFilter) -> tuple[bytes, Position] | None:
    """Return the next page for a reader, and its position then; None if it is not on the chain.

    A reader on the chain is not above its head. If the index is on another branch, so is the reader's new position, and
    the next page finds that.

    Complexity: O(``PAGE_BLOCKS`` + events in them) where blocks are sent; else O(events sent), whatever lies between.

    Raises:
        ViewGoneError: If the chain is a view that lacks one of the blocks.
    """
    if selection.blocks:
        return _read_blocks(past, place, selection)
    if not place.is_on(past.chain):
        return None
    read = _read_events if selection.has_conditions else _read_all_events
    return read(past, place, selection)


def _read_blocks(past: Past, place: Position, selection: StreamFilter) -> tuple[bytes, Position] | None:
    blocks = past.chain.blocks.since(place.height if place.tag is None else place.known)
    if place.tag is not None:
        # Read with the others: an idle block follows from the one before, and finding the first is most of the work.
        known = next(blocks, None)
        if known is None or tag_of(known.hash) != place.tag:
            return None
        if place.index:
            blocks = chained((known,), blocks)
    text, place, _ = _page_of(past, islice(blocks, PAGE_BLOCKS), place, selection)
    return text, place


def _read_all_events(past: Past, place: Position, selection: StreamFilter) -> tuple[bytes, Position]:
    records = past.chain.blocks.records(place.height)
    text, place, count = _page_of(past, islice(records, PAGE_BLOCKS), place, selection)
    # Above the last record there is nothing but idle blocks.
    is_over = count < PAGE_BLOCKS and len(text) < PAGE_OCTETS
    return text, Position.after(past.chain.head) if is_over else place


def _page_of(
    past: Past, blocks: Iterable[Block], place: Position, selection: StreamFilter
) -> tuple[bytes, Position, int]:
    """Return a page of blocks, the position after it, and the number of blocks."""
    pieces: list[bytes] = []
    octets = 0
    for block in blocks:
        pieces.append(selection.take(past.encoded.of(block), place.index if block.height == place.height else 0))
        place = Position.after(block)
        octets += len(pieces[-1])
        if octets >= PAGE_OCTETS:
            break
    return b"".join(pieces), place, len(pieces)


def _read_events(past: Past, place: Position, selection: StreamFilter) -> tuple[bytes, Position]:
    wanted = extended(EventFilter, selection, since=place.height, since_index=max(place.index - 1, 0))
    found = past.index.events(wanted, past.chain.height, limit=PAGE_EVENTS, is_counted=False).items
    encoded: EncodedBlock | None = None
    pieces, octets = [], 0
    for each in found:
        if encoded is None or encoded.block.height != each.height:
            encoded = past.encoded.of(past.chain.blocks[each.height])
        pieces.append(encoded.piece(each.index + 1))
        octets += len(pieces[-1])
        place = Position(each.height, each.index + 2, tag_of(encoded.block.hash))
        if octets >= PAGE_OCTETS:
            break
    else:
        if len(found) < PAGE_EVENTS:
            place = Position.after(past.chain.head)
    return b"".join(pieces), place
