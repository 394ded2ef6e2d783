"""Machines find bugs that are planted into example actors, and write tests that fail alone; sound actors pass."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.integration.actor_machines import (
    PLANTS,
    CourierMachine,
    EscrowMachine,
    Plant,
    SubscriptionMachine,
    VestingMachine,
)
from trailboss.testing import ActorMachine, regression

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")]

STEPS = 50  # of one example
MINUTE = 240  # examples, of 12,000 steps: a minute at the least rate of 200 steps a second
CAMPAIGN = 40  # examples


@pytest.fixture(autouse=True)
def _unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests let fail is not listed at the end of their own run."""
    monkeypatch.setattr(regression, "WRITTEN", [])


def run(machine: type[ActorMachine], examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a machine for a fixed number of steps."""
    case = machine.TestCase
    chosen = settings(max_examples=examples, stateful_step_count=STEPS, database=None, deadline=None)
    monkeypatch.setattr(case, "settings", chosen)
    case("runTest").runTest()


def pytest_of(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one test in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PLANTS)
def test_machine_finds_a_planted_bug_and_writes_a_test_that_fails_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test fails on the planted actor by the same assertion, and passes on the sound one."""
    plant: Plant = PLANTS[name]
    sound = Path(str(plant.machine.source)).read_text(encoding="utf-8")
    assert sound.count(plant.sound) == 1
    actor = tmp_path / "actor.py"
    actor.write_text(sound.replace(plant.sound, plant.planted), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    planted = type(plant.machine.__name__, (plant.machine,), {"source": "actor.py", "regressions": "."})
    with pytest.raises(AssertionError) as failed:
        run(planted, MINUTE, monkeypatch)

    [note] = [each for each in failed.value.__notes__ if "test_regression_" in each]
    [path] = tmp_path.glob("test_regression_*.py")
    assert note == f"{path.name}: a test of this failure, which fails by itself until the bug is gone"
    text = path.read_text(encoding="utf-8")
    assert "hypothesis" not in text
    found = pytest_of(path, tmp_path)
    assert (found.returncode, "1 failed" in found.stdout) == (1, True), found.stdout
    assert "AssertionError" in found.stdout
    actor.write_text(sound, encoding="utf-8")
    assert pytest_of(path, tmp_path).returncode == 0


@pytest.mark.parametrize("machine", [SubscriptionMachine, EscrowMachine, VestingMachine, CourierMachine])
def test_sound_actor_passes_a_campaign(machine: type[ActorMachine], monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 steps of everything that a chain can do to it."""
    run(machine, CAMPAIGN, monkeypatch)
