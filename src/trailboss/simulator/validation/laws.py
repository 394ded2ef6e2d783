"""The seam: what a law says in numbers, and what the simulator makes of it."""

from math import inf, isclose
from typing import Final

from msgspec import Struct

DECIMALS: Final = 9  # beyond which a number shows rounding alone


class Reproduction(Struct, frozen=True):
    """One number of a law, beside what the simulator gives."""

    name: str
    least: float  # that the law allows; -inf if it bounds above only
    most: float  # that the law allows; inf if it bounds below only
    found: float
    tolerance: float = 0.0  # within which a found number keeps to them: rounding, or half a confidence interval

    @property
    def holds(self) -> bool:
        """Whether the simulator reproduces it."""
        return self.least - self.tolerance <= self.found <= self.most + self.tolerance


class Law(Struct, frozen=True):
    """One known result. Texts are Markdown."""

    name: str
    source: str  # where it is published
    known: str  # what it says, with its derivation where that is short
    readings: tuple[Reproduction, ...]


def equal(name: str, expected: float, found: float, tolerance: float = 0.0) -> Reproduction:
    """Return the reading of a law that states a number."""
    return Reproduction(name, expected, expected, found, tolerance)


def shown(number: float) -> str:
    """Return a number as the page shows it: integers in full, others with four significant digits.

    >>> shown(1_125_000_000.0), shown(-0.69314), shown(12.04), shown(0.00061)
    ('1,125,000,000', '-0.6931', '12.04', '0.00061')
    """
    number = round(number, DECIMALS)
    return f"{int(number):,}" if number == int(number) else f"{number:.4g}"


def allowed(reading: Reproduction) -> str:
    """Return what a law allows, in words.

    >>> allowed(equal("", 17, 16.99, 0.05)), allowed(Reproduction("", 1.0, 1.0627, 1.02))
    ('17 ± 0.05', '1 to 1.063')
    >>> allowed(Reproduction("", 0, inf, 1))
    'at least 0'
    """
    if reading.most == inf:
        return f"at least {shown(reading.least)}"
    if reading.least == -inf:
        return f"at most {shown(reading.most)}"
    is_one = isclose(reading.least, reading.most)
    text = shown(reading.least) if is_one else f"{shown(reading.least)} to {shown(reading.most)}"
    return f"{text} ± {shown(reading.tolerance)}" if reading.tolerance else text
