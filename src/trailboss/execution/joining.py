"""Joining: how many due timers a block lets into the index of its mechanism, and which.

A height can hold any number of timers, and a block must not do the work of all of them. So a block lets in a bounded
number: first those that are due at its own height, then the oldest of those that earlier blocks have left out. Who
floods a height delays the timers of that height, and nobody who comes later.

What has been left out are a few *gaps* in the due order, and those the state remembers.

Decision: D-51
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice, takewhile

from trailboss.execution.session import BlockSession
from trailboss.execution.timers import load_timer
from trailboss.governance.rules import JOINING_KEY
from trailboss.mechanisms.base import DueTimers
from trailboss.model.configs import JoiningGap, JoiningGaps, encode_record
from trailboss.model.timers import Timer

Entry = tuple[int, int, bytes]


def join_timers(session: BlockSession, most: int) -> DueTimers:
    """Let due timers join, and return those that have joined before and those that join now.

    Complexity: O(log n) for each gap that is looked at, and O(1) a timer that joins.

    Args:
        session: The block; what it leaves out is noted there, and in the state.
        most: Timers that join at most.
    """
    known, height = session.context.rules.gaps, session.context.height
    # In the first block everything that is due already, as at the activation of the lane, is left out and joins later.
    before = (JoiningGap(0, 0, height - 1),) if known is None else known
    joining: list[Entry] = []
    after: list[JoiningGap] = []
    for gap in (JoiningGap(height, 0, height), *before):
        room = most - len(joining)
        if room == 0 and gap.last_height < height:
            after.append(gap)
            continue
        # One more than there is room for: it shows whether anything is left, and what comes first.
        found = list(islice(_within(session, gap), room + 1))
        joining += found[:room]
        if len(found) > room:
            after.append(JoiningGap(*found[room][:2], gap.last_height))
    session.gaps = tuple(sorted(after))
    if session.gaps != known:
        session.overlay.write(JOINING_KEY, encode_record(JoiningGaps(session.gaps)))
    session.joining = list(_load(session, iter(joining)))
    return DueTimers(waiting=_load(session, _outside(session, before)), joining=session.joining)


def has_joined(session: BlockSession, timer: Timer) -> bool:
    """Return whether a timer is among those that have joined, once the block has let timers join."""
    return timer.height <= session.context.height and not any(
        gap.holds(timer.height, timer.sequence) for gap in session.gaps
    )


def _within(session: BlockSession, gap: JoiningGap) -> Iterator[Entry]:
    """Yield the due timers of a gap, in due order."""
    due = session.queue.due(session.context.height, after=(gap.first_height, gap.first_sequence - 1))
    return takewhile(lambda entry: entry[0] <= gap.last_height, due)


def _outside(session: BlockSession, gaps: tuple[JoiningGap, ...]) -> Iterator[Entry]:
    """Yield the due timers of earlier heights that lie in no gap, in due order."""
    height, lasts = session.context.height, [gap.last_height for gap in gaps]
    for entry in takewhile(lambda entry: entry[0] < height, session.queue.due(height)):
        place = bisect_left(lasts, entry[0])
        if place == len(gaps) or entry[:2] < gaps[place][:2]:
            yield entry


def _load(session: BlockSession, entries: Iterator[Entry]) -> Iterator[Timer]:
    for height, _, timer_id in entries:
        yield load_timer(session, height, timer_id)
