"""A module that is kept from frame to frame cannot be found out: the same as if it ran in each frame."""

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.lives import ACTORS, BLOCKS, LIVES, MECHANISMS
from tests.golden.programs import PROGRAMS
from tests.golden.world import World
from tests.property.witness import Witness
from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox import engines
from trailboss.sandbox.engines import SharedNativeEngine
from trailboss.testing import LocalChain
from trailboss.vm.native import NativeEngine

PARAMS = load_params("mainnet")
HERE, THERE = b"\x22" * 20, b"\x44" * 20

TOP = """
from typing import Any
import json, math
from math import isqrt
from cowboy_sdk import actor, codec, public, runtime, timer
import pvm_host
LIMIT = 24 * 60 - 1
if LIMIT > 5:
    LIMIT += len(str(LIMIT))
ITEMS = [1, [2, 3]]
EMPTY = []
TABLE = {'a': 1, 'b': [2]}
PAIR = ('x', [4])
GAS: int = 9
class Fault(Exception):
    code = 3
class Base:
    kinds = []
    rate: int = 10**3
    def __init__(self):
        self.mine = []
    def count(self):
        return len(self.kinds)
    @property
    def twice(self):
        return 2 * self.rate
class Tool:
    @staticmethod
    def once(value: Any) -> Any:
        return value
def helper(value, seen=[], *, more={}):
    seen.append(value)
    more[len(seen)] = 1
    return len(seen) + len(more)
def marked(value):
    return value
def spread(self):
    self.spread_to = 1
def deep(levels):
    return deep(levels - 1) if levels else list(codec.encode({'a': 'b'}))
"""
PLAIN = [  # what leaves nothing behind
    "seen.append(LIMIT + GAS + isqrt(16))",
    "seen.append(str([ITEMS, EMPTY, TABLE, PAIR, Base.kinds, Base().twice, Tool.once(p)]))",
    "seen.append([hasattr(each, 'spread_to') for each in (Actor, Base, marked)])",
    "seen.append([hasattr(Base, 'storage'), hasattr(marked, '_call_perm'), hasattr(Base, 'address')])",
    "seen.append(json.dumps([1]) + str(math.isqrt(9)))",
    "seen.append(sum(each for each in range(4)))",
    "seen.append(pvm_host.gas_left())",
    "seen.append(str(self.address))",
    "self.tally = 1 + len(seen); seen.append(self.tally)",
    "seen.append([type(f'C{n}', (), {}).__name__ for n in range(40)])",
    "seen.append(len('ab' * 200_000))",
    "raise Fault('no')",
    "raise ValueError(str(len(seen)))",
    "pvm_host.set_state(b'n', b'1' + (pvm_host.get_state(b'n') or b''))",
    "pvm_host.set_state(b'big', b'0' * 3000)",
    "seen.append(list(pvm_host.call_actor(pvm_host.self_address(), 'inner', b'x', 10**7) or b''))",
    "seen.append(list(pvm_host.call_actor(OTHER, 'inner', b'x', 10**7) or b''))",
    "loop = [1]; loop.append(loop); loop.append(each for each in loop)",
    "seen.append(list(codec.encode({'_handler': 'go', '_payload': bytes(p)})))",
    "seen.append(list(codec.encode({'b': p, 'a': 'x' * len(p), p: 'y', 'c': 'z'})))",
    "seen.append(codec.encode({'a': p}) is codec.encode({'a': p}))",
    "seen.append(sorted([{'a': 'b'}, {'b': 'a'}] * 12, key=codec.encode))",
    "timer.schedule(runtime.get_block_height() + 5, p, handler='on_tick')",
    "seen.append(pvm_host.gas_left() and deep(200))",
]
TRACES = [  # what changes the module so that it is seen when the frame has ended
    "ITEMS.append(1)",
    "ITEMS[1].append(1)",
    "EMPTY.append(p)",
    "TABLE['c'] = TABLE.get('c', 0) + 1",
    "TABLE['b'] = [2]",
    "PAIR[1][0] += 1",
    "seen.append(helper(p))",
    "Base.kinds.append(p)",
    "spread(Actor)",
    "spread(Base)",
    "spread(marked)",
    "actor(Base)",
    "public(marked)",
]
SECRETS = [  # what the source gives away
    "Base.tally = 1",
    "marked.calls = 1",
    "helper.__defaults__[0].append(1)",
    "seen.append(type(self).__dict__)",
    "type(self).kinds = 7",
    "setattr(Actor, 'spread_to', p)",
    "global LIMIT; LIMIT = 3",
]
NAMES = ("go", "on_tick", "fail", "nest", "inner")
HANDLERS = (*NAMES, "missing")
DECORATORS = st.sampled_from(["@public(decode='raw')", "@timer", "@public"])
HEADS = st.sampled_from(["@actor\nclass Actor:", "class Actor:", "class Actor(Base):", "@actor\nclass Actor(Base):"])


