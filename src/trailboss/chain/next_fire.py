"""Building empty blocks up to the next fire, on a chain in this process or at a node."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from trailboss.model.blocks import Block, Origin
from trailboss.model.timers import Timer

WITHIN: Final = 100_000  # blocks in which what is awaited has to happen, by default


class QueueReader(Protocol):
    """What has a height and timers."""

    @property
    def height(self) -> int:
        """Height of the last block."""

    def timers(self, first: int = 0) -> Iterator[Timer]:
        """Yield the live timers, by height."""


def advance_to_fire(
    chain: QueueReader, advance: Callable[[int], Iterator[Block]], last: int, actor: bytes | None = None
) -> Iterator[Block]:
    """Build blocks up to the first in which a timer fires, of an actor if one is given; yield each, in order.

    ``advance`` builds blocks up to a height, and yields each.
    It ends with block ``last`` at the latest, and earlier if no timer is left that could fire.
    """
    while chain.height < last:
        nearest = next(chain.timers(), None)
        if nearest is None:
            return
        for block in advance(min(max(nearest.height, chain.height + 1), last)):
            yield block
            if has_fire(block, actor):
                return


def has_fire(block: Block, actor: bytes | None = None) -> bool:
    """Return whether a timer fires in a block, of an actor if one is given."""
    return any(each.origin is Origin.TIMER and actor in (None, each.actor) for each in block.receipts)
