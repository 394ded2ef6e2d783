"""Values as the engine's JSON writes them: digits for 64-bit numbers, hexadecimal, Base64, times in nanoseconds.

Each has ``parse`` for its text and ``text`` for the way back.
"""

import re
from base64 import b64decode, b64encode
from datetime import date
from typing import Final, Self

from trailboss.light import protobuf
from trailboss.primitives.units import U64_MAX

_DIGITS_MAX: Final = 20
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z", re.ASCII)
_NANO_DIGITS: Final = 9
_NANOSECONDS: Final = 10**_NANO_DIGITS
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_HOURS, _MINUTES, _SECONDS = 24, 60, 60
_DAY_SECONDS: Final = _HOURS * _MINUTES * _SECONDS


class Number(int):
    """An unsigned number of 64 bits, in decimal digits."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read digits; `ValueError` for anything else, or a wider number."""
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX) or int(text) > U64_MAX:
            raise ValueError(f"{text!r:.80} is not an unsigned number of 64 bits")
        return cls(text)

    def text(self) -> str:
        """Return the digits."""
        return str(int(self))


class Octets(bytes):
    """Bytes in uppercase hexadecimal digits."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the digits; `ValueError` for anything else."""
        return cls(bytes.fromhex(text))

    def text(self) -> str:
        """Return the digits."""
        return self.hex().upper()


class Signature(bytes):
    """A signature in Base64."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read Base64; `ValueError` for anything else."""
        return cls(b64decode(text, validate=True))

    def text(self) -> str:
        """Return the Base64."""
        return b64encode(self).decode()


class Time(int):
    """A time in UTC: nanoseconds since 1970."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read RFC 3339 with Z; `ValueError` for anything else, or a time that does not exist."""
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r:.80} is not a time as 2026-01-31T12:00:00.5Z")
        day, *clock, fraction = match.groups()
        hours, minutes, seconds = map(int, clock)
        if hours >= _HOURS or minutes >= _MINUTES or seconds >= _SECONDS:
            raise ValueError(f"{text!r:.80} is not a time of a day")
        days = date.fromisoformat(day).toordinal() - _EPOCH_DAY
        whole = days * _DAY_SECONDS + (hours * _MINUTES + minutes) * _SECONDS + seconds
        return cls(whole * _NANOSECONDS + int((fraction or "").ljust(_NANO_DIGITS, "0")))

    def text(self) -> str:
        """Return it in RFC 3339, the fraction without zeros at its end."""
        seconds, fraction = divmod(self, _NANOSECONDS)
        days, rest = divmod(seconds, _DAY_SECONDS)
        minutes, second = divmod(rest, _SECONDS)
        hour, minute = divmod(minutes, _MINUTES)
        decimals = f".{fraction:0{_NANO_DIGITS}}".rstrip("0").rstrip(".")
        return f"{date.fromordinal(days + _EPOCH_DAY)}T{hour:02}:{minute:02}:{second:02}{decimals}Z"

    def message(self) -> bytes:
        """Return it as the engine hashes and signs it."""
        seconds, fraction = divmod(self, _NANOSECONDS)
        return protobuf.number_field(1, seconds) + protobuf.number_field(2, fraction)


NO_TIME: Final = Time.parse("0001-01-01T00:00:00Z")
"""The time of a vote that was not seen."""
