"""The file of labels beside a chain: what commands and the explorer show, and no block holds.

Decision: D-121
"""

import json
from pathlib import Path
from typing import Final

from trailboss.primitives.errors import Rejection, StorageError
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.labels import LabelBook, id_text

LABELS_NAME: Final = "labels.json"
"""Its name in the directory of a chain."""
CORRECT: Final = 'correct it, as {"oracle": "0x…"}, or remove it'


def read_labels(path: Path) -> LabelBook:
    """Return the labels of a file, none if it is not there.

    Raises:
        StorageError: If it cannot be read, or is no JSON object of labels with addresses or ids of timers.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LabelBook()
    except (OSError, ValueError) as error:
        raise StorageError(path, f"the labels cannot be read: {error}", CORRECT) from None
    if not isinstance(document, dict):
        raise StorageError(path, "the labels are no JSON object", CORRECT)
    book = LabelBook()
    for name, text in document.items():
        try:
            book.set(_identity(text), name)
        except (Rejection, ValueError) as error:
            what = error.what if isinstance(error, Rejection) else str(error)
            raise StorageError(path, f"the label {name!r:.80} is none: {what}", CORRECT) from None
    return book


def write_labels(path: Path, book: LabelBook) -> None:
    """Write labels to a file, in place of what it held."""
    document = {name: id_text(identity) for identity, name in book}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


class LabelFile:
    """A file of labels that may change at any time; one that cannot be read is logged, and the labels stay."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises StorageError as `read_labels`."""
        self._path = path
        self._stamp, self._book = self.stamp(), read_labels(path)

    def stamp(self) -> int:
        """Return a number that another content changes; 0 without a file."""
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def book(self) -> LabelBook:
        """Return the labels."""
        stamp = self.stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._book = read_labels(self._path)
            except StorageError as error:
                import logging  # noqa: PLC0415  # for a damaged file alone

                logging.getLogger(__name__).warning("%s", error)
        return self._book


def _identity(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError(f"{text!r:.80} is no text of an address or id")
    digits = len(text) - len("0x")
    return Hash32.parse(text) if digits == 2 * Hash32.WIDTH else Address.parse(text)
