"""Committed state: what the chain agrees on, a block at a time, and the way back.

`Store` is the seam: the chain knows no more of where the state lies. `MemoryStore` keeps all of it in memory.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.state import tree
from trailboss.state.commitment import EMPTY_ROOTS, LAYOUTS, Roots, next_roots, state_root
from trailboss.state.keys import STORAGE_BYTE, storage_address, storage_key
from trailboss.state.slots import SlotIndex, decode_slot

BEFORE_GENESIS: Final = -1
"""Height of a store that holds no block yet."""

KEPT_ROOTS: Final = 64
"""Changed blocks whose trees are kept for going back by pointer; further back the trees are changed back.

Every kept tree costs the nodes that its block replaced, so keeping all of them would cost far more than the state.
"""


class KeyValue(Protocol):
    """Committed values, as an overlay reads them."""

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        ...

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending; live, not for keeping."""
        ...


class Store(KeyValue, Protocol):
    """Committed state that grows by blocks and goes back by height."""

    @property
    def height(self) -> int:
        """Height of the last block committed; ``BEFORE_GENESIS`` if there is none."""
        ...

    @property
    def state_root(self) -> Hash32:
        """Root of the whole state."""
        ...

    @property
    def roots(self) -> Roots:
        """The tree of each namespace."""
        ...

    def commit(self, height: int, changes: Mapping[bytes, bytes | None]) -> Hash32:
        """Commit the next block and return the new state root; see `MemoryStore.commit`."""
        ...

    def revert(self, height: int) -> None:
        """Go back to the state after the block of ``height``; see `MemoryStore.revert`."""
        ...

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace in order; see `MemoryStore.iterate`."""
        ...

    def count(self, namespace: bytes) -> int:
        """Return how many keys a namespace holds."""
        ...

    def check_invariants(self) -> None:
        """Check the store against itself; see `MemoryStore.check_invariants`."""
        ...


@dataclass(frozen=True, slots=True)
class _Undo:
    """What takes one block back.

    Attributes:
        height: Height of the block.
        state_root: State root before it.
        values: Value before it of every key it changed; None for none.
    """

    height: int
    state_root: Hash32
    values: dict[bytes, bytes | None]


class MemoryStore:
    """A store in memory, with an undo journal of every block that changed something.

    Invariant: ``_recent`` holds the trees before each of the last blocks of ``_journal``, in the same order.
    """

    __slots__ = ("_height", "_journal", "_recent", "_roots", "_slots", "_state_root", "_values")

    def __init__(self) -> None:
        self._height = BEFORE_GENESIS
        self._values: dict[bytes, bytes] = {}
        self._slots = SlotIndex()
        self._roots = EMPTY_ROOTS
        self._state_root = state_root(EMPTY_ROOTS)
        self._journal: list[_Undo] = []
        self._recent: deque[Roots] = deque(maxlen=KEPT_ROOTS)

    @property
    def height(self) -> int:
        """Height of the last block committed; ``BEFORE_GENESIS`` if there is none."""
        return self._height

    @property
    def state_root(self) -> Hash32:
        """Root of the whole state."""
        return self._state_root

    @property
    def roots(self) -> Roots:
        """The tree of each namespace."""
        return self._roots

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        return self._values.get(key)

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending; live, not for keeping."""
        return self._slots.names(address)

    def count(self, namespace: bytes) -> int:
        """Return how many keys a namespace holds."""
        return tree.count(self._roots[namespace])

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace, ascending by key. Do not commit or revert meanwhile.

        Args:
            namespace: One of the committed namespaces.
            lower: Least full key of the namespace, or the beginning of one; None for the first.
            upper: Full key that ends the range and is not in it, or the beginning of one; None for no end.
        """
        start = b"" if lower is None else lower[1:]
        # A bound in a later namespace ends nothing in this one.
        end = upper[1:] if upper is not None and upper.startswith(namespace) else None
        for key, _ in tree.iterate(self._roots[namespace], LAYOUTS[namespace], start, end):
            full_key = namespace + key
            yield full_key, self._values[full_key]

    def commit(self, height: int, changes: Mapping[bytes, bytes | None]) -> Hash32:
        """Commit one block and return the new state root. A block without changes costs next to nothing.

        Args:
            height: Height of the block: one more than the last.
            changes: The block's net changes: value by full key, None to delete.

        Raises:
            InvariantError: If the height is not the next one, a key has no committed namespace or not its width, or
                a new slot's value is not a slot record; nothing has changed then.
        """
        if height != self._height + 1:
            raise InvariantError(f"block {height} cannot be committed on top of block {self._height}")
        if changes:
            roots = next_roots(self._roots, changes)
            before = self._put(changes)
            self._recent.append(self._roots)
            self._journal.append(_Undo(height, self._state_root, before))
            self._roots = roots
            self._state_root = state_root(roots)
        self._height = height
        return self._state_root

    def revert(self, height: int) -> None:
        """Go back to exactly the state after the block of ``height``.

        Complexity: O(keys changed since). The trees themselves go back by pointer within ``KEPT_ROOTS`` changed blocks,
        and are changed back in one batch from further away.

        Args:
            height: ``BEFORE_GENESIS`` up to the present height.

        Raises:
            InvariantError: If the store is not above that height, or the trees changed back miss their old root.
        """
        if not BEFORE_GENESIS <= height <= self._height:
            raise InvariantError(f"cannot go back to block {height} from block {self._height}")
        restored: dict[bytes, bytes | None] = {}
        roots: Roots | None = self._roots
        expected = self._state_root
        while self._journal and self._journal[-1].height > height:
            undo = self._journal.pop()
            restored.update(undo.values)
            expected = undo.state_root
            roots = self._recent.pop() if self._recent else None
        if roots is None:
            roots = next_roots(self._roots, restored)
        if state_root(roots) != expected:
            raise InvariantError(f"going back to block {height} gives another state root than it had")
        self._put(restored)
        self._roots, self._state_root, self._height = roots, expected, height

    def check_invariants(self) -> None:
        """Build trees, root and slot names from the flat values alone and compare them with the kept ones.

        Raises:
            InvariantError: If any of them differs.
        """
        rebuilt = next_roots(EMPTY_ROOTS, self._values)
        for namespace, root in rebuilt.items():
            kept = self._roots[namespace]
            if (tree.digest(kept), tree.count(kept)) != (tree.digest(root), tree.count(root)):
                raise InvariantError(f"the tree of namespace {namespace.decode()} is not that of its values")
        if self._state_root != state_root(rebuilt):
            raise InvariantError("the state root is not that of the trees")
        slots = SlotIndex()
        for key, record in self._values.items():
            if key[0] == STORAGE_BYTE:
                address, (name, _) = storage_address(key), decode_slot(record)
                if storage_key(address, name) != key:
                    raise InvariantError(f"state key {key.hex()} is not that of the slot {name.hex()} that it holds")
                slots.add(address, name)
        if slots.all_names() != self._slots.all_names():
            raise InvariantError("the slot names in order are not those of the stored slots")

    def _put(self, changes: Mapping[bytes, bytes | None]) -> dict[bytes, bytes | None]:
        """Write ``changes`` to the values and the slot names, and return the values before."""
        values = self._values
        before = {key: values.get(key) for key in changes}
        # Records are read before anything is written, for a malformed one must change nothing.
        slots = [(key, value, before[key]) for key, value in changes.items() if key[0] == STORAGE_BYTE]
        added = [(key, decode_slot(value)[0]) for key, value, old in slots if old is None and value is not None]
        removed = [(key, decode_slot(old)[0]) for key, value, old in slots if value is None and old is not None]
        for key, name in added:
            self._slots.add(storage_address(key), name)
        for key, name in removed:
            self._slots.remove(storage_address(key), name)
        for key, value in changes.items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        return before
