"""The state itself, key by key, of a leased view: for programs that read the chain with their own code.

The command line reads a node this way: with the code that reads a chain directory.

Decision: D-77
"""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason, invalid
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, U64, Limit, Offset, Positive, choice, integer, octets, unhex
from trailboss.api.routes.search import EventName
from trailboss.chain.block_records import encode_block
from trailboss.chain.view import ChainView
from trailboss.index import EventFilter, read_events
from trailboss.index.answers.timers import earlier_events, list_ended
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.life import EarlierEvents
from trailboss.views.records import Event, TimerEntry
from trailboss.views.timer_list import ALL, ENDED, TimerFilter

routes: Final = Routes("state")
NAMESPACES: Final = ("a", "c", "g", "s", "t")
ENTRIES_MAX: Final = 1_000
RECORDS_MAX: Final = 256
RECORDS_BYTES_MAX: Final = 2**20  # after which an answer of records ends; it holds the first whatever its size
REFUSES: Final = (HttpReason.GONE, HttpReason.INVALID_VALUE)
Key = Annotated[str, octets(128)]
Namespace = Annotated[str, choice(*NAMESPACES)]


class LentView(Struct, frozen=True):
    """A leased view: it answers for one height, until no request has used it for a minute."""

    view: int  # its number
    height: int  # height of its head
    genesis: bytes  # canonical encoding of what the chain started from
    head: bytes  # record of its head
    state_root: Hash32  # root of the state after it
    first_block: int  # height of the first block that the node has


class StateValue(Struct, frozen=True):
    """What the state holds under a key."""

    value: bytes | None  # the value; None if there is none


class StateRange(Struct, frozen=True):
    """Keys and values in order."""

    keys: list[bytes]  # full keys, ascending
    values: list[bytes]  # the value of each
    more: bool


class StateCount(Struct, frozen=True):
    """How many keys there are."""

    count: int  # the number


class TimerHeight(Struct, frozen=True):
    """At which height a timer is due."""

    height: int | None  # the height; None if no such timer is live


class BlockRecords(Struct, frozen=True):
    """Records of blocks; between one and the next lie idle blocks, which follow from it."""

    records: list[bytes]  # in order
    more: bool


class TimerBlocks(Struct, frozen=True):
    """Where the events of a timer are, and what the blocks before them come to."""

    heights: list[int]  # of the blocks that hold them, ascending
    scheduled: int  # timers that earlier blocks scheduled
    agent: bytes  # gas bidding agent that the timer's actor set last before; empty for none


class EndedTimers(Struct, frozen=True):
    """Ended timers, the latest first."""

    timers: list[TimerEntry]
    more: bool


class LatestEvents(Struct, frozen=True):
    """Events, the latest first."""

    events: list[Event]
    more: bool


@routes.post("/state/views")
async def lend_view(call: Call) -> LentView:
    """Lease the present view of the chain, for any number of requests."""
    view = call.view
    number, head = call.node.lender.lend(view), encode_block(view.head)
    return LentView(number, view.height, view.genesis_record(), head, view.state_root, view.blocks.base)


@routes.get("/state/views/{view}/value", refuses=REFUSES)
async def state_value(call: Call, *, view: Positive, key: Key) -> StateValue:
    """Return the value of a key."""
    full = unhex(key)
    if full[:1].decode("latin-1") not in NAMESPACES:
        raise invalid("key", key.lower(), f"the letter of a namespace, {', '.join(NAMESPACES)}, and more")
    return StateValue(_lent(call, view).store.read(full))


@routes.get("/state/views/{view}/range", refuses=REFUSES)
def state_range(
    call: Call,
    *,
    view: Positive,
    namespace: Namespace,
    lower: Key | None = None,  # least full key, or the beginning of one
    upper: Key | None = None,  # full key that ends the range and is not in it
    limit: Annotated[int, integer(ENTRIES_MAX, 1)] = ENTRIES_MAX,
) -> StateRange:
    """List keys and values of a namespace, ascending."""
    letter, end = namespace.encode(), None if upper is None else unhex(upper)
    found = _lent(call, view).store.iterate(letter, _within(lower, letter), end)
    entries = list(islice(found, limit))
    return StateRange([key for key, _ in entries], [value for _, value in entries], more=next(found, None) is not None)


