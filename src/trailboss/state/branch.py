"""A store that goes on from another one's state without touching it: what it changes is in memory, the rest is read."""

from collections.abc import Iterator, Mapping, Sequence

from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Height
from trailboss.state.keys import KEY_WIDTHS, MISSING, STORAGE, storage_address, timer_moves
from trailboss.state.store import MemoryStore, ReadableStore, Undo


class BranchStore(MemoryStore):
    """A store in memory on top of a state that stays as it is, such as a view's. It goes no further back than that.

    Complexity: O(1) to begin, whatever the state holds: the trees, which never change, are shared.
    """

    __slots__ = ("_base", "_changed", "_heights", "_listed")

    def __init__(self, base: ReadableStore, changes: Mapping[bytes, bytes | None]) -> None:
        """Begin at the height of another state, with changes, which are part of that height.

        Raises:
            InvariantError: If a change is none that a store takes.
        """
        super().__init__()
        self._base = base
        self._changed: dict[bytes, bytes | None] = {}  # by full key; None for what is gone
        self._heights: dict[bytes, Height | None] = {}  # of timers that have changed, by id; None for what is gone
        self._listed: set[bytes] = set()  # actors whose slot names have been read from the base
        self.roots, self.state_root, self.height = base.roots, base.state_root, base.height - 1
        self.commit(base.height, changes)
        self._journal.clear()
        self._recent.clear()

    @property
    def floor(self) -> int:
        """Lowest height that the store can go back to: where it began."""
        return self._base.height

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        value = self._changed.get(key, MISSING)
        return self._base.read(key) if value is MISSING else value

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""
        height = self._heights.get(identity, MISSING)
        return self._base.timer_height(identity) if height is MISSING else height

    read_shared, timer_height_shared = read, timer_height

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending, as a live sequence that must not be kept.

        Complexity: the first time O(slots of the actor).
        """
        self._list(address)
        return super().slot_names(address)

    def check_invariants(self) -> None:
        """Compare trees, root, slots and timers' heights with the values alone. `InvariantError` if any differs."""
        for key, _ in self.iterate(STORAGE):
            self._list(storage_address(key))
        super().check_invariants()

    def _undo_above(self, height: int) -> list[Undo]:
        if height < self.floor:
            raise InvariantError(f"cannot go back to block {height}: this branch began after block {self.floor}")
        return super()._undo_above(height)

    def _values_in_order(self) -> Iterator[tuple[bytes, bytes]]:
        values: dict[bytes, bytes | None] = dict(each for name in KEY_WIDTHS for each in self._base.iterate(name))
        values.update(self._changed)
        return iter(sorted((key, value) for key, value in values.items() if value is not None))

    def _write(self, changes: Mapping[bytes, bytes | None]) -> None:
        self._changed.update(changes)
        self._heights.update(timer_moves(changes))

    def _change_slots(self, moves: list[tuple[bytes, bytes, bool]]) -> None:
        for address, _, _ in moves:
            self._list(address)
        super()._change_slots(moves)

    def _list(self, address: bytes) -> None:
        """Take over the slot names of an actor, before the first of them changes here."""
        if address not in self._listed:
            self._listed.add(address)
            for name in self._base.slot_names(address):
                self._slots.add(address, name)
