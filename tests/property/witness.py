"""A witness of kept modules, which looks at everything that a module or the SDK leads to."""

import gc
from types import CodeType, FunctionType, ModuleType

from trailboss.metering.gauge import Gauge
from trailboss.sandbox.engines import SharedNativeEngine
from trailboss.vm.guest_modules import FrameLocal

IS_MADE = 1 << 9  # flag of a class that Python code has made
OUTSIDE = ModuleType, Gauge, CodeType, FrameLocal, SharedNativeEngine


class Witness(SharedNativeEngine):
    """An engine that holds each kept module, and the SDK, to all that they were."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.modules = {}  # by hash of the source, with what is not theirs, and all that is
        self.sdk = None

    def _run(self, program, entry, site):
        outcome = super()._run(program, entry, site)
        key = site.frame.code_hash
        kept = self._modules.get(key)
        if kept is not None and kept.space is not None:
            if key not in self.modules or self.modules[key][0] is not kept:
                leaves = {*self._library.foreign(), *map(id, kept.gauge.instruments().values())}
                self.modules[key] = kept, leaves, self.everything([kept.space], leaves)
            _, leaves, first = self.modules[key]
            assert self.everything([kept.space], leaves) == first, "a kept module has changed"
        return outcome

    def check_sdk(self):
        """Hold all modules of the SDK to what they were when this was first asked."""
        self.prepare()
        found = self.everything([vars(module) for module in self._library._loaded.values()])
        self.sdk = self.sdk or found
        assert found == self.sdk, "the SDK has changed"

    def everything(self, roots, leaves=frozenset()):
        """Return what can be reached, each object with the identities of all that it refers to."""
        builtins = id(self._library.builtins), id(self._library.sdk_builtins)
        reached, outside = {}, {*leaves, *builtins}
        waiting = list(roots)
        while waiting:
            each = waiting.pop()
            if isinstance(each, FunctionType) and id(each.__builtins__) in builtins:  # a guest's
                if not any(each.__globals__ is root for root in roots):
                    outside.add(id(each.__globals__))
                _ = vars(each), each.__annotations__  # Python makes both when they are first read
            elif isinstance(each, (*OUTSIDE, FunctionType)) or (
                isinstance(each, type) and not each.__flags__ & IS_MADE
            ):
                continue
            if id(each) not in reached and id(each) not in outside:
                referents = gc.get_referents(each)
                reached[id(each)] = each, {id(other) for other in referents if id(other) not in outside}
                waiting += referents
        return reached
