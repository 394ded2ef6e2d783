"""The supervisor of a network's nodes, with shell scripts as nodes."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.event_loop import on_loop
from trailboss.chain.opening import GenesisOptions
from trailboss.network import supervisor as supervision
from trailboss.network.halts import HALTED_STATUS
from trailboss.network.home import Home
from trailboss.network.supervisor import NodeState, Supervisor, end_words, last_words
from trailboss.network.testnet import NewHomes, Plan, add_node, create_testnet

DELAYS: Final = (0.01, 0.02, 0.03)
SLEEP: Final = "exec sleep 600"
SAYS: Final = """echo '{"event": "stops", "level": "error", "what": "%s"}' >&2; exit %d"""


@pytest.fixture
def homes(tmp_path: Path) -> list[Home]:
    """Return the homes of two validators."""
    plan = Plan(validators=2, genesis=GenesisOptions(vm="native"), seed="s")
    return create_testnet(tmp_path / "net", plan, 1_700_000_000_000)


class Scene:
    """A supervisor whose nodes are scripts: of each home one after the other, the last one again and again."""

    def __init__(self, scripts: Sequence[str], *others: Sequence[str]) -> None:
        self.scripts = [list(each) for each in (scripts, *others)]
        self.notes: list[str] = []
        self.stop = asyncio.Event()
        self.supervisor = Supervisor(self._command, self.notes.append, DELAYS)

    def _command(self, home: Home) -> list[str]:
        scripts = self.scripts[int(home.name.removeprefix("node"))]
        return ["sh", "-c", scripts.pop(0) if len(scripts) > 1 else scripts[0]]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is met."""
        while not condition():
            await asyncio.sleep(0.005)

    async def run(self, homes: Callable[[], Sequence[Home]], condition: Callable[[], object]) -> None:
        """Supervise until a condition is met, and then end."""
        running = asyncio.create_task(self.supervisor.run(homes, self.stop))
        waiting = asyncio.create_task(self.until(condition))
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        self.stop.set()
        await running
        waiting.cancel()


def once(homes: Sequence[Home]) -> Callable[[], list[Home]]:
    """Return what finds these homes, and then no more."""
    left = [list(homes)]
    return lambda: left.pop() if left else []


@on_loop
async def test_node_that_dies_is_started_again(homes: list[Home]) -> None:
    """With a longer pause each time, and with its last words; the other one is let alone."""
    dies = [SAYS % ("no luck", 1), "kill -9 $$", "exit 0", SLEEP]
    scene = Scene(dies, [SLEEP])
    find = once(homes)
    await scene.run(find, lambda: scene.supervisor.nodes and scene.supervisor.nodes[0].restarts == 3)
    first, second = scene.supervisor.nodes
    assert (first.restarts, second.restarts, second.reason) == (3, 0, "")
    ends = [note for note in scene.notes if "died" in note]
    assert ends == [
        "node0 has died, and is started again in 0.01 s: no luck (exit status 1)",
        "node0 has died, and is started again in 0.02 s: signal SIGKILL",
        "node0 has died, and is started again in 0.03 s: no luck (exit status 0)",
    ]
    assert (first.state, first.process_id) == (NodeState.ENDED, None)


@on_loop
async def test_node_that_halts_is_not_started_again(homes: list[Home]) -> None:
    """The others go on; when all have halted, there is nothing left to do."""
    scene = Scene([SAYS % ("other-genesis: a is not b", HALTED_STATUS), SLEEP], [SLEEP])
    await scene.run(
        once(homes), lambda: [n.state for n in scene.supervisor.nodes] == [NodeState.HALTED, NodeState.RUNS]
    )
    halted = scene.supervisor.nodes[0]
    assert halted.restarts == 0
    assert halted.reason == "other-genesis: a is not b (exit status 3)"
    assert scene.notes[-1].startswith("node0 has halted, and is not started again: other-genesis")
    alone = Scene([f"exit {HALTED_STATUS}"])
    await alone.supervisor.run(once(homes[:1]), alone.stop)
    assert [node.state for node in alone.supervisor.nodes] == [NodeState.HALTED]


