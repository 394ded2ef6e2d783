"""Sorted sets that take little memory while they are small."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from pyroaring import BitMap64
from sortedcontainers import SortedList

# Members of a `SortedTuples` that are kept in a plain list: a `SortedList` of few takes ten times the memory.
SHORT_MAX: Final = 1_024
FEW_MAX: Final = 16  # members of a `SequenceSet` in a plain list, which takes less time and memory than a bitmap
MemberT = TypeVar("MemberT", bound=tuple[Any, ...])


class SortedTuples(Generic[MemberT]):
    """Tuples in order, each once: a plain list while they are few, then a `SortedList`."""

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[MemberT] = ()) -> None:
        """Make a set of members that are in order already. Complexity: O(n)."""
        found = list(members)
        self._members: list[MemberT] | SortedList = SortedList(found) if len(found) > SHORT_MAX else found

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._members)

    def __iter__(self) -> Iterator[MemberT]:
        """Return them in order; nothing may be added or taken meanwhile."""
        return iter(self._members)

    @property
    def first(self) -> MemberT:
        """The first of them; there must be one."""
        member: MemberT = self._members[0]
        return member

    def add(self, member: MemberT) -> None:
        """Add a member. Complexity: O(log n)."""
        if isinstance(self._members, list):
            insort(self._members, member)
            if len(self._members) > SHORT_MAX:
                self._members = SortedList(self._members)
        else:
            self._members.add(member)

    def discard(self, member: MemberT) -> None:
        """Remove a member, if it is there. Complexity: O(log n)."""
        members = self._members
        number = bisect_left(members, member) if isinstance(members, list) else members.bisect_left(member)
        if number < len(members) and members[number] == member:
            del members[number]

    def pop_first(self) -> MemberT:
        """Remove the first and return it; there must be one. Complexity: O(1), amortized."""
        member: MemberT = self._members.pop(0)
        return member


class SequenceSet:
    """FIFO sequences, each once: a plain list while they are few, then a roaring bitmap."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: list[int] | BitMap64 = []

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._numbers)

    def add(self, sequence: int) -> None:
        """Add one that is not there. Complexity: O(1), and O(log n) among many."""
        if isinstance(self._numbers, BitMap64):
            self._numbers.add(sequence)
            return
        insort(self._numbers, sequence)
        if len(self._numbers) > FEW_MAX:
            self._numbers = BitMap64(self._numbers)

    def remove(self, sequence: int) -> None:
        """Remove one that is there. Complexity: as `add`."""
        self._numbers.remove(sequence)

    @property
    def are_few(self) -> bool:
        """Whether they are at most ``FEW_MAX``, or were never more."""
        return isinstance(self._numbers, list)

    def since(self, first: int, without: BitMap64) -> Iterator[int]:
        """Return those from one on that are not in another set, ascending; nothing may change meanwhile.

        Complexity: O(1) each, beside a subtraction of bitmaps: O(n / 2¹⁶) for n that lie close together.
        """
        numbers = self._numbers
        if isinstance(numbers, BitMap64):
            return (numbers - without if without else numbers).iter_equal_or_larger(first)
        return (sequence for sequence in numbers if sequence >= first and sequence not in without)

    def add_to(self, others: BitMap64) -> None:
        """Add all to a bitmap. Complexity: O(n), a few instructions each."""
        others.update(self._numbers)
