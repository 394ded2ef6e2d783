"""What people read is pinned in one file, so that a change of a sentence is reviewed as one."""

from pathlib import Path

from tools.wording import WORDING, wording

ROOT = Path(__file__).resolve().parents[2]


def test_sentences_are_those_of_the_file() -> None:
    """`make reference` writes the file again; the diff is what a reviewer reads."""
    assert wording(ROOT / "src/trailboss") == (ROOT / WORDING).read_text(encoding="utf-8")
