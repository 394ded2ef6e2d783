"""What a proof can be about, and which keys of the state that concerns.

Every subject is a range of keys of one namespace, from the least to the greatest that it could hold. One account is a
range of one key. So there is one kind of proof: the whole contents of a range, which may be nothing.

Decision: D-49
"""

from typing import Final, NamedTuple

import msgspec

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, Height, check_range
from trailboss.state.keys import KEY_WIDTHS, account_key, storage_key, storage_range, timer_key

_LEAST_ID: Final = bytes(Hash32.WIDTH)
_GREATEST_ID: Final = b"\xff" * Hash32.WIDTH


class AccountSubject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="account"):
    """The account or actor at an address.

    Attributes:
        address: 20 bytes.

    Raises:
        Rejection: ``INVALID_DATA`` for an address of another width.
    """

    address: bytes

    def __post_init__(self) -> None:
        Address(self.address)


class SlotSubject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="slot"):
    """One storage slot of an actor.

    Attributes:
        address: Address of the actor, 20 bytes.
        name: Name of the slot, of any length.

    Raises:
        Rejection: ``INVALID_DATA`` for an address of another width.
    """

    address: bytes
    name: bytes

    def __post_init__(self) -> None:
        Address(self.address)


class StorageSubject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="storage"):
    """All storage slots of an actor.

    Attributes:
        address: Address of the actor, 20 bytes.

    Raises:
        Rejection: ``INVALID_DATA`` for an address of another width.
    """

    address: bytes

    def __post_init__(self) -> None:
        Address(self.address)


class TimerSubject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="timer"):
    """One timer. Its id commits to its height, so a timer that is not under its own height is nowhere.

    Decision: D-02

    Attributes:
        height: Block height at which it is due, unsigned 64 bits.
        timer_id: 32 bytes.

    Raises:
        Rejection: ``INVALID_DATA`` or ``OVERFLOW`` for a height or an id outside of that.
    """

    height: Height
    timer_id: bytes

    def __post_init__(self) -> None:
        check_range("height", self.height, U64_MAX)
        Hash32(self.timer_id)


class TimersSubject(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="timers"):
    """All timers of the heights ``first..=last``.

    Attributes:
        first: Block height, unsigned 64 bits.
        last: Block height, not below ``first``, unsigned 64 bits.

    Raises:
        Rejection: ``INVALID_DATA`` or ``OVERFLOW`` for heights outside of that.
    """

    first: Height
    last: Height

    def __post_init__(self) -> None:
        check_range("first height", self.first, U64_MAX)
        check_range("last height", self.last, U64_MAX)
        if self.first > self.last:
            raise Rejection(
                RejectionReason.INVALID_DATA,
                f"first height {self.first} lies above last height {self.last}",
                first=self.first,
                last=self.last,
            )


Subject = AccountSubject | SlotSubject | StorageSubject | TimerSubject | TimersSubject


class KeyRange(NamedTuple):
    """The keys that a subject could hold.

    Attributes:
        namespace: One byte.
        low: Least key, without the namespace byte, of the namespace's width.
        high: Greatest key, of the same width; it belongs to the range.
    """

    namespace: bytes
    low: bytes
    high: bytes


def subject_range(subject: Subject) -> KeyRange:
    """Return the range of keys that a subject is about."""
    if isinstance(subject, AccountSubject):
        low = high = account_key(subject.address)
    elif isinstance(subject, SlotSubject):
        low = high = storage_key(subject.address, subject.name)
    elif isinstance(subject, StorageSubject):
        beginning, _ = storage_range(subject.address)
        width = len(beginning[:1]) + KEY_WIDTHS[beginning[:1]]
        low, high = beginning.ljust(width, b"\x00"), beginning.ljust(width, b"\xff")
    elif isinstance(subject, TimerSubject):
        low = high = timer_key(subject.height, subject.timer_id)
    else:
        low, high = timer_key(subject.first, _LEAST_ID), timer_key(subject.last, _GREATEST_ID)
    return KeyRange(low[:1], low[1:], high[1:])