@on_loop
async def test_steady_life_ends_a_row_of_deaths(homes: list[Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that dies once a day is not made to wait as one that dies at once."""
    monkeypatch.setattr(supervision, "STEADY_SECONDS", 0)
    scene = Scene(["exit 1"])
    await scene.run(once(homes[:1]), lambda: len(scene.notes) >= 6)
    assert {note for note in scene.notes if "died" in note} == {
        "node0 has died, and is started again in 0.01 s: exit status 1"
    }


@on_loop
async def test_node_that_does_not_end_is_killed(homes: list[Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """When all is stopped, a node is asked to end first; one process group is not ended with the terminal's."""
    monkeypatch.setattr(supervision, "END_SECONDS", 0.2)
    asked = homes[0].directory / "asked"
    deaf = f"trap 'touch {asked}' TERM; touch {homes[0].directory}/ready; while :; do sleep 0.01; done"
    scene = Scene([deaf], [SLEEP])
    processes: list[int] = []

    def is_ready() -> bool:
        processes[:] = [node.process_id for node in scene.supervisor.nodes if node.process_id is not None]
        return len(processes) == 2 and (homes[0].directory / "ready").exists()

    await scene.run(once(homes), is_ready)
    assert asked.exists()
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, 0)
            raise AssertionError(f"process {process} is still there")


@on_loop
async def test_no_node_outlives_a_supervisor_that_fails(homes: list[Home]) -> None:
    """Else it would hold its home and its ports, and nobody would know of it."""
    scene, others = Scene([SLEEP], [SLEEP]), asyncio.all_tasks()
    running = asyncio.create_task(scene.supervisor.run(once(homes), scene.stop))
    await scene.until(lambda: sum(node.process_id is not None for node in scene.supervisor.nodes) == 2)
    processes = [node.process_id for node in scene.supervisor.nodes]
    for task in asyncio.all_tasks() - others:
        # As a loop ends them when something else on it has failed.
        task.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await scene.until(lambda: not any(Path(f"/proc/{process}/cwd").exists() for process in processes))
    # Before it closes, the loop must know of their ends, which threads report where Python waits for processes in some.
    await scene.until(lambda: not any(thread.name.startswith("asyncio-waitpid") for thread in threading.enumerate()))
    await asyncio.sleep(0)


@on_loop
async def test_node_that_comes_later_is_started(homes: list[Home]) -> None:
    """One whose home cannot be read is reported once, and harms no other."""
    directory, looks = homes[0].directory.parent, []
    new_homes = NewHomes(directory)

    def find() -> list[Home]:
        looks.append(None)
        return new_homes()

    scene = Scene([SLEEP], [SLEEP], [SLEEP])
    running = asyncio.create_task(scene.supervisor.run(find, scene.stop))
    await scene.until(lambda: len(scene.supervisor.nodes) == 2)
    add_node(homes)
    await scene.until(lambda: len(scene.supervisor.nodes) == 3)
    directory.joinpath("node9").mkdir()
    directory.joinpath("node9/node.toml").write_text("name = 1")
    seen = len(looks)
    await scene.until(lambda: len(looks) >= seen + 3)
    scene.stop.set()
    await running
    bad = [note for note in scene.notes if "is not started" in note]
    assert len(bad) == 1
    assert "node9/node.toml" in bad[0]
    assert [node.state for node in scene.supervisor.nodes] == [NodeState.ENDED] * 3


def test_last_words_are_those_of_an_error(tmp_path: Path) -> None:
    """Of the log of a node, or of what the command line reports."""
    log = tmp_path / "node.log"
    assert last_words(log) == ""
    log.write_text('{"event": "block", "level": "info", "height": 3}\nplain\n{"half')
    assert last_words(log) == ""
    log.write_text('{"event": "stops", "level": "error", "what": "a"}\n{"event": "b", "level": "info"}\n[1]\n')
    assert last_words(log) == "a"
    log.write_text('{"event": "b", "level": "error"}\n')
    assert last_words(log) == "b"
    log.write_text('x\n{"error": {"what": "port 4000 is in use", "fix": "c"}}\n')
    assert end_words(1, log) == "port 4000 is in use (exit status 1)"
    assert end_words(-signal.SIGKILL, log) == "signal SIGKILL"
