"""Random states to make proofs of, and what each of them holds of a subject, by the definition of the keys."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from trailboss.codec.canonical import pack
from trailboss.model.actors import Account
from trailboss.model.timers import RECORD_VERSION, Timer, decode_timer, encode_timer
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.state.commitment import EMPTY_ROOTS, Roots, next_roots, state_root
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.prover import prove
from trailboss.state.proofs.statements import Statement
from trailboss.state.proofs.subjects import (
    AccountSubject,
    SlotSubject,
    StorageSubject,
    Subject,
    TimersSubject,
    TimerSubject,
)

SIZES = (0, 1, 5, 31, 32, 33, 34, 70, 300)
"""Keys of one group: around the capacity of a page, and some more."""


@dataclass(frozen=True)
class State:
    """A state: its values, its trees, its root.

    Attributes:
        values: Value by full key.
        roots: The trees.
        root: Their state root.
    """

    values: dict[bytes, bytes]
    roots: Roots
    root: Hash32

    def prove(self, subject: Subject) -> Proof:
        """Return the proof of a subject."""
        return prove(self.roots, self.values.get, subject)

    def holds(self, subject: Subject) -> list[bytes]:
        """Return the values of all records of a subject, in a statement's order: the plain reading, key by key."""
        found = sorted((key, value) for key, value in self.values.items() if is_about(subject, key))
        if isinstance(subject, TimerSubject | TimersSubject):
            timers = sorted(
                map(decode_timer, (value for _, value in found)), key=lambda each: (each.height, each.sequence)
            )
            return [encode_timer(timer) for timer in timers]
        return [value for _, value in found]


def is_about(subject: Subject, key: bytes) -> bool:
    """Tell whether a key belongs to a subject."""
    namespace, rest = key[:1], key[1:]
    match subject:
        case AccountSubject(address):
            return namespace == b"a" and rest == address
        case SlotSubject(address, name):
            return namespace == b"s" and rest == address + sha256(name).digest()
        case StorageSubject(address):
            return namespace == b"s" and rest[:20] == address
        case TimerSubject(height, timer_id):
            return namespace == b"t" and (int.from_bytes(rest[:8], "big"), rest[8:]) == (height, timer_id)
        case TimersSubject(first, last):
            return namespace == b"t" and first <= int.from_bytes(rest[:8], "big") <= last


def is_true(statement: Statement, state: State) -> bool:
    """Tell whether a statement is what a state holds."""
    return [pack(record) for record in statement.records] == state.holds(statement.subject)


def make_state(values: dict[bytes, bytes]) -> State:
    """Return the state of some values."""
    roots = next_roots(EMPTY_ROOTS, values.items())
    return State(values, roots, state_root(roots))


def timer_record(height: int, timer_id: bytes, sequence: int) -> bytes:
    """Return a timer's record."""
    owner = timer_id[:20]
    fields = (owner, height, timer_id, sequence, "handle_timer", b"", owner, 1000, 0, U64_MAX, 0)
    return encode_timer(Timer(RECORD_VERSION, *fields))


def random_address(rng: random.Random) -> bytes:
    """Return an address: anywhere, or sharing all but its end with others."""
    return rng.choice((rng.randbytes(20), bytes(18) + rng.randbytes(2), b"\xaa" * 19 + rng.randbytes(1)))


def random_height(rng: random.Random) -> int:
    """Return a height: near, far, or at an end of the range."""
    return rng.choice((rng.randrange(40), 1000 + rng.randrange(300), rng.randrange(2**64), 0, U64_MAX, 255, 256))


def random_values(rng: random.Random, size: int | None = None) -> dict[bytes, bytes]:
    """Return values of all namespaces.

    Args:
        rng: Where chance comes from.
        size: Keys of each group; None draws each from ``SIZES``.
    """

    def some() -> range:
        return range(rng.choice(SIZES) if size is None else size)

    values: dict[bytes, bytes] = {}
    for _ in some():
        values[b"a" + random_address(rng)] = pack(
            Account(nonce=rng.randrange(300), code_hash=rng.choice((b"", b"\1" * 32)))
        )
    for owner in [random_address(rng) for _ in range(3)]:
        for number in some():
            name = bytes([number & 255, number >> 8])
            values[b"s" + owner + sha256(name).digest()] = pack((name, rng.randbytes(3)))
    crowded = random_height(rng)
    for height in [crowded for _ in some()] + [random_height(rng) for _ in some()]:
        timer_id = rng.randbytes(32)
        values[b"t" + height.to_bytes(8, "big") + timer_id] = timer_record(height, timer_id, len(values) * 7919 % 4096)
    for _ in some():
        values[b"c" + rng.randbytes(32)] = rng.randbytes(4)
        values[b"g" + rng.randbytes(40)] = rng.randbytes(4)
    return values


def related_values(rng: random.Random, values: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return values that differ in a few keys: what the next block might leave."""
    changed = dict(values)
    for key in rng.sample(sorted(values), min(4, len(values))):
        if rng.random() < 0.5:
            del changed[key]
        elif key[:1] == b"a":
            changed[key] = pack(Account(nonce=rng.randrange(300)))
        elif key[:1] == b"t":
            changed[key] = timer_record(int.from_bytes(key[1:9], "big"), key[9:], rng.randrange(2**20))
    timer_id, height = rng.randbytes(32), random_height(rng)
    return changed | {b"t" + height.to_bytes(8, "big") + timer_id: timer_record(height, timer_id, 3)}


def random_subject(rng: random.Random, values: Iterable[bytes]) -> Subject:
    """Return a subject: something that is there, something beside it, or anything.

    Args:
        rng: Where chance comes from.
        values: Full keys of the state.
    """
    there = sorted(values)
    key = (
        rng.choice(there) if there and rng.random() < 0.8 else rng.choice(b"ast").to_bytes(1, "big") + rng.randbytes(52)
    )
    if rng.random() < 0.3:
        at = rng.randrange(1, len(key))
        key = key[:at] + bytes([key[at] ^ 1 << rng.randrange(8)]) + key[at + 1 :]
    height = int.from_bytes(key[1:9], "big")
    width = rng.choice((0, 1, 10, 300, U64_MAX))
    return rng.choice(
        (
            AccountSubject(key[1:21]),
            StorageSubject(key[1:21]),
            SlotSubject(key[1:21], bytes([rng.randrange(80), 0])),
            TimerSubject(height, key[9:41].ljust(32, b"\0")),
            TimersSubject(height, min(height + width, U64_MAX)),
            TimersSubject(max(height - width, 0), height),
        )
    )
