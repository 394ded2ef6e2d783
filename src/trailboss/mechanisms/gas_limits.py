"""The smallest gas limit that waits."""

from sortedcontainers import SortedDict


class GasLimits:
    """How many timers wait with each gas limit.

    Attributes:
        smallest: Cycles; 0 while there are none.
    """

    __slots__ = ("_counts", "smallest")

    def __init__(self) -> None:
        self._counts = SortedDict()
        self.smallest = 0

    def add(self, gas_limit: int) -> None:
        """Count a timer. Complexity: O(1), O(log n) for the first of its limit."""
        self._counts[gas_limit] = self._counts.get(gas_limit, 0) + 1
        if not self.smallest or gas_limit < self.smallest:
            self.smallest = gas_limit

    def remove(self, gas_limit: int) -> None:
        """Count a timer no longer. Complexity: O(1), O(log n) for the last of its limit."""
        self._counts[gas_limit] -= 1
        if not self._counts[gas_limit]:
            del self._counts[gas_limit]
            if gas_limit == self.smallest:
                self.smallest = self._counts.peekitem(0)[0] if self._counts else 0

    def items(self) -> list[tuple[int, int]]:
        """Return (gas limit, timers), ascending."""
        return list(self._counts.items())
