"""Every query of a reader goes through an index of SQLite, whatever it asks for."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from sqlite3 import Connection

import pytest

from tests.unit.index.conftest import Open
from tests.unit.index.made import MadeChain, address, timer_id
from tests.unit.index.oracle import Oracle, compare
from tests.unit.index.test_index import busy_chain
from trailboss.index.files import IndexFile
from trailboss.views.timer_list import TimerFilter

HARMLESS = re.compile(r"SCAN (CONSTANT ROW|state|line|\(subquery-\d+\))")
"""One row that is given, the one row of the table of the index itself, and what another query has just found."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return what all connections that are made from now on are asked, values filled in."""
    queries: set[str] = set()
    connect: Callable[[IndexFile], Connection] = IndexFile._connect

    def traced(file: IndexFile) -> Connection:
        connection = connect(file)
        connection.set_trace_callback(queries.add)
        return connection

    monkeypatch.setattr(IndexFile, "_connect", traced)
    return queries


def plan(path: Path, query: str) -> list[str]:
    """Return the steps in which SQLite answers a query."""
    connection = sqlite3.connect(path)
    try:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    finally:
        connection.close()


def test_no_query_scans_a_table_that_grows(path: Path, opened: Open, asked: set[str]) -> None:
    """Of all that is asked while everything is compared, at the head and below it."""
    chain = busy_chain()
    index = opened(chain)
    asked.clear()
    for height in (chain.height, 3):
        for seed in range(3):
            compare(index, Oracle(chain.blocks[: height + 1], chain.genesis.accounts), Random(seed))
    queries = {query for query in asked if query.lstrip().startswith(("SELECT", "WITH"))}
    assert len(queries) > 100
    for query in queries:
        steps = plan(path, query)
        scans = [step for step in steps if step.startswith("SCAN") and not HARMLESS.fullmatch(step)]
        # What a row that is given is called in a query.
        assert len(scans) <= steps.count("SCAN CONSTANT ROW"), (query, steps)
        assert set(scans) <= {"SCAN here"}, (query, steps)


def test_work_of_a_page_does_not_grow_with_the_lists(path: Path, opened: Open, asked: set[str]) -> None:
    """A first page takes the same steps of SQLite's machine with 100 and with 3,000 ended timers, and so do counts."""
    chain, steps = MadeChain(), []
    chain.fire((), range(100))
    chain.fire(range(100), range(100, 200), actors=1)
    index = opened(chain)

    def work() -> int:
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1

        with index._file.reading() as connection:
            connection.set_progress_handler(count, 10)
        for wanted in (TimerFilter(state="fired"), TimerFilter(state="all", actor=address(0))):
            assert index.ended_timers(wanted, chain.height, limit=5).items
        index.lineage(timer_id(150), chain.height)
        index.totals(chain.height)
        with index._file.reading() as connection:
            connection.set_progress_handler(None, 0)
        return counted

    steps.append(work())
    for block in range(29):
        first = 100 + 100 * block
        index.apply([chain.fire(range(first, first + 100), range(first + 100, first + 200), actors=1)])
    steps.append(work())
    assert steps[1] < 1.5 * steps[0]
