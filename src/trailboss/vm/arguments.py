"""Host calls: arguments are bound and checked as values, without running guest code; answers are plain values.

The types decide, and only their own methods are used, because a guest's subclass can override any of them. A check
takes the call's name, the parameter's name and the value, and returns the checked value; the names are for messages.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final, cast

from trailboss.metering.gauge import shown
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX, U128_MAX
from trailboss.vm.engine import CallSite, HostCall

Check = Callable[[str, str, object], Any]

INITIALIZED_KEY: Final = b"__INITIALIZED__"  # the slot in which the SDK records that ``init`` has run
RESERVED_KEYS: Final = (INITIALIZED_KEY, b"cowboy.offchain.image.v1")
"""Slots that only the SDK can write. Source: cowboy-facts §2.2."""
SEQUENCE_MAX: Final = 1_024  # items of a list; no call takes nearly as many
CLOCK_MIN: Final = 10**12
"""From here on a number is read as milliseconds since 1970 (this one is in 2001), not as a height: at one block a
second that height is 30,000 years away."""
_PLAIN: Final = frozenset((bytes, str, int, bool, float, type(None)))


class ArgumentFault(Exception):
    """Invalid arguments of a host call; the guest sees ``kind``, a ``TypeError`` or ``ValueError``."""

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
    """Return one value per parameter, keyword-only ones last; a parameter that is not given is None.

    The first ``required`` of ``names`` must be given, None means all; those of ``named_only`` are optional.

    Raises:
        ArgumentFault: ``TypeError`` for too many, too few, unknown or repeated arguments.
    """
    count = len(names)
    if not named and (count if required is None else required) <= len(positional) <= count:
        return (*positional, *(None,) * (count - len(positional) + len(named_only)))
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


def host_call(
    call: str,
    checks: Mapping[str, Check],
    cost: str | None,
    action: Callable[..., object],
    *,
    names: tuple[str, ...] = (),
    required: int | None = None,
) -> HostCall:
    """Return a host call: it checks the arguments, charges its price, and answers what ``action`` returns.

    ``checks`` apply in their order, in which the action gets the values after the site; ``names`` is the guest's order,
    if another. ``cost`` is a field of the cost table, None if the action charges; the first ``required`` parameters
    must be given, None means all.
    """
    names = names or tuple(checks)
    order = [(name, check, names.index(name)) for name, check in checks.items()]
    price = None if cost is None else attrgetter(cost)

    def serve(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
        given = bind(call, names, positional, named, required=required)
        values = [check(call, name, given[place]) for name, check, place in order]
        if price is not None:
            site.meter.charge_cycles(price(site.params.costs))
        return plain(action(site, *values))

    return serve


def plain(value: object) -> object:
    """Return a host's answer in Python's own types, within containers too.

    A guest could inspect and use a class of this process, and a program behaves differently with a subclass than with
    the type itself, which another engine gives it.

    Raises:
        TypeError: If a host does not answer with such a value.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        items = [plain(each) for each in value]  # type: ignore[attr-defined]  # mypy does not follow the types
        return items if kind is list else tuple(items)
    if kind is dict or isinstance(value, Mapping):
        entries = value.items()  # type: ignore[attr-defined]
        return {plain(name): each if type(each) in _PLAIN else plain(each) for name, each in entries}
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a host call answers with an object of type {kind.__name__}")


def optional(check: Check, default: object = None) -> Check:
    """Return a check that gives ``default`` for None."""
    return lambda call, name, value: default if value is None else check(call, name, value)


def octets(
    call: str,
    name: str,
    value: object,
    width: int | None = None,
    *,
    reason: RejectionReason = RejectionReason.INVALID_INPUT,
) -> bytes:
    """Return an argument as bytes.

    Raises:
        ArgumentFault: ``TypeError`` if it is not bytes-like.
        Rejection: With ``reason`` if it does not have ``width`` bytes.
    """
    content = _plain_bytes(value)
    if content is None:
        raise ArgumentFault(TypeError, f"{call}(): {name} must be bytes, got {shown(value)}")
    if width is not None and len(content) != width:
        raise _invalid(call, name, f"must be {width} bytes, got {len(content)} bytes", reason)
    return content


address: Final = partial(octets, width=Address.WIDTH)  # return an argument as an address of 20 bytes; see `octets`


