"""Findings stand where the source has something."""

from pathlib import Path

import pytest

from tests.golden.programs import PROGRAMS
from tests.hostile.corpus import all_programs
from trailboss.lint import LintTerms, lint_source
from trailboss.params import load_params

PARAMS = load_params("public")
ROOT = Path(__file__).resolve().parents[3]
SIZE_MAX = 4_000
"""Characters of a hostile program here: the large ones say nothing else, for longer."""


def test_columns_count_characters_and_definitions_end_with_their_line():
    """The parser counts bytes; a finding at a loop does not mark all that is in it."""
    source = "def handle_timer(payload):\r\n    'é'; pvm_host.schedule_timer(9, b'')  # é\r\n    return b''\r\n"
    first, second = lint_source(source.encode(), LintTerms(PARAMS))[:2]
    assert (first.rule, first.line, first.column, first.end_line, first.end_column) == ("TB005", 1, 1, 1, 27)
    assert (second.line, second.column) == (2, 10)


def test_places_lie_in_the_source_whatever_it_is():
    """Also in programs that attack whoever reads them; each is read to its end."""
    hostile = [program.source for program in all_programs().values() if len(program.source) < SIZE_MAX]
    examples = [path.read_text(encoding="utf-8") for path in (ROOT / "examples/actors").glob("*.py")]
    for source in [*hostile, *examples, *(text for text, _ in PROGRAMS.values())]:
        lines = source.encode(errors="surrogatepass").count(b"\n") + source.count("\r") + 1
        for each in lint_source(source.encode(errors="surrogatepass"), LintTerms(PARAMS)):
            assert 1 <= each.line <= each.end_line <= lines
            assert each.column >= 1
            assert (each.line, each.column) < (each.end_line, each.end_column)
            assert "\n" not in each.message


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_comments_are_read_whatever_ends_a_line(newline):
    """Python takes all three."""
    lines = [
        "# trailboss: ignore[TB005] anyone may",
        "def handle_timer(payload):",
        "    pvm_host.set_state(b'n', payload)",
        "",
    ]
    assert lint_source(newline.join(lines).encode(), LintTerms(PARAMS)) == []
