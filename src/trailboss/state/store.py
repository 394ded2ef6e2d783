"""Committed state: what the chain agrees on, block by block, and the way back.

`Store` is the interface. `MemoryStore` keeps the state in memory, `trailboss.state.disk.store.DiskStore` in a
directory.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, Self

from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.block_store import BEFORE_GENESIS, KEPT_ROOTS, BlockStore, Undo
from trailboss.state.commitment import Roots
from trailboss.state.keys import (
    HEIGHT_WIDTH,
    KEY_WIDTHS,
    STORAGE,
    TIMER_ID_START,
    TIMERS,
    TIMERS_BYTE,
    storage_address,
)
from trailboss.state.slots import decode_slot
from trailboss.state.view import StoreView

__all__ = ["BEFORE_GENESIS", "KEPT_ROOTS", "KeyValue", "MemoryStore", "ReadableStore", "Store"]


class KeyValue(Protocol):
    """Committed values, as an overlay reads them."""

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending, as a live sequence that must not be kept."""


class ReadableStore(KeyValue, Protocol):
    """Committed state after a block, for reading: a store's, or a view's."""

    @property
    def height(self) -> int:
        """Height of the last block committed; ``BEFORE_GENESIS`` if there is none."""

    @property
    def state_root(self) -> Hash32:
        """Root of the whole state."""

    @property
    def roots(self) -> Roots:
        """The tree of each namespace."""

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace in order; see `BlockStore.iterate`."""

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds, or how many below a bound; see `BlockStore.count`."""

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""


class Store(ReadableStore, Protocol):
    """Committed state that grows by blocks and goes back by height."""

    @property
    def floor(self) -> int:
        """Lowest height that the store can go back to; ``BEFORE_GENESIS`` for all the way."""

    def commit(self, height: int, changes: Mapping[bytes, bytes | None]) -> Hash32:
        """Commit the next block and return the new state root; see `BlockStore.commit`."""

    def revert(self, height: int) -> None:
        """Go back to the state after the block of ``height``; see `BlockStore.revert`."""

    def view(self) -> StoreView:
        """Return the current state for other threads to read; see `BlockStore.view`."""

    def check_invariants(self) -> None:
        """Check the store against itself; see `BlockStore.check_invariants`."""


class MemoryStore(BlockStore):
    """A store in memory, with an undo journal of every changing block.

    A timer is stored under its id, as its due height and its record: a second table, from ids to full keys, would cost
    130 bytes more.
    """

    __slots__ = ("_first", "_journal", "_timers", "_values")

    def __init__(self) -> None:
        super().__init__()
        self._first = BEFORE_GENESIS
        self._values: dict[bytes, bytes] = {}  # by full key, all but timers
        self._timers: dict[bytes, bytes] = {}  # by timer id
        self._journal: list[Undo] = []

    @property
    def floor(self) -> int:
        """Lowest height that the store can go back to; a copy's own height."""
        return self._first

    @classmethod
    def copy_of(cls, store: ReadableStore, changes: Mapping[bytes, bytes | None]) -> Self:
        """Return a store in memory at the height of another one. It goes no further back.

        Args:
            store: Stays unchanged.
            changes: The copy's differences: value by full key, None to delete.

        Complexity: O(state); the trees, which never change, are shared.
        """
        copy = cls()
        for namespace in KEY_WIDTHS:
            copy._write(dict(store.iterate(namespace)))
        for key, record in store.iterate(STORAGE):
            copy._slots.add(storage_address(key), decode_slot(record)[0])
        copy.roots, copy.state_root, copy.height = store.roots, store.state_root, store.height - 1
        copy.commit(store.height, changes)
        copy._first = store.height
        copy._journal.clear()
        copy._recent.clear()
        return copy

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        if key[0] != TIMERS_BYTE:
            return self._values.get(key)
        timer = self._timers.get(key[TIMER_ID_START:])
        if timer is None or not key.startswith(timer[:HEIGHT_WIDTH], 1):
            return None
        return timer[HEIGHT_WIDTH:]

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""
        timer = self._timers.get(identity)
        return None if timer is None else Height(int.from_bytes(timer[:HEIGHT_WIDTH], "big"))

    def _put(self, undo: Undo, changes: Mapping[bytes, bytes | None]) -> None:
        self._journal.append(undo)
        self._write(changes)

    def _undo_above(self, height: int) -> list[Undo]:
        if height < self._first:
            raise InvariantError(f"cannot go back to block {height}: this is a copy made after block {self._first}")
        first = bisect_right(self._journal, height, key=lambda undo: undo.height)
        return self._journal[first:][::-1]

    def _take_back(self, height: int, undo: Undo) -> None:
        del self._journal[bisect_right(self._journal, height, key=lambda undo: undo.height) :]
        self._write(undo.values)

    def _values_in_order(self) -> Iterator[tuple[bytes, bytes]]:
        timers = [
            (TIMERS + timer[:HEIGHT_WIDTH] + identity, timer[HEIGHT_WIDTH:]) for identity, timer in self._timers.items()
        ]
        return iter(sorted([*self._values.items(), *timers]))

    def _write(self, changes: Mapping[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            if key[0] != TIMERS_BYTE:
                if value is None:
                    self._values.pop(key, None)
                else:
                    self._values[key] = value
            elif value is not None:
                self._timers[key[TIMER_ID_START:]] = key[1:TIMER_ID_START] + value
            elif self.read(key) is not None:
                # Of a timer that moves, the new height may have been written already: that is not the one to delete.
                del self._timers[key[TIMER_ID_START:]]
