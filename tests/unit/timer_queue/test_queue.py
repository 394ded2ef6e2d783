"""The calendar queue as a whole: order, tiers, bounded reading, far timers for free, jumps, rewinds, refusals."""

from collections.abc import Callable

import pytest

from tests.model.timer_list import Blocks, name, pending
from trailboss.params import CalendarParams, load_params
from trailboss.primitives.errors import ConfigurationError, InvariantError
from trailboss.primitives.units import U64_MAX
from trailboss.timer_queue import queue as module
from trailboss.timer_queue.placement import Tier
from trailboss.timer_queue.queue import READ_AHEAD_MAX, STRETCH_MAX, TimerQueue

CALENDAR = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)
OVERVIEW = CalendarParams(ring_size=512, epoch_length=360, epoch_count=13)
MAINNET = load_params("mainnet").calendar
CROWD = 100_000


def blocks_with(*heights: int, now: int = 0, calendar: CalendarParams = CALENDAR) -> Blocks:
    """Place a timer at each height, in a block that is still open; its sequence is its position in ``heights``."""
    blocks = Blocks(calendar, now)
    blocks.place(*heights)
    return blocks


@pytest.mark.spec("Q-07", "Q-02", "Q-03")
def test_overviews_timers_move_at_its_blocks_when_the_clock_advances() -> None:
    """At block 1000: 1050 near, 1500 in epoch 4 until 1440, 50,000 in the overflow set until 45,000."""
    blocks = blocks_with(1050, 1500, 50_000, now=1000, calendar=OVERVIEW)

    def tiers() -> list[str | None]:
        return [blocks.queue.tier(name(sequence)) for sequence in range(3)]

    assert tiers() == ["ring", "epoch", "overflow"]
    for now, expected in (
        (1439, ["ring", "epoch", "overflow"]),
        (1440, ["ring", "ring", "overflow"]),
        (44_999, ["ring", "ring", "overflow"]),
        (45_000, ["ring", "ring", "epoch"]),
    ):
        blocks.advance(now)
        assert tiers() == expected
        statistics = blocks.queue.statistics()
        counts = (statistics.ring_timers, statistics.epoch_timers, statistics.overflow_timers)
        assert counts == tuple(expected.count(tier) for tier in ("ring", "epoch", "overflow"))
        assert statistics.rollovers == now // 360


@pytest.mark.spec("F-05", "Q-04")
@pytest.mark.parametrize("height", [3, 9, 60])
def test_order_of_a_height_survives_when_it_moves_through_the_tiers(height: int) -> None:
    """Timers of one height come out in the order of their insertion, whatever tier they were placed in."""
    blocks = blocks_with(*[height] * 5)
    for now in range(1, height + 1):
        assert blocks.queue.ids_at(height) == tuple(name(sequence) for sequence in range(5))
        blocks.advance(now)
    assert list(blocks.queue.due(height)) == [(height, sequence, name(sequence)) for sequence in range(5)]
    assert blocks.queue.tier(name(0)) is Tier.RING


@pytest.mark.spec("Q-02", "Q-04")
def test_whole_epoch_is_in_memory_when_it_begins() -> None:
    """At a rollover every timer of the epoch is in the ring, and of the epoch after it what the ring has room for."""
    blocks = blocks_with(*range(40, 64))
    for now in range(1, 40):
        blocks.advance(now)
    assert [height for height in range(40, 64) if blocks.queue._near.entries.get(name(height - 40))] == [*range(40, 45)]
    blocks.advance(40)
    assert [height for height in range(40, 64) if blocks.queue._near.entries.get(name(height - 40))] == [*range(40, 49)]


@pytest.mark.spec("F-05")
def test_due_walk_has_older_heights_first_when_a_backlog_waits() -> None:
    """What an earlier block left comes before this block's own, and nothing of a later height comes."""
    blocks = blocks_with(20, 3, 7, 3, 21, 18)
    blocks.advance(20)
    assert blocks.due() == [1, 3, 2, 5, 0]
    blocks.advance(21)
    blocks.advance(24)
    assert blocks.due() == [1, 3, 2, 5, 0, 4]


