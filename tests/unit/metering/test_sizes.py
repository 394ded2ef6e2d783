"""Prices for size: charged before the work, by lengths and values alone; endless iterators end; memory is refused."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.world import World

FIRE = 550_000
SECONDS_MAX = 5.0
"""Far above the half second that a frame may take, so that a busy machine does not fail a test."""
HEAD = """
import base64, collections, dataclasses, decimal, functools, hashlib, hmac, itertools, json, math, operator, re
import string, struct

def go(payload):
"""


def run(world, *lines, cycles=FIRE):
    """Run lines in a handler at a fire's limit; return what ended the frame, and the cycles that it used."""
    body = "".join(f"    {line}\n" for line in lines)
    started = time.process_time()
    outcome, meter = world.call(HEAD + body, "go", cycles=cycles)
    assert time.process_time() - started < SECONDS_MAX
    return outcome.error.slug if outcome.error else "succeeded", meter.cycles_used


HOLDERS = [
    "10 ** 10 ** 6",
    "x = 7\n    while True: x = x * x",
    "1 << 10 ** 12",
    "pow(3, 1 << 4000, (1 << 4000) - 3)",
    "math.factorial(10 ** 6)",
    "math.comb(10 ** 6, 10 ** 5)",
    "math.isqrt(1 << 10 ** 6)",
    "round(1, -10 ** 9)",
    "sum(range(10 ** 9))",
    "max(range(10 ** 12))",
    "'a' in range(10 ** 12)",
    "any(itertools.repeat(0))",
    "next(filter(None, itertools.repeat(0)))",
    "next(itertools.chain.from_iterable(itertools.repeat([])))",
    "next(itertools.islice(itertools.count(), 10 ** 12, None))",
    "next(itertools.dropwhile(bool, itertools.repeat(1)))",
    "list(map(str, itertools.count()))",
    "collections.deque(itertools.count(), maxlen=1)",
    "collections.Counter(itertools.count())",
    "dict.fromkeys(range(10 ** 9))",
    "{**dict.fromkeys(range(10 ** 6))}",
    "[].extend(itertools.repeat(0))",
    "a = []\n    a += itertools.repeat(0)",
    "a = []\n    a[:] = itertools.repeat(0)",
    "a, *b = itertools.repeat(0)",
    "print(*itertools.repeat(0))",
    "[*itertools.count()]",
    "for a, *b in [range(10 ** 9)]: pass",
    "functools.reduce(operator.add, itertools.repeat(1))",
    "operator.pow(10, 10 ** 6)",
    "operator.mul('x', 10 ** 12)",
    "(10).__pow__(10 ** 6)",
    "int.__pow__(10, 10 ** 6)",
    "'x'.__mul__(10 ** 12)",
    "[].__iadd__(itertools.repeat(0))",
    "list.__init__([], itertools.repeat(0))",
    "getattr([], 'extend')(itertools.repeat(0))",
    "operator.methodcaller('extend', itertools.repeat(0))([])",
    "operator.attrgetter('extend')([])(itertools.repeat(0))",
    "''.join(itertools.repeat('x'))",
    "f'{1:>1000000000}'",
    "'{:>1000000000}'.format(1)",
    "'%1000000000d' % 1",
    "'%*d' % (10 ** 9, 1)",
    "format(1, '>1000000000')",
    "'x'.ljust(10 ** 9)",
    "b'x' * 2 ** 30",
    "bytes(2 ** 30)",
    "[0] * 2 ** 40",
    "collections.UserString('x') * 10 ** 10",
    "collections.UserList([0]) * 10 ** 10",
    "string.Template('$x' * 100000).substitute(x='y' * 1000)",
    "(1).to_bytes(10 ** 9, 'big')",
    "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10 ** 9)",
    "hashlib.shake_128(b'').digest(10 ** 9)",
    "struct.pack('1000000000x')",
    "itertools.product([0, 1], repeat=10 ** 9)",
    "list(itertools.permutations(range(50)))",
    "decimal.getcontext().prec = 10 ** 6\n    decimal.Decimal(2).sqrt()",
    "int(decimal.Decimal('1E+900000'))",
    "re.compile('(?:abc)?' * 100000)",
    "class L(list): pass\n    L(itertools.repeat(0))",
    "make = list\n    make(itertools.repeat(0))",
    "[f(itertools.count()) for f in (list,)]",
    "{}.keys() & list(range(10 ** 8))",
    "x = {}\n    x |= zip(itertools.count(), itertools.count())",
    "collections.UserDict(zip(itertools.count(), itertools.count()))",
    "collections.UserDict().update(zip(itertools.count(), itertools.count()))",
    "collections.UserList(itertools.count())",
    "sorted(itertools.count(), key=abs)",
    "itertools.tee(itertools.count(), 10 ** 9)",
    "json.dumps([1], indent=10 ** 9)",
    "'\\t'.expandtabs(10 ** 12)",
    "'{0:{1}}'.format(1, 10 ** 9)",
    "'x'.translate({120: 'y' * 10 ** 9})",
    "decimal.Decimal('1E+900000').as_integer_ratio()",
    "decimal.Context(prec=10 ** 6).sqrt(decimal.Decimal(2))",
    "class S(str): pass\n    S('x') * 10 ** 12",
    "class I(int): __index__ = lambda self: 1\n    'x' * I(10 ** 12)",
    "class T(tuple):\n        def __new__(cls, x): return super().__new__(cls, x)\n    T(itertools.count())",
    "for i in range(10 ** 6): type('X', (), {})",
    "dataclasses.make_dataclass('D', ['f%d' % i for i in range(3000)])",
    "import enum\n    enum.Enum('E', [str(i) for i in range(20000)])",
    "operator.countOf(itertools.repeat(0), 1)",
    "-1 in itertools.count()",
]


