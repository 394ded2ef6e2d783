"""The timers that have joined the auction, in all the orders in which a block asks for them.

The orders keep still while a block selects; `settle` takes in what has changed. Only which timers are there, and their
gas limits, follow at once. Decision: D-39, D-51, D-59, D-60.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec
from sortedcontainers import SortedDict, SortedList

from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.bid_tree import BidTree, Bounds
from trailboss.mechanisms.ranking import BidGroup, GasLimits, grow, shrink
from trailboss.model.configs import AMOUNT_WIDTH
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import DeferralReason, Timer, terms_of
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Cycles

AFFORDABLE: Final = 1 << 8 * AMOUNT_WIDTH  # the max_fee of timers that bid the default: it covers every basefee
# Reasons in a record that set a timer aside until its agent is asked again. Decision: D-60, D-86.
MARKS: Final = frozenset((DeferralReason.UNFUNDED.value, DeferralReason.PRICED_OUT.value))
Due = tuple[int, int, bytes]  # height, sequence and id: a place in due order
WeightOf = Callable[[bytes], int]


class WeighedActor(msgspec.Struct, eq=False, gc=False):
    """An actor with timers in the index."""

    address: bytes
    weight: int  # in parts of 10⁻⁹, as the orders have it
    groups: dict[tuple[bytes, bool], "AuctionGroup"] = {}  # by bid, and whether their timers are marked as late
    gas_limits: list[Cycles] = []  # of its timers that are there now, ascending
    max_fees: list[int] = []  # of its ranked timers, ascending

    def count_ranked(self, basefee: int) -> int:
        """Return how many of its timers are ranked at a basefee. Complexity: O(log n)."""
        return len(self.max_fees) - bisect_left(self.max_fees, basefee)

    def group(self, fees: bytes, *, is_late: bool) -> "AuctionGroup":
        """Return the group of its timers that bid the same; a new one holds none yet."""
        group = self.groups.get((fees, is_late))
        if group is None:
            group = AuctionGroup(actor=self.address, payer=self.address, fees=fees, owner=self, is_late=is_late)
            self.groups[fees, is_late] = group
        return group


class AuctionGroup(BidGroup[Due]):
    """The timers of one actor, which pays, that bid the same; a member is a timer's place in due order."""

    owner: WeighedActor
    is_late: bool
    held: int = 0  # how many they are, ranked or not
    ceiling: int = AFFORDABLE  # the highest basefee that the bid covers

    def __post_init__(self) -> None:
        super().__post_init__()
        """Read the ceiling from the fees."""
        if self.is_stated:
            self.ceiling = self.caps[0]

    @property
    def precedence(self) -> int:
        """The weight of the actor, which comes before due order."""
        return -self.owner.weight


class LateTimer(msgspec.Struct, eq=False, gc=False):
    """A ranked timer that is marked as late: an item of the tree in due order, bounded by its ceiling alone."""

    place: Due
    bounds: Bounds


class AuctionEntry(msgspec.Struct, eq=False, gc=False):
    """What the index keeps of a joined timer."""

    due: Due
    gas_limit: Cycles
    asked_at: int  # block in which its agent was last asked; 0 if never
    # Whether it is not ranked: it is marked, and its agent was not asked in this block or bid what its owner cannot
    # pay, or for a cell less than the basefee.
    is_aside: bool
    group: AuctionGroup


