"""Paths of the explorer, and what their queries ask for. Nothing but heights, ids and encoded text is in a path."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct, field

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX

OVERVIEW: Final = "/"
ROOT: Final = "/explorer"
BLOCKS: Final = f"{ROOT}/blocks"
TIMERS: Final = f"{ROOT}/timers"
CALENDAR: Final = f"{ROOT}/calendar"
PAYERS: Final = f"{ROOT}/payers"
FEES: Final = f"{ROOT}/fees"
MECHANISM: Final = f"{ROOT}/lane"
EVENTS: Final = f"{ROOT}/events"
ACCOUNTS: Final = f"{ROOT}/accounts"
MEMPOOL: Final = f"{ROOT}/mempool"
VALIDATORS: Final = f"{ROOT}/validators"
SEARCH: Final = f"{ROOT}/search"
STREAM: Final = f"{ROOT}/stream"
ASSETS: Final = f"{ROOT}/assets"
FAVICON: Final = "/favicon.ico"
PAGE_ROWS: Final = 50
TEXT_MAX: Final = 200  # characters of a parameter that are read
PARAMETERS_MAX: Final = 16
NUMBER_DIGITS: Final = 20


def block(which: int | bytes) -> str:
    """Return the path of a block's page, by height or by hash."""
    return f"{ROOT}/block/{which if isinstance(which, int) else f'0x{which.hex()}'}"


def transaction(tx_hash: bytes) -> str:
    """Return the path of a transaction's page."""
    return f"{ROOT}/transaction/0x{tx_hash.hex()}"


def timer(timer_id: bytes) -> str:
    """Return the path of a timer's page."""
    return f"{ROOT}/timer/0x{timer_id.hex()}"


def trace(subject: int | bytes) -> str:
    """Return the path of the call tree of a block, a transaction or a timer's latest fire."""
    return f"{ROOT}/trace/{subject if isinstance(subject, int) else f'0x{subject.hex()}'}"


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
    """Return a path with those parameters that are not empty.

    >>> query("/explorer/timers", {"state": "live", "page": 2, "actor": ""})
    '/explorer/timers?state=live&page=2'
    """
    given = {name: str(value) for name, value in parameters.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path


class Query(Struct, frozen=True):
    """The parameters of a page's address, checked when they are read."""

    path: str  # path of the page
    parameters: Mapping[str, str]  # by name, in order
    complaints: list[str] = field(default_factory=list)  # what is wrong with those read so far, each in a sentence

    @classmethod
    def of(cls, path: str, parameters: Mapping[str, str]) -> "Query":
        """Return a query of the parameters that are not empty, cut to what people type."""
        given = [(name[:TEXT_MAX], value.strip()[:TEXT_MAX]) for name, value in parameters.items() if value.strip()]
        return cls(path, dict(given[:PARAMETERS_MAX]))

    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return what distinguishes this query from others."""
        return self.path, tuple(self.parameters.items())

    def text(self, name: str) -> str:
        """Return a parameter; empty if it is absent."""
        return self.parameters.get(name, "")

    def choice(self, name: str, options: Mapping[str, str], default: str) -> str:
        """Return a parameter that is one of some options, else the default."""
        found = self.text(name)
        if found and found not in options:
            self.complaints.append(f"there is no {name} {found!r}; {default} is shown")
        return found if found in options else default

    def number(self, name: str, default: int, maximum: int = U64_MAX) -> int:
        """Return a parameter that is a whole number, else the default."""
        found = self.text(name).replace(",", "").replace("_", "")
        if not found:
            return default
        if not (found.isascii() and found.isdecimal()) or len(found) > NUMBER_DIGITS or int(found) > maximum:
            self.complaints.append(f"{name} is a whole number up to {maximum:,}, not {self.text(name)!r}")
            return default
        return int(found)

    def address(self, name: str) -> Address | None:
        """Return a parameter that is an address, else None."""
        try:
            return Address.parse(self.text(name)) if self.text(name) else None
        except Rejection as rejection:
            self.complaints.append(f"{name}: {rejection.what}")
            return None

    def page(self, name: str = "page") -> int:
        """Return which page of a list is wanted, from 1."""
        return max(1, self.number(name, 1))

    def but(self, **changes: object) -> str:
        """Return the address of this page with other parameters."""
        return query(self.path, {**self.parameters, **changes})


def parse_id(text: str, widths: tuple[int, ...]) -> bytes:
    """Return the bytes of an id in hexadecimal, with or without ``0x``; `Rejection` ``INVALID_DATA`` for others."""
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if len(found) not in widths or 2 * len(found) != len(digits):
        shown = " or ".join(str(2 * width) for width in widths)
        raise Rejection(RejectionReason.INVALID_DATA, f"an id here has {shown} hexadecimal digits, not {text[:80]!r}")
    return found
