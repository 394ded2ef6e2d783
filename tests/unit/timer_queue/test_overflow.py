"""Tier 3: far heights in order."""

import pytest

from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.overflow import Overflow


def overflow_with(*heights: int) -> Overflow:
    overflow = Overflow()
    for height in heights:
        overflow.put(Bucket(height))
    return overflow


@pytest.mark.spec("Q-03")
def test_heights_are_ordered_when_put_in_any_order() -> None:
    """The set is ordered by height, and tells its lowest."""
    overflow = overflow_with(90, 70, 80)
    assert [bucket.height for bucket in overflow.walk()] == [70, 80, 90]
    assert overflow.first_height() == 70
    overflow.drop(70)
    assert overflow.find(70) is None
    assert (overflow.first_height(), len(overflow)) == (80, 2)
    assert overflow_with().first_height() is None


@pytest.mark.spec("Q-03")
def test_take_below_stops_when_the_height_is_reached() -> None:
    """Lower heights leave, the height itself stays."""
    overflow = overflow_with(90, 70, 80)
    assert [bucket.height for bucket in overflow.take_below(80)] == [70]
    assert [bucket.height for bucket in overflow.take_below(1_000)] == [80, 90]
    assert overflow.take_below(1_000) == []


def test_faults_name_near_heights_and_wrong_keys() -> None:
    """Both rules of the overflow set are checked."""
    overflow = overflow_with(70, 80)
    assert list(overflow.faults(70)) == []
    assert list(overflow.faults(71)) == ["the overflow set holds height 70, but the epoch queue reaches to 70"]
    overflow._buckets[90] = Bucket(91)
    assert list(overflow.faults(70)) == ["the overflow set holds height 91 as 90"]
