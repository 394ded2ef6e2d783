"""The native engine: what is called, what it answers, and how a failure is told."""

import linecache
import sys

import pytest

from tests.golden.programs import SDK_AGENT, SDK_CLOCK
from tests.golden.world import ACTOR, OWNER, World
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.envelopes import route_payload
from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.vm.native import NativeEngine


def answer(world, source, handler="go", payload=b"", **call):
    outcome, _ = world.call(source, handler, payload, **call)
    assert outcome.error is None, outcome.error
    return outcome.return_value


def test_function_of_the_module_goes_before_a_method(world):
    """Module level first, else the class."""
    source = """
class A:
    def go(self, p): return b"method"
    def only(self, p): return b"only"
def go(p): return b"function"
"""

    assert answer(world, source) == b"function"
    assert answer(world, source, "only") == b"only"


def test_class_is_told_its_address_and_deployer(world):
    """Plain classes get both, before ``__init__``, unless they have such a name of their own."""
    source = """
class A:
    deployer: bytes

    def __init__(self):
        self.seen = [self.address, self.deployer]

    def go(self, p):
        return self.seen

class B:
    __slots__ = ()
    address = "mine"

    def other(self, p):
        return [self.address, self.deployer]
"""
    assert decode_canonical(answer(world, source)) == [ACTOR, OWNER]
    assert decode_canonical(answer(world, source, "other")) == ["mine", OWNER]


