"""Tables fit the terminal, and what is cut stays unique; a pipe cuts nothing."""

import json

import pytest

from trailboss.cli import output
from trailboss.cli.output import columns, console, print_json, print_pairs, print_table, shortened
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value
from trailboss.views.text import visible, words

IDS = [Hash32(bytes([7, 7, 7, 7, index, 9]) + bytes(26)) for index in range(3)]
ACTOR = Address(b"\xab" * 20)
COLUMNS = columns("id | who | >n | more? | text/10")
ROWS = [(each, ACTOR, index, "extra", "several words that may be wrapped") for index, each in enumerate(IDS)]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines on stdout."""
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_table_fits_when_the_terminal_has_so_many_columns(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is longer than the terminal is wide, and every id can be told from the others."""
    monkeypatch.setenv("COLUMNS", str(width))
    print_table("title", COLUMNS, ROWS)
    lines = printed(capsys)
    assert max(map(len, lines)) <= width
    found = [line.split()[0].rstrip("…") for line in lines if line.startswith("0x")]
    assert len(found) == len(set(found)) == 3
    assert all(str(each).startswith(cut) for each, cut in zip(IDS, found, strict=True))


def test_table_drops_extra_columns_only_when_there_is_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is extra goes first."""
    monkeypatch.setenv("COLUMNS", "60")
    print_table("title", COLUMNS, ROWS)
    assert "extra" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "44")
    print_table("title", COLUMNS, ROWS)
    assert "extra" not in capsys.readouterr().out


def test_table_is_whole_and_plain_when_it_is_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole ids, one line a row, no title, no lines, no blanks at the end."""
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table("title", COLUMNS, ROWS)
    heading, *lines = printed(capsys)
    assert heading.split() == ["id", "who", "n", "more", "text"]
    assert [line.split()[:3] for line in lines] == [[str(each), str(ACTOR), str(n)] for n, each in enumerate(IDS)]
    assert all(line == line.rstrip() for line in lines)


def test_ids_are_cut_to_the_digits_that_tell_them_apart() -> None:
    """Eight at least; equal ids need no more."""
    assert shortened([IDS[0]]) == ["0x07070707…"]
    assert shortened([IDS[0], IDS[1], IDS[0], None]) == ["0x0707070700…", "0x0707070701…", "0x0707070700…", "·"]
    assert shortened([IDS[0], ACTOR], frozenset({Hash32})) == [str(IDS[0]), f"{str(ACTOR)[:10]}…"]


def test_pairs_are_wrapped_below_their_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long value goes on below itself, and an id is never broken."""
    monkeypatch.setenv("COLUMNS", "50")
    print_pairs(console(), [("a", "short"), ("label", "words " * 10 + str(IDS[0]))])
    assert printed(capsys) == [
        "a      short",
        "label  words words words words words words words",
        "       words words words",
        f"       {IDS[0]}",
    ]


def test_json_has_ids_in_their_own_form_and_bytes_in_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys too; whole numbers stay whole."""
    print_json({b"\x01": b"\xff", "id": IDS[0], "who": ACTOR, "list": (1, None, True), "big": 2**100})
    assert json.loads(capsys.readouterr().out) == {
        "0x01": "0xff",
        "id": str(IDS[0]),
        "who": str(ACTOR),
        "list": [1, None, True],
        "big": 2**100,
        "big_text": str(2**100),
    }
    assert to_json_value(COLUMNS[3]) == {"key": "more", "title": "more", "kind": "text", "extra": True, "least": 0}


@pytest.mark.parametrize(
    ("octets", "shown"),
    [(b"", "0x"), (b"ten blinks", "ten blinks"), (b"\x00", "0x00"), ("é".encode(), "0xc3a9"), (b"a\nb", "0x610a62")],
)
def test_bytes_are_shown_as_text_only_when_they_are_plain_text(octets: bytes, shown: str) -> None:
    """Control characters never reach a terminal."""
    assert words(octets) == shown


@pytest.mark.parametrize("width", [30, 60, 80, 100, 140, 200, 1_000])
def test_table_is_the_same_when_it_is_printed_fast(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets the lines that rich makes, whatever the widths, the alignment and the letters."""
    rows = [*ROWS, (None, "日本", 10**9, "", "x"), (IDS[0], "", 5, "two words", "")]
    monkeypatch.setenv("COLUMNS", str(width))
    print_table("title", COLUMNS, rows)
    lines = printed(capsys)
    monkeypatch.setattr(output, "_plain_lines", lambda *_: [])
    print_table("title", COLUMNS, rows)
    assert lines == printed(capsys)


def test_control_characters_are_written_as_escapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actor's message cannot clear the screen, turn text around, or stop the program; line ends stay."""
    monkeypatch.setenv("COLUMNS", "80")
    assert visible("ü ☃\n'\"") == "ü ☃\n'\""
    assert visible("a\x1b[2J\t\x9b\u202e\udcff") == "a\\x1b[2J\\t\\x9b\\u202e\\udcff"
    print_pairs(console(), [("what", "\x1b[31mred")])
    print_table("", columns("handler"), [("\x1b[31mred",)])
    assert printed(capsys) == ["what  \\x1b[31mred", "handler", "\\x1b[31mred"]
