"""The calendar queue as a whole: order, migration, bounded rollovers, jumps, rewinds, rebuilds, refusals."""

from collections.abc import Callable

import pytest

from trailboss.params import CalendarParams, load_params
from trailboss.primitives.errors import ConfigurationError, InvariantError
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.placement import Tier
from trailboss.timer_queue.queue import TimerQueue

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)
OVERVIEW = CalendarParams(ring_size=512, epoch_length=360, epoch_count=13)


def name(sequence: int) -> bytes:
    return b"%032d" % sequence


def queue_with(*heights: int, now: int = 0, calendar: CalendarParams = CALENDAR) -> TimerQueue:
    """Place one timer a height; its sequence is its position in ``heights``."""
    queue = TimerQueue(calendar, now)
    for sequence, height in enumerate(heights):
        queue.place(height, sequence, name(sequence))
    return queue


def due_sequences(queue: TimerQueue) -> list[int]:
    return [sequence for _, sequence, _ in queue.due(queue.now)]


@pytest.mark.spec("Q-07", "Q-02", "Q-03")
def test_overviews_timers_move_at_its_blocks_when_the_clock_advances() -> None:
    """At block 1000: 1050 near, 1500 in epoch 4 until 1440, 50,000 in the overflow set until 45,000."""
    queue = queue_with(1050, 1500, 50_000, now=1000, calendar=OVERVIEW)

    def tiers() -> list[str | None]:
        return [queue.tier(name(sequence)) for sequence in range(3)]

    assert tiers() == ["ring", "epoch", "overflow"]
    queue.advance(1439)
    assert tiers() == ["ring", "epoch", "overflow"]
    queue.advance(1440)
    assert tiers() == ["ring", "ring", "overflow"]
    queue.advance(44_999)
    assert tiers() == ["ring", "ring", "overflow"]
    queue.advance(45_000)
    assert tiers() == ["ring", "ring", "epoch"]
    queue.check_invariants()


@pytest.mark.spec("F-05", "Q-04")
@pytest.mark.parametrize("height", [3, 9, 60])
def test_order_of_a_height_survives_when_it_moves_through_the_tiers(height: int) -> None:
    """Timers of one height come out in the order of their insertion, whatever tier they were placed in."""
    queue = queue_with(*[height] * 5)
    assert queue.ids_at(height) == tuple(name(sequence) for sequence in range(5))
    for now in range(1, height + 1):
        queue.advance(now)
    assert list(queue.due(height)) == [(height, sequence, name(sequence)) for sequence in range(5)]
    assert queue.tier(name(0)) is Tier.RING


@pytest.mark.spec("F-05")
def test_due_walk_has_older_heights_first_when_a_backlog_waits() -> None:
    """What an earlier block left comes before this block's own, and nothing of a later height comes."""
    queue = queue_with(20, 3, 7, 3, 21, 18)
    queue.advance(20)
    assert due_sequences(queue) == [1, 3, 2, 5, 0]
    assert queue.statistics().carried == 1
    queue.advance(21)
    queue.advance(24)
    assert due_sequences(queue) == [1, 3, 2, 5, 0, 4]
    assert queue.statistics().carried == 3
    queue.check_invariants()


@pytest.mark.spec("Q-08")
def test_due_walk_touches_nothing_beyond_what_is_taken_when_the_caller_stops() -> None:
    """The walk is lazy: the second height's bucket is still unsorted after the first height was taken."""
    queue = TimerQueue(CALENDAR)
    for sequence, height in ((1, 1), (3, 2), (2, 2)):
        queue.place(height, sequence, name(sequence))
    queue.advance(2)
    walk = queue.due(2)
    assert next(walk) == (1, 1, name(1))
    bucket = queue._ring.find(2)
    assert bucket is not None
    assert not bucket.in_order
    assert next(walk) == (2, 2, name(2))
    assert bucket.in_order


def test_due_is_refused_when_the_clock_stands_elsewhere() -> None:
    """A walk before epoch maintenance would miss what is to be promoted."""
    queue = queue_with(5)
    for now in (1, 5):
        queue.advance(now)
        with pytest.raises(InvariantError, match=f"^timers due at height 4 are asked for, but the clock is at {now}$"):
            queue.due(4)


@pytest.mark.parametrize("height", [4, 9, 60])
def test_cancelled_timer_is_gone_when_it_lay_in_any_tier(height: int) -> None:
    """It returns its height once, and leaves nothing behind."""
    queue = queue_with(height, height)
    assert queue.cancel(name(0)) == height
    assert queue.cancel(name(0)) is None
    assert (queue.height_of(name(0)), queue.tier(name(0))) == (None, None)
    assert (queue.ids_at(height), len(queue)) == ((name(1),), 1)
    assert queue.cancel(name(1)) == height
    assert (queue.ids_at(height), len(queue), queue.next_due_height()) == ((), 0, None)
    queue.check_invariants()


