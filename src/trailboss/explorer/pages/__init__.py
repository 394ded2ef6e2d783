"""The explorer's pages: each a function from one look at the node to a document. They know nothing of HTML."""

from typing import Final

from trailboss.explorer import links
from trailboss.explorer.page_context import Page
from trailboss.explorer.pages.accounts import account, accounts, actor, payers
from trailboss.explorer.pages.blocks import block, blocks, events, mempool, transaction
from trailboss.explorer.pages.calendar import calendar
from trailboss.explorer.pages.fees import fees
from trailboss.explorer.pages.mechanism import mechanism
from trailboss.explorer.pages.overview import overview
from trailboss.explorer.pages.search import nowhere, search
from trailboss.explorer.pages.timers import timer, timers
from trailboss.explorer.pages.traces import trace
from trailboss.explorer.pages.validators import validators

SUBJECT: Final = "{subject}"
PAGES: Final = (
    Page(links.OVERVIEW, overview, links.OVERVIEW, title="Overview"),
    Page(links.BLOCKS, blocks, links.BLOCKS, title="Blocks"),
    Page(links.TIMERS, timers, links.TIMERS, title="Timers"),
    Page(links.CALENDAR, calendar, links.CALENDAR, title="Calendar"),
    Page(links.ACCOUNTS, accounts, links.ACCOUNTS, title="Accounts"),
    Page(links.PAYERS, payers, links.PAYERS, title="Payers"),
    Page(links.FEES, fees, links.FEES, title="Fees"),
    Page(links.MECHANISM, mechanism, links.MECHANISM),
    Page(links.VALIDATORS, validators, links.VALIDATORS, title="Validators", is_of_network=True),
    Page(links.EVENTS, events, links.OVERVIEW),
    Page(links.MEMPOOL, mempool, links.OVERVIEW),
    Page(links.SEARCH, search, "", is_live=False),
    Page(f"{links.ROOT}/block/{SUBJECT}", block, links.BLOCKS),
    Page(f"{links.ROOT}/transaction/{SUBJECT}", transaction, links.BLOCKS),
    Page(f"{links.ROOT}/timer/{SUBJECT}", timer, links.TIMERS),
    Page(f"{links.ROOT}/trace/{SUBJECT}", trace, links.BLOCKS, is_live=False),
    Page(f"{links.ROOT}/actor/{SUBJECT}", actor, links.ACCOUNTS),
    Page(f"{links.ROOT}/account/{SUBJECT}", account, links.ACCOUNTS),
)
NOWHERE: Final = Page(links.ROOT, nowhere, "", is_live=False)
"""For every path of the explorer's that is none of its pages."""