@st.composite
def programs(draw):
    """Return the source of an actor on the SDK."""
    steps = st.sampled_from(PLAIN + draw(st.sampled_from([[], [], TRACES, TRACES, SECRETS])))
    lines = [TOP, f"OTHER = {THERE!r}", draw(HEADS)]
    for name in NAMES:
        body = draw(st.lists(steps, max_size=4))
        body += ["raise KeyError(p)"] if name == "fail" else []
        if name == "inner":
            body = [step for step in body if "call_actor" not in step]
        elif name == "nest":
            body.append("seen.append(list(pvm_host.call_actor(pvm_host.self_address(), 'inner', p, 10**8)))")
        lines += [f"    {draw(DECORATORS)}", f"    def {name}(self, p):", "        seen = []"]
        lines += [*(f"        {step}" for step in body), "        return repr(seen).encode()"]
    return "\n".join(lines) + "\n"


def worlds(*sources):
    """Return a world that keeps modules, and one that runs them in every frame."""
    pair = World(PARAMS, KEEPING), World(PARAMS, AFRESH)
    for world in pair:
        world.sources.update(zip((HERE, THERE), sources, strict=False))
    return pair


KEEPING, AFRESH = Witness(PARAMS), NativeEngine(PARAMS)


def same(pair, source, handler, payload=b"x", actor=HERE, **limits):
    """Run a handler in both worlds; return the outcome and the cycles once they are found equal."""
    ends = []
    for world in pair:
        outcome, meter = world.call(source, handler, payload, actor=actor, **limits)
        state = world.slots, world.timers, world.printed, world.events
        ends.append((outcome, meter.cycles_used, meter.cells_used, state))
    assert ends[0] == ends[1]
    return ends[0][:2]


LINES_MIN = 3
CALLS = st.lists(
    st.tuples(
        st.sampled_from(HANDLERS),
        st.sampled_from([b"", b"x", b"\x62hi"]),
        st.sampled_from([HERE, THERE]),
        st.none() | st.integers(0, 100),
    ),
    min_size=2,
    max_size=8,
)


