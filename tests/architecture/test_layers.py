"""Imports only point down."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of ``pyproject.toml`` in ``folder``."""
    command = [str(LINTER), "--no-cache", "--no-logo"]
    environment = {"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_contracts_hold() -> None:
    """Every package imports only what lies below it."""
    finished = lint(ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("module", "line", "contracts"),
    [
        ("primitives/units.py", "import trailboss.model", ["Imports only point down"]),
        ("governance/apply.py", "import trailboss.execution", ["Imports only point down"]),
        ("simulator/comparison.py", "import trailboss.testing", ["Imports only point down"]),
        ("execution/block.py", "import time", ["The core reads no clock"]),
        ("mechanisms/base.py", "import trailboss.mechanisms.fifo", ["The mechanisms do not know one another"]),
        ("mechanisms/auction.py", "import trailboss.mechanisms.fifo", ["The mechanisms do not know one another"]),
        ("vm/rules.py", "import trailboss.state.keys", ["Programs and mechanisms see values"]),
        (
            "state/keys.py",
            "import trailboss.state.slots",
            ["Proofs are verified without a store", "Light proofs are verified without a store"],
        ),
        ("light/commits.py", "import trailboss.state.slots", ["Light proofs are verified without a store"]),
        ("sdk.py", "import trailboss.primitives.units", ["Imports only point down"]),
        ("stray/__init__.py", "", ["Imports only point down"]),
    ],
)
def test_contract_breaks_when_a_fault_is_planted(tmp_path: Path, module: str, line: str, contracts: list[str]) -> None:
    """Each forbidden import is found, and so is a package that stands in no layer."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    planted = tmp_path / "src/trailboss" / module
    planted.parent.mkdir(exist_ok=True)
    with planted.open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    finished = lint(tmp_path)
    assert finished.returncode == 1
    broken = [row for row in finished.stdout.splitlines() if "BROKEN" in row]
    assert [row.startswith(each) for row, each in zip(broken, contracts, strict=True)] == [True] * len(contracts)
