"""The state root after a block, per changed key, beside the trie of Ethereum's Python node."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count

from trie.hexary import HexaryTrie

from benchmarks.measure import Case, Report, measure, timed
from trailboss.state.keys import account_key, timer_key
from trailboss.state.store import MemoryStore

SIZES = (10_000, 100_000)
BATCH = 1_000
VALUE = bytes(100)
STRIDE = 7_919
"""A prime: steps of it visit the keys evenly, in no order that would help."""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size, for building the other trie with 100,000 keys takes most of a minute."""
    del large
    report = Report(f"State: {BATCH:,} keys changed in one block", "one changed key")
    report.notes += [
        "accounts: values of existing random keys change. timers: 1,000 come at one height, and all leave again.",
        "sha256: the floor, one hash of each changed value, which any commitment must make.",
    ]
    for size in SIZES:
        floor, ours = f"sha256, {size:,} keys", f"accounts, {size:,} keys"
        cases = [
            Case(name=floor, sample=_floor),
            Case(name=ours, sample=_accounts(size), beside=floor),
            Case(name=f"HexaryTrie, {size:,} keys", sample=_hexary(size), beside=ours),
            Case(name=f"timers of one height, {size:,} keys", sample=_timers(size), beside=floor),
        ]
        measure(report, cases, rounds)
    return report


def _key(number: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()


def _changed(size: int, round_number: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys that a round changes, and values that no earlier round wrote."""
    for index in range(BATCH):
        yield _key((round_number * BATCH + index) * STRIDE % size), VALUE + round_number.to_bytes(4, "big")


def _floor() -> float:
    return timed(lambda: [sha256(VALUE).digest() for _ in range(BATCH)], BATCH)


def _accounts(size: int) -> Callable[[], float]:
    store = MemoryStore()
    store.commit(0, {account_key(_key(number)[:20]): VALUE for number in range(size)})

    def sample() -> float:
        number = store.height + 1
        changes: dict[bytes, bytes | None] = {account_key(key[:20]): value for key, value in _changed(size, number)}
        return timed(lambda: store.commit(number, changes), len(changes))

    return sample


def _timers(size: int) -> Callable[[], float]:
    store = MemoryStore()
    store.commit(0, {timer_key(1_000 + number % 100, _key(number)): VALUE for number in range(size)})

    def sample() -> float:
        height = store.height + 1
        added: dict[bytes, bytes | None] = {timer_key(999, _key(size + index)): VALUE for index in range(BATCH)}
        removed: dict[bytes, bytes | None] = dict.fromkeys(added)
        schedule = timed(lambda: store.commit(height, added), BATCH)
        return (schedule + timed(lambda: store.commit(height + 1, removed), BATCH)) / 2

    return sample


def _hexary(size: int) -> Callable[[], float]:
    trie = HexaryTrie({}, prune=True)
    with trie.squash_changes() as batch:
        for number in range(size):
            batch[_key(number)] = VALUE
    rounds = count()

    def sample() -> float:
        changes = dict(_changed(size, next(rounds)))

        def change() -> None:
            with trie.squash_changes() as batch:
                for key, value in changes.items():
                    batch[key] = value

        return timed(change, len(changes))

    return sample