PAYLOADS = {
    "method without": ("class A:\n    def go(self):\n        return b'none'", b"none"),
    "method with": ("class A:\n    def go(self, payload):\n        return payload", b"given"),
    "method with default": ("class A:\n    def go(self, payload=None):\n        return payload", b"given"),
    "method with any": ("class A:\n    def go(self, *all):\n        return all[0]", b"given"),
    "static": ("class A:\n    @staticmethod\n    def go(payload):\n        return payload", b"given"),
    "class method": ("class A:\n    @classmethod\n    def go(cls, payload):\n        return payload", b"given"),
    "function without": ("def go():\n    return b'none'", b"none"),
    "in a branch": ("if True:\n    def go(payload):\n        return payload", b"given"),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_handler_gets_the_payload_if_it_takes_one(world, name):
    """The seed's sample has handlers without a parameter."""
    source, expected = PAYLOADS[name]

    assert answer(world, source, payload=b"given") == expected


MISSING = [
    ("def go(p): pass", "other", "handler 'other' is not defined; this actor has: go"),
    ("x = 1", "go", "handler 'go' is not defined; this actor has: none"),
    ("def _go(p): pass", "_go", "handler '_go' is not defined; this actor has: none"),
    ("from json import dumps", "dumps", "handler 'dumps' is not defined; this actor has: none"),
    ("class A:\n    def _go(self, p): pass", "_go", "handler '_go' is not defined; this actor has: none"),
    (
        "class A:\n    def go(self, p): pass\nclass B:\n    def go(self, p): pass",
        "go",
        "handler 'go' is a method of several classes: A, B; keep one of them",
    ),
]


@pytest.mark.parametrize(("source", "handler", "what"), MISSING)
def test_handler_is_not_found_when_the_source_does_not_define_it(world, source, handler, what):
    """Imported and private names are no handlers; and nothing has run, so nothing is charged."""
    outcome, meter = world.call(source, handler)

    assert (outcome.error.code, outcome.error.what) == (1223, what)
    assert meter.cycles_used == 0


def test_handler_is_not_found_when_the_module_takes_it_back(world):
    """What the source defines can be gone when it has run."""
    outcome, _ = world.call("def go(p): pass\ngo = None", "go")

    assert outcome.error.slug == "handler_not_found"


def test_class_that_extends_another_of_the_module_is_the_actor(world):
    """A base class is not ambiguous; a helper class without the handler neither."""
    source = """
class Base:
    def go(self, p): return b"base"
    def inherited(self, p): return type(self).__name__
class Actor(Base):
    def go(self, p): return super().go(p) + b" and actor"
class Helper: pass
"""
    assert answer(world, source) == b"base and actor"
    assert answer(world, source, "inherited") == b"Actor"


def test_handlers_are_told_without_running_anything(engine):
    """Deployment chooses the creation call by them."""
    source = "raise ValueError\ndef init(p): pass\nclass A:\n    def deploy(self): pass\n    def _own(self): pass"
    agent = engine.handlers(SDK_AGENT, keccak256(SDK_AGENT.encode()))

    assert engine.handlers(source, keccak256(source.encode())) == {"init", "deploy"}
    assert agent == {"init", "chat", "chat__resume"}


VALUES = [
    ("None", b""),
    ("b'x'", b"x"),
    ("bytearray(b'x')", b"x"),
    ("memoryview(b'x')", b"x"),
    ("'é'", "é".encode()),
    ("{'b': 1, 'a': [None, True, (1, 2)]}", encode_canonical({"a": [None, True, [1, 2]], "b": 1})),
    ("-2**64", encode_canonical(-(2**64))),
]


@pytest.mark.parametrize(("expression", "octets"), VALUES)
def test_return_value_becomes_bytes(world, expression, octets):
    """Decision: D-37."""
    assert answer(world, f"def go(p):\n    return {expression}\n") == octets


NO_VALUES = [
    ("object()", "what go returned cannot be encoded: "),
    ("1e400", "what go returned cannot be encoded: "),
    ("2**5000", "what go returned cannot be encoded: "),
    ("'\\ud800'", "what go returned cannot be encoded: text with a lone surrogate"),
    ("bytes(65537)", "go returned 65537 bytes, the limit is 65536"),
]


@pytest.mark.parametrize(("expression", "what"), NO_VALUES)
def test_return_value_reverts_when_it_has_no_bytes(world, expression, what):
    """What cannot be encoded, or is too long, is refused with its rule."""
    outcome, _ = world.call(f"def go(p):\n    return {expression}\n", "go")

    assert (outcome.error.code, outcome.return_value) == (1213, b"")
    assert outcome.error.what.startswith(what)


def test_coroutine_is_refused_when_a_continuation_awaits_nothing(world, recwarn):
    """The SDK leaves such a function asynchronous; nothing warns of it being never awaited."""
    source = "from cowboy_sdk import runner\n@runner.continuation\nasync def go(msg):\n    return b''\n"
    outcome, _ = world.call(source, "go")

    assert outcome.error.what == "go is asynchronous and awaits nothing; write it as def"
    assert list(recwarn) == []


def test_failure_tells_the_actors_own_lines(world):
    """Lines of the SDK and of the machine are left out; comprehensions read as in every version."""
    source = """from cowboy_sdk import actor, public

def divide(numbers):
    return [10 // number
            for number in numbers]

@actor
class Fails:
    @public
    def go(self, payload):
        helper = lambda: divide([1, 0])
        return helper()
"""
    outcome, _ = world.call(source, "go", b"")

    assert outcome.error.code == 1210
    # The words are the interpreter's: Python 3.14, in the sandbox, has others.
    assert outcome.error.what.endswith("by zero")
    assert outcome.error.context["exception_type"] == "ZeroDivisionError"
    assert outcome.error.context["traceback"].splitlines() == [
        "line 12, in go: return helper()",
        "line 11, in <lambda>: helper = lambda: divide([1, 0])",
        "line 4, in divide: return [10 // number",
    ]


def test_failure_keeps_the_innermost_lines_when_there_are_many(world):
    """A receipt holds sixteen of them."""
    source = "def dive(n):\n    return dive(n - 1) if n else 1 // n\ndef go(p):\n    return dive(100)\n"
    lines = world.call(source, "go")[0].error.context["traceback"].splitlines()

    assert lines[0] == "(86 outer lines left out)"
    assert len(lines) == 17


def test_failure_of_the_sdk_says_why_and_what_to_do(world):
    """The SDK's errors bring both; the receipt shows them."""
    source = "from cowboy_sdk.errors import ReentrancyError\ndef go(p):\n    raise ReentrancyError('twice')\n"
    error = world.call(source, "go")[0].error

    assert (error.code, error.context["sdk_slug"]) == (1210, "E1205")
    assert error.why == "A handler was invoked recursively while an earlier invocation had not returned."
    assert error.fix.startswith("Refactor to avoid reentrant calls")


def test_failure_is_told_when_its_message_cannot_be(world):
    """A message can fail in turn."""
    source = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\ndef go(p):\n    raise Mute\n"

    assert world.call(source, "go")[0].error.what == "Mute: (its message cannot be shown: ValueError)"


NESTED = """
def go(p):
    if p == b"0":
        return b"bottom"
    return pvm_host.call_actor(bytes(20), "go", str(int(p) - 1).encode(), 10**9)
"""


def test_name_of_an_exception_is_cut_when_it_is_long(world):
    """A receipt has no room for a name that the program makes up."""
    outcome, _ = world.call("def go(p):\n    raise type('X' * 10**6, (Exception,), {})('y')\n", "go")

    assert outcome.error.context["exception_type"] == "X" * 1024
    assert outcome.error.what == "X" * 1024 + ": y"


def test_refusal_is_an_ordinary_error_when_the_program_has_replaced_what_is_kept_with_it(world):
    """The host's error keeps its refusal in a dict that the program can reach."""
    source = """
def go(p):
    error = pvm_host.HostError("mine")
    for name in ("_vm_" + "refusal", "other"):
        object.__setattr__(error, name, "forged")
    raise error
"""
    outcome, _ = world.call(source, "go")

    assert outcome.error.code == 1210
    assert outcome.error.context["exception_message"] == "mine"


def test_frames_nest_thirty_two_deep(world):
    """As deep as the chain lets calls go; each with calls of its own."""
    world.sources[bytes(20)] = NESTED

    assert answer(world, NESTED, payload=b"32") == b"bottom"


def test_frames_nest_when_each_is_as_deep_as_it_may_be(world):
    """Thirty-two frames of two hundred calls through C code need stacks of their own."""
    source = """
def go(p):
    def dive(n):
        if n:
            return sorted([n], key=lambda _: dive(n - 1))
        if p != b"0":
            pvm_host.call_actor(bytes(20), "go", str(int(p) - 1).encode(), 10**9)
    dive(100)
    return b"done"
"""
    world.sources[bytes(20)] = source

    assert answer(world, source, payload=b"32") == b"done"


def test_caller_goes_on_when_a_callee_exhausts_its_share(world):
    """Exhaustion ends the frame that it happened in, and no other."""
    world.sources[bytes(20)] = "def spin(p):\n    while True:\n        pass\n"
    source = """
def go(p):
    try:
        pvm_host.call_actor(bytes(20), "spin", b"", 5_000)
    except pvm_host.HostError as error:
        return [error.code, 1 + 1]
"""
    outcome, meter = world.call(source, "go")

    assert decode_canonical(outcome.return_value) == [1210, 2]
    assert meter.cycles_used < 6_000


def test_sdk_frames_nest_within_one_another(world):
    """The library serves the inner frame and then the outer one again."""
    world.sources[bytes(20)] = (
        "from cowboy_sdk import actor, public\n@actor\nclass A:\n    @public\n    def add(self, pair):\n"
        "        self.storage['seen'] = pair\n        return sum(pair)\n"
    )
    source = """
from cowboy_sdk import ActorRef, actor, public

@actor
class Caller:
    @public
    def go(self, payload):
        first = ActorRef(bytes(20)).add(1, 2)
        self.storage["n"] = first
        return [first, ActorRef(bytes(20)).add(first, 4), self.storage["n"]]
"""
    assert decode_canonical(answer(world, source)) == [3, 7, 3]


@pytest.mark.spec("F-16")
def test_clock_of_the_sdks_documentation_runs_unmodified(world):
    """It schedules itself, by a payload that names its handler."""
    assert answer(world, SDK_CLOCK, "start") == b'{"ok": true}'

    handler, payload = route_payload(world.timers[0].payload, 256)

    assert (handler, payload, world.timers[0].height) == ("on_tick", b"", 110)
    assert answer(world, SDK_CLOCK, handler, payload) == b""
    assert len(world.timers) == 2


def test_continuation_of_the_sdk_goes_on_with_its_reply(world):
    """The SDK compiles it inside the frame; both halves are instrumented."""
    answer(world, SDK_AGENT, "init")
    answer(world, SDK_AGENT, "chat", encode_canonical("hi"))
    job = decode_canonical(world.messages[0][1])
    reply = encode_canonical({"cid": job["cid"].hex(), "result": {"text": "hello"}})

    said = answer(world, SDK_AGENT, job["reply_handler"], reply)

    assert decode_canonical(said) == {"prompt": "say 'hi'", "reply": "hello"}


def test_continuation_pays_for_what_it_does_when_the_sdk_has_compiled_it(world):
    """The generated code is instrumented like the actor's own."""
    source = """
from cowboy_sdk import actor, runner, public

@actor
class Spins:
    @public
    @runner.continuation
    async def go(self, msg):
        while True:
            pass
        x = await runner.llm("never")
"""
    outcome, _ = world.call(source, "go", b"", cycles=100_000)

    assert outcome.error.slug == "out_of_cycles"


def test_lines_are_traced_under_the_name_of_their_file(tmp_path):
    """Debuggers and coverage see the file's own lines, and none twice."""
    source = "def go(p):\n    total = 0\n    for n in range(2):\n        total += n\n    return total\n"
    path = tmp_path / "traced.py"
    path.write_text(source)
    world = World(engine=NativeEngine(load_params("mainnet")))
    world.engine.name_source(keccak256(source.encode()), str(path))
    seen = []

    def trace(frame, event, _):
        if frame.f_code.co_filename == str(path) and event == "line":
            seen.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer(world, source)
    finally:
        sys.settrace(before)

    assert [line for line, previous in zip(seen, [0, *seen], strict=False) if line != previous] == [
        1,
        2,
        3,
        4,
        3,
        4,
        3,
        5,
    ]


def test_source_is_known_to_linecache_until_it_is_forgotten():
    """A debugger shows the lines of a program that has no file."""
    source = "def go(p):\n    return 1\n"
    world = World(engine=NativeEngine(load_params("mainnet")))
    answer(world, source)
    name = f"<actor {keccak256(source.encode()).hex()[:16]}>"

    assert linecache.getline(name, 2) == "    return 1\n"
    world.engine.close()
    assert linecache.getline(name, 2) == ""


def test_syntax_error_is_an_outcome_when_source_was_never_checked(world):
    """A frame never raises for what guest code is."""
    outcome, _ = world.call("def go(p:\n", "go")

    assert outcome.error.slug == "invalid_data"
