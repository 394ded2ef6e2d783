"""The state itself, key by key, of a view that is lent: for programs that read the chain by code of their own.

`trailboss --url` reads so: every command tells of a node what it tells of a directory, because it is the same code.

Decision: D-77
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.api.common import LIMIT, OFFSET, TIMER_ID
from trailboss.api.errors import HttpError, HttpReason, invalid
from trailboss.api.kinds import HEIGHT, choice, integer, octets
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import path, query, query_or, required_query
from trailboss.api.routes import search as searching
from trailboss.api.routes import timers
from trailboss.chain.block_records import encode_block
from trailboss.chain.view import ChainView
from trailboss.index import EventFilter, read_events
from trailboss.index.answers.timers import earlier_events, list_ended
from trailboss.primitives.octets import Hash32
from trailboss.views.explain.life import EarlierEvents
from trailboss.views.records import Event, TimerEntry
from trailboss.views.timer_list import ALL, ENDED, TimerFilter

routes: Final = Routes("state")
NAMESPACES: Final = ("a", "c", "g", "s", "t")
KEY_BYTES_MAX: Final = 128
ENTRIES_MAX: Final = 1_000
RECORDS_MAX: Final = 256
RECORDS_BYTES_MAX: Final = 2**20
"""Bytes after which an answer of records ends; the first record is in it whatever its size."""
REFUSES: Final = (HttpReason.GONE, HttpReason.INVALID_VALUE)

VIEW: Final = path("view", integer(minimum=1), "Number that /state/views answered.")
KEY: Final = required_query("key", octets(KEY_BYTES_MAX), "Full key: its namespace's letter, then the key.")
NAMESPACE: Final = required_query("namespace", choice(*NAMESPACES), "Which of the maps that the state root covers.")
LOWER: Final = query("lower", octets(KEY_BYTES_MAX), "Least full key, or the beginning of one.")
UPPER: Final = query("upper", octets(KEY_BYTES_MAX), "Full key that ends the range and is not in it.")
BOUND: Final = query("bound", octets(KEY_BYTES_MAX), "Full key: only the keys below it.")
MOST: Final = query_or("limit", integer(ENTRIES_MAX, 1), "Most entries to answer.", ENTRIES_MAX)
FIRST: Final = query_or("first", HEIGHT, "Height from which on.", 0)
BELOW: Final = required_query("height", HEIGHT, "Height at or below which.")
STATE: Final = query_or("state", choice(*ENDED, ALL), "How they ended.", ALL)
PARTIES: Final = (timers.ACTOR, timers.TARGET, timers.PAYER)
HEIGHTS: Final = (timers.FROM_HEIGHT, timers.TO_HEIGHT)
EVENT_FILTER: Final = (searching.NAME, searching.EMITTER, searching.FROM_HEIGHT)


class LentView(Struct, frozen=True, kw_only=True):
    """A view that is lent: it answers for one height, until nobody has asked it for a minute.

    Attributes:
        view: Its number.
        height: Height of its head.
        genesis: Canonical encoding of what the chain started from.
        head: Record of its head.
        state_root: Root of the state after it.
    """

    view: int
    height: int
    genesis: bytes
    head: bytes
    state_root: Hash32


class StateValue(Struct, frozen=True):
    """What the state holds under a key.

    Attributes:
        value: The value; None if there is none.
    """

    value: bytes | None


class StateRange(Struct, frozen=True):
    """Keys and values in order.

    Attributes:
        keys: Full keys, ascending.
        values: The value of each.
        more: Whether the range goes on.
    """

    keys: list[bytes]
    values: list[bytes]
    more: bool


class StateCount(Struct, frozen=True):
    """How many keys there are.

    Attributes:
        count: The number.
    """

    count: int


class TimerHeight(Struct, frozen=True):
    """At which height a timer is due.

    Attributes:
        height: The height; None if no such timer is live.
    """

    height: int | None


class BlockRecords(Struct, frozen=True):
    """Records of blocks; between one and the next lie idle blocks, which follow from it.

    Attributes:
        records: In order.
        more: Whether there are others.
    """

    records: list[bytes]
    more: bool


class TimerBlocks(Struct, frozen=True):
    """Where the events of a timer are, and what the blocks before them come to.

    Attributes:
        heights: Of the blocks that hold them, ascending.
        scheduled: Timers that earlier blocks scheduled.
        agent: Gas bidding agent that the timer's actor set last before; empty for none.
    """

    heights: list[int]
    scheduled: int
    agent: bytes


class EndedTimers(Struct, frozen=True):
    """Ended timers, the latest first.

    Attributes:
        timers: From ``offset`` on.
        more: Whether there are others.
    """

    timers: list[TimerEntry]
    more: bool


class LatestEvents(Struct, frozen=True):
    """Events, the latest first.

    Attributes:
        events: From ``offset`` on.
        more: Whether there are others.
    """

    events: list[Event]
    more: bool


@routes.post("/state/views", answers=LentView)
async def lend_view(call: Call) -> LentView:
    """Lend the present view of the chain, to be read in as many requests as it takes."""
    view = call.view
    return LentView(
        view=call.node.lender.lend(view),
        height=view.height,
        genesis=view.genesis_record(),
        head=encode_block(view.head),
        state_root=view.state_root,
    )


@routes.get("/state/views/{view}/value", VIEW, KEY, answers=StateValue, refuses=REFUSES)
async def state_value(call: Call) -> StateValue:
    """Look a key up."""
    key = call[KEY]
    if key[:1].decode("latin-1") not in NAMESPACES:
        raise invalid(KEY.name, f"0x{key.hex()}", f"the letter of a namespace, {', '.join(NAMESPACES)}, and more")
    return StateValue(_lent(call).store.read(key))


@routes.get("/state/views/{view}/range", VIEW, NAMESPACE, LOWER, UPPER, MOST, answers=StateRange, refuses=REFUSES)
def state_range(call: Call) -> StateRange:
    """List keys and values of a namespace, ascending."""
    limit, namespace = call[MOST], call[NAMESPACE].encode()
    found = _lent(call).store.iterate(namespace, _within(call[LOWER], namespace), call[UPPER])
    entries = list(islice(found, limit))
    return StateRange([key for key, _ in entries], [value for _, value in entries], more=next(found, None) is not None)


@routes.get("/state/views/{view}/count", VIEW, NAMESPACE, BOUND, answers=StateCount, refuses=REFUSES)
async def state_count(call: Call) -> StateCount:
    """Count the keys of a namespace, or those below a bound, without listing them."""
    namespace = call[NAMESPACE].encode()
    return StateCount(_lent(call).store.count(namespace, _within(call[BOUND], namespace)))


@routes.get("/state/views/{view}/timers/{timer_id}/height", VIEW, TIMER_ID, answers=TimerHeight, refuses=REFUSES)
async def state_timer_height(call: Call) -> TimerHeight:
    """Tell at which height a live timer is due."""
    return TimerHeight(_lent(call).store.timer_height(call[TIMER_ID]))


@routes.get("/state/views/{view}/timers/{timer_id}/blocks", VIEW, TIMER_ID, answers=TimerBlocks, refuses=REFUSES)
def state_timer_blocks(call: Call) -> TimerBlocks:
    """Tell which blocks hold events of a timer, and what came before them."""
    view, index, timer_id = _lent(call), call.node.index, call[TIMER_ID]
    heights = index.timer_heights(timer_id, view.height)
    earlier = earlier_events(view, index, timer_id, heights) or EarlierEvents()
    return TimerBlocks(list(heights), earlier.scheduled, earlier.agent)


@routes.get(
    "/state/views/{view}/timers/ended",
    *(VIEW, STATE, *PARTIES, *HEIGHTS, OFFSET, LIMIT),
    answers=EndedTimers,
    refuses=REFUSES,
)
def state_ended_timers(call: Call) -> EndedTimers:
    """List timers that have ended, the latest first."""
    actor, target, payer = (call[each] for each in PARTIES)
    first, last = (call[each] for each in HEIGHTS)
    wanted = TimerFilter(state=call[STATE], actor=actor, target=target, payer=payer, first=first, last=last)
    total, entries = list_ended(_lent(call), call.node.index, wanted, call[OFFSET], call[LIMIT])
    return EndedTimers(entries, more=call[OFFSET] + len(entries) < total)


@routes.get("/state/views/{view}/events", VIEW, *EVENT_FILTER, OFFSET, LIMIT, answers=LatestEvents, refuses=REFUSES)
def state_events(call: Call) -> LatestEvents:
    """List events, the latest first."""
    view = _lent(call)
    wanted = EventFilter(name=call[searching.NAME], emitter=call[searching.EMITTER], since=call[searching.FROM_HEIGHT])
    found = call.node.index.events(wanted, view.height, call[OFFSET], call[LIMIT], newest_first=True)
    return LatestEvents(read_events(view.blocks, found.items), more=call[OFFSET] + len(found.items) < found.total)


@routes.get("/state/views/{view}/record", VIEW, BELOW, answers=BlockRecords, refuses=REFUSES)
async def state_record(call: Call) -> BlockRecords:
    """Return the last record at or below a height."""
    blocks = _lent(call).blocks
    return BlockRecords([encode_block(blocks.record_at(min(call[BELOW], blocks.height)))], more=False)


@routes.get("/state/views/{view}/records", VIEW, FIRST, answers=BlockRecords, refuses=REFUSES)
def state_records(call: Call) -> BlockRecords:
    """List the records from a height on, as many as an answer holds."""
    found = _lent(call).blocks.records(call[FIRST])
    records = list(_as_many_as_fit(map(encode_block, found)))
    return BlockRecords(records, more=next(found, None) is not None)


def _as_many_as_fit(records: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for record in islice(records, RECORDS_MAX):
        yield record
        size += len(record)
        if size >= RECORDS_BYTES_MAX:
            return


def _lent(call: Call) -> ChainView:
    found = call.node.lender.find(call[VIEW])
    if found is None:
        raise HttpError(HttpReason.GONE, f"the view {call[VIEW]} has returned, or was never lent", view=call[VIEW])
    return found


def _within(bound: bytes | None, namespace: bytes) -> bytes | None:
    """Return a bound of a namespace.

    Raises:
        HttpError: ``INVALID_VALUE`` for one of another namespace.
    """
    if bound is not None and not bound.startswith(namespace):
        raise invalid("bound", f"0x{bound.hex()}", f"0x{namespace.hex()}, the letter of the namespace, and more")
    return bound
