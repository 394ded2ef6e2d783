"""Timers as people look at them: lists, one timer, its life and its line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.view import ChainView
from trailboss.index import EventFilter, Index, read_events
from trailboss.index.records import Cause, IndexedTimer
from trailboss.model.events import AGENT_SET
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.views import timer_list
from trailboss.views.explain.life import EarlierEvents, TimerLife, explain_timer
from trailboss.views.mechanism.base import Outlook
from trailboss.views.mechanism.globalbox_records import EndedView, ended_timer_of
from trailboss.views.mechanism.registry import views_for
from trailboss.views.records import FROZEN_FEES, TimerEntry, TimerView
from trailboss.views.shared_fields import extended

SCANNED_MAX: Final = 10_000  # live timers that are read for a state that only their records have


class TimerPage(Struct, frozen=True, kw_only=True):
    """A part of a list of timers: live ones by height and insertion, then ended ones, the latest first."""

    height: int  # of the last block
    live: int  # live timers in all
    total_count: int  # how many the list has; for a state that only the timers' records show, of the first 10,000 or so
    timers: list[TimerEntry]  # those of this page
    more: bool  # whether there are, or may be, more after it


class TimerDetails(Struct, frozen=True, kw_only=True):
    """A timer, live or ended."""

    timer_id: Hash32  # its id
    state: str  # ``live``, or what it waits for, or how it ended
    actor: Address  # owner
    target: Address  # actor whose handler it calls
    fee_payer: Address  # who pays
    handler: str  # that it calls
    height: int  # at which it is, or was, due
    gas_limit: int  # cycles the fire may use; of an ended one, as it was scheduled
    expires_at: int  # last height at which it may fire; likewise
    cause: Cause | None  # what scheduled it; None if this node joined the network at that block or above it
    generation: int  # how many fires lie between it and the transaction or message at the beginning of its line
    ended_at: int | None  # height of the block in which it ended; None while it lives
    reverted: bool  # whether it ended with a fire that reverted
    live: TimerView | None  # its record; None once it has ended
    remembered: EndedView | None  # what Globalbox remembers of it once it has ended; None otherwise


def timer_page(view: ChainView, index: Index, wanted: timer_list.TimerFilter, offset: int, limit: int) -> TimerPage:
    """Return a part of a list of timers.

    Complexity: O(limit · log n) for live timers, for those that are due, and for ended ones; for a state that only the
    timers' records have O(live timers of the address, or of the heights, up to ``SCANNED_MAX``).
    """
    is_cut = False
    if wanted.state in timer_list.ENDED:
        total, entries = list_ended(view, index, wanted, offset, limit)
    elif wanted.state in (timer_list.LIVE, timer_list.DUE, timer_list.ALL):
        total, entries = _live(view, index, wanted, offset, limit)
        if wanted.state == timer_list.ALL:
            ended_total, ended = list_ended(view, index, wanted, max(offset - total, 0), limit - len(entries))
            total, entries = total + ended_total, entries + ended
    else:
        found, is_cut = _scan(view, index, wanted)
        total, entries = len(found), found[offset : offset + limit]
    return TimerPage(
        height=view.height,
        live=view.timer_count(),
        total_count=total,
        timers=entries,
        more=is_cut or offset + len(entries) < total,
    )


def _live(
    view: ChainView, index: Index, wanted: timer_list.TimerFilter, offset: int, limit: int
) -> tuple[int, list[TimerEntry]]:
    first, last = wanted.first, timer_list.last_height(view, wanted)
    if first > last:
        return 0, []
    if _has_party(wanted):
        page = index.live_timers(replace(wanted, last=last), view.height, offset, limit)
        return page.total, list(_entries(view, page.items))
    [total] = view.timer_counts((first, last + 1))
    return total, list(islice(_from_place(view, first, last, offset), limit)) if offset < total else []


def _has_party(wanted: timer_list.TimerFilter) -> bool:
    return any(party is not None for party in (wanted.actor, wanted.target, wanted.payer))


def _entries(view: ChainView, ids: Iterable[Hash32]) -> Iterator[TimerEntry]:
    for timer_id in ids:
        found = find_live(view, timer_id)
        # The index may be a branch ahead of the view for a moment.
        if found is not None:
            yield timer_list.live_entry(found)


def _from_place(view: ChainView, first: int, last: int, place: int) -> Iterator[TimerEntry]:
    """Yield the live timers of some heights by height and insertion, all but so many of the first."""
    begin = height_at(view, first, last, place) if place else first
    [before] = view.timer_counts((first, begin))
    rules, views = view.rules(), views_for(view)
    for timer in islice(view.timers(begin, last), place - before, None):
        yield timer_list.live_entry(timer_list.timer_view(timer, view.tier(timer), rules, views))


def height_at(view: ChainView, first: int, last: int, place: int) -> int:
    """Return the height of the timer at a place among those from a height on; the last height if there are fewer.

    Complexity: O(log n), up to 64 times.
    """
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        is_above = view.timer_counts((first, middle + 1))[0] > place
        low, high = (low, middle) if is_above else (middle + 1, high)
    return low


def _scan(view: ChainView, index: Index, wanted: timer_list.TimerFilter) -> tuple[list[TimerEntry], bool]:
    """Return the live timers in a state that only their records have, and whether there may be others."""
    first, last = wanted.first, timer_list.last_height(view, wanted)
    if first > last:
        return [], False
    if _has_party(wanted):
        page = index.live_timers(replace(wanted, last=last), view.height, 0, SCANNED_MAX)
        found = [entry for entry in _entries(view, page.items) if timer_list.waits_so(entry, wanted.state)]
        return found, len(page.items) < page.total
    end = height_at(view, first, last, SCANNED_MAX)
    return list(timer_list.list_live(view, replace(wanted, last=end))), end < last


def list_ended(
    view: ChainView, index: Index, wanted: timer_list.TimerFilter, offset: int, limit: int
) -> tuple[int, list[TimerEntry]]:
    """Return how many ended timers a filter lets pass, and a part of them, the latest first; see `timer_page`."""
    page = index.ended_timers(wanted, view.height, offset, limit)
    return page.total, list(map(_ended_entry, page.items))


def _ended_entry(timer: IndexedTimer) -> TimerEntry:
    fees = None if timer.max_fee_per_cycle is None else FROZEN_FEES
    return extended(TimerEntry, timer, fee_payer=timer.payer, fees=fees)


def find_live(view: ChainView, timer_id: Hash32) -> TimerView | None:
    """Return a live timer, or None."""
    timer = view.timer(timer_id)
    return None if timer is None else timer_list.timer_view(timer, view.tier(timer), view.rules(), views_for(view))


def timer_details(view: ChainView, index: Index, timer_id: Hash32) -> TimerDetails | None:
    """Return a timer, live or ended; None if the chain never had it."""
    found = index.timer(timer_id, view.height)
    if found is None:
        return None
    live = find_live(view, timer_id)
    if live is None:
        remembered = ended_timer_of(view, timer_id)
        return extended(TimerDetails, found, fee_payer=found.payer, live=None, remembered=remembered)
    present = {name: getattr(live, name) for name in ("height", "gas_limit", "expires_at")}
    state = timer_list.live_state(live)
    return extended(TimerDetails, found, fee_payer=found.payer, live=live, remembered=None, state=state, **present)


def timer_life(
    view: ChainView,
    index: Index,
    timer_id: Hash32,
    attempt: Callable[[Timer], ErrorObject | None],
    beside: Callable[[ChainView, Timer, Outlook], str],
) -> TimerLife:
    """Return a timer's life; ``attempt`` tries its handler, ``beside`` says what a forecast has beside its outlook.

    Complexity: O(blocks that hold its events), and the last 1,000 blocks in which it waited in the timer lane or in the
    auction.

    Raises:
        Rejection: ``NOT_FOUND`` if no block of this chain ever scheduled it.
        ViewGoneError: If the chain has gone back behind the view.
    """
    heights = index.timer_heights(timer_id, view.height)
    earlier = earlier_events(view, index, timer_id, heights)
    return explain_timer(view, timer_id, heights, earlier, attempt=attempt, ahead=partial(beside, view))


def earlier_events(view: ChainView, index: Index, timer_id: Hash32, heights: Sequence[int]) -> EarlierEvents | None:
    """Return what the blocks before the first one of a timer come to; None if the chain never had it."""
    timer = index.timer(timer_id, view.height)
    if timer is None or not heights:
        return None
    before = heights[0] - 1
    wanted = EventFilter(name=AGENT_SET, emitter=timer.actor)
    places = index.events(wanted, before, limit=1, newest_first=True).items
    agents = [bytes(event.data["agent"]) for event in read_events(view.blocks, places)]
    return EarlierEvents(scheduled=index.totals(before).scheduled, agent=agents[0] if agents else b"")
