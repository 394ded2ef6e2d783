"""Programs whose cycles are pinned: between them they use every construct that the instrumentation knows."""

ARITHMETIC = """
def go(payload):
    total = 0
    for number in range(50):
        total += number * 3 % 7 if number & 1 else -number
    return total
"""
LOOPS = """
def go(payload):
    found = []
    number = 0
    while number < 40:
        number += 1
        if number % 3 == 0:
            continue
        elif number > 30:
            break
        found.append(number)
    else:
        found = None
    for _ in ():
        pass
    else:
        found.append(-1)
    return found
"""
COMPREHENSIONS = """
def go(payload):
    pairs = [(a, b) for a in range(8) if a % 2 for b in range(a)]
    table = {a: [b for b in range(a)] for a, _ in pairs}
    return [sum(x for row in table.values() for x in row), len(pairs), any(a > 6 for a, _ in pairs)]
"""
GENERATORS = """
def numbers(limit):
    for number in range(limit):
        got = yield number
        if got:
            return got

def chained(limit):
    first = yield from numbers(limit)
    second = yield from [1, 2, 3]
    return [first, second]

def go(payload):
    stream = chained(5)
    seen = [next(stream), next(stream), stream.send("stop")]
    seen += list(stream)
    closing = numbers(3)
    next(closing)
    closing.close()
    return seen
"""
ERRORS = """
class Refused(Exception):
    pass

def check(number):
    try:
        if number % 3 == 0:
            raise Refused(number)
        return [number, 10 // (number % 2)]
    except ZeroDivisionError as error:
        return str(type(error).__name__)
    except Refused:
        raise
    finally:
        number = None

def go(payload):
    seen = []
    for number in range(9):
        try:
            seen.append(check(number))
        except Refused as error:
            seen.append(error.args[0])
        else:
            seen.append(None)
    return seen
"""
CLASSES = """
import functools
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

class Suit(Enum):
    CLUBS = 1
    HEARTS = 2

@dataclass(frozen=True, order=True)
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list, compare=False)

    def moved(self, dx):
        return Point(self.x + dx, self.y)

class Pair(NamedTuple):
    left: int
    right: int

class Base:
    made = []

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        cls.made.append(cls.__qualname__)

    @property
    def name(self):
        return type(self).__name__

class Child(Base):
    limit = [n * n for n in range(5)][-1]

    def __init__(self):
        super().__init__()
        self.value = self.limit

    @functools.cached_property
    def twice(self):
        return self.value * 2

def go(payload):
    child = Child()
    points = sorted([Point(3), Point(1, 2).moved(4), Point(2)])
    left, right = Pair(1, 2)
    return [repr(points), child.name, child.twice, Child.made, Suit(2).name, left + right, repr(child)]
"""
MATCHING = """
def name(value):
    match value:
        case 0 | 1:
            return "bit"
        case int() as number if number > 100:
            return f"big {number:>8,}"
        case [first, *rest]:
            return f"{first!r} and {len(rest)} more"
        case {"kind": str(kind), **others}:
            return kind + "".join(others)
        case _:
            return "other"

def go(payload):
    return [name(value) for value in (0, 5, 1000, [1, 2, 3], {"kind": "k", "x": 1}, None)]
"""
CONTEXTS = """
class Quiet:
    def __init__(self):
        self.seen = []

    def __enter__(self):
        return self.seen

    def __exit__(self, kind, error, trace):
        self.seen.append(kind.__name__ if kind else None)
        return kind is KeyError

def go(payload):
    quiet = Quiet()
    for key in ("a", "b"):
        with quiet as seen, quiet:
            seen.append({"a": 1}[key])
    return quiet.seen
"""
LAMBDAS = """
def go(payload):
    add = lambda a, b=2: a + b
    fact = lambda n: 1 if n < 2 else n * fact(n - 1)
    words = sorted(["pear", "fig", "apple"], key=lambda word: (len(word), word))
    (chosen := [add(1), fact(10)]).append(words)
    assert chosen, "never empty"
    del words
    return chosen
"""
LIBRARIES = """
import base64, hashlib, json, re, struct
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal, localcontext
from itertools import accumulate, groupby
import operator

def go(payload):
    counts = Counter("mississippi").most_common(2)
    groups = [(key, len(list(items))) for key, items in groupby("aabbbc")]
    with localcontext() as context:
        context.prec = 6
        third = str(Decimal(1) / 3)
    text = json.dumps({"b": [1, 2.5], "a": None}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    packed = struct.pack(">IH", 7, 9)
    tail = deque(accumulate(range(6), operator.add), maxlen=2)
    text = base64.b64encode(packed).decode()
    return [counts, groups, third, digest, text, list(tail), re.findall(r"[a-c]+", "xabyc")]
"""
SAMPLE = """
class HeartbeatActor:
    interval = 10

    def deploy(self):
        pvm_host.set_state(b"deployer", self.deployer)
        self._next()

    def handle_timer(self, payload):
        count = int(pvm_host.get_state(b"count") or b"0") + 1
        pvm_host.set_state(b"count", str(count).encode())
        self._next()
        return count

    def _next(self):
        pvm_host.schedule_timer(pvm_host.block_height() + self.interval, b"")
"""
SDK_CLOCK = """
from cowboy_sdk import actor, timer, runtime

@actor
class Clock:
    def start(self, payload):
        # fire into on_tick at height+10
        timer.schedule(runtime.current_block() + 10, b"", handler="on_tick")
        return b'{"ok": true}'

    @timer
    def on_tick(self, payload):
        # deferred by default: may reschedule / send
        timer.schedule(runtime.current_block() + 10, b"", handler="on_tick")
        return b""
"""
SDK_INTERVAL = """
from cowboy_sdk import actor, timer, runtime, public

@actor
class Pulse:
    @public
    def start(self, payload):
        runtime.set_interval(20, "beat", b"x")
        return b""

    def _beat(self, data):
        self.storage["beats"] = self.storage.get("beats", 0) + 1

    @timer
    def handle_timer(self, payload):
        runtime.dispatch_interval(payload, {"beat": self._beat})
"""
SDK_AGENT = """
from cowboy_sdk import actor, public, runner, capture

@actor
class Agent:
    @public
    def init(self, payload):
        self.storage["calls"] = 0

    @public
    @runner.continuation
    async def chat(self, msg):
        ctx = capture()
        ctx.prompt = f"say {msg!r}"
        result = await runner.llm(ctx.prompt, system_prompt="x")
        self.storage["reply"] = result.text
        return {"prompt": ctx.prompt, "reply": result.text}
"""
SDK_MODEL = """
from cowboy_sdk import CowboyModel, Address, SortedMap, ordered_set, codec

class Order(CowboyModel):
    owner: str
    amount: int = 1

def go(payload):
    order = Order(owner="a")
    table = SortedMap()
    table["b"], table["a"] = 2, 1
    names = [name for name in ordered_set(["x", "y", "x"])]
    return [repr(order), order.to_dict() if hasattr(order, "to_dict") else None, list(table), names, codec.encode([1])]
"""

