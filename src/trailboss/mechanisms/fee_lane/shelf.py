"""Waiting timers by what they offer, so that the best at any lane basefee are found without looking at all.

A timer with the two caps max_fee and max_priority offers the tip min(max_priority, max_fee - basefee). Which of the two
binds depends on the basefee alone: max_priority does for as long as the basefee is at most max_fee - max_priority, the
timer's *headroom*. So a shelf is a search tree in order of headroom, and each node of it knows the highest max_fee and
the highest max_priority below it. min(highest max_priority, highest max_fee - basefee) is never less than the best tip
below the node, and is exactly that unless the basefee lies within the node's headrooms, as it does for one node of a
level. Whatever fees the owners choose, a search from the best on goes astray at most once a level.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

from trailboss.model.timers import FEES_WIDTH, asks_agent
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Price

FANOUT: Final = 16
"""Most children of a node."""
MERGED_MAX: Final = FANOUT // 2
"""Two neighbours with no more children than this together become one."""

Place = tuple[int, bytes, bytes, bytes]
"""Headroom, actor, fees and payer of a group: its place on a shelf, unique there."""


class Group(msgspec.Struct, eq=False, gc=False):
    """The waiting timers of one actor that offer the same and have the same payer.

    Attributes:
        actor: 20 bytes.
        payer: 20 bytes.
        fees: `Timer.fees` of all of them.
        is_over_cap: Whether their gas limits are above the lane's cap; then they are on no shelf.
        max_fee: Cap of lane basefee and tip together; 0 while it is settled at the fire only.
        max_priority: Cap of the tip; 0 likewise.
        last_expiry: None of them expires after it; perhaps all do before.
        ids: Their ids, ascending.
    """

    actor: bytes
    payer: bytes
    fees: bytes
    is_over_cap: bool
    max_fee: Price
    max_priority: Price
    last_expiry: int = 0
    ids: list[bytes] = []

    @property
    def is_asking(self) -> bool:
        """Whether an agent prices the timers, the actor's or their own."""
        return asks_agent(self.fees)

    @property
    def is_frozen(self) -> bool:
        """Whether the fees were fixed when the timers were scheduled."""
        return len(self.fees) == FEES_WIDTH

    @property
    def place(self) -> Place:
        """Where it belongs on a shelf."""
        return self.max_fee - self.max_priority, self.actor, self.fees, self.payer


class Node:
    """A stretch of a shelf: nodes in order of headroom, or, at the bottom, groups in no order.

    Attributes:
        start: At or before the places of all groups below, and after those of the node before.
        nodes: Its children; empty at the bottom.
        groups: Its groups; empty above the bottom.
        last_expiry: No timer below expires after it.
    """

    __slots__ = ("_best_fee", "_best_priority", "_is_stale", "groups", "last_expiry", "nodes", "start")

    last_expiry: int
    _best_fee: tuple[int, bytes]
    """The highest max_fee, negated, and the first id with it."""
    _best_priority: tuple[int, bytes]
    """The highest max_priority, negated, and the first id with it."""

    def __init__(self, start: Place, nodes: list["Node"], groups: list[Group]) -> None:
        self.start = start
        self.nodes = nodes
        self.groups = groups
        self._measure()

    def __len__(self) -> int:
        """Return the number of its children."""
        return len(self.nodes) or len(self.groups)

    def best(self, basefee: int) -> tuple[int, bytes]:
        """Return a tip that none of its timers exceeds, and an id that none with that tip precedes.

        The tip is negative if all are priced out.

        Complexity: O(1); O(``FANOUT``) after its best has left.
        """
        if self._is_stale:
            self._measure()
        fee, first_by_fee = self._best_fee
        priority, first_by_priority = self._best_priority
        room = -fee - basefee
        return (room, first_by_fee) if room < -priority else (-priority, first_by_priority)

    def note(self, group: Group) -> None:
        """Take into account what a group below offers, its first id, its last expiry and its place."""
        first = group.ids[0]
        self.start = min(self.start, group.place)
        self.last_expiry = max(self.last_expiry, group.last_expiry)
        self._best_fee = min(self._best_fee, (-group.max_fee, first))
        self._best_priority = min(self._best_priority, (-group.max_priority, first))

    def forget(self, first: bytes) -> None:
        """Take into account that a timer, once the first of its group, has left."""
        if first in (self._best_fee[1], self._best_priority[1]):
            self._is_stale = True

    def find(self, place: Place) -> int:
        """Return the number of the child in which a place belongs."""
        return max(0, bisect_right(self.nodes, place, key=_start_of) - 1)

    def halves(self) -> tuple["Node", "Node"]:
        """Return two nodes that share its children."""
        middle = len(self) // 2
        if self.nodes:
            lower, upper = self.nodes[:middle], self.nodes[middle:]
            return Node(self.start, lower, []), Node(upper[0].start, upper, [])
        ordered = sorted(self.groups, key=_place_of)
        return Node(self.start, [], ordered[:middle]), Node(ordered[middle].place, [], ordered[middle:])

    def joined(self, following: "Node") -> "Node":
        """Return one node with the children of this and of the next."""
        return Node(self.start, self.nodes + following.nodes, self.groups + following.groups)

    def _measure(self) -> None:
        for node in self.nodes:
            if node._is_stale:
                node._measure()
        self._best_fee = min(
            [node._best_fee for node in self.nodes] or [(-group.max_fee, group.ids[0]) for group in self.groups]
        )
        self._best_priority = min(
            [node._best_priority for node in self.nodes]
            or [(-group.max_priority, group.ids[0]) for group in self.groups]
        )
        self.last_expiry = max(
            [node.last_expiry for node in self.nodes] or [group.last_expiry for group in self.groups]
        )
        self._is_stale = False


