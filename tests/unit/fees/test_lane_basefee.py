"""The lane basefee, worked by hand: the lane offers 2,000,000 cycles and aims at 1,000,000."""

from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.fees import BasefeeRule, next_basefee

LANE = 2_000_000
CLIP, SCALE = 1, 8
FLOOR = 1_000
CEILING = 10**24


def market(alpha: int, *, minimum: int = FLOOR) -> BasefeeRule:
    """Return the lane's market under one of the two rules."""
    return BasefeeRule(
        target=LANE // 2, alpha=alpha, max_change_denominator=8, minimum=minimum, maximum=CEILING, least_rise=1
    )


def after(basefee: int, uses: Iterable[int], rule: BasefeeRule) -> int:
    """Return the basefee after blocks whose fires used so many cycles."""
    for used in uses:
        basefee = next_basefee(basefee, used, rule)
    return basefee


@pytest.mark.spec("L-11", "L-12")
@pytest.mark.parametrize(
    ("used", "clipped", "scaled"),
    [
        (0, 70_000, 70_000),
        (500_000, 70_000, 75_000),
        (875_000, 70_000, 78_750),
        (875_001, 70_001, 78_751),
        (950_000, 76_000, 79_500),
        (1_000_000, 80_000, 80_000),
        (1_050_000, 84_000, 80_500),
        (1_124_999, 89_999, 81_249),
        (1_125_000, 90_000, 81_250),
        (1_500_000, 90_000, 85_000),
        (2_000_000, 90_000, 90_000),
    ],
)
def test_lane_basefee_saturates_early_when_it_is_clipped_and_late_when_it_is_scaled(
    used: int, clipped: int, scaled: int
) -> None:
    """Of 80,000, an eighth is 10,000.

    At 950,000 cycles the lane is 5 % off its target: as written that is 4,000, as EIP-1559 an eighth of it, 500. As
    written the full eighth is reached 12.5 % off the target, which is 43.75 % and 56.25 % of the lane; one cycle nearer
    to the target the step is 80,000 × 124,999 ÷ 1,000,000 = 9,999. As EIP-1559 it is reached when the lane is empty or
    full.
    """
    assert next_basefee(80_000, used, market(CLIP)) == clipped
    assert next_basefee(80_000, used, market(SCALE)) == scaled


@pytest.mark.spec("L-11")
@pytest.mark.parametrize(
    ("alpha", "busy", "quiet", "pair", "left"),
    [
        (CLIP, 2_000_000, 0, Fraction(63, 64), 2_070),
        (SCALE, 2_000_000, 0, Fraction(63, 64), 2_070),
        (CLIP, 1_200_000, 800_000, Fraction(63, 64), 2_070),
        (SCALE, 1_200_000, 800_000, Fraction(1_599, 1_600), 9_394),
        (CLIP, 1_100_000, 900_000, Fraction(99, 100), 3_660),
        (SCALE, 1_100_000, 900_000, Fraction(6_399, 6_400), 9_845),
    ],
)
def test_lane_basefee_drifts_down_when_busy_and_quiet_blocks_alternate_around_the_target(
    alpha: int, busy: int, quiet: int, pair: Fraction, left: int
) -> None:
    """A rise by s and a fall by s leave (1 + s)(1 − s) = 1 − s² of the basefee, so 200 blocks leave (1 − s²)¹⁰⁰.

    Full and empty in turn, both rules take the whole eighth: (63/64)¹⁰⁰ = 0.2070, although half of the lane is used.
    At 60 % and 40 % the clipped rule still takes it; the scaled one takes 20 % ÷ 8 = 1/40: (1,599/1,600)¹⁰⁰ = 0.9394.
    At 55 % and 45 % the clipped rule takes a tenth: 0.99¹⁰⁰ = 0.3660; the scaled one 1/80: (6,399/6,400)¹⁰⁰ = 0.9845.
    From 10¹², rounding each step moves the end by less than 200.
    """
    start = 10**12
    ended = after(start, [busy, quiet] * 100, market(alpha))
    assert abs(ended - start * pair**100) < 200
    assert round(Fraction(10_000 * ended, start)) == left


