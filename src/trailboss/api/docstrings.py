"""Docstrings, and the comments beside fields, as the description of the API shows them."""

import re
from inspect import cleandoc, getsource
from typing import Final

from msgspec import Struct

SHARED: Final = {
    "height": "Height of the last block.",
    "total_count": "Number of all entries.",
    "more": "Whether there are further entries.",
}
"""Meanings of members that many answers have."""
_FIELD: Final = re.compile(r"    (\w+): .*?(?:  # (.*))?$")
_COMMENT: Final = re.compile(r"    # (.*)$")
_MEMBER: Final = re.compile(r"^    (\w+): (.*(?:\n      .*)*)", re.MULTILINE)
_CITES: Final = re.compile(r"\s*(?:Spec|Decision|Source): .*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"``?")
_NONE: Final = re.compile(r"\bNone\b")


def documentation(kind: type) -> tuple[str, dict[str, str]]:
    """Return what a record's docstring says of it, and what comments say of its fields; `SHARED` has the rest."""
    members: dict[str, str] = dict(SHARED)
    for base in reversed(kind.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            members |= field_comments(getsource(base))
    return as_prose(cleandoc(kind.__doc__ or "").split("\n\n")[0]), members


def field_comments(source: str) -> dict[str, str]:
    r"""Return the comments of a record's fields: behind each of them, or in whole lines above it.

    >>> field_comments("class A(Struct):\n    size: int  # in bytes\n    # The owner.\n    owner: bytes")
    {'size': 'In bytes.', 'owner': 'The owner.'}
    """
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        comment, field = _COMMENT.match(line), _FIELD.match(line)
        if comment:
            above.append(comment[1])
            continue
        text = as_prose((field[2] or " ".join(above)) if field else "")
        if field and text:
            found[field[1]] = f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
        above = []
    return found


def operation_docs(text: str) -> tuple[str, str, dict[str, str]]:
    """Return the summary, the description and the meanings of the parameters that a function's docstring gives."""
    about, _, below = cleandoc(text).partition("\n\nTakes:\n")
    summary, _, description = about.partition("\n\n")
    return as_prose(summary), as_prose(description), {name: as_prose(each) for name, each in _MEMBER.findall(below)}


def as_prose(text: str) -> str:
    """Return words of a docstring in one line, for readers of JSON.

    >>> as_prose("Height of the block; None for none. See `Block`. Spec: CIP-5 §3.1")
    'Height of the block; null for none. See Block.'
    """
    return " ".join(_NONE.sub("null", _MARKUP.sub("", _CITES.sub("", text))).split())