def test_due_is_refused_when_the_clock_stands_elsewhere() -> None:
    """A walk before the block has begun would miss what is to be read."""
    blocks = blocks_with(5)
    for now in (1, 5):
        blocks.advance(now)
        with pytest.raises(InvariantError, match=f"^timers due at height 4 are asked for, but the clock is at {now}$"):
            blocks.queue.due(4)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("height", [4, 9, 60, U64_MAX])
def test_cancelled_timer_is_gone_when_it_lay_in_any_tier(height: int, committed: bool) -> None:
    """It returns its height once, and leaves nothing behind, before its block is committed and after."""
    blocks = blocks_with(height, height)
    if committed:
        blocks.advance(1)
    queue = blocks.queue
    assert blocks.cancel(0) == height
    assert queue.cancel(name(0)) is None
    assert (queue.height_of(name(0)), queue.tier(name(0)), queue.ids_at(height)) == (None, None, (name(1),))
    assert queue.next_due_height() == height
    assert blocks.cancel(1) == height
    assert (queue.ids_at(height), queue.next_due_height()) == ((), None)
    blocks.advance(2)
    assert (queue.ids_at(height), queue.next_due_height(), queue.statistics().near_timers) == ((), None, 0)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("height", [5, 60])
def test_placement_is_refused_when_the_height_has_come_or_the_timer_is_there(height: int, committed: bool) -> None:
    """Callers have validated both; a contradiction stops the chain and changes nothing."""
    blocks = blocks_with(height)
    if committed:
        blocks.advance(1)
    now = blocks.queue.now
    words = f"^timer {name(1).hex()} is placed at height {now}, but the clock is at {now}$"
    with pytest.raises(InvariantError, match=words):
        blocks.queue.place(pending((now, 1, name(1))))
    words = f"^timer {name(0).hex()} is placed at height 12, but it already waits at {height}$"
    with pytest.raises(InvariantError, match=words):
        blocks.queue.place(pending((12, 1, name(0))))
    assert (blocks.queue.ids_at(12), blocks.queue.next_due_height()) == ((), height)
    blocks.advance(2)


def test_move_is_refused_when_the_height_is_past_or_the_timer_is_not_there() -> None:
    """Likewise; the present height is not past, and what is moved there is due."""
    blocks = blocks_with(60)
    blocks.advance(9)
    words = f"^timer {name(0).hex()} is moved to height 8, but the clock is at 9$"
    with pytest.raises(InvariantError, match=words):
        blocks.queue.move(pending((8, 0, name(0))))
    words = f"^timer {name(1).hex()} is moved to height 12, but it does not wait anywhere$"
    with pytest.raises(InvariantError, match=words):
        blocks.queue.move(pending((12, 1, name(1))))
    assert blocks.queue.height_of(name(0)) == 60
    blocks.queue.move(pending((9, 0, name(0))))
    assert (blocks.due(), blocks.queue.next_height_to_come()) == ([0], None)


@pytest.mark.spec("Q-08")
def test_far_timers_take_no_memory_when_a_hundred_thousand_are_placed() -> None:
    """Beyond the ring's reach a timer is remembered until its block is committed, and not longer."""
    blocks = Blocks(MAINNET)
    heights = [MAINNET.ring_size + 1 + number * 170 for number in range(CROWD)]
    blocks.place(*heights)
    assert blocks.queue.statistics().near_timers == 0
    blocks.source.put(list(blocks.placed.values()))
    blocks.placed.clear()
    blocks.queue.advance(1)
    assert (len(blocks.queue._near), len(blocks.queue._changed)) == (0, 0)
    assert blocks.queue.statistics().overflow_timers > CROWD // 2
    assert blocks.queue.height_of(name(CROWD - 1)) == heights[-1]
    assert blocks.queue.next_due_height() == heights[0]


