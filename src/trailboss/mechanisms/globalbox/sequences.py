"""FIFO sequences in ascending order: a short list, and a roaring bitmap where there are many."""

from bisect import insort
from collections.abc import Iterator
from typing import Final

from pyroaring import BitMap64

FEW_MAX: Final = 16
"""Sequences that are kept as a list: it takes less time and memory than a bitmap."""


class Sequences:
    """Some FIFO sequences, each once."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: list[int] | BitMap64 = []

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._numbers)

    def add(self, sequence: int) -> None:
        """Put one in that is not there. Complexity: O(1), and O(log n) among many."""
        numbers = self._numbers
        if isinstance(numbers, BitMap64):
            numbers.add(sequence)
            return
        insort(numbers, sequence)
        if len(numbers) > FEW_MAX:
            self._numbers = BitMap64(numbers)

    def remove(self, sequence: int) -> None:
        """Take one out that is there. Complexity: as `add`."""
        self._numbers.remove(sequence)

    @property
    def are_few(self) -> bool:
        """Whether they are at most ``FEW_MAX``, or were never more."""
        return isinstance(self._numbers, list)

    def since(self, first: int, without: BitMap64) -> Iterator[int]:
        """Return those from one on that are not in another set, ascending, while nothing is put in or taken out.

        Complexity: O(1) each, beside a subtraction of bitmaps: O(n / 2¹⁶) for n that lie close together.
        """
        numbers = self._numbers
        if isinstance(numbers, BitMap64):
            return (numbers - without if without else numbers).iter_equal_or_larger(first)
        return (sequence for sequence in numbers if sequence >= first and sequence not in without)

    def add_to(self, others: BitMap64) -> None:
        """Put all into a bitmap. Complexity: O(n), a few instructions each."""
        others.update(self._numbers)
