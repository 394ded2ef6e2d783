"""Labels, and the file that they are kept in."""

import logging
import os
from pathlib import Path

import pytest

from trailboss.primitives.errors import StorageError
from trailboss.views.label_file import LabelFile, read_labels, write_labels
from trailboss.views.labels import LabelBook

ORACLE, TIMER = b"\x77" * 20, b"\x78" * 32


def test_labels_replace_what_they_stand_for_in_a_text() -> None:
    """Whatever the case of its letters; longer digits and unknown ids stay."""
    book = LabelBook({ORACLE: "oracle", TIMER: "beat"})
    both = f"0x{ORACLE.hex()} 0x{TIMER.hex()} 0x{'aB' * 20} 0x{'78' * 33}"
    assert book.text(both).startswith("oracle (0x77777777…) beat (0x78787878…) 0xaBaB")
    assert (book.short(ORACLE), book.short(bytes(20))) == ("oracle (0x77777777…)", "0x00000000…")
    assert LabelBook().text(both) == both


def test_label_can_be_changed_and_is_found() -> None:
    """One label for one id."""
    book = LabelBook()
    book.set(ORACLE, "oracle")
    book.set(ORACLE, "price oracle")
    assert (book.find("oracle"), book.find("price oracle"), list(book)) == (None, ORACLE, [(ORACLE, "price oracle")])
    with pytest.raises(ValueError, match="'price oracle' is the label of 0x7777777777777777777777777777777777777777"):
        book.set(TIMER, "price oracle")
    assert (book.remove(ORACLE), book.remove(ORACLE)) == (True, False)


def test_file_gives_back_what_was_written(tmp_path: Path) -> None:
    """In any language."""
    book = LabelBook({ORACLE: "Börse", TIMER: "beat"})
    write_labels(tmp_path / "labels.json", book)
    assert list(read_labels(tmp_path / "labels.json")) == list(book)
    assert list(read_labels(tmp_path / "none.json")) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[", "cannot be read"),
        ("[]", "no JSON object"),
        ('{"a": 5}', "the label 'a' is none: 5 is no text"),
        ('{"a": "0x12"}', "the label 'a' is none: Address must be 40 hexadecimal digits"),
        (f'{{"": "0x{ORACLE.hex()}"}}', "must have 1 to 40 printable characters"),
        ('{"a": "0x7777777777777777777777777777777777777aB7"}', "checksum"),
    ],
)
def test_file_is_refused_with_its_path_and_the_label(tmp_path: Path, text: str, what: str) -> None:
    """Nothing is left out in silence."""
    path = tmp_path / "labels.json"
    path.write_text(text)
    with pytest.raises(StorageError, match=what) as caught:
        read_labels(path)
    assert str(path) in str(caught.value)


def test_file_is_read_again_when_it_has_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be read is logged, and the labels stay."""
    path = tmp_path / "labels.json"
    file = LabelFile(path)
    assert (file.stamp(), list(file.book())) == (0, [])
    for second, text in enumerate((f'{{"oracle": "0x{ORACLE.hex()}"}}', "damaged")):
        path.write_text(text)
        os.utime(path, (second + 1, second + 1))
        with caplog.at_level(logging.WARNING):
            assert list(file.book()) == [(ORACLE, "oracle")]
    assert "the labels cannot be read" in caplog.text
