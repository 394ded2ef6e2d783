"""The built-in names of guests, facades of the standard library, and stand-ins for the machinery that the SDK needs."""

import builtins
import inspect
import operator
from collections.abc import Callable, Container, Mapping
from enum import EnumMeta
from importlib import import_module
from types import CodeType, FunctionType, MappingProxyType, ModuleType, SimpleNamespace, prepare_class, resolve_bases
from typing import Any, Final

from trailboss.metering import texts
from trailboss.metering.call_prices import Calls
from trailboss.metering.gauge import identity, shown
from trailboss.metering.instrument import SETTERS
from trailboss.metering.names import METHODS
from trailboss.metering.pricers import MEMBERS_OF_A_CLASS
from trailboss.metering.syntax import KEY, PREFIX, TARGET, TEXT_METHODS
from trailboss.vm.printed_lines import printed_text
from trailboss.vm.rules import ACTOR_BUILTINS, GRAMMAR, REFUSED_ATTRIBUTES, SDK_BUILTINS

VERSION_ATTRIBUTES: Final = (  # what some versions of Python add to every class. Decision: D-40
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__",
)  # fmt: skip
_NO_DEFAULT: Final = object()


def _plain_repr(self: object) -> str:
    return f"<{type(self).__qualname__} object>"


Plain: Final = type("Plain", (), {"__slots__": (), "__module__": "builtins", "__repr__": _plain_repr})
"""Stands between `object` and a guest's classes, because the repr of `object` shows an address.

Built without a ``class`` statement: programs can inspect it, and versions of Python add attributes to such classes.
"""


