"""The state as of one block, readable from any thread while the store continues.

A view keeps only its block's trees, which never change. It reads values from the store; a store with views records the
old value of each key before it changes the key. A reader checks that change log after reading, so it always sees the
value as of its block. Views are lock-free and copy nothing. Decision: D-74.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.commitment import Roots, count_keys, iterate_values
from trailboss.state.keys import MISSING, STORAGE, storage_range, timer_moves
from trailboss.state.slots import SCANNED_NAME_MAX, decode_slot

FOLLOWED_MAX: Final = 16
"""Changes that a reader follows one by one; more are merged into one table, for all later readers."""


class ValueChange(Struct, frozen=True, eq=False):
    """One change of a store, recorded before it happens."""

    before: Mapping[bytes, bytes | None]  # previous value of every changed key; None for none
    height: int  # of the store after the change
    following: "Trail"  # the point after it
    # Previous height of every timer that it sets, moves or deletes, by id; None for none.
    timer_heights: Mapping[bytes, Height | None]


class Trail(Struct, eq=False):
    """A point in a store's life from which its changes can be followed; ``change`` is the next one, if any.

    Points refer forward only, so a change is kept only as long as an older view exists.
    """

    change: ValueChange | None = None

    def announce(self, before: Mapping[bytes, bytes | None], height: int) -> "Trail":
        """Record a coming change, and return the point after it; ``before`` must stay unmodified."""
        following = Trail()
        # One assignment, so that a reader finds either nothing or all of it.
        self.change = ValueChange(before, height, following, timer_moves(before))
        return following

    def __iter__(self) -> Iterator[ValueChange]:
        """Yield the changes made so far, the oldest first."""
        change = self.change
        while change is not None:
            yield change
            change = change.following.change


class _Past(NamedTuple):
    """How far a view has followed the trail, and its findings."""

    values: dict[bytes, bytes | None]  # value in the view of every key changed up to there; None for none
    timer_heights: dict[bytes, Height | None]  # height in the view of every timer changed up to there; None for none
    lowest: int  # lowest height of the store up to there
    trail: Trail  # the point reached


class SharedStore(Protocol):
    """What a view needs of its store, from any thread."""

    def read_shared(self, key: bytes) -> bytes | None:
        """Return the current value of a full key, or None if it has none."""

    def timer_height_shared(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due now, or None if there is none of that id."""


class StoreView:
    """The state after one block: its height, root and trees. Any thread can read it, several at once."""

    __slots__ = ("_past", "_read_shared", "_timer_height_shared", "height", "roots", "state_root")

    def __init__(
        self,
        store: SharedStore,
        trail: Trail,
        height: int,
        state_root: Hash32,
        roots: Roots,
        *,
        restored: Mapping[bytes, bytes | None] = MappingProxyType({}),
    ) -> None:
        """View a store from its current point on, after the block of a height, with that block's root and trees.

        ``restored`` has the value there of every key that the store has changed since; None for none.
        """
        self._read_shared: Callable[[bytes], bytes | None] = store.read_shared
        self._timer_height_shared = store.timer_height_shared
        self._past = _Past(dict(restored), timer_moves(restored), height, trail)
        self.height = height
        self.state_root = state_root
        self.roots = roots

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none. Complexity: O(1), and once O(keys changed since)."""
        # First the store, then the past: the store has announced what it changes meanwhile.
        value = self._read_shared(key)
        past = self._past
        before = past.values.get(key, MISSING)
        if before is not MISSING:
            return before
        passed, change = 0, past.trail.change
        while change is not None:
            before = change.before.get(key, MISSING)
            if before is not MISSING:
                return before
            passed, change = passed + 1, change.following.change
        if passed > FOLLOWED_MAX:
            self._catch_up()
        return value

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due, or None if there is none of that id. Complexity: as `read`."""
        height = self._timer_height_shared(identity)
        past = self._past
        passed = 0
        for heights in chain((past.timer_heights,), (change.timer_heights for change in past.trail)):
            before = heights.get(identity, MISSING)
            if before is not MISSING:
                return before
            passed += 1
        if passed > FOLLOWED_MAX + 1:
            self._catch_up()
        return height

    def slot_names(self, address: bytes) -> Sequence[bytes]:
        """Return the scannable slot names of an actor, ascending. Complexity: O(slots of the actor)."""
        slots = self.iterate(STORAGE, *storage_range(address))
        names = (decode_slot(record)[0] for _, record in slots)
        return sorted(name for name in names if len(name) <= SCANNED_NAME_MAX)

    def count(self, namespace: bytes, bound: bytes | None = None) -> int:
        """Return how many keys a namespace holds, or how many below a bound; see `Store.count`."""
        return count_keys(self.roots, namespace, bound)

    def iterate(
        self, namespace: bytes, lower: bytes | None = None, upper: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield full keys and values of a namespace, ascending; see `Store.iterate`. The store can continue."""
        return iterate_values(self.roots, self.read, namespace, lower, upper)

    def changed_since(self, namespace: bytes) -> frozenset[bytes]:
        """Return the full keys of a namespace that the store has set since, even if set back. O(keys changed since)."""
        self._catch_up()
        # At once, for another thread may be adding some.
        return frozenset(key for key in list(self._past.values) if key.startswith(namespace))

    def lowest_since(self) -> int:
        """Return the store's lowest height since, or the view's own. O(1), and once O(keys changed since)."""
        past = self._past
        changes = list(past.trail)
        if len(changes) > FOLLOWED_MAX:
            self._catch_up()
        return min([past.lowest, *(change.height for change in changes)])

    def _catch_up(self) -> None:
        """Follow the trail to its end, so that the next reader need not, and followed changes are released.

        Threads can do so concurrently: each adds the changes from the oldest on, the first value of a key stays, and
        either resulting point is right.
        """
        values, timer_heights, lowest, trail = self._past
        for change in trail:
            for key, before in change.before.items():
                values.setdefault(key, before)
            for identity, height in change.timer_heights.items():
                timer_heights.setdefault(identity, height)
            lowest, trail = min(lowest, change.height), change.following
        self._past = _Past(values, timer_heights, lowest, trail)
