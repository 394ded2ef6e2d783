"""Timers: scheduled and ended, with explanations."""

from typing import Annotated, Any, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason, invalid, missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, U64, Limit, Offset, choice, integer
from trailboss.chain.view import ChainView
from trailboss.index.answers.timers import TimerDetails, TimerPage, timer_details, timer_life, timer_page
from trailboss.index.records import IndexedTimer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.calendar import CalendarCounts, calendar_counts, tier_ends
from trailboss.views.explain.life import FirePath
from trailboss.views.explain.waits import AskedBid, Wait
from trailboss.views.shared_fields import extended
from trailboss.views.timer_list import LIVE, STATES, TimerFilter, unknown_words

routes: Final = Routes("timers")
BUCKETS_MAX: Final = 1_000
ANCESTORS: Final = "ancestors"
CHILDREN: Final = "children"
FAMILY: Final = "family"
RELATED: Final = (HttpReason.INVALID_VALUE,)


class StepAnswer(Struct, frozen=True, kw_only=True):
    """One thing that happened to a timer."""

    block_height: int  # when
    event: str  # name of the event that reports it
    story: str  # what happened and why, in words
    data: Any  # the event's fields


class LifeAnswer(Struct, frozen=True, kw_only=True):
    """A timer's life so far, and of its steps and fires a page."""

    height: int
    timer_id: Hash32  # its id
    state: str  # ``live``, or how it ended: ``fired``, ``unfunded``, ``expired``, ``cancelled``
    total_count: int
    steps: list[StepAnswer]  # what happened, oldest first, from ``offset`` on
    waited: str | None  # how often and why it waited, in words; None if it did not
    waits: tuple[Wait, ...]  # the blocks behind that, ascending, at most the last 1,000
    # In the auction what its agent bid, each time that it was asked, in the last 1,000 blocks in which it was due.
    bids: tuple[AskedBid, ...]
    fires: tuple[FirePath, ...]  # in Globalbox the way of each of its fires, from ``offset`` on
    outlook: str | None  # for a live timer what comes next as things stand; None otherwise
    reverted: bool  # whether its last fire has reverted
    # For a live timer what its fire would revert with if it ran as things stand; None if it would end well.
    failure: ErrorObject | None
    # What a forecast of the next 20 blocks has of a live timer, where it says more than the outlook; None otherwise.
    forecast: str | None


class LineageAnswer(Struct, frozen=True, kw_only=True):
    """Where a timer stands among those that scheduled one another, and a part of them."""

    height: int
    timer_id: Hash32  # its id
    root: Hash32  # the first of its line, which a transaction or a message scheduled; itself perhaps
    generation: int  # how many fires lie between that one and the timer
    family_size: int  # how many timers descend from the root, and the root
    place: int  # the timer's place among them in the order in which they were scheduled, from 0
    children: int  # how many timers its fires have scheduled
    part: str  # which of them are listed
    total_count: int  # how many these are
    timers: tuple[IndexedTimer, ...]  # those, from ``offset`` on


@routes.get("/timers", refuses=RELATED)
def timers(
    call: Call,
    *,
    actor: Address | None = None,  # only this actor's
    target: Address | None = None,  # only those that call this actor
    payer: Address | None = None,  # only those that this account pays for
    from_height: U64 = 0,  # due at this height or later
    to_height: U64 = U64_MAX,  # due at this height or earlier
    # `live` is every timer that has not ended, due and deferred timers included.
    state: Annotated[str, choice(*STATES)] = LIVE,
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> TimerPage:
    """List timers: live ones by height, ended ones the latest first."""
    _check_range(from_height, to_height)
    wanted = TimerFilter(state=state, actor=actor, target=target, payer=payer, first=from_height, last=to_height)
    return timer_page(call.view, call.node.index, wanted, offset, limit)


@routes.get("/timers/{timer_id}", refuses=NOT_FOUND)
def timer(call: Call, *, timer_id: Hash32) -> TimerDetails:
    """Return one timer, live or ended."""
    found = timer_details(call.view, call.node.index, timer_id)
    if found is None:
        raise _unknown(call.view, timer_id)
    return found


@routes.get("/timers/{timer_id}/explain", refuses=NOT_FOUND)
def timer_explain(call: Call, *, timer_id: Hash32, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT) -> LifeAnswer:
    """Explain a timer's whole life, and the reason of each decision."""
    node = call.node
    life = timer_life(call.view, node.index, timer_id, node.try_timer, node.workbench.beside)
    return extended(
        LifeAnswer,
        life,
        height=call.view.height,
        total_count=len(life.steps),
        steps=[
            StepAnswer(block_height=step.block_height, event=step.event.name, story=step.story, data=step.event.data)
            for step in life.steps[offset : offset + limit]
        ],
        waited=life.waited or None,
        fires=life.fires[offset : offset + limit],
        outlook=life.outlook or None,
        forecast=life.forecast or None,
        reverted=life.has_reverted,
    )


@routes.get("/timers/{timer_id}/lineage", refuses=NOT_FOUND)
def timer_lineage(
    call: Call,
    *,
    timer_id: Hash32,
    # `ancestors`: timers whose fires led to it, the nearest first; `children`: timers that its fires scheduled;
    # `family`: all descendants of the first timer of its line.
    part: Annotated[str, choice(FAMILY, ANCESTORS, CHILDREN)] = FAMILY,
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> LineageAnswer:
    """List the fires that led to a timer, and what its own fires have led to."""
    index, upto = call.node.index, call.view.height
    found = index.lineage(timer_id, upto)
    if found is None:
        raise _unknown(call.view, timer_id)
    listed = {ANCESTORS: index.ancestors, CHILDREN: index.children, FAMILY: index.family}[part]
    page = listed(timer_id, upto, offset, limit)
    return extended(
        LineageAnswer,
        found,
        height=upto,
        timer_id=timer_id,
        generation=found.timer.generation,
        part=part,
        total_count=page.total,
        timers=page.items,
    )


@routes.get("/calendar", refuses=RELATED)
def calendar(
    call: Call,
    *,
    from_height: U64 = 0,  # first height
    to_height: U64 | None = None,  # last height; the last one of the epochs that have a bucket if left out
    buckets: Annotated[int, integer(BUCKETS_MAX, 1)] = 60,  # most ranges into which the heights are divided
) -> CalendarCounts:
    """Count live timers by tier, and by ranges of heights."""
    _, epochs_until = tier_ends(call.view)
    first, last = from_height, to_height
    last = max(first, epochs_until) if last is None else last
    _check_range(first, last)
    return calendar_counts(call.view, first, last, buckets)


def _check_range(first: int, last: int) -> None:
    if last < first:
        raise invalid("to_height", last, f"at least from_height, {first}")


def _unknown(view: ChainView, timer_id: Hash32) -> HttpError:
    return missing(unknown_words(view, str(timer_id)), timer_id=str(timer_id))
