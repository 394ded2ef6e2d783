"""Waiting timers by what they bid, so that the best at any cycle basefee are found without looking at all.

A bid of max_fee and tip offers the effective tip min(tip, max_fee - basefee). Which of the two binds depends on the
basefee alone: the tip does for as long as the basefee is at most max_fee - tip, the bid's *headroom*. So a shelf is a
search tree in order of headroom, and each node of it knows the highest max_fee and the highest tip below it, each with
the first in rank of those that bid it. min(highest tip, highest max_fee - basefee) is never less than the best
effective tip below the node, and is exactly that unless the basefee lies within the node's headrooms, as it does for
one node of a level. Whatever is bid, a search from the best on goes astray at most once a level.

Decision: D-39
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, Protocol

from trailboss.primitives.errors import InvariantError

FANOUT: Final = 16
"""Most children of a node."""
MERGED_MAX: Final = FANOUT // 2
"""Two neighbours with no more children than this together become one."""

Place = tuple[int, int | bytes, bytes]
"""Where something belongs on a shelf; unique there."""
Bound = tuple[int, ...]
"""The highest max_fee or tip, negated, and then weight, negated, height and sequence of the first with it."""

_place_of = attrgetter("place")


class Item(Protocol):
    """What stands on a shelf: timers with one bid and one weight, of which the first in rank counts."""

    @property
    def place(self) -> Place:
        """Where it belongs."""

    @property
    def by_fee(self) -> Bound:
        """Its bound with its max_fee."""

    @property
    def by_tip(self) -> Bound:
        """Its bound with its tip."""


class Node:
    """A stretch of a shelf.

    Attributes:
        children: In order of their places: nodes, or at the bottom items.
        is_bottom: Whether they are items.
        place: That of the first item below.
        by_fee: The least of its children, which is that of the highest max_fee.
        by_tip: The least of its children, which is that of the highest tip.
    """

    __slots__ = ("by_fee", "by_tip", "children", "is_bottom", "place")

    place: Place
    by_fee: Bound
    by_tip: Bound

    def __init__(self, children: "list[Item | Node]", *, is_bottom: bool) -> None:
        self.children = children
        self.is_bottom = is_bottom
        self.measure()

    def measure(self) -> None:
        """Work out its place and bounds from those of its children. Complexity: O(1)."""
        self.place = self.children[0].place
        self.by_fee = min([child.by_fee for child in self.children])
        self.by_tip = min([child.by_tip for child in self.children])


class Shelf:
    """A search tree of items.

    Attributes:
        root: Of the tree; None while it is empty.
    """

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Node | None = None

    def add(self, items: Sequence[Item]) -> None:
        """Put items on the shelf. Complexity: O(log n) each; O(1) each onto an empty shelf, if they are in order."""
        if self.root is None and items:
            nodes = _above(sorted(items, key=_place_of), is_bottom=True)
            while len(nodes) > 1:
                nodes = _above(nodes, is_bottom=False)
            self.root = nodes[0]
            return
        for item in items:
            path = self._path(item.place)
            bottom = path[-1]
            bottom.children.insert(bisect_left(bottom.children, item.place, key=_place_of), item)
            self._climb(path)

    def remove(self, place: Place) -> None:
        """Take an item from the shelf.

        Complexity: O(log n).

        Raises:
            InvariantError: If there is none at this place.
        """
        path = self._path(place)
        children = path[-1].children if path else []
        number = bisect_left(children, place, key=_place_of)
        if number == len(children) or children[number].place != place:
            raise InvariantError(f"nothing stands at the place {place} of the auction")
        del children[number]
        self._climb(path)

    def change(self, place: Place) -> None:
        """Hear that the bounds of the item at a place are new. Complexity: O(log n)."""
        for node in reversed(self._path(place)):
            before = node.by_fee, node.by_tip
            node.measure()
            if before == (node.by_fee, node.by_tip):
                return

    def with_fee(self, basefee: int) -> Iterator[Item]:
        """Yield the items whose max_fee is a basefee at least, by place. Complexity: O(log n) each."""
        waiting: list[Item | Node] = [] if self.root is None else [self.root]
        while waiting:
            each = waiting.pop()
            if -each.by_fee[0] >= basefee:
                if isinstance(each, Node):
                    waiting += reversed(each.children)
                else:
                    yield each

    def items(self) -> list[Item]:
        """Return all items, by place. Complexity: O(n)."""
        level: list[Item | Node] = [] if self.root is None else [self.root]
        while level and isinstance(level[0], Node):
            level = [child for node in level if isinstance(node, Node) for child in node.children]
        return [item for item in level if not isinstance(item, Node)]

    def _path(self, place: Place) -> list[Node]:
        """Return the nodes from the root down to where a place belongs."""
        path: list[Node] = []
        node: Item | Node | None = self.root
        while isinstance(node, Node):
            path.append(node)
            node = None if node.is_bottom else node.children[_number(node, place)]
        return path

    def _climb(self, path: list[Node]) -> None:
        """Split, join and measure from the bottom up, after the children of the last of a path have changed."""
        while len(path) > 1:
            node, parent = path.pop(), path[-1]
            siblings, number = parent.children, parent.children.index(node)
            if not node.children:
                del siblings[number]
                continue
            siblings[number : number + 1] = _halves(node)
            lower = min(number, len(siblings) - 2)
            if lower >= 0:
                siblings[lower : lower + 2] = _joined(siblings[lower], siblings[lower + 1])
        root = path[0]
        if root.children:
            halves = _halves(root)
            root = root if len(halves) == 1 else Node(halves, is_bottom=False)
            while not root.is_bottom and len(root.children) == 1 and isinstance(root.children[0], Node):
                root = root.children[0]
        self.root = root if root.children else None


def _above(level: "Sequence[Item | Node]", *, is_bottom: bool) -> list[Node]:
    """Return the nodes above the things of one level, with room for more if there are several."""
    size = FANOUT if len(level) <= FANOUT else MERGED_MAX + 1
    return [Node([*level[start : start + size]], is_bottom=is_bottom) for start in range(0, len(level), size)]


def _number(node: Node, place: Place) -> int:
    return max(0, bisect_right(node.children, place, key=_place_of) - 1)


def _halves(node: Node) -> "list[Item | Node]":
    """Return a node, measured, or two that share its children if they are too many."""
    if len(node.children) <= FANOUT:
        node.measure()
        return [node]
    middle = len(node.children) // 2
    parts = node.children[:middle], node.children[middle:]
    return [Node(part, is_bottom=node.is_bottom) for part in parts]


def _joined(lower: Item | Node, upper: Item | Node) -> "list[Item | Node]":
    """Return two neighbours, or one node with the children of both if they are few, so that nodes stay few."""
    if isinstance(lower, Node) and isinstance(upper, Node):
        children = [*lower.children, *upper.children]
        if len(children) <= MERGED_MAX:
            return [Node(children, is_bottom=lower.is_bottom)]
    return [lower, upper]
