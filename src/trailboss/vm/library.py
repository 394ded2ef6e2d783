"""The modules that guests see: the SDKs, instrumented like actor code, and facades of the standard library.

The process's own modules are invisible. All frames of an engine share one library, which is in the same state before
every frame: names that the SDK rebinds are restored, and stores by actors are refused. Loading is free, so the first
frame costs the same as every later one. Decision: D-40.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from msgspec import Struct

from trailboss.metering.call_prices import Calls
from trailboss.metering.gauge import Gauge, identity
from trailboss.metering.meter import Meter
from trailboss.params import SourceCostParams
from trailboss.vm import guest_modules
from trailboss.vm.container_content import content_of
from trailboss.vm.guest_modules import FrameLocal, actor_builtins, new_facade, sdk_modules
from trailboss.vm.rules import ACTOR_MODULES, HOST, SDK, SDK_MODULES, is_sdk
from trailboss.vm.sdk_source import DOCUMENTED_NAMES, load_sdk_module, sdk_module_names

ABSENT: Final = object()
Space = Mapping[str, object] | None  # the names of a module or a function, as an import statement passes them
Names = Sequence[str] | None  # the names that it asks for


_REFILLS: Final[dict[Any, Callable[[Any, Any], Any]]] = {
    list: list.__iadd__, bytearray: bytearray.__iadd__, dict: dict.__ior__, set: set.__ior__,
}  # fmt: skip


class Shared(Struct, frozen=True):
    """The objects that frames share."""

    identities: frozenset[int]  # of everything that has attributes or items to set
    puts: tuple[tuple[type, Any, Any], ...]  # for each container its plain type, itself, and a copy of its content
    empty: tuple[Any, ...]  # the containers that were empty: most of them, above all the attributes of functions

    def captured(self) -> "Shared":
        """Return the same objects with their present content."""
        filled = [(type(each), each) for each in self.empty if each]
        present = [*((kind, each) for kind, each, _ in self.puts), *filled]
        puts = tuple([(kind, each, kind.copy(each)) for kind, each in present])  # type: ignore[attr-defined]
        return Shared(self.identities, puts, tuple([each for each in self.empty if not each]))

    def restore(self) -> None:
        """Restore every container's content."""
        for kind, container, first in self.puts:
            kind.clear(container)  # type: ignore[attr-defined]  # as the keys of `_REFILLS` have it
            _REFILLS[kind](container, first)
        if any(self.empty):
            for container in self.empty:
                container.clear()


def find_shared(modules: Iterable[ModuleType]) -> Shared:
    """Find the objects that can be reached from modules of the SDK.

    Objects other than the SDK's own count, but their contents are not searched: functions and classes of this process.
    """
    seen: dict[int, object] = {}
    puts: list[tuple[type, Any, Any]] = []
    empty: list[Any] = []
    waiting: list[object] = list(modules)
    while waiting:
        each = waiting.pop()
        if identity(each) in seen or isinstance(each, str | bytes | int | float | None):
            continue
        seen[identity(each)] = each
        for kind in _REFILLS:
            # By the methods of the plain type, because the SDK has subclasses whose own methods ask the host.
            if type(each) is kind and not each:
                empty.append(each)
            elif isinstance(each, kind):
                puts.append((kind, each, kind.copy(each)))
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


_UNMETERED: Final = 2**62  # cycles and depth of code outside every frame: the SDK's modules while they load


