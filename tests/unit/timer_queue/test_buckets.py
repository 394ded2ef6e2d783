"""The timers of one height keep the order of their sequence."""

import pytest

from trailboss.timer_queue.buckets import Bucket


def bucket_of(*sequences: int) -> Bucket:
    bucket = Bucket(100)
    for sequence in sequences:
        bucket.add(sequence, b"%d" % sequence)
    return bucket


@pytest.mark.spec("F-05")
@pytest.mark.parametrize("arrival", [(1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3)])
def test_ordered_follows_the_sequence_when_timers_arrive_in_any_order(arrival: tuple[int, ...]) -> None:
    """The order of arrival leaves no trace."""
    assert list(bucket_of(*arrival).ordered().values()) == [1, 2, 3, 4]


def test_ordered_restores_the_place_when_a_timer_leaves_and_comes_back() -> None:
    """An undone removal leaves the bucket as it was, for the first, a middle and the last timer."""
    for sequence in (1, 2, 3):
        bucket = bucket_of(1, 2, 3)
        bucket.remove(b"%d" % sequence)
        bucket.add(sequence, b"%d" % sequence)
        assert list(bucket.ordered().values()) == [1, 2, 3]


def test_order_holds_when_timers_arrive_after_a_sort() -> None:
    """The highest sequence is that of the last timer again after a sort, so later arrivals are judged rightly."""
    bucket = bucket_of(5, 9, 7)
    bucket.remove(b"9")
    assert list(bucket.ordered().values()) == [5, 7]
    bucket.add(8, b"8")
    assert bucket.in_order
    bucket.add(6, b"6")
    assert not bucket.in_order
    assert list(bucket.ordered().values()) == [5, 6, 7, 8]


def test_removals_are_forgotten_when_they_outnumber_what_remains() -> None:
    """A backlog taken from the front in small steps is written anew now and then, not walked over for ever."""
    bucket = bucket_of(*range(10))
    for sequence in range(5):
        bucket.remove(b"%d" % sequence)
        bucket.ordered()
    assert bucket.removed == 5
    bucket.remove(b"5")
    assert list(bucket.ordered().values()) == [6, 7, 8, 9]
    assert bucket.removed == 0


def test_faults_name_an_empty_bucket_and_a_false_order() -> None:
    """Both rules of a bucket are checked."""
    assert list(bucket_of(1, 2).faults()) == []
    assert list(bucket_of(2, 1).faults()) == []
    assert list(Bucket(7).faults()) == [
        "height 7 has an empty bucket; the last timer to leave must take the bucket with it"
    ]
    bucket = bucket_of(2, 1)
    bucket.in_order = True
    assert list(bucket.faults()) == ["the timers of height 100 are out of order, but the bucket says they are not"]
