"""A failure with as few steps as can be.

Hypothesis shrinks the choices behind the steps, hundreds of examples with a chain each. Here steps are left out, and
the numbers of those that every machine has are made small: some ten times fewer examples.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from trailboss.testing.corpus import MachineStep
from trailboss.testing.interference import Interference
from trailboss.testing.regression import Failure

ATTEMPTS_MAX: Final = 400  # replays of one reduction
PASSING: Final = Interference.pass_blocks.__name__
LEAST: Final = {"sender": 0, "amount": 0, "late": 0, "ahead": 0, "before": 0}
"""Least value of a number, where it is not 1."""


def can_replay(machine: Any) -> bool:
    """Return whether steps can be taken again by themselves: without bundles, initial rules and data drawn within."""
    state = machine.setup_state()
    drawn = (repr(each) for rule in state.rules for each in rule.arguments.values())
    return not (state.initializers or any(rule.targets for rule in state.rules) or "data()" in drawn)


def reduced(machine: Any, failure: Failure) -> Failure | None:
    """Return the same failure with fewer steps and smaller numbers; None if its steps do not fail when taken again."""
    smallest = found = _fails(machine, failure.steps, failure)
    left = iter(range(ATTEMPTS_MAX))
    while found is not None:
        smallest = found
        attempts = zip(_smaller(found), left, strict=False)
        found = next(filter(None, (_fails(machine, steps, failure) for steps, _ in attempts)), None)
    return smallest


def _fails(machine: Any, steps: list[MachineStep], failure: Failure) -> Failure | None:
    """Take steps on a machine of its own; return how they fail, if they fail in the same way."""
    __tracebackhide__ = True
    it = machine()
    with suppress(Exception):  # the machine has noted it
        it.replay(steps)
        it.teardown()
    found: Failure | None = it.failure
    if found is None or _kind_of(found) != _kind_of(failure):
        return None
    return found


def _kind_of(failure: Failure) -> tuple[type, str]:
    function = failure.function
    return type(failure.error), failure.steps[-1].rule if function is None else function.__name__


def _smaller(failure: Failure) -> Iterator[list[MachineStep]]:
    """Yield steps that may fail as well, the fewest first."""
    steps = failure.steps
    size = len(steps) // 2
    while size:
        # The last steps are those that matter, so the first are left out first.
        for first in range(0, len(steps) - size + 1, size):
            yield steps[:first] + steps[first + size :]
        size //= 2
    yield from _calmer(steps, failure.heights)
    for number, step in enumerate(steps):
        # What a strategy of the user's gives has bounds that are not known here.
        if hasattr(Interference, step.rule) or step.rule.startswith("call_"):
            for name, value in step.arguments.items():
                for less in _less(name, value):
                    changed = MachineStep(step.rule, {**step.arguments, name: less})
                    yield [*steps[:number], changed, *steps[number + 1 :]]


def _calmer(steps: list[MachineStep], heights: list[int]) -> Iterator[list[MachineStep]]:
    """Yield the steps with empty blocks in place of some of them, as many as those built."""
    size = len(steps)
    while size:
        for first in range(0, len(steps) - size + 1, size):
            blocks = heights[first + size] - heights[first]
            if blocks > 0 and (size > 1 or steps[first].rule != PASSING):
                yield [*steps[:first], MachineStep(PASSING, {"number": blocks}), *steps[first + size :]]
        size //= 2


def _less(name: str, value: object) -> Iterator[Any]:
    if isinstance(value, bool):
        yield from (False,) if value else ()
    elif isinstance(value, int):
        least = LEAST.get(name, 1)
        if value > least:
            # Less by all, a half, an eighth, a 64th: a bound is met in as many steps as it has digits.
            room = value - least
            yield from dict.fromkeys((least, least + room // 2, value - room // 8 - 1, value - room // 64 - 1))
