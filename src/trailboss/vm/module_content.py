"""What the run of a module has made: its containers and what they hold, so that a change of one is found."""

from collections.abc import Callable, Container, Iterable
from itertools import chain, islice
from operator import call, is_
from types import (
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any, Final

from msgspec import Struct

from trailboss.metering.gauge import identity

ITEMS_MAX: Final = 512
"""Items in all containers of a module that is kept: to compare more takes longer than to make them."""
_UNCHANGING: Final = frozenset(map(identity, (
    *(bool, int, float, complex, str, bytes, type(None), type(...), CodeType, GenericAlias, UnionType),
    *(GetSetDescriptorType, WrapperDescriptorType),
)))  # fmt: skip
"""Types of objects that stay as they are."""
ACTOR_RECORD: Final = "_ActorDefinition"
_IS_MADE: Final = 1 << 9  # flag of a class that Python code has made; no program changes another
Reader = Callable[[], Iterable[Any]]
"""Lists what a container holds, without any code of a program."""


class ModuleContent(Struct, frozen=True, eq=False):
    """The containers of a module that has run, and its own classes."""

    readers: tuple[Reader, ...]  # of the containers that held something
    first: tuple[object, ...]  # what they held
    empty: tuple[Any, ...]  # the containers that held nothing: most of them, the attributes of functions
    classes: tuple[type, ...]

    def is_first(self) -> bool:
        """Return whether every container holds the very objects that it held."""
        found = tuple(chain.from_iterable(map(call, self.readers)))
        return len(found) == len(self.first) and all(map(is_, found, self.first)) and not any(self.empty)


def find_content(space: dict[str, Any], names: int, leaves: Container[int]) -> ModuleContent | None:
    """Return what a module has made, or None if something in it can change without a trace in its containers.

    Args:
        space: The names of the module, after others.
        names: How many others.
        leaves: Identities of values that are not the program's.
    """
    seen: dict[int, object] = {identity(space): space}
    readers: list[Reader] = [lambda: islice(space, names, None), lambda: islice(space.values(), names, None)]
    empty: list[Any] = []
    classes: list[type] = []
    waiting = [*readers[1]()]
    while waiting:
        each = waiting.pop()
        if identity(type(each)) in _UNCHANGING or identity(each) in leaves or identity(each) in seen:
            continue
        seen[identity(each)] = each
        found = _read(each, type(each), leaves)
        if found is None:
            return None
        container, own, others = found
        waiting += chain(others, *(reader() for reader in own))
        if container:
            readers += own
        elif own:
            empty.append(container)
        if own and type(each) is type:
            classes.append(each)
    first = tuple(chain.from_iterable(map(call, readers)))
    return ModuleContent(tuple(readers), first, tuple(empty), tuple(classes)) if len(first) <= ITEMS_MAX else None


def _read(each: Any, kind: Any, leaves: Container[int]) -> tuple[Any, list[Reader], Iterable[Any]] | None:
    """Return the container that an object is or has, its readers, and what else the object holds.

    None for an object that may hold something else.
    """
    if kind is FunctionType:
        return *_entries(vars(each)), [*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values(), *_cells(each)]
    if kind is type:
        return (*_entries(vars(each)), each.__bases__) if each.__flags__ & _IS_MADE else _NOTHING
    if kind is dict:
        return *_entries(each), ()
    if kind is list or kind is set:
        return each, [each.__iter__], ()
    if kind is tuple:
        return None, [], each
    if kind is property:
        return None, [], (each.fget, each.fset, each.fdel)
    if kind is staticmethod or kind is classmethod:
        return *_entries(vars(each)), (each.__func__,)
    # No constant program reaches what the SDK keeps of a class.
    return _NOTHING if identity(kind) in leaves and kind.__name__ == ACTOR_RECORD else None


_NOTHING: Final[tuple[None, list[Reader], tuple[()]]] = None, [], ()


def _entries(space: Any) -> tuple[Any, list[Reader]]:
    return space, [space.__iter__, space.values]


def _cells(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
