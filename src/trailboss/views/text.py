"""Bytes, numbers and what actors say, as people read them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import groupby
from typing import Any, Final

from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32

SHORT_DIGITS: Final = 8  # digits that a shortened id has at least: what of it is shown can be typed back in
WEIGHT_DECIMALS: Final = 9  # weights, and what they are multiplied with, are in parts of 10⁻⁹. Decision: D-11.
TEXT_MAX: Final = 100  # characters of free text that is shown
WIDE: Final = 180  # columns from which on ids within a text are shown in full
RUNS_MAX: Final = 4  # runs of blocks that are named one by one; of more only the first and the last
MILLISECONDS: Final = 1_000
COMMON_TEXT: Final = frozenset(map(chr, range(0x20, 0x7F)))
_LINE_ENDS: Final = re.compile(r"\r\n|\r|\n")


def words(octets: bytes) -> str:
    """Return bytes as people read them: the text if they are printable text, else 0x and the digits."""
    text = octets.decode("ascii", errors="replace")
    return text if octets and COMMON_TEXT.issuperset(text) else f"0x{octets.hex()}"


def visible(text: str) -> str:
    """Return a text in which what a terminal would obey is written as an escape: actors choose what they say."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


def parser_lines(source: str) -> list[str]:
    r"""Return the lines of a source as Python's parser counts them, other than `str.splitlines`.

    >>> parser_lines("a = 1\r\nb = '\x0c\u2028'\n")
    ['a = 1', "b = '\x0c\u2028'", '']
    """
    return _LINE_ENDS.split(source)


def counted(count: int, word: str) -> str:
    """Return a number of things.

    >>> counted(1, "fire"), counted(2_000, "fire")
    ('1 fire', '2,000 fires')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def time_words(timestamp_ms: int) -> str:
    """Return a point in time as a date; as a number if the calendar has no such year.

    >>> time_words(0), time_words(2**63)
    ('1970-01-01 00:00:00 UTC', '9,223,372,036,854,775,808 ms since 1970')
    """
    try:
        return f"{datetime.fromtimestamp(timestamp_ms // MILLISECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms:,} ms since 1970"


def clipped(text: str, width: int = TEXT_MAX) -> str:
    """Return a text cut to a width, by default what a table has room for."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def failure_words(error: ErrorObject) -> str:
    """Return why a handler failed, and in which line if a line did: the innermost of the actor's own.

    >>> failure_words(ErrorObject(1210, "pvm_error", "ValueError: no", "", "", {"traceback": "line 6, in tick: raise"}))
    'E1210 pvm_error: ValueError: no, line 6, in tick'
    """
    lines = str(error.context.get("traceback") or "").splitlines()
    place = f", {lines[-1].partition(':')[0]}" if lines else ""
    return f"E{error.code} {error.slug}: {error.what}{place}"


def decimal_text(parts: int, least: int = 0) -> str:
    """Return a number in parts of 10⁻⁹ as an exact decimal number, with a least number of decimals.

    >>> decimal_text(1_700_000_000), decimal_text(2_000_000_000), decimal_text(2_000_000_000, 1), decimal_text(1)
    ('1.7', '2', '2.0', '0.000000001')
    """
    whole, part = divmod(parts, 10**WEIGHT_DECIMALS)
    decimals = f"{part:0{WEIGHT_DECIMALS}}".rstrip("0").ljust(least, "0")
    return f"{whole}.{decimals}" if decimals else str(whole)


def span_words(values: Iterable[int | None]) -> str:
    """Return the least and the greatest of some numbers, or the one that all are."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def heights_words(heights: Sequence[int]) -> str:
    """Return ascending heights in words.

    >>> heights_words([101, 102]), heights_words([101, 103, 104, 105])
    ('101 and 102', '101 and 103 to 105')
    """
    runs: list[str] = []
    for first, last in runs_of(heights):
        runs += [f"{first} to {last}"] if last > first + 1 else map(str, range(first, last + 1))
    if len(runs) > RUNS_MAX:
        return f"{runs[0]}, … {runs[-1]} ({len(heights):,} blocks)"
    return " and ".join(", ".join(runs).rsplit(", ", 1))


def runs_of(heights: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ascending heights as runs.

    >>> list(runs_of([3, 4, 7]))
    [(3, 4), (7, 7)]
    """
    for _, group in groupby(enumerate(heights), key=lambda pair: pair[1] - pair[0]):
        members = [height for _, height in group]
        yield members[0], members[-1]


def value_words(value: Any, width: int = WIDE) -> str:
    """Return a value of an event: ids, shortened in a narrow table, other bytes as text if they are text."""
    if isinstance(value, bytes):
        kinds: dict[int, type[Address | Hash32]] = {Address.WIDTH: Address, Hash32.WIDTH: Hash32}
        kind = kinds.get(len(value))
        if kind is None:
            return words(value)
        text = str(kind(value))
        return text if width >= WIDE else f"{text[: 2 + SHORT_DIGITS]}…"
    if isinstance(value, dict):
        return ", ".join(f"{value_words(name, width)} {value_words(item, width)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_words(item, width) for item in value)
    return str(value)


def rounded(value: Fraction) -> str:
    """Return a positive number with one decimal, or none if it is whole.

    >>> rounded(Fraction(10)), rounded(Fraction(10, 3))
    ('10', '3.3')
    """
    tenths = round(value * 10)
    return f"{tenths // 10:,}" if value.denominator == 1 else f"{tenths // 10:,}.{tenths % 10}"
