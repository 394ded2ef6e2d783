"""Indexes that are closed when a test is over."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.index.made import MadeChain
from trailboss.index import Index

Open = Callable[..., Index]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where an index may be."""
    return tmp_path / "index.sqlite"


@pytest.fixture
def opened(path: Path) -> Iterator[Open]:
    """Return a function that opens an index of a chain at that place, closing the one before."""
    indexes: list[Index] = []

    def open_index(chain: MadeChain, progress: Callable[[int, int], object] | None = None) -> Index:
        for index in indexes:
            index.close()
        indexes.append(Index.open(path, chain, progress))  # type: ignore[arg-type]
        return indexes[-1]

    yield open_index
    for index in indexes:
        index.close()
