"""The explorer's pages: each a function from one look at the node to a document. They know nothing of a browser."""

from typing import Final

from trailboss.explorer import links
from trailboss.explorer.page_context import Page
from trailboss.explorer.pages.account import account
from trailboss.explorer.pages.accounts import accounts
from trailboss.explorer.pages.actor import actor
from trailboss.explorer.pages.block import block
from trailboss.explorer.pages.blocks import blocks
from trailboss.explorer.pages.calendar import calendar
from trailboss.explorer.pages.events import events
from trailboss.explorer.pages.fees import fees
from trailboss.explorer.pages.lane import lane
from trailboss.explorer.pages.mempool import mempool
from trailboss.explorer.pages.nowhere import nowhere
from trailboss.explorer.pages.overview import overview
from trailboss.explorer.pages.payers import payers
from trailboss.explorer.pages.search import search
from trailboss.explorer.pages.timer import timer
from trailboss.explorer.pages.timers import timers
from trailboss.explorer.pages.transaction import transaction

SUBJECT: Final = "{subject}"
PAGES: Final = (
    Page(links.OVERVIEW, overview, links.OVERVIEW),
    Page(links.BLOCKS, blocks, links.BLOCKS),
    Page(f"{links.ROOT}/block/{SUBJECT}", block, links.BLOCKS),
    Page(f"{links.ROOT}/transaction/{SUBJECT}", transaction, links.BLOCKS),
    Page(links.TIMERS, timers, links.TIMERS),
    Page(f"{links.ROOT}/timer/{SUBJECT}", timer, links.TIMERS),
    Page(links.CALENDAR, calendar, links.CALENDAR),
    Page(f"{links.ROOT}/actor/{SUBJECT}", actor, links.ACCOUNTS),
    Page(f"{links.ROOT}/account/{SUBJECT}", account, links.ACCOUNTS),
    Page(links.ACCOUNTS, accounts, links.ACCOUNTS),
    Page(links.EVENTS, events, links.OVERVIEW),
    Page(links.PAYERS, payers, links.PAYERS),
    Page(links.FEES, fees, links.FEES),
    Page(links.LANE, lane, links.LANE),
    Page(links.MEMPOOL, mempool, links.OVERVIEW),
    Page(links.SEARCH, search, "", is_live=False),
)
NOWHERE: Final = Page(f"{links.ROOT}/{{rest:path}}", nowhere, "", is_live=False)
"""For every path below the explorer's that is none of its pages; it is asked last."""


def navigation(mechanism: str) -> tuple[tuple[str, str], ...]:
    """Return names and paths of the main pages."""
    return (
        ("Overview", links.OVERVIEW),
        ("Blocks", links.BLOCKS),
        ("Timers", links.TIMERS),
        ("Calendar", links.CALENDAR),
        ("Accounts", links.ACCOUNTS),
        ("Payers", links.PAYERS),
        ("Fees", links.FEES),
        (links.LANE_NAMES.get(mechanism, "Lane"), links.LANE),
    )
