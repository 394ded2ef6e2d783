"""W(actor) by hand, and the lower median it is measured against."""

import pytest

from trailboss.mechanisms.fee_lane.weight import lower_median, weight_of

WHOLE = 10**9


@pytest.mark.spec("L-23", "L-24")
@pytest.mark.parametrize(("fires", "weight"), [(0, 2 * WHOLE), (3, 17 * WHOLE // 10), (10, WHOLE), (50, WHOLE)])
def test_weight_is_two_less_the_ratio_within_its_bounds(fires: int, weight: int) -> None:
    """With a median of 10: 0 fires, ratio 0, W 2; 3, 0.3, 1.7; 10, 1, 1; 50, 5, 2 - 5 = -3, held at 1."""
    assert weight_of(fires, 10, WHOLE, 2 * WHOLE) == weight


@pytest.mark.spec("L-23")
def test_weight_is_rounded_down_when_the_ratio_has_no_end() -> None:
    """One fire of a median of 3: 2 - 1/3 = 1.666 666 666 6..., in parts of a thousand million 1 666 666 666."""
    assert weight_of(1, 3, WHOLE, 2 * WHOLE) == 1_666_666_666


@pytest.mark.spec("L-23", "L-24")
def test_weight_is_measured_against_one_when_nobody_has_fired() -> None:
    """The median is 0 and counts as 1: an actor without fires has W 2, one fire would make it 1."""
    assert [weight_of(fires, 0, WHOLE, 2 * WHOLE) for fires in (0, 1)] == [2 * WHOLE, WHOLE]


@pytest.mark.spec("L-23")
def test_median_is_the_lower_one_when_the_count_is_even() -> None:
    """Two actors with 1 fire, one with 4, one with 9: of 1, 1, 4, 9 the middle ones are 1 and 4, the lower is 1."""
    assert lower_median(((1, 2), (4, 1), (9, 1))) == 1
    assert lower_median(((1, 1), (4, 1), (9, 1))) == 4
    assert lower_median(()) == 0
