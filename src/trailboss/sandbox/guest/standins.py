"""Modules that the engine's own modules import and a guest does not have: put in their places before it loads them."""

import functools
import hashlib
import hmac
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, Final

_ANNOTATIONS: Final = "trailboss.vm.host.Host"
"""Types of modules that are not in the image, imported for annotations alone."""


class _Factory:
    """Stands for ``msgspec.field``: the default of a field that is built for each record."""

    def __init__(self, default_factory: Callable[[], object]) -> None:
        self.build = default_factory


class Struct:
    """Stands for ``msgspec.Struct``: the fields are the annotated names of a class and of its bases, in order."""

    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls, **_options: object) -> None:
        own = cls.__annotate__(1) if getattr(cls, "__annotate__", None) else {}  # type: ignore[attr-defined]  # Python 3.14
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        if "__init__" not in vars(cls):
            cls.__init__ = _initializer(cls)  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


def astuple(record: Struct) -> tuple[object, ...]:
    """Stand for ``msgspec.structs.astuple``."""
    return tuple(getattr(record, name) for name in record._fields)


def _initializer(kind: type[Struct]) -> Any:
    """Return the ``__init__`` of a record, written for its fields as they are: a frame makes several records."""
    defaults: dict[str, Any] = {name: getattr(kind, name) for name in kind._fields if hasattr(kind, name)}
    parameters = [f"{name}=_defaults[{name!r}]" if name in defaults else name for name in kind._fields]
    lines = [f"    self.{name} = {name}" for name in kind._fields]
    for name, default in defaults.items():
        if isinstance(default, _Factory):
            lines.append(f"    if {name} is _defaults[{name!r}]: self.{name} = {name}.build()")
    space: dict[str, Any] = {"_defaults": defaults}
    exec("\n".join([f"def __init__({', '.join(['self', *parameters])}):", *lines, "    return None"]), space)
    return space["__init__"]


class ParameterTable(Struct):
    """Stands for a record of parameters: its fields are given by name."""

    def __init__(self, **values: int) -> None:
        self.__dict__.update(values)


def install(groups: Mapping[str, tuple[str, Mapping[str, int]]]) -> SimpleNamespace:
    """Put the stand-ins in their places; return what stands for the chain's parameters.

    ``groups`` are the records of the parameters that the engine reads: the name of its type, and its fields, by name.
    """
    packer = SimpleNamespace(Encoder=lambda **_: SimpleNamespace(encode=None))
    _module("msgspec", Struct=Struct, field=_Factory, msgpack=packer)
    _module("msgspec.structs", astuple=astuple, replace=None)
    _module("trailboss.primitives.keccak", keccak256=None)
    for name in _ANNOTATIONS.split():
        module, _, kind = name.rpartition(".")
        _module(module, **{kind: object})
    kinds: dict[str, object] = {kind: ParameterTable for kind, _ in groups.values()}
    _module("trailboss.params", ChainParams=object, **kinds)
    return SimpleNamespace(**{name: ParameterTable(**fields) for name, (_, fields) in groups.items()})


def _module(name: str, **contents: object) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(contents)
    sys.modules[name] = module
    package, _, last = name.rpartition(".")
    if package:
        setattr(import_module(package), last, module)
    return module


def fill_gaps() -> None:
    """Add what this build of Python lacks because it has no OpenSSL, and undo what Python 3.14 does otherwise."""

    def pbkdf2_hmac(hash_name: str, password: bytes, salt: bytes, iterations: int, dklen: int | None = None) -> bytes:
        """Derive a key. Source: RFC 8018 §5.2."""
        size = hashlib.new(hash_name).digest_size
        wanted = size if dklen is None else dklen
        key = b""
        while len(key) < wanted:
            block = hmac.new(password, salt + (len(key) // size + 1).to_bytes(4, "big"), hash_name).digest()
            mixed = int.from_bytes(block, "big")
            for _ in range(iterations - 1):
                block = hmac.new(password, block, hash_name).digest()
                mixed ^= int.from_bytes(block, "big")
            key += mixed.to_bytes(size, "big")
        return key[:wanted]

    class Partial(functools.partial[Any]):
        """As before Python 3.14: an attribute of a class that is no method."""

        def __get__(self, _instance: object, _owner: type | None = None) -> "Partial":
            return self

    Partial.__name__ = Partial.__qualname__ = "partial"
    Partial.__module__ = "functools"
    functools.partial = Partial  # type: ignore[misc]  # the guest's own
    if not hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac = pbkdf2_hmac  # type: ignore[assignment]  # of the same form
