"""The explorer's paths. Nothing in them comes from anywhere but heights, ids and encoded queries."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from trailboss.primitives.octets import Address

OVERVIEW: Final = "/"
ROOT: Final = "/explorer"
BLOCKS: Final = f"{ROOT}/blocks"
TIMERS: Final = f"{ROOT}/timers"
CALENDAR: Final = f"{ROOT}/calendar"
PAYERS: Final = f"{ROOT}/payers"
FEES: Final = f"{ROOT}/fees"
LANE: Final = f"{ROOT}/lane"
EVENTS: Final = f"{ROOT}/events"
ACCOUNTS: Final = f"{ROOT}/accounts"
MEMPOOL: Final = f"{ROOT}/mempool"
SEARCH: Final = f"{ROOT}/search"
STREAM: Final = f"{ROOT}/stream"
ASSETS: Final = f"{ROOT}/assets"
FAVICON: Final = "/favicon.ico"
LANE_NAMES: Final = {"fifo": "Lane", "lane": "Lane", "auction": "Auction", "globalbox": "Globalbox"}
"""What the mechanism's own page is called."""


def block(which: int | bytes) -> str:
    """Return the path of a block's page, by height or by hash."""
    return f"{ROOT}/block/{which if isinstance(which, int) else f'0x{which.hex()}'}"


def transaction(tx_hash: bytes) -> str:
    """Return the path of a transaction's page."""
    return f"{ROOT}/transaction/0x{tx_hash.hex()}"


def timer(timer_id: bytes) -> str:
    """Return the path of a timer's page."""
    return f"{ROOT}/timer/0x{timer_id.hex()}"


def account(address: bytes) -> str:
    """Return the path of an account's page; that of an actor leads on to the actor's."""
    return f"{ROOT}/account/{Address(address)}"


def actor(address: bytes) -> str:
    """Return the path of an actor's page."""
    return f"{ROOT}/actor/{Address(address)}"


def search(text: str) -> str:
    """Return the path of what a search finds."""
    return f"{SEARCH}?{urlencode({'q': text})}"


def query(path: str, parameters: Mapping[str, object]) -> str:
    """Return a path with the parameters that say something.

    >>> query("/explorer/timers", {"state": "live", "page": 2, "actor": ""})
    '/explorer/timers?state=live&page=2'
    """
    told = {name: str(value) for name, value in parameters.items() if value not in ("", None)}
    return f"{path}?{urlencode(told)}" if told else path
