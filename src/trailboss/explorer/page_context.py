"""What a page is made from: one consistent look at the node, which takes the chain's view once."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from trailboss.chain.view import ChainView
from trailboss.explorer.address_labels import Names
from trailboss.explorer.documents import Document
from trailboss.explorer.links import Query
from trailboss.forecast.runway import Runway, runway_of
from trailboss.primitives.octets import Address
from trailboss.views.mechanism.base import MechanismViews
from trailboss.views.mechanism.registry import views_for
from trailboss.views.recent_blocks import BLOCKS, RecentBlock, recent_blocks
from trailboss.views.timer_list import TimerFilter

if TYPE_CHECKING:
    from trailboss.node.service import Node

PAID_TIMERS_MAX: Final = 500
"""Timers of a payer, the lowest heights first, from which the explorer computes how long its balance lasts."""


class Reading(Struct, frozen=True, dict=True):
    """The node, its chain after one block, of which a page shows everything, and the names of addresses there."""

    node: "Node"
    view: ChainView
    names: Names

    @property
    def height(self) -> int:
        """Height of the last block."""
        return self.view.height

    @property
    def mechanism(self) -> MechanismViews:
        """What people see under the mechanism of the next block."""
        return views_for(self.view)

    def runway(self, payer: bytes) -> Runway:
        """Return how long a payer's balance lasts, by its next timers. Complexity: O(``PAID_TIMERS_MAX``)."""
        wanted = TimerFilter(payer=Address(payer))
        # One more, so that it is known whether there are more.
        page = self.node.index.live_timers(wanted, self.height, 0, PAID_TIMERS_MAX + 1)
        return runway_of(self.view, payer, most=PAID_TIMERS_MAX, timers=page.items, recent=self.recent)

    @cached_property
    def recent(self) -> list[RecentBlock]:
        """The blocks by which runways are computed, read once for all of them."""
        return recent_blocks(self.view, BLOCKS)


class Redirect(Struct, frozen=True):
    """The path of another page, which is the right one."""

    href: str


Builder = Callable[[Reading, Query, str], Document | Redirect]
"""Makes a page from a look at the node, the query, and the subject that the path names, if it names one."""


class Page(Struct, frozen=True):
    """A kind of page."""

    path: str  # its path; ``{subject}`` stands for what it is about
    build: Builder  # makes it, in a thread
    section: str  # path of the main page that it belongs to
    is_live: bool = True  # whether it changes as blocks come
    title: str = ""  # its name in the navigation; empty if it is not there
    is_of_network: bool = False  # whether only nodes of a network have it in the navigation
