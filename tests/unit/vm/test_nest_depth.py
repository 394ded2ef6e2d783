"""How deep a program may nest: read from its tokens, before any parser has seen it."""

import ast
from pathlib import Path

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.vm import nest_depth, rules
from trailboss.vm.nest_depth import check_nesting
from trailboss.vm.rules import check_program

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 131_072


def blocks(count):
    return "".join(f"{' ' * depth}if x:\n" for depth in range(count)) + " " * count + "y"


SHAPES = {
    "brackets that mean nothing": lambda count: f"x = {'(' * count}1{')' * count}",
    "lists": lambda count: f"x = {'[' * count}{']' * count}",
    "calls": lambda count: f"x = {'f(' * count}{')' * count}",
    "mixed brackets": lambda count: f"x = {'[{1: (' * (count // 3 + 1)}2{')}]' * (count // 3 + 1)}",
    "unary operators": lambda count: f"x = {'-' * count}y",
    "not": lambda count: f"x = {'not ' * count}y",
    "attributes": lambda count: f"x = y{'.z' * count}",
    "subscripts": lambda count: f"x = y{'[0]' * count}",
    "calls of calls": lambda count: f"x = y{'()' * count}",
    "sums": lambda count: f"x = y{' + y' * count}",
    "products": lambda count: f"x = y{' * y' * count}",
    "powers": lambda count: f"x = y{' ** y' * count}",
    "lambdas": lambda count: f"x = {'lambda a, b=1: ' * count}y",
    "conditions": lambda count: f"x = {'a if b else ' * count}y",
    "blocks": blocks,
    "elif": lambda count: "if x: pass\n" + "elif x: pass\n" * count,
    "within a formatted string": lambda count: f"x = f'no {{{'(' * count}y{')' * count}}}'",
    "brackets below operators": lambda count: f"x = {'-(' * (count // 2 + 1)}y{')' * (count // 2 + 1)}",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_source_is_refused_before_it_is_parsed_when_it_nests_too_deep(monkeypatch, shape):
    """What a parser would say, or whether it would end at all, differs between builds; so none is asked."""
    monkeypatch.setattr(rules, "ast", None)
    for count in (101, 150, 1_000):
        with pytest.raises(Rejection) as caught:
            check_program(SHAPES[shape](count), 10**7)
        assert (caught.value.reason.code, caught.value.context["rule"]) == (1213, "syntax")
        assert caught.value.what.endswith("not Python 3.11: nested deeper than 100 levels")


@pytest.mark.parametrize("shape", SHAPES)
def test_source_is_accepted_when_it_nests_as_deep_as_it_may(shape):
    """A hundred levels of the tree hold this many of each shape."""
    assert check_program(SHAPES[shape](48), LIMIT).body


FLAT = {
    "terms": "x = " + " + ".join(["a * b"] * 60),
    "comparisons": "x = " + " and ".join(["-a.b < -c ** 2"] * 300),
    "arguments": "x = f(" + ", ".join(["-a[0].b(1)"] * 300) + ")",
    "statements": "-a; ~b; a.b.c\n" * 300,
    "lines": "x = [\n" + "    -a,\n" * 300 + "]\n",
    "text": "x = '((((((((((' * 300\ny = f'{1}" + "(" * 300 + "{{((('  # " + "(" * 300,
    "numbers": "x = " + " + ".join(["1.5e-7"] * 90),
    "keywords": "x = f(*b, **a)\n" * 200,
    "lambdas": "x = [" + "lambda a: -a, " * 300 + "]",
    "branches": "if a:\n    b\nelse:\n    c\n" * 300,
    "conditions": "x = [" + "a if b else c, " * 300 + "]",
    "slices": "x = " + "a[-1:-2:-3], " * 300,
}


@pytest.mark.parametrize("name", FLAT)
def test_source_is_accepted_when_it_is_long_and_not_deep(name):
    """Only what stands within one another is counted."""
    assert check_program(FLAT[name], LIMIT).body


def test_source_is_never_refused_for_its_tokens_when_its_tree_may_be_as_deep(monkeypatch):
    """Both limits lowered together, the tree of whatever is refused by its tokens is too deep as well."""
    monkeypatch.setattr(nest_depth, "NESTING_MAX", 8)
    refused = 0
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("examples/**/*.py"), *ROOT.glob("tests/unit/**/*.py")]):
        source = path.read_text(encoding="utf-8")
        try:
            check_nesting(source)
        except Rejection:
            refused += 1
            assert tree_depth(source) > 8, path
    assert refused > 10


def tree_depth(source):
    level, depth = [ast.parse(source)], 0
    while level := [below for node in level for below in ast.iter_child_nodes(node)]:
        depth += any(isinstance(node, ast.expr | ast.stmt) for node in level)
    return depth


def test_refusal_of_what_is_no_python_shows_the_line():
    """Line and column alone send a person to look."""
    with pytest.raises(Rejection) as caught:
        check_program("x = 1\n    def init(payload)\n        pass\n", LIMIT)

    assert caught.value.context["traceback"] == "line 2: def init(payload)"
    assert caught.value.error().fix == "correct the line"
