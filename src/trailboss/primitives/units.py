"""Integer units of the protocol and their ranges, checked where a value enters.

Inside the core a unit is a plain ``int`` with a name (``NewType``): adding range-checked classes would cost twenty
times as much, and a study does millions of additions. External values pass through the functions below once.
"""

from typing import Final, NewType

from trailboss.primitives.errors import Rejection, RejectionReason

Height = NewType("Height", int)  # block height, blocks since genesis (genesis is 0). Unsigned, 64 bits.

Cycles = NewType("Cycles", int)  # units of computation. Unsigned, 64 bits.

Cells = NewType("Cells", int)  # units of data: one cell is one byte. Unsigned, 64 bits.

Amount = NewType("Amount", int)  # money in base units; 1 CBY is 10**9 of them. Unsigned, 128 bits.

Price = NewType("Price", int)  # base units per cycle or per cell. Unsigned, 128 bits.

U16_MAX: Final = 2**16 - 1
U32_MAX: Final = 2**32 - 1
U64_MAX: Final = 2**64 - 1
U128_MAX: Final = 2**128 - 1
CBY_DECIMALS: Final = 9
BASE_UNITS_PER_CBY: Final = 10**CBY_DECIMALS
SHOWN_BITS_MAX: Final = 256
"""A message shows a wider integer by its width: Python refuses to print very large ones, and they are unreadable."""


def check_range(name: str, value: object, maximum: int, minimum: int = 0) -> int:
    """Return ``value`` if it is an integer within ``minimum..=maximum``; a bool is not an integer.

    Raises:
        Rejection: ``INVALID_DATA`` naming ``name`` if it is not an integer, ``OVERFLOW`` if it is outside.
    """
    if type(value) is not int:
        raise Rejection(RejectionReason.INVALID_DATA, f"{name} must be an integer, got {value!r:.80}", field=name)
    if not minimum <= value <= maximum:
        shown = str(value) if value.bit_length() <= SHOWN_BITS_MAX else f"an integer of {value.bit_length()} bits"
        what, bounds = f"{name} is {shown}, outside {minimum}..={maximum}", (str(minimum), str(maximum))
        raise Rejection(RejectionReason.OVERFLOW, what, field=name, value=shown, minimum=bounds[0], maximum=bounds[1])
    return value


def format_cby(amount: int) -> str:
    """Return base units as CBY, exactly, without trailing zeros.

    >>> format_cby(1_234_500_000_000), format_cby(1)
    ('1,234.5', '0.000000001')
    """
    sign = "-" if amount < 0 else ""
    whole, part = divmod(abs(amount), BASE_UNITS_PER_CBY)
    decimals = f"{part:0{CBY_DECIMALS}}".rstrip("0")
    return f"{sign}{whole:,}.{decimals}" if decimals else f"{sign}{whole:,}"


def clamp(value: int, minimum: int, maximum: int) -> int:
    """Return ``value`` limited to ``minimum..=maximum``."""
    return min(max(value, minimum), maximum)
