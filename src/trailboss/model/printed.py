"""What actors print: kept beside receipts for people, outside consensus. Decision: D-89."""

from typing import Final

import msgspec

LINES_MAX: Final = 100  # lines of one execution that are kept
CHARACTERS_MAX: Final = 8_192  # characters of one execution, and of one ``print``, that are kept
BLOCK_CHARACTERS_MAX: Final = 131_072  # characters of one block that are kept


class PrintedLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line that an actor printed, or a warning about what it did."""

    actor: bytes  # actor whose handler ran, 20 bytes
    handler: str
    text: str  # the line, without control characters
    is_warning: bool = False  # whether the chain emits it, not the actor


class Printing:
    """The printed lines of one execution, in order."""

    __slots__ = ("_is_cut", "_is_open", "_lines", "_room")

    def __init__(self) -> None:
        self._lines: list[PrintedLine] = []
        self._is_open = False
        self._room = CHARACTERS_MAX
        self._is_cut = False

    def write(self, actor: bytes, handler: str, text: str) -> None:
        """Add printed text; a line continues until it ends, or another handler prints."""
        kept = text[: self._room]
        self._room -= len(kept)
        self._is_cut = self._is_cut or len(kept) < len(text)
        *ended, rest = kept.split("\n")
        for piece in ended:
            self._add(actor, handler, piece)
            self._is_open = False
        if rest:
            self._add(actor, handler, rest)
            self._is_open = True

    def warn(self, actor: bytes, handler: str, text: str) -> None:
        """Add a warning, unless it is there already."""
        line = PrintedLine(actor, handler, text, is_warning=True)
        if line not in self._lines:
            self._lines.append(line)
            self._is_open = False

    def lines(self) -> tuple[PrintedLine, ...]:
        """Return the kept lines; the last one says if some are missing."""
        if not self._is_cut:
            return tuple(self._lines)
        last = self._lines[-1]
        words = f"(more is printed and not kept: {LINES_MAX} lines and {CHARACTERS_MAX:,} characters are the most)"
        return (*self._lines, PrintedLine(last.actor, last.handler, words))

    def _add(self, actor: bytes, handler: str, piece: str) -> None:
        last = self._lines[-1] if self._is_open else None
        if last is not None and (last.actor, last.handler) == (actor, handler):
            self._lines[-1] = PrintedLine(actor, handler, last.text + piece)
        elif len(self._lines) < LINES_MAX:
            self._lines.append(PrintedLine(actor, handler, piece))
        else:
            self._is_cut = True
