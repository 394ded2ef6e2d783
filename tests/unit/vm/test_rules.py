"""The rules of actor code: what is refused, where, and with which words."""

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.vm.rules import NESTING_MAX, check_program

LIMIT = 131_072


def refusal(source, limit=LIMIT):
    with pytest.raises(Rejection) as caught:
        check_program(source, limit)
    return caught.value


REFUSED = [
    ("import os", 1, 1, "import", "import of os, which is not available to actors"),
    ("import json\nfrom time import time", 2, 1, "import", "import of time, which is not available to actors"),
    ("import json, random", 1, 1, "import", "import of random, which is not available to actors"),
    ("from cowboy_sdk._compiler import ast", 1, 1, "import", "import of cowboy_sdk._compiler"),
    ("import trailboss.vm", 1, 1, "import", "only trailboss.sdk of trailboss"),
    ("from trailboss import sdk", 1, 1, "import", "only trailboss.sdk of trailboss"),
    ("from trailboss.sdk.x import y", 1, 1, "import", "only trailboss.sdk of trailboss"),
    ("import trailbosses", 1, 1, "import", "import of trailbosses, which is not available to actors"),
    ("import json.decoder", 1, 1, "import", "import of json.decoder"),
    ("from . import other", 1, 1, "import", "a relative import: an actor is one module"),
    ("x = {1, 2}", 1, 5, "set", "a set has no"),
    ("x = {y for y in ()}", 1, 5, "set", "a set has no"),
    ("x = set()", 1, 5, "name", "set is not available to actors"),
    ("x = frozenset(())", 1, 5, "name", "frozenset is not available to actors"),
    ("def f(p):\n    return id(p)", 2, 12, "name", "id is not available to actors"),
    ("x = hash('a')", 1, 5, "name", "hash is not available to actors"),
    ("x = open('a')", 1, 5, "name", "open is not available to actors"),
    ("x = [input]", 1, 6, "name", "input is not available to actors"),
    ("eval('1')", 1, 1, "name", "eval is not available to actors"),
    ("exec('1')", 1, 1, "name", "exec is not available to actors"),
    ("compile('1', '', 'exec')", 1, 1, "name", "compile is not available to actors"),
    ("x = globals()", 1, 5, "name", "globals is not available to actors"),
    ("x = __import__('os')", 1, 5, "name", "__import__ is not available to actors"),
    ("breakpoint()", 1, 1, "name", "breakpoint is not available to actors"),
    ("x = breakpoint()", 1, 5, "name", "breakpoint is not available to actors"),
    ("x = 'é' or (lambda: 0).__globals__", 1, 12, "attribute", ".__globals__ leads out of the program"),
    ("x = ().__class__.__base__.__subclasses__()", 1, 5, "attribute", ".__subclasses__ leads out of the program"),
    ("x = len.__self__", 1, 5, "attribute", ".__self__ leads out of the program"),
    ("def f(e):\n    return e.tb_frame", 2, 12, "attribute", ".tb_frame leads out of the program"),
    ("class A:\n    def __del__(self):\n        pass", 2, 5, "finalizer", "__del__ runs"),
    ("try:\n    pass\nexcept* ValueError:\n    pass", 1, 1, "except-star", "except* is not available to actors"),
    ("def f():\n    try:\n        pass\n    finally:\n        return 1", 5, 9, "finally", "return in finally"),
    ("while 1:\n    try:\n        pass\n    finally:\n        break", 5, 9, "finally", "break in finally"),
    (
        "while 1:\n    try:\n        pass\n    finally:\n        if 1:\n            continue",
        6,
        13,
        "finally",
        "continue in",
    ),
    ("async def f():\n    pass", 1, 1, "async", "async def f: only a continuation of the SDK is asynchronous"),
    ("f = lambda: (yield 1)", 1, 14, "generator", "yield in a lambda"),
    ("_vm_charge = print", 1, 1, "reserved-name", "_vm_charge: names that begin with _vm_"),
    ("def f(_vm_here):\n    pass", 1, 7, "reserved-name", "_vm_here: names that begin with _vm_"),
    ("from json import dumps as _vm_own", 1, 18, "reserved-name", "_vm_own: names that begin with _vm_"),
    ("from cowboy_sdk.codec import __builtins__", 1, 1, "attribute", ".__builtins__ leads out of the program"),
    ("from json import dumps, __dict__ as names", 1, 1, "attribute", ".__dict__ leads out of the program"),
    ("match f:\n    case object(__globals__=g): pass", 2, 10, "attribute", ".__globals__ leads out of the program"),
    ("match f:\n    case object(__setattr__=s): pass", 2, 10, "attribute", ".__setattr__ leads out of the program"),
    ("match f:\n    case str(__hash__=h): pass", 2, 10, "attribute", ".__hash__ leads out of the program"),
    ("x = A.__abstractmethods__", 1, 5, "attribute", ".__abstractmethods__ leads out of the program or differs"),
]


