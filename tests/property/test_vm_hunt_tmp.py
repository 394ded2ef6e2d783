"""Laws of the instrumentation: it changes what a program costs, never what it does."""

import ast

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.world import World
from trailboss.codec.canonical import encode_canonical

NAMES = ["a", "b", "c"]
WORLD = World()


def expressions(depth):
    plain = st.one_of(st.sampled_from(NAMES), st.integers(-9, 9).map(str))
    if depth == 0:
        return plain
    inner = expressions(depth - 1)
    return st.one_of(
        plain,
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "%", "//", "<", "==", "and", "or"]), inner
        ),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("sum([{} for a in range({} % 4) if {}])".format, inner, inner, inner),
        st.builds("(lambda b: {})({})".format, inner, inner),
        st.builds("max([{}, {}], key=lambda c: c % 3)".format, inner, inner),
        st.builds("len(f'{{{}}}:{{{}!r:>4}}')".format, plain, plain),
        st.builds("next((c for c in [{}, {}] if c), {})".format, inner, inner, inner),
    )


def indented(lines):
    return ["    " + line for line in lines]


def blocks(depth):
    name, value = st.sampled_from(NAMES), expressions(2)
    simple = st.one_of(
        st.builds("{} = {}".format, name, value),
        st.builds("{} += {}".format, name, value),
        st.builds("assert {} != 5".format, value),
        st.builds("seen.append({})".format, value),
        st.builds("seen.append((c := {}) and c)".format, value),
        st.just("raise KeyError('k')"),
        st.just("raise ValueError"),
    ).map(lambda line: [line])
    if depth == 0:
        return simple
    body = st.lists(blocks(depth - 1), min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )
    compound = st.one_of(
        st.builds(lambda test, yes, no: [f"if {test}:", *indented(yes), "else:", *indented(no)], value, body, body),
        st.builds(
            lambda x, n, turn, end: [
                f"for {x} in range({n} % 5):",
                *indented([*turn, "if b > 50: break"]),
                "else:",
                *indented(end),
            ],
            name,
            value,
            body,
            body,
        ),
        st.builds(lambda turn: ["n = 3", "while n > 0:", *indented(["n -= 1", "if a == n: continue", *turn])], body),
        st.builds(
            lambda one, two, three, four: [
                "try:",
                *indented(one),
                "except KeyError as error:",
                *indented(two),
                "else:",
                *indented(three),
                "finally:",
                *indented(four),
            ],
            body,
            body,
            body,
            body,
        ),
        st.builds(lambda one, two: ["try:", *indented(one), "except:", *indented(two)], body, body),
        st.builds(lambda one: ["with Box() as box:", *indented(one)], body),
        st.builds(
            lambda one, give: [
                "def gen(a):",
                *indented([*one, f"yield {give}", "yield a"]),
                "for b in gen(1): seen.append(b)",
            ],
            body,
            value,
        ),
        st.builds(
            lambda what, one, two: [
                f"match {what}:",
                "    case 0 | 1:",
                *indented(indented(one)),
                "    case int() as a if a > 2:",
                *indented(indented(two)),
            ],
            value,
            body,
            body,
        ),
        st.builds(lambda one: ["class Inner:", "    a = 2", *indented(one)], body),
    )
    return st.one_of(simple, compound)


PREFACE = """
class Box:
    def __enter__(self):
        return 1
    def __exit__(self, kind, error, trace):
        return kind is KeyError
"""


def program(parts):
    body = [line for part in parts for line in part]
    lines = ["def go(p):", *indented(["a = b = c = n = 1", "seen = []", "try:", *indented(body), *ENDING])]
    return PREFACE + "\n".join(lines)


ENDING = ["except Exception as error:", "    seen.append(type(error).__name__)", "return [a, b, c, seen]"]


def plainly(source):
    space = {}
    exec(compile(ast.parse(source), "<plain>", "exec"), space)
    return encode_canonical(space["go"](b""))


@settings(max_examples=1200, deadline=None)
@given(st.lists(blocks(2), min_size=1, max_size=4).map(program))
def test_instrumented_program_does_what_the_plain_one_does(source):
    """Same answer, errors and all, as Python gives without us; and the same cost every time."""
    try:
        expected = plainly(source)
    # Numbers can outgrow the encoding, and names can be missing: then both have to say so.
    except Exception as error:  # noqa: BLE001
        expected = error
    outcome, meter = WORLD.call(source, "go")

    if isinstance(expected, bytes):
        assert outcome.error is None, outcome.error
        assert outcome.return_value == expected
    else:
        assert outcome.error is not None
    assert WORLD.call(source, "go")[1].cycles_used == meter.cycles_used


@settings(max_examples=600, deadline=None)
@given(st.lists(blocks(2), min_size=1, max_size=4).map(program), st.data())
def test_program_ends_at_any_limit_below_its_cost(source, data):
    """With one cycle less than it needs, or any number less, a program ends out of cycles, and at its cost it runs."""
    whole, meter = WORLD.call(source, "go")
    need = meter.cycles_used
    limit = data.draw(st.integers(0, need - 1))
    cut, cut_meter = WORLD.call(source, "go", cycles=limit)
    enough, enough_meter = WORLD.call(source, "go", cycles=need)

    assert cut.error.slug == "out_of_cycles"
    assert limit < cut_meter.cycles_used
    assert (enough, enough_meter.cycles_used) == (whole, need)
