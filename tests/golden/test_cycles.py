"""The pinned cycle counts: the same on every supported Python, whatever the hash seed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.lives import ACTORS, LIVES
from tests.golden.measure import measure_all

ROOT = Path(__file__).resolve().parents[2]
PINNED = json.loads((ROOT / "tests" / "golden" / "cycles.json").read_text(encoding="utf-8"))
ADVICE = "if the change is meant: python -m tests.golden.measure > tests/golden/cycles.json"
OTHERS = ["3.11", "3.12", "3.13"]


@pytest.mark.spec("F-80")
@pytest.mark.determinism
def test_cycles_are_the_pinned_ones_on_this_interpreter():
    """Every construct, the SDK and the examples cost what they cost when they were pinned."""
    assert measure_all() == PINNED, ADVICE


def test_every_example_has_a_pinned_life():
    """A new example is measured as well."""
    assert sorted(LIVES) == sorted(path.stem for path in ACTORS.glob("*.py"))


@pytest.mark.spec("F-80")
@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_cycles_are_the_pinned_ones_on_every_supported_interpreter(version):
    """Each version measures in an environment of its own; ``make versions`` builds them."""
    python = ROOT / f".venv-{version}" / "bin" / "python"
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        python = Path(sys.executable)
    if not python.exists():
        pytest.skip(f"{python} is not there; make versions builds it")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "4242", "PYTHONOPTIMIZE": "1"}

    printed = subprocess.run(
        [python, "-m", "tests.golden.measure"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout

    assert json.loads(printed) == PINNED, ADVICE
