"""The guest's built-in instruments: for every kind and size of operand they do and cost what the Python ones do."""

import pytest

from tests.golden.world import World

VALUES = """0 1 -1 22 63 64 65 True None 1.5 -0.0 float("nan") "" "k" "a"*64 "a"*65 "b"*336 "b"*337 b"" b"x" b"x"*64
    b"x"*65 [] [1]*16 [1]*17 () (1,)*17 {} {"k":1} {"k":1}.keys() range(3) bytearray(b"x") Own(3) Own("k") Text("k")
    Number(7) Posing()"""
NESTED = """[1,(2,"k"),{"k":[1]}] {(1,2):(3,)} {"k":{"l":{}}} ((((1,),),),) [1]*32 [1]*33 [True,1]*9 [None,1.5]*9
    [None,1]*9 [True]*17 ["k"]*40 [b"k",b"l"]*9 ["k",b"k"]*9 ["k"*65]*17 [2**119]*17 [2**120]*17 [2**128]*17 [2**450]
    [2**480] [[1]*17] [(1,2)]*9 [(1,2)]*6 dict.fromkeys(range(8)) dict.fromkeys(range(9)) dict.fromkeys(range(40))
    list(zip(range(40),"k"*40)) [0]*1024 [0]*1025 [(0,)]*600 Point(1,(2,3)) Point([1]*20,2) Slotted(1) [Point(1,2)]*9
    Nothing() [Nothing()] Child(1,2) Watched(1) Decimal("1.5") deque([1]) Counter("k") OrderedDict(k=1) UserList([1])
    memoryview(b"k") {"k":1}.values() {"k":1}.items() 1j Color.RED Pair(1,2)"""
WIDE = """3 -1 0 2**119 2**120 2**128 2**149 -2**150 2**255-19 2**450 -2**479 2**480 2**900 2**959 2**960 2**1000 True
    1.5 "k" None Number(7)"""
TEMPLATES = r""""" "k" "%s" "%d%%" "%5d" "%64d" "%65d" "%.3f" "%s\x20%s" "%s"*8 "%-9s|" "%(k)s" "{}" "{:5}" "{:64}"
    "{:65}" "{}\x20{}" "{}"*9 "\u00e9%s" "\u0663%s" "\ud800%s" "%s"+"x"*62 "%s"+"x"*63 b"%s" b"%5d" b"%65d"
    b"\xe9%d" "7"*3 Text("%s")"""
NESTED_TEMPLATES = """"%*d" "{:{}}" "{0:.{1}}" b"%*d" "*" """
SHOWN = """() 1 2**89 2**90 -2**100 2**128 None True 1.5 "k" "k"*32 "k"*33 "k"*64 "k"*65 b"k" (1,) (1,2) ("k","k"*30)
    ("k"*32,"k") ("k"*33,"k") (70,1) {"k":1} {"k":"k"*70} [1]*16 [1]*17 (Nothing(),) Nothing() (Point(1,2),2)
    Point(1,2) ((1,2),3) ("k",)*9 Posing()"""
INTEGERS = "2**29 2**30 -2**30 2**59 2**119 2**120 -2**120 2**127 2**128 -2**128"
SHIFTED = "0 1 -1 5 2**30 -2**30 2**119 2**120 2**128 True"
CLASSES = """
class Own:
    def __init__(self, held):
        self.held = held
    def __eq__(self, other):
        return self.held == other
    def __hash__(self):
        return 5
    def __add__(self, other):
        return "own"
    def __len__(self):
        return 70
    def __contains__(self, item):
        return True
    def __getitem__(self, key):
        return (10, 20, 30)[key]
class Meta(type):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 5
class Posing(metaclass=Meta):
    def __len__(self):
        return 1
    def __iter__(self):
        return iter([1] * 300)
    def __getitem__(self, key):
        return (10, 20, 30)[key]
class Text(str):
    pass
class Number(int):
    def __add__(self, other):
        return "number"
"""
LIBRARY = """
import dataclasses
import enum
from collections import Counter, OrderedDict, UserList, deque, namedtuple
from decimal import Decimal
@dataclasses.dataclass
class Point:
    x: object
    y: object
@dataclasses.dataclass
class Child(Point):
    pass
@dataclasses.dataclass(slots=True)
class Slotted:
    x: object
@dataclasses.dataclass
class Watched:
    x: object
    def __getattribute__(self, name):
        seen.append(name)
        return {"k": 1}
class Nothing:
    pass
class Color(enum.Enum):
    RED = 1
Pair = namedtuple("Pair", "x y")
seen = []
"""
OPERATORS = "+ - * // / % & | ^ < <= == != > >= in"
EXPRESSIONS = """a not in b; a[b]; [a, b][0] and {a: b}; {b: 1}.get(a); bytes(a); str(a); int(a); list(a); dict(a);
    tuple(); bytes(); int(); str(a, b); [*a]; a in {b: 1}; a in [b]; a in (b, a); a >> 3; 3 >> a; float(a);
    bytearray(a)"""
