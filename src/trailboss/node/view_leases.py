"""Views of the chain leased to other programs, so that they can read one height in many requests.

A view costs what the chain has changed since, so lending one is cheap, and forgetting to return it is forgiven: the
first block after its lease ends it. Without blocks it costs nothing. Decision: D-77.
"""

from collections.abc import Callable
from threading import RLock
from typing import Final

from trailboss.chain.view import ChainView

LENT_MAX: Final = 64  # views leased at once; one more ends the lease unused for the longest time
LENT_NANOSECONDS: Final = 60 * 10**9  # how long a lease lasts after its last use


class Lender:
    """Lends views by number. Any thread may ask."""

    def __init__(self, now: Callable[[], int]) -> None:
        """Begin without leases, with a monotonic clock, nanoseconds."""
        self._now = now
        self._lent: dict[int, tuple[ChainView, int]] = {}
        self._next = 1
        self._lock = RLock()

    def lend(self, view: ChainView) -> int:
        """Lease a view, and return its number. Complexity: O(views leased)."""
        with self._lock:
            self.end_leases()
            while len(self._lent) >= LENT_MAX:
                del self._lent[next(iter(self._lent))]
            number, self._next = self._next, self._next + 1
            self._lent[number] = view, self._now()
            return number

    def find(self, number: int) -> ChainView | None:
        """Return the view of a number and extend its lease; None if the lease has ended."""
        with self._lock:
            self.end_leases()
            found = self._lent.pop(number, None)
            if found is None:
                return None
            # Behind all others: the order of the table is that of the last use.
            self._lent[number] = found[0], self._now()
            return found[0]

    def end_leases(self) -> None:
        """Let go of the views whose leases have ended: with each block, for the next program may be long in coming."""
        with self._lock:
            earliest = self._now() - LENT_NANOSECONDS
            while self._lent:
                number, (_, used_at) = next(iter(self._lent.items()))
                if used_at >= earliest:
                    return
                del self._lent[number]

    def __len__(self) -> int:
        return len(self._lent)
