"""Blocks and events as the stream tells them: server-sent events, encoded once for all who read.

Each has an ``id``: height, place in the block and the beginning of the block's hash, so that a reader who comes back
with it is told what he has missed, or that the block is gone. Place 0 is the block itself, 1 its first event.

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

BLOCK: Final = "block"
REORG: Final = "reorg"
END: Final = "end"
EVENT: Final = "event"
"""Type of an event whose name is one of ours, or of the browser's, or no plain text."""
TAKEN: Final = frozenset((BLOCK, REORG, END, EVENT, "message", "open", "error"))
HEARTBEAT: Final = b":\n\n"
PAGE_BLOCKS: Final = 1_024
"""Blocks of the past that are read in one piece."""
PAGE_EVENTS: Final = 1_024
"""Likewise, of events that are looked up."""
PAGE_OCTETS: Final = 2**19
"""Bytes after which a piece of the past ends, with the block that reaches them."""
KEPT_OCTETS: Final = 2**25
"""Bytes of encoded blocks that are kept, about."""

_MARK: Final = re.compile(rf"(0|[1-9]\d{{0,18}})\.(0|[1-9]\d{{0,8}})\.([0-9a-f]{{{2 * TAG_OCTETS}}})", re.ASCII)


def told(kind: str, document: Mapping[str, Any], mark: str | None = None) -> bytes:
    """Return one server-sent event.

    Args:
        kind: Its type, without line breaks.
        document: What it tells, of plain values.
        mark: Its id, without line breaks; None for none.
    """
    head = f"event: {kind}\ndata: " if mark is None else f"id: {mark}\nevent: {kind}\ndata: "
    return b"".join((head.encode(), _encode(document), b"\n\n"))


def _encode(document: Mapping[str, Any]) -> bytes:
    encoded = msgspec.json.encode(document)
    # Clients that read lines as Python does take more characters for the end of one than the standard of streams.
    return encoded if encoded.isascii() else json.dumps(document, separators=(",", ":")).encode("ascii")


def kind_of(name: str) -> str:
    """Return the type that an event is sent as: its name, unless an actor has chosen one that would be misread."""
    return name if name.isprintable() and name not in TAKEN else EVENT


_KEYS: Final[Mapping[str, Callable[[EventRecord], Iterable[object]]]] = {
    "name": lambda event: (event.name,),
    "emitter": lambda event: (event.emitter,),
    "timer_id": lambda event: (event.timer_id,),
    "address": lambda event: {event.emitter, *mentions(event)},
}
"""By what events can be chosen, and the values that an event is found by."""


class ToldBlock:
    """A block with its events, each encoded when somebody first wants it.

    Attributes:
        block: The block.
    """

    __slots__ = ("_events", "_pieces", "_places", "block")

    def __init__(self, block: Block) -> None:
        self.block = block
        self._events = tuple(block_events(block))
        self._pieces: list[bytes | None] = [None] * (1 + len(self._events))
        self._places: dict[str, dict[object, list[int]]] = {}

    def __len__(self) -> int:
        """Return how many pieces there are: one for the block, and one for each event."""
        return len(self._pieces)

    def piece(self, place: int) -> bytes:
        """Return what is told at a place: 0 is the block, 1 its first event."""
        found = self._pieces[place]
        if found is None:
            found = self._pieces[place] = self._encode(place)
        return found

    def places(self, kind: str, value: object) -> Sequence[int]:
        """Return the places of the events with a value, ascending.

        Args:
            kind: ``name``, ``emitter``, ``timer_id`` or ``address``.
            value: Which of it.
        """
        found = self._places.get(kind)
        if found is None:
            found = {}
            for place, event in enumerate(self._events, start=1):
                for key in _KEYS[kind](event):
                    found.setdefault(key, []).append(place)
            self._places[kind] = found
        return found.get(value, ())

    def text(self) -> bytes:
        """Return all that is told of the block."""
        return b"".join(map(self.piece, range(len(self))))

    def prepare(self) -> None:
        """Do now, wherever it may take its time, what otherwise is done when somebody wants it."""
        for kind in _KEYS:
            self.places(kind, None)

    def _encode(self, place: int) -> bytes:
        height = self.block.height
        mark = f"{height}.{place}.{tag_of(self.block.hash).hex()}"
        if place == 0:
            return told(BLOCK, to_json_value(block_summary(self.block)), mark)
        event = event_view(self._events[place - 1], height)
        return told(kind_of(event.name), to_json_value(event) | {"index": place - 1}, mark)


class Tellings:
    """The blocks that were told last, encoded, for all readers: those who are behind read the same ones."""

    def __init__(self, octets_max: int = KEPT_OCTETS) -> None:
        """Begin with none.

        Args:
            octets_max: Bytes of blocks that are kept, as `size_of` estimates them.
        """
        self._octets_max = octets_max
        self._octets = 0
        self._tellings: dict[bytes, ToldBlock] = {}
        self._lock = Lock()

    def of(self, block: Block) -> ToldBlock:
        """Return a block as it is told, and keep it; those not asked for longest make room. For any thread."""
        with self._lock:
            telling = self._tellings.pop(block.hash, None)
            if telling is None:
                telling = ToldBlock(block)
                self._octets += size_of(block)
            self._tellings[block.hash] = telling
            while self._octets > self._octets_max:
                oldest = self._tellings.pop(next(iter(self._tellings)))
                self._octets -= size_of(oldest.block)
        return telling