class Library:
    """The modules of one engine; ``shared`` are the identities of the objects that all frames share."""

    def __init__(
        self,
        prices: SourceCostParams,
        pvm_host: ModuleType,
        compile_text: Callable[..., CodeType],
        source_of: Callable[[FunctionType], str],
        write: Callable[[str], None],
    ) -> None:
        self.shared: set[int] = set()
        self.wrappers: dict[str, dict[str, Callable[[Any], Any]]] = {}  # of the SDK's functions, by module and name
        idle = Gauge(Meter(_UNMETERED, _UNMETERED), _UNMETERED, ())
        self.calls = Calls(prices, idle)
        self.builtins = actor_builtins(self.import_for_actor, lambda: self.shared, write, self.calls)
        self._prices = prices
        self._pvm_host = pvm_host
        self._loaded: dict[str, ModuleType] = {HOST: pvm_host}
        self._has_sdk = False  # whether every module of the SDK is loaded
        self._facades: dict[tuple[str, bool], ModuleType] = {}
        self._locals: list[FrameLocal] = []
        self._private = sdk_modules(self.import_for_sdk, self._loaded, self._new_local, source_of)
        names = guest_modules.sdk_builtins(self.import_for_sdk, compile_text, write, self.calls)
        self.sdk_builtins = {**names, **idle.instruments()}
        self._first = Shared(frozenset(), (), ())
        self._content = content_of(())
        self._rebound: list[tuple[dict[str, object], str, object]] = []
        self._lent: Mapping[str, object] | None = None  # the instruments of the frame that has the SDK
        for module in (pvm_host, *self._private.values()):
            self._protect(module)
        self._protect_functions(self.builtins.values())

    def import_for_actor(
        self, name: str, _globals: Space = None, _locals: Space = None, names: Names = None, level: int = 0
    ) -> ModuleType:
        """Serve an import statement of an actor. `ImportError` if the module or the name does not exist."""
        if level:
            raise ImportError("an actor is one module; it has no relatives")
        root = name.partition(".")[0]
        module = self._find(name, for_actors=True)
        if not names:
            return module if root == name else self.import_for_actor(root)
        _check_names(module, names)
        return module

    def import_for_sdk(
        self, name: str, importer: Space = None, _locals: Space = None, names: Names = None, level: int = 0
    ) -> ModuleType:
        """Serve an import statement of the SDK's own code. `ImportError` if the module or the name does not exist."""
        if level and importer is not None:
            package = str(importer["__package__"])
            name = f"{package}.{name}" if name else package
        module = self._find(name, for_actors=False)
        if not names:
            return self._find(name.partition(".")[0], for_actors=False)
        if not self._has_sdk:
            for each in names:
                if f"{name}.{each}" in sdk_module_names():
                    self._find(f"{name}.{each}", for_actors=False)
        _check_names(module, names)
        return module

    def prepare(self) -> None:
        """Load the SDK unless it is loaded. Loading calls no host, so no frame may be running."""
        if SDK not in self._loaded:
            self._load_sdk()

    def begin(self, instruments: Mapping[str, object]) -> Callable[[], None]:
        """Give the SDK to one frame, in its first state; return what gives it back to the frame before.

        Only frames whose program imports the SDK need it.
        """
        self.prepare()
        outer, self._lent = self._lent, instruments
        self.sdk_builtins.update(instruments)
        if outer is None:
            return self._restore

        # The frame that calls goes on with the SDK as it left it.
        before = self._first.captured()
        rebound_before = [(space, name, space.get(name, ABSENT)) for space, name, _ in self._rebound]
        locals_before = [(each, each.__dict__) for each in self._locals]
        self._restore()
        self._lent = instruments

        def end() -> None:
            self.sdk_builtins.update(outer)
            self._lent = outer
            before.restore()
            _bind(rebound_before)
            for each, attributes in locals_before:
                each.__dict__ = attributes

        return end

    def is_first(self) -> bool:
        """Return whether the SDK is as every frame finds it."""
        is_bound = all(space.get(name, ABSENT) is value for space, name, value in self._rebound)
        return is_bound and self._content.is_first() and not any(map(vars, self._locals))

    def foreign(self) -> set[int]:
        """Return the identities of everything that no actor has made."""
        spaces = [*map(vars, (*self._loaded.values(), *self._facades.values())), self.builtins, self.sdk_builtins]
        shown = (space.values() for space in (*spaces, vars(guest_modules.Plain)))
        return self.shared.union(map(identity, chain(spaces, (guest_modules.Plain,), *shown)))

    def _restore(self) -> None:
        """Put the SDK into its first state."""
        self._lent = None
        self._first.restore()
        _bind(self._rebound)
        for each in self._locals:
            each.__dict__ = {}

    def _find(self, name: str, *, for_actors: bool) -> ModuleType:
        if name in self._loaded:
            return self._loaded[name]
        if name in sdk_module_names():
            return self._load(name)
        if not for_actors and name in self._private:
            return self._private[name]
        return self._facade(name, for_actors)

    def _load_sdk(self) -> None:
        """Load every module of the SDK, so that all frames find the same ones."""
        modules = [self._find(name, for_actors=False) for name in sdk_module_names()]
        self._has_sdk = True
        self._first = find_shared(modules)
        self._content = content_of([*(each for _, each, _ in self._first.puts), *self._first.empty])
        self.shared |= self._first.identities
        for module in modules:
            space = module.__dict__
            names = load_sdk_module(module.__name__, self._prices).rebound
            self._rebound += [(space, name, space.get(name, ABSENT)) for name in names]
        for each in self._locals:
            each.__dict__ = {}

    def _load(self, name: str) -> ModuleType:
        found = load_sdk_module(name, self._prices)
        package, _, last = name.rpartition(".")
        module = ModuleType(name)
        module.__dict__.update(__builtins__=self.sdk_builtins, __package__=package or name)
        self._loaded[name] = module
        exec(found.code, module.__dict__)
        for each, wrap in self.wrappers.get(name, {}).items():
            module.__dict__[each] = wrap(module.__dict__[each])
        for documented, name_there in DOCUMENTED_NAMES.get(name, {}).items():
            module.__dict__.setdefault(documented, attrgetter(name_there)(module))
        if package:
            self._loaded[package].__dict__[last] = module
        return module

    def _facade(self, name: str, for_actors: bool) -> ModuleType:
        facade = self._facades.get((name, for_actors))
        if facade is None:
            names = (ACTOR_MODULES if for_actors else SDK_MODULES).get(name)
            if names is None:
                raise ModuleNotFoundError(f"No module named {name!r} for actors", name=name)
            facade = new_facade(name, names, self.calls, for_actors=for_actors)
            if name == "collections":
                facade.__dict__["abc"] = self._facade("collections.abc", for_actors)
            self._facades[name, for_actors] = facade
            self._protect(facade)
        return facade

    def _protect(self, module: ModuleType) -> None:
        self.shared.add(identity(module))
        self._protect_functions(vars(module).values())

    def _protect_functions(self, values: Iterable[object]) -> None:
        self.shared.update(identity(each) for each in values if isinstance(each, type | FunctionType))

    def _new_local(self) -> FrameLocal:
        created = FrameLocal()
        self._locals.append(created)
        return created


def _bind(values: list[tuple[dict[str, object], str, object]]) -> None:
    for space, name, value in values:
        if value is ABSENT:
            space.pop(name, None)
        else:
            space[name] = value


def _check_names(module: ModuleType, names: Sequence[str]) -> None:
    # Python's own fallback for a missing name looks into the modules of the process.
    for name in names:
        if name != "*" and not hasattr(module, name):
            raise ImportError(f"cannot import name {name!r} from {module.__name__!r}", name=module.__name__)
