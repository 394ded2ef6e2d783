"""Builds the state that the image keeps: everything imported, the SDK loaded, the engine warm.

The builder runs `begin` once, in the booted interpreter. Afterwards it keeps the memory, and every frame begins there.
"""

import builtins
import gc
import linecache
import marshal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from trailboss.sandbox.guest import standins
from trailboss.sandbox.guest_layout import ANSWERED, COMPILE, GATHER, LOAD, PREPARE, RUN, RUN_ALL, pack

_glue: Final[Any] = builtins
_PRELOADED: Final = """_ast_unparse _pydecimal _pylong _strptime _weakrefset annotationlib ast bisect collections.abc
    contextvars copy dataclasses decimal difflib encodings.ascii encodings.latin_1 encodings.raw_unicode_escape
    encodings.unicode_escape encodings.utf_16 encodings.utf_16_be encodings.utf_16_le encodings.utf_32
    encodings.utf_32_be encodings.utf_32_le encodings.utf_7 encodings.utf_8_sig enum fractions heapq inspect json
    linecache random statistics string stringprep textwrap traceback typing"""
"""Modules that the standard library imports late: a frame can import nothing."""
_RECURSION_LIMIT: Final = 8_000
_UNCHANGED: Final = 5 << 28  # a 32-bit reference count that Python 3.14 neither raises nor lowers
_FUNCTION_VERSION_AT: Final = 72  # in the C structure PyFunctionObject of Python 3.14
_LOW_HALF: Final = 0xFFFFFFFF
_CODE_PARTS: Final = (
    "co_consts", "co_names", "co_filename", "co_name", "co_qualname", "co_linetable", "co_exceptiontable",
)  # fmt: skip
_PLENTY: Final = 2**40  # cycles and cells of those runs
_WARM_TURNS: Final = 4  # runs after which Python has specialized the code of a frame
_ADDRESS: Final = bytes(20)
_HASH_BYTES: Final = 32
_RAW: Final = """
import pvm_host
def on_tick(payload):
    count = int.from_bytes(pvm_host.get_state(b"count") or b"", "big")
    pvm_host.set_state(b"count", (count + 1).to_bytes(8, "big"))
    pvm_host.schedule_timer(pvm_host.block_height() + 5, payload)
def fail(payload):
    raise ValueError("x")
"""
_CLOCK: Final = """
from cowboy_sdk import actor, runtime, timer
@actor
class Clock:
    @timer
    def on_tick(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1
        timer.schedule(runtime.get_block_height() + 5, b"", handler="on_tick")
"""
_WARM_FACTS: Final = (
    7,
    pack({"chain_id": 1, "sender": _ADDRESS, "actor_addr": _ADDRESS, "tx_hash": bytes(_HASH_BYTES), "block_height": 7}),
)
_WARM_ANSWERS: Final[Mapping[str, object]] = {"schedule_timer": bytes(_HASH_BYTES)}
"""What the chain answers while the engine is warmed."""


