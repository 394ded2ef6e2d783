"""What mechanisms with an index share in the slow model: due timers join, and the expired ones of them are removed."""

from typing import Any

from tests.model.fifo import FifoBlocks
from tests.model.world import Timer


def due_order(timer: Timer) -> tuple[int, int]:
    """Older heights first, and within a height who was scheduled first."""
    return timer.height, timer.sequence


class JoiningBlocks(FifoBlocks):
    """A chain whose due timers join before they take part. Decision: D-51.

    Attributes:
        mechanism: Subject of the parameters that say how many join.
        joined: Ids of the timers that have joined, those included that have left meanwhile.
        gc_left: Cycles that the block has for removals.
    """

    mechanism = "lane"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.joined: set[bytes] = set()
        self.gc_left = 0

    def copy(self) -> "JoiningBlocks":
        """Return a model that goes on from here without touching this one."""
        twin = super().copy()
        twin.joined = set(self.joined)
        return twin

    def joined_timers(self) -> list[Timer]:
        """Return the timers that have joined and wait, in due order."""
        return sorted((timer for timer in self.world.timers if timer.timer_id in self.joined), key=due_order)

    def join(self) -> list[Timer]:
        """Let due timers join, and return all that have, in due order."""
        due = [timer for timer in self.world.timers if timer.height <= self.height and self.comes_due(timer)]
        outside = sorted((timer for timer in due if timer.timer_id not in self.joined), key=self._joining_order)
        self.joined |= {timer.timer_id for timer in outside[: self.rules[self.mechanism]["joined_max"]]}
        return self.joined_timers()

    def comes_due(self, timer: Timer) -> bool:
        """Return whether a timer joins when its height has come."""
        return True

    def _joining_order(self, timer: Timer) -> Any:
        """The timers of the block's own height join first, and then the oldest."""
        return timer.height != self.height, timer.height, timer.sequence

    def can_remove(self) -> bool:
        """Take what one removal costs from the budget of the block. Spec: CIP-1v3 §9. Decision: D-23."""
        price = self.rules["timers"]["gc_cycles_per_timer"]
        if self.gc_left < price:
            return False
        self.gc_left -= price
        return True

    def remove_expired(self, timers: list[Timer]) -> None:
        """Remove the expired among timers, the earliest expiry first, as long as the budget lasts."""
        expired = [timer for timer in timers if timer.expires_at < self.height]
        for timer in sorted(expired, key=lambda timer: (timer.expires_at, *due_order(timer))):
            if not self.can_remove():
                break
            self.expire(timer)