def class_builder(calls: Calls) -> Callable[..., Any]:
    """Return what the ``class`` statement calls, which pays for the class first."""

    def build(body: FunctionType, name: str, *bases: Any, **keywords: Any) -> Any:
        is_enumeration = any(isinstance(each, EnumMeta) for each in bases)
        calls.pay_class(1 + (len(body.__code__.co_names) // MEMBERS_OF_A_CLASS if is_enumeration else 0))
        return build_class(body, name, *bases, **keywords)

    return build


def build_class(body: FunctionType, name: str, *bases: Any, **keywords: Any) -> Any:
    """Build a class as the ``class`` statement does, the same on every version of Python.

    Attributes that a version adds are removed first, so that no ``__init_subclass__`` sees them. Decision: D-40.
    """
    given = (Plain,) if bases in ((), (object,)) else bases
    parents = resolve_bases(given)
    kind, namespace, options = prepare_class(name, parents, keywords)
    exec(body.__code__, body.__globals__, namespace, closure=body.__closure__)
    for added in (*VERSION_ATTRIBUTES, TARGET, KEY):
        namespace.pop(added, None)
    if parents is not given:
        namespace["__orig_bases__"] = given
    made = kind(name, parents, namespace, **options)
    if issubclass(made, str) and made.__new__ is str.__new__:
        type.__setattr__(made, "__new__", texts.new_text)
    return made


def printer(output: Callable[[str], None]) -> Callable[..., None]:
    """Return ``print`` for guests; ``output`` takes the text; ``file`` and ``flush`` are ignored. Decision: D-89."""

    def print(*values: object, sep: object = " ", end: object = "\n", **_options: object) -> None:  # noqa: A001
        output(printed_text(values, sep, end))

    return print


def actor_builtins(
    importer: Callable[..., object],
    shared: Callable[[], Container[int]],
    output: Callable[[str], None],
    calls: Calls,
) -> dict[str, object]:
    """Return the built-in names of actors; ``shared`` returns the identities of objects that they cannot change."""

    def read(target: object, name: str, default: object = _NO_DEFAULT) -> object:
        _check_attribute(name)
        found = getattr(target, name) if default is _NO_DEFAULT else getattr(target, name, default)
        return calls.method(found) if name in TEXT_METHODS or name in METHODS else found

    def has(target: object, name: str) -> bool:
        return type(name) is str and not _is_refused(name) and hasattr(target, name)

    def write(target: object, name: str, value: object) -> None:
        _check_attribute(name)
        _check_own(target, shared())
        setattr(target, name, value)

    def remove(target: object, name: str) -> None:
        _check_attribute(name)
        _check_own(target, shared())
        delattr(target, name)

    guarded: dict[str, object] = {
        "getattr": read,
        "hasattr": has,
        "setattr": write,
        "delattr": remove,
        "print": printer(output),
        "__build_class__": class_builder(calls),
        "__import__": importer,
        "__debug__": True,
        "__name__": "builtins",
    } | calls.builtins()
    for name in ("getattr", "hasattr", "setattr", "delattr", "print", "repr", "ascii", "format", "sum"):
        function: Any = guarded[name]
        function.__name__ = function.__qualname__ = name
        function.__module__ = "builtins"
    return {name: getattr(builtins, name) for name in ACTOR_BUILTINS} | guarded | _instruments(calls)


def _instruments(calls: Calls) -> dict[str, object]:
    names: dict[str, object] = {PREFIX + name: function for name, function in calls.operators.items()}
    return names | {
        PREFIX + "callee": calls.callee,
        PREFIX + "method": calls.method,
        PREFIX + "method_any": calls.method_any,
    }


def check_attribute_path(path: str) -> None:
    """Check a dotted path of attributes. `AttributeError` if one of them is not available to actors."""
    for name in path.split("."):
        _check_attribute(name)
        if name in TEXT_METHODS:
            raise AttributeError(f"{name} is not available to actors by a path")


def _check_attribute(name: object) -> None:
    if type(name) is not str:
        raise TypeError(f"the name of an attribute must be a str, got {shown(name)}")
    if _is_refused(name) or name in SETTERS:
        raise AttributeError(f"{name} is not available to actors by name")


def _is_refused(name: str) -> bool:
    return name in REFUSED_ATTRIBUTES or name.startswith(PREFIX)


def _check_own(target: object, shared: Container[int]) -> None:
    if identity(target) in shared:
        raise AttributeError(f"{shown(target)} is shared by all actors and cannot be changed")


IMPLEMENTATION: Final = "pvm"
"""``sys.implementation.name`` of guests; the SDK takes "cpython" for a developer's own machine."""
DATACLASS_PARAMS: Final = (
    "init", "repr", "eq", "order", "unsafe_hash", "frozen", "match_args", "kw_only", "slots", "weakref_slot",
)  # fmt: skip


class FrameLocal:
    """Stands for ``threading.local``: attributes that last for a frame."""


class DataclassParams(SimpleNamespace):
    """The options of a dataclass, the same ones on every version of Python."""

    __slots__ = DATACLASS_PARAMS


def new_facade(name: str, names: tuple[str, ...], calls: Calls, *, for_actors: bool) -> ModuleType:
    """Return a module that shows some names of a standard one.

    For actors, attributes read by text are checked; the SDK's own code needs no check.
    """
    original = import_module(name)
    facade = ModuleType(name)
    priced = {each: calls.priced_function(name, each, getattr(original, each)) for each in names}
    priced |= {each: found for each, found in calls.library(name).items() if each in names}
    facade.__dict__.update(priced, __all__=names)
    if for_actors and name == "operator":
        facade.__dict__.update(attrgetter=_getter(calls), methodcaller=_caller(calls))
    if not for_actors and name == "dataclasses":
        facade.__dict__["_DataclassParams"] = DataclassParams
    return facade


def sdk_builtins(
    importer: Callable[..., object],
    compile_text: Callable[..., CodeType],
    write: Callable[[str], None],
    calls: Calls,
) -> dict[str, object]:
    """Return the built-in names of the SDK's own code; ``compile_text`` instruments a text like an actor."""
    names: dict[str, object] = {name: getattr(builtins, name) for name in SDK_BUILTINS}
    checks: dict[str, object] = {"isinstance": isinstance, "issubclass": issubclass}
    return (
        names
        | calls.builtins()
        | checks
        | _instruments(calls)
        | {
            "__build_class__": class_builder(calls),
            "__import__": importer,
            "__debug__": True,
            "__name__": "builtins",
            "compile": compile_text,
            "exec": _execute,
            "print": printer(write),
        }
    )


def sdk_modules(
    importer: Callable[[str], ModuleType],
    loaded: Mapping[str, ModuleType],
    new_local: Callable[[], FrameLocal],
    source_of: Callable[[FunctionType], str],
) -> dict[str, ModuleType]:
    """Return the SDK's stand-ins for Python's own machinery.

    ``loaded`` are the modules that guests share, for ``sys.modules``; ``new_local`` creates a ``threading.local``;
    ``source_of`` returns the text of a function of the running actor.
    """

    def getsource(target: Any) -> str:
        return source_of(inspect.unwrap(target))

    contents: dict[str, dict[str, object]] = {
        "importlib": {"import_module": importer},
        "inspect": {name: getattr(inspect, name) for name in ("get_annotations", "iscoroutinefunction")}
        | {"getsource": getsource},
        "sys": {"implementation": SimpleNamespace(name=IMPLEMENTATION), "maxsize": 2**63 - 1}
        | {"modules": MappingProxyType(loaded), "version_info": (*GRAMMAR, 0, "final", 0)},
        "threading": {"local": new_local},
    }
    modules = {name: ModuleType(name) for name in contents}
    for name, module in modules.items():
        module.__dict__.update(contents[name])
    return modules


def _execute(code: CodeType, namespace: dict[str, object]) -> None:
    exec(code, namespace)


def _getter(calls: Calls) -> Callable[..., Callable[[object], object]]:
    def attrgetter(*paths: str) -> Callable[[object], object]:
        for path in paths:
            check_attribute_path(path)
        get = operator.attrgetter(*paths)
        if not any(name in METHODS for path in paths for name in path.split(".")):
            return get
        if len(paths) == 1:
            return lambda target: calls.method(get(target))
        return lambda target: tuple(map(calls.method, get(target)))

    return attrgetter


def _caller(calls: Calls) -> Callable[..., Callable[[object], object]]:
    def methodcaller(name: str, *arguments: object, **named: object) -> Callable[[object], object]:
        if name in TEXT_METHODS or name in METHODS:
            return lambda target: calls.method(getattr(target, name))(*arguments, **named)
        check_attribute_path(name)
        return operator.methodcaller(name, *arguments, **named)

    return methodcaller
