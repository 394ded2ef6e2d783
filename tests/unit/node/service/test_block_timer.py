"""When blocks are due, with the clock in hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.node.block_timer import NANOSECONDS_PER_MS, BlockTimer
from trailboss.node.options import AUTO, DUE, MANUAL, Pace
from trailboss.primitives.errors import ConfigurationError

SECOND = 1_000 * NANOSECONDS_PER_MS


def test_block_is_due_on_a_grid_when_the_pace_is_an_interval() -> None:
    """The first one interval after the start, and then every interval, however late each one is taken."""
    table = BlockTimer(Pace.every(1_000), now=5 * SECOND)
    lateness = []
    for now in (6 * SECOND, 7 * SECOND + 400, 8 * SECOND + 1):
        assert not table.is_due(table.deadline - 1)
        assert table.is_due(now)
        lateness.append(table.take(now))
        assert not table.is_due(now)
    assert lateness == [0, 400, 1]
    assert table.deadline == 9 * SECOND


def test_one_block_is_due_when_several_places_of_the_grid_have_passed() -> None:
    """A slow block is followed by one at once, and then by the next place: never two for having been slow."""
    table = BlockTimer(Pace.every(1_000), now=0)
    assert table.take(SECOND) == 0
    assert table.is_due(5 * SECOND + 300)
    assert table.take(5 * SECOND + 300) == 3 * SECOND + 300
    assert not table.is_due(5 * SECOND + 300)
    assert table.deadline == 6 * SECOND


@given(
    interval=st.integers(10, 5_000),
    start=st.integers(0, 10**18),
    steps=st.lists(st.tuples(st.integers(0, 30 * SECOND), st.integers(0, 3 * SECOND)), max_size=40),
)
def test_no_place_of_the_grid_gives_two_blocks_when_time_passes_anyhow(
    interval: int, start: int, steps: list[tuple[int, int]]
) -> None:
    """Every block stands for places of its own, is begun a quarter of the interval before the last of them at most."""
    table = BlockTimer(Pace.every(interval), now=start)
    nanoseconds = interval * NANOSECONDS_PER_MS
    now, place = start, start
    for step, duration in steps:
        now += step
        if table.is_due(now):
            deadline, before = table.deadline, place
            assert deadline is not None
            assert table.take(now) == now - deadline
            place = table.place
            assert (place - start) % nanoseconds == 0
            assert before < place <= now + nanoseconds // 4
            now += duration
            table.took(duration)
        deadline = table.deadline
        assert deadline is not None
        assert place + nanoseconds - nanoseconds // 4 <= deadline <= place + nanoseconds


def test_lead_follows_slow_blocks_at_once_and_quick_ones_by_and_by() -> None:
    """Half as much again as a block took, at most a quarter of the interval; of automatic pace there is none."""
    table = BlockTimer(Pace.every(1_000), now=0)
    table.take(SECOND)
    leads = []
    for duration in (80, 40, 40, 90, 900):
        table.took(duration * NANOSECONDS_PER_MS)
        assert table.deadline is not None
        leads.append((2 * SECOND - table.deadline) / NANOSECONDS_PER_MS)
    assert leads == [120, 114, 108.3, 135, 250]
    table.change(AUTO, now=2 * SECOND)
    table.wait_for(is_awaited=True, now=2 * SECOND)
    table.took(SECOND)
    assert table.deadline == 3 * SECOND


def test_block_is_never_due_when_the_pace_is_manual() -> None:
    """Calls change nothing."""
    table = BlockTimer(MANUAL, now=0)
    table.call()
    assert table.deadline is None
    assert not table.is_due(10**18)


def test_block_is_due_at_once_when_a_timer_lives_and_the_pace_is_due() -> None:
    """Also after a block; and without timers when something waits."""
    table = BlockTimer(DUE, now=0)
    assert table.take(0) is None
    assert not table.is_due(10**18)
    table.wait_for(is_awaited=True, now=5)
    assert table.is_due(5)
    table.take(5)
    assert table.is_due(5)
    table.wait_for(is_awaited=False, now=6)
    assert not table.is_due(6)
    table.call()
    assert table.is_due(6)


def test_new_grid_begins_when_the_pace_changes() -> None:
    """From manual to an interval, to a shorter one, to auto: what waits then is looked at."""
    table = BlockTimer(MANUAL, now=0)
    table.change(Pace.every(1_000), now=10 * SECOND + 7)
    assert table.deadline == 11 * SECOND + 7
    table.change(Pace.every(250), now=10 * SECOND + 9)
    assert table.deadline == 10 * SECOND + 250 * NANOSECONDS_PER_MS + 9
    table.take(10 * SECOND + 250 * NANOSECONDS_PER_MS + 9)
    table.change(AUTO, now=12 * SECOND)
    assert table.is_due(12 * SECOND)


@pytest.mark.parametrize("block_time_ms", [0, 9, -1_000, 3_600_001])
def test_pace_is_refused_when_its_interval_cannot_be(block_time_ms: int) -> None:
    """The message names the value and the range."""
    with pytest.raises(ConfigurationError, match=rf"every {block_time_ms} ms .* 10 ms to 3600000 ms"):
        Pace.every(block_time_ms)


def test_pace_is_refused_when_it_has_a_block_time_and_no_interval() -> None:
    """Manual has no time of its own."""
    with pytest.raises(ConfigurationError, match="the pace manual has no block time"):
        Pace(MANUAL.rhythm, 1_000)
