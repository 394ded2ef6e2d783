"""Ranking: the order in which timers that bid get their turns.

There are two ways to it, with one outcome: `ranked_first` finds the first without looking at the others, by a
best-first search of the bid trees; `ranked_all` sorts all, which costs less a timer if most of them are asked for.
Spec: CIP-1v1 §3, CIP-1v3 §3, overview. Decision: D-11, D-19, D-30, D-39.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from sortedcontainers import SortedDict

from trailboss.mechanisms.bid_tree import BidNode, BidTree, Bounded, Bounds, Place
from trailboss.model.timers import is_stated, stated_fees
from trailboss.primitives.units import Price

SORTED_MAX: Final = 8  # up to this many timers for each that may be asked for, sorting takes less time than a search

Member = TypeVar("Member")
Key = tuple[int, int, Any]
"""What a timer is ranked by, ascending; its last part is the timer's member of its group, and no two share that."""


class BidGroup(msgspec.Struct, Generic[Member], eq=False, gc=False, kw_only=True):
    """Timers of one actor and one payer that bid the same: an item of a bid tree while some are ranked."""

    actor: bytes
    payer: bytes
    fees: bytes  # `Timer.fees` of all of them
    members: list[Member] = []  # what identifies those that are ranked, in rank
    ends: int = 0  # last height at which any may fire, negated; 0 where that does not matter
    bounds: Bounds = ()  # up to date while it is in a tree
    place: Place = ()  # headroom, and what sets groups with the same apart: searches ask for it all the time

    def __post_init__(self) -> None:
        max_fee, max_priority = self.caps
        self.place = max_fee - max_priority, self.actor, self.payer, self.fees

    @property
    def is_stated(self) -> bool:
        """Whether the timers have a bid of their own, rather than the default."""
        return is_stated(self.fees)

    @property
    def caps(self) -> tuple[Price, Price]:
        """The caps of basefee and tip together and of the tip; 0 while there is no bid of their own."""
        max_fee, max_priority = stated_fees(self.fees) if self.is_stated else (0, 0)
        return Price(max_fee), Price(max_priority)

    @property
    def precedence(self) -> int:
        """What decides between timers that offer the same, before their members do; ascending."""
        return 0

    def measure(self) -> Bounds:
        """Work out the bounds, where some of its timers are ranked, and return those before."""
        before, precedence, first = self.bounds, self.precedence, self.members[0]
        max_fee, max_priority = self.caps
        self.bounds = ((-max_fee, precedence, first), (-max_priority, precedence, first), self.ends)
        return before


AnyGroup = TypeVar("AnyGroup", bound=BidGroup[Any])


def grow(groups: Mapping[AnyGroup, bool], tree_of: Callable[[AnyGroup], BidTree[AnyGroup]]) -> None:
    """Bring trees up to date with groups that have new members, in rank; each is given with whether it is new there."""
    added: dict[BidTree[AnyGroup], list[AnyGroup]] = {}
    for group, is_new in groups.items():
        before = group.measure()
        if is_new:
            added.setdefault(tree_of(group), []).append(group)
        else:
            tree_of(group).change(group, before)
    for tree, new in added.items():
        tree.add(new)


def shrink(group: AnyGroup, member: object, tree: BidTree[AnyGroup]) -> None:
    """Remove a member of a group, and the group from its tree after the last one."""
    number = bisect_left(group.members, member)
    del group.members[number]
    if not group.members:
        tree.remove(group)
    elif number == 0:
        tree.change(group, group.measure())


class GasLimits:
    """How many timers wait with each gas limit."""

    def __init__(self) -> None:
        self._counts = SortedDict()
        self.smallest = 0  # cycles; 0 while there are none

    def add(self, gas_limit: int) -> None:
        """Count a timer. Complexity: O(1), O(log n) for the first of its limit."""
        self._counts[gas_limit] = self._counts.get(gas_limit, 0) + 1
        if not self.smallest or gas_limit < self.smallest:
            self.smallest = gas_limit

    def remove(self, gas_limit: int) -> None:
        """Count a timer no longer. Complexity: O(1), O(log n) for the last of its limit."""
        self._counts[gas_limit] -= 1
        if not self._counts[gas_limit]:
            del self._counts[gas_limit]
            self.smallest = next(iter(self._counts), 0)

    def items(self) -> list[tuple[int, int]]:
        """Return (gas limit, timers), ascending."""
        return list(self._counts.items())