@pytest.mark.parametrize(("source", "line", "column", "rule", "words"), REFUSED)
def test_source_is_refused_with_its_place_when_it_breaks_a_rule(source, line, column, rule, words):
    """Every rule names line, column and itself."""
    refused = refusal(source)

    assert refused.reason.code == 1101
    assert refused.context == {"line": line, "column": column, "rule": rule, "further": 0}
    assert refused.what.startswith(f"line {line}, column {column}: ")
    assert words in refused.what


ALLOWED = [
    "from cowboy_sdk import actor, timer\nfrom cowboy_sdk.runner import llm\nimport pvm_host",
    "import collections.abc, dataclasses, decimal, enum, functools, hashlib, hmac, itertools, json, math, operator, re",
    "import trailboss.sdk\nimport trailboss.sdk as lane\nfrom trailboss.sdk import PriorityTier",
    "id = 5\nx = id",
    "from json import dumps as __dict__",
    "match p:\n    case Point(x=1, format=f): pass",
    "def f(input, hash=None):\n    return [input, hash]",
    "class A:\n    def __hash__(self): return 1\n    def __setattr__(self, n, v): object.__setattr__(self, n, v)",
    "def f():\n    try:\n        pass\n    finally:\n        for x in ():\n            break",
    "def f():\n    try:\n        pass\n    finally:\n        def g():\n            return 1",
    "@runner.continuation\nasync def f(m):\n    x = await runner.llm(m)",
    "@actor.continuation(timeout_blocks=5)\nasync def f(m):\n    x = await other.ask(m)",
    "print('to nobody')\nx = 1.5\nassert x",
    'x = f"{1:>{2}} {3!r} \\n {[4]}" \'"\'',
]


@pytest.mark.parametrize("source", ALLOWED)
def test_source_is_accepted_when_it_keeps_the_rules(source):
    """What looks like a forbidden thing, and is not one, passes."""
    assert check_program(source, LIMIT).body


def test_the_first_of_several_findings_is_told_when_there_are_more():
    """The refusal names the first place and how many follow."""
    refused = refusal("x = 1\ny = {1}\nimport os\nz = id(y)\n")

    assert refused.context == {"line": 2, "column": 5, "rule": "set", "further": 2}


SYNTAX = [
    ("def f(:\n    pass", 1),
    ("x = 1\nreturn x", 2),
    ("x = 1\nx = (", 2),
    ("def f():\n    nonlocal y", 2),
    ("\x00", 1),
    ("type X = int", 1),
    ("def f[T](x: T) -> T:\n    return x", 1),
    ("x = f'{a['b']}'", 1),
    ("x = 1\ny = f'{\"\\n\".join(x)}'", 2),
    ("x = f'{1:{2:{3}}}'", 1),
    ("x = 1\nawait x", 2),
]