@pytest.mark.spec("F-33", "Q-05")
@pytest.mark.parametrize("now", [0, 9, 30])
def test_restored_timer_takes_its_old_place_when_a_cancel_is_undone(now: int) -> None:
    """It may be due already, carried even; the order is as if it had never left."""
    queue = queue_with(9, 9, 9)
    queue.advance(now)
    queue.cancel(name(0))
    queue.cancel(name(1))
    queue.restore(9, 1, name(1))
    queue.restore(9, 0, name(0))
    assert queue.ids_at(9) == (name(0), name(1), name(2))
    queue.check_invariants()


def test_placement_is_refused_when_the_height_has_come_or_the_timer_is_there() -> None:
    """Callers have validated both; a contradiction stops the chain and changes nothing."""
    queue = queue_with(9, now=5)
    with pytest.raises(InvariantError, match=f"^timer {name(1).hex()} is placed at height 5, but the clock is at 5$"):
        queue.place(5, 1, name(1))
    expected = f"^timer {name(0).hex()} is placed at height 12, but it already waits at 9$"
    with pytest.raises(InvariantError, match=expected):
        queue.place(12, 1, name(0))
    with pytest.raises(InvariantError, match=expected):
        queue.restore(12, 1, name(0))
    assert (len(queue), queue.ids_at(12)) == (1, ())
    queue.check_invariants()


@pytest.mark.parametrize(
    ("heights", "expected"),
    [((), None), ((60, 50), 50), ((60, 17, 9, 11), 9), ((60, 9, 3, 2), 2)],
)
def test_next_due_height_is_the_lowest_when_tiers_are_mixed(heights: tuple[int, ...], expected: int | None) -> None:
    """The nearest tier that holds anything answers."""
    assert queue_with(*heights).next_due_height() == expected


def test_next_due_height_lies_in_the_past_when_something_still_waits() -> None:
    """A backlog is due at once."""
    queue = queue_with(3, 30)
    queue.advance(20)
    assert queue.next_due_height() == 3


@pytest.mark.spec("Q-02", "Q-03", "Q-08")
@pytest.mark.parametrize("timers_per_height", [1, 50])
def test_rollover_moves_at_most_an_epochs_heights_when_each_holds_many_timers(timers_per_height: int) -> None:
    """Moves are counted in buckets: no rollover moves more than an epoch's heights into a tier, and none in between."""
    heights = [height for height in range(1, 60) for _ in range(timers_per_height)]
    queue = queue_with(*heights)
    before = queue.statistics()
    for now in range(1, 70):
        queue.advance(now)
        after = queue.statistics()
        moves = (
            after.promoted - before.promoted,
            after.migrated - before.migrated,
            after.carried - before.carried,
        )
        assert after.rollovers - before.rollovers == (now % CALENDAR.epoch_length == 0)
        assert max(moves) <= CALENDAR.epoch_length * (after.rollovers - before.rollovers)
        before = after
    assert (before.promoted, before.migrated, before.ring_heights) == (56, 40, 59)
    queue.check_invariants()


@pytest.mark.spec("Q-08")
@pytest.mark.parametrize("timers", [100, 10_000])
def test_rollover_work_is_the_same_when_an_epoch_holds_a_hundred_times_the_timers(timers: int) -> None:
    """A crowd in one epoch of the default calendar moves as its heights."""
    calendar = load_params("mainnet").calendar
    heights = [calendar.epoch_length + number % 7 for number in range(timers)]
    queue = queue_with(*heights, calendar=calendar)
    queue.advance(calendar.epoch_length)
    statistics = queue.statistics()
    assert (statistics.promoted, statistics.migrated, statistics.carried) == (7, 0, 0)
    assert (statistics.ring_timers, statistics.ring_heights) == (timers, 7)


@pytest.mark.spec("Q-04")
def test_jump_gives_the_same_tiers_as_single_blocks() -> None:
    """A thousand blocks at once file every height where a thousand steps would have."""
    heights = [*range(1, 120), 996, 997, 1_000, 1_001, 1_003, 1_004, 1_019, 1_020, 5_000]
    jumped, stepped = queue_with(*heights), queue_with(*heights)
    jumped.advance(1_000)
    for now in range(1, 1_001):
        stepped.advance(now)
    assert [jumped.tier(name(s)) for s in range(len(heights))] == [stepped.tier(name(s)) for s in range(len(heights))]
    assert due_sequences(jumped) == due_sequences(stepped) == [*range(119), 119, 120, 121]
    jumped.check_invariants()
    stepped.check_invariants()


@pytest.mark.spec("Q-05", "F-83")
@pytest.mark.parametrize("back_to", [45, 44, 40, 21, 0])
def test_rewind_gives_the_tiers_of_that_block_when_the_clock_goes_back(back_to: int) -> None:
    """Tiers depend on the clock and the heights alone, not on the way there."""
    heights = [*range(46, 90), 200]
    queue = queue_with(*heights, now=45)
    queue.rewind(back_to)
    queue.check_invariants()
    expected = queue_with(*heights, now=back_to)
    assert queue.now == back_to
    assert [queue.tier(name(s)) for s in range(45)] == [expected.tier(name(s)) for s in range(45)]
    queue.advance(90)
    assert due_sequences(queue) == list(range(44))