class Shelf:
    """Groups of actors of equal weight, in order of headroom.

    Attributes:
        root: Of the tree; None while it has no group.
    """

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Node | None = None

    def add(self, group: Group) -> None:
        """Put a group on the shelf. Complexity: O(log n) for n groups, amortized."""
        if self.root is None:
            self.root = Node(group.place, [], [group])
            return
        path, node = self._descend(self.root, group)
        for each, _ in path:
            each.note(group)
        node.note(group)
        node.groups.append(group)
        while len(node) > FANOUT:
            halves = node.halves()
            if not path:
                self.root = Node(node.start, list(halves), [])
                return
            node, number = path.pop()
            node.nodes[number : number + 1] = halves

    def remove(self, group: Group, first: bytes) -> None:
        """Take a group from the shelf.

        Complexity: O(log n) for n groups.

        Args:
            group: The group.
            first: The id that was its first when the shelf last heard of it.

        Raises:
            InvariantError: If it is not there.
        """
        path, node = self._descend(self.root, group) if self.root is not None else ([], None)
        if node is None or group not in node.groups:
            raise InvariantError(f"the group of timer {first.hex()} is not on the shelf of its actor")
        node.groups.remove(group)
        node.forget(first)
        while path:
            parent, number = path.pop()
            parent.forget(first)
            _tidy(parent, number)
            node = parent
        while len(node.nodes) == 1:
            node = node.nodes[0]
        self.root = node if len(node) else None

    def change(self, group: Group, first: bytes) -> None:
        """Hear that a group has another first id or last expiry.

        Complexity: O(log n).

        Args:
            group: The group.
            first: The id that was its first when the shelf last heard of it.
        """
        if self.root is not None:
            path, node = self._descend(self.root, group)
            for each in (*(parent for parent, _ in path), node):
                if first != group.ids[0]:
                    each.forget(first)
                each.note(group)

    def groups(self) -> Iterator[Group]:
        """Yield all groups, those of lower headroom not always first. Complexity: O(1) a group."""
        nodes = [] if self.root is None else [self.root]
        while nodes:
            node = nodes.pop()
            nodes += node.nodes
            yield from node.groups

    def _descend(self, node: Node, group: Group) -> tuple[list[tuple[Node, int]], Node]:
        """Return the way to where a group is or belongs, as nodes and numbers of children, and the node there."""
        place = group.place
        path = []
        while node.nodes:
            number = node.find(place)
            path.append((node, number))
            node = node.nodes[number]
        return path, node


def _tidy(parent: Node, number: int) -> None:
    """Drop a child that is empty; join it to a neighbour if both are small, so that nodes stay few."""
    nodes = parent.nodes
    if not len(nodes[number]):
        del nodes[number]
        return
    lower = min(number, len(nodes) - 2)
    if lower >= 0 and len(nodes[lower]) + len(nodes[lower + 1]) <= MERGED_MAX:
        nodes[lower : lower + 2] = [nodes[lower].joined(nodes[lower + 1])]


def _place_of(group: Group) -> Place:
    return group.place


def _start_of(node: Node) -> Place:
    return node.start
