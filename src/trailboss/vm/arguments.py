"""The arguments of host calls: taken apart and checked as values, with no guest code run on the way."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.vm.gauge import shown

INITIALIZED_KEY: Final = b"__INITIALIZED__"
"""The slot in which the SDK notes that ``init`` has run."""
RESERVED_KEYS: Final = (INITIALIZED_KEY, b"cowboy.offchain.image.v1")
"""Slots that only the SDK may write. Source: cowboy-facts §2.2."""


class ArgumentFault(Exception):
    """Arguments that a host call does not take; the guest sees the Python exception that it names.

    Attributes:
        kind: ``TypeError`` or ``ValueError``.
    """

    def __init__(self, kind: type[TypeError] | type[ValueError], what: str) -> None:
        super().__init__(what)
        self.kind = kind


def bind(
    call: str,
    names: tuple[str, ...],
    positional: Sequence[object],
    named: Mapping[str, object],
    *,
    required: int | None = None,
    named_only: tuple[str, ...] = (),
) -> tuple[object, ...]:
    """Return one value for each parameter, those by name alone last; those not given are None.

    Args:
        call: Name of the host call, for the message.
        names: Its parameters, in order.
        positional: Arguments by position.
        named: Arguments by name.
        required: How many of ``names`` must be given; None means all.
        named_only: Further parameters, by name alone; none must be given.

    Raises:
        ArgumentFault: ``TypeError`` if there are too many, too few, unknown ones, or one twice.
    """
    count = len(names)
    if len(positional) == count and not named and not named_only:
        return tuple(positional)
    shown_names = (*names, "*", *named_only) if named_only else names
    if len(positional) > count:
        raise _mismatch(call, shown_names, f"takes {count} arguments, got {len(positional)}")
    values = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names and name not in named_only:
            raise _mismatch(call, shown_names, f"has no argument {name!r}")
        if name in values:
            raise _mismatch(call, shown_names, f"got {name} twice")
        values[name] = value
    for name in names[: count if required is None else required]:
        if name not in values:
            raise _mismatch(call, shown_names, f"needs {name}")
    return tuple(values.get(name) for name in (*names, *named_only))


def octets(call: str, name: str, value: object, width: int | None = None) -> bytes:
    """Return an argument as bytes.

    Raises:
        ArgumentFault: ``TypeError`` if it is not bytes-like.
        Rejection: ``INVALID_INPUT`` if it does not have ``width`` bytes.
    """
    content = _plain_bytes(value)
    if content is None:
        raise ArgumentFault(TypeError, f"{call}(): {name} must be bytes, got {shown(value)}")
    if width is not None and len(content) != width:
        raise _invalid(call, name, f"must be {width} bytes, got {len(content)} bytes")
    return content


def address(call: str, name: str, value: object) -> bytes:
    """Return an argument as an address of 20 bytes; see `octets`."""
    return octets(call, name, value, Address.WIDTH)


def integer(call: str, name: str, value: object, maximum: int, minimum: int = 0) -> int:
    """Return an argument as an integer.

    Raises:
        ArgumentFault: ``TypeError`` if it is not one; a bool is none.
        Rejection: ``INVALID_INPUT`` if it lies outside ``minimum..=maximum``.
    """
    kind = type(value)
    if not issubclass(kind, int) or kind is bool:
        raise ArgumentFault(TypeError, f"{call}(): {name} must be an integer, got {shown(value)}")
    number = int.__index__(cast(int, value))
    if not minimum <= number <= maximum:
        raise _invalid(call, name, f"is {shown(number)}, outside {minimum}..={maximum}")
    return number


def text(call: str, name: str, value: object) -> str:
    """Return an argument as text.

    Raises:
        ArgumentFault: ``TypeError`` if it is not a str.
        Rejection: ``INVALID_INPUT`` if it has no UTF-8 form.
    """
    if not issubclass(type(value), str):
        raise ArgumentFault(TypeError, f"{call}(): {name} must be a str, got {shown(value)}")
    plain = str.__str__(cast(str, value))
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise _invalid(call, name, f"must be UTF-8 text, got {plain!r:.80}") from None
    return plain


def unreserved(call: str, key: object) -> bytes:
    """Return an argument as the name of a slot that actors may write.

    Raises:
        ArgumentFault: ``ValueError`` if it is reserved for the SDK, ``TypeError`` if it is not bytes.
    """
    slot = octets(call, "key", key)
    if slot in RESERVED_KEYS:
        raise ArgumentFault(ValueError, f"{call}(): key {slot!r} is reserved for the SDK")
    return slot


def reserved(call: str, key: object) -> bytes:
    """Return an argument as the name of the one slot that the SDK writes itself.

    Raises:
        ArgumentFault: ``ValueError`` if it is another, ``TypeError`` if it is not bytes.
    """
    slot = octets(call, "key", key)
    if slot != INITIALIZED_KEY:
        raise ArgumentFault(ValueError, f"{call}(): key must be {INITIALIZED_KEY!r}, got {shown(slot)}")
    return slot


def _plain_bytes(value: object) -> bytes | None:
    # The type decides and its own methods are used: a subclass of the guest's could have others.
    kind = type(value)
    if kind is bytes:
        return cast(bytes, value)
    if issubclass(kind, bytes):
        return bytes.__getitem__(cast(bytes, value), slice(None))
    if issubclass(kind, bytearray):
        return bytes(bytearray.__getitem__(cast(bytearray, value), slice(None)))
    if isinstance(value, memoryview):
        try:
            return value.tobytes()
        # A view that has been released holds nothing.
        except ValueError:
            return None
    return None


def _mismatch(call: str, names: tuple[str, ...], what: str) -> ArgumentFault:
    return ArgumentFault(TypeError, f"{call}({', '.join(names)}) {what}")


def _invalid(call: str, name: str, what: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_INPUT, f"{call}(): {name} {what}", call=call, argument=name)