def test_rewind_uncarries_heights_when_their_epoch_is_the_present_one_again() -> None:
    """A carried height returns to its slot and is no longer due."""
    queue = queue_with(5, 6)
    queue.advance(13)
    queue.rewind(5)
    assert due_sequences(queue) == [0]
    queue.check_invariants()


@pytest.mark.parametrize(("move", "now"), [("advance", 6), ("rewind", 8)])
def test_clock_refuses_to_move_the_wrong_way(move: str, now: int) -> None:
    """Going back is another thing than going on; both name where the clock stands."""
    queue = TimerQueue(CALENDAR, 7)
    with pytest.raises(InvariantError, match=rf"^the clock cannot {move} from height 7 (back to 6|on to 8)$"):
        getattr(queue, move)(now)
    assert queue.now == 7


@pytest.mark.spec("Q-05")
def test_rebuild_gives_the_same_queue_when_the_state_lists_timers_by_id() -> None:
    """The state orders a height's timers by id; the queue orders them by sequence, as before the restart."""
    queue = queue_with(60, 9, 9, 3, 9, 60, 2)
    queue.advance(3)
    entries = sorted(
        ((height, sequence, name(sequence)) for sequence, height in enumerate((60, 9, 9, 3, 9, 60, 2))),
        key=lambda entry: (entry[0], entry[2][::-1]),
        reverse=True,
    )
    rebuilt = queue_with(1, 2, 3)
    rebuilt.rebuild(entries, 3)
    rebuilt.check_invariants()
    for height in (2, 3, 9, 60):
        assert rebuilt.ids_at(height) == queue.ids_at(height)
    assert list(rebuilt.due(3)) == list(queue.due(3)) == [(2, 6, name(6)), (3, 3, name(3))]
    assert [rebuilt.tier(name(s)) for s in range(7)] == [queue.tier(name(s)) for s in range(7)]
    assert rebuilt.statistics() == queue.statistics()


def test_rebuild_is_refused_when_a_timer_occurs_twice() -> None:
    """The state cannot hold one id at two heights."""
    with pytest.raises(InvariantError, match="already waits at 5"):
        TimerQueue(CALENDAR).rebuild([(5, 0, name(0)), (6, 1, name(0))], 0)


def test_statistics_count_timers_and_heights_of_each_tier() -> None:
    """Two timers of one height are one height."""
    statistics = queue_with(3, 3, 2, 9, 60, 60, 61).statistics()
    assert (statistics.ring_timers, statistics.ring_heights) == (3, 2)
    assert (statistics.epoch_timers, statistics.epoch_heights) == (1, 1)
    assert (statistics.overflow_timers, statistics.overflow_heights) == (3, 2)


@pytest.mark.spec("Q-06")
def test_queue_is_refused_when_the_ring_is_too_short() -> None:
    """A promoted epoch would not fit."""
    with pytest.raises(ConfigurationError, match=r"^calendar\.ring_size = 4 is too small"):
        TimerQueue(CalendarParams(ring_size=4, epoch_length=4, epoch_count=4))


def _overfill(queue: TimerQueue) -> None:
    queue._timers[Tier.EPOCH] += 1


def _forget(queue: TimerQueue) -> None:
    del queue._bucket_of[name(0)]


def _misfile(queue: TimerQueue) -> None:
    queue._overflow.put(Bucket(9, {name(1): 1}))


def _invent(queue: TimerQueue) -> None:
    queue._bucket_of[name(7)] = queue._bucket_of[name(0)]


def _empty(queue: TimerQueue) -> None:
    queue._epochs.put(Bucket(15))


def _reach(queue: TimerQueue) -> None:
    queue._epochs._epoch = 2


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (_overfill, "tier epoch holds 1 timers, but counts 2"),
        (_forget, f"timer {name(0).hex()} lies at height 3, but its entry says otherwise"),
        (_misfile, "the overflow set holds height 9, but the epoch queue reaches to 19"),
        (_invent, "the tiers hold 3 timers, but 4 have an entry"),
        (_reach, "the epoch queue holds height 9 of epoch 2, outside 3..6"),
        (_empty, "height 15 has an empty bucket; the last timer to leave must take the bucket with it"),
    ],
)
def test_invariants_name_the_fault_when_one_is_broken(tamper: Callable[[TimerQueue], None], fault: str) -> None:
    """Each rule over the tiers is checked, with its reason."""
    queue = queue_with(3, 9, 60)
    queue.check_invariants()
    tamper(queue)
    with pytest.raises(InvariantError) as broken:
        queue.check_invariants()
    assert str(broken.value) == fault
