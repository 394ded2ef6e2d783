"""Everyday lines cost their cycles in the sandbox, never their fuel: so a program costs the same on both engines."""

import pytest

from tests.golden.lines import programs, rates
from tests.golden.world import World
from trailboss.params import load_params
from trailboss.sandbox.engine import FUEL_PER_CYCLE

REPETITIONS = 5_000
ROOM = 1.15
"""How much more fuel a cycle buys at least than any of these lines uses."""


def test_no_everyday_line_comes_near_the_fuel_that_its_cycles_buy(world):
    found = rates(world)
    assert len(found) > 70
    assert {name: rate for name, rate in found.items() if rate * ROOM > FUEL_PER_CYCLE} == {}


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in programs(REPETITIONS)])
def test_frame_of_one_everyday_line_costs_the_same_on_both_engines(world, source):
    """Within the limits of a transaction."""
    most = load_params("mainnet").limits.block_cycles_max
    (first, native), (second, sandboxed) = (each.call(source, "go", cycles=most) for each in (World(), world))
    assert (second, sandboxed.charged()) == (first, native.charged())
    assert first.error is None
    assert native.cycles_used > REPETITIONS
