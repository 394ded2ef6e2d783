"""The kinds of fields, on the wire and in JSON: four functions per kind, and the kinds built from them.

Every value of a kind has exactly one encoding, and reading refuses all others, so accepted bytes are reproduced
exactly. Lengths and counts are compared with the remaining bytes before anything is allocated. Source:
docs/spec/sources.md §8; bytes pinned against the public codec, version 0.6.0.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U16_MAX, U32_MAX, U64_MAX, U128_MAX, check_range

_ZERO: Final = b"\x00"
_ONE: Final = b"\x01"
_MORE: Final = 128  # set in every byte of a varint but the last
_PAIR: Final = 2
U8_MAX: Final = 255


class Kind(Struct, frozen=True):
    """How one kind of value is carried."""

    write: Callable[[bytearray, Any, str], None]  # append a value's wire bytes; the text names the field in a refusal
    read: Callable[[bytes, int], tuple[Any, int]]  # read a value at an offset; return it and the offset behind it
    show: Callable[[Any], Any]  # return a value as JSON
    parse: Callable[[Any, str], Any]  # return the value of JSON; the text is the field's path in a refusal
    width: int = 1  # fewest bytes of a value on the wire; at least 1


def malformed(offset: int, rule: str) -> Rejection:
    """Return the refusal of bytes that break ``rule`` at ``offset``."""
    return Rejection(RejectionReason.INVALID_DATA, f"malformed bytes at offset {offset}: {rule}", offset=offset)


def mistyped(path: str, wanted: str, value: object) -> Rejection:
    """Return the refusal of a value of the wrong type in the field ``path``."""
    shown = f"{value!r:.80}" if isinstance(value, str | bool | float | None) else f"a value of {type(value).__name__}"
    return Rejection(RejectionReason.INVALID_DATA, f"{path} must be {wanted}, got {shown}", field=path)


def _cut(octets: bytes, offset: int, width: int) -> Rejection:
    return malformed(offset, f"{width} bytes are needed, {max(len(octets) - offset, 0)} are left")


def _same(value: Any) -> Any:
    return value


def _varint(maximum: int, show: Callable[[Any], Any], parse: Callable[[Any, str], Any]) -> Kind:
    """Return the kind of an unsigned integer of at most ``maximum``: seven bits a byte, lowest first, no byte more."""
    bits = maximum.bit_length()

    def write(out: bytearray, value: Any, name: str) -> None:
        if type(value) is not int or not 0 <= value <= maximum:
            check_range(name, value, maximum)
        while value >= _MORE:
            out.append(value & 127 | _MORE)
            value >>= 7
        out.append(value)

    def read(octets: bytes, offset: int) -> tuple[int, int]:
        if offset < len(octets) and octets[offset] < _MORE:
            return octets[offset], offset + 1
        value = shift = 0
        at = offset
        while True:
            if at >= len(octets):
                raise malformed(at, "the bytes end inside a varint")
            byte = octets[at]
            at += 1
            value |= (byte & 127) << shift
            if value > maximum:
                raise malformed(offset, f"a varint exceeds {bits} bits")
            if byte < _MORE:
                break
            shift += 7
            if shift >= bits:
                raise malformed(offset, f"a varint exceeds {bits} bits")
        if byte == 0 and shift:
            raise malformed(offset, "a varint is longer than its value needs")
        return value, at

    return Kind(write, read, show, parse)


def _parse_decimal(value: Any, path: str) -> int:
    # Longer than any 128-bit number is refused before it is converted.
    if not isinstance(value, str) or len(value) > len(str(U128_MAX)):
        raise mistyped(path, "a decimal string of an unsigned 128-bit integer", value)
    if not (value.isascii() and value.isdigit()) or str(int(value)) != value:
        raise mistyped(path, "a decimal string without sign or leading zeros", value)
    return check_range(path, int(value), U128_MAX)


def _fixed(maximum: int) -> Kind:
    width = maximum.bit_length() // 8

    def write(out: bytearray, value: Any, name: str) -> None:
        if type(value) is not int or not 0 <= value <= maximum:
            check_range(name, value, maximum)
        out += value.to_bytes(width, "big")

    def read(octets: bytes, offset: int) -> tuple[int, int]:
        end = offset + width
        if end > len(octets):
            raise _cut(octets, offset, width)
        return int.from_bytes(octets[offset:end], "big"), end

    return Kind(write, read, _same, lambda value, path: check_range(path, value, maximum), width)


VARINT: Final = _varint(U64_MAX, _same, lambda value, path: check_range(path, value, U64_MAX))
"""Unsigned, 64 bits: a varint on the wire, a number in JSON."""
LENGTH: Final = _varint(U32_MAX, _same, lambda value, path: check_range(path, value, U32_MAX))
"""The bytes of a byte string, or the members of a sequence."""
DECIMAL: Final = _varint(U128_MAX, str, _parse_decimal)
"""Unsigned, 128 bits: a varint on the wire, a decimal string in JSON."""
U16: Final = _fixed(U16_MAX)
U32: Final = _fixed(U32_MAX)
U64: Final = _fixed(U64_MAX)
U128: Final = _fixed(U128_MAX)


def _parse_octets(value: Any, path: str) -> bytes:
    if not isinstance(value, list):
        raise mistyped(path, "a list of bytes", value)
    for index, byte in enumerate(value):
        if type(byte) is not int or not 0 <= byte <= U8_MAX:
            check_range(f"{path}[{index}]", byte, U8_MAX)
    return bytes(value)


def _exact(record: type[bytes], width: int) -> Kind:
    # The width is checked here, so the record's own check is passed over.
    build = partial(bytes.__new__, record) if record is not bytes else bytes

    def write(out: bytearray, value: Any, name: str) -> None:
        if not isinstance(value, bytes) or len(value) != width:
            shown = f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__
            raise Rejection(RejectionReason.INVALID_DATA, f"{name} must be {width} bytes, got {shown}", field=name)
        out += value

    def read(octets: bytes, offset: int) -> tuple[bytes, int]:
        end = offset + width
        if end > len(octets):
            raise _cut(octets, offset, width)
        return build(octets[offset:end]), end

    def parse(value: Any, path: str) -> bytes:
        parsed = _parse_octets(value, path)
        if len(parsed) != width:
            raise mistyped(path, f"a list of {width} bytes", value)
        return build(parsed)

    return Kind(write, read, list, parse, width)


def _parse_address(value: Any, path: str) -> Address:
    if not isinstance(value, str):
        raise mistyped(path, "the text of an address", value)
    # The public codec knows no upper-case prefix.
    if value[:2] == "0X":
        raise mistyped(path, "the text of an address", value)
    try:
        return Address.parse(value)
    except Rejection as refusal:
        raise Rejection(refusal.reason, f"{path}: {refusal.what}", field=path) from None


HASH: Final = _exact(Hash32, 32)
_ADDRESS_BYTES: Final = _exact(Address, Address.WIDTH)
ADDRESS: Final = Kind(_ADDRESS_BYTES.write, _ADDRESS_BYTES.read, str, _parse_address, Address.WIDTH)
_RAW32: Final = _exact(bytes, 32)
_RAW65: Final = _exact(bytes, 65)


def _show_signature(value: bytes) -> dict[str, Any]:
    return {"r": list(value[:32]), "s": list(value[32:64]), "v": value[64]}


def _parse_signature(value: Any, path: str) -> bytes:
    check_members(value, path, required=("r", "s", "v"))
    v = check_range(f"{path}.v", value["v"], U8_MAX)
    return bytes(_RAW32.parse(value["r"], f"{path}.r") + _RAW32.parse(value["s"], f"{path}.s")) + bytes((v,))


SIGNATURE: Final = Kind(_RAW65.write, _RAW65.read, _show_signature, _parse_signature, 65)
"""65 bytes ``r ‖ s ‖ v`` on the wire; an object of r, s and v in JSON."""


def _too_long(name: str, length: int, maximum: int) -> Rejection:
    return Rejection(RejectionReason.INVALID_DATA, f"{name} has {length} bytes, above {maximum}", field=name)


def octets(maximum: int = U32_MAX) -> Kind:
    """Return the kind of a byte string of at most ``maximum`` bytes, after its length; a list of numbers in JSON."""

    def write(out: bytearray, value: Any, name: str) -> None:
        if not isinstance(value, bytes):
            raise mistyped(name, "bytes", value)
        if len(value) > maximum:
            raise _too_long(name, len(value), maximum)
        LENGTH.write(out, len(value), name)
        out += value

    def read(source: bytes, offset: int) -> tuple[bytes, int]:
        length, start = LENGTH.read(source, offset)
        if length > maximum:
            raise malformed(offset, f"a length of {length} exceeds {maximum}")
        if length > len(source) - start:
            raise malformed(offset, f"a length of {length} exceeds the {len(source) - start} bytes left")
        return source[start : start + length], start + length

    def parse(value: Any, path: str) -> bytes:
        parsed = _parse_octets(value, path)
        if len(parsed) > maximum:
            raise _too_long(path, len(parsed), maximum)
        return parsed

    return Kind(write, read, list, parse)


OCTETS: Final = octets()


def _write_text(out: bytearray, value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise mistyped(name, "text", value)
    OCTETS.write(out, _utf8(value, name), name)


def _utf8(value: str, name: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise mistyped(name, "text without lone surrogates", value) from None


def _read_text(source: bytes, offset: int) -> tuple[str, int]:
    raw, end = OCTETS.read(source, offset)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise malformed(end - len(raw) + error.start, "text is not valid UTF-8") from None


def _parse_text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise mistyped(path, "text", value)
    _utf8(value, path)
    return value


TEXT: Final = Kind(_write_text, _read_text, _same, _parse_text)  # UTF-8 after its length in bytes; a string in JSON


def option(inner: Kind) -> Kind:
    """Return the kind of ``inner`` or None: a byte 0, or a byte 1 and the value; null in JSON."""

    def write(out: bytearray, value: Any, name: str) -> None:
        if value is None:
            out += _ZERO
        else:
            out += _ONE
            inner.write(out, value, name)

    def read(source: bytes, offset: int) -> tuple[Any, int]:
        # Without a call of its own: most options of a transaction are absent.
        if source[offset : offset + 1] == _ZERO:
            return None, offset + 1
        tag = read_tag(source, offset)
        if tag != 1:
            raise malformed(offset, f"an option starts with 0 or 1, not {tag}")
        return inner.read(source, offset + 1)

    def show(value: Any) -> Any:
        return None if value is None else inner.show(value)

    return Kind(write, read, show, lambda value, path: None if value is None else inner.parse(value, path))


def sequence(inner: Kind) -> Kind:
    """Return the kind of a tuple of ``inner`` after their count; a list in JSON."""

    def write(out: bytearray, value: Any, name: str) -> None:
        if not isinstance(value, tuple):
            raise mistyped(name, "a tuple", value)
        LENGTH.write(out, len(value), name)
        for index, item in enumerate(value):
            inner.write(out, item, f"{name}[{index}]")

    def read(source: bytes, offset: int) -> tuple[tuple[Any, ...], int]:
        count, at = LENGTH.read(source, offset)
        if count * inner.width > len(source) - at:
            raise malformed(offset, f"a count of {count} exceeds what the {len(source) - at} bytes left can hold")
        items = []
        for _ in range(count):
            item, at = inner.read(source, at)
            items.append(item)
        return tuple(items), at

    def parse(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise mistyped(path, "a list", value)
        return tuple(inner.parse(item, f"{path}[{index}]") for index, item in enumerate(value))

    return Kind(write, read, lambda value: [inner.show(item) for item in value], parse)


def pair(first: Kind, second: Kind) -> Kind:
    """Return the kind of a tuple of two, one after the other; a list of two in JSON."""

    def write(out: bytearray, value: Any, name: str) -> None:
        if not isinstance(value, tuple) or len(value) != _PAIR:
            raise mistyped(name, "a pair", value)
        first.write(out, value[0], f"{name}[0]")
        second.write(out, value[1], f"{name}[1]")

    def read(source: bytes, offset: int) -> tuple[tuple[Any, Any], int]:
        left, at = first.read(source, offset)
        right, at = second.read(source, at)
        return (left, right), at

    def parse(value: Any, path: str) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != _PAIR:
            raise mistyped(path, "a list of two", value)
        return first.parse(value[0], f"{path}[0]"), second.parse(value[1], f"{path}[1]")

    return Kind(
        write, read, lambda value: [first.show(value[0]), second.show(value[1])], parse, first.width + second.width
    )


def read_tag(source: bytes, offset: int) -> int:
    """Return the byte at ``offset``. `Rejection` ``INVALID_DATA`` if the bytes end there."""
    if offset >= len(source):
        raise malformed(offset, "a byte is needed, none is left")
    return source[offset]


def check_members(value: Any, path: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    """Refuse a JSON value that is not an object of exactly these members.

    Raises:
        Rejection: ``INVALID_DATA`` naming the missing or unknown member.
    """
    if not isinstance(value, dict):
        raise mistyped(path, "an object", value)
    for member in value:
        if member not in required and member not in optional:
            what, field = f"{path} has no field {member!r:.80}", f"{path}.{member!s:.80}"
            raise Rejection(RejectionReason.INVALID_DATA, what, field=field)
    for member in required:
        if member not in value:
            what = f"{path} lacks its field {member!r}"
            raise Rejection(RejectionReason.INVALID_DATA, what, field=f"{path}.{member}")
