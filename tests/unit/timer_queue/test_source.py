"""The committed timers, read from a store."""

import pytest

from tests.model.timer_list import name
from trailboss.model.timers import RECORD_VERSION, Timer, decode_timer, encode_timer
from trailboss.primitives.units import U64_MAX, Cycles, Height
from trailboss.state.keys import timer_key
from trailboss.state.store import MemoryStore
from trailboss.timer_queue.source import StoredTimers, pending_of


def record(height: int, sequence: int) -> bytes:
    timer = Timer(
        version=RECORD_VERSION,
        actor=bytes(20),
        height=Height(height),
        timer_id=name(sequence),
        sequence=sequence,
        handler="tick",
        payload=b"",
        fee_payer=bytes(20),
        gas_limit=Cycles(1),
        access_limit=0,
        expires_at=Height(height),
        schedule_block=Height(0),
    )
    return encode_timer(timer)


def store_with(*heights: int) -> MemoryStore:
    store = MemoryStore()
    for sequence, height in enumerate(heights):
        store.commit(sequence, {timer_key(height, name(sequence)): record(height, sequence)})
    return store


@pytest.mark.spec("Q-03", "Q-09")
def test_scan_is_in_order_of_height_and_id_when_it_begins_anywhere() -> None:
    """The tree is ordered by height; a scan may begin inside a height."""
    heights = [9, 300, 9, U64_MAX, 9, 70_000]
    timers = StoredTimers(store_with(*heights))
    rows = sorted((height, name(sequence), sequence) for sequence, height in enumerate(heights))
    expected = [pending_of(decode_timer(record(height, sequence))) for height, _, sequence in rows]
    assert list(timers.scan(0)) == expected
    assert list(timers.scan(9, expected[1].timer_id)) == expected[1:]
    assert list(timers.scan(10)) == expected[3:]
    assert list(timers.scan(U64_MAX)) == expected[5:]


def test_counts_and_heights_follow_the_store_when_it_goes_back() -> None:
    """Nothing is remembered between calls."""
    store = store_with(9, 300, 9, U64_MAX)
    timers = StoredTimers(store)
    assert [timers.count_below(height) for height in (0, 9, 10, 301, U64_MAX, U64_MAX + 1)] == [0, 0, 2, 3, 3, 4]
    assert [timers.height_of(name(sequence)) for sequence in (1, 3, 4)] == [300, U64_MAX, None]
    store.revert(1)
    assert [timers.count_below(height) for height in (10, U64_MAX + 1)] == [1, 2]
    assert timers.height_of(name(3)) is None
    assert list(timers.scan(0)) == [pending_of(decode_timer(record(9, 0))), pending_of(decode_timer(record(300, 1)))]
