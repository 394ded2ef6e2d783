"""What every test may use: the spec marker, Hypothesis profiles, and runs under several hash seeds."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# What the command line starts runs on the native engine unless a test names another, whatever this machine has.
os.environ["TRAILBOSS_VM"] = "native"
pytest_plugins = ["pytester", "tools.spec_plugin"]

# No deadline: a machine that is busy with something else must not fail a test.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("thorough", settings.get_profile("house"), max_examples=2_000)
settings.load_profile("house")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what a failure needs to be repeated."""
    seeds = f"PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')} --hypothesis-seed="
    terminalreporter.write_line(f"repeat with: {seeds}{config.getoption('--hypothesis-seed')}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all laws under a second hash seed too."""
    for item in items:
        if "property" in item.path.parts:
            item.add_marker(pytest.mark.determinism)


@pytest.fixture
def output_under_hash_seed() -> Callable[[str, int], str]:
    """Return a function that runs a program in a fresh Python under a given PYTHONHASHSEED, and returns its output.

    A test compares the outputs of one program under different seeds; a program that fails fails the test.
    """

    def run(program: str, seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", program]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run
