"""What an address asks for besides the page: filters and pages of lists, as text that is checked when it is read."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from trailboss.explorer.links import query as query_path
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX

PAGE_ROWS: Final = 50
TEXT_MAX: Final = 200
"""Characters of a parameter that are looked at."""
PARAMETERS_MAX: Final = 16
NUMBER_DIGITS: Final = 20


class Query(Struct, frozen=True):
    """The parameters of a page's address.

    Attributes:
        path: Of the page.
        parameters: By name, in order.
        complaints: What was wrong with those that were read so far, each in a sentence.
    """

    path: str
    parameters: Mapping[str, str]
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: str, parameters: Mapping[str, str]) -> "Query":
        """Return a query of the parameters that say something, cut to what anybody types."""
        told = [(name[:TEXT_MAX], value.strip()[:TEXT_MAX]) for name, value in parameters.items() if value.strip()]
        return cls(path, dict(told[:PARAMETERS_MAX]))

    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return what tells this query from others."""
        return self.path, tuple(self.parameters.items())

    def text(self, name: str) -> str:
        """Return a parameter; empty if it is not there."""
        return self.parameters.get(name, "")

    def choice(self, name: str, options: Mapping[str, str] | tuple[str, ...], default: str) -> str:
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
        """Return a parameter that is an address; None if it is not there, or none."""
        found = self.text(name)
        if not found:
            return None
        try:
            return Address.parse(found)
        except Rejection as rejection:
            self.complaints.append(f"{name}: {rejection.what}")
            return None

    def page(self, name: str = "page") -> int:
        """Return which page of a list is asked for, from 1."""
        return max(1, self.number(name, 1))

    def but(self, **changes: object) -> str:
        """Return the address of this page with other parameters."""
        return query_path(self.path, {**self.parameters, **changes})


def parse_id(text: str, widths: tuple[int, ...]) -> bytes:
    """Return the bytes of an id from the path of a page.

    Args:
        text: Hexadecimal digits, with or without ``0x``.
        widths: How many bytes it may have.

    Raises:
        Rejection: ``INVALID_DATA`` if it is no such id.
    """
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if len(found) not in widths or 2 * len(found) != len(digits):
        shown = " or ".join(str(2 * width) for width in widths)
        raise Rejection(RejectionReason.INVALID_DATA, f"an id here has {shown} hexadecimal digits, not {text[:80]!r}")
    return found