class AuctionIndex(Follower):
    """The joined timers."""

    def __init__(self) -> None:
        self.timers: dict[bytes, AuctionEntry] = {}  # by id; of all timers that are there now
        self.left: dict[bytes, AuctionEntry] = {}  # by id; those that have left since the orders were last settled
        self.actors = SortedDict()  # those with timers, by address
        self.by_weight = SortedList()  # weight and address of all actors, ascending
        self.total_weight = 0
        self.prompt = SortedList()  # timers not marked as late, in due order
        self.late = SortedList()  # timers marked as late, in due order
        self.unasked = SortedList()  # timers whose agents were never asked, in due order
        self.asked = SortedList()  # the others: block of the last question, and place in due order
        # Groups of ranked timers, by whether they are marked as late, and whether they have a bid of their own.
        self.trees: dict[tuple[bool, bool], BidTree[AuctionGroup]] = {
            (is_late, is_stated): BidTree() for is_late in (False, True) for is_stated in (False, True)
        }
        self.late_by_due: BidTree[LateTimer] = BidTree()  # the ranked timers that are marked as late
        self.max_fees = SortedList()  # of all that are ranked, ascending; `AFFORDABLE` where they bid the default
        self.gas_limits = GasLimits()  # of all that are there now
        # By id; those whose agents were asked in this block and whose bids cannot run in it.
        self.refused: set[bytes] = set()
        self._replaced: dict[bytes, Timer] = {}
        self._touched: dict[bytes, None] = {}
        self._lifted: set[bytes] = set()  # Marked, and ranked because they were asked and their bids can run.
        self._height = 0

    # What it follows

    def join(self, timers: Iterable[Timer], weight_of: WeightOf) -> None:
        """Take in timers, one by one; the agent of none was asked in this block. Complexity: O(log n) a timer.

        Raises:
            InvariantError: If one has joined already, or is no timer of the auction.
        """
        joined: list[AuctionEntry] = []
        shared: dict[int, int] = {}  # Many timers have the same heights and limits, and each integer takes memory.
        for timer in timers:
            if timer.timer_id in self.timers:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins the auction a second time")
            terms = terms_of(timer, AuctionTerms)
            owner = self.actors.get(timer.actor)
            if owner is None:
                owner = self.actors[timer.actor] = WeighedActor(timer.actor, weight_of(timer.actor))
                self.by_weight.add((owner.weight, owner.address))
                self.total_weight += owner.weight
            gas_limit = Cycles(shared.setdefault(timer.gas_limit, timer.gas_limit))
            due = shared.setdefault(timer.height, timer.height), timer.sequence, timer.timer_id
            asked_at = shared.setdefault(terms.asked_at, terms.asked_at)
            group = owner.group(timer.fees, is_late=terms.is_late)
            group.held += 1
            is_aside = timer.deferred_for in MARKS
            entry = self.timers[timer.timer_id] = AuctionEntry(due, gas_limit, asked_at, is_aside, group)
            insort(owner.gas_limits, gas_limit)
            self.gas_limits.add(gas_limit)
            joined.append(entry)
        self.prompt.update([entry.due for entry in joined if not entry.group.is_late])
        self.late.update([entry.due for entry in joined if entry.group.is_late])
        self.unasked.update([entry.due for entry in joined if not entry.asked_at])
        self.asked.update([(entry.asked_at, *entry.due) for entry in joined if entry.asked_at])
        self._rank([entry for entry in joined if not entry.is_aside])

    def leave(self, timer_id: bytes) -> None:
        """Let a timer go, if it is here. Complexity: O(log n), and again when the orders are settled."""
        entry = self.timers.pop(timer_id, None)
        if entry is None:
            return
        self.left[timer_id] = entry
        self._replaced.pop(timer_id, None)
        owner = entry.group.owner
        self._touched[owner.address] = None
        self.gas_limits.remove(entry.gas_limit)
        del owner.gas_limits[bisect_left(owner.gas_limits, entry.gas_limit)]

    def replace(self, timer: Timer) -> None:
        """Note a timer's new record, if it is here. Complexity: O(1), and O(log n) when the orders are settled."""
        if timer.timer_id in self.timers:
            self._replaced[timer.timer_id] = timer

    def weigh(self, address: bytes, weight: int) -> None:
        """Take an actor's new weight into the orders. Complexity: O(log n) for each different bid of its timers."""
        owner: WeighedActor | None = self.actors.get(address)
        if owner is None or owner.weight == weight:
            return
        self.by_weight.remove((owner.weight, address))
        self.by_weight.add((weight, address))
        self.total_weight += weight - owner.weight
        owner.weight = weight
        for group in owner.groups.values():
            if group.members:
                self._tree(group).change(group, group.measure())

    def settle(self, height: int, weight_of: WeightOf) -> None:
        """Take all that has changed into the orders, and new weights of actors that timers have left."""
        self.forget_left()
        if height != self._height:
            self._height = height
            for timer_id in self._lifted & self.timers.keys():
                entry = self.timers[timer_id]
                self._regroup(entry, entry.group, is_aside=True)
            self._lifted.clear()
            self.refused.clear()
        for timer in self._replaced.values():
            self._renew(self.timers[timer.timer_id], timer)
        self._replaced.clear()
        for address in self._touched:
            self.weigh(address, weight_of(address))
        self._touched.clear()

    def forget_left(self) -> None:
        """Take those that have left out of the orders. Complexity: O(log n) for each."""
        for entry in self.left.values():
            owner = entry.group.owner
            (self.late if entry.group.is_late else self.prompt).remove(entry.due)
            self._leave_line(entry)
            if not entry.is_aside:
                self._unrank(entry)
            self._release(entry.group)
            if not owner.groups:
                del self.actors[owner.address]
                self.by_weight.remove((owner.weight, owner.address))
                self.total_weight -= owner.weight
        self.left.clear()

    # The orders

    def _renew(self, entry: AuctionEntry, timer: Timer) -> None:
        terms, group = terms_of(timer, AuctionTerms), entry.group
        if terms.asked_at != entry.asked_at:
            self._leave_line(entry)
            entry.asked_at = terms.asked_at
            self.asked.add((entry.asked_at, *entry.due))
        if terms.is_late != group.is_late:
            (self.late if group.is_late else self.prompt).remove(entry.due)
            (self.late if terms.is_late else self.prompt).add(entry.due)
        if (timer.fees, terms.is_late) != (group.fees, group.is_late):
            group = group.owner.group(timer.fees, is_late=terms.is_late)
        is_marked = timer.deferred_for in MARKS
        is_lifted = is_marked and terms.asked_at == self._height and timer.timer_id not in self.refused
        if is_lifted:
            self._lifted.add(timer.timer_id)
        self._regroup(entry, group, is_aside=is_marked and not is_lifted)

    def _regroup(self, entry: AuctionEntry, group: AuctionGroup, *, is_aside: bool) -> None:
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

    def _leave_line(self, entry: AuctionEntry) -> None:
        if entry.asked_at:
            self.asked.remove((entry.asked_at, *entry.due))
        else:
            self.unasked.remove(entry.due)

    def _rank(self, timers: Collection[AuctionEntry]) -> None:
        grown: dict[AuctionGroup, bool] = {}
        for entry in timers:
            group = entry.group
            grown.setdefault(group, not group.members)
            group.members.append(entry.due)
            insort(group.owner.max_fees, group.ceiling)
        for group in grown:
            group.members.sort()
        grow(grown, self._tree)
        self.max_fees.update([entry.group.ceiling for entry in timers])
        self.late_by_due.add([_late(entry) for entry in timers if entry.group.is_late])

    def _unrank(self, entry: AuctionEntry) -> None:
        group = entry.group
        self.max_fees.remove(group.ceiling)
        max_fees = group.owner.max_fees
        del max_fees[bisect_left(max_fees, group.ceiling)]
        if group.is_late:
            self.late_by_due.remove(_late(entry))
        shrink(group, entry.due, self._tree(group))

    def _tree(self, group: AuctionGroup) -> BidTree[AuctionGroup]:
        return self.trees[group.is_late, group.is_stated]

    def _release(self, group: AuctionGroup) -> None:
        """Drop a group that has held one timer more if it holds none now."""
        group.held -= 1
        if not group.held:
            del group.owner.groups[group.fees, group.is_late]


def _late(entry: AuctionEntry) -> LateTimer:
    return LateTimer(entry.due, ((-entry.group.ceiling,),))