@pytest.mark.parametrize("line", HOLDERS)
def test_frame_ends_when_one_operation_would_hold_the_process(world, line):
    """The charge, or the refusal of the memory, comes before the work, whichever way the operation is spelled."""
    assert run(world, line)[0] in ("out_of_cycles", "out_of_memory")


@pytest.mark.parametrize("catch", ["except BaseException: return b'survived'", "finally: pass"])
def test_refusals_cannot_be_caught(world, catch):
    """Neither of cycles nor of memory."""
    for line, ended in (("sum(itertools.count())", "out_of_cycles"), ("b'x' * 2 ** 30", "out_of_memory")):
        assert run(world, f"try: {line}", catch)[0] == ended


DEEP = {
    "compared": "a == b",
    "ordered": "a < b",
    "hashed": "{}.get(t)",
    "looked up": "t in {}",
    "shown": "repr(a)",
    "formatted": "f'{a}'",
    "put into text": "'%s' % (a,)",
    "encoded": "json.dumps(a)",
    "checked": "isinstance(1, (bytes, t))",
    "sorted": "sorted([a, b])",
    "searched": "[a].index(b)",
    "returned": "return a",
}
TREE = ("a = b = 0", "t = bytes", "for i in range(60): a, b, t = [a, a], [b, b], (t, t)")


@pytest.mark.parametrize("line", DEEP.values(), ids=DEEP)
def test_frame_ends_when_containers_hold_one_another_many_times(world, line):
    """Sixty lists that each hold the one before twice have 2**60 values to visit."""
    assert run(world, *TREE, line)[0] == "out_of_cycles"


@pytest.mark.parametrize("line", ["a == b", "repr(a)", "json.dumps(a)"])
def test_frame_ends_alike_when_a_list_holds_itself(world, line):
    """By the depth that calls may have, not by the stack of the machine."""
    assert run(world, "a, b = [], []", "a.append(a)", "b.append(b)", line)[0] == "out_of_memory"


EVERYDAY = [
    "x = 10 ** 18 * 3 + 7 - 2 * 5 // 3 % 11",
    "x = (1 << 64) - 1 & 255 | 3 ^ 5",
    "x = pow(7, 65537, 10 ** 9 + 7)",
    "x = 'a' * 10 + 'b'; x += 'c'; x = x[1:3] + x[-1]",
    "x = f'{7:>10} {\"name\"} {3.5:.2f}'",
    "x = '%s is %d' % ('name', 7)",
    "x = '{} is {:>8}'.format('name', 7)",
    "x = [1, 2, 3] + [4]; x += [5]; x[0] += 1; x.sort(); x.extend((6, 7)); x.pop(0)",
    "x = {'a': 1, 'b': [1, 2]} == {'a': 1, 'b': [1, 2]}",
    "x = {(1, 2): 3}[1, 2]",
    "x = sorted({'b': 1, 'a': 2}.items(), key=lambda pair: pair[1])",
    "x = sum(range(10)) + max([1, 2]) + min(3, 4) + len(list(zip([1], [2])))",
    "x = ','.join(str(i) for i in range(5)).split(',')",
    "x = json.loads(json.dumps({'a': [1, 2, {'b': 'text'}]}))",
    "x = hashlib.sha256(b'some bytes').hexdigest()",
    "x = re.match('[a-z]+', 'text').group()",
    "x = int.from_bytes((77).to_bytes(8, 'big'), 'big')",
    "x = 'Text'.lower().strip().replace('t', 'T').encode()",
    "x = decimal.Decimal('1.10') * 3 / 7",
    "x = struct.unpack('>IH', struct.pack('>IH', 1, 2))",
    "x, *y = [1, 2, 3]",
    "x = dict(a=1) | {'b': 2}",
    "x = repr([1, 'a', (2, 3)])",
    "x = collections.Counter('mississippi').most_common(2)",
]


