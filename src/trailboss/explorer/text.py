"""Values as people read them, and text of actors without anything that a browser would obey.

All that an actor chooses (its code, its storage, names of handlers, events and exceptions) passes through `visible`.
"""

from typing import Final

from trailboss.views import text
from trailboss.views.text import counted

HEAD_DIGITS: Final = 8  # digits that a shortened id keeps in front: as many as the command line shows
TAIL_DIGITS: Final = 6
TEXT_MAX: Final = 400  # characters of free text that a table or a list shows
BYTES_MAX: Final = 64  # bytes that a table or a list shows of something longer


def visible(words: str, limit: int = TEXT_MAX) -> str:
    r"""Return a text cut to a length, with escapes for what a browser would obey or hide.

    These are control characters, marks that turn the direction of writing, and characters of no width.

    >>> visible("a\u202eb\x1b[0m")
    'a\\u202eb\\x1b[0m'
    """
    cut = words if len(words) <= limit else f"{words[: limit - 1]}…"
    return text.visible(cut).replace("\n", "\\n")


def octet_words(octets: bytes, limit: int = BYTES_MAX) -> str:
    """Return bytes as people read them: the text if they are printable text, else 0x and the digits.

    >>> octet_words(b"price"), octet_words(bytes([0, 255])), octet_words(b"")
    ('price', '0x00ff', '0x')
    """
    found = text.words(octets[:limit])
    return found if len(octets) <= limit else f"{found}… ({len(octets):,} bytes)"


def shortened(words: str) -> str:
    """Return a long id cut in its middle.

    >>> shortened("0x" + "ab" * 20)
    '0xabababab…ababab'
    """
    head = 2 + HEAD_DIGITS
    return words if len(words) <= head + TAIL_DIGITS + 1 else f"{words[:head]}…{words[-TAIL_DIGITS:]}"


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
    percent = part * 100 // whole if whole else 0
    return "·" if not whole else "<1 %" if part and not percent else f"{percent} %"


def titled(words: str) -> str:
    """Return words with a capital first letter, and the others as they are.

    >>> titled("tip × W")
    'Tip × W'
    """
    return words[:1].upper() + words[1:]
