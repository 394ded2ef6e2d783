"""Events, and search by the first digits of a hash, an id or an address."""

from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import U64, Nothing, Paged, Prefix, choice, integer, text
from trailboss.api.routes.lookups import AddressPaged
from trailboss.index import EventFilter, read_events
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import Event

routes: Final = Routes("reading")
FOUND_MAX: Final = 100
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
EventName = Annotated[str, text(256)]


class LogsAsked(Paged, frozen=True, kw_only=True):
    """A page of events.

    Attributes:
        name: Only events of this name.
        emitter: Only what this actor emitted.
        address: Only what it emitted, and the chain's own events that name it.
        timer_id: Only events about this timer.
        from_height: First block.
        to_height: Last block.
        order: Which come first.
    """

    name: EventName | None = None
    emitter: Address | None = None
    address: Address | None = None
    timer_id: Hash32 | None = None
    from_height: U64 = 0
    to_height: U64 = U64_MAX
    order: Annotated[str, choice(NEWEST, OLDEST)] = NEWEST


class ActorLogsAsked(AddressPaged, frozen=True, kw_only=True):
    """A page of an actor's events.

    Attributes:
        name: Only events of this name.
    """

    name: EventName | None = None


class SearchAsked(Nothing, frozen=True, kw_only=True):
    """First digits.

    Attributes:
        prefix: First digits of a hash, an id or an address.
        limit: Largest number of results of each kind.
    """

    prefix: Prefix
    limit: Annotated[int, integer(FOUND_MAX, 1)] = 10


class LogPage(Struct, frozen=True):
    """Events.

    Attributes:
        height: Of the last block.
        total_count: How many there are.
        events: From ``offset`` on.
    """

    height: int
    total_count: int
    events: list[Event]


class FoundBlock(Struct, frozen=True):
    """A block that has been found.

    Attributes:
        height: Its height.
        hash: Its hash.
    """

    height: int
    hash: Hash32


class FoundTransaction(Struct, frozen=True):
    """A transaction that has been found.

    Attributes:
        hash: Its hash.
        block_height: Of its block.
        position: Among the block's transactions, from 0.
    """

    hash: Hash32
    block_height: int
    position: int


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """What begins with some digits.

    Attributes:
        height: Of the last block.
        blocks: By their hash; empty ones by 16 digits or more.
        transactions: By their hash.
        timers: Ids of timers, live and ended.
        addresses: Accounts and actors that a block has named.
    """

    height: int
    blocks: list[FoundBlock]
    transactions: list[FoundTransaction]
    timers: tuple[Hash32, ...]
    addresses: tuple[Address, ...]


@routes.get("/logs")
def logs(call: Call, asked: LogsAsked) -> LogPage:
    """List events, the newest first by default."""
    wanted = EventFilter(
        name=asked.name,
        emitter=asked.emitter,
        address=asked.address,
        timer_id=asked.timer_id,
        since=asked.from_height,
    )
    return _page(call, wanted, asked, min(asked.to_height, call.view.height), newest_first=asked.order == NEWEST)


@routes.get("/actor/{address}/logs")
def actor_logs(call: Call, asked: ActorLogsAsked) -> LogPage:
    """List what an actor emitted, the newest first."""
    wanted = EventFilter(name=asked.name, emitter=asked.address)
    return _page(call, wanted, asked, call.view.height, newest_first=True)


def _page(call: Call, wanted: EventFilter, asked: Paged, upto: int, *, newest_first: bool) -> LogPage:
    found = call.node.index.events(wanted, upto, asked.offset, asked.limit, newest_first=newest_first)
    return LogPage(call.view.height, found.total, read_events(call.view.blocks, found.items))


@routes.get("/search", refuses=(HttpReason.INVALID_VALUE,))
def search(call: Call, asked: SearchAsked) -> SearchAnswer:
    """Find blocks, transactions, timers, accounts and actors by the first digits of their hash, id or address."""
    view = call.view
    digits = asked.prefix.lower().removeprefix("0x")
    found = call.node.index.search(digits, view.blocks, asked.limit)
    return SearchAnswer(
        height=view.height,
        blocks=[FoundBlock(height, view.blocks[height].hash) for height in found.blocks],
        transactions=[FoundTransaction(each.hash, each.height, each.position) for each in found.transactions],
        timers=found.timers,
        addresses=found.addresses,
    )
