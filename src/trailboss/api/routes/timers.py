"""What is scheduled, what became of it, and why."""

from typing import Any, Final

from msgspec import Struct

from trailboss.api.common import LIMIT, OFFSET, TIMER_ID, missing
from trailboss.api.errors import HttpError, HttpReason, invalid
from trailboss.api.kinds import ADDRESS, HEIGHT, choice, integer
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import query, query_or
from trailboss.index.answers.timers import TimerDetails, TimerPage, timer_details, timer_life, timer_page
from trailboss.index.records import IndexedTimer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.calendar import CalendarCounts, calendar_counts, tier_ends
from trailboss.views.explain.bids import AskedBid
from trailboss.views.explain.fires import FirePath
from trailboss.views.explain.waits import Wait
from trailboss.views.timer_list import LIVE, STATES, TimerFilter

routes: Final = Routes("timers")
BUCKETS_MAX: Final = 1_000
BUCKETS_DEFAULT: Final = 60
ANCESTORS: Final = "ancestors"
CHILDREN: Final = "children"
FAMILY: Final = "family"
MISSING: Final = (HttpReason.NOT_FOUND,)
RELATED: Final = (HttpReason.INVALID_VALUE,)

STATE: Final = query_or(
    "state",
    choice(*STATES),
    "`live` is everything that has not ended, due and deferred timers included.",
    LIVE,
)
ACTOR: Final = query("actor", ADDRESS, "Only this actor's.")
TARGET: Final = query("target", ADDRESS, "Only those that call this actor.")
PAYER: Final = query("payer", ADDRESS, "Only those that this account pays for.")
FROM_HEIGHT: Final = query_or("from_height", HEIGHT, "Due at this height or later.", 0)
TO_HEIGHT: Final = query_or("to_height", HEIGHT, "Due at this height or earlier.", U64_MAX)
UNTIL: Final = query("to_height", HEIGHT, "Last height; that of the epochs that have a bucket if left out.")
BUCKETS: Final = query_or(
    "buckets", integer(BUCKETS_MAX, 1), "Into how many stretches the heights are divided at most.", BUCKETS_DEFAULT
)
PART: Final = query_or(
    "part",
    choice(FAMILY, ANCESTORS, CHILDREN),
    "`ancestors`: those whose fires led to it, the nearest first; `children`: those that its fires scheduled; "
    "`family`: all that descend from the first of its line.",
    FAMILY,
)


class StepAnswer(Struct, frozen=True, kw_only=True):
    """One thing that happened to a timer.

    Attributes:
        block_height: When.
        event: Name of the event that tells of it.
        story: What happened and why, in words.
        data: The event's fields.
    """

    block_height: int
    event: str
    story: str
    data: Any


class LifeAnswer(Struct, frozen=True, kw_only=True):
    """A timer's life so far, and of its steps and fires a page.

    Attributes:
        height: Of the last block.
        timer_id: Its id.
        state: ``live``, or how it ended: ``fired``, ``unfunded``, ``expired``, ``cancelled``.
        total_count: How many steps there are.
        steps: What happened, oldest first, from ``offset`` on.
        waited: How often and why it waited, in words; None if it did not.
        waits: The blocks behind that, ascending, at most the last 1,000.
        bids: In the auction what its agent bid, each time that it was asked, in the last 1,000 blocks in which it was
            due.
        fires: In Globalbox the way of each of its fires, from ``offset`` on.
        outlook: For a live timer what comes next as things stand; None otherwise.
        reverted: Whether its last fire has reverted.
        failure: For a live timer what its fire would revert with if it ran as things stand; None if it would end well.
    """

    height: int
    timer_id: Hash32
    state: str
    total_count: int
    steps: list[StepAnswer]
    waited: str | None
    waits: tuple[Wait, ...]
    bids: tuple[AskedBid, ...]
    fires: tuple[FirePath, ...]
    outlook: str | None
    reverted: bool
    failure: ErrorObject | None


