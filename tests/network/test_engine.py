"""The engine's process, with shell scripts as engines: what its lines mean, and how often it is started again."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.event_loop import on_loop
from trailboss.network import engine
from trailboss.network.engine import EngineProcess
from trailboss.network.halts import Halt, NetworkHaltError

DIFFERS: Final = 'err="wrong Block.Header.AppHash.  Expected AB, got CD"'
STAYS: Final = "exec sleep 600"


def process(script: str, folder: Path, height: Callable[[], int] = lambda: 7) -> EngineProcess:
    return EngineProcess(["sh", "-c", script], folder / "engine.log", height)


@pytest.mark.parametrize(
    ("line", "halt", "words"),
    [
        (f"module=blocksync {DIFFERS}", Halt.STATE_DIFFERS, "after block 7 the app hash .* Expected AB, got CD"),
        (f"CONSENSUS FAILURE!!! {DIFFERS}", Halt.STATE_DIFFERS, "after block 7 the app hash"),
        (
            f"CONSENSUS FAILURE!!! {DIFFERS.replace('AppHash', 'LastResultsHash')}",
            Halt.STATE_DIFFERS,
            "hash of the results",
        ),
        ("CONSENSUS FAILURE!!! err=other", Halt.ENGINE_STOPPED, "err=other"),
        ("CONSENSUS FAILURE!!! no space left on device", Halt.STORAGE, "no space left"),
        ("app block height (9) is higher than core (5)", Halt.HEIGHT_GAP, "is higher than core"),
    ],
)
@on_loop
async def test_line_after_which_it_cannot_go_on_halts_by_name(
    tmp_path: Path, line: str, halt: Halt, words: str
) -> None:
    """The process is ended, and its log has the line."""
    with pytest.raises(NetworkHaltError, match=words) as caught:
        await process(f"echo '{line}'; {STAYS}", tmp_path).run()
    assert caught.value.halt is halt
    assert (tmp_path / "engine.log").read_text() == f"{line}\n"


@on_loop
async def test_proposal_of_another_root_halts_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One validator alone can make such a proposal. Here the node halts because its engine ends again and again."""
    monkeypatch.setattr(engine, "AGAIN_SECONDS", (0.01, 0.01))
    running = process(f"echo 'module=consensus {DIFFERS}'; exit 4", tmp_path)
    with pytest.raises(
        NetworkHaltError, match="has ended 3 times without a block, the last time with status 4"
    ) as caught:
        await running.run()
    assert caught.value.halt is Halt.ENGINE_STOPPED
    assert running.restarts == 2


@on_loop
async def test_engine_that_comes_further_each_time_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends count only since the last block."""
    monkeypatch.setattr(engine, "AGAIN_SECONDS", (0.01,))
    heights = iter([1, 2, 2, 3, 3, 4, 4, 4])  # before and after each of its lives
    running = process("exit 0", tmp_path, lambda: next(heights))
    with pytest.raises(NetworkHaltError, match="has ended 2 times"):
        await running.run()
    assert running.restarts == 3


@on_loop
async def test_variables_cannot_give_it_another_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CMTHOME would win over what it is started with."""
    monkeypatch.setattr(engine, "AGAIN_SECONDS", ())
    for name in ("CMTHOME", "CMT_P2P_PEX", "TMHOME", "TM_X"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("OTHER", "kept")
    with pytest.raises(NetworkHaltError):
        await process("env", tmp_path).run()
    names = {line.partition("=")[0] for line in (tmp_path / "engine.log").read_text().splitlines()}
    assert "OTHER" in names
    assert names.isdisjoint({"CMTHOME", "CMT_P2P_PEX", "TMHOME", "TM_X"})