PROGRAMS = {
    "arithmetic": (ARITHMETIC, [("go", b"")]),
    "loops": (LOOPS, [("go", b"")]),
    "comprehensions": (COMPREHENSIONS, [("go", b"")]),
    "generators": (GENERATORS, [("go", b"")]),
    "errors": (ERRORS, [("go", b"")]),
    "classes": (CLASSES, [("go", b"")]),
    "matching": (MATCHING, [("go", b"")]),
    "contexts": (CONTEXTS, [("go", b"")]),
    "lambdas": (LAMBDAS, [("go", b"")]),
    "libraries": (LIBRARIES, [("go", b"")]),
    "sample": (SAMPLE, [("deploy", b""), ("handle_timer", b""), ("handle_timer", b"")]),
    "sdk_clock": (SDK_CLOCK, [("start", b""), ("on_tick", b""), ("on_tick", b"")]),
    "sdk_interval": (SDK_INTERVAL, [("start", b""), ("handle_timer", None), ("handle_timer", None)]),
    "sdk_agent": (SDK_AGENT, [("init", b""), ("chat", b"\x62hi"), ("chat__resume", None)]),
    "sdk_model": (SDK_MODEL, [("go", b""), ("go", b"")]),
}
"""By name: source, and the handlers called one after another. A payload of None is what the chain would bring."""
