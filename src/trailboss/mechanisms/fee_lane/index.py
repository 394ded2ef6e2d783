"""The timers that have joined the lane, in all the orders in which a block asks for them.

The orders keep still while a block selects; `settle` takes in what has changed. Only which timers are there, and the
smallest gas limit, follow at once. Decision: D-39, D-51.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec
from sortedcontainers import SortedList

from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.bid_tree import BidTree
from trailboss.mechanisms.fee_lane.weight import ages_from
from trailboss.mechanisms.ranking import BidGroup, GasLimits, grow, shrink
from trailboss.model.timers import DeferralReason, Timer, asks_agent
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Cycles

UNRANKED_MAX: Final = 10_000  # expired timers that a block takes out of the ranking; until then the walk skips them
_group_key = attrgetter("is_over_cap", "fees", "payer", "aged_from")


class LaneGroup(BidGroup[bytes]):
    """Timers that count for one actor, offer the same and have the same payer; a member is a timer's id, ascending.

    Groups above the lane's cap are in no tree. No timer expires after ``ends`` says; perhaps all do before.
    """

    is_over_cap: bool
    aged_from: int  # height from which on its timers gain weight; 0 if none does

    @property
    def is_asking(self) -> bool:
        """Whether an agent prices the timers, the actor's or their own."""
        return asks_agent(self.fees)


class LaneEntry(msgspec.Struct, gc=False):
    """What the index keeps of a joined timer. Decision: D-13."""

    height: int
    sequence: int
    timer_id: bytes
    expires_at: int
    gas_limit: Cycles
    stated_gas: Cycles  # its gas limit before any clamp
    schedule_block: int
    is_marked: bool  # whether its record says that it is above the cap
    group: LaneGroup

    @property
    def due(self) -> tuple[int, int, bytes]:
        """Its place in due order."""
        return self.height, self.sequence, self.timer_id


class LaneActor(msgspec.Struct, eq=False, gc=False):
    """An actor with timers in the index, or a deployer for all of its actors: fires within the window, and groups."""

    fires: int
    groups: list[LaneGroup]


