"""A balance that pays for fires one after the other: how many, and where it runs out. Pure arithmetic."""

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

from msgspec import Struct

from trailboss.primitives.units import U64_MAX


class Loop(Struct, frozen=True):
    """Fires that follow one another."""

    first: int  # height of the first
    step: Fraction | None  # blocks from one to the next, above 0; None for one fire alone
    reserve: int  # what the balance must hold for one to start, base units
    cost: int  # what one costs in the end, base units, at most the reserve

    def height_of(self, number: int) -> int:
        """Return the height of a fire, counted from 0."""
        return self.first if self.step is None else self.first + number * self.step.numerator // self.step.denominator

    def fires_through(self, height: int) -> int:
        """Return how many fires there are up to a height."""
        if height < self.first:
            return 0
        if self.step is None:
            return 1
        return -(-(height - self.first + 1) * self.step.denominator // self.step.numerator)

    def has(self, number: int) -> bool:
        """Return whether there is a fire of that number, counted from 0."""
        return self.step is not None or number == 0

    def most_at_once(self) -> int:
        """Return how many of its fires one block may hold."""
        return 1 if self.step is None else -(-self.step.denominator // self.step.numerator)


class BalanceWalk(Struct, frozen=True):
    """How far a balance reaches."""

    fires: int  # fires that it pays for
    spent: int  # what these cost, base units
    # Height of the first that finds less than its reserve; None if none does up to height 2⁶⁴ - 1.
    dry_at: int | None = None
    required: int = 0  # that reserve; 0 if there is none
    available: int = 0  # what that fire finds


def walk_balance(loops: Sequence[Loop], balance: int, *, in_turn: bool) -> BalanceWalk:
    """Pay for fires in order of height until one finds less than its reserve.

    While the balance also holds all reserves of a block, every fire starts: up to the last such height, fires are
    counted and not walked.

    Complexity: O(loops) for each of 64 steps of a bisection, then O(log loops) for each fire that these reserves pay.

    Args:
        loops: Within one height fires come in this order.
        balance: What the payer holds, base units.
        in_turn: Whether each fire is settled before the next is reserved; otherwise all of a block are reserved first.
    """
    reserves = [loop.reserve * loop.most_at_once() for loop in loops]
    margin = max((loop.reserve for loop in loops), default=0) if in_turn else sum(reserves)
    sure = _last_height(loops, balance - margin)
    counts = [loop.fires_through(sure) for loop in loops]
    fires, left = sum(counts), balance - _spent(loops, sure)
    coming = [
        (loop.height_of(count), index, count)
        for index, (loop, count) in enumerate(zip(loops, counts, strict=True))
        if sure < U64_MAX and loop.has(count)
    ]
    heapify(coming)
    block, held = -1, 0
    while coming:
        height, index, number = heappop(coming)
        loop = loops[index]
        if height != block:
            block, held = height, 0
        if left - held < loop.reserve:
            return BalanceWalk(fires, balance - left, height, loop.reserve, left - held)
        fires += 1
        left -= loop.cost
        if not in_turn:
            held += loop.reserve - loop.cost
        if loop.has(number + 1):
            heappush(coming, (loop.height_of(number + 1), index, number + 1))
    return BalanceWalk(fires, balance - left)


def _last_height(loops: Sequence[Loop], amount: int) -> int:
    """Return the last height up to which all fires together cost at most an amount; -1 if that is below 0."""
    low, high = -1, U64_MAX
    if amount < 0:
        return low
    while low < high:
        middle = (low + high + 1) // 2
        if _spent(loops, middle) <= amount:
            low = middle
        else:
            high = middle - 1
    return low


def _spent(loops: Sequence[Loop], height: int) -> int:
    return sum(loop.cost * loop.fires_through(height) for loop in loops)
