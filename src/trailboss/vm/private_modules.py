"""Modules built for guests: facades of the standard library, and the parts of Python's machinery that the SDK needs."""

import builtins
import inspect
import operator
from collections.abc import Callable, Mapping
from importlib import import_module
from types import CodeType, FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Final

from trailboss.vm import texts
from trailboss.vm.gauge import ordered
from trailboss.vm.guest_builtins import build_class, check_attribute_path, printer
from trailboss.vm.instrument import TEXT_METHODS
from trailboss.vm.rules import GRAMMAR, SDK_BUILTINS

SET_MAKERS: Final = ("and_", "iand", "ior", "isub", "ixor", "or_", "sub", "xor")
"""Functions of ``operator`` that make a set of two views of a dict."""
IMPLEMENTATION: Final = "pvm"
"""``sys.implementation.name`` of guests; the SDK takes "cpython" for a developer's own machine."""
DATACLASS_PARAMS: Final = (
    "init",
    "repr",
    "eq",
    "order",
    "unsafe_hash",
    "frozen",
    "match_args",
    "kw_only",
    "slots",
    "weakref_slot",
)


class FrameLocal:
    """Stands for ``threading.local``: attributes that last for a frame."""


class DataclassParams(SimpleNamespace):
    """The options of a dataclass, the same ones on every version of Python."""

    __slots__ = DATACLASS_PARAMS


def new_facade(name: str, names: tuple[str, ...], *, for_actors: bool) -> ModuleType:
    """Return a module that shows some names of a standard one.

    Args:
        name: Full name of the standard module.
        names: The names that it shows.
        for_actors: Whether attributes read by text are checked; the SDK's own code needs no check.
    """
    original = import_module(name)
    facade = ModuleType(name)
    facade.__dict__.update({each: getattr(original, each) for each in names}, __all__=names)
    if for_actors and name == "operator":
        facade.__dict__.update(attrgetter=_attrgetter, methodcaller=_methodcaller)
        facade.__dict__.update(mod=texts.remainder, imod=texts.remainder_in_place)
        facade.__dict__.update({each: _in_order(getattr(original, each)) for each in SET_MAKERS})
    if not for_actors and name == "dataclasses":
        facade.__dict__["_DataclassParams"] = DataclassParams
    return facade


def _in_order(operate: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Return a function of ``operator`` that refuses to answer with a set."""
    return lambda left, right: ordered(operate(left, right))


def sdk_builtins(
    importer: Callable[..., object], compile_text: Callable[..., CodeType], write: Callable[[str], None]
) -> dict[str, object]:
    """Return the built-in names of the SDK's own code.

    Args:
        importer: Serves its import statements.
        compile_text: Compiles a text, instrumented like an actor.
        write: Takes what it prints.
    """
    names: dict[str, object] = {name: getattr(builtins, name) for name in SDK_BUILTINS}
    return names | {
        "__build_class__": build_class,
        "__import__": importer,
        "__debug__": True,
        "__name__": "builtins",
        "compile": compile_text,
        "exec": _execute,
        "print": printer(write),
    }


def sdk_modules(
    importer: Callable[[str], ModuleType],
    loaded: Mapping[str, ModuleType],
    new_local: Callable[[], FrameLocal],
    source_of: Callable[[FunctionType], str],
) -> dict[str, ModuleType]:
    """Return the SDK's stand-ins for Python's own machinery.

    Args:
        importer: Imports a module by its full name.
        loaded: The modules that guests share, for ``sys.modules``.
        new_local: Creates a ``threading.local``.
        source_of: Returns the text of a function of the running actor.
    """

    def getsource(target: Any) -> str:
        return source_of(inspect.unwrap(target))

    return {
        "importlib": _module("importlib", import_module=importer),
        "inspect": _module(
            "inspect",
            getsource=getsource,
            get_annotations=inspect.get_annotations,
            iscoroutinefunction=inspect.iscoroutinefunction,
        ),
        "sys": _module(
            "sys",
            implementation=SimpleNamespace(name=IMPLEMENTATION),
            maxsize=2**63 - 1,
            modules=MappingProxyType(loaded),
            version_info=(*GRAMMAR, 0, "final", 0),
        ),
        "threading": _module("threading", local=new_local),
    }


def _module(name: str, **attributes: object) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(attributes)
    return module


def _execute(code: CodeType, namespace: dict[str, object]) -> None:
    exec(code, namespace)


def _attrgetter(*paths: str) -> Callable[[object], object]:
    for path in paths:
        check_attribute_path(path)
    return operator.attrgetter(*paths)


def _methodcaller(name: str, *arguments: object, **named: object) -> Callable[[object], object]:
    if name in TEXT_METHODS:
        return lambda target: texts.method(getattr(target, name))(*arguments, **named)
    check_attribute_path(name)
    return operator.methodcaller(name, *arguments, **named)
