"""A native engine that runs the module of a constant program once, and keeps what it makes from frame to frame.

Each frame pays for the run, to the cycle, as if it had taken place. Decision: D-123.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

from trailboss.metering.gauge import Gauge, identity
from trailboss.metering.meter import Meter
from trailboss.vm.constancy import is_constant
from trailboss.vm.engine import CallSite, FrameOutcome
from trailboss.vm.map_memory import MapMemory
from trailboss.vm.module_content import ModuleContent, find_content
from trailboss.vm.native import OWN_ATTRIBUTES, NativeEngine, Running
from trailboss.vm.program import EntryPoint, Program
from trailboss.vm.rules import SDK, parse

MODULES_KEPT: Final = 128
"""Programs whose modules are kept, some KiB each."""


class KeptModule(Struct, frozen=True, eq=False):
    """A module that has run: what it has made, the gauge that its code calls, and what its run has used."""

    space: dict[str, Any]
    content: ModuleContent
    owned: tuple[tuple[type, str], ...]  # plain classes, and attributes that they lack until a frame sets them
    gauge: Gauge
    counts: tuple[int, int, int]  # allotted bytes, classes and depth
    cycles: int

    def reset(self) -> bool:
        """Remove what the engine has set for a frame; return whether the module then is as its run has left it."""
        for kind, name in self.owned:
            if name in vars(kind):
                type.__delattr__(kind, name)
        return self.content.is_first()


class Shelf(Struct, eq=False):
    """Where the module of a program is kept. While a frame uses it, nested frames of the program run their own."""

    program: Program
    is_constant: bool
    module: KeptModule | None = None
    is_used: bool = False  # whether a frame uses the module, or is to keep its own


class ModuleSite:
    """A call site that notes whether the module makes a host call or prints, which it does not do when it is kept."""

    def __init__(self, site: CallSite) -> None:
        self._site = site
        self.is_asked = False

    def __getattr__(self, name: str) -> Any:
        self.is_asked = True
        return getattr(self._site, name)


class KeepingEngine(NativeEngine):
    """A `NativeEngine` that keeps the modules of constant programs.

    A module runs afresh where lines are counted or a person may stop, and where the cycles do not cover it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._counts_lines = "new_gauge" in named
        self._shelves: OrderedDict[int, Shelf] = OrderedDict()  # by identity of a program
        self._shelf: Shelf | None = None  # of the running frame, if it uses the module or is to keep its own
        memory = MapMemory(lambda: None if self._shelf is None else self._library.calls.gauge)
        self._library.wrappers[f"{SDK}.codec"] = {"encode": memory.wrap}

    def _run(self, program: Program, entry: EntryPoint, site: CallSite) -> FrameOutcome:
        shelf = self._find_shelf(program, site)
        outer, self._shelf = self._shelf, shelf
        try:
            return super()._run(program, entry, site)
        finally:
            self._shelf = outer
            if shelf is not None:
                shelf.is_used = False
                if shelf.module is not None and not shelf.module.reset():
                    shelf.is_constant, shelf.module = False, None

    def _find_shelf(self, program: Program, site: CallSite) -> Shelf | None:
        """Return the shelf that a frame uses alone, or None if its module runs and is not kept."""
        if self._counts_lines or self._may_stop or sys.gettrace() is not None:
            return None
        shelf = self._shelves.get(identity(program))
        if shelf is None:
            shelf = self._shelves[identity(program)] = Shelf(program, is_constant(parse(site.frame.source)))
            if len(self._shelves) > MODULES_KEPT:
                self._shelves.popitem(last=False)
        self._shelves.move_to_end(identity(program))
        if shelf.is_used or not shelf.is_constant:
            return None
        if shelf.module is not None and shelf.module.cycles > site.meter.cycles_left:
            return None  # The frame ends within the module, at the very line.
        shelf.is_used = True
        return shelf

    def _gauge_of(self, program: Program, meter: Meter) -> Gauge:
        module = None if self._shelf is None else self._shelf.module
        if module is None:
            return super()._gauge_of(program, meter)
        module.gauge.reopen(meter, *module.counts)
        return module.gauge

    def _begin(self, gauge: Gauge) -> Callable[[], None]:
        return self._library.begin(gauge.instruments(), special=self._shelf is None)

    def _loaded(self, program: Program, gauge: Gauge) -> dict[str, Any]:
        shelf = self._shelf
        if shelf is None:
            return super()._loaded(program, gauge)
        if shelf.module is None:
            return self._run_module(shelf, gauge)
        gauge.meter.cycles_used += shelf.module.cycles
        return shelf.module.space

    def _run_module(self, shelf: Shelf, gauge: Gauge) -> dict[str, Any]:
        """Run a module, and keep it for later frames unless they could find another one."""
        running, used = self._running, gauge.meter.cycles_used
        assert running is not None
        site = ModuleSite(running.site)
        self._running = Running(cast(CallSite, site), gauge, shelf.program)
        try:
            space = super()._loaded(shelf.program, gauge)
        finally:
            self._running = running
        content = find_content(space, len(gauge.instruments()), self._library.foreign())
        shelf.is_constant = content is not None and not site.is_asked and self._library.is_first()
        if content is not None and shelf.is_constant:
            owned = tuple((kind, name) for kind in content.classes for name in OWN_ATTRIBUTES if name not in vars(kind))
            counts = gauge.allotted, gauge.classes, gauge.depth
            shelf.module = KeptModule(space, content, owned, gauge, counts, gauge.meter.cycles_used - used)
        return space
