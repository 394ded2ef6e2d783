"""W(actor) as the lane finds it in each block, by the fires that are seen."""

from collections import Counter, deque
from collections.abc import Iterable
from statistics import fmean

from trailboss.mechanisms.fee_lane.weight import WHOLE, lower_median, smoothed, weight_of
from trailboss.params.records import LaneParams
from trailboss.simulator.ground import Ground
from trailboss.simulator.orders import BlockResult


class WeightMeasure:
    """The fairness window over the fires of all blocks, from the first: counts, network median, weights."""

    def __init__(self, ground: Ground) -> None:
        """Follow the blocks of a ground, from its first on."""
        self._lane: LaneParams = ground.params.lane
        self._account = ground.agent_of if self._lane.weight_per_deployer else None
        # A block weighs by those before it within the window, of which it is the last itself.
        self._blocks = deque[Counter[int]]([Counter()] * (self._lane.fairness_window_blocks - 1))
        self._counts = Counter[int]()  # accounts to fires within the window
        self._totals = Counter[int]()  # fires to how many accounts have had so many
        self._smoothed = 0  # parts of 10⁻⁹

    def see(self, block: BlockResult) -> None:
        """Take in a block, and let the oldest leave that the next block no longer counts."""
        fires = Counter(map(self._of, (fire.plan.order.actor for fire in block.fires)))
        self._blocks.append(fires)
        self._add(fires, 1)
        self._add(self._blocks.popleft(), -1)
        self._smoothed = smoothed(self._smoothed, self._lower_median(), self._lane.fires_median_blocks)

    def _of(self, actor: int) -> int:
        return actor if self._account is None else self._account[actor]

    def _add(self, fires: Counter[int], sign: int) -> None:
        for account, count in fires.items():
            before = self._counts[account]
            self._counts[account] = before + sign * count
            for total, change in ((before, -1), (before + sign * count, 1)):
                self._totals[total] += change
                if not self._totals[total]:
                    del self._totals[total]

    def _lower_median(self) -> int:
        return lower_median(sorted((total, count) for total, count in self._totals.items() if total and count > 0))

    @property
    def median(self) -> int:
        """Network median of fires that the next block weighs by."""
        return (self._smoothed + WHOLE // 2) // WHOLE

    def weight(self, actor: int) -> float:
        """Return W of an actor in the next block, from 1 to 2."""
        fires, lane = self._counts[self._of(actor)], self._lane
        return weight_of(fires, self.median, lane.weight_min, lane.weight_max) / WHOLE

    def mean(self, actors: Iterable[int]) -> float:
        """Return the mean W of actors."""
        return fmean(map(self.weight, actors))
