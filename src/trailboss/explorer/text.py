"""Values as people read them, and text of actors without anything that a browser would obey.

All that an actor chooses (its code, its storage, names of handlers, events and exceptions) passes through `visible`.
"""

from typing import Final

from trailboss.primitives.units import U64_MAX
from trailboss.views import text as views_text
from trailboss.views.text import counted

HEAD_DIGITS: Final = 8
"""Digits that a shortened id keeps in front: as many as the command line shows."""
TAIL_DIGITS: Final = 6
TEXT_MAX: Final = 400
"""Characters of free text that a table or a list shows."""
BYTES_MAX: Final = 64
"""Bytes that a table or a list shows of something longer."""


def visible(text: str, limit: int = TEXT_MAX) -> str:
    r"""Return a text without anything that a browser would obey or hide, and cut to a length.

    Control characters, marks that turn the direction of writing, and characters of no width are written as escapes.

    >>> visible("a\u202eb\x1b[0m")
    'a\\u202eb\\x1b[0m'
    """
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return views_text.visible(cut).replace("\n", "\\n")


def words(octets: bytes, limit: int = BYTES_MAX) -> str:
    """Return bytes as people read them: the text if they are printable text, else 0x and the digits.

    >>> words(b"price"), words(bytes([0, 255])), words(b"")
    ('price', '0x00ff', '0x')
    """
    found = views_text.words(octets[:limit])
    return found if len(octets) <= limit else f"{found}… ({len(octets):,} bytes)"


def shortened(text: str) -> str:
    """Return a long id cut in its middle.

    >>> shortened("0x" + "ab" * 20)
    '0xabababab…ababab'
    """
    kept = 2 + HEAD_DIGITS + TAIL_DIGITS
    return text if len(text) <= kept + 1 else f"{text[: 2 + HEAD_DIGITS]}…{text[-TAIL_DIGITS:]}"


def height_words(height: int) -> str:
    """Return a height; the greatest of all stands for never."""
    return "never" if height == U64_MAX else str(height)


def blocks_words(blocks: int) -> str:
    """Return how far ahead, or back, a height lies.

    >>> blocks_words(1), blocks_words(0), blocks_words(-3)
    ('in 1 block', 'in this block', '3 blocks ago')
    """
    if blocks == 0:
        return "in this block"
    return f"in {counted(blocks, 'block')}" if blocks > 0 else f"{counted(-blocks, 'block')} ago"


def share_words(part: int, whole: int) -> str:
    """Return a part in percent; nothing of nothing is no share.

    >>> share_words(1, 3), share_words(1, 1_000_000), share_words(5, 0)
    ('33 %', '<1 %', '·')
    """
    if not whole:
        return "·"
    percent = part * 100 // whole
    return "<1 %" if part and not percent else f"{percent} %"


def titled(words: str) -> str:
    """Return words with a capital first letter, and the others as they are.

    >>> titled("tip × W")
    'Tip × W'
    """
    return words[:1].upper() + words[1:]
