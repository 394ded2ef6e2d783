"""The frame around every page: what is painted before anything else is loaded, as plain HTML of the house alone.

The header, its search box and its navigation are links and a form: they work before, and without, any script. Nothing
that an actor or a visitor has chosen goes into this HTML unescaped.
"""

from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from msgspec import Struct

from trailboss.explorer import links

ASSETS: Final = Path(__file__).parent / "assets"
MARK: Final = (
    '<svg viewBox="0 0 18 18" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2" '
    'd="M9 1.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM9 5v4.3l3 2"/></svg>'
)
FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 18 18"><path fill="none" stroke="#b4530a" '
    'stroke-width="2.2" d="M9 1.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM9 5v4.3l3 2"/></svg>'
)
LANE_NAMES: Final = {"fifo": "Lane", "lane": "Lane", "auction": "Auction", "globalbox": "Globalbox"}
"""What the mechanism's own page is called."""


class Pulse(Struct, frozen=True, kw_only=True):
    """What the header and the footer say of the chain, in words.

    Attributes:
        height: Of the last block.
        time: Its timestamp.
        mechanism: Which mechanism chooses among due timers.
        state_root: After the last block.
        chain: Which chain this is, and how its blocks come.
    """

    height: str
    time: str
    mechanism: str
    state_root: str
    chain: str

    def texts(self) -> dict[str, str]:
        """Return the words by the names that the page's places for them have."""
        return {
            "height": self.height,
            "time": self.time,
            "mechanism": self.mechanism,
            "state-root": self.state_root,
            "chain": self.chain,
        }


@cache
def head_html() -> str:
    """Return what stands in the head of every page."""
    style, script = (ASSETS / "explorer.css").read_text("utf-8"), (ASSETS / "early.js").read_text("utf-8")
    return f'<meta name="robots" content="noindex"><style>{style}</style><script>{script}</script>'


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
        (LANE_NAMES.get(mechanism, "Lane"), links.LANE),
    )


def header_html(pulse: Pulse, here: str, searched: str = "") -> str:
    """Return the header of a page.

    Args:
        pulse: What it says of the chain.
        here: Path of the main page that this is, or belongs to.
        searched: What stands in the search box.
    """
    places = "".join(
        f'<a href="{escape(href)}"{" aria-current=page" if href == here else ""}>{escape(name)}</a>'
        for name, href in navigation(pulse.mechanism)
    )
    told = {"height": pulse.height, "time": pulse.time, "mechanism": pulse.mechanism, "searched": searched}
    words = {name: escape(value) for name, value in told.items()}
    return _header().substitute(words, mark=MARK, search=links.SEARCH, places=places)


@cache
def _header() -> Template:
    return Template((ASSETS / "header.html").read_text("utf-8"))
