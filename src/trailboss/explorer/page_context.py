"""One consistent look at the node: a page takes the chain's view once and tells everything from it."""

from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from trailboss.chain.view import ChainView
from trailboss.explorer.address_labels import Names
from trailboss.explorer.shell import Pulse
from trailboss.explorer.text import time_words
from trailboss.node.options import Rhythm
from trailboss.primitives.octets import Address
from trailboss.views.forecast.recent import BLOCKS, RecentBlock, recent_blocks
from trailboss.views.forecast.runway import Runway, runway_of
from trailboss.views.timer_list import TimerFilter

if TYPE_CHECKING:
    from trailboss.node.service import Node

PAID_TIMERS_MAX: Final = 500
"""Timers of a payer, the lowest heights first, by which the explorer tells how long its purse lasts."""


class Reading(Struct, frozen=True, dict=True):
    """The chain after one block, and the node's index and mempool beside it.

    Attributes:
        node: The node.
        view: The chain; everything that a page tells is of its height.
        names: What some addresses are called.
    """

    node: "Node"
    view: ChainView
    names: Names

    @property
    def height(self) -> int:
        """Height of the last block."""
        return self.view.height

    def pulse(self) -> Pulse:
        """Return what header and footer say."""
        view, pace = self.view, self.node.pace
        rhythm = {
            Rhythm.AUTO: f"a block for each transaction, and every {pace.block_time_ms:,} ms while a timer is pending",
            Rhythm.MANUAL: "blocks when they are asked for",
            Rhythm.INTERVAL: f"a block every {pace.block_time_ms:,} ms",
        }[pace.rhythm]
        genesis = view.genesis
        return Pulse(
            height=str(view.height),
            time=time_words(view.head.header.timestamp_ms),
            mechanism=view.mechanism.name,
            state_root=str(view.state_root),
            chain=f"Chain id {genesis.chain_id}, preset {genesis.preset}, {rhythm}",
        )

    def runway(self, payer: bytes) -> Runway:
        """Return how long a payer's purse lasts, by its next timers.

        Complexity: O(live timers of the payer) to find them, however many there are of others, and a reading of each of
        the first ``PAID_TIMERS_MAX``.
        """
        wanted = TimerFilter(payer=Address(payer))
        # One more, so that it is known whether there are more.
        page = self.node.index.live_timers(wanted, self.height, 0, PAID_TIMERS_MAX + 1)
        return runway_of(self.view, payer, most=PAID_TIMERS_MAX, timers=page.items, recent=self.recent)

    @cached_property
    def recent(self) -> list[RecentBlock]:
        """The blocks by which runways are told, read once for all of them."""
        return recent_blocks(self.view, BLOCKS)
