"""The two meters of a frame, cycles and cells. Exhaustion is sticky, and guest code cannot catch it."""

from trailboss.primitives.units import Cells, Cycles


class OutOfGas(BaseException):
    """A meter passed its limit. A BaseException, so that a guest's ``except Exception`` does not see it.

    Handlers that would catch it re-raise it (instrumentation ensures this), and the frame's end is read from the meter.
    """


class Meter:  # no Struct, whose attributes take longer to set
    """Cycles and cells of one frame; what is used is above the limit once exhausted."""

    __slots__ = ("cells_limit", "cells_used", "cycles_limit", "cycles_used")

    def __init__(self, cycles_limit: int, cells_limit: int, cycles_used: int = 0, cells_used: int = 0) -> None:
        self.cycles_limit = cycles_limit
        self.cells_limit = cells_limit
        self.cycles_used = cycles_used
        self.cells_used = cells_used

    def charge_cycles(self, cycles: int) -> None:
        """Use cycles. `OutOfGas` if the limit is passed, now or earlier."""
        self.cycles_used += cycles
        if self.cycles_used > self.cycles_limit or self.cells_used > self.cells_limit:
            raise OutOfGas

    def charge_cells(self, cells: int) -> None:
        """Use cells. `OutOfGas` if the limit is passed, now or earlier."""
        self.cells_used += cells
        if self.cells_used > self.cells_limit or self.cycles_used > self.cycles_limit:
            raise OutOfGas

    def charged(self) -> tuple[Cycles, Cells]:
        """Return what to pay for; once exhausted the limit, not what the code that passed it would have used."""
        return Cycles(min(self.cycles_used, self.cycles_limit)), Cells(min(self.cells_used, self.cells_limit))

    @property
    def is_exhausted(self) -> bool:
        """Whether a limit is passed."""
        return self.cycles_used > self.cycles_limit or self.cells_used > self.cells_limit

    @property
    def cycles_left(self) -> int:
        """Cycles left; 0 once exhausted."""
        return max(self.cycles_limit - self.cycles_used, 0)

    @property
    def cells_left(self) -> int:
        """Cells left; 0 once exhausted."""
        return max(self.cells_limit - self.cells_used, 0)