@pytest.mark.parametrize("line", EVERYDAY)
def test_everyday_line_costs_what_its_text_costs(world, free_world, line):
    """Small operands are free: the cycles are those of a table whose prices for size are all 0."""
    assert run(world, line) == run(free_world, line)


SMALL = st.integers(-(2**120), 2**120)
OPERATORS = st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<", "==", "!="])


@settings(max_examples=25, deadline=None)
@given(operands=st.tuples(SMALL, SMALL, st.text(max_size=16)), operator=OPERATORS)
def test_small_operands_cost_what_the_text_costs(engine, free_engine, operands, operator):
    """Whatever the operands are: amounts of money, heights, short texts."""
    lines = (
        f"x, y, t = {operands!r}",
        f"try: x {operator} y",
        "except ZeroDivisionError: pass",
        "z = t + t[1:] + str(len(t)); z += f'{t}{x}'; t in z, t == z, t.upper(), [t, x] == [z, y], {t: x}[t]",
    )
    assert run(World(engine=engine), *lines) == run(World(engine=free_engine), *lines)


GROWING = {
    "a * b": ("a = b = 3 ** {}", 3_000),
    "a + 'y'": ("a = 'x' * {}", 100_000),
    "a == b": ("a = [0] * {}; b = [0] * {}", 1_000),
    "a.upper()": ("a = 'x' * {}", 10_000),
    "sorted(a)": ("a = [0] * {}", 1_000),
    "sum(a)": ("a = [0] * {}", 1_000),
    "list(iter(a))": ("a = [0] * {}", 1_000),
    "json.dumps(a)": ("a = [0] * {}", 1_000),
    "hashlib.sha256(a)": ("a = b'x' * {}", 10_000),
}


@pytest.mark.parametrize("line", GROWING)
def test_charge_grows_with_the_size_and_is_the_same_for_the_same_sizes(world, line):
    """Whatever the values are, and however often."""
    prepared, size = GROWING[line]
    small, large = prepared.replace("{}", "3"), prepared.replace("{}", str(size))

    costs = [run(world, f"{setup}; {line}", cycles=10**12)[1] for setup in (small, large, large)]

    assert costs[0] < costs[1] == costs[2]
    other = large.replace("'x'", "'z'").replace("[0]", "[9]").replace("b'x'", "b'z'")
    assert run(world, f"{other}; {line}", cycles=10**12)[1] == costs[1]


def test_sums_of_floats_are_the_same_on_every_python(world):
    """Python 3.12 and later add them otherwise."""
    assert run(world, "assert sum([0.1] * 10) == 0.9999999999999999")[0] == "succeeded"


def test_in_place_operators_evaluate_their_target_once(world):
    """As the assignments that they replace do."""
    lines = (
        "calls = []",
        "def target(): calls.append(1); return box",
        "def place(): calls.append(2); return 0",
        "def value(): calls.append(3); return 5",
        "box = [1]",
        "target()[place()] += value()",
        "assert (box, calls) == ([6], [1, 2, 3])",
        "box = [1, 2, 3, 4]",
        "box[1:3] += [9]",
        "assert box == [1, 2, 3, 9, 4]",
        "class Box: count = 1",
        "Box.count *= 4",
        "assert Box.count == 4",
    )
    assert run(world, *lines)[0] == "succeeded"


def test_memory_of_many_large_results_is_counted_together(world):
    """No one of them is above the limit."""
    assert run(world, "for i in range(100): b'x' * 10 ** 6", cycles=10**12)[0] == "out_of_memory"
