"""A few of the many kills of restorations that ``make crash`` runs; in a process of its own, which has no threads."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_killed_restoration_leaves_no_chain_or_the_whole_one() -> None:
    """After every kill the directory opens as the whole chain, or is refused as none and can be restored again."""
    command = [sys.executable, "-m", "tests.faults.restoration_kills", "--kills", "25", "--seed", "3"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("25 restorations")
