"""What fires are worth to their owners, and how near that comes to the most that was possible."""

from typing import Final

from trailboss.simulator.metrics.money import worth, worth_of
from trailboss.simulator.metrics.optimum import Job, optimum
from trailboss.simulator.orders import BlockResult, PlannedTimer

JOBS_MAX: Final = 2_000


class WelfareMeasure:
    """The worth of all fires."""

    def __init__(self) -> None:
        self._worth = 0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._worth += sum(map(worth_of, block.fires))

    def values(self) -> dict[str, float]:
        """Return the sum."""
        return {"welfare": self._worth}


class EfficiencyMeasure:
    """The worth of fires against the clairvoyant optimum, `optimum`.

    It follows the timers of the first blocks seen, up to the block with the 2,000th that is worth anything; the optimum
    gives them all the room of all blocks seen. If that block has more than twice as many, all blocks are one to the
    optimum, which is greater then. State watches are left out: they have no height at which they are due.
    """

    def __init__(self) -> None:
        self._first = self._last = self._until = self._cycles_max = self._worth = 0
        self._plans: list[PlannedTimer] = []

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._last, view = block.view.height, block.view
        self._first = self._first or view.height
        self._cycles_max = max(self._cycles_max, view.lane_cycles_max)
        if len(self._plans) < JOBS_MAX:
            self._until = view.height
            self._plans += [plan for plan in block.accepted if plan.order.watches is None and worth(plan.order, 0)]
        for fire in block.fires:
            if self._first <= fire.plan.scheduled_at <= self._until and fire.plan.order.watches is None:
                self._worth += worth_of(fire)

    def values(self) -> dict[str, float]:
        """Return the share of the optimum, 0 to 1; 1 if nothing was to be had."""
        jobs = [job for job in map(self._job, self._plans) if job.first <= job.last]
        room = self._cycles_max
        if len(jobs) > 2 * JOBS_MAX:
            room *= self._last + 1 - min(job.first for job in jobs)
            jobs = [job._replace(first=0, last=0) for job in jobs]
        best = optimum(jobs, room) if jobs else 0
        return {"efficiency": self._worth / best if best else 1.0}

    def _job(self, plan: PlannedTimer) -> Job:
        order = plan.order
        last = min(order.expires_at or self._last, self._last)
        if order.decay:
            last = min(last, order.height + (order.value - 1) // order.decay)
        return Job(order.height, last, max(order.cycles, 1), order.value)