class PricedTree(NamedTuple):
    """A tree as one block's selection sees it."""

    tree: BidTree[Any]
    tip: int | None  # of all of them, where they bid the default; None where it follows from each group's caps
    weight: int = 1  # by which their tips are multiplied


class Lineup(NamedTuple):
    """All timers that may be ranked, in a block."""

    trees: Sequence[PricedTree]  # they do not change while the order is asked for
    basefee: int  # what bids must cover, base units per cycle
    out: Container[bytes]  # payers whose timers are left out, as of when the first would come. Decision: D-78.
    # Groups and nodes whose timers have all expired before it are left out, where bounds say so; other expired timers
    # are not.
    height: int = 0
    # Members that are not ranked with their groups, to keys of their own; None for those that cannot fire.
    apart: Mapping[Any, Key | None] = MappingProxyType({})


def ranked(lineup: Lineup, waiting: int, asked_for: int) -> Iterator[Any]:
    """Return the members of a lineup in rank, by the way that costs less if so many wait and are asked for."""
    return ranked_all(lineup) if waiting <= SORTED_MAX * asked_for else ranked_first(lineup)


def _keyed(priced: PricedTree, items: Iterable[Bounded], lineup: Lineup) -> Iterator[tuple[Any, ...]]:
    """Yield, for each item of a tree, a key that none below it comes before, and what `ranked_first` keeps with it.

    Items of which all timers are priced out or have expired are left out.
    """
    _, tip, weight = priced
    basefee, ended = lineup.basefee, -lineup.height
    for item in items:
        by_fee, best, ends = item.bounds
        if ends > ended:
            continue
        value, precedence, member = best
        if tip is not None:
            value = -tip
        elif by_fee[0] + basefee > value:
            value, precedence, member = by_fee
            value += basefee
        if value <= 0:
            yield value * weight, precedence, member, False, item, priced, 0


def ranked_all(lineup: Lineup) -> Iterator[Any]:
    """Return in rank the members that can fire. Complexity: O(n) for n timers, and O(n log n) as they are asked for."""
    apart = lineup.apart
    found: dict[tuple[int, int], list[Any]] = {}
    for priced in lineup.trees:
        for value, precedence, _, _, group, _, _ in _keyed(priced, priced.tree.items(), lineup):
            if group.payer not in lineup.out:
                members = [each for each in group.members if each not in apart] if apart else group.members
                found.setdefault((value, precedence), []).extend(members)
    for key in apart.values():
        if key is not None:
            found.setdefault(key[:2], []).append(key[2])
    return chain.from_iterable(sorted(found[key]) for key in sorted(found))


def ranked_first(lineup: Lineup) -> Iterator[Any]:
    """Yield the members of a lineup in rank, worked out as they are asked for; those that cannot fire are left out.

    The best in sight is either a timer, and comes next, or a node of a tree, and is opened. Complexity: O(k log n) for
    the first k timers of n groups, at ``FANOUT`` steps a level. It depends neither on the number of timers in a group
    nor on the bids. A payer that is left out costs O(log n) for each different bid of its timers that would come first.
    """
    out, apart = lineup.out, lineup.apart
    # The key of the best; whether it is ranked apart, as its group may have the same key; a node or a group, its tree,
    # and how many members of the group have come.
    seen: list[tuple[Any, ...]] = [(*key, True, None, None, 0) for key in apart.values() if key]
    for priced in lineup.trees:
        seen += _keyed(priced, [priced.tree.root] if priced.tree.root else (), lineup)
    heapify(seen)
    while seen:
        value, precedence, member, is_apart, best, priced, number = seen[0]
        if isinstance(best, BidNode):
            heappop(seen)
            for each in _keyed(priced, best.children, lineup):
                heappush(seen, each)
        elif is_apart:
            heappop(seen)
            yield member
        else:
            members, is_out = best.members, best.payer in out
            number += 1
            if is_out or number == len(members):
                heappop(seen)
            else:
                heapreplace(seen, (value, precedence, members[number], False, best, priced, number))
            if not is_out and member not in apart:
                yield member
