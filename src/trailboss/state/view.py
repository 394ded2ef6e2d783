"""The state as one block left it, to be read by any thread while the store goes on.

A view keeps nothing but the trees of its block, which never change. Values it reads in the store, and then asks whether
the store has changed them since: a store that somebody has a view of says what it is about to change, and what that was
before, and only then changes it. So whatever a reader meets, the old value or the new one, the trail of changes behind
its view leads it to the value of its block. Nobody copies the state, and nobody waits for anybody.

Decision: D-74
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.commitment import Roots, count_keys, iterate_values
from trailboss.state.keys import STORAGE, storage_range, timer_moves
from trailboss.state.slots import SCANNED_NAME_MAX, decode_slot


class _Unchanged(Enum):
    """A key that a change does not concern, as against one that had no value before it (None)."""

    UNCHANGED = "unchanged"


_UNCHANGED: Final = _Unchanged.UNCHANGED

FOLLOWED_MAX: Final = 16
"""Changes that a reader follows one by one; of more it makes one table, for itself and those after it."""


class Change:
    """What a store has changed in one step, set down before it did.

    Attributes:
        before: Value before it of every key that it changed; None for none.
        height: Height of the store after it.
        following: The point after it.
    """

    __slots__ = ("_timer_heights", "before", "following", "height")

    def __init__(self, before: Mapping[bytes, bytes | None], height: int, following: "Trail") -> None:
        self.before = before
        self.height = height
        self.following = following
        self._timer_heights: Mapping[bytes, Height | None] | None = None

    def timer_heights(self) -> Mapping[bytes, Height | None]:
        """Return the height before it of every timer that it set, moved or deleted, by id; None for none."""
        # Two threads may both work it out, and both get the same.
        if self._timer_heights is None:
            self._timer_heights = timer_moves(self.before)
        return self._timer_heights


class Trail:
    """A point in the life of a store, from which on its changes can be followed.

    Points know what comes after them and not what was before. So a change is kept as long as somebody has a view from
    before it, and no longer.

    Attributes:
        change: The next change; None as long as there is none.
    """

    __slots__ = ("change",)

    def __init__(self) -> None:
        self.change: Change | None = None

    def announce(self, before: Mapping[bytes, bytes | None], height: int) -> "Trail":
        """Set down a change that the store is about to make, and return the point after it.

        Args:
            before: Value of every key that it is about to change; None for none. Stays as it is.
            height: Height of the store after it.
        """
        following = Trail()
        # One assignment, so that a reader finds either nothing or all of it.
        self.change = Change(before, height, following)
        return following

    def __iter__(self) -> Iterator[Change]:
        """Yield the changes made so far, the oldest first."""
        change = self.change
        while change is not None:
            yield change
            change = change.following.change


class _Past(NamedTuple):
    """How far a view has followed the trail, and what it found there.

    Attributes:
        values: Value in the view of every key changed up to there; None for none.
        timer_heights: Height in the view of every timer changed up to there, by id; None for none.
        lowest: Lowest height that the store had up to there.
        trail: The point reached.
    """

    values: dict[bytes, bytes | None]
    timer_heights: dict[bytes, Height | None]
    lowest: int
    trail: Trail


class SharedStore(Protocol):
    """What a view needs of its store, from whichever thread."""

    def read_shared(self, key: bytes) -> bytes | None:
        """Return the value that a full key has now, or None if it has none."""
        ...

    def timer_height_shared(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due now, or None if there is none of that id."""
        ...


class StoreView:
    """The state after one block. Any thread may read it, several at once.

    Attributes:
        height: The block's.
        state_root: Root of the state.
        roots: The tree of each namespace.
    """

    __slots__ = ("_past", "_read_shared", "_timer_height_shared", "height", "roots", "state_root")

    def __init__(self, store: SharedStore, trail: Trail, height: int, state_root: Hash32, roots: Roots) -> None:
        """Look at a store as it stands.

        Args:
            store: Goes on.
            trail: Its present point.
            height: Its height.
            state_root: Its root.
            roots: Its trees.
        """
        self._read_shared: Callable[[bytes], bytes | None] = store.read_shared
        self._timer_height_shared = store.timer_height_shared
        self._past = _Past({}, {}, height, trail)
        self.height = height
        self.state_root = state_root
        self.roots = roots

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none.

        Complexity: O(1), and once O(keys changed since).
        """
        # First the store, then the past: what the store changes meanwhile has been announced.
        value = self._read_shared(key)
        past = self._past
        before = past.values.get(key, _UNCHANGED)
        if before is not _UNCHANGED:
            return before
        passed, change = 0, past.trail.change
        while change is not None:
            before = change.before.get(key, _UNCHANGED)
            if before is not _UNCHANGED:
                return before
            passed, change = passed + 1, change.following.change
        if passed > FOLLOWED_MAX:
            self._catch_up()
        return value

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due, or None if there is none of that id.

        Complexity: as `read`.
        """
        height = self._timer_height_shared(identity)
        past = self._past
        before = past.timer_heights.get(identity, _UNCHANGED)
        if before is not _UNCHANGED:
            return before
        passed = 0
        for change in past.trail:
            before = change.timer_heights().get(identity, _UNCHANGED)
            if before is not _UNCHANGED:
                return before
            passed += 1
        if passed > FOLLOWED_MAX:
            self._catch_up()
        return height

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending.

        Complexity: O(slots of the actor).
        """
        slots = self.iterate(STORAGE, *storage_range(address))
        names = (decode_slot(record)[0] for _, record in slots)
        return sorted(name for name in names if len(name) <= SCANNED_NAME_MAX)

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds, or how many below a bound; see `BlockStore.count`."""
        return count_keys(self.roots, namespace, bound)

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace, ascending; see `BlockStore.iterate`. The store may go on."""
        return iterate_values(self.roots, self.read, namespace, lower, upper)

    def changed_since(self, namespace: bytes) -> frozenset[bytes]:
        """Return the full keys of a namespace that the store has changed since, those changed back again included.

        Complexity: O(keys changed since).
        """
        self._catch_up()
        # At once, for another thread may be adding some.
        return frozenset(key for key in list(self._past.values) if key.startswith(namespace))

    def lowest_since(self) -> int:
        """Return the lowest height that the store has had since; that of the view unless it has gone back below it.

        Complexity: O(1), and once O(keys changed since).
        """
        past = self._past
        changes = list(past.trail)
        if len(changes) > FOLLOWED_MAX:
            self._catch_up()
        return min([past.lowest, *(change.height for change in changes)])

    def _catch_up(self) -> None:
        """Follow the trail to its end, so that the next reader need not, and no change is kept that has been followed.

        Threads may do so together: each puts the changes in from the oldest on, the first value of a key stays, and it
        does not matter whose point is kept.
        """
        values, timer_heights, lowest, trail = self._past
        for change in trail:
            for key, before in change.before.items():
                values.setdefault(key, before)
            for identity, height in change.timer_heights().items():
                timer_heights.setdefault(identity, height)
            lowest, trail = min(lowest, change.height), change.following
        self._past = _Past(values, timer_heights, lowest, trail)
