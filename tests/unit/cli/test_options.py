"""Numbers as options read them, and the head of a table."""

import pytest
import typer
from typer.testing import CliRunner

from trailboss.cli.main import COMMANDS, app
from trailboss.cli.options import whole_number
from trailboss.cli.output import columns, shortened


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("5", 5), (3, 3), ("1_0", 10)])
def test_number_is_read_within_its_range(text: str | int, number: int) -> None:
    """Both ends included."""
    assert whole_number(1, 10)(text) == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "too small"),
        ("-1", "too small"),
        ("11", "too large"),
        ("x", "not a whole"),
        ("1.5", "not a whole"),
        ("9" * 5_000, "not a whole"),
    ],
)
def test_number_is_refused_outside_its_range(text: str, said: str) -> None:
    """The message repeats no more than a line of what was typed."""
    with pytest.raises(typer.BadParameter, match=said) as caught:
        whole_number(1, 10)(text)
    assert len(str(caught.value)) < 120


def test_number_has_no_upper_end_by_default() -> None:
    """What reads it further on may have one."""
    assert whole_number(0)(str(2**127)) == 2**127


def test_columns_are_read_from_the_head_of_a_table() -> None:
    """Alignment, least width, and what a narrow terminal leaves out."""
    found = columns("timer | >gas limit? | data/29 | >W/3?")
    assert [(each.title, each.right, each.extra, each.least) for each in found] == [
        ("timer", False, False, 0),
        ("gas limit", True, True, 0),
        ("data", False, False, 29),
        ("W", True, True, 3),
    ]


def test_numbers_are_shown_with_separators() -> None:
    """Text, such as a height, stays as it is."""
    assert shortened([12_345, "12345", None]) == ["12,345", "12345", "·"]


def test_help_of_the_program_lists_every_command_below_its_heading() -> None:
    """In the order of the list, with the whole summary."""
    said = " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output.split())
    places = [said.index(f"{entry.name} {entry.summary}") for entry in COMMANDS]
    assert places == sorted(places)
    for panel in {entry.panel for entry in COMMANDS}:
        assert f"{panel}: " in said
