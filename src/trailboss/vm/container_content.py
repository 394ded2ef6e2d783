"""What containers hold, so that a change of one is found without any code of theirs."""

import gc
import types
from collections.abc import Callable, Container, Iterable
from functools import partial
from itertools import chain
from operator import call, is_
from typing import Any, Final

from msgspec import Struct

from trailboss.metering.gauge import identity

ACTOR_RECORD: Final = "_ActorDefinition"  # what the SDK keeps of a class, which no constant program reaches
_CONTAINERS: Final[tuple[Any, ...]] = (dict, list, set, bytearray)
_UNCHANGING: Final = frozenset(map(identity, (
    *(bool, int, float, complex, str, bytes, type(None), type(...), types.CodeType, types.GenericAlias),
    *(types.UnionType, types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
)))  # fmt: skip
_HOLDERS: Final = frozenset(map(identity, (
    *_CONTAINERS, types.FunctionType, types.CellType, type, tuple, property, staticmethod, classmethod,
)))  # fmt: skip
_IS_MADE: Final = 1 << 9  # flag of a class that Python code has made; no program changes another


class ContainerContent(Struct, frozen=True, eq=False):
    """Containers, and what they have held."""

    readers: tuple[Callable[[], Iterable[object]], ...]  # of the containers that held something
    first: tuple[object, ...]  # what they held
    empty: tuple[Any, ...]  # the containers that held nothing: most of them, the attributes of functions

    def is_first(self) -> bool:
        """Return whether the containers hold the very objects that they held."""
        found = tuple(chain.from_iterable(map(call, self.readers)))
        return len(found) == len(self.first) and all(map(is_, found, self.first)) and not any(self.empty)


def content_of(containers: Iterable[Any]) -> ContainerContent:
    """Return the present content of dicts, lists, sets and bytearrays."""
    empty: list[Any] = []
    readers: list[Callable[[], Iterable[object]]] = []
    for each in containers:
        # By the methods of the plain type, because the SDK has subclasses whose own methods ask the host.
        kind = next(kind for kind in _CONTAINERS if isinstance(each, kind))
        if type(each) is kind and not each:
            empty.append(each)
        else:
            readers += [partial(kind.__iter__, each), *([partial(dict.values, each)] if kind is dict else [])]
    return ContainerContent(tuple(readers), tuple(chain.from_iterable(map(call, readers))), tuple(empty))


def find_content(space: dict[str, Any], leaves: Container[int]) -> ContainerContent | None:
    """Return what the names of a module lead to, up to objects of ``leaves``; None if there is more that may change."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [space]
    while waiting:
        each = waiting.pop()
        kind, key = type(each), identity(each)
        is_record = identity(kind) in leaves and kind.__name__ == ACTOR_RECORD
        is_foreign = is_record or key in leaves or (kind is type and not each.__flags__ & _IS_MADE)
        if key in seen or is_foreign or identity(kind) in _UNCHANGING:
            continue
        if identity(kind) not in _HOLDERS:
            return None
        if hasattr(each, "__dict__"):
            vars(each)  # a function makes it when it is first asked
        seen[key] = each
        waiting += gc.get_referents(each)
    return content_of(each for each in seen.values() if isinstance(each, _CONTAINERS))
