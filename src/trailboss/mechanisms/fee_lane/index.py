"""The timers that have joined the lane, in all the orders in which a block asks for them.

The orders stand still while a block selects: what the index hears meanwhile it takes into them when it is told to
`settle`. Only who is there at all, and the smallest gas limit, follow at once.

Decision: D-39, D-51
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec
from sortedcontainers import SortedList

from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.fee_lane.gas_limits import GasLimits
from trailboss.mechanisms.fee_lane.shelf import Group, Shelf
from trailboss.model.configs import AMOUNT_WIDTH
from trailboss.model.timers import FEES_WIDTH, DeferralReason, Timer
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Cycles, Price

UNRANKED_MAX: Final = 10_000
"""Expired timers that are taken out of the ranking in one block at most; until then the walk passes them by."""
_group_key = attrgetter("is_over_cap", "fees", "payer")
Place = tuple[int, int, bytes]
"""Height, sequence and id: a place in due order."""


class Entry(msgspec.Struct, gc=False):
    """What the index keeps of a joined timer.

    Attributes:
        expires_at: Last height at which it may fire.
        height: At which it is due.
        sequence: Place in the order of insertion; no two timers share one.
        timer_id: 32 bytes.
        gas_limit: Cycles that a fire may use. Decision: D-13.
        stated_gas: The same before any clamp.
        schedule_block: Height of the block that scheduled it.
        is_told: Whether its owner knows that it is above the cap.
        group: The timers of its actor that offer the same and have the same payer.
    """

    expires_at: int
    height: int
    sequence: int
    timer_id: bytes
    gas_limit: Cycles
    stated_gas: Cycles
    schedule_block: int
    is_told: bool
    group: Group

    @property
    def place(self) -> Place:
        """Where it stands in due order."""
        return self.height, self.sequence, self.timer_id


class Actor(msgspec.Struct, eq=False, gc=False):
    """An actor with timers in the index: its fires within the window, and its groups."""

    fires: int
    groups: list[Group]


class LaneIndex(Follower):
    """The joined timers.

    Joining and hearing: `join`, `leave`, `expire`, `replace`, `recount`, `settle`, `forget_left`.
    Asking: `entries`, `left`, `untold`, `asking`, `shelves`, `gas_limits`, `over_cap`, `priced_out`.

    n counts joined timers. An actor's move to another number of fires costs O(log n) for each of its groups, whatever
    their timers: there are as many groups as the actor's waiting timers make different offers.

    Attributes:
        entries: By id; of all timers that are there now and have not expired.
        left: By id; those that have left since the orders were last settled.
        untold: Those above the cap that have not been told so, in due order.
        asking: Those whose agents are to be asked, in due order.
        shelves: By the fires of the actors, and whether the fees are frozen.
        gas_limits: Of all that are not above the cap and are there now.
        over_cap: How many are above the cap.
    """

    __slots__ = (
        "_actors", "_cap", "_clamps_before", "_expired", "_fee_caps", "_recounted", "_replaced",
        "asking", "entries", "gas_limits", "left", "over_cap", "shelves", "untold",
    )  # fmt: skip

    def __init__(self, cap: Cycles, clamps_before: int) -> None:
        """Make an index without timers.

        Args:
            cap: Cycles one fire may use in the lane.
            clamps_before: Timers scheduled before this height are held to the cap instead of being above it.
        """
        self.entries: dict[bytes, Entry] = {}
        self._replaced: dict[bytes, Timer] = {}
        self._recounted: dict[bytes, int] = {}
        self._clear(cap, clamps_before)

    def _clear(self, cap: Cycles, clamps_before: int) -> None:
        self._cap, self._clamps_before = cap, clamps_before
        self.left: dict[bytes, Entry] = {}
        self.untold = SortedList()
        self.asking = SortedList()
        self.shelves: dict[tuple[int, bool], Shelf] = {}
        self.over_cap = 0
        self._actors: dict[bytes, Actor] = {}
        self._fee_caps = SortedList()
        self.gas_limits = GasLimits()
        self._expired: dict[bytes, Entry] = {}  # By id; they are counted nowhere, and still in their groups.

    # What a block asks

    def fires_of(self, actor: bytes) -> int:
        """Return the fires of an actor that has timers here."""
        return self._actors[actor].fires

    def priced_out(self, basefee: int) -> int:
        """Return how many have frozen fees that do not cover a basefee. Complexity: O(log n)."""
        count: int = self._fee_caps.bisect_left(basefee)
        return count

    def is_set_aside(self, timers: int) -> bool:
        """Return whether so many timers are all there are, all are above the cap, and all are told so.

        It is false until the orders have been settled. Complexity: O(1).
        """
        is_settled = not (self.left or self._replaced or self._recounted or self._expired)
        return is_settled and not self.untold and timers == len(self.entries) == self.over_cap

    # What it hears

    def join(self, timers: Iterable[Timer], fires_of: Callable[[bytes], int]) -> None:
        """Take in timers; read one by one.

        Complexity: O(log n) a timer.

        Args:
            timers: None of them is here.
            fires_of: Actor to its fires within the window.

        Raises:
            InvariantError: If one has joined already.
        """
        joined: list[Entry] = []
        shared: dict[int, Any] = {}  # Many timers have the same heights and limits, and each integer takes memory.
        for timer in timers:
            if timer.timer_id in self.entries:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins the lane a second time")
            owner = self._actors.get(timer.actor)
            if owner is None:
                owner = self._actors[timer.actor] = Actor(fires_of(timer.actor), [])
            stated_gas = shared.setdefault(timer.gas_limit, timer.gas_limit)
            gas_limit = self._clamped(stated_gas, timer.schedule_block)
            is_over_cap = gas_limit > self._cap
            if not is_over_cap:
                self.gas_limits.add(gas_limit)
            entry = self.entries[timer.timer_id] = Entry(
                shared.setdefault(timer.expires_at, timer.expires_at),
                shared.setdefault(timer.height, timer.height),
                timer.sequence,
                timer.timer_id,
                gas_limit,
                stated_gas,
                shared.setdefault(timer.schedule_block, timer.schedule_block),
                _is_told(timer),
                self._group(owner, timer.actor, timer.fee_payer, timer.fees, is_over_cap=is_over_cap),
            )
            joined.append(entry)
        self._put_in(joined)

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left, if it was here. Complexity: O(1), and O(log n) when the orders are settled."""
        entry = self.entries.pop(timer_id, None)
        if entry is None:
            return
        self.left[timer_id] = entry
        self._replaced.pop(timer_id, None)
        if not entry.group.is_over_cap:
            self.gas_limits.drop(entry.gas_limit)

    def expire(self, timer_ids: Iterable[bytes]) -> None:
        """Hear which timers can fire no more, if they are here.

        Complexity: O(log n) each, and again when it is taken out of its group.
        """
        for timer_id in timer_ids:
            entry = self.entries.pop(timer_id, None)
            if entry is not None:
                self._expired[timer_id] = entry
                self._replaced.pop(timer_id, None)
                if not entry.group.is_over_cap:
                    self.gas_limits.drop(entry.gas_limit)
                self._uncount(entry)

    def replace(self, timer: Timer) -> None:
        """Hear of a timer's new record, if it is here. Complexity: as `leave`."""
        if timer.timer_id in self.entries:
            self._replaced[timer.timer_id] = timer

    def recount(self, actor: bytes, fires: int) -> None:
        """Hear of an actor's fires, if it has timers here. Complexity: O(1), and that of its move when settled."""
        if actor in self._actors:
            self._recounted[actor] = fires

    def settle(self, cap: Cycles, clamps_before: int) -> None:
        """Take all that was heard into the orders.

        Another cap is an act of governance, and a new index.

        Args:
            cap: Cycles one fire may use in the lane.
            clamps_before: Timers scheduled before this height are held to the cap.
        """
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
        """Take those that have left out of the orders.

        Complexity: O(log n) for each; if more have left than are here, the index is built again.
        """
        if len(self.left) > len(self.entries):
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
        for entry in self.entries.values():
            address, payer, fees = entry.group.actor, entry.group.payer, entry.group.fees
            owner = self._actors.setdefault(address, Actor(owners[address].fires, []))
            entry.gas_limit = self._clamped(entry.stated_gas, entry.schedule_block)
            entry.group = self._group(owner, address, payer, fees, is_over_cap=entry.gas_limit > cap)
            if not entry.group.is_over_cap:
                self.gas_limits.add(entry.gas_limit)
        self._put_in(self.entries.values())

    def _clamped(self, gas_limit: Cycles, schedule_block: int) -> Cycles:
        return min(gas_limit, self._cap) if schedule_block < self._clamps_before else gas_limit

    def _take_replaced(self) -> None:
        former, present = [], []
        for timer_id, timer in self._replaced.items():
            entry = self.entries[timer_id]
            if (timer.expires_at, timer.fees, _is_told(timer)) != (entry.expires_at, entry.group.fees, entry.is_told):
                former.append(entry)
                group = entry.group
                owner, is_over_cap = self._actors[group.actor], group.is_over_cap
                group = self._group(owner, group.actor, group.payer, timer.fees, is_over_cap=is_over_cap)
                changes = {"expires_at": timer.expires_at, "is_told": _is_told(timer), "group": group}
                self.entries[timer_id] = msgspec.structs.replace(entry, **changes)
                present.append(self.entries[timer_id])
        self._replaced.clear()
        for entry in former:
            self._take_out(entry)
        self._put_in(present)
        self._drop_empty(former)

    def _move(self, address: bytes, fires: int) -> None:
        """Move an actor's groups to the shelves of another number of fires."""
        owner = self._actors.get(address)
        if owner is None or owner.fires == fires:
            return
        groups = [group for group in owner.groups if group.ids and not group.is_over_cap]
        for group in groups:
            self._from_shelf(group, group.ids[0])
        owner.fires = fires
        for group in groups:
            self._shelf(group).add(group)

    def _group(self, owner: Actor, address: bytes, payer: bytes, fees: bytes, *, is_over_cap: bool) -> Group:
        """Return the group of an actor's timers that offer the same; a new one is empty, and on no shelf yet."""
        key = is_over_cap, fees, payer
        place = bisect_left(owner.groups, key, key=_group_key)
        if place < len(owner.groups) and _group_key(owner.groups[place]) == key:
            return owner.groups[place]
        max_fee = max_priority = 0
        if len(fees) == FEES_WIDTH:
            max_fee, max_priority = (
                int.from_bytes(fees[:AMOUNT_WIDTH], "big"),
                int.from_bytes(fees[AMOUNT_WIDTH:], "big"),
            )
        group = Group(address, payer, fees, is_over_cap, Price(max_fee), Price(max_priority))
        owner.groups.insert(place, group)
        return group

    def _put_in(self, entries: Collection[Entry]) -> None:
        before: dict[Group, tuple[bytes | None, int]] = {}
        for entry in entries:
            group = entry.group
            if group not in before:
                before[group] = group.ids[0] if group.ids else None, group.last_expiry
            group.ids.append(entry.timer_id)
            group.last_expiry = max(group.last_expiry, entry.expires_at)
        for group, (first, last_expiry) in before.items():
            group.ids.sort()
            if group.is_over_cap:
                continue
            if first is None:
                self._shelf(group).add(group)
            elif (group.ids[0], group.last_expiry) != (first, last_expiry):
                self._shelf(group).change(group, first)
        inside = [entry for entry in entries if not entry.group.is_over_cap]
        outside = [entry for entry in entries if entry.group.is_over_cap]
        self.over_cap += len(outside)
        self.untold.update([entry.place for entry in outside if not entry.is_told])
        self.asking.update([entry.place for entry in inside if entry.group.is_asking])
        self._fee_caps.update([entry.group.max_fee for entry in inside if entry.group.is_frozen])

    def _take_out(self, entry: Entry) -> None:
        self._uncount(entry)
        self._unrank(entry)

    def _uncount(self, entry: Entry) -> None:
        """Take a timer from every list but its group."""
        group = entry.group
        if group.is_over_cap:
            self.over_cap -= 1
            if not entry.is_told:
                self.untold.remove(entry.place)
        elif group.is_frozen:
            self._fee_caps.remove(group.max_fee)
        elif group.is_asking:
            self.asking.remove(entry.place)

    def _unrank(self, entry: Entry) -> None:
        """Take a timer from its group."""
        group = entry.group
        first = group.ids[0]
        del group.ids[bisect_left(group.ids, entry.timer_id)]
        if group.is_over_cap:
            return
        if not group.ids:
            self._from_shelf(group, first)
        elif group.ids[0] != first:
            self._shelf(group).change(group, first)

    def _shelf(self, group: Group) -> Shelf:
        key = self._actors[group.actor].fires, group.is_frozen
        shelf = self.shelves.get(key)
        if shelf is None:
            shelf = self.shelves[key] = Shelf()
        return shelf

    def _from_shelf(self, group: Group, first: bytes) -> None:
        shelf = self._shelf(group)
        shelf.remove(group, first)
        if shelf.root is None:
            del self.shelves[self._actors[group.actor].fires, group.is_frozen]

    def _drop_empty(self, former: Iterable[Entry]) -> None:
        """Drop groups that hold no timer any more, and actors without groups."""
        for group in {entry.group: None for entry in former}:
            if not group.ids:
                owner = self._actors[group.actor]
                del owner.groups[bisect_left(owner.groups, _group_key(group), key=_group_key)]
                if not owner.groups:
                    del self._actors[group.actor]


def _is_told(timer: Timer) -> bool:
    return timer.deferred_for == DeferralReason.OVER_CAP
