"""Tier 2: a circular array of epochs."""

import pytest

from trailboss.params import CalendarParams
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.epochs import EpochQueue

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=3)


def epochs_with(*heights: int, epoch: int = 0) -> EpochQueue:
    epochs = EpochQueue(CALENDAR, epoch)
    for height in heights:
        epochs.put(Bucket(height))
    return epochs


@pytest.mark.spec("Q-02")
@pytest.mark.parametrize("epoch", range(7))
def test_first_height_is_the_lowest_when_the_array_wraps(epoch: int) -> None:
    """Whatever slot the next epoch has, the nearest epoch comes first, and in it the lowest height."""
    start = 4 * (epoch + 1)
    assert epochs_with(epoch=epoch).first_height() is None
    assert epochs_with(start + 11, start + 3, start + 2, start + 6, epoch=epoch).first_height() == start + 2
    assert epochs_with(start + 11, start + 9, epoch=epoch).first_height() == start + 9


def test_bucket_is_gone_when_dropped() -> None:
    """The other heights of its epoch stay, and the epoch is free when its last height has left."""
    epochs = epochs_with(5, 6)
    epochs.drop(5)
    assert epochs.find(5) is None
    assert epochs.first_height() == 6
    epochs.drop(6)
    assert epochs.first_height() is None
    assert (len(epochs), list(epochs.walk())) == (0, [])


@pytest.mark.spec("Q-02")
def test_take_through_returns_whole_epochs_when_the_clock_jumps() -> None:
    """Every epoch up to the new one leaves; its slot serves a later epoch at once."""
    epochs = epochs_with(4, 7, 9, 13)
    assert sorted(bucket.height for bucket in epochs.take_through(2)) == [4, 7, 9]
    epochs.put(Bucket(16))
    assert epochs.first_height() == 13
    assert list(epochs.faults()) == []
    assert sorted(bucket.height for bucket in epochs.take_through(100)) == [13, 16]
    assert epochs.first_height() is None


def test_faults_name_what_is_wrong_in_slots_and_marks() -> None:
    """Every rule of the epoch queue is checked."""
    epochs = epochs_with(5)
    epochs._slots[2] = {9: Bucket(5)}
    epochs._heights[2], epochs._occupied = 0b10, 0b110
    assert list(epochs.faults()) == ["epoch slot 2 holds height 5 as 9, which belongs elsewhere"]

    epochs = epochs_with(5)
    epochs._epoch = 1
    assert list(epochs.faults()) == ["the epoch queue holds height 5 of epoch 1, outside 2..4"]

    epochs = epochs_with(5)
    epochs._heights[1] = 0b11
    assert list(epochs.faults()) == ["epoch slot 1 marks other heights than it holds"]

    epochs = epochs_with(5)
    epochs._occupied = 0
    assert list(epochs.faults()) == ["epoch slot 1 holds 1 heights, but its bit says otherwise"]
