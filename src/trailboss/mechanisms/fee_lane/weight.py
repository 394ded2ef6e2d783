"""W(actor): what an actor's recent fires leave of its priority. Spec: CIP-1v3 §8. Decision: D-11."""

from collections.abc import Iterable
from typing import Final

WHOLE: Final = 10**9  # W(actor) = 1, in the parts that weights are counted in
HIGHEST: Final = 2 * WHOLE  # W(actor) of an actor without a fire in the window, before the bounds
_GRAINS: Final = 16  # of heights in the time in which a waiting timer's weight rises by 1


def weight_of(fires: int, median: int, weight_min: int, weight_max: int) -> int:
    """Return W(actor) in parts of 10⁻⁹, rounded down: 2 less the ratio of fires to the median, within its bounds.

    Fires are the actor's within the window, the median is of all actors that have any there, 0 if none has. The bounds
    are in the same parts. The ratios 0, 0.3, 1 and 5:

    >>> [weight_of(fires, 10, WHOLE, 2 * WHOLE) for fires in (0, 3, 10, 50)]
    [2000000000, 1700000000, 1000000000, 1000000000]
    >>> weight_of(1, 3, WHOLE, 2 * WHOLE), weight_of(1, 0, WHOLE, 2 * WHOLE)
    (1666666666, 1000000000)
    """
    ratio = -(-fires * WHOLE // max(1, median))
    return min(max(HIGHEST - ratio, weight_min), weight_max)


def lower_median(counts: Iterable[tuple[int, int]]) -> int:
    """Return the median of (value, count), ascending, each count at least 1: the lower of two; 0 if there is none.

    >>> lower_median([]), lower_median([(3, 1)]), lower_median([(1, 2), (7, 2)]), lower_median([(1, 2), (7, 3)])
    (0, 3, 1, 7)
    """
    histogram = tuple(counts)
    before = (sum(count for _, count in histogram) - 1) // 2
    for value, count in histogram:
        if before < count:
            return value
        before -= count
    return 0


def smoothed(before: int, median: int, blocks: int) -> int:
    """Return an exponential average of medians, in parts of 10⁻⁹, after one more; the last counts for 1 ÷ blocks.

    It ends fewer than ``blocks`` parts below a median that stays, and exactly at one from above.

    >>> smoothed(4 * WHOLE, 9, 5), smoothed(4 * WHOLE, 9, 1), smoothed(1, 0, 1_000)
    (5000000000, 9000000000, 0)
    """
    return before + (median * WHOLE - before) // blocks


def ages_from(height: int, age_blocks: int) -> int:
    """Return the height from which on a timer due at a height gains weight: a multiple of a sixteenth of age_blocks.

    Timers that gain alike are few kinds, so that an index can keep them apart. It is 0 for all if none gains.

    >>> ages_from(100, 320), ages_from(101, 320), ages_from(101, 0)
    (100, 120, 0)
    """
    grain = max(1, age_blocks // _GRAINS)
    return -(-height // grain) * grain if age_blocks else 0


def gained_weight(aged_from: int, height: int, age_blocks: int) -> int:
    """Return the weight that a timer which gains from one height on has gained at another, in parts of 10⁻⁹.

    >>> gained_weight(120, 280, 320), gained_weight(120, 110, 320), gained_weight(0, 110, 0)
    (500000000, 0, 0)
    """
    return WHOLE * max(0, height - aged_from) // age_blocks if age_blocks else 0
