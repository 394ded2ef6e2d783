"""Frames know nothing of one another, nor of the process that they run in."""

import gc
import json
import sys

import cowboy_sdk.testing
import pytest

from tests.golden.programs import SDK_AGENT, SDK_CLOCK
from tests.golden.world import World
from trailboss.primitives.errors import RejectionReason
from trailboss.testing import LocalChain

PREAMBLE = """import json
import cowboy_sdk
import trailboss.sdk
from cowboy_sdk import actor, codec, errors, public, pvm_random, pvm_sys, runtime, timer
"""
STORES = {
    "module": "cowboy_sdk.runtime.leak = 1",
    "module by setattr": "setattr(cowboy_sdk.runtime, 'leak', 1)",
    "module by object": "object.__setattr__(timer, 'leak', 1)",
    "module by its own method": "cowboy_sdk.runtime.__setattr__('leak', 1)",
    "module by super": "super(type(timer), timer).__setattr__('leak', 1)",
    "deletion": "del cowboy_sdk.runtime.get_state",
    "deletion by delattr": "delattr(cowboy_sdk.runtime, 'get_state')",
    "function": "codec.encode.cache = {}",
    "class": "errors.CowboyError.leak = 1",
    "instance": "timer.leak = 1",
    "our module": "trailboss.sdk.leak = 1",
    "package of our module": "trailboss.leak = 1",
    "our function": "trailboss.sdk.gas_bid.leak = 1",
    "our class": "trailboss.sdk.GasBidContext.leak = 1",
    "our enumeration": "trailboss.sdk.PriorityTier.leak = 1",
    "member of our enumeration": "object.__setattr__(trailboss.sdk.PriorityTier.FAST, 'leak', 1)",
    "standard module": "json.leak = 1",
    "standard class": "json.JSONEncoder.leak = 1",
    "standard class by type": "type.__setattr__(json.JSONEncoder, 'leak', 1)",
    "host module": "pvm_host.get_state = None",
    "host class": "pvm_host.HostError.leak = 1",
    "item": "cowboy_sdk.__all__[0] = 'leak'",
    "augmented": "timer.schedule += 1",
    "loop target": "for timer.leak in (1, 2): pass",
    "with target": "with Box() as timer.leak: pass",
    "annotated": "timer.leak: int = 1",
}


@pytest.mark.parametrize("name", STORES)
def test_store_is_refused_when_its_target_is_shared(world, name):
    """Whatever the spelling, modules, classes, functions and instances of the library stay as they are."""
    box = "class Box:\n    def __enter__(self): return self\n    def __exit__(self, *error): pass\n"
    outcome, _ = world.call(f"{PREAMBLE}{box}def go(p):\n    {STORES[name]}\n    return 1\n", "go")

    assert outcome.error.context["exception_type"] == "AttributeError"
    assert outcome.error.context["exception_message"].endswith("is shared by all actors and cannot be changed")


WRITER_AND_READER = {
    "list": ("cowboy_sdk.__all__.append('leak')", "'leak' in cowboy_sdk.__all__"),
    "dict": ("runtime.Dict; pvm_sys._ctx.update(leak=1)", "'leak' in dict.keys(pvm_sys._ctx)"),
    "context kept by the SDK": ("pvm_sys._ctx.get('chain_id')", "dict.__len__(pvm_sys._ctx) != 0"),
    "random numbers": ("pvm_random.random()", "pvm_random.getstate()[2:] != (0, b'', 0)"),
    "random seed": ("pvm_random.seed(5)", "pvm_random.getstate()[1] != b'N'"),
    "function by a decorator": ("public(codec.encode)", "hasattr(codec.encode, '_call_perm')"),
    "fields of our dataclass": (
        "trailboss.sdk.GasBidContext.__dataclass_fields__.clear()",
        "len(trailboss.sdk.GasBidContext.__dataclass_fields__) < 8",
    ),
    "handler mode": (
        "cowboy_sdk.handler_mode._set_mode('pure')",
        "cowboy_sdk.handler_mode._get_mode() is not None",
    ),
    "decimal context": ("decimal.getcontext().__setattr__('prec', 3)", "decimal.getcontext().prec != 28"),
    "own module": ("own.append(1)", "len(own) > 0"),
    "own class": ("setattr(Own, 'leak', 1)", "hasattr(Own, 'leak')"),
    "cache": ("cached(1)", "cached.cache_info().currsize != 0"),
}


