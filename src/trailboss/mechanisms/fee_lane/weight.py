"""W(actor): what an actor's recent fires leave of its priority. Spec: CIP-1v3 §8. Decision: D-11."""

from collections.abc import Iterable
from typing import Final

WHOLE: Final = 10**9  # W(actor) = 1, in the parts that weights are counted in
HIGHEST: Final = 2 * WHOLE  # W(actor) of an actor without a fire in the window, before the bounds


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