@settings(max_examples=120, deadline=None)
@given(programs(), programs(), CALLS)
def test_kept_module_is_as_one_that_runs_in_every_frame(source, other, calls):
    """Outcome, traceback, cycles, cells and state are equal, also of frames that fail, nest, or run out of cycles."""
    pair = worlds(source, other)
    for handler, payload, actor, percent in calls:
        text = source if actor == HERE or percent is None else other
        _, cycles = same(pair, text, handler, payload, actor)
        if percent is not None:
            same(pair, text, handler, payload, actor, cycles=cycles * percent // 100)
            same(pair, text, handler, payload, actor, cells=percent * 50)
    KEEPING.check_sdk()


def runs_of_module(run):
    """Return how often a module runs while something is done."""
    with patch.object(NativeEngine, "_loaded", autospec=True, side_effect=NativeEngine._loaded) as loaded:
        run()
    return loaded.call_count


def test_frame_ends_out_of_cycles_where_a_module_that_runs_would_end():
    """At every limit there is: within the module at its very line, and in the handler."""
    source = PROGRAMS["sdk_clock"][0]
    pair = worlds(source)
    _, cycles = same(pair, source, "on_tick")
    ends = [same(pair, source, "on_tick", cycles=limit)[0] for limit in range(cycles + 1)]

    assert all(end.error.slug == "out_of_cycles" for end in ends[:-1])
    assert len({str(end.error.context.get("traceback")) for end in ends[:-1]}) > LINES_MIN
    assert ends[-1].error is None
    assert runs_of_module(lambda: pair[0].call(source, "on_tick")) == 0


EXAMPLES = [path for path in sorted(Path("examples/actors").glob("*.py")) if "cowboy_sdk" in path.read_text()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_on_the_sdk_is_kept(path):
    """Actors as people write them are constant."""
    source = path.read_text()
    world = worlds()[0]
    world.call(source, "init", b"")

    assert runs_of_module(lambda: world.call(source, "init", b"")) == 0


REENTRANT = """from cowboy_sdk import runtime
import pvm_host
seen = []
class Caller:
    def go(self, p):
        seen.append(p)
        if not p:
            return repr(seen).encode()
        answer = pvm_host.call_actor(pvm_host.self_address(), "go", p[1:], 10**7)
        return answer + repr(seen).encode() + self.address
    def stay(self, p):
        return pvm_host.call_actor(pvm_host.self_address(), "address_of", p, 10**7) + self.address
    def address_of(self, p):
        return self.address
"""


def test_nested_frames_of_one_program_have_modules_of_their_own():
    """Each sees what it has done itself; the outermost frame finds a kept module, those within run theirs."""
    pair = worlds(REENTRANT, REENTRANT)
    for handler, payload in (("stay", b""), ("stay", b""), ("go", b"abc"), ("go", b"abc")):
        for actor in (HERE, THERE):
            end, _ = same(pair, REENTRANT, handler, payload, actor)
            assert end.error is None
    other = REENTRANT + "# with a module that no frame has changed"
    pair = worlds(other)
    same(pair, other, "stay")

    assert runs_of_module(lambda: pair[0].call(other, "stay", actor=HERE)) == 1
    assert runs_of_module(lambda: pair[0].call(other, "address_of", actor=HERE)) == 0


def test_encoding_near_the_deepest_call_fails_as_in_a_frame_without_memory():
    """At every depth there is: a map that is known counts for the calls of its encoding."""
    source = """from cowboy_sdk import codec
def go(p):
    return deep(int(p))
def deep(levels):
    return deep(levels - 1) if levels else codec.encode({'a': 'b'})
"""
    pair = worlds(source)
    ends = [same(pair, source, "go", str(levels).encode())[0] for levels in range(225, 256)]

    assert ends[0].error is None
    assert ends[-1].error is not None


def test_encoding_near_the_limit_of_bytes_fails_as_in_a_frame_without_memory():
    """What a large result takes of the frame's limit is counted each time."""
    source = """from cowboy_sdk import codec
LARGE = {letter * 64: letter * 64 for letter in 'abcd'}
def go(p):
    return len(codec.encode(LARGE)), len(bytes(int(p))), len(codec.encode(LARGE))
"""
    pair, most = worlds(source), PARAMS.source.frame_allocation_bytes_max
    ends = [same(pair, source, "go", str(most - left).encode())[0] for left in range(4_000, 400, -200)]

    assert "MemoryError" not in repr(ends[0])
    assert "MemoryError" in repr(ends[-1])


def lived(name, engine):
    """Return the receipts, events and last root of an example on a chain."""
    with (
        patch.object(engines, "SharedNativeEngine", engine),
        LocalChain(mechanism=MECHANISMS.get(name, "fifo"), vm="native") as chain,
    ):

        def deploy(file, value, payload=b""):
            return chain.deploy(ACTORS / f"{file}.py", sender=chain.accounts[0], value=value, init_payload=payload)

        LIVES[name](chain, deploy)
        chain.advance_to(BLOCKS)
        return chain.receipts(), [str(event) for event in chain.events()], chain.state_root


@pytest.mark.parametrize("name", LIVES)
def test_example_lives_the_same_on_a_chain_that_keeps_modules(name):
    """Receipts, events and roots are equal, and nothing that a kept module leads to has changed."""
    assert lived(name, Witness) == lived(name, Afresh)


class Afresh(SharedNativeEngine):
    """An engine whose modules run in each frame."""

    def _take(self, program, site):
        return None


PAGES = sorted(Path("docs").rglob("*.md"))
PIECE = re.compile(r'^```python title="(?!test_)[^"]*"\n(.*?)^```', re.DOTALL | re.MULTILINE)
RECIPES = [
    pytest.param(piece, id=f"{page.stem}-{place}")
    for page in PAGES
    for place, piece in enumerate(PIECE.findall(page.read_text(encoding="utf-8")))
    if "def " in piece and ("pvm_host" in piece or "cowboy_sdk" in piece)
]


@pytest.mark.parametrize("source", RECIPES)
def test_recipe_is_the_same_with_a_kept_module(source):
    """Every handler of every actor in the pages ends alike, also with little to pay, and leaves its module alone."""
    assert RECIPES
    pair = worlds(source)
    for handler in sorted(AFRESH.handlers(source, keccak256(source.encode()))):
        for payload in (b"", b"5", b"\x05", b'{"n": 1}', b""):
            _, cycles = same(pair, source, handler, payload)
            same(pair, source, handler, payload, cycles=cycles // 2)
    KEEPING.check_sdk()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_the_same_with_a_kept_module(name):
    """Every construct whose cycles are pinned."""
    source, calls = PROGRAMS[name]
    pair = worlds(source)
    for handler, payload in [*calls, *calls]:
        same(pair, source, handler, payload or b"")
    KEEPING.check_sdk()


NEVER_KEPT = {
    "global": "def go(p):\n    global N\n    N = 1\nN = 0",
    "attribute of a class": "def go(p):\n    Plain.n = 1",
    "attribute of a function": "def go(p):\n    go.n = 1",
    "setattr": "def go(p):\n    setattr(go, 'n', 1)",
    "special attribute": "def go(p):\n    go.__kwdefaults__",
    "generator that sleeps": "def many():\n    yield 1\ndef go(p):\n    return 1",
    "iterator of the module": "ALL = (n for n in [1, 2])\ndef go(p):\n    return 1",
    "object of the module": "class One: pass\nONE = One()\ndef go(p):\n    return 1",
    "method of the module": "ALL = []\nadd = ALL.append\ndef go(p):\n    add(1)",
    "module that reads its cycles": "import pvm_host\nLEFT = pvm_host.gas_left()\ndef go(p):\n    return LEFT",
    "module that hashes": "import pvm_host\nDIGEST = pvm_host.keccak256(b'')\ndef go(p):\n    return DIGEST",
    "name that the SDK loads late": "from cowboy_sdk import OffchainError\ndef go(p):\n    return 1",
    "attributes that the SDK sets by text": "from cowboy_sdk import continuation\n"
    "def go(p):\n    continuation.Capture.update(go, {'__defaults__': (1,)})",
    "decimal context": "import decimal\ndecimal.setcontext(decimal.Context(3))\ndef go(p):\n    return 1",
    "finalizer": "class Last:\n    def __del__(self):\n        pass\ndef go(p):\n    return 1",
    "subclass hook": "class Root:\n    def __init_subclass__(kind):\n        pass\ndef go(p):\n    return 1",
    "cache": "import functools\n@functools.lru_cache\ndef go(p):\n    return 1",
    "decorator that asks the chain": "import pvm_host\ndef property(f):\n    pvm_host.block_height()\n    return f\n"
    "@property\ndef go(p):\n    return 1",
    "decorator that prints": "def property(f):\n    print(1)\n    return f\n@property\ndef go(p):\n    return 1",
    "decorator that changes the SDK": "from cowboy_sdk import pvm_random\ndef property(f):\n    pvm_random.random()\n"
    "    return f\n@property\ndef go(p):\n    return 1",
    "decorator that keeps a mode": "from cowboy_sdk import handler_mode\ndef property(f):\n"
    "    handler_mode._set_mode(1)\n    return f\n@property\ndef go(p):\n    return 1",
    "metaclass": "from abc import ABC\nclass Some(ABC):\n    pass\ndef go(p):\n    return 1",
    "enumeration": "from enum import Enum\nclass Some(Enum):\n    A = 1\ndef go(p):\n    return 1",
    "breakpoint": "def go(p):\n    breakpoint()",
    "large table": f"ALL = {list(range(2_000))}\ndef go(p):\n    return 1",
}  # fmt: skip


@pytest.mark.parametrize("name", NEVER_KEPT)
def test_module_runs_in_each_frame_when_its_program_is_not_certain_to_be_constant(name):
    """What could change, or what is not certain, is run afresh."""
    source = f"from cowboy_sdk import actor\nclass Plain: pass\n{NEVER_KEPT[name]}\n"
    world = World(PARAMS, SharedNativeEngine(PARAMS, breakpoints=True))

    assert [runs_of_module(lambda: world.call(source, "go")) for _ in range(3)] == [1, 1, 1]


CHANGES = {
    "list": "ITEMS.append(1)",
    "empty list": "EMPTY.append(1)",
    "list in a tuple": "PAIR[0].append(1)",
    "default": "again()",
    "class by its own method": "Plain.put(Plain)",
    "function by a method": "Plain.put(go)",
    "class by the SDK": "actor(Plain)",
    "function by the SDK": "public(go)",
    "items exchanged": "ITEMS.reverse()",
    "key of a dict": "TABLE['b'] = TABLE.pop('a')",
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_module_is_kept_no_longer_when_a_frame_has_changed_it(name):
    """The frame after finds a new one, and so do all others."""
    source = f"""from cowboy_sdk import actor, public
ITEMS = [1, 2]
EMPTY = []
PAIR = ([], 1)
TABLE = {{'a': 1}}
class Plain:
    def put(self):
        self.n = 1
def again(seen=[]):
    seen.append(1)
def go(p):
    {CHANGES[name]}
def look(p):
    return repr([ITEMS, EMPTY, PAIR, TABLE, hasattr(Plain, 'n'), hasattr(go, 'n'), hasattr(Plain, 'storage')]).encode()
"""
    world = worlds()[0]
    first = world.call(source, "look")[0]
    assert first.error is None
    assert runs_of_module(lambda: world.call(source, "look")) == 0
    world.call(source, "go")

    assert runs_of_module(lambda: world.call(source, "look")) == 1
    assert world.call(source, "look")[0] == first
