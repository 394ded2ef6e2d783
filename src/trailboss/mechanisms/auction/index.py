"""The timers that have joined the auction, in all the orders in which a block asks for them.

The orders stand still while a block asks for them: what the index hears meanwhile it takes into them when it is told to
`settle`. Only who is there at all, and their gas limits, follow at once.

Decision: D-39, D-51, D-59, D-60
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec
from sortedcontainers import SortedDict, SortedList

from trailboss.mechanisms.auction.shelf import Bound, Item, Place, Shelf
from trailboss.mechanisms.base import Follower
from trailboss.model.configs import AMOUNT_WIDTH
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import DeferralReason, Timer, cell_fees, is_stated, stated_fees, terms_of
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Cycles, Price

AFFORDABLE: Final = 1 << 8 * AMOUNT_WIDTH
"""Stands for the max_fee of timers that bid the default, which covers every basefee."""
MARKS: Final = frozenset((DeferralReason.UNFUNDED.value, DeferralReason.PRICED_OUT.value))
"""Reasons in a record that set a timer aside until its agent is asked again. Decision: D-60, D-86."""
Due = tuple[int, int, bytes]
"""Height, sequence and id: a place in due order."""
WeightOf = Callable[[bytes], int]


class Actor(msgspec.Struct, eq=False, gc=False):
    """An actor with timers in the index.

    Attributes:
        address: 20 bytes.
        weight: In parts of 10⁻⁹, as the orders have it.
        groups: By bid, and whether their timers are marked as late.
        gas_limits: Of its timers that are there now, ascending.
        max_fees: Of its ranked timers, ascending.
    """

    address: bytes
    weight: int
    groups: dict[tuple[bytes, bool], "Group"]
    gas_limits: list[Cycles]
    max_fees: list[int]

    def count_ranked(self, basefee: int) -> int:
        """Return how many of its timers are ranked at a basefee. Complexity: O(log n)."""
        return len(self.max_fees) - bisect_left(self.max_fees, basefee)


class Group(msgspec.Struct, eq=False, gc=False):
    """The timers of one actor that bid the same; an item of a shelf while some are ranked.

    Attributes:
        owner: The actor.
        fees: `Timer.fees` of all of them.
        is_late: Whether they are marked as late.
        max_fee: Cap of cycle basefee and tip together; 0 for those that bid the default.
        tip: Cap of the tip; 0 likewise.
        cell_fees: The two caps per cell; None if the bid states none. Decision: D-86.
        place: Its place on a shelf.
        held: How many they are.
        ranked: Those that are not set aside, in due order.
        by_fee: max_fee, negated, and what the first of those that are ranked is ranked by beside its tip.
        by_tip: The same with the tip.
    """

    owner: Actor
    fees: bytes
    is_late: bool
    max_fee: Price
    tip: Price
    cell_fees: tuple[int, int] | None
    place: Place
    held: int = 0
    ranked: list[Due] = []
    by_fee: Bound = ()
    by_tip: Bound = ()

    @property
    def is_standing(self) -> bool:
        """Whether there is a bid: an agent was asked at least once."""
        return is_stated(self.fees)

    @property
    def ceiling(self) -> int:
        """The highest basefee that the bid covers."""
        return self.max_fee if self.is_standing else AFFORDABLE

    def measure(self) -> None:
        """Work out the bounds; some of its timers are ranked."""
        first = (-self.owner.weight, *self.ranked[0][:2])
        self.by_fee = (-self.max_fee, *first)
        self.by_tip = (-self.tip, *first)


class Late(msgspec.Struct, eq=False, gc=False):
    """A ranked timer that is marked as late: an item of the shelf in due order."""

    place: Due
    by_fee: Bound
    by_tip: Bound = ()


class Entry(msgspec.Struct, eq=False, gc=False):
    """What the index keeps of a joined timer.

    Attributes:
        due: Its place in due order.
        gas_limit: Cycles that its fire may use.
        asked_at: Block in which its agent was last asked; 0 if never.
        is_aside: Whether it is not ranked: it is marked, and its agent was not asked in this block or bid what its
            owner cannot pay, or for a cell less than the basefee.
        group: The timers of its actor that bid the same.
    """

    due: Due
    gas_limit: Cycles
    asked_at: int
    is_aside: bool
    group: Group


class AuctionIndex(Follower):
    """The joined timers.

    Joining and hearing: `join`, `leave`, `replace`, `weigh`, `refused`, `settle`, `forget_left`.
    Asking: `entries`, `left`, `actors`, `by_weight`, `total_weight`, `prompt`, `late`, `unasked`, `asked`, `shelves`,
    `late_by_due`, `max_fees`, `gas_limits`, `smallest_gas`.

    Attributes:
        entries: By id; of all timers that are there now.
        left: By id; those that have left since the orders were last settled.
        actors: Those with timers, by address.
        by_weight: Weight and address of all actors, ascending.
        total_weight: The sum of their weights.
        prompt: Timers not marked as late, in due order.
        late: Timers marked as late, in due order.
        unasked: Timers whose agents were never asked, in due order.
        asked: The others: block of the last question, and place in due order.
        shelves: Groups of ranked timers, by whether they are marked as late, and whether they have a bid of their own.
        late_by_due: The ranked timers that are marked as late.
        max_fees: Of all that are ranked, ascending; `AFFORDABLE` for those that bid the default.
        gas_limits: Of all that are there now, ascending.
        smallest_gas: The first of these, in cycles; 0 while there are none.
        refused: By id; those whose agents were asked in this block and whose bids cannot run in it.
    """

    __slots__ = (
        "_height", "_lifted", "_replaced", "_touched", "actors", "asked", "by_weight", "entries",
        "gas_limits", "late", "late_by_due", "left", "max_fees", "prompt", "refused", "shelves",
        "smallest_gas", "total_weight",
        "unasked",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.left: dict[bytes, Entry] = {}
        self.actors = SortedDict()
        self.by_weight = SortedList()
        self.total_weight = 0
        self.prompt = SortedList()
        self.late = SortedList()
        self.unasked = SortedList()
        self.asked = SortedList()
        self.shelves = {(is_late, is_standing): Shelf() for is_late in (False, True) for is_standing in (False, True)}
        self.late_by_due = Shelf()
        self.max_fees = SortedList()
        self.gas_limits = SortedList()
        self.smallest_gas = 0
        self.refused: set[bytes] = set()
        self._replaced: dict[bytes, Timer] = {}
        self._touched: dict[bytes, None] = {}
        self._lifted: set[bytes] = set()  # Marked, and ranked because they were asked and their bids can run.
        self._height = 0

    # What it hears

    def join(self, timers: Iterable[Timer], weight_of: WeightOf) -> None:
        """Take in timers; read one by one.

        Complexity: O(log n) a timer.

        Args:
            timers: None of them is here, and the agent of none was asked in this block.
            weight_of: Actor to its weight.

        Raises:
            InvariantError: If one has joined already, or is no timer of the auction.
        """
        joined: list[Entry] = []
        shared: dict[int, int] = {}  # Many timers have the same heights and limits, and each integer takes memory.
        for timer in timers:
            if timer.timer_id in self.entries:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins the auction a second time")
            terms = terms_of(timer, AuctionTerms)
            owner = self.actors.get(timer.actor)
            if owner is None:
                owner = self.actors[timer.actor] = Actor(timer.actor, weight_of(timer.actor), {}, [], [])
                self.by_weight.add((owner.weight, owner.address))
                self.total_weight += owner.weight
            gas_limit = Cycles(shared.setdefault(timer.gas_limit, timer.gas_limit))
            due = shared.setdefault(timer.height, timer.height), timer.sequence, timer.timer_id
            asked_at = shared.setdefault(terms.asked_at, terms.asked_at)
            group = _group(owner, timer.fees, is_late=terms.is_late)
            group.held += 1
            is_aside = timer.deferred_for in MARKS
            entry = self.entries[timer.timer_id] = Entry(due, gas_limit, asked_at, is_aside, group)
            insort(owner.gas_limits, gas_limit)
            joined.append(entry)
        self.gas_limits.update([entry.gas_limit for entry in joined])
        self.smallest_gas = self.gas_limits[0] if self.gas_limits else 0
        self.prompt.update([entry.due for entry in joined if not entry.group.is_late])
        self.late.update([entry.due for entry in joined if entry.group.is_late])
        self.unasked.update([entry.due for entry in joined if not entry.asked_at])
        self.asked.update([(entry.asked_at, *entry.due) for entry in joined if entry.asked_at])
        self._rank([entry for entry in joined if not entry.is_aside])

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left, if it was here. Complexity: O(log n), and again when the orders are settled."""
        entry = self.entries.pop(timer_id, None)
        if entry is None:
            return
        self.left[timer_id] = entry
        self._replaced.pop(timer_id, None)
        owner = entry.group.owner
        self._touched[owner.address] = None
        self.gas_limits.remove(entry.gas_limit)
        if entry.gas_limit == self.smallest_gas:
            self.smallest_gas = self.gas_limits[0] if self.gas_limits else 0
        del owner.gas_limits[bisect_left(owner.gas_limits, entry.gas_limit)]

    def replace(self, timer: Timer) -> None:
        """Hear of a timer's new record, if it is here. Complexity: O(1), and O(log n) when the orders are settled."""
        if timer.timer_id in self.entries:
            self._replaced[timer.timer_id] = timer

    def weigh(self, address: bytes, weight: int) -> None:
        """Take an actor's weight into the orders.

        Complexity: O(log n) for each different bid of its timers, whatever their number; O(1) if it is no other.
        """
        owner: Actor | None = self.actors.get(address)
        if owner is None or owner.weight == weight:
            return
        self.by_weight.remove((owner.weight, address))
        self.by_weight.add((weight, address))
        self.total_weight += weight - owner.weight
        owner.weight = weight
        for group in owner.groups.values():
            if group.ranked:
                self._measure(group)

    def settle(self, height: int, weight_of: WeightOf) -> None:
        """Take all that was heard into the orders.

        Args:
            height: Of the block.
            weight_of: Actor to its weight; that of an actor of whom a timer has left may be new.
        """
        self.forget_left()
        if height != self._height:
            self._height = height
            for timer_id in self._lifted & self.entries.keys():
                entry = self.entries[timer_id]
                self._regroup(entry, entry.group, is_aside=True)
            self._lifted.clear()
            self.refused.clear()
        for timer in self._replaced.values():
            self._renew(self.entries[timer.timer_id], timer)
        self._replaced.clear()
        for address in self._touched:
            self.weigh(address, weight_of(address))
        self._touched.clear()

    def forget_left(self) -> None:
        """Take those that have left out of the orders. Complexity: O(log n) for each."""
        for entry in self.left.values():
            owner = entry.group.owner
            (self.late if entry.group.is_late else self.prompt).remove(entry.due)
            self._unline(entry)
            if not entry.is_aside:
                self._unrank(entry)
            self._release(entry.group)
            if not owner.groups:
                del self.actors[owner.address]
                self.by_weight.remove((owner.weight, owner.address))
                self.total_weight -= owner.weight
        self.left.clear()

    # The orders

    def _renew(self, entry: Entry, timer: Timer) -> None:
        """Move a timer to where its new record belongs."""
        terms, group = terms_of(timer, AuctionTerms), entry.group
        if terms.asked_at != entry.asked_at:
            self._unline(entry)
            entry.asked_at = terms.asked_at
            self.asked.add((entry.asked_at, *entry.due))
        if terms.is_late != group.is_late:
            (self.late if group.is_late else self.prompt).remove(entry.due)
            (self.late if terms.is_late else self.prompt).add(entry.due)
        if (timer.fees, terms.is_late) != (group.fees, group.is_late):
            group = _group(group.owner, timer.fees, is_late=terms.is_late)
        is_marked = timer.deferred_for in MARKS
        is_lifted = is_marked and terms.asked_at == self._height and timer.timer_id not in self.refused
        if is_lifted:
            self._lifted.add(timer.timer_id)
        self._regroup(entry, group, is_aside=is_marked and not is_lifted)

    def _regroup(self, entry: Entry, group: Group, *, is_aside: bool) -> None:
        former = entry.group
        if (group, is_aside) == (former, entry.is_aside):
            return
        if not entry.is_aside:
            self._unrank(entry)
        entry.group, entry.is_aside = group, is_aside
        group.held += 1
        if not is_aside:
            self._rank([entry])
        self._release(former)

    def _unline(self, entry: Entry) -> None:
        """Take a timer from the line of those whose agents are to be asked."""
        if entry.asked_at:
            self.asked.remove((entry.asked_at, *entry.due))
        else:
            self.unasked.remove(entry.due)

    def _rank(self, entries: Collection[Entry]) -> None:
        """Put timers into the ranking."""
        grown: dict[Group, int] = {}
        for entry in entries:
            group = entry.group
            grown.setdefault(group, len(group.ranked))
            group.ranked.append(entry.due)
            insort(group.owner.max_fees, group.ceiling)
        added: dict[Shelf, list[Item]] = {}
        for group, before in grown.items():
            group.ranked.sort()
            group.measure()
            if before:
                self._shelf(group).change(group.place)
            else:
                added.setdefault(self._shelf(group), []).append(group)
        for shelf, groups in added.items():
            shelf.add(groups)
        self.max_fees.update([entry.group.ceiling for entry in entries])
        self.late_by_due.add([Late(entry.due, (-entry.group.ceiling,)) for entry in entries if entry.group.is_late])

    def _unrank(self, entry: Entry) -> None:
        """Take a timer from the ranking."""
        group = entry.group
        self.max_fees.remove(group.ceiling)
        max_fees = group.owner.max_fees
        del max_fees[bisect_left(max_fees, group.ceiling)]
        if group.is_late:
            self.late_by_due.remove(entry.due)
        number = bisect_left(group.ranked, entry.due)
        del group.ranked[number]
        if not group.ranked:
            self._shelf(group).remove(group.place)
        elif number == 0:
            self._measure(group)

    def _measure(self, group: Group) -> None:
        group.measure()
        self._shelf(group).change(group.place)

    def _shelf(self, group: Group) -> Shelf:
        return self.shelves[group.is_late, group.is_standing]

    def _release(self, group: Group) -> None:
        """Drop a group that has held one timer more if it holds none now."""
        group.held -= 1
        if not group.held:
            del group.owner.groups[group.fees, group.is_late]


def _group(owner: Actor, fees: bytes, *, is_late: bool) -> Group:
    """Return the group of an actor's timers that bid the same; a new one holds none yet."""
    group = owner.groups.get((fees, is_late))
    if group is None:
        max_fee, tip = stated_fees(fees) if is_stated(fees) else (0, 0)
        place = max_fee - tip, owner.address, fees
        group = owner.groups[fees, is_late] = Group(
            owner, fees, is_late, Price(max_fee), Price(tip), cell_fees(fees), place
        )
    return group
