"""Tier 1 in memory: a slot for each of the next heights."""

import pytest

from tests.model.timer_list import pending
from trailboss.params import CalendarParams
from trailboss.timer_queue.bucket import Bucket
from trailboss.timer_queue.near import Ring

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)


def bucket_of(height: int) -> Bucket:
    bucket = Bucket()
    bucket.add(pending((height, 0, b"")), is_expired=False)
    return bucket


def ring_with(*heights: int, now: int = 7) -> Ring:
    ring = Ring(CALENDAR.ring_size, now)
    for height in heights:
        ring.put(height, bucket_of(height))
    return ring


def heights_of(walk) -> list[int]:
    return [height for height, _ in walk]


@pytest.mark.spec("Q-01")
def test_bucket_lies_in_the_slot_of_its_height_modulo_the_ring() -> None:
    """The next eight heights have a slot each; a free one gives nothing."""
    ring = ring_with(8, 11, 15)
    assert [slot for slot, bucket in enumerate(ring._slots) if bucket is not None] == [0, 3, 7]
    assert [height for height in range(8, 16) if ring.find(height) is not None] == [8, 11, 15]
    ring.take(8)
    assert ring.find(8) is None
    assert len(ring) == 2


@pytest.mark.spec("Q-01")
@pytest.mark.parametrize("now", range(17))
def test_first_height_is_the_lowest_when_the_ring_wraps(now: int) -> None:
    """Wherever the clock stands in the ring, the nearest height comes first."""
    assert ring_with(now=now).first_height() is None
    assert ring_with(now + 8, now + 3, now + 5, now=now).first_height() == now + 3
    assert ring_with(now + 8, now=now).first_height() == now + 8


@pytest.mark.parametrize("now", [9, 10, 40])
def test_due_buckets_leave_in_order_when_their_heights_have_come(now: int) -> None:
    """What has left makes room for the heights eight further on."""
    ring = ring_with(11, 8, 9)
    for height in (8, 9, 11):
        if height <= now:
            assert ring.first_height() == height
            assert [timer.height for timer in ring.take(height)] == [height]
    ring.first = now + 1
    ring.put(now + 8, Bucket())
    assert heights_of(ring.walk()) == [height for height in (11, now + 8) if height > now]
    assert list(ring.faults()) == []


def test_faults_name_slots_whose_bit_is_wrong() -> None:
    """A free slot marked as taken, and a taken one that is not marked."""
    ring = ring_with(8)
    ring._taken = 0b10
    assert list(ring.faults()) == [
        "ring slot 0 is taken, but its bit says otherwise",
        "ring slot 1 is free, but its bit says otherwise",
    ]