@pytest.mark.parametrize(("source", "line"), SYNTAX)
def test_source_is_refused_when_it_is_no_python_of_the_one_grammar(source, line):
    """Syntax of later versions is refused on every version, as broken syntax is."""
    refused = refusal(source)

    assert refused.reason.code == 1213
    assert refused.context["rule"] == "syntax"
    assert refused.context["line"] == line
    assert refused.context["column"] >= 1


def test_source_is_refused_when_it_is_one_byte_too_long():
    """The limit counts UTF-8 bytes."""
    assert check_program("x='é'", 6) is not None

    refused = refusal("x='é'", 5)

    assert refused.what == "source has 6 bytes, the limit is 5"


INSTEAD = [
    ("import random", "take unpredictable values from pvm_host.randomness(domain), or import one of pvm_host, "),
    ("from time import time", "use the block's time, pvm_host.block_height() or "),
    ("import urllib.request", "send the facts in a transaction, "),
    ("import numpy", "import one of pvm_host, cowboy_sdk, trailboss.sdk, abc, base64, "),
]


@pytest.mark.parametrize(("source", "fix"), INSTEAD)
def test_refused_import_says_what_there_is_instead(source, fix):
    """A substitute where there is one, and the modules that there are."""
    said = refusal(source).error().fix

    assert said.startswith(fix)
    assert all(module in said for module in ("json", "hashlib", "typing"))


def test_source_is_refused_when_it_nests_deeper_than_compilers_agree_on():
    """A chain of operators is a deep tree: how deep one may go differs between interpreters."""
    assert check_program("x = " + "-" * 50 + "1", LIMIT)

    refused = refusal("x = " + "-" * NESTING_MAX + "1")

    assert refused.what.endswith(f"nested deeper than {NESTING_MAX} levels")
    assert refusal("x = " + "+".join("1" * 20_000)).reason.code == 1213


TOO_MUCH = {
    "tokens": ("x\n" * 25_001, "more than 50000 names, numbers, texts"),
    "fields": ("x = f'" + "{y}" * 2_400 + "'", "more than 50000 names, numbers, texts"),
    "functions": ("lambda: x\n" * 2_001, "2001 functions, classes, lambdas, comprehensions and managers"),
    "managers": ("with x, y: z\n" * 1_001, "2002 functions, classes, lambdas, comprehensions and managers"),
    "comprehensions": ("x = " + "[" * 17 + "1" + " for y in z]" * 17, "comprehensions nested deeper than 16 levels"),
    "ways out": (
        "def f(x):\n try:\n" + "  if x: return\n" * 100 + " finally:\n" + "  x\n" * 100,
        "copies what stands after finally",
    ),
    "finally within finally": (
        "".join(f"{' ' * level}try: x\n{' ' * level}finally:\n" for level in range(14)) + " " * 14 + "x",
        "copies what stands after finally",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_source_is_refused_when_a_compiler_would_work_on_more_than_its_length_shows(name):
    source, words = TOO_MUCH[name]
    refused = refusal(source)
    assert refused.reason.code == 1213
    assert words in refused.what


def test_source_is_accepted_when_it_has_as_much_as_it_may():
    """One level, one field, one way out less than what is refused."""
    for source in (
        "x\n" * 24_999,
        "x = f'" + "{y}" * 2_200 + "'",
        "lambda: x\n" * 2_000,
        "x = " + "[" * 16 + "1" + " for y in z]" * 16,
        "def f(x):\n try:\n" + "  if x: return\n" * 10 + " finally:\n" + "  x\n" * 100,
    ):
        assert check_program(source, LIMIT).body


@pytest.mark.parametrize("line", ["\\'''\n", "\\'x", '"', "'''x\n", "\\"])
def test_source_is_refused_at_once_when_quotes_stay_open(line):
    """Nothing is read beyond a quote that nothing closes, however often one follows."""
    assert refusal(line * (60_001 // len(line))).context["rule"] == "syntax"
