"""Exports and chain directories: what comes out of one goes into another, whole or not at all."""

from pathlib import Path

import pytest

from tests.model.histories import history, seeded
from tests.model.lane_histories import lane_history
from tests.model.session import Session
from trailboss.chain.export import export_chain, import_chain, load_chain
from trailboss.chain.replay import compare_chains, verify_chain
from trailboss.model.blocks import Block
from trailboss.primitives.errors import StorageError
from trailboss.testing import LocalChain


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return the export of a chain in a directory, with transfers and idle blocks."""
    path = tmp_path / "export"
    with LocalChain(data_dir=tmp_path / "source") as local:
        for amount in range(1, 4):
            local.transfer(local.accounts[1], amount, sender=local.accounts[0])
            local.mine(1_100)
        export_chain(local.chain, path)
    return path


@pytest.mark.spec("F-83")
@pytest.mark.parametrize("seed", range(4))
def test_chain_is_the_same_when_exported_imported_and_opened_again(tmp_path: Path, seed: int) -> None:
    """In memory, in a directory, through a file: one chain, block for block, which verifies and does not part."""
    random_history = (lane_history if seed % 2 else history)(seeded(seed))
    session = Session(random_history)
    session.play(random_history.blocks)
    engine = session.chain.engine
    export_chain(session.chain, tmp_path / "one")
    imported = import_chain(tmp_path / "one", tmp_path / "chain", engine=engine)
    assert list(imported.blocks) == list(session.chain.blocks)
    imported.close()
    opened = load_chain(tmp_path / "chain", engine=engine)
    assert list(opened.blocks) == list(session.chain.blocks)
    assert opened.state_root == session.chain.state_root
    assert verify_chain(opened, engine=engine).ok
    assert compare_chains(opened, session.chain, engine=engine) is None
    export_chain(opened, tmp_path / "two")
    opened.close()
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_chain_goes_on_when_it_was_imported(exported: Path, tmp_path: Path) -> None:
    """The directory is a chain like any other, and a file loads into memory."""
    chain = import_chain(exported, tmp_path / "chain")
    list(chain.advance_to(chain.height + 5))
    head = chain.head
    chain.close()
    again = load_chain(tmp_path / "chain")
    assert again.head == head
    parting = compare_chains(again, load_chain(exported))
    assert parting is not None
    assert (parting.height, parting.differences[0].kind) == (head.height - 4, "length")
    again.close()


def test_directory_does_not_appear_when_the_import_fails(exported: Path, tmp_path: Path) -> None:
    """Stopped in the middle: no directory, and nothing left beside it."""
    before = sorted(tmp_path.iterdir())

    def stop(block: Block) -> None:
        if block.height == 1_500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_chain(exported, tmp_path / "chain", stop)
    assert sorted(tmp_path.iterdir()) == before


def test_import_is_refused_when_the_directory_is_there_or_cannot_be(exported: Path, tmp_path: Path) -> None:
    """Before anything is built; what is there stays."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    with pytest.raises(StorageError, match="taken: is there already"):
        import_chain(exported, tmp_path / "taken")
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["file"]
    with pytest.raises(StorageError, match="taken/file/chain: cannot be written: "):
        import_chain(exported, tmp_path / "taken" / "file" / "chain")


def test_chain_cannot_be_loaded_when_there_is_none(tmp_path: Path) -> None:
    """No file, and a directory without a chain."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(StorageError):
            load_chain(path)