@pytest.mark.parametrize("name", WRITER_AND_READER)
def test_frame_finds_nothing_of_the_frame_before(world, name):
    """What one frame changes in what it can reach, the next one does not see; nor does a nested one."""
    write, read = WRITER_AND_READER[name]
    source = f"""{PREAMBLE}
import decimal, functools
import cowboy_sdk.handler_mode
own = []
class Own: pass
@functools.lru_cache
def cached(x): return x
def write(p):
    {write}
    return 1 if ({read}) else 0
def read(p):
    return 1 if ({read}) else 0
def outer(p):
    {write}
    inside = pvm_host.call_actor(bytes(20), "read", b"", 10**9)
    return [inside[0], 1 if ({read}) else 0]
"""
    world.sources[bytes(20)] = source
    assert world.call(source, "write")[0].return_value == b"\x01"
    assert world.call(source, "read")[0].return_value == b"\x00"
    # Around a nested frame, everything is as the outer one left it.
    assert world.call(source, "outer")[0].return_value == b"\x82\x00\x01"


def test_name_that_the_sdk_loads_late_costs_the_same_when_a_frame_before_has_used_it(world):
    """The SDK keeps such a name after its first use; the next frame finds it not kept."""
    source = "import cowboy_sdk\ndef go(p):\n    return str(cowboy_sdk.OffchainError)\n"

    costs = [world.call(source, "go")[1].cycles_used for _ in range(3)]

    assert costs == [costs[0]] * 3


@pytest.mark.parametrize(("source", "handler"), [(SDK_CLOCK, "start"), (SDK_AGENT, "chat")])
def test_frame_costs_the_same_when_it_is_the_first_and_the_last(source, handler):
    """Loading the SDK is nobody's cost, and no frame makes another one cheaper, whatever the order."""
    fresh = World()

    def cycles(text, name):
        return World(engine=fresh.engine).call(text, name, b"")[1].cycles_used

    first = cycles(source, handler)
    between = [cycles(text, name) for text, name in ((SDK_CLOCK, "on_tick"), (SDK_AGENT, "init"), (SDK_AGENT, "chat"))]

    assert cycles(source, handler) == first
    assert [
        World().call(text, name)[1].cycles_used
        for text, name in ((SDK_CLOCK, "on_tick"), (SDK_AGENT, "init"), (SDK_AGENT, "chat"))
    ] == between


HIDDEN = {
    "module of the process": "import sys",
    "sys of the SDK": "from cowboy_sdk.runtime import sys\n    assert sys.modules['os']",
    "import machinery": "from cowboy_sdk import runtime\n    runtime.importlib.import_module('os')",
    "submodule of the process's own SDK": "from cowboy_sdk import testing",
    "rest of our package": "import trailboss.vm",
    "name of our package": "from trailboss import __version__",
    "name outside the facade": "from json import decoder",
    "name that evaluates": "from typing import get_type_hints",
    "name that a later Python adds": "from itertools import batched",
}
HIDDEN_BY_RULES = ("module of the process", "rest of our package", "name of our package")


@pytest.mark.parametrize("name", HIDDEN)
def test_module_is_out_of_reach_when_it_is_the_process_own(world, name):
    """Nothing but the facades can be imported, whatever this process has loaded."""
    assert cowboy_sdk.testing.__name__ in sys.modules
    outcome, _ = world.call(f"def go(p):\n    {HIDDEN[name]}\n    return 1\n", "go")

    if LocalChain.default_vm == "sandbox" and name in HIDDEN_BY_RULES:  # which its guest asks when it compiles
        assert outcome.error.code == RejectionReason.NON_DETERMINISTIC_CODE.code
    else:
        assert outcome.error.context["exception_type"] in ("ModuleNotFoundError", "ImportError", "KeyError")


