"""The host calls of a guest: each sends its arguments as plain values to the chain, which checks and serves them.

A request is (number of the call, arguments, named arguments, cycles used); an answer (status, value, cycles used, cells
used). Both are in marshal's second format, which `trailboss.sandbox.values` reads strictly on the other side.
"""

import builtins
import marshal
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from trailboss.metering.gauge import identity
from trailboss.metering.meter import OutOfGas
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.sandbox.guest_layout import (
    ANSWERED,
    BYTES,
    FAULT,
    FLOAT,
    FORMAT,
    INTEGER,
    LIST_CALLS,
    NAMED,
    OBJECT,
    REFUSED,
    TEXT,
    USED,
    pack,
)
from trailboss.vm import readings
from trailboss.vm.arguments import SEQUENCE_MAX, ArgumentFault
from trailboss.vm.engine import CallSite, HostCall

CONSTANT_CALL: Final = "runtime_config"  # its answer is the same in every frame
_PLAIN: Final = frozenset(map(identity, (type(None), bool, int, float, str, bytes)))
_NAMED_KINDS: Final = (type, FunctionType, BuiltinFunctionType, ModuleType)
_glue: Final[Any] = builtins


class HostRefusal(Rejection):
    """A refused host call, with the error object that the host made of it, and the code that guests see."""

    def __init__(self, code: int, refused: ErrorObject) -> None:
        super().__init__(code, refused.what)  # type: ignore[arg-type]  # `host_code` below takes the code
        self._refused = refused

    def error(self) -> ErrorObject:
        """Return the host's error object."""
        return self._refused


def plain(value: Any, *, takes_list: bool) -> object:
    """Return a guest's value as it is if it is plain, else as a description: (kind, name of its type, plain value).

    Only the methods of the plain types are used, because a guest's subclass can override any of them.
    """
    kind = type(value)
    if identity(kind) in _PLAIN:
        return value
    if issubclass(kind, bytes):
        return BYTES, kind.__name__, bytes.__getitem__(value, slice(None))
    if issubclass(kind, bytearray):
        return bytes(bytearray.__getitem__(value, slice(None)))
    if kind is memoryview:
        try:
            return value.tobytes()
        except ValueError:  # It was released.
            return OBJECT, kind.__name__, None
    if issubclass(kind, int):
        return INTEGER, kind.__name__, int.__index__(value)
    if issubclass(kind, str):
        return TEXT, kind.__name__, str.__str__(value)
    if issubclass(kind, float):
        return FLOAT, kind.__name__, float.__float__(value)
    if takes_list and issubclass(kind, list | tuple):
        base: Any = list if issubclass(kind, list) else tuple
        return [plain(each, takes_list=False) for each in islice(base.__iter__(value), SEQUENCE_MAX + 1)]
    if isinstance(value, _NAMED_KINDS):
        return NAMED, kind.__name__, value.__name__
    return OBJECT, kind.__name__, None


def remote_call(number: int, name: str) -> HostCall:
    """Return a host call that the chain serves."""
    takes_list = name in LIST_CALLS

    def call(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
        meter = site.meter
        if not _PLAIN.issuperset(map(identity, map(type, positional))):
            positional = tuple([plain(each, takes_list=takes_list) for each in positional])
        if named:
            named = {str.__str__(each): plain(value, takes_list=takes_list) for each, value in named.items()}
        request: Any = (number, positional, named, _glue.glue_read(USED))
        answer = _glue.host_call(marshal.dumps(request, FORMAT))
        status, value, used, meter.cells_used = marshal.loads(answer)
        _glue.glue_write(USED, used)
        if status == ANSWERED:
            return value
        if status == FAULT:
            raise ArgumentFault(TypeError if value[0] == "TypeError" else ValueError, value[1])
        if status == REFUSED:
            raise HostRefusal(value[0], ErrorObject(*value[1]))
        raise OutOfGas

    return call


def reading(number: int, name: str) -> HostCall:
    """Return a host call that reads what a frame knows from its start; a module that runs ahead asks the chain."""
    here, there = readings.READINGS[name], remote_call(number, name)

    def call(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
        return (here if site.host.facts is not None else there)(site, positional, named)  # type: ignore[attr-defined]  # `GuestHost`

    return here if name == CONSTANT_CALL else call


class GuestHost:
    """The chain, as the engine itself calls it."""

    facts: tuple[int, bytes] | None = None
    """What the present frame knows: its height, and what `context` answers, packed. None while a module runs ahead."""

    def __init__(self, print_number: int) -> None:
        self._print_number = print_number

    def context(self) -> Mapping[str, object]:
        """Return the facts of the frame, in a dict of its own."""
        assert self.facts is not None
        return marshal.loads(self.facts[1])  # type: ignore[no-any-return]  # a dict

    def height(self) -> int:
        """Return the height of the block."""
        assert self.facts is not None
        return self.facts[0]

    def print_text(self, text: str) -> None:
        """Send printed text; the meters do not change."""
        _glue.host_call(pack((self._print_number, (text,), {}, _glue.glue_read(USED))))


def install(names: Sequence[str]) -> None:
    """Put a stand-in in the place of `trailboss.vm.guest_api`; ``names`` are the host calls by their numbers."""
    readings.__dict__["plain"] = lambda answer: answer  # facts are plain already
    calls = {
        name: (reading if name in readings.READINGS else remote_call)(number, name) for number, name in enumerate(names)
    }
    module = ModuleType("trailboss.vm.guest_api")
    module.__dict__.update(
        HOST_CALLS=calls,
        ArgumentFault=ArgumentFault,
        CallSite=CallSite,
        HostCall=HostCall,
        host_code=lambda code: code,
    )
    sys.modules[module.__name__] = module