ROWS = """{(a, b): 1}; (a, b) == (b, a); (a,) * 16 == (b,) * 16; (a,) * 17 == (b,) * 17; ((a, b), b) == ((a, b), a);
    sorted([1, 2], key=lambda each: (a, b, each)); [a, b].sort(key=lambda each: (type(each).__name__, a));
    sorted([1] * 17, key=lambda each: (a, b)); sorted((a, b), key=lambda each: (a, each));
    min(a, b, key=lambda each: (a, b)); sorted([a, b], key=Own); codec.encode(a); codec.encode([a, b]);
    codec.encode({"l" * 70: b, "k": a}); Address(a)"""
STATEMENTS = "+= -= *= //= %= &= |= ^="
CYCLES = 10_000_000


def program(expression, values, characters=40, others=None):
    """Return an actor that evaluates an expression of ``a`` and ``b`` for every pair of values."""
    return f"""{CLASSES}{LIBRARY}
VALUES = [{", ".join(values.split())}]
OTHERS = [{", ".join((others or values).split())}]
def go(p):
    shown = []
    for a in VALUES:
        for b in OTHERS:
            try:
                shown.append(str({expression})[:{characters}])
            except Exception as error:
                shown.append(type(error).__name__)
    return [shown, len(seen)]
"""


def assert_equal(world, source):
    native = World()
    (first, native_meter), (second, meter) = (each.call(source, "go", cycles=CYCLES) for each in (native, world))
    assert (first, native_meter.charged()) == (second, meter.charged())
    assert first.error is None


@pytest.mark.parametrize("operator", OPERATORS.split())
def test_operator_does_and_costs_what_it_does_natively(world, operator):
    assert_equal(world, program(f"a {operator} b", VALUES if operator == "*" else f"{VALUES} {INTEGERS}"))


@pytest.mark.parametrize("places", [-1, 0, 1, 63, 64, 65, 1_000])
def test_shift_does_and_costs_what_it_does_natively(world, places):
    assert_equal(world, program(f"a << {places}", SHIFTED))
    assert_equal(world, program("a << b", SHIFTED.replace("2**30", str(places)).partition(" 2**119")[0]))


@pytest.mark.parametrize("expression", [each.strip() for each in EXPRESSIONS.split(";")])
def test_expression_does_and_costs_what_it_does_natively(world, expression):
    # Of an integer these two make so many bytes.
    is_filled = expression in ("bytes(a)", "bytearray(a)")
    assert_equal(world, program(expression, VALUES if is_filled else f"{VALUES} {INTEGERS}"))


@pytest.mark.parametrize("expression", [each.strip() for each in ROWS.split(";")])
def test_row_and_sdk_cost_the_cycles_that_they_cost_natively(world, monkeypatch, expression):
    """Of fuel C code takes more here, which shows and compares values."""
    monkeypatch.setattr("trailboss.sandbox.engine.FUEL_PER_CYCLE", 10**6)
    source = program(expression, f"{VALUES} {INTEGERS} b'x'*20 'x'*128", characters=16)
    assert_equal(world, f"from cowboy_sdk import codec\nfrom cowboy_sdk.types import Address\n{source}")


@pytest.mark.parametrize("statement", STATEMENTS.split())
def test_statement_does_and_costs_what_it_does_natively(world, statement):
    # Containers that grow with each pair would use fuel above their cycles.
    values = " ".join(each for each in VALUES.split() if not each.startswith(("[", "bytearray")))
    source = program("changed(a, b)", values)
    assert_equal(world, source + f"def changed(a, b):\n    a {statement} b\n    return a\n")


@pytest.mark.parametrize("expression", ["a == b", "a < b", "a in (b,)", "{a: 1}", "b in [a]", "[a] == [b]"])
def test_walk_through_a_value_does_and_costs_what_it_does_natively(world, monkeypatch, expression):
    """Of fuel a comparison by the program's own code, or an error for each pair, takes more here."""
    monkeypatch.setattr("trailboss.sandbox.engine.FUEL_PER_CYCLE", 10**6)
    assert_equal(
        world, program(expression, NESTED, others=f"{NESTED} 1 'k' b'k' None 1.5 2**479 2**480 Own(3) Text('k')")
    )


@pytest.mark.parametrize("operator", OPERATORS.replace("> >= in", ">>").split())
def test_wide_integers_cost_what_they_cost_natively(world, operator):
    # Of text so many copies would not fit a frame.
    values = " ".join(each for each in WIDE.split() if operator != "*" or '"' not in each)
    others = "3 -7 0 2**20 True 1.5" if operator == ">>" else values
    assert_equal(world, program(f"a {operator} b", values, others=others))


@pytest.mark.parametrize("expression", ["a % b", "a // b", "a.format(b)", "a.format(b, b)", "a.format(*b)"])
def test_template_does_and_costs_what_it_does_natively(world, monkeypatch, expression):
    monkeypatch.setattr("trailboss.sandbox.engine.FUEL_PER_CYCLE", 10**6)
    assert_equal(world, program(f"ascii({expression})", TEMPLATES, characters=100, others=SHOWN))
    values = "1 9 70 -70 (9,1) (70,1) (1,70) (9,9) 'k' ('k',9) {'k':9} [9] True"
    assert_equal(world, program(f"ascii({expression})", NESTED_TEMPLATES, characters=100, others=values))
