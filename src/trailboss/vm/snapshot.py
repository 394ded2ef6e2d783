"""The objects that all frames share, and their state before the first frame."""

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, Final

from msgspec import Struct

from trailboss.vm.gauge import identity
from trailboss.vm.rules import is_sdk

ABSENT: Final = object()


def _put_items(container: dict[Any, Any], first: dict[Any, Any]) -> None:
    dict.clear(container)
    dict.update(container, first)


def _put_members(container: set[Any], first: set[Any]) -> None:
    set.clear(container)
    set.update(container, first)


_PUTS: Final[dict[Any, Callable[[Any, Any], None]]] = {
    list: lambda container, first: list.__setitem__(container, slice(None), first),
    bytearray: lambda container, first: bytearray.__setitem__(container, slice(None), first),
    dict: _put_items,
    set: _put_members,
}


class Shared(Struct, frozen=True):
    """The objects that frames share."""

    identities: frozenset[int]  # of everything that has attributes or items to set
    # For each container, the function that restores it, itself, and a copy of its first content.
    puts: tuple[tuple[Callable[[Any, Any], None], Any, Any], ...]
    empty: tuple[Any, ...]  # the containers that were empty: most of them, above all the attributes of functions

    def restore(self) -> None:
        """Restore every container's first content."""
        for put_back, container, first in self.puts:
            put_back(container, first)
        if any(self.empty):
            for container in self.empty:
                container.clear()


def find_shared(modules: Iterable[ModuleType]) -> Shared:
    """Find the objects that can be reached from modules of the SDK.

    Objects other than the SDK's own count, but their contents are not searched: functions and classes of this process.
    """
    seen: dict[int, object] = {}
    puts: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
    empty: list[Any] = []
    waiting: list[object] = list(modules)
    while waiting:
        each = waiting.pop()
        if identity(each) in seen or isinstance(each, str | bytes | int | float | None):
            continue
        seen[identity(each)] = each
        for kind, put_back in _PUTS.items():
            # By the methods of the plain type, because the SDK has subclasses whose own methods ask the host.
            if type(each) is kind and not each:
                empty.append(each)
            elif isinstance(each, kind):
                puts.append((put_back, each, kind.copy(each)))
        waiting += _parts(each)
    settable = (key for key, each in seen.items() if not isinstance(each, tuple | frozenset))
    return Shared(frozenset(settable), tuple(puts), tuple(empty))


def _parts(each: object) -> Iterator[object]:
    """Yield what an object holds."""
    match each:
        case ModuleType() if is_sdk(each.__name__):
            yield from (value for name, value in vars(each).items() if name != "__builtins__")
        case type() if _is_sdk(each):
            yield from vars(each).values()
        case FunctionType() if _is_sdk(each):
            yield from (each.__defaults__, each.__kwdefaults__, each.__dict__)
            yield from (cell.cell_contents for cell in each.__closure__ or ())
        case staticmethod() | classmethod():
            yield each.__func__
        case property():
            yield from (each.fget, each.fset, each.fdel)
        case dict():
            yield from dict.values(each)
        case list():
            yield from list.__iter__(each)
        case tuple():
            yield from tuple.__iter__(each)
        case _ if _is_sdk(type(each)) and hasattr(each, "__dict__"):
            yield vars(each)


def _is_sdk(each: Callable[..., object]) -> bool:
    return is_sdk(str(getattr(each, "__module__", "")))
