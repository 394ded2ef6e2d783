"""Events, and search by the first digits of a hash, an id or an address."""

from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, U64, Limit, Offset, Prefix, choice, integer, text
from trailboss.index import EventFilter, read_events
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import Event

routes: Final = Routes("reading")
FOUND_MAX: Final = 100
NEWEST: Final = "newest"
OLDEST: Final = "oldest"
EventName = Annotated[str, text(256)]


class LogPage(Struct, frozen=True):
    """Events."""

    height: int
    total_count: int
    events: list[Event]


class FoundBlock(Struct, frozen=True):
    """A block that has been found."""

    height: int  # its height
    hash: Hash32  # its hash


class FoundTransaction(Struct, frozen=True):
    """A transaction that has been found."""

    hash: Hash32  # its hash
    block_height: int  # of its block
    position: int  # among the block's transactions, from 0


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """What begins with some digits."""

    height: int
    blocks: list[FoundBlock]  # by their hash; empty ones by 16 digits or more
    transactions: list[FoundTransaction]  # by their hash
    timers: tuple[Hash32, ...]  # ids of timers, live and ended
    addresses: tuple[Address, ...]  # accounts and actors that a block has named


@routes.get("/logs")
def logs(
    call: Call,
    *,
    name: EventName | None = None,
    emitter: Address | None = None,
    address: Address | None = None,  # only what it emitted, and the chain's own events that name it
    timer_id: Hash32 | None = None,  # only events about this timer
    from_height: U64 = 0,  # first block
    to_height: U64 = U64_MAX,  # last block
    order: Annotated[str, choice(NEWEST, OLDEST)] = NEWEST,  # which come first
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> LogPage:
    """List events, the newest first by default."""
    wanted = EventFilter(name=name, emitter=emitter, address=address, timer_id=timer_id, since=from_height)
    return _page(call, wanted, min(to_height, call.view.height), offset, limit, newest_first=order == NEWEST)


@routes.get("/actor/{address}/logs")
def actor_logs(
    call: Call, *, address: Address, name: EventName | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> LogPage:
    """List what an actor emitted, the newest first."""
    wanted = EventFilter(name=name, emitter=address)
    return _page(call, wanted, call.view.height, offset, limit, newest_first=True)


def _page(call: Call, wanted: EventFilter, upto: int, offset: int, limit: int, *, newest_first: bool) -> LogPage:
    found = call.node.index.events(wanted, upto, offset, limit, newest_first=newest_first)
    return LogPage(call.view.height, found.total, read_events(call.view.blocks, found.items))


@routes.get("/search", refuses=(HttpReason.INVALID_VALUE,))
def search(
    call: Call,
    *,
    prefix: Prefix,
    limit: Annotated[int, integer(FOUND_MAX, 1)] = 10,  # largest number of results of each kind
) -> SearchAnswer:
    """Find blocks, transactions, timers, accounts and actors by the first digits of their hash, id or address."""
    view = call.view
    digits = prefix.lower().removeprefix("0x")
    found = call.node.index.search(digits, view.blocks, limit)
    return SearchAnswer(
        height=view.height,
        blocks=[FoundBlock(height, view.blocks[height].hash) for height in found.blocks],
        transactions=[FoundTransaction(each.hash, each.height, each.position) for each in found.transactions],
        timers=found.timers,
        addresses=found.addresses,
    )
