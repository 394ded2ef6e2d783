"""Canonical CBOR, for event fields, timer envelopes and what handlers return; and the msgpack of stored records.

The CBOR form is the public SDK's: shortest heads, definite lengths, integers beyond 64 bits as shortest bignums, floats
as finite 64-bit numbers without a negative zero, map keys in order of (length, bytes) of their encoding, no tags but
the two of bignums. Decoding accepts exactly what encoding can produce. Source: docs/spec/sources.md §3 and the public
SDK's codec, version 0.1.6.
"""

from collections.abc import Callable, Iterable
from math import isfinite
from struct import Struct
from typing import Any, Final

import msgspec

from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX

MAX_DEPTH: Final = 256  # deepest nesting of containers and bignums
MAX_INTEGER_BITS: Final = 4096

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_POSITIVE_BIGNUM, _NEGATIVE_BIGNUM = 2, 3
_FALSE, _TRUE, _NONE, _HALF, _SINGLE, _DOUBLE, _INDEFINITE = 20, 21, 22, 25, 26, 27, 31
_SHORT: Final = 24  # smaller numbers stand in the head itself; this and the next three announce 1, 2, 4 and 8 bytes
_LEAST: Final = (_SHORT, 1 << 8, 1 << 16, 1 << 32)  # least number that needs 1, 2, 4 or 8 bytes
_DOUBLE_WIDTH: Final = 8
_HEAD_WIDTH: Final = 8  # most bytes of a number outside a bignum
_SMALL: Final = 1 << 8  # smaller numbers have a head of one or two bytes, which is looked up
_SMALL_HEADS: Final = tuple(
    tuple(bytes((major << 5 | n,) if n < _SHORT else (major << 5 | _SHORT, n)) for n in range(_SMALL))
    for major in range(_SIMPLE)
)
_UNSIGNED_HEADS, _BYTES_HEADS, _TEXT_HEADS = (_SMALL_HEADS[major] for major in (_UNSIGNED, _BYTES, _TEXT))
_pack_head_2, _pack_head_4, _pack_head_8 = (Struct(layout).pack for layout in (">BH", ">BI", ">BQ"))
"""Heads whose number has 2, 4 or 8 bytes, from their first byte and the number."""
_float: Final = Struct(">d")
_FALSE_OCTET, _TRUE_OCTET = (bytes((_SIMPLE << 5 | value,)) for value in (_FALSE, _TRUE))

Canonical = bool | int | float | bytes | str | list["Canonical"] | dict[Any, "Canonical"] | None
"""Decoded values. Encoding also takes tuples, as lists, and subclasses, as the type they extend."""


def encode_canonical(value: object) -> bytes:
    """Return the canonical CBOR encoding of a value.

    The value is None, a bool, an integer of at most 4,096 bits, a finite float, bytes, text, or a list, tuple or dict
    of such values. Keys of a dict are not containers.

    Raises:
        Rejection: ``INVALID_DATA`` for a value without a canonical form; ``OVERFLOW`` for a wider integer.
    """
    out = bytearray()
    _append(out, value, 0)
    return bytes(out)


def fields_template(*names: str) -> bytes:
    """Return the encoding of a map of fixed text keys, in canonical order, with ``%b`` in place of each value.

    The values are filled in by ``%``, each encoded by one of the functions below: a map takes a third of the time.

    Raises:
        InvariantError: If the keys are not in canonical order.

    Examples:
        >>> point = fields_template("x", "y")
        >>> point % (encode_integer(1), encode_octets(b"2")) == encode_canonical({"x": 1, "y": b"2"})
        True
    """
    keys = [encode_text(name) for name in names]
    if keys != sorted(keys):
        raise InvariantError(f"fields {', '.join(names)} are not in canonical order")
    return _head(_MAP, len(keys)) + b"".join(key.replace(b"%", b"%%") + b"%b" for key in keys)


