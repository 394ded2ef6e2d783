"""Where heights belong: the overview's examples, the edges of the tiers, unique slots."""

import pytest

from trailboss.params import CalendarParams, load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.timer_queue.bucket import Bucket
from trailboss.timer_queue.near import Ring
from trailboss.timer_queue.placement import Tier, check_calendar, epoch_of, epoch_start, tier_of

OVERVIEW = CalendarParams(ring_size=256, epoch_length=360, epoch_count=13)
"""The geometry of the overview's examples; with 13 epochs ahead its block 45,000 is the one that migrates 50,000."""


@pytest.mark.spec("Q-07", "Q-01")
def test_near_height_lies_in_bucket_26_when_the_ring_has_256_slots() -> None:
    """The overview: at block 1000, a timer for 1050 goes to ring bucket 1050 mod 256 = 26."""
    assert tier_of(1050, 1000, OVERVIEW) is Tier.RING
    assert 1050 % OVERVIEW.ring_size == 26


@pytest.mark.spec("Q-07", "Q-02")
def test_height_waits_in_epoch_4_when_epochs_have_360_blocks() -> None:
    """The overview: at block 1000, in epoch 2, a timer for 1500 goes to epoch 4 and is promoted at block 1440."""
    assert (epoch_of(1000, OVERVIEW), epoch_of(1500, OVERVIEW)) == (2, 4)
    assert epoch_start(4, OVERVIEW) == 1440
    assert tier_of(1500, 1000, OVERVIEW) is Tier.EPOCH
    assert tier_of(1500, 1439, OVERVIEW) is Tier.EPOCH
    assert tier_of(1500, 1440, OVERVIEW) is Tier.RING


@pytest.mark.spec("Q-07", "Q-03")
def test_far_height_overflows_until_its_epoch_comes_into_range() -> None:
    """The overview: at block 1000, a timer for 50,000 goes to the overflow set, and leaves it at block 45,000."""
    assert tier_of(50_000, 1000, OVERVIEW) is Tier.OVERFLOW
    assert tier_of(50_000, 44_999, OVERVIEW) is Tier.OVERFLOW
    assert tier_of(50_000, 45_000, OVERVIEW) is Tier.EPOCH


@pytest.mark.spec("Q-04")
@pytest.mark.parametrize("preset", ["mainnet", "minimal"])
def test_tier_changes_at_epoch_edges_only_when_the_height_is_one_beyond(preset: str) -> None:
    """The last height of each range and the first beyond it lie in neighbouring tiers."""
    calendar = load_params(preset).calendar
    now = 5 * calendar.epoch_length + 1
    last_of_ring = epoch_start(6, calendar) - 1
    last_of_epochs = epoch_start(6 + calendar.epoch_count, calendar) - 1
    tiers = [tier_of(height, now, calendar) for height in (last_of_ring, last_of_ring + 1)]
    assert tiers == [Tier.RING, Tier.EPOCH]
    tiers = [tier_of(height, now, calendar) for height in (last_of_epochs, last_of_epochs + 1)]
    assert tiers == [Tier.EPOCH, Tier.OVERFLOW]


def test_height_stays_in_the_ring_when_it_has_passed() -> None:
    """What is overdue waits in the ring, however long ago its epoch ended."""
    assert tier_of(7, 50_000, OVERVIEW) is Tier.RING


@pytest.mark.spec("Q-01", "Q-06")
@pytest.mark.parametrize("preset", ["mainnet", "minimal"])
def test_ring_slots_are_unique_when_an_epoch_and_the_block_before_it_share_the_ring(preset: str) -> None:
    """When the last block of an epoch begins, every height of the next one has a slot of its own, and so has itself."""
    calendar = load_params(preset).calendar
    heights = range(epoch_start(7, calendar) - 1, epoch_start(8, calendar))
    ring, buckets = Ring(calendar.ring_size, heights[0] - 1), {height: Bucket() for height in heights}
    for height, bucket in buckets.items():
        ring.put(height, bucket)
    assert len(buckets) == len(ring) == calendar.epoch_length + 1
    assert all(ring.find(height) is bucket for height, bucket in buckets.items())


@pytest.mark.spec("Q-06")
def test_calendar_is_refused_when_the_ring_is_one_short() -> None:
    """A ring needs a slot for each height of an epoch and one more."""
    check_calendar(CalendarParams(ring_size=5, epoch_length=4, epoch_count=1))
    with pytest.raises(ConfigurationError) as refusal:
        check_calendar(CalendarParams(ring_size=4, epoch_length=4, epoch_count=1))
    expected = "calendar.ring_size = 4 is too small: it must be at least calendar.epoch_length + 1 = 5"
    assert str(refusal.value) == expected
