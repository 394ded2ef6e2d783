"""A few of the many kills of sandboxes that ``make crash`` runs; in a process of its own, which has no threads yet."""

import subprocess
import sys
from pathlib import Path

import pytest

from trailboss.sandbox import cache

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not cache.is_built(), reason="the sandbox is not built: run make sandbox")
def test_chain_and_cache_are_whole_after_kills() -> None:
    """Five kills within blocks, frames and restores, and five within the ahead-of-time build."""
    command = [sys.executable, "-m", "tests.faults.sandbox_kills", "--kills", "5", "--seed", "3"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert finished.returncode == 0, finished.stderr
    assert "every one opened and verified" in finished.stdout
    assert "every next one ran a frame" in finished.stdout
