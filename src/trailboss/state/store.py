"""Committed state: what the chain agrees on, block by block, and the way back.

`Store` is the interface. `MemoryStore` keeps the state in memory, `trailboss.state.disk.store.DiskStore` in a
directory.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Final, Protocol

from msgspec import Struct

from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state import commitment, keys, tree
from trailboss.state.commitment import Roots, state_root
from trailboss.state.keys import HEIGHT_WIDTH, STORAGE_BYTE, TIMER_ID_START, TIMERS, TIMERS_BYTE
from trailboss.state.slots import SlotIndex, decode_slot
from trailboss.state.view import StoreView, Trail


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
        """Yield full keys and values of a namespace in order; see `Store.iterate`."""

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds, or how many below a bound; see `Store.count`."""

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""


BEFORE_GENESIS: Final = -1  # height of a store that holds no block yet

KEPT_ROOTS: Final = 64
"""Changed blocks whose trees are kept for going back by pointer; further back the trees are changed back.

Every kept tree costs the nodes that its block replaced; keeping all of them would cost far more than the state.
"""


class Undo(Struct, frozen=True, gc=False):
    """What reverts one block, or a run of them."""

    height: int  # height of the block, or of the lowest one
    state_root: bytes  # before it
    values: dict[bytes, bytes | None]  # previous value of every changed key; None for none


