"""Tier 1: slots, carried heights, and the rules that hold them apart."""

import pytest

from trailboss.params import CalendarParams
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.ring import Ring

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)


def ring_with(*heights: int, epoch: int = 2) -> Ring:
    ring = Ring(CALENDAR, epoch)
    for height in heights:
        ring.put(Bucket(height))
    return ring


def heights_of(buckets) -> list[int]:
    return [bucket.height for bucket in buckets]


@pytest.mark.spec("Q-01")
def test_bucket_is_found_when_its_height_belongs_to_the_epoch() -> None:
    """Each height of the epoch has its own slot; a free one gives nothing."""
    ring = ring_with(8, 11)
    assert [ring.find(height) is not None for height in range(8, 12)] == [True, False, False, True]
    ring.drop(8)
    assert ring.find(8) is None
    assert len(ring) == 1


def test_carried_height_does_not_meet_a_later_one_when_both_map_to_one_slot() -> None:
    """Heights 2 and 10 share slot 2 of 8, yet both are kept."""
    ring = ring_with(10, 2)
    assert heights_of(ring.walk()) == [2, 10]
    ring.drop(2)
    assert ring.find(2) is None
    assert ring.find(10) is not None


def test_walks_rise_when_heights_were_put_in_any_order() -> None:
    """Carried heights come first, then the epoch's; what is not due yet is left out of the walk of due ones."""
    ring = ring_with(11, 3, 9, 8, 1)
    assert heights_of(ring.walk()) == [1, 3, 8, 9, 11]
    assert heights_of(ring.walk_due(10)) == [1, 3, 8, 9]
    assert heights_of(ring.walk_due(8)) == [1, 3, 8]


def test_first_height_is_the_oldest_when_some_are_carried() -> None:
    """It is the oldest carried height, else the epoch's first, else nothing."""
    assert ring_with().first_height() is None
    assert ring_with(11, 9).first_height() == 9
    assert ring_with(11, 9, 3).first_height() == 3


@pytest.mark.spec("Q-04")
def test_roll_over_carries_what_still_waits() -> None:
    """Heights of the ended epoch stay, in order, and their slots are free for heights to come."""
    ring = ring_with(3, 8, 10)
    assert ring.roll_over(4) == 2
    ring.put(Bucket(16))
    assert heights_of(ring.walk()) == [3, 8, 10, 16]
    assert list(ring.faults()) == []


def test_faults_name_what_is_wrong_in_slots_and_carried_heights() -> None:
    """Every rule of the ring is checked."""
    ring = ring_with(8)
    ring._slots[1], ring._slots[0] = ring._slots[0], None
    assert list(ring.faults()) == ["ring slot 1 holds height 8, which belongs into another slot"]

    ring = ring_with(8)
    ring._slots[5] = Bucket(13)
    assert list(ring.faults()) == [
        "ring slot 5 holds height 13, outside the epoch 8..11",
        "1 ring slots are marked as occupied, 2 are",
    ]

    ring = ring_with(8)
    ring._occupied = 0b10
    assert list(ring.faults()) == ["ring slot 0 holds height 8, but its bit says that the slot is free"]

    ring = ring_with(3)
    ring._start = 0
    assert list(ring.faults()) == ["height 3 is carried as 3, although the epoch began at 0"]
