"""The timers in memory: FIFO within a height, the due beside the ring."""

from collections.abc import Callable
from itertools import permutations

import pytest

from tests.model.timer_list import pending
from trailboss.params import CalendarParams
from trailboss.timer_queue.bucket import Bucket, Pending
from trailboss.timer_queue.near import MORTAL_MIN, NearTimers
from trailboss.timer_queue.queue import START

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)


def first_height(near: NearTimers) -> int | None:
    """Return the lowest height that has a timer, due or to come."""
    return near.ring.first_height() if near.first_due() is None else near.first_due()


def near_with(*rows: tuple[int, int], now: int = 0) -> NearTimers:
    """Add a timer for each (height, sequence)."""
    near = NearTimers(CALENDAR, now)
    for height, sequence in rows:
        near.add(pending((height, sequence, b"%d" % sequence)))
    return near


def due_sequences(near: NearTimers) -> list[int]:
    return [timer.sequence for timer in near.due(START)]


@pytest.mark.spec("F-05")
@pytest.mark.parametrize("arrival", list(permutations((1, 2, 3))))
def test_height_is_in_order_of_sequence_when_timers_arrive_in_any_order(arrival: tuple[int, ...]) -> None:
    """The state lists a height's timers by id; their order of arrival leaves no trace."""
    near = near_with(*[(5, sequence) for sequence in arrival])
    assert sorted(near.at(5)) == [(1, b"1"), (2, b"2"), (3, b"3")]
    near.advance(5)
    assert due_sequences(near) == [1, 2, 3]


def test_due_heights_are_in_order_when_later_ones_follow() -> None:
    """A height that waits beside the ring comes before one that has just left it, though both have the same slot."""
    near = near_with((3, 1), (5, 2))
    near.advance(4)
    near.add(pending((11, 3, b"3")))
    near.advance(11)
    assert [(timer.height, timer.sequence) for timer in near.due(START)] == [(3, 1), (5, 2), (11, 3)]
    near.add(pending((2, 4, b"4")))
    assert due_sequences(near) == [4, 1, 2, 3]
    assert (first_height(near), near.heights, len(near)) == (2, 4, 4)


@pytest.mark.spec("Q-08")
def test_due_walk_is_lazy_when_the_caller_stops() -> None:
    """What the caller does not take is not looked at: a height behind the first may even be broken."""
    near = near_with((1, 1), (1, 2), (2, 3))
    near.advance(2)
    near._due[2] = None
    walk = near.due(START)
    assert [next(walk).timer_id, next(walk).timer_id] == [b"1", b"2"]


@pytest.mark.parametrize("now", [0, 6])
def test_bucket_goes_when_its_last_timer_does(now: int) -> None:
    """In the ring and beside it."""
    near = near_with((5, 1), (5, 2), (6, 3))
    near.advance(now)
    assert (near.take(b"1"), near.take(b"1")) == (5, None)
    assert (list(near.at(5)), near.heights, first_height(near)) == ([(2, b"2")], 2, 5)
    assert near.take(b"2") == 5
    assert (list(near.at(5)), near.heights, first_height(near)) == ([], 1, 6)
    assert (near.entries.get(b"2"), near.entries.get(b"3")) == (None, pending((6, 3, b"3")))
    assert list(near.faults()) == []


def _empty(near: NearTimers) -> None:
    near.ring.put(7, Bucket())


def _forget(near: NearTimers) -> None:
    del near.entries[b"1"]


def _invent(near: NearTimers) -> None:
    near.entries[b"9"] = pending((5, 9, b"9"))


def _unmark(near: NearTimers) -> None:
    near.ring._taken = 0


def _miscount(near: NearTimers) -> None:
    near.due_count = 2


@pytest.mark.parametrize(
    ("tamper", "faults"),
    [
        (_empty, ["height 7 has an empty bucket; the last timer to leave must take the bucket with it"]),
        (
            _forget,
            [
                "timer 31 lies at height 1, but its entry says otherwise",
                "the buckets hold 2 timers, but 1 have an entry",
            ],
        ),
        (_invent, ["the buckets hold 2 timers, but 3 have an entry"]),
        (_unmark, ["ring slot 5 is taken, but its bit says otherwise"]),
        (_miscount, ["1 timers are due, but 2 are counted"]),
    ],
)
def test_faults_name_what_is_wrong(tamper: Callable[[NearTimers], None], faults: list[str]) -> None:
    """Every rule of the timers in memory is checked."""
    near = near_with((1, 1), (5, 2))
    near.advance(1)
    assert list(near.faults()) == []
    tamper(near)
    assert list(near.faults()) == faults


def test_notes_of_expiries_go_with_their_timers_when_each_fires_long_before_it_expires() -> None:
    """A chain whose timers live for a month does not keep a note of each until then; one that waits keeps its own."""
    near = NearTimers(CALENDAR, 0)
    near.add(Pending(5_000, 0, b"waits", b"payer", 1))
    for height in range(2, 2_000):
        near.add(Pending(10**7 + height, height, b"%d" % height, b"payer", height))
        near.advance(height)
        near.take(b"%d" % height)
    assert len(near._mortal) <= MORTAL_MIN + 2
    near.advance(5_000)
    assert near.died() == []
    near.advance(5_001)
    assert near.died() == [b"waits"]
