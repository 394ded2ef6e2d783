"""A native engine that runs the module of a constant program once, and keeps what it makes from frame to frame.

Each frame pays for the run, to the cycle, as if it had taken place. Decision: D-123.
"""

import sys
from collections import OrderedDict
from functools import update_wrapper
from typing import Any, Final

from msgspec import Struct

from trailboss.metering.gauge import Gauge, identity
from trailboss.metering.meter import Meter
from trailboss.vm.constancy import is_constant
from trailboss.vm.container_content import ContainerContent, content_of, find_content
from trailboss.vm.engine import CallSite, FrameOutcome
from trailboss.vm.native import EDITOR, OWN_ATTRIBUTES, SDK_ACTOR_MARK, NativeEngine, deep_calls
from trailboss.vm.program import EntryPoint, Program
from trailboss.vm.rules import SDK, parse

MODULES_KEPT: Final = 128
MAPS_KEPT: Final = 256
_ENTRIES_MAX, _LENGTH_MAX = 4, 64  # of a map that is kept, and of a text in it
_TEXTS: Final = frozenset(map(identity, (str, bytes)))
_LEVELS: Final = 16  # of calls: more than the encoding of such a map takes
ITEMS_MAX: Final = 512  # in all containers of a module that is kept: to compare more takes longer than to make them


class KeptModule(Struct, eq=False):
    """The module of a program, once it has run; before that without names."""

    program: Program
    space: dict[str, Any] | None = None
    content: ContainerContent = content_of(())
    owned: tuple[tuple[type, str], ...] = ()  # plain classes, and attributes that they lack until a frame sets them
    gauge: Gauge | None = None  # which its code calls
    counts: tuple[int, int, int] = (0, 0, 0)  # allotted bytes, classes and depth of the gauge
    cycles: int = 0  # that the run has used

    def reset(self) -> bool:
        """Remove what the engine has set for a frame; return whether the module then is as its run has left it."""
        for kind, name in self.owned:
            if name in vars(kind):
                type.__delattr__(kind, name)
        return self.content.is_first()


class KeepingEngine(NativeEngine):
    """A `NativeEngine` that keeps the modules of constant programs.

    A module runs afresh where lines are counted or a person may stop, and where the cycles do not cover it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._counts_lines = "new_gauge" in named
        self._modules: OrderedDict[bytes, KeptModule | None] = OrderedDict()  # by hash; None if used, or not to be kept
        self._module: KeptModule | None = None  # of the running frame, if it is or will be kept
        self._maps: dict[tuple[Any, ...], tuple[bytes, int]] = {}  # that the SDK has encoded, with the cycles
        self._library.wrappers[f"{SDK}.codec"] = {"encode": self._remembering}

    def close(self) -> None:
        """Forget every program and module."""
        super().close()
        self._modules.clear()

    def _run(self, program: Program, entry: EntryPoint, site: CallSite) -> FrameOutcome:
        outer, self._module = self._module, self._take(program, site)
        try:
            return super()._run(program, entry, site)
        finally:
            module, self._module = self._module, outer
            if module is not None and module.reset() and site.frame.code_hash in self._modules:
                self._modules[site.frame.code_hash] = module

    def _take(self, program: Program, site: CallSite) -> KeptModule | None:
        """Return the module for this frame alone: nested frames of the program run their own."""
        if self._counts_lines or self._may_stop or EDITOR in sys.modules or sys.gettrace() is not None:
            return None
        key = site.frame.code_hash
        if key not in self._modules:
            with deep_calls():
                self._modules[key] = KeptModule(program) if is_constant(parse(site.frame.source)) else None
            if len(self._modules) > MODULES_KEPT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(key)
        module = self._modules[key]
        # Where the cycles do not cover the module, the frame ends within it, at the very line.
        if module is None or module.program is not program or module.cycles > site.meter.cycles_left:
            return None
        self._modules[key] = None
        return module

    def _gauge_of(self, program: Program, meter: Meter) -> Gauge:
        if self._module is None or self._module.gauge is None:
            return super()._gauge_of(program, meter)
        self._module.gauge.reopen(meter, *self._module.counts)
        return self._module.gauge

    def _loaded(self, program: Program, gauge: Gauge) -> dict[str, Any]:
        module = self._module
        if module is None:
            return super()._loaded(program, gauge)
        if module.space is None:
            return self._run_module(module, gauge)
        gauge.meter.cycles_used += module.cycles
        return module.space

    def _run_module(self, module: KeptModule, gauge: Gauge) -> dict[str, Any]:
        """Run a module, and keep it for later frames unless they could find another one."""
        used, self._is_asked = gauge.meter.cycles_used, False
        space = super()._loaded(module.program, gauge)
        content = find_content(space, self._library.foreign().union(map(identity, gauge.instruments().values())))
        if content is None or len(content.first) > ITEMS_MAX or self._is_asked or not self._library.is_first():
            self._module = None
            return space
        kinds = [kind for kind in space.values() if type(kind) is type and SDK_ACTOR_MARK not in vars(kind)]
        module.owned = tuple((kind, name) for kind in kinds for name in OWN_ATTRIBUTES if name not in vars(kind))
        module.counts = gauge.allotted, gauge.classes, gauge.depth
        module.space, module.content, module.gauge = space, content, gauge
        module.cycles = gauge.meter.cycles_used - used
        return space

    def _remembering(self, original: Any) -> Any:
        """Return what stands for the SDK's ``codec.encode``, and knows small maps of texts: the envelopes of timers.

        Bytes and cycles depend on the map alone; a constant program does not change the SDK's functions.
        """
        deepest = self._params.limits.recursion_depth_max

        def encode(value: Any, *, _capture_encoding: Any = None) -> Any:
            # Such a local says that a function pays for its own work: `trailboss.metering.pricers.is_own`.
            _vm_here = gauge = self._library.calls.gauge
            is_small = type(value) is dict and 0 < len(value) <= _ENTRIES_MAX and _capture_encoding is None
            key = (*value, *value.values()) if is_small and self._module is not None else (None,)
            if not all(identity(type(each)) in _TEXTS and len(each) <= _LENGTH_MAX for each in key):
                return original(value, _capture_encoding=_capture_encoding)
            octets, cycles = self._maps.get(key, (b"", 0))
            if octets and cycles <= gauge.meter.cycles_left and gauge.depth + _LEVELS <= deepest and not gauge.fatal:
                gauge.charge(cycles)
                return bytes(memoryview(octets))  # a new object each time, as the SDK makes one
            used, allotted = gauge.meter.cycles_used, gauge.allotted
            made = original(value)
            if len(self._maps) == MAPS_KEPT:
                self._maps.clear()
            if gauge.allotted == allotted:  # large results count towards a limit of the frame
                self._maps[key] = made, gauge.meter.cycles_used - used
            return made

        wrapped: Any = update_wrapper(encode, original)
        del wrapped.__wrapped__
        return wrapped
