"""Items in order: a plain list while they are few, a `SortedList` once they are many."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from sortedcontainers import SortedList

SHORT_MAX: Final = 1_024
"""Items that are kept in a plain list: it takes a tenth of the memory of a `SortedList` of few."""
Item = TypeVar("Item", bound=tuple[Any, ...])


class Line(Generic[Item]):
    """Some items in order, each once."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Item] = ()) -> None:
        """Make a line of items that are in order already. Complexity: O(n)."""
        self._items: list[Item] | SortedList = list(items)
        self._lengthen()

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._items)

    def __iter__(self) -> Iterator[Item]:
        """Return them in order; nothing may be added or taken meanwhile."""
        return iter(self._items)

    @property
    def first(self) -> Item:
        """The first of them; there must be one."""
        item: Item = self._items[0]
        return item

    def add(self, item: Item) -> None:
        """Put an item in its place. Complexity: O(log n)."""
        if isinstance(self._items, list):
            insort(self._items, item)
            self._lengthen()
        else:
            self._items.add(item)

    def discard(self, item: Item) -> None:
        """Take an item out, if it is there. Complexity: O(log n)."""
        items = self._items
        place = bisect_left(items, item) if isinstance(items, list) else items.bisect_left(item)
        if place < len(items) and items[place] == item:
            del items[place]

    def take_first(self) -> Item:
        """Take the first out; there must be one. Complexity: O(1), amortized."""
        item: Item = self._items.pop(0)
        return item

    def _lengthen(self) -> None:
        if len(self._items) > SHORT_MAX:
            self._items = SortedList(self._items)
