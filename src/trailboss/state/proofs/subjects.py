"""What a proof can be about, and its keys in the state.

Every subject is a range of keys of one namespace, from the least to the greatest that it could hold; one account is a
range of one key. So there is one kind of proof: the whole contents of a range, which can be empty. Decision: D-49.
"""

from typing import Final, NamedTuple

import msgspec

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, Height, check_range
from trailboss.state.keys import KEY_WIDTHS, account_key, storage_key, storage_range, timer_key

_LEAST_ID: Final = bytes(Hash32.WIDTH)
_GREATEST_ID: Final = b"\xff" * Hash32.WIDTH


class _Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    pass


class _OfAddress(_Record, frozen=True):
    address: bytes

    def __post_init__(self) -> None:
        Address(self.address)


class AccountSubject(_OfAddress, frozen=True, tag="account"):
    """The account or actor at an address of 20 bytes; another width is ``INVALID_DATA``."""


class SlotSubject(_OfAddress, frozen=True, tag="slot"):
    """One storage slot of an actor, by the actor's address, 20 bytes, and the slot's name, of any length."""

    name: bytes


class StorageSubject(_OfAddress, frozen=True, tag="storage"):
    """All storage slots of the actor at an address of 20 bytes."""


class TimerSubject(_Record, frozen=True, tag="timer"):
    """One timer. Its id commits to its height, so a timer that is not under its own height does not exist.

    Decision: D-02

    Raises:
        Rejection: ``INVALID_DATA`` or ``OVERFLOW`` for an invalid height or id.
    """

    height: Height  # block height at which it is due, unsigned 64 bits
    timer_id: bytes  # 32 bytes

    def __post_init__(self) -> None:
        check_range("height", self.height, U64_MAX)
        Hash32(self.timer_id)


class TimersSubject(_Record, frozen=True, tag="timers"):
    """All timers of the heights ``first..=last``, unsigned 64 bits.

    Raises:
        Rejection: ``INVALID_DATA`` or ``OVERFLOW`` for invalid heights.
    """

    first: Height
    last: Height

    def __post_init__(self) -> None:
        check_range("first height", self.first, U64_MAX)
        check_range("last height", self.last, U64_MAX)
        if self.first > self.last:
            what = f"first height {self.first} lies above last height {self.last}"
            raise Rejection(RejectionReason.INVALID_DATA, what, first=self.first, last=self.last)


Subject = AccountSubject | SlotSubject | StorageSubject | TimerSubject | TimersSubject


class KeyRange(NamedTuple):
    """The keys that a subject could hold."""

    namespace: bytes  # one byte
    low: bytes  # least key, without the namespace byte, of the namespace's width
    high: bytes  # greatest key, inclusive, of the same width


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
