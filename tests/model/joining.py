"""What mechanisms with an index share in the slow model: due timers join, and the expired ones of them are removed."""

from typing import Any

from tests.model.fifo import FifoBlocks, by_expiry
from tests.model.world import Timer

Gap = tuple[tuple[int, int], int]
"""Place of the first timer, and height of the last."""


def due_order(timer: Timer) -> tuple[int, int]:
    """Older heights first, and within a height who was scheduled first."""
    return timer.height, timer.sequence


class JoiningBlocks(FifoBlocks):
    """A chain whose due timers join before they take part. Decision: D-51.

    Attributes:
        mechanism: Subject of the parameters that say how many join.
        joined: Ids of the timers that have joined, those included that have left meanwhile.
        gaps: What has yet to join, as the place of the first and the height of the last; None before the first block.
        barred: Of what has not joined since it could not be paid: payer, place of the first, and end.
    """

    mechanism = "lane"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.joined: set[bytes] = set()
        self.gaps: list[Gap] | None = None
        self.barred: list[tuple[bytes, tuple[int, int], tuple[int, int]]] = []

    def copy(self) -> "JoiningBlocks":
        """Return a model that goes on from here without touching this one."""
        twin = super().copy()
        twin.joined = set(self.joined)
        twin.gaps = None if self.gaps is None else list(self.gaps)
        twin.barred = list(self.barred)
        return twin

    def joined_timers(self) -> list[Timer]:
        """Return the timers that have joined and wait, in due order."""
        return [timer for timer in self.due_timers() if timer.timer_id in self.joined]

    def due_timers(self) -> list[Timer]:
        """Return the timers that are due and have not expired, in due order."""
        return sorted((timer for timer in self.world.timers if self.is_due(timer)), key=due_order)

    def is_due(self, timer: Timer) -> bool:
        """Return whether a timer's height has come, and its last height has not passed."""
        return timer.height <= self.height <= timer.expires_at

    def join(self) -> list[Timer]:
        """Let due timers join, and return all that have, in due order. Decision: D-51, D-79."""
        room = self.rules[self.mechanism]["joined_max"]
        gaps = [((0, 0), self.height - 1)] if self.gaps is None else self.gaps
        self.gaps = []
        for first, last in self._joining_order(((self.height, 0), self.height), gaps):
            room = self._join_gap(room, first, last) if room else self._keep(room, first, last)
        self.gaps.sort()
        self._join_barred(room)
        return self.joined_timers()

    def _joining_order(self, own: Gap, gaps: list[Gap]) -> list[Gap]:
        """Return what has yet to join, the block's own height first."""
        return [own, *gaps]

    def _keep(self, room: int, first: tuple[int, int], last: int) -> int:
        assert self.gaps is not None
        self.gaps.append((first, last))
        return room

    def _join_gap(self, room: int, first: tuple[int, int], last: int) -> int:
        """Let timers of a gap join; only if there is no room for all does it matter who can pay."""
        firsts = {payer: begin for payer, begin, end in self.barred if end == first and last < self.height}
        self.barred = [each for each in self.barred if each[2] != first or last == self.height]
        inside = [timer for timer in self.due_timers() if first <= due_order(timer) and timer.height <= last]
        inside = [timer for timer in inside if timer.fee_payer not in firsts]
        end = (last + 1, 0)
        is_crowded = len(inside) > room
        for timer in inside:
            if timer.fee_payer in firsts:
                continue
            if is_crowded and not self._can_join(timer):
                self.occurred.append("payer barred")
                firsts[timer.fee_payer] = due_order(timer)
            elif room:
                room -= 1
                self.joined.add(timer.timer_id)
            else:
                end = due_order(timer)
                self._keep(room, end, last)
                break
        self.barred += [(payer, begin, end) for payer, begin in firsts.items()]
        return room

    def _join_barred(self, room: int) -> None:
        """Let barred timers join that can be paid by now."""
        if not room:
            return
        left: list[tuple[bytes, tuple[int, int], tuple[int, int]]] = []
        stops: dict[bytes, tuple[int, int]] = {}
        stop = (1 << 64, 0)
        for timer in [timer for timer in self.due_timers() if self.is_barred(timer)]:
            if timer.fee_payer in stops:
                continue
            if not self._can_join(timer):
                stops[timer.fee_payer] = due_order(timer)
            elif room:
                room -= 1
                self.joined.add(timer.timer_id)
                self.occurred.append("barred timer joins")
            else:
                stop = due_order(timer)
                break
        for payer, first, end in self.barred:
            begin = max(first, stops.get(payer, stop))
            if begin < end:
                left.append((payer, begin, end))
        self.barred = left

    def is_barred(self, timer: Timer) -> bool:
        """Return whether a due timer has not joined because it could not be paid."""
        return any(payer == timer.fee_payer and first <= due_order(timer) < end for payer, first, end in self.barred)

    def _can_join(self, timer: Timer) -> bool:
        return self.world.account(timer.fee_payer).balance >= self.least_cost(timer)

    def least_cost(self, timer: Timer) -> int:
        """Return the least that a fire is pre-charged for. Decision: D-79."""
        return self._max_cost(timer)

    def remove_expired(self, timers: list[Timer]) -> None:
        """Remove the expired among timers, the earliest expiry first, as long as the budget lasts."""
        for timer in sorted((timer for timer in timers if timer.expires_at < self.height), key=by_expiry):
            if not self.can_remove():
                break
            self.expire(timer)

    def remove_barred(self) -> None:
        """Remove barred timers that cannot be paid, as long as the budget lasts."""
        for timer in [timer for timer in self.due_timers() if self.is_barred(timer)]:
            if not self._can_join(timer) and self.can_remove():
                self.occurred.append("barred timer removed")
                self.unfund(timer, self.least_cost(timer))
