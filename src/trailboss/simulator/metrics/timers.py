"""What becomes of timers: how they end, and how late their fires are."""

from collections import Counter
from typing import Final

from trailboss.model.timers import TimerEnd
from trailboss.simulator.metrics.statistics import Histogram, kaplan_meier
from trailboss.simulator.orders import BlockResult

PERCENTS: Final = (50, 95, 99)
BOUNDS: Final = (0, 1, 2, 5, 10, 50, 100)  # blocks


class CountMeasure:
    """How many timers came, fired and ended in other ways."""

    def __init__(self) -> None:
        self._scheduled = self._fired = self._reverted = self._refused = 0
        self._ends = Counter[TimerEnd]()

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._scheduled += len(block.accepted)
        self._fired += len(block.fires)
        self._reverted += sum(not fire.is_ok for fire in block.fires)
        self._refused += len(block.refused)
        self._ends.update(ending.end for ending in block.endings)

    def values(self) -> dict[str, float]:
        """Return the counts."""
        return {
            "scheduled": self._scheduled,
            "fired": self._fired,
            "reverted": self._reverted,
            "refused": self._refused,
            **{end.value: self._ends[end] for end in (TimerEnd.EXPIRED, TimerEnd.UNFUNDED, TimerEnd.CANCELLED)},
        }


class DelayMeasure:
    """How late fires are, and how long timers wait that may never fire.

    The survival function is that of the timers that are scheduled in the blocks seen and become due: one that ends
    without a fire, or waits after the last block, is censored at its lateness then. A state watch has no height from
    which it waits, so it counts by its fires alone.
    """

    def __init__(self) -> None:
        self._first = self._last = 0  # heights of blocks
        self._late = Histogram()
        self._ended, self._censored = Histogram(), Histogram()
        self._live: dict[int, int] = {}  # heights to how many live timers are due at them

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._last = block.view.height
        self._first = self._first or self._last
        live, first = self._live, self._first
        for plan in block.accepted:
            if plan.order.watches is None:
                height = plan.order.height
                live[height] = live.get(height, 0) + 1
        for fire in block.fires:
            late = fire.height - fire.due
            self._late.add(late)
            plan = fire.plan
            if plan.scheduled_at >= first and plan.order.watches is None:
                self._ended.add(late)
                self._leave(plan.order.height)
        for ending in block.endings:
            plan = ending.plan
            if plan.scheduled_at >= first and plan.order.watches is None:
                self._leave(plan.order.height)
                if (late := ending.height - plan.order.height) >= 0:
                    self._censored.add(late)

    def _leave(self, height: int) -> None:
        self._live[height] -= 1
        if not self._live[height]:
            del self._live[height]

    def values(self) -> dict[str, float]:
        """Return quantiles, shares and survival."""
        late, last = self._late, self._last
        waiting = {last - height: count for height, count in self._live.items() if height <= last}
        censored = dict(Counter(self._censored.counts) + Counter(waiting))
        cohort = self._ended.count + sum(censored.values())
        values: dict[str, float] = {"late_mean": late.mean()}
        values |= {f"late_p{percent}": late.percentile(percent) for percent in PERCENTS}
        values |= {"late_max": max(late.counts, default=-1)}
        values |= {f"late_over_{bound}": late.share_over(bound) for bound in BOUNDS}
        values |= {"waiting": sum(waiting.values()), "censored": sum(censored.values()) / cohort if cohort else 0.0}
        curve = kaplan_meier(self._ended.counts, censored)
        for bound in BOUNDS:
            values[f"survival_{bound}"] = min((left for time, left in curve if time <= bound), default=1.0)
        return values
