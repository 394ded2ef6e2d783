"""A dict that forgets its oldest entries."""

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedDict(dict[Key, Value]):
    """A dict of a bounded number of entries: one too many drops the one that was added first.

    >>> kept = BoundedDict(2)
    >>> kept["a"], kept["b"], kept["c"] = 1, 2, 3
    >>> kept
    {'b': 2, 'c': 3}
    """

    def __init__(self, limit: int) -> None:
        """Begin with nothing, for so many entries."""
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.limit:
            del self[next(iter(self))]