class Store(ABC):
    """Committed state, block by block. One thread uses a store; other threads read its views.

    Before the first block its height is ``BEFORE_GENESIS``. Invariant: ``_recent`` holds the trees before each of the
    last blocks of the undo journal, in the same order.
    """

    __slots__ = ("_last_changes", "_recent", "_slots", "_trail", "height", "roots", "state_root")

    def __init__(self) -> None:
        self.height = BEFORE_GENESIS
        self.roots: Roots = commitment.EMPTY_ROOTS
        self.state_root = state_root(commitment.EMPTY_ROOTS)
        self._slots = SlotIndex()
        self._recent: deque[Roots] = deque(maxlen=KEPT_ROOTS)
        # The root before the last changes, and their keys; None after going back.
        self._last_changes: tuple[Hash32 | None, Collection[bytes]] = None, ()
        # The current point, for views; None until the first view.
        self._trail: Trail | None = None

    @property
    @abstractmethod
    def floor(self) -> int:
        """Lowest height that the store can go back to; ``BEFORE_GENESIS`` for all the way."""

    @abstractmethod
    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""

    @abstractmethod
    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""

    @abstractmethod
    def read_shared(self, key: bytes) -> bytes | None:
        """Return the current value of a full key, from any thread: for `StoreView`."""

    @abstractmethod
    def timer_height_shared(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due now, from any thread."""

    @abstractmethod
    def _put(self, undo: Undo, changes: Mapping[bytes, bytes | None]) -> None:
        """Write one block's changes, and its undo, to values and journal."""

    @abstractmethod
    def _undo_above(self, height: int) -> list[Undo]:
        """Return the undo of every changed block above ``height``, the newest first."""

    @abstractmethod
    def _take_back(self, height: int, undo: Undo) -> None:
        """Write the values as of the block of ``height``, and drop the journal above it, with their common undo."""

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending, as a live sequence that must not be kept."""
        return self._slots.names(address)

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds; see `count_keys`. Complexity: O(log n)."""
        return commitment.count_keys(self.roots, namespace, bound)

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace, ascending; see `iterate_values`. Do not commit or revert."""
        return commitment.iterate_values(self.roots, self.read, namespace, lower, upper)

    def has_kept(self, keys: Set[bytes], root: Hash32) -> bool:
        """Return whether the last changes came right after a state root, and were of none of some keys. O(changes)."""
        before, changed = self._last_changes
        return before == root and keys.isdisjoint(changed)

    def view(self) -> StoreView:
        """Return the current state for other threads to read, whatever the store does later.

        Complexity: O(1). From the first view on, going back reads the values that it replaces.
        """
        return StoreView(self, self._followed(), self.height, self.state_root, self.roots)

    def view_at(self, height: int) -> StoreView:
        """Return the state after an earlier block for other threads to read, as `view` does the current one.

        Complexity: O(keys changed since).

        Raises:
            InvariantError: If the height is above the present one, or below what the store can go back to.
            StorageError: Likewise, on disk.
        """
        present = self.view()
        if height == self.height:
            return present
        restored, root, roots, _ = self._state_at(height)
        return StoreView(self, self._followed(), height, root, roots, restored=restored)

    def _followed(self) -> Trail:
        """Return the current point; from the first one on, going back reads the values that it replaces."""
        if self._trail is None:
            self._trail = Trail()
        return self._trail

    def commit(self, height: int, written: Mapping[bytes, bytes | None]) -> Hash32:
        """Commit what the next block has written and return the new state root; no change costs next to nothing.

        Raises:
            InvariantError: If the height is not the next one, a key has no committed namespace or not its width, or a
                new slot's value is not a slot record; nothing has changed then.
        """
        if height != self.height + 1:
            raise InvariantError(f"block {height} cannot be committed on top of block {self.height}")
        changes: dict[bytes, bytes | None] = {}
        before: dict[bytes, bytes | None] = {}
        for key, value in written.items():
            old = self.read(key)
            if value != old:
                changes[key], before[key] = value, old
        if changes:
            roots = commitment.next_roots(self.roots, changes.items())
            root = state_root(roots)
            slots = _slot_moves(changes, before)
            if self._trail is not None:
                self._trail = self._trail.announce(before, height)
            self._put(Undo(height, self.state_root, before), changes)
            if slots:
                self._change_slots(slots)
            self._recent.append(self.roots)
            self._last_changes = self.state_root, changes.keys()
            self.roots, self.state_root = roots, root
        self.height = height
        return self.state_root

    def revert(self, height: int) -> None:
        """Go back to exactly the state after the block of ``height``, ``BEFORE_GENESIS`` up to the current height.

        Complexity: O(keys changed since). The trees go back by pointer within ``KEPT_ROOTS`` changed blocks, and are
        changed back in one batch from further away.

        Raises:
            InvariantError: If the store is not above that height, or the trees changed back miss their old root.
        """
        restored, root, roots, changed_blocks = self._state_at(height)
        concerned = restored if self._trail is not None else [key for key in restored if key[0] == STORAGE_BYTE]
        before = {key: self.read(key) for key in concerned}
        slots = _slot_moves(restored, before)
        if self._trail is not None and height < self.height:
            self._trail = self._trail.announce(before, height)
        self._take_back(height, Undo(height + 1, root, restored))
        self._change_slots(slots)
        for _ in range(min(changed_blocks, len(self._recent))):
            self._recent.pop()
        self._last_changes = None, ()
        self.roots, self.state_root, self.height = roots, root, height

    def _state_at(self, height: int) -> tuple[dict[bytes, bytes | None], Hash32, Roots, int]:
        """Return the state after an earlier block: what differs from now, its root and trees, and the blocks between.

        Only blocks that changed something are counted.
        """
        if not BEFORE_GENESIS <= height <= self.height:
            raise InvariantError(f"cannot go back to block {height} from block {self.height}")
        undone = self._undo_above(height)
        restored: dict[bytes, bytes | None] = {}
        for undo in undone:
            restored.update(undo.values)
        root = Hash32(undone[-1].state_root) if undone else self.state_root
        roots = self._roots_before(len(undone), restored)
        if state_root(roots) != root:
            raise InvariantError(f"going back to block {height} gives another state root than it had")
        return restored, root, roots, len(undone)

    def changes_at(self, height: int) -> dict[bytes, bytes | None]:
        """Return what the block of a height changed: the value after it by full key, None for none.

        Complexity: O(keys changed since).

        Raises:
            InvariantError: If the height is above the present one, or below what the store can go back to.
            StorageError: Likewise, on disk.
        """
        if height > self.height:
            raise InvariantError(f"there is no block {height} yet: the store is at block {self.height}")
        *later, own = self._undo_above(height - 1) or [Undo(self.height, self.state_root, {})]
        if own.height != height:
            return {}
        after = {key: self.read(key) for key in own.values}
        # The newest comes first, so the oldest has the last word.
        for undo in later:
            after.update((key, value) for key, value in undo.values.items() if key in after)
        return after

    def check_invariants(self) -> None:
        """Compare trees, root, slots and timers' heights with the values alone. `InvariantError` if any differs."""
        rebuilt = commitment.build_roots(self._values_in_order())
        for namespace, root in rebuilt.items():
            kept = self.roots[namespace]
            if (tree.digest(kept), tree.count(kept)) != (tree.digest(root), tree.count(root)):
                raise InvariantError(f"the tree of namespace {namespace.decode()} is not that of its values")
        if self.state_root != state_root(rebuilt):
            raise InvariantError("the state root is not that of the trees")
        slots = SlotIndex()
        for key, record in self._values_in_order():
            if key[0] == STORAGE_BYTE:
                address, (name, _) = keys.storage_address(key), decode_slot(record)
                if keys.storage_key(address, name) != key:
                    raise InvariantError(f"state key {key.hex()} is not that of the slot {name.hex()} that it holds")
                slots.add(address, name)
        if slots.all_names() != self._slots.all_names():
            raise InvariantError("the slot names in order are not those of the stored slots")
        for key, _ in self.iterate(TIMERS):
            if self.timer_height(keys.timer_id(key)) != keys.timer_height(key):
                raise InvariantError(
                    f"timer {keys.timer_id(key).hex()} is not found at its height {keys.timer_height(key)}"
                )

    @abstractmethod
    def _values_in_order(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every stored full key and value, ascending by key, without using the trees."""

    def _roots_before(self, blocks: int, restored: Mapping[bytes, bytes | None]) -> Roots:
        """Return the trees of ``blocks`` changed blocks ago, when the values were as in ``restored``."""
        if not blocks:
            return self.roots
        if blocks <= len(self._recent):
            return self._recent[-blocks]
        return commitment.next_roots(self.roots, restored.items())

    def _change_slots(self, moves: list[tuple[bytes, bytes, bool]]) -> None:
        for address, name, is_added in moves:
            if is_added:
                self._slots.add(address, name)
            else:
                self._slots.remove(address, name)


def _slot_moves(
    changes: Mapping[bytes, bytes | None], before: Mapping[bytes, bytes | None]
) -> list[tuple[bytes, bytes, bool]]:
    """Return address and name of each slot that ``changes`` adds (True) or removes (False) from ``before``."""
    moves: list[tuple[bytes, bytes, bool]] = []
    for key, new in changes.items():
        if key[0] == STORAGE_BYTE:
            old = before[key]
            if old is None and new is not None:
                moves.append((keys.storage_address(key), decode_slot(new)[0], True))
            elif new is None and old is not None:
                moves.append((keys.storage_address(key), decode_slot(old)[0], False))
    return moves


class MemoryStore(Store):
    """A store in memory, with an undo journal of every changing block.

    A timer is stored under its id, as its due height and its record: a second table, from ids to full keys, would cost
    130 bytes more.
    """

    __slots__ = ("_journal", "_timers", "_values")

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[bytes, bytes] = {}  # by full key, all but timers
        self._timers: dict[bytes, bytes] = {}  # by timer id
        self._journal: list[Undo] = []

    @property
    def floor(self) -> int:
        """Lowest height that the store can go back to: all the way."""
        return BEFORE_GENESIS

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

    read_shared, timer_height_shared = read, timer_height

    def _put(self, undo: Undo, changes: Mapping[bytes, bytes | None]) -> None:
        self._journal.append(undo)
        self._write(changes)

    def _undo_above(self, height: int) -> list[Undo]:
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
