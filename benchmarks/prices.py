"""What a cycle buys at most: operations on growing sizes, each repeated until a fire's cycles are used up.

``python -m benchmarks.prices [name ...]`` prints the CPU time of a frame per charged cycle. Decision: D-101.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Final, cast

from trailboss.metering.meter import Meter
from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.vm.engine import Frame
from trailboss.vm.host import Host
from trailboss.vm.native import NativeEngine

CYCLES: Final = 550_000  # a fire's most
SECONDS_MAX: Final = 10.0
SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
NANOSECONDS: Final = 1e9
OPERATIONS: Final = """
+ ints: a = 1 << (N * 8); b = a + 1 | a + b
* ints: a = 3 << (N * 8) | a * a
* growing: a = 3 | a = a * a
// ints: a = 3 << (N * 16); b = 7 << (N * 8); b = b + 1 | a // b
% ints: a = 3 << (N * 16); b = 7 << (N * 8); b = b + 1 | a % b
divmod: a = 3 << (N * 16); b = 7 << (N * 8); b = b + 1 | divmod(a, b)
pow: a = N | 3 ** a
pow mod: a = (1 << (N * 8)) - 3; b = a - 2 | pow(3, a, b)
<<: a = N * 8 | 1 << a
>>: a = 1 << (N * 8) | a >> 1
int == int: a = 1 << (N * 8); b = (a + 1) - 1 | a == b
& ints: a = (1 << (N * 8)) - 1; b = a - 1 | a & b
- int: a = 1 << (N * 8) | -a
str(int): a = 10 ** min(N, 4200) | str(a)
int(str): a = "7" * min(N, 4200) | int(a)
hex(int): a = 1 << (N * 8) | hex(a)
int(hex): a = "f" * N | int(a, 16)
to_bytes: a = 1 << (N * 8); b = N + 1 | a.to_bytes(b, "big")
from_bytes: a = b"x" * N | int.from_bytes(a, "big")
hash int: a = 1 << (N * 8); d = dict() | d.get(a)
gcd: a = 3 << (N * 8); b = a + 1 | math.gcd(a, b)
isqrt: a = 3 << (N * 8) | math.isqrt(a)
factorial: a = N | math.factorial(a)
comb: a = N | math.comb(a, a // 2)
perm: a = N | math.perm(a, a // 2)
prod: a = [3] * N | math.prod(a)
round int: a = 10 ** 30 | round(a, -N)
bytes *: a = N | b"x" * a
str *: a = N | "x" * a
list *: a = N | [0] * a
str +: a = "x" * N | a + "y"
bytes +: a = b"x" * N | a + b"y"
list +: a = [0] * N | a + [1]
str +=: a = "x" * N | a += "y"
str slice: a = "x" * N | a[1:]
bytes slice: a = b"x" * N | a[1:]
list slice: a = [0] * N | a[1:]
list del slice: a = [0] * N | del a[:1]; a.append(0)
list set slice: a = [0] * N | a[:1] = [1]
str ==: a = "x" * N; b = a + "y"; b = b[:-1] | a == b
str <: a = "x" * N; b = a + "y" | a < b
str in: a = "x" * N | "y" in a
str in long: a = "x" * N; b = a[:N // 2] + "y" | b in a
list == ints: a = [0] * N; b = [0] * N | a == b
list == texts: a = ["abcdefgh" + str(i) for i in range(N)]; b = ["abcdefgh" + str(i) for i in range(N)] | a == b
list < lists: a = [[1]] * N; b = [[1]] * N | a < b
dict ==: a = dict.fromkeys(range(N)); b = dict.fromkeys(range(N)) | a == b
DAG ==: a = [1]; b = [1]; exec_ = [(a := [a, a], b := [b, b]) for i in range(min(N, 60))] | a == b
tuple hash: a = tuple(range(N)); d = dict() | d.get(a)
DAG hash: a = (1,); e = [(a := (a, a)) for i in range(min(N, 60))]; d = dict() | d.get(a)
tuple item: a = tuple(range(N)); d = {a: 1} | d[a]
tuple in dict: a = tuple(range(N)); d = {a: 1} | a in d
sorted: a = [(i * 7919) % 10007 for i in range(N)] | sorted(a)
sorted presorted: a = list(range(N)) | sorted(a)
sorted texts: a = ["x" * 100 + str((i * 7919) % 10007) for i in range(N)] | sorted(a)
sorted tuples: a = [(1, (i * 7919) % 10007) for i in range(N)] | sorted(a)
sorted key: a = [(i * 7919) % 10007 for i in range(N)] | sorted(a, key=float)
sort: a = [(i * 7919) % 10007 for i in range(N)] | b = a[:]; b.sort()
join: a = ["xx"] * N | "".join(a)
join long: a = ["x" * 100] * (N // 100) | "".join(a)
split: a = "x " * N | a.split()
splitlines: a = "x\\n" * N | a.splitlines()
replace: a = "x" * N | a.replace("x", "y")
replace long: a = "x" * N | a.replace("x", "yyyyyyyy")
upper: a = "x" * N | a.upper()
upper wide: a = "\\xe9" * N | a.upper()
encode: a = "x" * N | a.encode()
encode wide: a = "\\u20ac" * N | a.encode()
encode escape: a = "\\u20ac" * N | a.encode("ascii", "backslashreplace")
decode: a = b"x" * N | a.decode()
decode wide: a = ("\\u20ac" * N).encode() | a.decode()
hex: a = b"x" * N | a.hex()
fromhex: a = "ab" * N | bytes.fromhex(a)
find: a = "x" * N | a.find("y")
find long: a = "x" * N; b = "x" * (N // 3) + "y" | a.find(b)
rfind long: a = "x" * N; b = "y" + "x" * (N // 3) | a.rfind(b)
count: a = "x" * N | a.count("x")
bytes find: a = b"xy" * N | a.find(b"xx")
strip: a = "x" * N | a.strip("yx")
strip many: a = "x" * N; b = "".join([chr(200 + i) for i in range(min(N, 999))]) + "x" | a.strip(b)
startswith: a = "x" * N; b = "x" * N | a.startswith(b)
isdigit: a = "1" * N | a.isdigit()
translate: a = "x" * N; b = {120: "yyyyyyyy"} | a.translate(b)
ljust: a = N | "x".ljust(a)
zfill: a = N | "1".zfill(a)
expandtabs: a = "\\t" * (N // 10) | a.expandtabs(10)
format width: a = N | f"{1:{a}}"
format method: a = "{:" + str(N) + "}" | a.format(1)
format many: a = "{0}" * (N // 10); b = "x" * 100 | a.format(b)
% width: a = N | "%*d" % (a, 1)
float digits: a = N | f"{1.5:.{a}f}"
bytes(n): a = N | bytes(a)
bytearray(n): a = N | bytearray(a)
bytes(list): a = [1] * N | bytes(a)
in list: a = [0] * N | 1 in a
in list of texts: a = ["abcdefgh" + str(i) for i in range(N)]; b = "abcdefgh0x" | b in a
in range: a = range(N) | "a" in a
index: a = [0] * N | a.count(1)
pop(0): a = [0] * N | a.pop(0); a.append(0)
insert: a = [0] * N | a.insert(0, 0); a.pop()
reverse: a = [0] * N | a.reverse()
list(range): a = N | list(range(a))
tuple(list): a = [0] * N | tuple(a)
sum: a = N | sum(range(a))
sum list: a = [1] * N | sum(a)
sum lists: a = [[1]] * N | sum(a, [])
max: a = [1] * N | max(a)
min key: a = [1] * N | min(a, key=float)
any: a = [0] * N | any(a)
list map: a = [1] * N | list(map(float, a))
list map str: a = [1] * N | list(map(str, a))
list zip: a = [1] * N | list(zip(a, a))
zip wide: a = [[1]] * N | list(zip(*a))
enumerate: a = [1] * N | list(enumerate(a))
filter: a = [0] * N | next(filter(None, a), 0)
filter endless: a = itertools.repeat(0) | next(filter(None, a), 0)
dict pairs: a = [(i, i) for i in range(N)] | dict(a)
dict copy: a = dict.fromkeys(range(N)) | a.copy()
dict |: a = dict.fromkeys(range(N)) | a | a
dict keys &: a = dict.fromkeys(range(N)).keys() | list(a)
dict update: a = dict.fromkeys(range(N)); b = dict() | b.update(a)
fromkeys: a = N | dict.fromkeys(range(a))
Counter: a = [1] * N | collections.Counter(a)
most_common: a = collections.Counter(range(N)) | a.most_common()
deque: a = [1] * N | collections.deque(a)
deque rotate: a = collections.deque([1] * N) | a.rotate(N // 2)
deque item: a = collections.deque([1] * N) | a[N // 2]
repr ints: a = [1] * N | repr(a)
repr texts: a = ["x" * 10] * N | repr(a)
repr str: a = "\\n" * N | repr(a)
str list: a = [[1]] * N | str(a)
f list: a = [1] * N | f"{a}"
% list: a = [1] * N | "%s" % (a,)
DAG repr: a = [1]; e = [(a := [a, a]) for i in range(min(N, 60))] | repr(a)
json dumps: a = [1] * N | json.dumps(a)
json dumps texts: a = ["x" * 10] * N | json.dumps(a)
json dumps float: a = [1.5] * N | json.dumps(a)
json loads: a = "[" + "1," * N + "1]" | json.loads(a)
json loads lists: a = "[" + "[]," * N + "1]" | json.loads(a)
json loads texts: a = '["' + '","' * N + '"]' | json.loads(a)
sha256: a = b"x" * N | hashlib.sha256(a)
sha3: a = b"x" * N | hashlib.sha3_256(a)
pbkdf2: a = N | hashlib.pbkdf2_hmac("sha256", b"a", b"b", a)
shake: a = hashlib.shake_128(b"") | a.digest(N)
hmac: a = b"x" * N | hmac.digest(b"k", a, "sha256")
b64encode: a = b"x" * N | base64.b64encode(a)
b64decode: a = b"xxxx" * N | base64.b64decode(a)
a85encode: a = b"x" * N | base64.a85encode(a)
b85encode: a = b"x" * N | base64.b85encode(a)
b32encode: a = b"x" * N | base64.b32encode(a)
struct unpack: a = b"x" * N; b = str(N) + "B" | struct.unpack(b, a)
struct pack: a = str(N) + "x" | struct.pack(a)
struct calcsize: a = "B" * N | struct.calcsize(a)
re search: a = "x" * N | re.search("y", a)
re alternatives: a = "ab" * N | re.fullmatch("(?:a|b)*", a)
re sub: a = "x" * N | re.sub("x", "yy", a)
re compile: a = "x" * N; n = [0] | n[0] += 1; re.compile(a + str(n[0]))
re classes: n = [0] | n[0] += 1; re.compile("[a-z]{1,9}" * (N // 100 + 1) + str(n[0]))
unpack star: a = [1] * N | b, *c = a
call star: a = [1] * N; g = lambda *x: 0 | g(*a)
list star: a = [1] * N | [*a]
dict star: a = dict.fromkeys([str(i) for i in range(N)]) | {**a}
extend: a = [1] * N | b = []; b.extend(a)
product: a = range(min(N, 1000)) | list(itertools.product(a, repeat=2))
combinations: a = range(min(N, 100)) | list(itertools.combinations(a, 3))
permutations: a = range(min(N, 9)) | list(itertools.permutations(a))
product wide: a = [0] | list(itertools.product(a, repeat=N))
chain endless: a = itertools.repeat([]) | next(itertools.chain.from_iterable(a), 0)
groupby: a = itertools.repeat(0) | [0 for k in itertools.groupby(a)]
islice: a = itertools.repeat(0) | next(itertools.islice(a, N, None), 0)
accumulate: a = ["x"] * N | list(itertools.accumulate(a))
reduce: a = [1] * N | functools.reduce(operator.add, a)
Decimal /: decimal.getcontext().prec = N; a = decimal.Decimal(1); b = decimal.Decimal(3) | a / b
Decimal *: decimal.getcontext().prec = N; a = decimal.Decimal(1) / 3 | a * a
Decimal sqrt: decimal.getcontext().prec = N; a = decimal.Decimal(2) | a.sqrt()
Decimal exp: decimal.getcontext().prec = N; a = decimal.Decimal(2) | a.exp()
Decimal ln: decimal.getcontext().prec = N; a = decimal.Decimal(2) | a.ln()
Decimal str: a = "7" * N | decimal.Decimal(a)
Decimal int: a = decimal.Decimal("1E+" + str(N)) | int(a)
Decimal format: a = decimal.Decimal("1E+" + str(N)) | f"{a:f}"
class: a = 0 | type("X", (), {})
class statement: a = 0 | b = made()
dataclass: a = 0 | b = dataclasses.make_dataclass("D", ["x"])
namedtuple: a = 0 | b = collections.namedtuple("D", ["x"])
memoryview ==: a = memoryview(b"x" * N); b = memoryview(b"x" * N) | a == b
isinstance DAG: a = (bytes,); e = [(a := (a, a)) for i in range(min(N, 60))] | isinstance(1, a)
copy: a = [1] * N | a.copy()
UserString: a = collections.UserString("x" * N) | a + a
UserList: a = collections.UserList([0]) | a * N
Template: a = string.Template("$x" * (N // 10)) | a.substitute(x="y")
plain: a = 1; b = 2 | a = (a + b) & 255
"""
HEAD: Final = """
import base64, collections, dataclasses, decimal, functools, hashlib, hmac, itertools, json, math, operator, re
import string, struct

def made():
    class X:
        pass
    return X

def go(payload):
"""


def operations() -> Iterator[tuple[str, str, str]]:
    """Yield the name of each operation, what prepares it and what is repeated."""
    for line in OPERATIONS.strip().splitlines():
        name, _, rest = line.partition(": ")
        prepared, _, repeated = rest.partition(" | ")
        yield name, prepared, repeated


def measured(engine: NativeEngine, prepared: str, repeated: str, size: int) -> tuple[float, int, str]:
    """Return nanoseconds of CPU time a charged cycle, the cycles, and how the frame ended, as a child measures them."""
    source = f"{HEAD}    N = {size}\n    {prepared}\n    while True:\n        {repeated}\n"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        started = time.process_time()
        meter = Meter(CYCLES, CYCLES)
        frame = Frame(source, keccak256(source.encode()), bytes(20), bytes(20), "go", b"")
        # The programs call no host.
        outcome = engine.run(frame, cast(Host, None), meter)
        spent = time.process_time() - started
        error = outcome.error
        ended = "succeeded" if error is None else error.what if error.slug == "pvm_error" else error.slug
        rate = spent * NANOSECONDS / max(meter.charged()[0], 1)
        os.write(writer, f"{rate}|{meter.charged()[0]}|{ended}".encode())
        os._exit(0)
    os.close(writer)
    try:
        if not select.select([reader], [], [], SECONDS_MAX)[0]:
            os.kill(child, signal.SIGKILL)
            return float("inf"), 0, "does not end"
        answer = os.read(reader, 65_536).decode()
    finally:
        os.waitpid(child, 0)
        os.close(reader)
    if not answer:
        return float("inf"), 0, "died"
    measured_rate, cycles, how = answer.split("|", 2)
    return float(measured_rate), int(cycles), how


def main(names: list[str]) -> None:
    """Print the table: a row for each operation, a column for each size."""
    engine = NativeEngine(load_params("mainnet", {}))
    engine.prepare()
    sys.stdout.write(f"{'ns a cycle at size':24}" + "".join(f"{size:>10,}" for size in SIZES) + "   worst\n")
    for name, prepared, repeated in operations():
        if names and name not in names:
            continue
        rows = [measured(engine, prepared, repeated, size) for size in SIZES]
        rates = "".join(f"{rate:>10.0f}" for rate, _, _ in rows)
        ends = dict.fromkeys(ended for _, _, ended in rows if ended not in ("out_of_cycles", "out_of_memory"))
        # A frame that the limit of memory ends at once has hardly a cycle to divide by.
        worst = max(rate * max(cycles, 1) / CYCLES for rate, cycles, _ in rows)
        sys.stdout.write(f"{name:24}{rates}   {worst:.0f} {'; '.join(ends)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
