"""The order of the auction: effective tip downwards, weight downwards, due order; the late first, if that is the rule.

There are two ways to it, with one outcome: `ranked_first` finds the first without looking at the others, `ranked_all`
sorts all, which costs less a timer if most of them are asked for.

Spec: overview, CIP-1v1 §3
Decision: D-19, D-39
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from trailboss.mechanisms.auction.index import AuctionIndex, Due, Group, Late
from trailboss.mechanisms.auction.shelf import Bound, Item, Node, Shelf

_height_of, _sequence_of = itemgetter(0), itemgetter(1)


class Row(NamedTuple):
    """A shelf as one block's selection sees it.

    Attributes:
        shelf: The groups.
        tip: Of all of them, where it is the default bid's; None where it follows from each group's bid.
    """

    shelf: Shelf
    tip: int | None

    def bound(self, item: Item, basefee: int) -> Bound:
        """Return what the best of an item is ranked by, ascending, or what nothing below a node comes before.

        The first member is the effective tip, negated; above 0 if all are priced out.
        """
        if self.tip is not None:
            return (-self.tip, *item.by_tip[1:])
        by_fee, by_tip = item.by_fee, item.by_tip
        room = by_fee[0] + basefee
        return (room, *by_fee[1:]) if room > by_tip[0] else by_tip


def late_first(index: AuctionIndex, basefee: int) -> Iterator[Due]:
    """Yield the ranked timers that are marked as late, in due order. Complexity: O(log n) each."""
    for late in index.late_by_due.with_fee(basefee):
        if isinstance(late, Late):
            yield late.place


def ranked_all(rows: Sequence[Row], basefee: int) -> Iterator[Due]:
    """Return the timers of shelves, in rank; those priced out are left out.

    Complexity: O(n) for n timers, and O(n log n) as they are asked for.
    """
    found: dict[tuple[int, int], list[list[Due]]] = {}
    for row in rows:
        for group in row.shelf.items():
            tip, weight, *_ = row.bound(group, basefee)
            if tip <= 0 and isinstance(group, Group):
                found.setdefault((tip, weight), []).append(group.ranked)
    return chain.from_iterable(_in_due_order(found[key]) for key in sorted(found))


def _in_due_order(parts: Iterable[list[Due]]) -> list[Due]:
    """Return timers by height and sequence: two sorts of integers, which take half the time of one of tuples."""
    timers = sorted(chain.from_iterable(parts), key=_sequence_of)
    timers.sort(key=_height_of)
    return timers


def ranked_first(rows: Sequence[Row], basefee: int, out: Container[bytes]) -> Iterator[Due]:
    """Yield the timers of shelves, in rank, worked out as they are asked for; those priced out are left out.

    The best of what is in sight is either a timer, and comes next, or a node of a shelf, and is opened.

    Complexity: O(k log n) for the first k timers of n groups, at ``FANOUT`` steps a level of the tree. Nothing depends
    on the number of timers in a group, and no choice of bids makes it more. An owner that is left out costs O(log n)
    for each different bid of its timers that would come first.

    Args:
        rows: The shelves.
        basefee: Cycle basefee, base units.
        out: Owners whose timers are left out, as of the moment at which one of them would come. Decision: D-78.
    """
    # What the best is ranked by, which no two share; what it is of; how many of its timers have come; their row.
    seen: list[tuple[Bound, Item, int, Row]] = []
    for row in rows:
        if row.shelf.root is not None:
            seen.append((row.bound(row.shelf.root, basefee), row.shelf.root, 0, row))
    heapify(seen)
    while seen:
        bound, best, place, row = seen[0]
        if bound[0] > 0:
            return
        if isinstance(best, Node):
            heappop(seen)
            for child in best.children:
                heappush(seen, (row.bound(child, basefee), child, 0, row))
        elif isinstance(best, Group) and best.owner.address in out:
            heappop(seen)
        elif isinstance(best, Group):
            due = best.ranked[place]
            place += 1
            if place < len(best.ranked):
                heapreplace(seen, ((*bound[:2], *best.ranked[place][:2]), best, place, row))
            else:
                heappop(seen)
            yield due
