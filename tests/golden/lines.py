"""Everyday lines by kind, and the fuel that a cycle of each uses in the sandbox.

``python -m tests.golden.lines [NAME ...]`` prints the table. Decision: D-102.
"""

import sys
from collections.abc import Iterator
from typing import Final
from unittest.mock import patch

from tests.golden.world import World
from trailboss.params import load_params
from trailboss.sandbox import cache
from trailboss.sandbox.engine import FUEL_PER_CYCLE
from trailboss.sandbox.engines import new_engine

LINES: Final = """
integers: a = 3; b = 7 | a = (a * 5 + b) % 1000 - i
integers of 256 bits: a = 2 ** 255 - 19; b = 2 ** 254 + 7 | c = a + b - i
product of 256 bits: a = 2 ** 255 - 19; b = 2 ** 254 + 7 | c = a * b % (2 ** 256)
power of 256 bits: a = 2 ** 255 - 19 | c = a ** 2
shift of 256 bits: a = 2 ** 200 | c = a << 50 | a >> 7
bits: a = 255 | a = (a << 1 ^ i) & 0xFFFF | 1
floats: a = 1.5 | a = (a * 1.25 + i) / 3.5
comparison: a = 3 | b = a < i <= 700 or a == i
comparison of texts: a = "left"; b = "right" | c = a < b and a != b
comparison of lists: a = [1, 2, 3]; b = [1, 2, 4] | c = a == b
comparison of long texts: a = "x" * 100; b = "x" * 99 + "y" | c = a == b
comparison with a long text: a = "x" * 100 | c = a == i
comparison of long lists: a = list(range(40)); b = list(range(40)) | c = a == b
comparison of nested values: a = {"k": [(1, 2), (3, {"l": 4})], "v": [5, 6, 7, 8, 9]}; b = dict(a) | c = a == b
comparison of objects: a = Account(1); b = Account(2) | c = a == b
comparison of Decimals: a = decimal.Decimal("1.5") | c = a == i
comparison of tuples: a = (1, "k"); b = (1, "l") | c = a < b
comparison of dataclasses: a = Point(1, 2); b = Point(1, 3) | c = a == b
branch: a = 0 | if i % 2: a += 1
loop: a = 0 | for j in (1, 2, 3): a += j
call: a = 0 | a = added(a, i)
call with names: a = 0 | a = added(left=a, right=i)
method: a = Account(5) | a.pay(i)
attribute: a = Point(1, 2) | b = a.x + a.y
object: a = 0 | a = Account(i)
dataclass: a = 0 | a = Point(i, 2)
named tuple: a = 0 | a = Pair(i, 2)
enumeration: a = Color.RED | b = a is Color.RED or a == Color.BLUE
member by value: a = 0 | a = Color(2)
dict: a = {} | a["k"] = a.get("k", 0) + 1
union of dicts: a = {1: 2}; b = {2: 3} | c = a | b
key of a long text: a = {} | a["x" * 70, i % 5] = 1
key of a tuple: a = {} | a[(i % 5, "k")] = i
defaultdict: a = collections.defaultdict(int) | a["k"] += 1
Counter: a = collections.Counter() | a["k"] += 1
list: a = [1, 2, 3] | a[i % 3] = a[0]; a.append(1); a.pop()
slice: a = [1, 2, 3, 4] | b = a[1:3]
unpacking: a = (1, 2, 3) | b, *c = a
comprehension: a = [1, 2, 3] | b = [each + 1 for each in a if each > 1]
generator: a = [1, 2, 3] | b = sum(each for each in a)
sum and max: a = [1, 2, 3] | b = sum(a) + max(a) + len(a)
sort of few: a = [3, 1, 2] | b = sorted(a)
sort of tuples: a = [(1, 2) for j in range(9)] | b = sorted(a)
smallest by key: a = [3, 1, 2] | b = min(a, key=float)
sort by key: a = [(3, "c"), (1, "a")] | b = sorted(a, key=lambda each: each[0])
membership: a = [1, 2, 3] | b = 2 in a and "k" not in {"l": 1}
text: a = "k" | b = (a + "l").upper().startswith("K")
replace: a = "key" | b = a.replace("k", "l")
encoding: a = "x" * 100 | b = a.encode()
split and join: a = "a b c" | b = "-".join(a.split())
f-string: a = "k" | b = f"{a}: {i}"
f-string with width: a = 1.5 | b = f"{a:8.2f}"
f-string of a list: a = [1, 2] | b = f"{a}"
texts of a list: a = [1, 2, 3, 4] | b = list(map(str, a))
repr: a = [1, "k"] | b = repr(a)
str and int: a = 0 | a = int(str(i))
format: a = "k" | b = "{}: {:>4}".format(a, i)
format of a long text: a = "x" * 100 | b = "{} {}".format(a, i)
template of % with a long text: a = "x" * 100 | b = "%s: %d" % (a, i)
template of %: a = "k" | b = "%s: %d" % (a, i)
bytes: a = b"key" | b = a + i.to_bytes(8, "big"); c = int.from_bytes(b, "big")
hash: a = b"key" | b = hashlib.sha256(a).digest()
hexadecimal: a = b"key" | b = bytes.fromhex(a.hex())
json.dumps: a = {"k": 1, "l": [1, 2]} | b = json.dumps(a)
json.dumps of a long list: a = list(range(40)) | b = json.dumps(a)
json.dumps with names: a = {"k": 1.5} | b = json.dumps(a, sort_keys=True, separators=(",", ":"))
json.loads: a = '{"k": 1, "l": [1, 2]}' | b = json.loads(a)
struct: a = 7 | b = struct.unpack(">IQ", struct.pack(">IQ", a, i))
re: a = "key: 15" | b = re.match(r"(\\w+): (\\d+)", a)
re.sub: a = "a b c" | b = re.sub(" ", "-", a)
Decimal: a = decimal.Decimal("1.10"); b = decimal.Decimal("2.20") | c = a * b + a
quantize: a = decimal.Decimal("1.5") | b = a.quantize(a)
Decimal of text: a = 0 | a = decimal.Decimal("12.50")
exception: a = {} | try: a["k"]
isinstance: a = 1 | b = isinstance(a, (int, str)) and callable(added)
base64: a = b"key" | b = base64.b64decode(base64.b64encode(a))
divmod and pow: a = 17 | b = divmod(i, a); c = pow(a, 5, 97)
itertools: a = [1, 2]; b = [3, 4] | c = list(zip(a, b)) + list(itertools.chain(a, b))
storage codec: a = {"k": [1, b"v"]} | b = codec.decode(codec.encode(a))
"""
"""Kinds by name: what is prepared, and the line that is repeated; ``i`` counts."""
HEAD: Final = """
import base64, collections, dataclasses, decimal, enum, hashlib, itertools, json, re, struct
from cowboy_sdk import codec

@dataclasses.dataclass
class Point:
    x: int
    y: int

class Account:
    def __init__(self, amount):
        self.amount = amount

    def pay(self, amount):
        self.amount += amount

class Color(enum.Enum):
    RED = 1
    BLUE = 2

Pair = collections.namedtuple("Pair", ["x", "y"])

def added(left, right):
    return left + right

def go(payload):
"""
PLENTY: Final = 10**12
FEW, MANY = 100, 1_100  # repetitions of a line in the two frames that are compared


