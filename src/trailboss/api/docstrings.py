"""Docstrings as the description of the API shows them."""

import re
from inspect import cleandoc
from typing import Final

SHARED: Final = {
    "height": "Height of the last block.",
    "total_count": "Number of all entries.",
    "more": "Whether there are further entries.",
}
"""Meanings of members that many answers have."""
_MEMBER: Final = re.compile(r"^    (\w+): (.*(?:\n      .*)*)", re.MULTILINE)
_CITES: Final = re.compile(r"\s*(?:Spec|Decision|Source): .*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"``?")
_NONE: Final = re.compile(r"\bNone\b")


def documentation(kind: type) -> tuple[str, dict[str, str]]:
    """Return what the docstrings of a record and of its bases say of it, and of each field; `SHARED` has the rest."""
    text = cleandoc(kind.__doc__ or "")
    members: dict[str, str] = dict(SHARED)
    for base in reversed(kind.__mro__):
        below = cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2]
        members |= {name: as_prose(about) for name, about in _MEMBER.findall(below)}
    return as_prose(text.split("\n\n")[0]), members


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