class LineageAnswer(Struct, frozen=True, kw_only=True):
    """Where a timer stands among those that scheduled one another, and a part of them.

    Attributes:
        height: Of the last block.
        timer_id: Its id.
        root: The first of its line, which a transaction or a message scheduled; itself perhaps.
        generation: How many fires lie between that one and the timer.
        family_size: How many timers descend from the root, and the root.
        place: The timer's place among them in the order in which they were scheduled, from 0.
        children: How many timers its fires have scheduled.
        part: Which of them are listed.
        total_count: How many these are.
        timers: Those, from ``offset`` on.
    """

    height: int
    timer_id: Hash32
    root: Hash32
    generation: int
    family_size: int
    place: int
    children: int
    part: str
    total_count: int
    timers: tuple[IndexedTimer, ...]


@routes.get(
    "/timers", STATE, ACTOR, TARGET, PAYER, FROM_HEIGHT, TO_HEIGHT, OFFSET, LIMIT, answers=TimerPage, refuses=RELATED
)
def timers(call: Call) -> TimerPage:
    """List timers: live ones by height, ended ones the latest first."""
    first, last = call[FROM_HEIGHT], call[TO_HEIGHT]
    if last < first:
        raise invalid(TO_HEIGHT.name, last, f"at least {FROM_HEIGHT.name}, {first}")
    wanted = TimerFilter(
        state=call[STATE], actor=call[ACTOR], target=call[TARGET], payer=call[PAYER], first=first, last=last
    )
    return timer_page(call.view, call.node.index, wanted, call[OFFSET], call[LIMIT])


@routes.get("/timers/{timer_id}", TIMER_ID, answers=TimerDetails, refuses=MISSING)
def timer(call: Call) -> TimerDetails:
    """Look at one timer, live or ended."""
    found = timer_details(call.view, call.node.index, call[TIMER_ID])
    if found is None:
        raise _never(call[TIMER_ID])
    return found


@routes.get("/timers/{timer_id}/explain", TIMER_ID, OFFSET, LIMIT, answers=LifeAnswer, refuses=MISSING)
def timer_explain(call: Call) -> LifeAnswer:
    """Tell a timer's whole life, and why each decision fell as it did."""
    life = timer_life(call.view, call.node.index, call[TIMER_ID], call.node.try_timer)
    page = slice(call[OFFSET], call[OFFSET] + call[LIMIT])
    return LifeAnswer(
        height=call.view.height,
        timer_id=life.timer_id,
        state=life.state,
        total_count=len(life.steps),
        steps=[
            StepAnswer(block_height=step.block_height, event=step.event.name, story=step.story, data=step.event.data)
            for step in life.steps[page]
        ],
        waited=life.waited or None,
        waits=life.waits,
        bids=life.bids,
        fires=life.fires[page],
        outlook=life.outlook or None,
        reverted=life.has_reverted,
        failure=life.failure,
    )


@routes.get("/timers/{timer_id}/lineage", TIMER_ID, PART, OFFSET, LIMIT, answers=LineageAnswer, refuses=MISSING)
def timer_lineage(call: Call) -> LineageAnswer:
    """Tell which fires led to a timer, and what its own fires have led to."""
    index, upto, timer_id = call.node.index, call.view.height, call[TIMER_ID]
    found = index.lineage(timer_id, upto)
    if found is None:
        raise _never(timer_id)
    listed = {ANCESTORS: index.ancestors, CHILDREN: index.children, FAMILY: index.family}[call[PART]]
    page = listed(timer_id, upto, call[OFFSET], call[LIMIT])
    return LineageAnswer(
        height=upto,
        timer_id=timer_id,
        root=found.root,
        generation=found.timer.generation,
        family_size=found.family_size,
        place=found.place,
        children=found.children,
        part=call[PART],
        total_count=page.total,
        timers=page.items,
    )


@routes.get("/calendar", FROM_HEIGHT, UNTIL, BUCKETS, answers=CalendarCounts, refuses=RELATED)
def calendar(call: Call) -> CalendarCounts:
    """Count live timers by tier, and by stretches of heights."""
    _, epochs_until = tier_ends(call.view)
    first, last = call[FROM_HEIGHT], call[UNTIL]
    last = max(first, epochs_until) if last is None else last
    if last < first:
        raise invalid(UNTIL.name, last, f"at least {FROM_HEIGHT.name}, {first}")
    return calendar_counts(call.view, first, last, call[BUCKETS])


def _never(timer_id: Hash32) -> HttpError:
    return missing(f"the chain never had a timer {timer_id}", timer_id=str(timer_id))
