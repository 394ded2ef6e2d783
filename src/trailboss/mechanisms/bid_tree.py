"""Waiting timers by what they bid, so that the best at any basefee are found without looking at all.

A bid of two caps, max_fee and max_priority, offers the tip min(max_priority, max_fee - basefee). Which cap binds
depends on the basefee alone: max_priority does while the basefee is at most max_fee - max_priority, the bid's
*headroom*. So a tree orders its items by headroom, and each node knows the highest max_fee and the highest max_priority
below it, each with the first in rank of those that bid it. min(highest max_priority, highest max_fee - basefee) is
never less than the best tip below the node, and is exactly that unless the basefee lies within the node's headrooms, as
it does for one node of a level. Whatever is bid, a search from the best on goes astray at most once a level.

This is a priority search tree (McCreight, 1985) with the fan-out of a B-tree and two priorities instead of one.
Decision: D-39.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from operator import attrgetter, eq
from typing import Any, Final, Generic, Protocol, TypeVar

from trailboss.primitives.errors import InvariantError

FANOUT: Final = 16  # most children of a node
MERGED_MAX: Final = FANOUT // 2  # two neighbours with no more children than this together become one

Place = tuple[Any, ...]  # where an item belongs in its tree; unique there
Bounds = tuple[Any, ...]
"""What an item is searched by; a node has the least of each below it. Of groups of timers they are max_fee and
max_priority, negated, each with what breaks ties, and the last height at which any of the timers may fire, negated."""

_place_of = attrgetter("place")


class Bounded(Protocol):
    """An item of a tree: timers with one bid, of which the first in rank counts."""

    @property
    def place(self) -> Place:
        """Where it belongs."""

    @property
    def bounds(self) -> Bounds:
        """What it is searched by."""


ItemT = TypeVar("ItemT", bound=Bounded)


class BidNode(Generic[ItemT]):
    """A stretch of a tree."""

    __slots__ = ("bounds", "children", "is_bottom", "place")

    bounds: Bounds  # the least of each bound of its children
    place: Place  # at or before those of all items below, and after those of the node before

    def __init__(self, children: "list[ItemT | BidNode[ItemT]]", *, is_bottom: bool) -> None:
        self.children = children  # nodes, or at the bottom items, in order of their places
        self.is_bottom = is_bottom
        self.place = children[0].place
        self.measure()

    def measure(self) -> None:
        """Work out its bounds from those of its children. Complexity: O(``FANOUT``)."""
        self.bounds = tuple(map(min, zip(*[child.bounds for child in self.children], strict=True)))

    def include(self, item: ItemT) -> None:
        """Extend place and bounds to an item below. Complexity: O(1)."""
        self.place = min(self.place, item.place)
        self.bounds = tuple(map(min, self.bounds, item.bounds))

    def rests_on(self, bounds: Bounds) -> bool:
        """Return whether any of its bounds is one of an item's. Complexity: O(1)."""
        return any(map(eq, self.bounds, bounds))

    def child_number(self, place: Place) -> int:
        """Return the number of the child in which a place belongs."""
        return max(0, bisect_right(self.children, place, key=_place_of) - 1)


class BidTree(Generic[ItemT]):
    """A search tree of items; all have as many bounds."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: BidNode[ItemT] | None = None  # the topmost node; None while the tree is empty

    def add(self, items: Iterable[ItemT]) -> None:
        """Add items. Complexity: O(log n) each; O(1) each to an empty tree, if they are in order."""
        if self.root is not None:
            for item in items:
                self._insert(item)
            return
        level: list[ItemT | BidNode[ItemT]] = sorted(items, key=_place_of)
        is_bottom = True
        while len(level) > 1 or (level and is_bottom):
            # Nodes have room for more if there are several.
            size = FANOUT if len(level) <= FANOUT else MERGED_MAX + 1
            level = [BidNode(level[start : start + size], is_bottom=is_bottom) for start in range(0, len(level), size)]
            is_bottom = False
        if level and isinstance(level[0], BidNode):
            self.root = level[0]

    def remove(self, item: ItemT) -> None:
        """Remove an item, whose bounds are as the tree knows them, in O(log n). `InvariantError` if it is not there."""
        path = self._path(item.place)
        children = path[-1].children if path else []
        number = bisect_left(children, item.place, key=_place_of)
        if number == len(children) or children[number].place != item.place:
            raise InvariantError(f"a bid tree has nothing at {item.place}")
        del children[number]
        while len(path) > 1:
            node, parent = path.pop(), path[-1]
            if not node.children:
                parent.children.remove(node)
                continue
            if node.rests_on(item.bounds):
                node.measure()
            if len(node.children) < MERGED_MAX:
                _merge(parent.children, parent.children.index(node))
        root = path[0]
        if root.children and root.rests_on(item.bounds):
            root.measure()
        while len(root.children) == 1 and isinstance(root.children[0], BidNode):
            root = root.children[0]
        self.root = root if root.children else None

    def change(self, item: ItemT, before: Bounds) -> None:
        """Take in the new bounds of an item. Complexity: O(log n)."""
        for node in reversed(self._path(item.place)):
            former = node.bounds
            if node.rests_on(before):
                node.measure()
            else:
                node.include(item)
            if node.bounds == former:
                return

    def items(self, basefee: int | None = None) -> Iterator[ItemT]:
        """Yield the items by place; with a basefee those whose max_fee is at least that.

        The first bound must begin with max_fee. Complexity: O(n), or O(log n) for each item above the basefee.
        """
        waiting: list[ItemT | BidNode[ItemT]] = [] if self.root is None else [self.root]
        while waiting:
            each = waiting.pop()
            if basefee is not None and -each.bounds[0][0] < basefee:
                continue
            if isinstance(each, BidNode):
                waiting += reversed(each.children)
            else:
                yield each

    def _path(self, place: Place) -> list[BidNode[ItemT]]:
        path: list[BidNode[ItemT]] = []
        node: ItemT | BidNode[ItemT] | None = self.root
        while isinstance(node, BidNode):
            path.append(node)
            node = None if node.is_bottom else node.children[node.child_number(place)]
        return path

    def _insert(self, item: ItemT) -> None:
        """Add an item to a tree that has some; split the nodes that grow too large."""
        path = self._path(item.place)
        for node in path:
            node.include(item)
        insort(path[-1].children, item, key=_place_of)
        while len(path[-1].children) > FANOUT:
            node = path.pop()
            middle, is_bottom = len(node.children) // 2, node.is_bottom
            halves = [BidNode(part, is_bottom=is_bottom) for part in (node.children[:middle], node.children[middle:])]
            halves[0].place = node.place
            if not path:
                self.root = BidNode([*halves], is_bottom=False)
                return
            number = path[-1].children.index(node)
            path[-1].children[number : number + 1] = halves


def _merge(siblings: list[ItemT | BidNode[ItemT]], number: int) -> None:
    """Merge a node with a neighbour, if together they have few children, so that nodes stay few."""
    lower = min(number, len(siblings) - 2)
    if lower < 0:
        return
    first, second = siblings[lower : lower + 2]
    if isinstance(first, BidNode) and isinstance(second, BidNode):
        children = first.children + second.children
        if len(children) <= MERGED_MAX:
            merged = BidNode(children, is_bottom=first.is_bottom)
            merged.place = first.place
            siblings[lower : lower + 2] = [merged]