class LaneIndex(Follower):
    """The joined timers, n of them. An actor has a group for each different offer that its waiting timers make."""

    def __init__(self, cap: Cycles, clamps_before: int, age_blocks: int = 0) -> None:
        """Make an index without timers; those scheduled before a height are clamped to the cap of one fire.

        ``age_blocks`` is the blocks of waiting that add 1 to a weight; 0 for none.
        """
        self._age_blocks = age_blocks
        self.timers: dict[bytes, LaneEntry] = {}  # by id; those that are there now and have not expired
        self._replaced: dict[bytes, Timer] = {}
        self._recounted: dict[bytes, int] = {}
        self._clear(cap, clamps_before)

    def _clear(self, cap: Cycles, clamps_before: int) -> None:
        self._cap, self._clamps_before = cap, clamps_before
        self.left: dict[bytes, LaneEntry] = {}  # by id; those that have left since the orders were last settled
        self.unmarked = SortedList()  # places of those above the cap whose records do not say so, in due order
        self.asking = SortedList()  # places of those whose agents are to be asked, in due order
        # By the fires of the actors, whether the fees are frozen, and from when on the timers gain weight.
        self.trees: dict[tuple[int, bool, int], BidTree[LaneGroup]] = {}
        self.over_cap = 0  # how many are above the cap
        self._actors: dict[bytes, LaneActor] = {}
        self._fee_caps = SortedList()  # Negated, as in the bounds of the groups, so that both share the integers.
        self.gas_limits = GasLimits()  # of all that are not above the cap and are there now
        self._expired: dict[bytes, LaneEntry] = {}  # By id; they are counted nowhere, and still in their groups.

    # What a block asks

    def fires_of(self, actor: bytes) -> int:
        """Return the fires of an actor, as a group has it, that has timers here."""
        return self._actors[actor].fires

    def priced_out(self, basefee: int) -> int:
        """Return how many have frozen fees that do not cover a basefee. Complexity: O(log n)."""
        return len(self._fee_caps) - int(self._fee_caps.bisect_right(-basefee))

    def is_set_aside(self, timers: int) -> bool:
        """Return whether this number of timers are all there are, all are above the cap, and all are marked so.

        It is false until the orders have been settled. Complexity: O(1).
        """
        is_settled = not (self.left or self._replaced or self._recounted or self._expired)
        return is_settled and not self.unmarked and timers == len(self.timers) == self.over_cap

    # What it follows

    def join(
        self,
        timers: Iterable[Timer],
        fires_of: Callable[[bytes], int],
        counted_for: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Take in timers, with the fires of the accounts that they count for, their actors' own if none is given.

        O(log n) each. `InvariantError` if one has joined already.
        """
        joined: list[LaneEntry] = []
        shared: dict[int, Any] = {}  # Many timers have the same heights and limits, and each integer takes memory.
        for timer in timers:
            if timer.timer_id in self.timers:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins the lane a second time")
            actor = timer.actor if counted_for is None else counted_for(timer.actor)
            if actor not in self._actors:
                self._actors[actor] = LaneActor(fires_of(actor), [])
            stated_gas = shared.setdefault(timer.gas_limit, timer.gas_limit)
            gas_limit = self._clamped(stated_gas, timer.schedule_block)
            is_over_cap = gas_limit > self._cap
            if not is_over_cap:
                self.gas_limits.add(gas_limit)
            entry = self.timers[timer.timer_id] = LaneEntry(
                height=shared.setdefault(timer.height, timer.height),
                sequence=timer.sequence,
                timer_id=timer.timer_id,
                expires_at=shared.setdefault(timer.expires_at, timer.expires_at),
                gas_limit=gas_limit,
                stated_gas=stated_gas,
                schedule_block=shared.setdefault(timer.schedule_block, timer.schedule_block),
                is_marked=timer.deferred_for == DeferralReason.OVER_CAP,
                group=self._group(
                    actor, (is_over_cap, timer.fees, timer.fee_payer, ages_from(timer.height, self._age_blocks))
                ),
            )
            joined.append(entry)
        self._put_in(joined)

    def leave(self, timer_id: bytes) -> None:
        """Let a timer go, if it is here. Complexity: O(1), and O(log n) when the orders are settled."""
        entry = self.timers.pop(timer_id, None)
        if entry is None:
            return
        self.left[timer_id] = entry
        self._forget(entry)

    def _forget(self, entry: LaneEntry) -> None:
        self._replaced.pop(entry.timer_id, None)
        if not entry.group.is_over_cap:
            self.gas_limits.remove(entry.gas_limit)

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Stop counting timers that can fire no more. Complexity: O(log n) each, and again when its group drops it."""
        for timer_id in timer_ids:
            entry = self.timers.pop(timer_id, None)
            if entry is not None:
                self._expired[timer_id] = entry
                self._forget(entry)
                self._uncount(entry)

    def replace(self, timer: Timer) -> None:
        """Note a timer's new record, if it is here. Complexity: as `leave`."""
        if timer.timer_id in self.timers:
            self._replaced[timer.timer_id] = timer

    def recount(self, actor: bytes, fires: int) -> None:
        """Note an actor's fires, if it has timers here. Complexity: O(1), and O(log n) a group when settled."""
        if actor in self._actors:
            self._recounted[actor] = fires

    def settle(self, cap: Cycles, clamps_before: int) -> None:
        """Take all that has changed into the orders; another cap is an act of governance, and a new index."""
        if (cap, clamps_before) != (self._cap, self._clamps_before):
            self._rebuild(cap, clamps_before)
        self.forget_left()
        expired = [self._expired.pop(timer_id) for timer_id in list(islice(self._expired, UNRANKED_MAX))]
        for entry in expired:
            self._unrank(entry)
        self._drop_empty(expired)
        self._take_replaced()
        for actor, fires in self._recounted.items():
            self._move(actor, fires)
        self._recounted.clear()

    def forget_left(self) -> None:
        """Drop those that have left, O(log n) each; if more have left than are here, build the index again."""
        if len(self.left) > len(self.timers):
            self._rebuild(self._cap, self._clamps_before)
            return
        for entry in self.left.values():
            self._take_out(entry)
        self._drop_empty(self.left.values())
        self.left.clear()

    # The orders

    def _rebuild(self, cap: Cycles, clamps_before: int) -> None:
        owners = self._actors
        self._clear(cap, clamps_before)
        for entry in self.timers.values():
            group = entry.group
            self._actors.setdefault(group.actor, LaneActor(owners[group.actor].fires, []))
            entry.gas_limit = self._clamped(entry.stated_gas, entry.schedule_block)
            entry.group = self._group(group.actor, (entry.gas_limit > cap, group.fees, group.payer, group.aged_from))
            if not entry.group.is_over_cap:
                self.gas_limits.add(entry.gas_limit)
        self._put_in(self.timers.values())

    def _clamped(self, gas_limit: Cycles, schedule_block: int) -> Cycles:
        return min(gas_limit, self._cap) if schedule_block < self._clamps_before else gas_limit

    def _take_replaced(self) -> None:
        former, present = [], []
        for timer_id, timer in self._replaced.items():
            entry, is_marked = self.timers[timer_id], timer.deferred_for == DeferralReason.OVER_CAP
            group = entry.group
            if (timer.expires_at, timer.fees, is_marked) != (entry.expires_at, group.fees, entry.is_marked):
                former.append(entry)
                group = self._group(group.actor, (group.is_over_cap, timer.fees, group.payer, group.aged_from))
                changes = {"expires_at": timer.expires_at, "is_marked": is_marked, "group": group}
                self.timers[timer_id] = msgspec.structs.replace(entry, **changes)
                present.append(self.timers[timer_id])
        self._replaced.clear()
        for entry in former:
            self._take_out(entry)
        self._put_in(present)
        self._drop_empty(former)

    def _move(self, address: bytes, fires: int) -> None:
        owner = self._actors.get(address)
        if owner is None or owner.fires == fires:
            return
        groups = [group for group in owner.groups if group.members and not group.is_over_cap]
        for group in groups:
            self._tree(group).remove(group)
            self._drop_tree(group)
        owner.fires = fires
        grow(dict.fromkeys(groups, True), self._tree)

    def _group(self, address: bytes, key: tuple[bool, bytes, bytes, int]) -> LaneGroup:
        """Return the group of an actor's timers that offer the same; a new one is empty, and in no tree yet."""
        groups, (is_over_cap, fees, payer, aged_from) = self._actors[address].groups, key
        number = bisect_left(groups, key, key=_group_key)
        if number < len(groups) and _group_key(groups[number]) == key:
            return groups[number]
        # Each timer's record has bytes of its own: the groups of an actor share one address.
        address = groups[0].actor if groups else address
        payer = address if payer == address else payer
        group = LaneGroup(actor=address, payer=payer, fees=fees, is_over_cap=is_over_cap, aged_from=aged_from)
        groups.insert(number, group)
        return group

    def _put_in(self, entries: Collection[LaneEntry]) -> None:
        grown: dict[LaneGroup, bool] = {}
        shared: dict[int, int] = {}
        for entry in entries:
            group = entry.group
            grown.setdefault(group, not group.members)
            group.members.append(entry.timer_id)
            group.ends = min(group.ends, shared.setdefault(entry.expires_at, -entry.expires_at))
        for group in grown:
            group.members = sorted(group.members)  # a list of its own size, which an appended one is not
        grow({group: is_new for group, is_new in grown.items() if not group.is_over_cap}, self._tree)
        inside = [entry for entry in entries if not entry.group.is_over_cap]
        outside = [entry for entry in entries if entry.group.is_over_cap]
        self.over_cap += len(outside)
        self.unmarked.update([entry.due for entry in outside if not entry.is_marked])
        self.asking.update([entry.due for entry in inside if entry.group.is_asking])
        self._fee_caps.update([entry.group.bounds[0][0] for entry in inside if entry.group.is_stated])

    def _take_out(self, entry: LaneEntry) -> None:
        self._uncount(entry)
        self._unrank(entry)

    def _uncount(self, entry: LaneEntry) -> None:
        """Take a timer from every list but its group."""
        group = entry.group
        if group.is_over_cap:
            self.over_cap -= 1
            if not entry.is_marked:
                self.unmarked.remove(entry.due)
        elif group.is_stated:
            self._fee_caps.remove(group.bounds[0][0])
        elif group.is_asking:
            self.asking.remove(entry.due)

    def _unrank(self, entry: LaneEntry) -> None:
        group, timer_id = entry.group, entry.timer_id
        if group.is_over_cap:
            del group.members[bisect_left(group.members, timer_id)]
        else:
            shrink(group, timer_id, self._tree(group))
            self._drop_tree(group)

    def _tree(self, group: LaneGroup) -> BidTree[LaneGroup]:
        return self.trees.setdefault(self._tree_key(group), BidTree())

    def _drop_tree(self, group: LaneGroup) -> None:
        if self._tree(group).root is None:
            del self.trees[self._tree_key(group)]

    def _tree_key(self, group: LaneGroup) -> tuple[int, bool, int]:
        return self._actors[group.actor].fires, group.is_stated, group.aged_from

    def _drop_empty(self, former: Iterable[LaneEntry]) -> None:
        """Drop groups that hold no timer any more, and actors without groups."""
        for group in {entry.group: None for entry in former}:
            if not group.members:
                owner = self._actors[group.actor]
                del owner.groups[bisect_left(owner.groups, _group_key(group), key=_group_key)]
                if not owner.groups:
                    del self._actors[group.actor]