class _Nowhere:
    """Takes what Python itself would print."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


def begin(
    groups: Mapping[str, tuple[str, Mapping[str, int]]], host_calls: Sequence[str], sdk_sources: Mapping[str, str]
) -> Any:
    """Load the engine; return its server.

    ``groups`` is as in `standins.install`; ``host_calls`` are names by number; ``sdk_sources`` are the texts of the
    SDK's modules by name.
    """
    gc.disable()
    warnings.simplefilter("ignore")
    for name in _PRELOADED.split():
        import_module(name)
    linecache.checkcache = lambda *_: None
    standins.fill_gaps()
    params = standins.install(groups)
    from trailboss.sandbox.guest import calls

    calls.install(host_calls)
    from trailboss.vm import sdk_source

    sdk_source.__dict__["sdk_module_names"] = lambda: tuple(sdk_sources)
    sdk_source.__dict__["sdk_text"] = sdk_sources.__getitem__
    from trailboss.sandbox.guest import frames, meter

    meter.install()
    frames.install()
    server = frames.GuestServer(params, calls.GuestHost(len(host_calls)))
    _touch_modules()
    server.engine.prepare()
    _warm(server, host_calls)
    gc.collect()
    return server


def finish(server: Any, host_calls: Sequence[str], meter_address: int) -> Callable[[bytes], bytes]:
    """Put the state into the form that frames begin with; return the function that answers requests.

    The free memory between the objects is taken when this is called. ``meter_address`` is where the meter lies.
    """
    _gather_code(server, lambda: _warm(server, host_calls), meter_address)
    gc.collect()
    # Before the code runs: Python notes which constants it need not count when it loads them first.
    _fix_reference_counts(meter_address)
    _warm(server, host_calls)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    del sys.meta_path[2:]  # the builder's finder
    sys.stdout = sys.stderr = _Nowhere()
    gc.collect()
    _fix_reference_counts(meter_address)
    gc.freeze()
    serve: Callable[[bytes], bytes] = server.serve
    return serve


def _gather_code(server: Any, run: Callable[[], None], meter_address: int) -> None:
    """Move the code that a run enters to one place: Python writes to code that it runs, and so to fewer pages.

    That of frames whose module has run comes first, for these are most.
    """
    entered: dict[CodeType, bool] = {}  # whether a prepared frame enters it

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        entered[frame.f_code] = entered.get(frame.f_code, False) or server.engine.prepared is not None

    sys.setprofile(note)
    run()
    sys.setprofile(None)

    @cache
    def moved(code: CodeType) -> CodeType:
        parts = tuple([moved(each) if type(each) is CodeType else each for each in code.co_consts])
        return code.replace(co_consts=parts) if code in entered and code.co_firstlineno > 0 else code

    functions = [each for each in gc.get_objects() if type(each) is FunctionType and each.__code__ in entered]
    for function in sorted(functions, key=lambda each: not entered[each.__code__]):
        # Python takes its version from a function whose code is replaced, and never specializes its calls again.
        version_at = id(function) + _FUNCTION_VERSION_AT - meter_address
        version = _glue.glue_read(version_at)
        function.__code__ = moved(function.__code__)
        _set_low_half(version_at, version & _LOW_HALF)


def _touch_modules() -> None:
    """Import everything that programs can import, so that the image holds it."""
    from trailboss.vm.rules import ACTOR_MODULES, SDK_MODULES

    for table in (ACTOR_MODULES, SDK_MODULES):
        for name, names in table.items():
            module = import_module(name)
            missing = [each for each in names if not hasattr(module, each)]
            if missing:
                raise ImportError(f"the image's {name} lacks {', '.join(missing)}")


def _warm(server: Any, host_calls: Sequence[str]) -> None:
    """Run what frames run, so that caches are full and code is specialized."""
    tables = [dict(vars(each)) for each in (server.params.limits, server.params.costs)]

    slots: dict[bytes, bytes] = {}

    def chain(request: bytes) -> bytes:
        number, given, _, used = marshal.loads(request)
        name = host_calls[number]
        if name == "set_state":
            slots[given[0]] = given[1]
        answer = slots.get(given[0]) if name == "get_state" else _WARM_ANSWERS.get(name)
        return pack((ANSWERED, answer, used, 0))

    def ask(*request: object) -> Any:
        answer = marshal.loads(server.serve(pack(request)))
        assert answer[0] == 0, answer
        return answer

    def warm(source: str, handlers: Sequence[str], code_hash: bytes) -> None:
        octets = ask(COMPILE, source, code_hash)[1]
        server.engine.forget()
        ask(LOAD, octets, *tables)
        octets = ask(GATHER)[1]
        for handler in handlers:
            for kind in (RUN_ALL, RUN):
                server.engine.forget()
                ask(LOAD, octets, *tables)
                if kind == RUN:
                    ask(PREPARE)
                error = ask(kind, handler, b"", _ADDRESS, _ADDRESS, (_PLENTY, _PLENTY), (0, 0), _WARM_FACTS)[2]
                assert error is None or handler == "fail", error
        server.engine.forget()

    real, _glue.host_call = _glue.host_call, chain
    try:
        for turn in range(_WARM_TURNS):
            warm(_RAW, ("on_tick", "fail"), bytes([turn]) * _HASH_BYTES)
            warm(_CLOCK, ("on_tick",), bytes([turn]) * _HASH_BYTES)
    finally:
        _glue.host_call = real
    del server.engine.program


def _fix_reference_counts(meter_address: int) -> None:
    """Give every object of the image a reference count that never changes, so that frames write to fewer pages."""
    seen: set[int] = set()
    waiting: list[Any] = gc.get_objects()
    own = (id(seen), id(waiting))
    while waiting:
        each = waiting.pop()
        if id(each) in seen or id(each) in own:
            continue
        seen.add(id(each))
        if type(each) is CodeType:
            waiting += [getattr(each, part) for part in _CODE_PARTS]
        if type(each) is not FrameType:
            waiting += gc.get_referents(each)
    for address in sorted(seen):
        _set_low_half(address - meter_address, _UNCHANGED)


def _set_low_half(offset: int, value: int) -> None:
    """Set 32 bits at an offset from the meter."""
    _glue.glue_write(offset, _glue.glue_read(offset) & ~_LOW_HALF | value)