@pytest.mark.spec("Q-02", "Q-08")
@pytest.mark.parametrize("crowded_heights", [1, 7, 3_600])
def test_reading_is_bounded_when_an_epoch_holds_a_hundred_thousand_timers(crowded_heights: int) -> None:
    """No block reads more than the limit and one timer to stop at, the rollover neither; and none is read when due."""
    epoch = 2 * MAINNET.epoch_length
    blocks = Blocks(MAINNET, now=epoch - MAINNET.ring_size - STRETCH_MAX)
    blocks.plant(*[epoch + number % crowded_heights for number in range(CROWD)])
    queue, source = blocks.queue, blocks.source
    for now in range(queue.now + 1, epoch):
        source.read = source.scans = 0
        queue.advance(now)
        assert source.scans <= 1
        assert source.read <= READ_AHEAD_MAX + 1
    assert queue.statistics().near_timers == CROWD
    source.scans = 0
    queue.advance(epoch)
    assert source.scans == 0
    assert blocks.due() == [*range(0, CROWD, crowded_heights)]


@pytest.mark.spec("Q-08")
def test_empty_blocks_read_nothing_when_nothing_is_within_reach() -> None:
    """The height that comes next is remembered, so the state is left alone until it comes near."""
    blocks = Blocks(MAINNET)
    blocks.plant(50_000)
    blocks.source.scans = 0
    for now in range(1, 50_000 - MAINNET.ring_size):
        blocks.queue.advance(now)
        assert blocks.queue.next_due_height() == 50_000
    assert blocks.source.scans == 0


