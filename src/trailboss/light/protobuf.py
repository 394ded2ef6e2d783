"""The part of protobuf's encoding that the engine hashes and signs; a field that is zero or empty is left out.

Source: the Protocol Buffers encoding (varint, fixed 64-bit, length-delimited).
"""

from typing import Final

from trailboss.primitives.units import U64_MAX

_VARINT, _FIXED, _DELIMITED = 0, 1, 2
_TYPE_BITS: Final = 3
_GROUP_BITS: Final = 7
_GROUP_MASK: Final = 0x7F
_MORE: Final = 0x80
_FIXED_WIDTH: Final = 8


def varint(number: int) -> bytes:
    """Return a number of 64 bits, seven bits a byte, lowest first; a negative one as its two's complement."""
    rest, out = number & U64_MAX, bytearray()
    while rest > _GROUP_MASK:
        out.append(rest & _GROUP_MASK | _MORE)
        rest >>= _GROUP_BITS
    out.append(rest)
    return bytes(out)


def number_field(field: int, number: int) -> bytes:
    """Return a field that holds a variable-length number."""
    return _tag(field, _VARINT) + varint(number) if number else b""


def fixed_field(field: int, number: int) -> bytes:
    """Return a field that holds a signed number in eight bytes."""
    return _tag(field, _FIXED) + number.to_bytes(_FIXED_WIDTH, "little", signed=True) if number else b""


def octets_field(field: int, octets: bytes) -> bytes:
    """Return a field that holds bytes or text."""
    return message_field(field, octets) if octets else b""


def message_field(field: int, message: bytes) -> bytes:
    """Return a field that holds a message, which is there even if it is empty."""
    return _tag(field, _DELIMITED) + delimited(message)


def delimited(message: bytes) -> bytes:
    """Return a message behind its length."""
    return varint(len(message)) + message


def _tag(field: int, kind: int) -> bytes:
    return varint(field << _TYPE_BITS | kind)
