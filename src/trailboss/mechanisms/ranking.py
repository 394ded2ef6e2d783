"""Ranking: the order in which timers that bid get their turns.

There are two ways to it, with one outcome: `ranked_first` finds the first without looking at the others, by a
best-first search of the bid trees; `ranked_all` sorts all, which costs less a timer if most of them are asked for.

Spec: CIP-1v1 §3, CIP-1v3 §3, overview
Decision: D-11, D-19, D-30, D-39
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, count
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from trailboss.mechanisms.bid_tree import BidNode, BidTree, Bounded, Bounds, Place
from trailboss.model.timers import is_stated, stated_fees
from trailboss.primitives.units import Price

SORTED_MAX: Final = 8
"""Up to this many timers for each that may be asked for, sorting all takes less time than a search for the first."""

Member = TypeVar("Member")
Key = tuple[Any, ...]
"""What a timer is ranked by, ascending; its last part is the timer's member of its group, and no two share that."""


class BidGroup(msgspec.Struct, Generic[Member], eq=False, gc=False, kw_only=True):
    """Timers of one actor and one payer that bid the same: an item of a bid tree while some are ranked."""

    actor: bytes
    payer: bytes
    fees: bytes  # `Timer.fees` of all of them
    max_fee: Price = Price(0)  # cap of basefee and tip together; 0 while there is no bid of their own
    max_priority: Price = Price(0)  # cap of the tip; 0 likewise
    place: Place = ()
    members: list[Member] = []  # what identifies those that are ranked, in rank
    bounds: Bounds = ()  # up to date while it is in a tree

    def __post_init__(self) -> None:
        """Read the caps from the fees."""
        if self.is_stated:
            max_fee, max_priority = stated_fees(self.fees)
            self.max_fee, self.max_priority = Price(max_fee), Price(max_priority)
        self.place = self.max_fee - self.max_priority, self.actor, self.payer, self.fees

    @property
    def is_stated(self) -> bool:
        """Whether the timers have a bid of their own, rather than the default."""
        return is_stated(self.fees)

    def measure(self) -> Bounds:
        """Work out the bounds, where some of its timers are ranked, and return those before."""
        before, first = self.bounds, self.members[0]
        self.bounds = ((-self.max_fee, first), (-self.max_priority, first))
        return before


GroupT = TypeVar("GroupT", bound=BidGroup[Any])


def grow(groups: Mapping[GroupT, bool], tree_of: Callable[[GroupT], BidTree[GroupT]]) -> None:
    """Bring trees up to date with groups that have new members, in rank.

    Args:
        groups: Each group to whether it is new in its tree.
        tree_of: Group to its tree.
    """
    added: dict[BidTree[GroupT], list[GroupT]] = {}
    for group, is_new in groups.items():
        before = group.measure()
        if is_new:
            added.setdefault(tree_of(group), []).append(group)
        else:
            tree_of(group).change(group, before)
    for tree, new in added.items():
        tree.add(new)


def shrink(group: GroupT, member: object, tree: BidTree[GroupT]) -> None:
    """Remove a member of a group, and the group from its tree after the last one."""
    number = bisect_left(group.members, member)
    del group.members[number]
    if not group.members:
        tree.remove(group)
    elif number == 0:
        tree.change(group, group.measure())


class PricedTree(NamedTuple):
    """A tree as one block's selection sees it."""

    tree: BidTree[Any]
    tip: int | None  # of all of them, where they bid the default; None where it follows from each group's caps
    weight: int = 1  # by which their tips are multiplied


class Lineup(NamedTuple):
    """All timers that may be ranked, in a block."""

    trees: Sequence[PricedTree]  # they do not change while the order is asked for
    basefee: int  # what bids must cover, base units per cycle
    # Payers whose timers are left out, as of the moment at which one of them would come. Decision: D-78.
    out: Container[bytes]
    # Groups and nodes whose timers have all expired before it are left out, where bounds say so; other expired timers
    # are not.
    height: int = 0
    # Members that are not ranked with their groups, to keys of their own; None for those that cannot fire.
    apart: Mapping[Any, Key | None] = MappingProxyType({})


def ranked(lineup: Lineup, waiting: int, asked_for: int) -> Iterator[Any]:
    """Return the members of a lineup in rank, by the way that costs less if so many wait and are asked for."""
    return ranked_all(lineup) if waiting <= SORTED_MAX * asked_for else ranked_first(lineup)


def _keyed(priced: PricedTree, items: Iterable[Bounded], basefee: int, height: int) -> Iterator[tuple[Key, Any]]:
    """Yield items of a tree with what the best of each group is ranked by, or what nothing below a node comes before.

    Items of which all timers are priced out or have expired are left out.
    """
    _, tip, weight = priced
    for item in items:
        bounds = item.bounds
        if len(bounds) > 2 and -bounds[2] < height:
            continue
        by_fee, best = bounds[0], bounds[1]
        if tip is not None:
            value = -tip
        else:
            value, room = best[0], by_fee[0] + basefee
            if room > value:
                value, best = room, by_fee
        if value <= 0:
            value *= weight
            yield best if value == best[0] else (value, *best[1:]), item


def ranked_all(lineup: Lineup) -> Iterator[Any]:
    """Return the members of a lineup in rank; those that cannot fire are left out.

    Complexity: O(n) for n timers, and O(n log n) as they are asked for.
    """
    apart = lineup.apart
    found: dict[Key, list[Any]] = {}
    for priced in lineup.trees:
        for key, group in _keyed(priced, priced.tree.items(), lineup.basefee, lineup.height):
            if group.payer not in lineup.out:
                members = [each for each in group.members if each not in apart] if apart else group.members
                found.setdefault(key[:-1], []).extend(members)
    for member, own_key in apart.items():
        if own_key is not None:
            found.setdefault(own_key[:-1], []).append(member)
    return chain.from_iterable(sorted(found[key]) for key in sorted(found))


def ranked_first(lineup: Lineup) -> Iterator[Any]:
    """Yield the members of a lineup in rank, worked out as they are asked for; those that cannot fire are left out.

    The best in sight is either a timer, and comes next, or a node of a tree, and is opened.

    Complexity: O(k log n) for the first k timers of n groups, at ``FANOUT`` steps a level. It depends neither on the
        number of timers in a group nor on the bids. A payer that is left out costs O(log n) for each different bid of
        its timers that would come first.
    """
    trees, basefee, out, height, apart = lineup
    numbers = count()
    # What the best is ranked by; a number that no two share; a node or a group, its tree, and how many members of the
    # group have come. What is ranked apart has neither, but a member.
    seen: list[tuple[Any, ...]] = [(key, next(numbers), None, each, 0) for each, key in apart.items() if key]
    heapify(seen)
    opened: list[tuple[PricedTree, list[Any]]] = [(each, [each.tree.root]) for each in trees if each.tree.root]
    while seen or opened:
        for priced, children in opened:
            for key, child in _keyed(priced, children, basefee, height):
                heappush(seen, (key, next(numbers), child, priced, 0))
        opened.clear()
        if not seen:
            return
        key, number, best, priced, place = seen[0]
        if best is None:
            heappop(seen)
            yield priced
        elif isinstance(best, BidNode):
            heappop(seen)
            opened.append((priced, best.children))
        else:
            members, is_out, member = best.members, best.payer in out, best.members[place]
            place += 1
            if is_out or place == len(members):
                heappop(seen)
            else:
                heapreplace(seen, ((*key[:-1], members[place]), number, best, priced, place))
            if not is_out and member not in apart:
                yield member
