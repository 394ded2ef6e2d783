"""Values as JSON has them: what the command line prints and the node answers. Decision: D-97."""

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from trailboss.codec.exact import with_texts
from trailboss.primitives.octets import Address

ATOMS: Final = frozenset({int, str, bool, float, type(None)})
ADDRESSES_CACHED: Final = 8_192
"""Addresses whose text is kept: a checksum takes longer than all else, and lists name the same few again and again."""


def to_json_value(value: object) -> Any:
    """Return a value as JSON has it: bytes as ``0x`` text, ids in their own text form, records as objects.

    Beside an integer that JavaScript would round stands its text; see `with_texts`.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is Address:
        return _address_text(value)
    if isinstance(value, bytes | bytearray):
        return f"0x{value.hex()}"
    if isinstance(value, Struct):
        members = asdict(value).items()
        return with_texts({name: each if type(each) in ATOMS else to_json_value(each) for name, each in members})
    if isinstance(value, Mapping):
        return with_texts({_key(key): to_json_value(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        # Byte strings of transactions are long lists of numbers.
        return [item if type(item) in ATOMS else to_json_value(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _key(key: object) -> str:
    return key if type(key) is str else str(to_json_value(key))


@lru_cache(ADDRESSES_CACHED)
def _address_text(address: object) -> str:
    return str(address)
