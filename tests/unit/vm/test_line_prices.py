"""Every charge that instrumentation writes for a block of statements is split among the lines of its statements."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.lives import ACTORS
from tests.golden.programs import PROGRAMS
from trailboss.metering.instrument import instrument
from trailboss.metering.syntax import PREFIX
from trailboss.params import load_params
from trailboss.vm.line_prices import line_prices
from trailboss.vm.rules import parse

PRICES = load_params("mainnet", {}).source
CONSTRUCTS = '''
"""A docstring."""
from __future__ import annotations
import json, re

def decorated(handler): return handler

@decorated
@decorated
def loops(payload, *, default=1):
    """A docstring."""
    total = 0; total += 1
    for each in [one for one in range(3) if one]:
        total += each
        total += 1
    else:
        total += 2
        total += 3
    while total > 3:
        total -= 1
        if total == 5: break
        elif total == 4:
            continue
        total -= 0
    return total

def gives(payload):
    first = yield 1
    second = yield from (each for each in "ab")
    return {key: value
            for key, value in [(first, second)]}

def documented():
    """Nothing but a docstring."""

class Account:
    """A docstring."""
    kind = "a"
    names: list = []

    def meets(self, payload):
        try:
            with open(payload) as file, file:
                text = file
                again = text
        except ValueError as error:
            raise KeyError from error
        except (TypeError, KeyError): pass
        else:
            text = None
            again = None
        finally:
            total = 1
            total = 2
        match payload:
            case [first, *_] if first:
                one = first
                two = first
            case {"a": 1} | Account(kind="a"):
                one = 2
            case _: pass
        short = lambda value: value + 1
        nested = [
            short(each)
            for each in range(3)
        ]
        def inner(): return nested
        return inner
'''
SOURCES = {
    **{path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(ACTORS).glob("*.py"))},
    **{name: source for name, (source, _) in PROGRAMS.items()},
    "constructs": CONSTRUCTS,
}


def charges(source: str) -> Iterator[tuple[int, int]]:
    """Yield line and cycles of each charge that stands as a statement, handlers and ``finally`` aside."""
    for node in ast.walk(instrument(parse(source), PRICES, guarded=True)):
        match node:
            case (
                ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=cycles), *_]))
                | ast.Assign(value=ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=cycles), *_]))
            ) if name in [PREFIX + each for each in ("charge", "turn", "enter", "begin")]:
                yield node.lineno, cycles


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_charge_of_a_block_is_split_among_its_lines(source: str) -> None:
    """No block is left to its first line, whatever construct it stands in; each split adds up to the charge."""
    table = line_prices(source, PRICES)
    found = [charge for charge in charges(source) if charge[0] > 0]
    assert found
    assert set(found) - set(table) == set()
    assert all(sum(part for _, part in split) == cycles for (_, cycles), split in table.items())