def encode_integer(number: int) -> bytes:
    """Return the encoding of an integer; refuses as `encode_canonical`."""
    if 0 <= number < 1 << 32:
        if number < _SMALL:
            return _UNSIGNED_HEADS[number]
        return _pack_head_2(25, number) if number < 1 << 16 else _pack_head_4(26, number)
    return encode_canonical(number)


def encode_octets(octets: bytes) -> bytes:
    """Return the encoding of bytes."""
    length = len(octets)
    return (_BYTES_HEADS[length] if length < _SMALL else _head(_BYTES, length)) + octets


def encode_text(text: str) -> bytes:
    """Return the encoding of text; `Rejection` ``INVALID_DATA`` if it has a lone surrogate."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise _unencodable("text has a lone surrogate") from None
    length = len(raw)
    return (_TEXT_HEADS[length] if length < _SMALL else _head(_TEXT, length)) + raw


def encode_flag(flag: bool) -> bytes:
    """Return the encoding of a bool."""
    return _TRUE_OCTET if flag else _FALSE_OCTET


def decode_canonical(encoded: bytes) -> Canonical:
    """Return the value of a canonical encoding.

    Raises:
        Rejection: ``INVALID_DATA`` with offset and rule for truncated, trailing or non-canonical bytes.
    """
    value, end = _read(encoded, 0, 0)
    if end != len(encoded):
        raise _malformed(end, f"{len(encoded) - end} trailing bytes")
    return value


def _append(out: bytearray, value: Any, depth: int) -> None:
    kind = type(value)
    if kind is int:
        if 0 <= value <= U64_MAX:
            out += _UNSIGNED_HEADS[value] if value < _SMALL else _head(_UNSIGNED, value)
        elif -1 - U64_MAX <= value < 0:
            out += _head(_NEGATIVE, -1 - value)
        else:
            _append_bignum(out, value, depth)
    elif kind is bytes:
        length = len(value)
        out += _BYTES_HEADS[length] if length < _SMALL else _head(_BYTES, length)
        out += value
    elif kind is str:
        out += encode_text(value)
    elif kind is dict:
        _append_map(out, value, depth)
    elif value is None:
        out.append(_SIMPLE << 5 | _NONE)
    elif kind is bool:
        out += encode_flag(value)
    elif kind is list or kind is tuple:
        _append_list(out, value, len(value), depth)
    elif kind is float:
        _append_float(out, value)
    else:
        _append_subclass(out, value, depth)


def _head(major: int, count: int) -> bytes:
    if count < _SMALL:
        return _SMALL_HEADS[major][count]
    if count < 1 << 16:
        return _pack_head_2(major << 5 | 25, count)
    if count < 1 << 32:
        return _pack_head_4(major << 5 | 26, count)
    return _pack_head_8(major << 5 | 27, count)


def _append_bignum(out: bytearray, value: int, depth: int) -> None:
    if value.bit_length() > MAX_INTEGER_BITS:
        what = f"an integer has {value.bit_length()} bits, above {MAX_INTEGER_BITS}"
        raise Rejection(RejectionReason.OVERFLOW, what, bits=value.bit_length())
    _check_depth(depth)
    magnitude, tag = (value, _POSITIVE_BIGNUM) if value > 0 else (-1 - value, _NEGATIVE_BIGNUM)
    width = (magnitude.bit_length() + 7) // 8
    out += _head(_TAG, tag) + _head(_BYTES, width) + magnitude.to_bytes(width, "big")


def _append_float(out: bytearray, value: float) -> None:
    if not isfinite(value):
        raise _unencodable(f"{value} is not finite")
    out.append(_SIMPLE << 5 | _DOUBLE)
    # Adding zero turns the negative zero into the positive one and changes nothing else.
    out += _float.pack(value + 0.0)


def _append_list(out: bytearray, items: Iterable[object], count: int, depth: int) -> None:
    _check_depth(depth)
    out += _head(_LIST, count)
    for item in items:
        _append(out, item, depth + 1)


def _append_map(out: bytearray, members: dict[Any, object], depth: int) -> None:
    _check_depth(depth)
    values: dict[bytes, object] = {}
    order: Callable[[bytes], tuple[int, bytes]] | None = None
    for key, value in members.items():
        if type(key) is str:
            encoded_key = encode_text(key)
        else:
            encoded_key = _key(key, depth + 1)
            order = _length_first
        # Keys that differ as objects of a subclass can be one key in the encoding.
        if encoded_key in values:
            raise _unencodable(f"two map keys have the encoding 0x{encoded_key.hex()}")
        values[encoded_key] = value
    out += _head(_MAP, len(values))
    # The head of a text begins with its length, so among texts alone the order by bytes is the order by length.
    for encoded_key in sorted(values, key=order):
        out += encoded_key
        _append(out, values[encoded_key], depth + 1)


def _length_first(encoded_key: bytes) -> tuple[int, bytes]:
    return len(encoded_key), encoded_key


def _key(key: object, depth: int) -> bytes:
    if isinstance(key, tuple):
        raise _unencodable("a map key is a tuple; it would decode to a list, which cannot be a key")
    out = bytearray()
    _append(out, key, depth)
    return bytes(out)


def _append_subclass(out: bytearray, value: Any, depth: int) -> None:
    """Encode an instance of a subclass as the plain value it extends, through none of its own methods."""
    if isinstance(value, int):
        _append(out, int.__index__(value), depth)
    elif isinstance(value, bytes | bytearray):
        _append(out, bytes(memoryview(value)), depth)
    elif isinstance(value, str):
        _append(out, str.__str__(value), depth)
    elif isinstance(value, float):
        _append_float(out, float.__float__(value))
    elif isinstance(value, list):
        _append_list(out, list.__iter__(value), list.__len__(value), depth)
    elif isinstance(value, tuple):
        _append_list(out, tuple.__iter__(value), tuple.__len__(value), depth)
    elif isinstance(value, dict):
        _append_map(out, dict(dict.items(value)), depth)
    else:
        raise _unencodable(f"a value of {type(value).__name__} has no canonical form")


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _unencodable(f"nesting exceeds {MAX_DEPTH} levels")


def _unencodable(rule: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_DATA, f"canonical CBOR cannot carry this value: {rule}")


def _malformed(offset: int, rule: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_DATA, f"malformed CBOR at offset {offset}: {rule}", offset=offset)


def _read(encoded: bytes, offset: int, depth: int) -> tuple[Canonical, int]:
    if offset >= len(encoded):
        raise _malformed(offset, "the bytes end before the value does")
    first = encoded[offset]
    major = first >> 5
    count = first & 31
    at = offset + 1
    if major == _SIMPLE:
        return _read_simple(encoded, offset, count)
    if count >= _SHORT:
        count, at = _read_head(encoded, offset, count)
    if major == _UNSIGNED:
        return count, at
    if major == _NEGATIVE:
        return -1 - count, at
    if major in (_BYTES, _TEXT):
        return _read_string(encoded, offset, major, count, at)
    if major == _TAG and count not in (_POSITIVE_BIGNUM, _NEGATIVE_BIGNUM):
        raise _malformed(offset, f"tag {count} is not one of a bignum, 2 or 3")
    if depth >= MAX_DEPTH:
        raise _malformed(offset, f"nesting exceeds {MAX_DEPTH} levels")
    if major == _TAG:
        return _read_bignum(encoded, offset, count, at)
    if count * (2 if major == _MAP else 1) > len(encoded) - at:
        raise _malformed(offset, f"a count of {count} exceeds what the {len(encoded) - at} bytes left can hold")
    return _read_list(encoded, count, at, depth) if major == _LIST else _read_map(encoded, count, at, depth)


def _read_head(encoded: bytes, offset: int, detail: int) -> tuple[int, int]:
    """Return the number behind a head, and the offset behind both."""
    if detail == _INDEFINITE:
        raise _malformed(offset, "indefinite lengths are not canonical")
    if detail >= _SHORT + len(_LEAST):
        raise _malformed(offset, f"additional information {detail} has no meaning")
    width = 1 << (detail - _SHORT)
    end = offset + 1 + width
    if end > len(encoded):
        raise _malformed(offset, "the bytes end before the value does")
    count = int.from_bytes(encoded[offset + 1 : end], "big")
    if count < _LEAST[detail - _SHORT]:
        raise _malformed(offset, f"{count} has a shorter encoding")
    return count, end


def _read_simple(encoded: bytes, offset: int, detail: int) -> tuple[Canonical, int]:
    if detail == _NONE:
        return None, offset + 1
    if detail in (_FALSE, _TRUE):
        return detail == _TRUE, offset + 1
    if detail in (_HALF, _SINGLE):
        raise _malformed(offset, "floats have 64 bits")
    if detail != _DOUBLE:
        raise _malformed(offset, f"simple value {detail} is not false, true, null or a 64-bit float")
    raw = encoded[offset + 1 : offset + 1 + _DOUBLE_WIDTH]
    if len(raw) != _DOUBLE_WIDTH:
        raise _malformed(offset, "the bytes end before the value does")
    value: float = _float.unpack(raw)[0]
    if not isfinite(value):
        raise _malformed(offset, f"{value} is not finite")
    if raw == b"\x80" + bytes(7):
        raise _malformed(offset, "negative zero is not canonical")
    return value, offset + 1 + _DOUBLE_WIDTH


def _read_string(encoded: bytes, offset: int, major: int, length: int, at: int) -> tuple[bytes | str, int]:
    if length > len(encoded) - at:
        raise _malformed(offset, f"a length of {length} exceeds the {len(encoded) - at} bytes left")
    raw = encoded[at : at + length]
    if major == _BYTES:
        return raw, at + length
    try:
        return raw.decode(), at + length
    except UnicodeDecodeError as error:
        raise _malformed(at + error.start, "text is not valid UTF-8") from None


def _read_bignum(encoded: bytes, offset: int, tag: int, at: int) -> tuple[int, int]:
    raw, end = _read(encoded, at, MAX_DEPTH)
    if not isinstance(raw, bytes):
        raise _malformed(at, "a bignum holds a byte string")
    if len(raw) <= _HEAD_WIDTH or raw[0] == 0:
        raise _malformed(offset, "a bignum has a shorter encoding")
    magnitude = int.from_bytes(raw, "big")
    value = magnitude if tag == _POSITIVE_BIGNUM else -1 - magnitude
    if value.bit_length() > MAX_INTEGER_BITS:
        raise _malformed(offset, f"an integer exceeds {MAX_INTEGER_BITS} bits")
    return value, end


def _read_list(encoded: bytes, count: int, at: int, depth: int) -> tuple[list[Canonical], int]:
    items = []
    for _ in range(count):
        item, at = _read(encoded, at, depth + 1)
        items.append(item)
    return items, at


def _read_map(encoded: bytes, count: int, at: int, depth: int) -> tuple[dict[Any, Canonical], int]:
    members: dict[Any, Canonical] = {}
    previous = b""
    for _ in range(count):
        start = at
        key, at = _read(encoded, at, depth + 1)
        if isinstance(key, list | dict):
            raise _malformed(start, "a map key is a container")
        encoded_key = encoded[start:at]
        if (len(encoded_key), encoded_key) <= (len(previous), previous):
            raise _malformed(start, "map keys are repeated or out of order")
        previous = encoded_key
        # Equal values of different types, such as 1 and true, are one key of a dict.
        if key in members:
            raise _malformed(start, "two map keys are equal")
        members[key], at = _read(encoded, at, depth + 1)
    return members, at


def _plain(value: object) -> bytes:
    if isinstance(value, Address | Hash32):
        return bytes(value)
    raise NotImplementedError(f"records hold no {type(value).__name__}")


pack: Final = msgspec.msgpack.Encoder(enc_hook=_plain).encode
"""Return a record's msgpack: minimal integers, text and bytes apart, no maps; addresses and hashes as plain bytes.

Equal records have equal bytes.
"""