@pytest.mark.spec("F-05")
@pytest.mark.parametrize("height", [6, 20])
def test_height_is_complete_when_the_frontier_lies_inside_it(height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers placed and cancelled on both sides of the frontier come out in order, each once."""
    monkeypatch.setattr(module, "READ_AHEAD_MAX", 3)
    blocks = Blocks(CALENDAR, now=height - 6)
    blocks.plant(*[height] * 30)
    queue = blocks.queue
    assert queue._frontier == (height, sorted(name(sequence) for sequence in range(30))[3])
    blocks.place(*[height] * 10)
    near, far = (
        [sequence for sequence in range(40) if bool(queue._near.entries.get(name(sequence))) == side]
        for side in (True, False)
    )
    assert len(near) > 3
    assert any(sequence >= 30 for sequence in far)
    gone = [near[0], near[-1], far[0], far[-1]]
    for sequence in gone:
        assert blocks.cancel(sequence) == height
    left = [sequence for sequence in range(40) if sequence not in gone]
    assert queue.ids_at(height) == tuple(name(sequence) for sequence in left)
    blocks.advance(height - 5)
    assert queue.ids_at(height) == tuple(name(sequence) for sequence in left)
    blocks.advance(height)
    assert blocks.due() == left
    blocks.queue.check_invariants()


@pytest.mark.spec("Q-04")
def test_jump_gives_the_same_queue_as_single_blocks() -> None:
    """A thousand blocks at once leave what a thousand steps would have."""
    heights = [*range(1, 120), 996, 997, 1_000, 1_001, 1_003, 1_004, 1_019, 1_020, 5_000]
    jumped, stepped = blocks_with(*heights), blocks_with(*heights)
    jumped.advance(1_000)
    for now in range(1, 1_001):
        stepped.advance(now)
    assert jumped.due() == stepped.due() == [*range(119), 119, 120, 121]
    assert jumped.queue.statistics() == stepped.queue.statistics()
    jumped.queue.check_invariants()


@pytest.mark.spec("Q-08")
def test_jump_reads_ahead_for_every_block_when_it_passes_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the blocks in between would have read does not wait for the block in which it is due."""
    monkeypatch.setattr(module, "READ_AHEAD_MAX", 3)
    blocks = Blocks(CALENDAR)
    blocks.plant(*[20] * 30)
    blocks.advance(19)
    assert blocks.queue.statistics().near_timers == 30


@pytest.mark.spec("Q-05", "F-83")
@pytest.mark.parametrize("back_to", [45, 44, 40, 21, 0])
def test_rewind_gives_the_queue_of_that_block_when_the_clock_goes_back(back_to: int) -> None:
    """Memory depends on the clock and the state alone, not on the way there; what the block had changed is dropped."""
    heights = [*range(10, 90), 200]
    blocks, expected = Blocks(CALENDAR, 45), Blocks(CALENDAR, back_to)
    for one in (blocks, expected):
        one.plant(*heights)
    blocks.queue.place(pending((46, 99, name(99))))
    blocks.queue.place(pending((300, 98, name(98))))
    blocks.queue.cancel(name(3))
    blocks.queue.cancel(name(80))
    blocks.queue.rewind(back_to)
    blocks.queue.check_invariants()
    assert blocks.queue.now == back_to
    assert blocks.queue.statistics() == expected.queue.statistics()
    assert (blocks.queue.height_of(name(98)), blocks.queue.height_of(name(80))) == (None, 200)
    for one in (blocks, expected):
        one.advance(90)
    assert blocks.due() == expected.due() == [*range(80)]


@pytest.mark.spec("Q-05")
@pytest.mark.parametrize("now", [0, 3, 9, 58])
def test_queue_is_ready_when_it_is_opened_over_a_state(now: int) -> None:
    """The state orders a height's timers by id; the queue orders them by sequence, as before the restart."""
    heights = (60, 9, 9, 3, 9, 60, 2)
    blocks = blocks_with(*heights)
    blocks.advance(now)
    opened = TimerQueue(CALENDAR, blocks.source, now)
    opened.check_invariants()
    for height in (2, 3, 9, 60):
        assert opened.ids_at(height) == blocks.queue.ids_at(height)
    assert list(opened.due(now)) == list(blocks.queue.due(now))
    assert [opened.tier(name(s)) for s in range(7)] == [blocks.queue.tier(name(s)) for s in range(7)]
    assert opened.next_due_height() == blocks.queue.next_due_height() == 2
    assert opened.statistics() == blocks.queue.statistics()


@pytest.mark.parametrize(("move", "now"), [("advance", 6), ("rewind", 8)])
def test_clock_refuses_to_move_the_wrong_way(move: str, now: int) -> None:
    """Going back is another thing than going on; both name where the clock stands."""
    queue = Blocks(CALENDAR, 7).queue
    with pytest.raises(InvariantError, match=rf"^the clock cannot {move} from height 7 (back to 6|on to 8)$"):
        getattr(queue, move)(now)
    assert queue.now == 7


def test_statistics_count_what_is_committed_by_tier_and_what_is_in_memory() -> None:
    """Two timers of one height are one height; the ring reaches to height 8."""
    blocks = blocks_with(3, 3, 2, 8, 9, 60, 60, 61)
    statistics = blocks.queue.statistics()
    assert (statistics.ring_timers, statistics.epoch_timers, statistics.overflow_timers) == (0, 0, 0)
    assert (statistics.near_timers, statistics.near_heights) == (4, 3)
    blocks.commit()
    statistics = blocks.queue.statistics()
    assert (statistics.ring_timers, statistics.epoch_timers, statistics.overflow_timers) == (3, 2, 3)


@pytest.mark.spec("Q-06")
def test_queue_is_refused_when_the_ring_is_too_short() -> None:
    """A whole epoch and the block before it would not fit."""
    with pytest.raises(ConfigurationError, match=r"^calendar\.ring_size = 4 is too small"):
        Blocks(CalendarParams(ring_size=4, epoch_length=4, epoch_count=4))


def _lose_near(blocks: Blocks) -> None:
    blocks.queue._near.take(name(0))


def _lose_committed(blocks: Blocks) -> None:
    blocks.source.discard(name(0))


def _invent(blocks: Blocks) -> None:
    blocks.queue._near.add(pending((5, 9, name(9))))


def _extend_only_here(blocks: Blocks) -> None:
    blocks.queue.extend(name(0), 7)


def _forget_far(blocks: Blocks) -> None:
    blocks.queue._far = 61


def _cancel_only_here(blocks: Blocks) -> None:
    blocks.queue.cancel(name(2))


def _empty_entry(blocks: Blocks) -> None:
    del blocks.queue._near.entries[name(1)]


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (_lose_near, f"timer {name(0).hex()} has height and sequence None in memory, (3, 0) in the state"),
        (_lose_committed, f"timer {name(0).hex()} has height and sequence (3, 0) in memory, None in the state"),
        (_invent, f"timer {name(9).hex()} has height and sequence (5, 9) in memory, None in the state"),
        (_extend_only_here, f"timer {name(0).hex()} has another expiry or payer in memory than in the state"),
        (_forget_far, "the lowest height beyond the frontier is 60, but the queue takes it for 61"),
        (_cancel_only_here, f"the block leaves timer {name(2).hex()} at height None, the state at 60"),
        (_empty_entry, f"timer {name(1).hex()} lies at height 8, but its entry says otherwise"),
    ],
)
def test_invariants_name_the_fault_when_one_is_broken(tamper: Callable[[Blocks], None], fault: str) -> None:
    """Each rule over memory and state is checked, with its reason."""
    blocks = blocks_with(3, 8, 60)
    blocks.advance(1)
    blocks.queue.check_invariants()
    tamper(blocks)
    with pytest.raises(InvariantError) as broken:
        blocks.queue.check_invariants()
    assert str(broken.value) == fault