@pytest.mark.spec("L-11")
@pytest.mark.parametrize("alpha", [CLIP, SCALE])
def test_lane_basefee_swings_above_its_floor_when_full_and_empty_blocks_alternate_there(alpha: int) -> None:
    """From 1,000 a full block makes 1,125; an empty one would make 985, and the floor holds 1,000."""
    rule = market(alpha)
    assert next_basefee(1_000, LANE, rule) == 1_125
    assert next_basefee(1_125, 0, rule) == FLOOR
    assert after(1_000, [LANE, 0] * 100, rule) == FLOOR
    assert next_basefee(FLOOR, 0, rule) == FLOOR


@pytest.mark.spec("L-11")
@pytest.mark.parametrize("alpha", [CLIP, SCALE])
def test_lane_basefee_of_one_rises_by_whole_units_when_there_is_no_higher_floor(alpha: int) -> None:
    """An eighth of a fee below 8 rounds to nothing, so the step is 1: 1, 2, … 16; from there it is 2, to 18 and 20."""
    rule = market(alpha, minimum=1)
    basefees = [1]
    for _ in range(17):
        basefees.append(next_basefee(basefees[-1], LANE, rule))
    assert basefees == [*range(1, 17), 18, 20]
    # One cycle above the target is enough, and the target itself moves nothing.
    assert next_basefee(1, LANE // 2 + 1, rule) == 2
    assert next_basefee(1, LANE // 2, rule) == 1


@pytest.mark.spec("L-11", "L-12")
@given(
    basefee=st.integers(1, CEILING),
    used=st.integers(LANE // 2 + 1, LANE),
    alpha=st.sampled_from([CLIP, SCALE]),
)
def test_lane_basefee_never_sticks_when_the_lane_is_above_its_target(basefee: int, used: int, alpha: int) -> None:
    """It rises by at least 1 and at most an eighth, or by 1 where an eighth is less; only the ceiling stops it."""
    risen = next_basefee(basefee, used, market(alpha, minimum=1))
    assert min(basefee + 1, CEILING) <= risen <= min(basefee + max(basefee // 8, 1), CEILING)


@pytest.mark.spec("L-12")
@given(basefee=st.integers(FLOOR, CEILING), used=st.integers(0, LANE // 2), alpha=st.sampled_from([CLIP, SCALE]))
def test_lane_basefee_falls_by_an_eighth_at_most_when_the_lane_is_below_its_target(
    basefee: int, used: int, alpha: int
) -> None:
    """It never rises then, and never leaves the floor."""
    fallen = next_basefee(basefee, used, market(alpha))
    assert max(FLOOR, basefee - basefee // 8) <= fallen <= basefee


@pytest.mark.spec("L-19")
@pytest.mark.parametrize("alpha", [CLIP, SCALE])
def test_default_cap_lasts_five_full_blocks_when_the_basefee_starts_at_its_floor(alpha: int) -> None:
    """Twice 1,000 covers five rises, 1.125⁵ = 1.80, and not the sixth, 1.125⁶ = 2.03.

    The eighths, rounded down, are 125, 140, 158, 177, 200, 225.
    """
    rule = market(alpha)
    basefees = [after(FLOOR, [LANE] * blocks, rule) for blocks in range(7)]
    assert basefees == [1_000, 1_125, 1_265, 1_423, 1_600, 1_800, 2_025]
    assert [basefee <= 2 * FLOOR for basefee in basefees] == [True] * 6 + [False]


@pytest.mark.spec("L-19")
@given(basefee=st.integers(FLOOR, CEILING // 4), uses=st.lists(st.integers(0, LANE), min_size=5, max_size=5))
def test_default_cap_lasts_any_five_blocks_and_not_six_full_ones_when_the_basefee_is_above_its_floor(
    basefee: int, uses: list[int]
) -> None:
    """No five blocks can take a basefee to more than twice itself, and six full ones do wherever it starts."""
    rule = market(CLIP)
    assert after(basefee, uses, rule) <= 2 * basefee
    assert after(basefee, [LANE] * 6, rule) > 2 * basefee


@pytest.mark.spec("L-19")
@pytest.mark.parametrize(("basefee", "blocks"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)])
def test_default_cap_lasts_fewer_blocks_when_a_fee_moves_by_whole_units(basefee: int, blocks: int) -> None:
    """Why the floor is not 1: from n below 8 the fee rises by 1 a block, and n blocks take it to 2n."""
    rule = market(CLIP, minimum=1)
    assert after(basefee, [LANE] * blocks, rule) == 2 * basefee
    assert after(basefee, [LANE] * (blocks + 1), rule) > 2 * basefee
