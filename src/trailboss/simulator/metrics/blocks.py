"""How blocks are used, and what basefees do from block to block."""

from collections import deque
from collections.abc import Callable
from typing import Final

from trailboss.simulator.metrics.statistics import Moments, lyapunov
from trailboss.simulator.orders import BlockResult, View

FULL: Final = 0.9  # of the cycles that fires may use
BAND: Final = 0.1  # either way of a median, within which a basefee has settled
TAIL: Final = 1_000  # blocks whose basefees give the Lyapunov exponent
SAMPLE_MAX: Final = 16_384  # blocks whose basefees give the median
WORD: Final = 2**64
GOLDEN: Final = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: its multiples fill a word evenly. Source: Knuth, 6.4


class LaneMeasure:
    """How much of their room fires use, and what waits."""

    def __init__(self) -> None:
        self._use, self._backlog, self._cycles = Moments(), Moments(), Moments()
        self._full = self._empty = self._backlog_max = 0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        use = block.timer_cycles / block.view.lane_cycles_max
        self._use.add(use)
        self._full += use >= FULL
        self._empty += not block.timer_cycles
        self._backlog.add(block.waiting)
        self._backlog_max = max(self._backlog_max, block.waiting)
        self._cycles.add(block.cycles)

    def values(self) -> dict[str, float]:
        """Return use, backlog and size."""
        blocks = self._use.count or 1
        return {
            "use_mean": self._use.mean,
            "use_sd": self._use.variance**0.5,
            "full": self._full / blocks,
            "empty": self._empty / blocks,
            "backlog_mean": self._backlog.mean,
            "backlog_max": self._backlog_max,
            "block_cycles": self._cycles.mean,
        }


class BasefeeMeasure:
    """The range of a basefee, whether it settles, and whether it is chaotic.

    How far it reached since any block follows from its records, looking back from the last block. The median is that
    of all blocks, or of an even sample if there are more than 16,384.
    """

    def __init__(self, name: str, basefee_of: Callable[[View], int]) -> None:
        """Follow the basefee that ``basefee_of`` reads; its values have names that begin with ``name``."""
        self._name, self._basefee_of = name, basefee_of
        self._basefees = Moments()
        # Records that no later block reaches: basefee and number of its block, the extreme of all blocks first.
        self._highs: list[tuple[int, int]] = []
        self._lows: list[tuple[int, int]] = []
        self._sample: list[tuple[int, int]] = []  # number of a block and its basefee
        self._bound = WORD  # a block is in the sample if its place in a word is below
        self._tail = deque[int](maxlen=TAIL)

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        basefee, number = self._basefee_of(block.view), self._basefees.count
        self._basefees.add(basefee)
        self._tail.append(basefee)
        while self._highs and self._highs[-1][0] <= basefee:
            self._highs.pop()
        self._highs.append((basefee, number))
        while self._lows and self._lows[-1][0] >= basefee:
            self._lows.pop()
        self._lows.append((basefee, number))
        if number * GOLDEN % WORD < self._bound:
            self._sample.append((number, basefee))
        if len(self._sample) > SAMPLE_MAX:
            self._bound //= 2
            self._sample = [each for each in self._sample if each[0] * GOLDEN % WORD < self._bound]

    def values(self) -> dict[str, float]:
        """Return range, amplitude, settling time and Lyapunov exponent."""
        if not self._tail:
            return {}
        half = self._basefees.count // 2
        high = next(basefee for basefee, number in self._highs if number >= half)
        low = next(basefee for basefee, number in self._lows if number >= half)
        values = {
            "min": self._lows[0][0],
            "max": self._highs[0][0],
            "mean": self._basefees.mean,
            "amplitude": high / low if low else 1.0,
            "settling": self._settling(half),
            "lyapunov": lyapunov(self._tail),
        }
        return {f"{self._name}_{key}": value for key, value in values.items()}

    def _settling(self, half: int) -> int:
        """Return the number of blocks before the basefee stays within its band; -1 if it leaves it in the last half."""
        late = sorted(basefee for number, basefee in self._sample if number >= half)
        median = late[(len(late) - 1) // 2]
        above = (number for basefee, number in self._highs if basefee > median * (1 + BAND))
        below = (number for basefee, number in self._lows if basefee < median * (1 - BAND))
        outside = max(*above, *below, -1, -1)
        return outside + 1 if outside < half else -1
