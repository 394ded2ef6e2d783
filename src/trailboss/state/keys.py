"""The only builder of state keys.

A full key is one namespace byte and a key of that namespace's fixed width, so no key is the prefix of another:

| namespace | key | width |
| --- | --- | --- |
| `a` accounts and actors | address | 20 |
| `s` actor storage | address, sha256(slot name) | 52 |
| `t` timers | height (8 bytes, big-endian), timer id | 40 |
| `c` configurations, code, scheduler state | sha256(name) | 32 |
| `g` Globalbox and mailbox | major (8 bytes, big-endian), 32 bytes | 40 |

Decision: D-02 (timers lie under height and id: store, height index and height-ordered tree in one leaf)
"""

from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, Height

ACCOUNTS: Final = b"a"
STORAGE: Final = b"s"
TIMERS: Final = b"t"
CONFIGURATIONS: Final = b"c"
MAILBOX: Final = b"g"

_WIDTHS: Final = {ACCOUNTS: 20, STORAGE: 52, TIMERS: 40, CONFIGURATIONS: 32, MAILBOX: 40}
KEY_WIDTHS: Final[Mapping[bytes, int]] = MappingProxyType(_WIDTHS)
"""Bytes of a key after its namespace byte, per committed namespace, in the order of the state root."""

STORAGE_BYTE: Final = STORAGE[0]
TIMERS_BYTE: Final = TIMERS[0]

HEIGHT_WIDTH: Final = 8  # bytes of a height in a key
TIMER_ID_START: Final = 1 + HEIGHT_WIDTH  # where the id begins in a full timer key, behind namespace and height

DEFERRED_NUMBERS: Final = 2**61  # where the deferred transactions begin in the mailbox's namespace, after the messages
ENDED_NUMBERS: Final = 2**62  # where the ended timers begin, after them; no chain has 2**61 of any
FIRE_NUMBERS: Final = 2**63  # where the materialized fires begin, after them

_ADDRESS_END: Final = 21
_MAJOR_END: Final = 9
_NO_MINOR: Final = bytes(32)
_CODE: Final = b"code:"
_MANIFEST: Final = b"manifest:"
_AFTER_TIMERS: Final = b"u"


class Missing(Enum):
    """A key that a table does not hold, as opposed to one that it holds as deleted (None)."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


def account_key(address: bytes) -> bytes:
    """Return the key of the account or actor at ``address`` (20 bytes)."""
    return ACCOUNTS + address


def storage_key(address: bytes, slot: bytes) -> bytes:
    """Return the key of an actor's storage slot; ``slot`` is its name, of any length."""
    return STORAGE + address + sha256(slot).digest()


def storage_address(key: bytes) -> Address:
    """Return the actor's address in a storage key."""
    return Address(key[1:_ADDRESS_END])


def storage_range(address: bytes) -> tuple[bytes, bytes]:
    """Return the bounds, lower inclusive, of an actor's storage keys; their order is that of the hashed slot names."""
    following = int.from_bytes(STORAGE + address, "big") + 1
    return STORAGE + address, following.to_bytes(_ADDRESS_END, "big")


def timer_key(height: int, timer_id: bytes) -> bytes:
    """Return the key of the timer ``timer_id`` (32 bytes) that is due at ``height``."""
    return TIMERS + height.to_bytes(8, "big") + timer_id


def timer_height(key: bytes) -> Height:
    """Return the height in a timer key."""
    return Height(int.from_bytes(key[1:TIMER_ID_START], "big"))


def timer_id(key: bytes) -> Hash32:
    """Return the timer id in a timer key."""
    return Hash32(key[TIMER_ID_START:])


def timer_range(first: Height, last: Height) -> tuple[bytes, bytes]:
    """Return the bounds, lower inclusive and upper exclusive, of all timer keys of heights ``first..=last``."""
    upper = _AFTER_TIMERS if last == U64_MAX else TIMERS + (last + 1).to_bytes(8, "big")
    return TIMERS + first.to_bytes(8, "big"), upper


def timer_moves(changes: Mapping[bytes, bytes | None]) -> dict[bytes, Height | None]:
    """Return the height of every timer that ``changes`` sets, by id, and None for every other one that it deletes."""
    timers = [(key, value) for key, value in changes.items() if key[0] == TIMERS_BYTE]
    moves: dict[bytes, Height | None] = {timer_id(key): None for key, value in timers if value is None}
    moves.update((timer_id(key), timer_height(key)) for key, value in timers if value is not None)
    return moves


def config_key(name: bytes) -> bytes:
    """Return the key of a named configuration or of a named piece of scheduler state."""
    return CONFIGURATIONS + sha256(name).digest()


def job_key(number: int) -> bytes:
    """Return the key of a runner job of a development chain: the configuration named ``job:`` and its number."""
    return config_key(b"job:" + number.to_bytes(8, "big"))


def manifest_key(actor: bytes) -> bytes:
    """Return the key of an actor's manifest: the configuration named ``manifest:`` and its address."""
    return config_key(_MANIFEST + actor)


def code_key(code_hash: bytes) -> bytes:
    """Return the key of the actor code whose hash is ``code_hash``: the configuration named ``code:`` and the hash."""
    return config_key(_CODE + code_hash)


def mailbox_key(major: int, minor: bytes = _NO_MINOR) -> bytes:
    """Return the key of a mailbox or Globalbox entry.

    ``major`` orders first, an unsigned 64-bit integer, for the mailbox the sequence number; then ``minor``, 32 bytes.
    """
    return MAILBOX + major.to_bytes(8, "big") + minor


def deferred_key(number: int) -> bytes:
    """Return the key of the deferred transaction of that number. Decision: D-88."""
    return mailbox_key(DEFERRED_NUMBERS | number)


def fire_key(deliver_seq: int) -> bytes:
    """Return the key of the materialized fire of that number, apart from the messages. Spec: CIP-5old §9.1."""
    return mailbox_key(FIRE_NUMBERS | deliver_seq)


def ended_key(number: int) -> bytes:
    """Return the key of the ended timer of that number. Decision: D-64."""
    return mailbox_key(ENDED_NUMBERS | number)


def mailbox_major(key: bytes) -> int:
    """Return the major part of a mailbox or Globalbox key."""
    return int.from_bytes(key[1:_MAJOR_END], "big")
