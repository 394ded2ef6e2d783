"""What `print` gives: the text, made without running any code of the program. Decision: D-89."""

import pytest

from trailboss.model.events import CHARACTERS_MAX, PrintedLine
from trailboss.vm.printed_lines import LINES_MAX, Printing

MADE = """
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

Point = namedtuple("Point", "x y")


class Color(Enum):
    RED = 1


class Name(str):
    def __str__(self):
        raise ValueError("asked")


@dataclass
class Position:
    units: int
    name: bytes


class Secretive:
    def __init__(self):
        self.part = [1]

    def __getattribute__(self, name):
        pvm_host.set_state(b"asked", b"1")

    __repr__ = __str__ = __format__ = __len__ = __iter__ = __getattribute__
    __class__ = property(__getattribute__)


def nested(depth):
    return [nested(depth - 1)] if depth else []


def go(p):
    print(EXPRESSION)
"""
SHOWN = [
    ("", "\n"),
    ("'text', b'octets', 5, 1.5, True, None, ...", "text b'octets' 5 1.5 True None Ellipsis\n"),
    ("1, 'a', sep='', end='!'", "1a!"),
    ("1, 2, sep=None, end=None, file=5, flush=True", "1 2\n"),
    ("[1, 'a', (2,), (), {'k': b'v'}, {}]", "[1, 'a', (2,), (), {'k': b'v'}, {}]\n"),
    ("ValueError('no'), ValueError(), ValueError(1, 'b'), KeyError('k'), [OSError('x')]",
     "no  (1, 'b') 'k' [OSError('x')]\n"),
    ("Decimal('1.50'), [Decimal('1.50')], range(3), 2**40", "1.50 [Decimal('1.50')] range(0, 3) 1099511627776\n"),
    ("2**10**5", "<an integer of 100001 bits>\n"),
    ("Point(1, [2]), Color.RED, Position(1, b'n')", "Point((1, [2])) Color.RED Position(units=1, name=b'n')\n"),
    ("Name('n'), [Name('n')]", "n ['n']\n"),
    ("deque([1]), OrderedDict(a=1), Counter('aa'), defaultdict(int)",
     "deque([1]) OrderedDict({'a': 1}) Counter({'a': 2}) defaultdict({})\n"),
    ("go, len, Position, [].append, Position(1, b'').__init__, pvm_host, object(), (i for i in [])",
     "<function go> <function len> <class Position> <function append> <method __init__> <module pvm_host> <object> "
     "<generator>\n"),
    ("Secretive(), [Secretive()]", "Secretive(part=[1]) [Secretive(part=[1])]\n"),
    ("nested(20)", "[[[[[[[[…]]]]]]]]\n"),
    (r"'\x1b[31m\x9b\ud800\r\t é\nend'", "\\x1b[31m\\x9b\\ud800\\r\t é\nend\n"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "text"), SHOWN)
def test_print_shows_values_and_asks_no_code_of_the_program(world, expression, text):
    """As Python shows plain values; objects by class and attributes."""
    outcome, _ = world.call(MADE.replace("EXPRESSION", expression), "go")

    assert outcome.error is None, outcome.error
    assert world.printed == [text]
    assert world.slots == {}


@pytest.mark.parametrize("value", ["'x' * 10**6", "b'x' * 10**6", "[0] * 10**6", "{i: i for i in range(5000)}", "5"])
def test_print_costs_the_same_whatever_is_printed(world, value):
    """The call is paid for, not the text, and no more text is made than is kept."""
    costs = [
        world.call(f"def go(p):\n    x = {value}\n    {line}\n", "go")[1].cycles_used
        for line in ("print(x)", "print(p)")
    ]

    assert costs[0] == costs[1]
    assert len(world.printed[0]) < 2 * CHARACTERS_MAX


def test_lines_go_on_until_they_are_ended_or_another_handler_prints():
    """So a line that is printed in pieces is one line."""
    printing = Printing()
    for handler, text in (
        ("a", "one"),
        ("a", " two\n"),
        ("a", "\nthree"),
        ("b", "four\nfi"),
        ("b", "ve"),
        ("a", "six"),
    ):
        printing.write(b"actor", handler, text)

    lines = [(line.handler, line.text) for line in printing.lines()]
    assert lines == [("a", "one two"), ("a", ""), ("a", "three"), ("b", "four"), ("b", "five"), ("a", "six")]


@pytest.mark.parametrize("text", ["x" * 5 * CHARACTERS_MAX, "\n" * 2 * LINES_MAX, "long line\n" * CHARACTERS_MAX])
def test_last_line_says_so_when_not_all_is_kept(text):
    """Lines and characters are bounded, and what is cut is not cut in silence."""
    printing = Printing()
    for start in range(0, len(text), 1_000):
        printing.write(b"actor", "a", text[start : start + 1_000])
    *kept, last = printing.lines()

    assert len(kept) <= LINES_MAX
    assert sum(len(line.text) for line in kept) <= CHARACTERS_MAX
    assert last == PrintedLine(
        b"actor", "a", "(more is printed and not kept: 100 lines and 8,192 characters are the most)"
    )
