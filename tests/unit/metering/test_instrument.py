"""What programs cost: the cost table, construct by construct."""

import pytest

SAME = [
    ("x = 1", "x = 100000"),
    ("x = f'{1}a{2}'", "x = f'{1}{2}b'"),
    ("x = 1 # no comment\n    y = 2", "x = (\n        1\n    )\n    y = 2"),
    ("if p:\n        x = 1\n    else:\n        x = 2", "if not_p:\n        x = 2\n    else:\n        x = 1"),
]


def cycles(world, body, payload=b""):
    outcome, meter = world.call(f"not_p = 0\ndef go(p):\n    {body}\n", "go", payload)
    assert outcome.error is None, outcome.error
    return meter.cycles_used


@pytest.mark.parametrize(("one", "other"), SAME)
def test_cost_is_the_same_when_only_values_and_layout_differ(world, one, other):
    """Cycles follow from the constructs alone."""
    assert cycles(world, one) == cycles(world, other)


def test_cost_of_a_small_program_is_the_sum_of_its_constructs(world):
    """Counted by hand: module, function, and one statement."""
    p = world.params.source
    module = p.assignment + p.name + p.constant + p.function
    statement = p.assignment + p.name + p.binary_operation + p.name + p.constant

    assert cycles(world, "x = p * 2") == module + p.function_entry + statement


def test_loop_costs_by_its_turns(world):
    """Each turn pays for itself, its target and its body; so does a comprehension's."""
    p = world.params.source
    turn = p.loop_turn + p.name

    def of(count, body):
        return cycles(world, body.format(count))

    for body, each in (
        ("for x in range({}):\n        pass", turn),
        ("for x in range({}):\n        y = x", turn + p.assignment + p.name + p.name),
        ("y = [x for x in range({})]", turn + p.name),
        ("y = [x for x in range({}) if x]", turn + p.name + p.name),
        ("y = dict((x, x) for x in range({}))", turn + p.tuple_display + p.name + p.name),
        ("n = {}\n    while n:\n        n -= 1", p.loop_turn + p.name + p.augmented_assignment + p.name + p.constant),
    ):
        assert of(11, body) - of(1, body) == 10 * each


def test_branches_cost_what_is_taken(world):
    """The branch that is not taken is free; conditional expressions are charged in full."""
    long = "if {}:\n        x = [1, 2, 3, 4, 5, 6, 7, 8]"

    assert cycles(world, long.format("1")) - cycles(world, long.format("0")) == 8 + 2 + 1 + 1
    assert cycles(world, "x = [1, 2] if 1 else 3") == cycles(world, "x = [1, 2] if 0 else 3")


def test_block_is_charged_before_it_runs(world):
    """A statement that fails leaves its whole block paid."""
    p = world.params.source
    source = "def go(p):\n    1 // 0\n    x = 1\n"
    _, failed = world.call(source, "go")
    _, ran = world.call(source.replace("// 0", "// 1"), "go")

    assert failed.cycles_used == ran.cycles_used
    assert ran.cycles_used == p.function + p.function_entry + p.binary_operation + 2 * p.constant + p.assignment + 2
