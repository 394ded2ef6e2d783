"""Events, and what begins with some digits."""

from typing import Final

from msgspec import Struct

from trailboss.api.common import ADDRESS_OF, LIMIT, OFFSET
from trailboss.api.errors import HttpReason
from trailboss.api.kinds import ADDRESS, HASH, HEIGHT, PREFIX, choice, integer, words
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import query, query_or, required_query
from trailboss.index import EventFilter, read_events
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import Event

routes: Final = Routes("reading")
NAME_CHARACTERS_MAX: Final = 256
FOUND_MAX: Final = 100
FOUND_DEFAULT: Final = 10
NEWEST: Final = "newest"
OLDEST: Final = "oldest"

NAME: Final = query("name", words(NAME_CHARACTERS_MAX), "Only events of this name.")
EMITTER: Final = query("emitter", ADDRESS, "Only what this actor emitted.")
ABOUT: Final = query("address", ADDRESS, "Only what it emitted, or what names it, of the chain's own events.")
TIMER: Final = query("timer_id", HASH, "Only events about this timer.")
FROM_HEIGHT: Final = query_or("from_height", HEIGHT, "From this block on.", 0)
TO_HEIGHT: Final = query_or("to_height", HEIGHT, "Up to this block.", U64_MAX)
ORDER: Final = query_or("order", choice(NEWEST, OLDEST), "Which come first.", NEWEST)
DIGITS: Final = required_query("prefix", PREFIX, "First digits of a hash, an id or an address.")
MOST: Final = query_or("limit", integer(FOUND_MAX, 1), "Most of each kind.", FOUND_DEFAULT)


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


@routes.get("/logs", NAME, EMITTER, ABOUT, TIMER, FROM_HEIGHT, TO_HEIGHT, ORDER, OFFSET, LIMIT, answers=LogPage)
def logs(call: Call) -> LogPage:
    """List events, the newest first unless told otherwise."""
    wanted = EventFilter(
        name=call[NAME],
        emitter=call[EMITTER],
        address=call[ABOUT],
        timer_id=call[TIMER],
        since=call[FROM_HEIGHT],
    )
    return _page(call, wanted, min(call[TO_HEIGHT], call.view.height), newest_first=call[ORDER] == NEWEST)


@routes.get("/actor/{address}/logs", ADDRESS_OF, NAME, OFFSET, LIMIT, answers=LogPage)
def actor_logs(call: Call) -> LogPage:
    """List what an actor emitted, the newest first."""
    wanted = EventFilter(name=call[NAME], emitter=call[ADDRESS_OF])
    return _page(call, wanted, call.view.height, newest_first=True)


def _page(call: Call, wanted: EventFilter, upto: int, *, newest_first: bool) -> LogPage:
    found = call.node.index.events(wanted, upto, call[OFFSET], call[LIMIT], newest_first=newest_first)
    return LogPage(call.view.height, found.total, read_events(call.view.blocks, found.items))


@routes.get("/search", DIGITS, MOST, answers=SearchAnswer, refuses=(HttpReason.INVALID_VALUE,))
def search(call: Call) -> SearchAnswer:
    """Find blocks, transactions, timers, accounts and actors by the first digits of their hash, id or address."""
    view = call.view
    found = call.node.index.search(call[DIGITS], view.blocks, call[MOST])
    return SearchAnswer(
        height=view.height,
        blocks=[FoundBlock(height, view.blocks[height].hash) for height in found.blocks],
        transactions=[FoundTransaction(each.hash, each.height, each.position) for each in found.transactions],
        timers=found.timers,
        addresses=found.addresses,
    )
