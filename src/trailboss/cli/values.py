"""Readers of what people type: amounts, payloads, keys, parameters. Each raises `Mistake` for what it cannot read."""

import json
import re
from pathlib import Path
from typing import Final

from trailboss.cli.errors import Mistake
from trailboss.codec.canonical import encode_canonical
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, CBY_DECIMALS

_BASE_UNITS: Final = re.compile(r"\d[\d_]*", re.ASCII)
_CBY: Final = re.compile(r"(?P<whole>\d[\d_]*)(?:\.(?P<part>\d+))? ?cby", re.ASCII | re.IGNORECASE)
_DECIMAL: Final = re.compile(r"(?P<whole>\d+)\.(?P<part>\d+)", re.ASCII)
_INTEGER: Final = re.compile(r"-?\d[\d_]*", re.ASCII)
SHOWN_MAX: Final = 60  # characters of a wrong value that a message repeats


def parse_amount(text: str) -> int:
    """Return an amount in base units: digits alone are base units, with ``cby`` behind them CBY.

    >>> parse_amount("1_000"), parse_amount("1.5cby")
    (1000, 1500000000)
    """
    if _BASE_UNITS.fullmatch(text):
        return int(text)
    match = _CBY.fullmatch(text)
    if match is None:
        raise Mistake(
            f"{_shown(text)} is not an amount",
            "write base units as a whole number, as 1500000000, or CBY with the unit, as 1.5cby",
        )
    part = match["part"] or ""
    if len(part) > CBY_DECIMALS:
        raise Mistake(
            f"{_shown(text)} has {len(part)} decimals",
            f"one base unit is the least: at most {CBY_DECIMALS} decimals of CBY",
        )
    return int(match["whole"]) * BASE_UNITS_PER_CBY + int(part.ljust(CBY_DECIMALS, "0"))


def parse_number(name: str, text: str, unit: int = 1) -> int:
    """Return a number of parts: digits alone are parts, a decimal is a multiple of ``unit`` parts.

    >>> parse_number("weight", "1_000"), parse_number("weight", "1.5", 10_000)
    (1000, 15000)
    """
    # Python reads no integer of thousands of digits, and no parameter has one.
    is_short = len(text) <= SHOWN_MAX
    if is_short and _BASE_UNITS.fullmatch(text):
        return int(text)
    match = _DECIMAL.fullmatch(text) if is_short and unit > 1 else None
    if match is None:
        kinds = "a whole number, as 250_000" if unit == 1 else "a whole number of parts, as 15_000, or a decimal as 1.5"
        raise Mistake(f"{name} {_shown(text)} is not a number", f"write {kinds}")
    scale: int = 10 ** len(match["part"])
    parts, rest = divmod(int(match["whole"] + match["part"]) * unit, scale)
    if rest:
        raise Mistake(f"{name} {_shown(text)} is too fine", f"it is kept in parts of 1/{unit:,}")
    return parts


def parse_bid(text: str) -> int:
    """Return a bid of Globalbox, Q32.96, from base units per cycle: a whole number, or a decimal.

    >>> parse_bid("2.5") == 5 << 95
    True
    """
    from trailboss.sdk import bid  # noqa: PLC0415  # what actors import

    number = text.removeprefix("-")
    if len(text) > SHOWN_MAX or not (_DECIMAL.fullmatch(number) or _BASE_UNITS.fullmatch(number)):
        raise Mistake(f"bid {_shown(text)} is not a number", "write base units per cycle, as 250 or 0.5")
    whole, _, part = number.partition(".")
    sign = 1 if number == text else -1
    try:
        return bid(sign * int(whole), sign * int(part or 0), 10 ** len(part))
    except ValueError:
        raise Mistake(f"bid {text} is out of range", "bid from 0 to below 2**32 base units per cycle") from None


def parse_payload(text: str, *, as_cbor: bool = False) -> bytes:
    """Return a payload: ``0x…`` is hexadecimal, ``@FILE`` the contents of a file, anything else text in UTF-8.

    With ``as_cbor`` those bytes are JSON, which becomes canonical CBOR.
    """
    if text.startswith("@"):
        octets = read_file(Path(text[1:]), "payload")
    elif text.startswith(("0x", "0X")):
        try:
            octets = bytes.fromhex(text[2:])
        except ValueError:
            raise Mistake(
                f"payload {_shown(text)} is not hexadecimal", "write 0x and an even number of the digits 0-9 and a-f"
            ) from None
    else:
        # Bytes that are no UTF-8 arrive as lone surrogates.
        octets = text.encode(errors="surrogateescape")
    if not as_cbor:
        return octets
    try:
        return encode_canonical(json.loads(octets))
    except (ValueError, RecursionError, Rejection) as error:
        reason = error.what if isinstance(error, Rejection) else str(error)
        raise Mistake(
            f"the payload is no JSON that CBOR can carry: {reason}", "quote it for the shell, as '{\"blocks\": 5}'"
        ) from None


def parse_private_key(text: str) -> bytes:
    """Return a private key of 32 bytes; the message never repeats what was typed."""
    try:
        return bytes(Hash32.parse(text.strip()))
    except Rejection:
        raise Mistake("the private key is not 64 hexadecimal digits", "give it as 0x and 64 digits") from None


def parse_hash(name: str, text: str) -> Hash32:
    """Return a root or a hash."""
    try:
        return Hash32.parse(text)
    except Rejection:
        raise Mistake(f"{name} {_shown(text)} is not a hash", "give it as 0x and 64 hexadecimal digits") from None


def parse_overrides(items: list[str]) -> dict[str, int]:
    """Return parameters by dotted path, each given as ``path=value``."""
    overrides: dict[str, int] = {}
    for item in items:
        path, _, value = item.partition("=")
        if not path or not _INTEGER.fullmatch(value):
            raise Mistake(
                f"--param {_shown(item)} is not path=integer", "as --param timers.max_timers_per_actor=10_000"
            )
        if path in overrides:
            raise Mistake(f"--param names {path} twice", "give each parameter once")
        overrides[path] = int(value)
    return overrides


def read_file(path: Path, name: str) -> bytes:
    """Return what a file holds."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Mistake(f"cannot read the {name} {path}: {error.strerror}", "check the path") from None


def read_text(path: Path, name: str) -> str:
    """Return the text that a file in UTF-8 holds."""
    try:
        return read_file(path, name).decode()
    except UnicodeDecodeError as error:
        raise Mistake(f"the {name} {path} is not UTF-8 at byte {error.start}", "name a text file") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…")