@pytest.mark.spec("F-75")
def test_dead_timers_are_apart_when_they_expire_before_their_height_or_while_they_wait() -> None:
    """The walk over what is due meets the living alone; the dead come in order of their expiry."""
    blocks = Blocks(CALENDAR)
    for sequence, expires_at in enumerate((4, 9, 6, 6, 4)):
        blocks.queue.place(pending((5, sequence, name(sequence)), expires_at))
    blocks.queue.advance(5)
    assert (blocks.due(), blocks.queue.died()) == ([1, 2, 3], [])
    assert [sequence for _, sequence, _ in blocks.queue.expired(5)] == [0, 4]
    assert (blocks.queue.next_expiry(), blocks.queue.due_count, blocks.queue.expired_count) == (6, 5, 2)
    blocks.queue.advance(7)
    assert (blocks.due(), blocks.queue.died()) == ([1], [name(2), name(3)])
    assert [sequence for _, sequence, _ in blocks.queue.expired(7)] == [0, 4, 2, 3]
    blocks.queue.extend(name(3), 8)
    assert (blocks.due(), blocks.queue.died()) == ([1, 3], [name(2)])


def read_steps(blocks: Blocks, now: int, out: set[bytes]) -> int:
    """Return how many timers a walk without some payers has looked at."""
    looked = 0

    def is_out(payer: bytes) -> bool:
        nonlocal looked
        looked += 1
        return payer in out

    assert [sequence for _, sequence, _ in blocks.queue.due(now, is_out=is_out)] == [CROWD]
    return looked


@pytest.mark.spec("F-75")
def test_payer_is_left_out_at_once_when_its_timers_are_a_crowd() -> None:
    """A hundred payers who are out cost a hundred looks, and not one for each of their hundred thousand timers."""
    blocks = Blocks(CALENDAR)
    payers = [b"%d" % number for number in range(100)]
    for sequence in range(CROWD):
        row = (5, sequence, name(sequence))
        blocks.queue.place(pending(row, fee_payer=payers[sequence % 100]))
    blocks.queue.place(pending((5, CROWD, name(CROWD)), fee_payer=b"alive"))
    blocks.queue.advance(5)
    assert read_steps(blocks, 5, set(payers)) <= 2 * len(payers) + 2