class Selection(Struct, frozen=True):
    """What a reader wants to be told.

    Attributes:
        name: Only events of this name.
        emitter: Only events of this emitter.
        timer_id: Only events about this timer.
        address: Only events that it has emitted, and those of the chain's own that name it in a field.
        blocks: Whether blocks are told.
        events: Whether events are.
    """

    name: str | None = None
    emitter: Address | None = None
    timer_id: Hash32 | None = None
    address: Address | None = None
    blocks: bool = True
    events: bool = True

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return self.blocks and self.events and not self.has_conditions

    @property
    def has_conditions(self) -> bool:
        """Whether not every event is told."""
        return any(True for _ in self._wanted())

    def take(self, block: ToldBlock, first: int = 0) -> bytes:
        """Return what of a block is told, from a place on.

        Complexity: O(events chosen), once the block is prepared; O(events) if all are chosen.
        """
        places = self._places(block)
        return b"".join(block.piece(place) for place in places if place >= first)

    def _places(self, block: ToldBlock) -> Iterable[int]:
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


class Place(Struct, frozen=True):
    """Where a reader stands.

    Attributes:
        height: Of the block that is told next.
        index: The place in it from which on; 0 for all of it.
        tag: Of the last block of which he has been told something; None if he knows of none.
    """

    height: int
    index: int = 0
    tag: bytes | None = None

    @classmethod
    def after_mark(cls, mark: str) -> Self | None:
        """Return where a reader goes on who was last told something with this id; None if it is no id of ours."""
        found = _MARK.fullmatch(mark)
        return None if found is None else cls(int(found[1]), int(found[2]) + 1, bytes.fromhex(found[3]))

    @classmethod
    def after(cls, block: Block) -> Self:
        """Return where a reader stands who knows a block and all before it."""
        return cls(block.height + 1, 0, tag_of(block.hash))

    def is_on(self, chain: ChainReader) -> bool:
        """Return whether what the reader knows is on this chain.

        Raises:
            ViewGoneError: If the chain is a view that lacks the block.
        """
        if self.tag is None:
            return True
        return self.known <= chain.height and tag_of(chain.blocks[self.known].hash) == self.tag

    @property
    def known(self) -> int:
        """Height of the block that the tag is of."""
        return self.height if self.index else self.height - 1


class Past(Struct, frozen=True):
    """Where the past is read.

    Attributes:
        chain: Read up to its head.
        index: Of the same chain; it may be ahead, or of another branch already.
        tellings: Blocks that are encoded already.
    """

    chain: ChainReader
    index: Index
    tellings: Tellings


def read_page(past: Past, place: Place, selection: Selection) -> tuple[bytes, Place] | None:
    """Return what a reader is to be told next of the past, and where he stands then; None if he is not on the chain.

    Where the index is of another branch, blocks that it names are gone from the chain that is read, or it lacks some
    that are gone there. The reader's place is not on the new branch then, and so he finds out.

    Complexity: O(``PAGE_BLOCKS`` + events in them) where blocks are told; else O(events told), whatever lies between.

    Args:
        past: Where it is read.
        place: Where the reader stands, not above the head if he is on the chain.
        selection: What he wants.

    Raises:
        ViewGoneError: If the chain is a view that lacks one of the blocks.
    """
    if selection.blocks:
        return _read_blocks(past, place, selection)
    if not place.is_on(past.chain):
        return None
    return (
        _read_events(past, place, selection) if selection.has_conditions else _read_all_events(past, place, selection)
    )


def _read_blocks(past: Past, place: Place, selection: Selection) -> tuple[bytes, Place] | None:
    blocks = past.chain.blocks.since(place.height if place.tag is None else place.known)
    if place.tag is not None:
        # Read with the others: an idle block follows from the one before, and finding the first is most of the work.
        known = next(blocks, None)
        if known is None or tag_of(known.hash) != place.tag:
            return None
        if place.index:
            blocks = chained((known,), blocks)
    text, place, _ = _tell(past, islice(blocks, PAGE_BLOCKS), place, selection)
    return text, place


def _read_all_events(past: Past, place: Place, selection: Selection) -> tuple[bytes, Place]:
    records = past.chain.blocks.records(place.height)
    text, place, count = _tell(past, islice(records, PAGE_BLOCKS), place, selection)
    # Above the last record there is nothing but idle blocks.
    is_over = count < PAGE_BLOCKS and len(text) < PAGE_OCTETS
    return text, Place.after(past.chain.head) if is_over else place


def _tell(past: Past, blocks: Iterable[Block], place: Place, selection: Selection) -> tuple[bytes, Place, int]:
    """Return what is told of blocks up to so many bytes, where the reader stands then, and how many blocks it is."""
    pieces: list[bytes] = []
    octets = 0
    for block in blocks:
        pieces.append(selection.take(past.tellings.of(block), place.index if block.height == place.height else 0))
        place = Place.after(block)
        octets += len(pieces[-1])
        if octets >= PAGE_OCTETS:
            break
    return b"".join(pieces), place, len(pieces)


def _read_events(past: Past, place: Place, selection: Selection) -> tuple[bytes, Place]:
    wanted = EventFilter(
        name=selection.name,
        emitter=selection.emitter,
        address=selection.address,
        timer_id=selection.timer_id,
        since=place.height,
        since_index=max(place.index - 1, 0),
    )
    found = past.index.events(wanted, past.chain.height, limit=PAGE_EVENTS, is_counted=False).items
    telling: ToldBlock | None = None
    pieces, octets = [], 0
    for each in found:
        if telling is None or telling.block.height != each.height:
            telling = past.tellings.of(past.chain.blocks[each.height])
        pieces.append(telling.piece(each.index + 1))
        octets += len(pieces[-1])
        place = Place(each.height, each.index + 2, tag_of(telling.block.hash))
        if octets >= PAGE_OCTETS:
            break
    else:
        if len(found) < PAGE_EVENTS:
            place = Place.after(past.chain.head)
    return b"".join(pieces), place
