"""The order of the lane: effective priority downwards, ties by timer id.

There are two ways to it, with one outcome: `ranked_first` finds the first without looking at the others, `ranked_all`
sorts all, which costs less a timer if most of them are asked for.

Spec: CIP-1v3 §3
Decision: D-11, D-30, D-39
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, count
from typing import NamedTuple

from trailboss.mechanisms.fee_lane.shelf import Group, Node, Shelf


class Row(NamedTuple):
    """A shelf as one block's selection sees it.

    Attributes:
        shelf: The groups.
        weight: W(actor) of their actors.
        tip: Of all of them, where it is the default agent's; None where it follows from each group's caps.
    """

    shelf: Shelf
    weight: int
    tip: int | None


class Lineup(NamedTuple):
    """All timers that may be ranked, in a block.

    Attributes:
        rows: All shelves; they do not change while the order is asked for.
        basefee: Lane basefee, base units per cycle.
        height: Of the block. Where all timers of a group or node have expired before it, they are left out; others that
            have expired are not.
        answered: Effective priority of the timers whose agents were asked, negative if they are priced out. They are
            ranked by that, and not with their groups.
        out: Payers whose timers are left out, as of the moment at which one of them would come. Decision: D-78.
    """

    rows: list[Row]
    basefee: int
    height: int
    answered: Mapping[bytes, int]
    out: Container[bytes]

    def groups_of(self, row: Row, groups: Iterable[Group]) -> Iterator[tuple[int, bytes, list[bytes]]]:
        """Yield effective priority, payer and ids of the groups of a row, but for those that cannot fire.

        These are priced out, have all expired, or their payer is left out.
        """
        weight, fixed, basefee, height, answered = row.weight, row.tip, self.basefee, self.height, self.answered
        for group in groups:
            if group.last_expiry < height or group.payer in self.out:
                continue
            ids = group.ids
            tip = fixed
            if tip is None:
                tip = group.max_priority
                if group.max_fee - basefee < tip:
                    tip = group.max_fee - basefee
                    if tip < 0:
                        continue
            elif answered and group.is_asking:
                ids = [timer_id for timer_id in ids if timer_id not in answered]
                if not ids:
                    continue
            yield tip * weight, group.payer, ids

    def singles(self) -> Iterator[tuple[int, bytes, list[bytes]]]:
        """Yield effective priority, no payer, and id of each timer whose agent was asked."""
        for timer_id, priority in self.answered.items():
            if priority >= 0:
                yield priority, b"", [timer_id]


def ranked_all(lineup: Lineup) -> Iterator[bytes]:
    """Return the ids of a lineup's timers, in rank; those priced out are left out.

    Complexity: O(n) for n timers, and O(n log n) as they are asked for.
    """
    found: dict[int, list[bytes]] = {}
    in_rows = (lineup.groups_of(row, row.shelf.groups()) for row in lineup.rows)
    for priority, _, ids in chain(chain.from_iterable(in_rows), lineup.singles()):
        found.setdefault(priority, []).extend(ids)
    return chain.from_iterable(sorted(found[priority]) for priority in sorted(found, reverse=True))


def ranked_first(lineup: Lineup) -> Iterator[bytes]:
    """Yield the ids of a lineup's timers, in rank, worked out as they are asked for; those priced out are left out.

    The best of what is in sight is either a timer, and comes next, or a node of a shelf, and is opened.

    Complexity: O(k log n) for the first k timers of n groups, at ``FANOUT`` steps a level of the tree. Nothing depends
    on the number of timers in a group, and no choice of fees makes it more. A payer that is left out costs O(log n) for
    each different offer of its timers that would come first.
    """
    basefee, height, out, numbers = lineup.basefee, lineup.height, lineup.out, count()
    # Effective priority, negated, and id of the best; a number that no two share; what it is of.
    nodes: list[tuple[int, bytes, int, Node, Row]] = []
    timers = [(-priority, ids[0], payer, ids, 0) for priority, payer, ids in lineup.singles()]
    heapify(timers)
    seen = [(row, [row.shelf.root]) for row in lineup.rows if row.shelf.root is not None]
    while seen or nodes or timers:
        for row, children in seen:
            _, weight, fixed = row
            for child in children:
                tip, first = child.best(basefee)
                if fixed is not None:
                    tip = fixed
                if tip >= 0 and child.last_expiry >= height:
                    heappush(nodes, (-tip * weight, first, next(numbers), child, row))
        seen = []
        if nodes and (not timers or nodes[0][:2] <= timers[0][:2]):
            _, _, _, node, row = heappop(nodes)
            seen.append((row, node.nodes))
            for priority, payer, ids in lineup.groups_of(row, node.groups):
                heappush(timers, (-priority, ids[0], payer, ids, 0))
        elif timers:
            priority, timer_id, payer, ids, place = timers[0]
            is_out, place = payer in out, place + 1
            if is_out or place == len(ids):
                heappop(timers)
            else:
                heapreplace(timers, (priority, ids[place], payer, ids, place))
            if not is_out:
                yield timer_id
