"""Readers in other threads: each answer is of one height, nobody waits, and the writer goes on."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.unit.index.conftest import Open
from tests.unit.index.made import MadeChain, address
from tests.unit.index.oracle import Oracle
from trailboss.index import EventFilter, Index
from trailboss.primitives.errors import StorageError
from trailboss.views.timer_list import TimerFilter

BLOCKS = 60
READERS = 4


def long_chain() -> MadeChain:
    """Return a chain whose every block has something in it."""
    chain = MadeChain()
    for block in range(BLOCKS):
        chain.fire(range(5 * block - 5, 5 * block) if block else (), range(5 * block, 5 * block + 5), actors=2)
    return chain


def answers(index: Index, upto: int) -> tuple[object, ...]:
    """Return some answers of a height."""
    wanted = TimerFilter(state="fired", payer=address(1))
    return (
        index.totals(upto),
        index.events(EventFilter(address=address(0)), upto, newest_first=True),
        index.ended_timers(wanted, upto, limit=3),
        index.live_timers(wanted, upto),
        index.spend(address(1), upto),
        index.payers(upto),
    )


def test_answers_are_of_one_height_when_they_are_read_while_blocks_come(opened: Open) -> None:
    """Each is what it is when nothing else happens, although the index is ahead by some blocks."""
    chain = long_chain()
    index = opened(chain)
    expected = [answers(index, height) for height in range(BLOCKS + 1)]
    index.revert(0)
    published, is_over = [0], Event()

    def read(number: int) -> int:
        count = 0
        while not is_over.is_set() or count < 3:
            height = max(published[-1] - number, 0)
            assert answers(index, height) == expected[height]
            count += 1
        return count

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read, number) for number in range(READERS)]
        for height in range(1, BLOCKS, 3):
            index.apply(chain.blocks[height : height + 3])
            published.append(index.height)
        is_over.set()
        assert all(reader.result() >= 3 for reader in readers)
    assert index.totals(index.height) == Oracle(chain.blocks, ()).total(0, BLOCKS)


def test_writer_goes_on_when_a_reader_takes_its_time(opened: Open) -> None:
    """What the reader sees does not change meanwhile, even if it is taken back."""
    chain = long_chain()
    index = opened(chain)
    with index._file.reading() as connection:
        count = "SELECT count(*) FROM events"
        before = connection.execute(count).fetchone()
        index.revert(BLOCKS // 2)
        index.apply(chain.blocks[BLOCKS // 2 + 1 : BLOCKS // 2 + 3])
        assert connection.execute(count).fetchone() == before
    assert index.totals(BLOCKS) == index.totals(BLOCKS // 2 + 2)


def test_reader_that_is_on_its_way_ends_in_order_when_the_index_is_closed(opened: Open) -> None:
    """Its connection goes with it, and the next reader is told."""
    index = opened(long_chain())
    with index._file.reading() as connection:
        index.close()
        assert connection.execute("SELECT height FROM state").fetchone() == (BLOCKS,)
    with pytest.raises(StorageError, match="the index is closed"):
        index.totals(0)
