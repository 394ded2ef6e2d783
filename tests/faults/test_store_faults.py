"""A few of the many kills and damages that ``make crash`` runs; each in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.store_writer import log_lines

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("program", "last_words"),
    [
        (["tests.faults.crash", "--kills", "20", "--seed", "3"], "every reopen was right"),
        (["tests.faults.damage", "--cases", "150", "--seed", "3"], "none wrong"),
    ],
)
def test_store_holds_what_was_sealed_when_it_is_killed_or_damaged(program, last_words) -> None:
    """Every reopening gives the last sealed block or a refusal, never another state and never a crash."""
    finished = subprocess.run(
        [sys.executable, "-m", *program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert finished.returncode == 0, finished.stderr
    assert last_words in finished.stdout


def test_log_is_cut_at_its_last_whole_line_when_a_kill_has_torn_it(tmp_path: Path) -> None:
    """What the next writer notes must not stand behind a fragment."""
    log = tmp_path / "log"
    log.write_text("try 7 ab 1\ndone 7 ab 1\ntry 8 a", encoding="ascii")
    assert [(line.word, line.height) for line in log_lines(log)] == [("try", 7), ("done", 7)]
    assert log.read_text(encoding="ascii") == "try 7 ab 1\ndone 7 ab 1\n"