@routes.get("/state/views/{view}/count", refuses=REFUSES)
async def state_count(
    call: Call,
    *,
    view: Positive,
    namespace: Namespace,
    bound: Key | None = None,  # full key: only the keys below it
) -> StateCount:
    """Count the keys of a namespace, or those below a bound, without listing them."""
    letter = namespace.encode()
    return StateCount(_lent(call, view).store.count(letter, _within(bound, letter)))


@routes.get("/state/views/{view}/timers/{timer_id}/height", refuses=REFUSES)
async def state_timer_height(call: Call, *, view: Positive, timer_id: Hash32) -> TimerHeight:
    """Return the height at which a live timer is due."""
    return TimerHeight(_lent(call, view).store.timer_height(timer_id))


@routes.get("/state/views/{view}/timers/{timer_id}/blocks", refuses=REFUSES)
def state_timer_blocks(call: Call, *, view: Positive, timer_id: Hash32) -> TimerBlocks:
    """List the blocks that hold events of a timer, with totals of the blocks before."""
    chain, index = _lent(call, view), call.node.index
    heights = index.timer_heights(timer_id, chain.height)
    earlier = earlier_events(chain, index, timer_id, heights) or EarlierEvents()
    return TimerBlocks(list(heights), earlier.scheduled, earlier.agent)


@routes.get("/state/views/{view}/timers/ended", refuses=REFUSES)
def state_ended_timers(
    call: Call,
    *,
    view: Positive,
    actor: Address | None = None,  # only this actor's
    target: Address | None = None,  # only those that call this actor
    payer: Address | None = None,  # only those that this account pays for
    from_height: U64 = 0,  # due at this height or later
    to_height: U64 = U64_MAX,  # due at this height or earlier
    state: Annotated[str, choice(*ENDED, ALL)] = ALL,  # how they ended
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> EndedTimers:
    """List timers that have ended, the latest first."""
    wanted = TimerFilter(state=state, actor=actor, target=target, payer=payer, first=from_height, last=to_height)
    total, entries = list_ended(_lent(call, view), call.node.index, wanted, offset, limit)
    return EndedTimers(entries, more=offset + len(entries) < total)


@routes.get("/state/views/{view}/events", refuses=REFUSES)
def state_events(
    call: Call,
    *,
    view: Positive,
    name: EventName | None = None,
    emitter: Address | None = None,
    from_height: U64 = 0,  # first block
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> LatestEvents:
    """List events, the latest first."""
    chain = _lent(call, view)
    wanted = EventFilter(name=name, emitter=emitter, since=from_height)
    found = call.node.index.events(wanted, chain.height, offset, limit, newest_first=True)
    return LatestEvents(read_events(chain.blocks, found.items), more=offset + len(found.items) < found.total)


@routes.get("/state/views/{view}/record", refuses=REFUSES)
async def state_record(
    call: Call,
    *,
    view: Positive,
    height: U64,  # highest height of the record
) -> BlockRecords:
    """Return the last record at or below a height."""
    blocks = _lent(call, view).blocks
    return BlockRecords([encode_block(blocks.record_at(min(height, blocks.height)))], more=False)


@routes.get("/state/views/{view}/records", refuses=REFUSES)
def state_records(call: Call, *, view: Positive, first: U64 = 0) -> BlockRecords:
    """List the records from a height on, as many as fit in an answer."""
    found = _lent(call, view).blocks.records(first)
    records = list(_as_many_as_fit(map(encode_block, found)))
    return BlockRecords(records, more=next(found, None) is not None)


def _as_many_as_fit(records: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for record in islice(records, RECORDS_MAX):
        yield record
        size += len(record)
        if size >= RECORDS_BYTES_MAX:
            return


def _lent(call: Call, number: int) -> ChainView:
    found = call.node.lender.find(number)
    if found is None:
        raise HttpError(HttpReason.GONE, f"the lease of view {number} has ended, or never was", view=number)
    return found


def _within(digits: str | None, namespace: bytes) -> bytes | None:
    if digits is None:
        return None
    bound = unhex(digits)
    if not bound.startswith(namespace):
        raise invalid("bound", digits.lower(), f"0x{namespace.hex()}, the letter of the namespace, and more")
    return bound
