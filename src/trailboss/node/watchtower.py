"""The watchtower: which payers of a node run dry first, looked at a few at a time.

A chain may have a million timers and as many payers. Each look has a bounded number of them: those with the shortest
runway so far, those whose fires have run since, those whose timers come next, and then one after the other all that pay
for a live timer. What was seen of a payer is kept until it is looked at again. Decision: D-98.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain as chained
from itertools import islice
from threading import Lock
from typing import Final

from msgspec.structs import replace

from trailboss.chain.view import ChainView
from trailboss.forecast.watchtower import (
    PAID_TIMERS_MAX,
    PAYERS_SHOWN,
    Watch,
    WatchedPayer,
    count_failures,
    look_at,
    watch_of,
)
from trailboss.index import Index
from trailboss.model.blocks import Origin
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.node.block_builder import Published
from trailboss.views.recent_blocks import BLOCKS, recent_blocks
from trailboss.views.records import block_events

TIMERS_MAX: Final = 2_000  # timers of payers that are looked at at once, after which a look is over; 30 µs each
PAYERS_MAX: Final = 100
"""Likewise, payers whose turn it is, whose fires have run, or whose timers come next: so many of each."""
REMEMBERED_MAX: Final = 1_000
"""Payers that wait to be looked at because something happened to them; the oldest are left to their turn."""
KNOWN_MAX: Final = 10_000  # payers that are kept, those with the shortest runway


class Watchtower:
    """Looks at the payers of a node. Any thread may call it; looks take turns, and none keeps the chain waiting."""

    def __init__(self, index: Index) -> None:
        """Begin with nothing seen; the index knows which timers a payer pays for."""
        self._index = index
        self._known: dict[bytes, WatchedPayer] = {}
        self._turn: deque[bytes] = deque()
        self._cursor = 0
        self._seen: tuple[bytes, Watch] | None = None
        self._looking = Lock()
        self._touched: dict[bytes, None] = {}
        self._has_gone_back = False
        self._noting = Lock()

    def record(self, published: Published) -> None:
        """Take note of a step of the chain; waits for no look. Complexity: O(receipts + events)."""
        touched: dict[bytes, None] = {}
        for block in published.blocks:
            touched |= dict.fromkeys(each.payer for each in block.receipts if each.origin is Origin.TIMER)
            touched |= dict.fromkeys(each.emitter for each in block_events(block) if each.name == TIMER_SCHEDULED)
        with self._noting:
            self._touched = dict(islice((touched | self._touched).items(), REMEMBERED_MAX))
            self._has_gone_back |= published.reorg_from is not None

    def look(self, view: ChainView, limit: int = PAYERS_SHOWN) -> Watch:
        """Look at some payers, and return what is known of all; the same answer while the head is the same.

        Complexity: O(recent fires + ``TIMERS_MAX``), whatever the chain holds.

        Raises:
            ViewGoneError: If the chain has gone back behind the view.
        """
        with self._looking:
            if self._seen is None or self._seen[0] != view.head.hash:
                self._seen = view.head.hash, self._look(view)
            watch = self._seen[1]
        return replace(watch, payers=watch.payers[:limit])

    def _look(self, view: ChainView) -> Watch:
        recent = recent_blocks(view, BLOCKS)
        failures = count_failures(each.block for each in recent)
        with self._noting:
            if self._has_gone_back:
                # Whatever was seen may be of blocks that are gone.
                self._known, self._has_gone_back = {}, False
        timers, looked = 0, set()
        for payer in self._chosen(view):
            if payer not in looked:
                looked.add(payer)
                ids = self._index.next_paid(payer, PAID_TIMERS_MAX + 1)
                timers += 1 + len(ids)
                self._known.pop(payer, None)
                found = look_at(view, payer, ids, recent, failures)
                if found.timers:
                    self._known[payer] = found
            # Only now: a payer that has been chosen has lost its turn.
            if timers >= TIMERS_MAX:
                break
        if len(self._known) > KNOWN_MAX:
            nearest = sorted(self._known.values(), key=lambda each: each.nearness)[:KNOWN_MAX]
            self._known = {each.payer: each for each in nearest}
        failed = (look_at(view, actor, (), recent, failures) for actor in failures if actor not in self._known)
        known = (each.with_failures(failures.get(each.payer, {})) for each in self._known.values())
        return watch_of(view, chained(known, islice(failed, PAYERS_SHOWN)), recent, KNOWN_MAX)

    def _chosen(self, view: ChainView) -> Iterator[bytes]:
        """Yield payers to look at, some of them twice: one of each kind in turn, so that no kind excludes another."""
        nearest = {each.payer for each in sorted(self._known.values(), key=lambda each: each.nearness)[:PAYERS_SHOWN]}
        # The payer that was checked last stands last.
        near = iter([payer for payer in self._known if payer in nearest])
        coming = (timer.fee_payer for timer in islice(view.timers(), PAYERS_MAX))
        touched, turn = islice(self._take_touched(), PAYERS_MAX), islice(self._in_turn(), PAYERS_MAX)
        sources: deque[Iterator[bytes]] = deque((touched, coming, near, turn))
        while sources:
            source = sources.popleft()
            for payer in islice(source, 1):
                sources.append(source)
                yield payer

    def _take_touched(self) -> Iterator[bytes]:
        while True:
            with self._noting:
                if not self._touched:
                    return
                payer = next(iter(self._touched))
                del self._touched[payer]
            yield payer

    def _in_turn(self) -> Iterator[bytes]:
        """Yield all payers of live timers, from where the last look has stopped, once around."""
        is_around = False
        while True:
            while self._turn:
                yield self._turn.popleft()
            if is_around:
                return
            payers, self._cursor = self._index.live_payers(self._cursor, PAYERS_MAX)
            self._turn.extend(payers)
            is_around = not self._cursor