NAMES = ["open", "eval", "exec", "compile", "input", "globals", "vars", "set", "id", "hash", "KeyboardInterrupt"]


@pytest.mark.parametrize("name", NAMES)
def test_builtin_is_out_of_reach_when_the_rules_were_not_asked(world, name):
    """The names that the rules refuse are not there either."""
    outcome, _ = world.call(f"def go(p):\n    return {name}\n", "go")

    if LocalChain.default_vm == "sandbox":  # its guest asks the rules when it compiles
        assert outcome.error.code == RejectionReason.NON_DETERMINISTIC_CODE.code
    else:
        assert outcome.error.context["exception_message"] == f"name {name!r} is not defined"


TEXTUAL = [
    "getattr(go, '__globals__')",
    "getattr(go, '__glo' + 'bals__', None)",
    "operator.attrgetter('__class__.__subclasses__')(1)",
    "operator.methodcaller('__subclasses__')(int)",
    "setattr(go, '__code__', None)",
]


@pytest.mark.parametrize("expression", TEXTUAL)
def test_attribute_is_out_of_reach_when_it_is_named_by_text(world, expression):
    """A name put together at run time leads out as little as a written one."""
    outcome, _ = world.call(f"import operator\ndef go(p):\n    return {expression} and 1\n", "go")

    assert outcome.error.context["exception_type"] == "AttributeError"
    assert outcome.error.context["exception_message"].endswith("is not available to actors by name")


def test_own_objects_can_be_changed_in_every_way(world):
    """The guard is for what is shared; a program's own objects are its own."""
    source = """
class Own:
    count = 0
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        object.__setattr__(self, "last", name)

def go(p):
    own = Own()
    own.x = 1
    own.x += 1
    Own.count += 1
    setattr(own, "y", 2)
    del own.x
    delattr(own, "y")
    go.calls = 1
    table = {"a": [1]}
    table["a"][0] += 1
    del table["a"][0]
    return [own.last, Own.count, hasattr(own, "x"), go.calls, getattr(own, "z", 3), table]
"""
    outcome, _ = world.call(source, "go")

    assert outcome.error is None
    assert outcome.return_value.hex() == "866179" + "01f40103" + "a1616180"


def test_print_goes_nowhere(world, capfd):
    """A frame has no output."""
    assert world.call("def go(p):\n    print('hello', end='')\n", "go")[0].error is None
    assert capfd.readouterr() == ("", "")


def test_reprs_show_no_address(world):
    """What a receipt keeps of an object is the same in every process."""
    source = "class Thing:\n    pass\ndef go(p):\n    raise ValueError(Thing(), go)\n"
    outcome, _ = world.call(source, "go")

    assert outcome.error.context["exception_message"] == "(<Thing object>, <function go>)"


def test_docstrings_and_class_bodies_are_the_same_on_every_version(world):
    """Python 3.13 strips docstrings and adds names to classes; guests see neither."""
    source = '''
class Thing:
    """One.

        Two.
    """
    names = []
    def __init_subclass__(cls):
        cls.names.extend(sorted(cls.__annotations__))

class Other(Thing):
    x: int = 1

def go(p):
    return [Thing.__doc__, Thing.names]
'''
    outcome, _ = world.call(source, "go")

    assert outcome.return_value == b"\x82\x6aOne.\n\nTwo.\x81\x61x"


def test_process_is_as_it_was_when_a_frame_has_run(world):
    """Recursion limit, collector, modules and JSON's own classes are the process's again."""
    before = (sys.getrecursionlimit(), gc.isenabled(), sorted(sys.modules), vars(json.JSONEncoder).copy())

    world.call(SDK_AGENT, "chat", b"")

    assert (sys.getrecursionlimit(), gc.isenabled(), sorted(sys.modules), vars(json.JSONEncoder).copy()) == before
