"""A chain that goes on from a snapshot is the chain that built all blocks, under every mechanism."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.auction_histories import auction_histories
from tests.model.globalbox_histories import globalbox_histories
from tests.model.histories import History, histories
from tests.model.lane_histories import lane_histories
from tests.model.session import SETTINGS, Session
from trailboss.chain import Chain, snapshots
from trailboss.chain.snapshots import Restoration, SnapshotShelf
from trailboss.state import parts

SHARE = settings.default.max_examples * 2 // 10
"""Every example syncs a disk some dozen times."""
TRUNKS = st.one_of(
    histories(blocks_max=10),
    lane_histories(blocks_max=10),
    auction_histories(blocks_max=10),
    globalbox_histories(blocks_max=10),
)
SIZES = ((1, 1), (200, 500), (2_000, 2_000), (parts.PART_OCTETS, snapshots.CHUNK_OCTETS))
"""Most bytes of a part and of a chunk."""


@pytest.mark.spec("Q-05", "F-80", "F-83")
@given(TRUNKS, st.sampled_from(SIZES), st.data())
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_a_chain_goes_on_from_a_snapshot(
    trunk: History, sizes: tuple[int, int], data: st.DataObject
) -> None:
    """Reads, roots, blocks, fires, fees and ranks after it are those of the model and of the chain from genesis.

    The chunks are read while the chain goes on, and come in any order.
    """
    straight = Session(trunk)
    straight.play(trunk.blocks)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_OCTETS", sizes[0])
        patch.setattr(snapshots, "CHUNK_OCTETS", sizes[1])
        joining = Session(trunk, Path(folder, "origin"))
        fork = data.draw(st.integers(1, len(trunk.blocks)))
        joining.play(trunk.blocks[:fork])
        origin, shelf = joining.chain, SnapshotShelf(1)
        view = origin.publish()
        snapshot = shelf.take(view)
        list(origin.advance_to(origin.height + 3))
        restoration = Restoration(Path(folder, "joined"), origin.genesis, snapshot, view.head.hash)
        for index in data.draw(st.permutations(range(snapshot.chunks))):
            restoration.accept(index, shelf.chunk(snapshot.height, snapshot.format, index))
        restoration.finish()
        joining.chain = joined = Chain.open(Path(folder, "joined"), origin.engine, settings=SETTINGS)
        assert (joined.height, joined.state_root, joined.head.header) == (
            view.height,
            view.state_root,
            view.head.header,
        )
        joined.check_invariants()
        assert SnapshotShelf(1).take(joined.publish()) == snapshot
        joining.play(trunk.blocks[fork:])
        assert joining.hashes == straight.hashes
        assert list(joined.blocks)[1:] == list(straight.chain.blocks)[view.height + 1 :]
        joined.close()
        with Chain.open(Path(folder, "joined"), origin.engine, settings=SETTINGS) as again:
            assert (again.blocks.base, again.head.hash) == (view.height, straight.chain.head.hash)
        origin.close()
