"""Traces of a node's past blocks: built again from a view, one at a time, on the thread of the one who asks.

Decision: D-108
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Event, Lock
from time import monotonic, sleep
from typing import Final

from trailboss.chain.trace import TRACE_A_COPY, TraceBounds
from trailboss.chain.view import ChainView
from trailboss.index import Index
from trailboss.model.blocks import Block
from trailboss.node.block_builder import StoppingError
from trailboss.node.chain_thread import STOPPING
from trailboss.primitives.errors import Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Hash32
from trailboss.views.trace.executions import find_execution, one_of, trace_height
from trailboss.views.trace.records import BlockTraces

BOUNDS: Final = TraceBounds(blocks=10_000, calls=5_000, value=1_024)
SECONDS_MAX: Final = 30  # time that building the blocks again may take
KEPT: Final = 8  # traced blocks that are kept: those who look at one page ask again with each block
PAUSE_SECONDS: Final = 0.0002  # after each block, so that a block of the chain's own comes in between


class TraceBusyError(TrailbossError):
    """Another trace is being made."""


class TraceRoom:
    """Makes traces. Any thread may ask."""

    def __init__(self, index: Index, now: Callable[[], float] = monotonic) -> None:
        self._index = index
        self._now = now
        self._one = Lock()
        self._kept: OrderedDict[Hash32, BlockTraces] = OrderedDict()
        self._stops = Event()

    def stop(self) -> None:
        """End the trace that is being made, and make no other."""
        self._stops.set()

    def trace(self, view: ChainView, subject: int | Hash32) -> BlockTraces:
        """Return what a block of a height, a transaction or a timer's latest fire did.

        Raises:
            Rejection: ``NOT_FOUND`` for what is not there, has not fired, or came before the first block that the node
                has; ``INVALID_DATA`` for a height outside of the chain, and beyond the bounds.
            TraceBusyError: While another trace is being made.
            StoppingError: If the node stops.
            ViewGoneError: If the chain has gone back behind the view.
        """
        if isinstance(subject, int):
            return self._block(view, subject)
        found = self._index.transaction(subject, view.height)
        heights = self._index.timer_heights(subject, view.height)[::-1] if found is None else (found.height,)
        place = find_execution(view, subject, heights)
        return one_of(self._block(view, place.height), place)

    def _block(self, view: ChainView, height: int) -> BlockTraces:
        mark = view.blocks[height].hash if view.blocks.base <= height <= view.height else None
        kept = None if mark is None else self._kept.get(mark)
        if kept is not None:
            return kept
        if not self._one.acquire(blocking=False):
            raise TraceBusyError("another trace is being made; a node makes one at a time")
        try:
            end = self._now() + SECONDS_MAX
            made = trace_height(view, height, lambda block: self._go_on(block, end), BOUNDS)
            if mark is not None:
                self._kept[mark] = made
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return made
        finally:
            self._one.release()

    def _go_on(self, block: Block, end: float) -> None:
        if self._stops.is_set():
            raise StoppingError(STOPPING)
        if self._now() > end:
            what = f"the trace has reached block {block.height} after {SECONDS_MAX} s, which are the limit"
            raise Rejection(RejectionReason.INVALID_DATA, what, TRACE_A_COPY, height=block.height, limit=SECONDS_MAX)
        if block.receipts:
            sleep(PAUSE_SECONDS)
