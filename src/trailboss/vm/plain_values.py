"""Plain values: what a host call hands to a guest."""

from collections.abc import Mapping
from typing import Final

_PLAIN: Final = (bytes, str, int, bool, float, type(None))


def plain(value: object) -> object:
    """Return what a host answers as the guest gets it: of Python's own types exactly, within containers too.

    A guest could see a class of this process, and use it; and a program does not run the same way with a subclass as
    with the type itself, which another engine gives it.

    Raises:
        TypeError: If it is nothing that a host answers with.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        items = [plain(each) for each in value]  # type: ignore[attr-defined]  # mypy does not follow the types
        return items if kind is list else tuple(items)
    if isinstance(value, Mapping):
        return {plain(name): plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a host call answers with an object of type {kind.__name__}")
