"""The index answers what the blocks say, whatever way the chain has gone."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.auction_histories import auction_histories
from tests.model.globalbox_histories import globalbox_histories
from tests.model.histories import Call, History, histories
from tests.model.lane_histories import lane_histories
from tests.model.session import Session
from tests.unit.index.oracle import Oracle, compare
from trailboss.index import Index

HISTORIES = st.one_of(histories(), lane_histories(), auction_histories(), globalbox_histories())
BRANCHES = st.one_of(histories(blocks_max=6), lane_histories(blocks_max=6))
SHARE = settings.default.max_examples // 10
"""Whole chains, and everything that can be asked of them: slow examples."""


class IndexedSession(Session):
    """A history whose chain is followed by an index, block by block, back and forth."""

    def __init__(self, history: History, path: Path) -> None:
        super().__init__(history)
        self.path = path
        self.index = Index.open(path, self.chain)

    def build(self, calls: tuple[Call, ...]) -> None:
        """Build one block."""
        super().build(calls)
        self._follow()

    def idle(self, blocks: int) -> None:
        """Build blocks without transactions; the index gets them at once."""
        super().idle(blocks)
        self._follow()

    def branch(self, blocks: tuple[tuple[Call, ...] | int, ...], *, reopened: bool = False) -> None:
        """Build blocks and go back to before them."""
        super().branch(blocks, reopened=reopened)
        self.index.revert(self.chain.height)

    def _follow(self) -> None:
        self.index.apply(self.chain.blocks[self.index.height + 1 :])

    def open_again(self) -> None:
        """Close the index and open it."""
        self.index.close()
        self.index = Index.open(self.path, self.chain)

    def oracle(self, height: int) -> Oracle:
        """Return what the blocks up to a height say."""
        return Oracle(self.chain.blocks[: height + 1], self.chain.genesis.accounts)


@given(HISTORIES, BRANCHES, st.integers(0, 2**32), st.data())
@settings(max_examples=SHARE)
def test_index_answers_what_the_blocks_say_when_the_chain_goes_on_and_back(
    trunk: History, branch: History, seed: int, data: st.DataObject
) -> None:
    """At its height and at one below, after branches that were dropped, and opened again."""
    fork = data.draw(st.integers(1, len(trunk.blocks)))
    with TemporaryDirectory() as directory:
        session = IndexedSession(trunk, Path(directory) / "index.sqlite")
        try:
            session.play(trunk.blocks[:fork])
            session.branch(branch.blocks[1:])
            session.play(trunk.blocks[fork:])
            if data.draw(st.booleans()):
                session.open_again()
            compare(session.index, session.oracle(session.chain.height), Random(seed))
            below = data.draw(st.integers(0, session.chain.height))
            compare(session.index, session.oracle(below), Random(seed))
        finally:
            session.index.close()
