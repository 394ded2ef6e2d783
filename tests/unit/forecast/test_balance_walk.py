"""A purse is walked to the same end as fire by fire, only faster."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from trailboss.forecast.runway import BalanceWalk, Loop, walk_balance
from trailboss.primitives.units import U64_MAX


@st.composite
def loops(draw: st.DrawFn) -> Loop:
    """Return fires that cost something, at any rate from several a block to one in many."""
    reserve = draw(st.integers(1, 60))
    step = draw(st.none() | st.fractions(min_value=Fraction(1, 3), max_value=8, max_denominator=6))
    return Loop(draw(st.integers(1, 40)), step, reserve, draw(st.integers(1, reserve)))


def walk_slowly(loops: list[Loop], balance: int, *, in_turn: bool) -> BalanceWalk:
    """Go through all heights, and through all fires of each."""
    fires, left = 0, balance
    numbers = [0] * len(loops)
    for height in range(1_100):
        held = 0
        for index, loop in enumerate(loops):
            while loop.step is not None or numbers[index] == 0:
                if loop.first + int(numbers[index] * (loop.step or 0)) != height:
                    break
                if left - held < loop.reserve:
                    return BalanceWalk(fires, balance - left, height, loop.reserve, left - held)
                fires, left, numbers[index] = fires + 1, left - loop.cost, numbers[index] + 1
                held += 0 if in_turn else loop.reserve - loop.cost
    return BalanceWalk(fires, balance - left)


@given(st.lists(loops(), max_size=5), st.integers(0, 120), st.booleans())
def test_walk_equals_the_slow_one_when_fires_come_at_any_rate(found: list[Loop], balance: int, in_turn: bool) -> None:
    """Same fires, same money, same block, same lack."""
    assert walk_balance(found, balance, in_turn=in_turn) == walk_slowly(found, balance, in_turn=in_turn)


def test_walk_counts_and_does_not_step_when_a_purse_is_deep() -> None:
    """10¹⁸ fires of cost 1, and a reserve of 10: the last that starts finds 10, and leaves 9."""
    walk = walk_balance([Loop(7, Fraction(10), 10, 1)], 10**18 + 9, in_turn=True)
    assert walk == BalanceWalk(10**18, 10**18, 7 + 10 * 10**18, 10, 9)


def test_fires_are_all_paid_when_none_follows() -> None:
    """What fires once costs once, however long one waits."""
    once = [Loop(5, None, 8, 3), Loop(U64_MAX, None, 8, 3)]
    assert walk_balance(once, 11, in_turn=False) == BalanceWalk(2, 6)
    assert walk_balance(once, 10, in_turn=True) == BalanceWalk(1, 3, U64_MAX, 8, 7)


def test_purse_is_dry_at_once_when_it_holds_less_than_the_first_reserve() -> None:
    """Also an empty one; without fires even that never runs dry."""
    assert walk_balance([Loop(3, Fraction(2), 8, 3)], 7, in_turn=True) == BalanceWalk(0, 0, 3, 8, 7)
    assert walk_balance([], 0, in_turn=False) == BalanceWalk(0, 0)


def test_reserves_of_one_block_are_held_together_when_none_is_settled_before_the_next_is_charged() -> None:
    """Two fires of reserve 10 and cost 1 in each block: 20 are needed at once under FIFO, 11 in turn."""
    pair = [Loop(1, Fraction(1), 10, 1), Loop(1, Fraction(1), 10, 1)]
    assert walk_balance(pair, 20, in_turn=False) == BalanceWalk(3, 3, 2, 10, 8)
    assert walk_balance(pair, 20, in_turn=True) == BalanceWalk(11, 11, 6, 10, 9)