def sequence(call: str, name: str, value: object) -> tuple[object, ...]:
    """Return the items of a list or tuple.

    Raises:
        ArgumentFault: ``TypeError`` if it is neither.
        Rejection: ``INVALID_INPUT`` for more than `SEQUENCE_MAX` items.
    """
    kind = type(value)
    if not issubclass(kind, list | tuple):
        raise ArgumentFault(TypeError, f"{call}(): {name} must be a list, got {shown(value)}")
    base: Any = list if issubclass(kind, list) else tuple
    items = tuple(islice(base.__iter__(value), SEQUENCE_MAX + 1))
    if len(items) > SEQUENCE_MAX:
        raise _invalid(call, name, f"has more than {SEQUENCE_MAX} items")
    return items


def block_height(call: str, name: str, value: object) -> int:
    """Return an argument as the block height of a Globalbox timer; there are no timers by the clock.

    Spec: CIP-5old §6.1

    Raises:
        ArgumentFault: ``TypeError`` if it is not a number.
        Rejection: ``ERR_UNSUPPORTED_TIMER_TYPE`` if it reads as a time; else as `wide_integer`.
    """
    kind = type(value)
    is_integer = issubclass(kind, int) and kind is not bool
    if issubclass(kind, float):
        read = "a float"
    elif is_integer and int.__ge__(cast(int, value), CLOCK_MIN):
        read = "which reads as a time in milliseconds"
    else:
        return wide_integer(call, name, value)
    what = f"is {shown(value)}, {read}, and must be a block height"
    raise _invalid(call, name, what, RejectionReason.ERR_UNSUPPORTED_TIMER_TYPE)


def wide_integer(call: str, name: str, value: object) -> int:
    """Return an argument of Globalbox as an integer of either sign; the chain checks its bounds.

    Raises:
        ArgumentFault: ``TypeError`` if it is not an integer; a bool is not one.
        Rejection: ``ERR_INVALID_PARAM`` if it has more than 128 bits.
    """
    number = _plain_integer(call, name, value)
    if abs(number) > U128_MAX:
        what = f"is {shown(number)}, which has more than {U128_MAX.bit_length()} bits"
        raise _invalid(call, name, what, RejectionReason.ERR_INVALID_PARAM)
    return number


def integer(call: str, name: str, value: object, maximum: int = U64_MAX, minimum: int = 0) -> int:
    """Return an argument as an integer.

    Raises:
        ArgumentFault: ``TypeError`` if it is not an integer; a bool is not one.
        Rejection: ``INVALID_INPUT`` if it is outside ``minimum..=maximum``.
    """
    number = _plain_integer(call, name, value)
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


def unreserved(call: str, name: str, value: object) -> bytes:
    """Return the name of a slot that actors can write; `ArgumentFault` if it is reserved, or is not bytes."""
    slot = octets(call, name, value)
    if slot in RESERVED_KEYS:
        raise ArgumentFault(ValueError, f"{call}(): {name} {slot!r} is reserved for the SDK")
    return slot


def reserved(call: str, name: str, value: object) -> bytes:
    """Return the name of the one slot that the SDK writes itself; `ArgumentFault` if it is another, or not bytes."""
    slot = octets(call, name, value)
    if slot != INITIALIZED_KEY:
        raise ArgumentFault(ValueError, f"{call}(): {name} must be {INITIALIZED_KEY!r}, got {shown(slot)}")
    return slot


def _plain_integer(call: str, name: str, value: object) -> int:
    kind = type(value)
    if not issubclass(kind, int) or kind is bool:
        raise ArgumentFault(TypeError, f"{call}(): {name} must be an integer, got {shown(value)}")
    return int.__index__(cast(int, value))


def _plain_bytes(value: object) -> bytes | None:
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
        # A released view holds nothing.
        except ValueError:
            return None
    return None


def _mismatch(call: str, names: tuple[str, ...], what: str) -> ArgumentFault:
    return ArgumentFault(TypeError, f"{call}({', '.join(names)}) {what}")


def _invalid(call: str, name: str, what: str, reason: RejectionReason = RejectionReason.INVALID_INPUT) -> Rejection:
    return Rejection(reason, f"{call}(): {name} {what}", call=call, argument=name)