def programs(count: int) -> Iterator[tuple[str, str]]:
    """Yield the name of each kind, and an actor that runs its line so many times."""
    for line in LINES.strip().splitlines():
        name, _, rest = line.partition(": ")
        prepared, _, repeated = rest.partition(" | ")
        handled = "\n        except KeyError:\n            b = i" if repeated.startswith("try:") else ""
        yield name, f"{HEAD}    {prepared}\n    for i in range({count}):\n        {repeated}{handled}\n    return i\n"


def rates(world: World) -> dict[str, float]:
    """Return the units of fuel that a cycle of each kind uses in a sandboxed world."""
    native = World()
    pairs = zip(programs(FEW), programs(MANY), strict=True)
    return {name: _rate(native, world, few, many) for (name, few), (_, many) in pairs}


def _rate(native: World, world: World, few: str, many: str) -> float:
    used = [_used(native, world, source) for source in (few, many)]
    cycles, fuel = (after - before for before, after in zip(*used, strict=True))
    return fuel / cycles


def _used(native: World, world: World, source: str) -> tuple[int, int]:
    """Return the cycles and the fuel of a frame, the latter but for what its base price buys."""
    outcome, own = native.call(source, "go", cycles=PLENTY)
    assert outcome.error is None, outcome.error
    # One unit buys one cycle, so the charge is the fuel.
    with patch("trailboss.sandbox.engine.FUEL_PER_CYCLE", 1):
        outcome, charged = world.call(source, "go", cycles=PLENTY)
    assert outcome.error is None, outcome.error
    return own.cycles_used, charged.cycles_used


def main(names: list[str]) -> None:
    """Print the table, the costliest kinds first."""
    image = cache.released_digest()
    found = rates(World(engine=new_engine(load_params("mainnet"), image)))
    for name, rate in sorted(found.items(), key=lambda each: -each[1]):
        if not names or name in names:
            sys.stdout.write(f"{name:28}{rate:>8,.0f}\n")
    above = sum(rate > FUEL_PER_CYCLE for rate in found.values())
    sys.stdout.write(f"{above} of {len(found)} kinds above {FUEL_PER_CYCLE:,}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
