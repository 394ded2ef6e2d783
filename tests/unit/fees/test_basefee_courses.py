"""Three courses of a basefee: clipped as the lane's text has it, proportional as EIP-1559, exponential."""

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.fees import BasefeeRule, Course, next_basefee
from trailboss.governance.markets import LANE_KEY
from trailboss.governance.rules import read_rules
from trailboss.model.configs import LaneState, amount_octets, encode_record
from trailboss.params import load_params

LANE = 2_000_000
CEILING = 10**24
PRECISE = Context(prec=80)


def rule(course: Course, *, elasticity: int = 2, alpha: int = 8, minimum: int = 1) -> BasefeeRule:
    return BasefeeRule(
        target=LANE // elasticity,
        alpha=alpha,
        max_change_denominator=8,
        minimum=minimum,
        maximum=CEILING,
        least_rise=1,
        course=course,
    )


@given(basefee=st.integers(1, CEILING), used=st.integers(0, LANE))
def test_proportional_course_is_the_clipped_one_when_alpha_is_the_denominator_and_the_elasticity_two(
    basefee: int, used: int
) -> None:
    """A full block is then as far from the target as an empty one, and neither is clipped."""
    clipped, proportional = (next_basefee(basefee, used, rule(course)) for course in list(Course)[:2])
    assert clipped == proportional


@pytest.mark.parametrize(
    ("elasticity", "used", "moved"),
    [
        (4, LANE, Fraction(3, 8)),
        (4, LANE // 2, Fraction(1, 8)),
        (4, 0, Fraction(-1, 8)),
        (8, LANE, Fraction(7, 8)),
        (16, LANE // 4, Fraction(3, 8)),
        (1, LANE, Fraction(0)),
    ],
)
def test_proportional_course_is_not_clipped_when_a_full_block_is_many_targets(
    elasticity: int, used: int, moved: Fraction
) -> None:
    """EIP-1559 as written: the distance over the target, divided by eight; the clipped course stops at an eighth."""
    start = 8_000_000
    assert next_basefee(start, used, rule(Course.PROPORTIONAL, elasticity=elasticity)) == start * (1 + moved)
    clipped = next_basefee(start, used, rule(Course.CLIPPED, elasticity=elasticity))
    assert clipped == start * (1 + max(min(moved, Fraction(1, 8)), Fraction(-1, 8)))


@given(basefee=st.integers(1, 10**15), used=st.integers(0, LANE), elasticity=st.sampled_from([1, 2, 5, 64]))
def test_exponential_course_is_the_nearest_whole_number(basefee: int, used: int, elasticity: int) -> None:
    """Against decimals of 80 digits; a rise is at least 1."""
    curved = rule(Course.EXPONENTIAL, elasticity=elasticity)
    exponent = PRECISE.divide(Decimal(used - curved.target), Decimal(curved.target * 8))
    exact = int(PRECISE.multiply(basefee, PRECISE.exp(exponent)).to_integral_value(ROUND_HALF_UP))
    if used > curved.target:
        exact = max(exact, basefee + 1)
    assert next_basefee(basefee, used, curved) == exact


@given(
    st.lists(st.integers(0, LANE // 2), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_exponential_course_comes_back_when_use_averages_the_target(distances: list[int], order: object) -> None:
    """In whatever order blocks lie above and below, by the same sum; each rounding moves the end by one at most."""
    uses = [LANE // 2 + sign * distance for distance in distances for sign in (1, -1)]
    order.shuffle(uses)
    basefee = start = 10**12
    for used in uses:
        basefee = next_basefee(basefee, used, rule(Course.EXPONENTIAL))
    assert abs(Fraction(basefee, start) - 1) < Fraction(len(uses) * 200, start)


def test_only_the_exponential_course_holds_its_level_when_full_and_empty_blocks_alternate() -> None:
    """The others lose 1/64 in each pair of blocks: a fifth is left after 200."""
    left = []
    for course in Course:
        basefee = 10**9
        for used in (LANE, 0) * 100:
            basefee = next_basefee(basefee, used, rule(course, alpha=1))
        left.append(round(basefee / 10**9, 4))
    assert left == [0.207, 0.207, 1.0]


@pytest.mark.parametrize("basefee", [1, 10**12, CEILING])
def test_exponential_course_stops_at_the_ceiling_when_a_block_is_very_many_targets(basefee: int) -> None:
    """The exponent is held to 90, from which even a basefee of 1 is above every ceiling."""
    curved = rule(Course.EXPONENTIAL, elasticity=LANE)
    assert next_basefee(basefee, LANE, curved) == CEILING
    assert next_basefee(basefee, 721, curved) == CEILING


@pytest.mark.parametrize(("course", "following"), [(0, 9_000_000), (1, 11_000_000), (2, 11_639_931)])
def test_lane_moves_by_the_course_that_its_parameter_names(course: int, following: int) -> None:
    """A full lane of four targets: an eighth, three eighths, and exp(3/8)."""
    overrides = {"lane.activation_height": 1, "lane.elasticity": 4, "lane.basefee_rule": course}
    state = {LANE_KEY: encode_record(LaneState(amount_octets(8_000_000)))}
    assert read_rules(load_params(overrides=overrides), state.get, 5).market.next_basefee(LANE) == following
