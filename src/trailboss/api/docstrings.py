"""Docstrings, and the comments beside fields and parameters, as the description of the API shows them."""

import re
from collections.abc import Callable
from inspect import cleandoc, getsource
from typing import Any, Final

from msgspec import Struct

SHARED: Final = {
    "height": "Height of the last block.",
    "total_count": "Number of all entries.",
    "more": "Whether there are further entries.",
}
"""Meanings of members that many answers have."""
_FIELD: Final = re.compile(r"    (\w+): .*?(?:  # (.*))?$")
_COMMENT: Final = re.compile(r"    # (.*)$")
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
        words = (field[2] or " ".join(above)) if field else ""
        if field and words:
            text = as_prose(words if words.startswith("`") else f"{words[0].upper()}{words[1:]}")
            found[field[1]] = text if text.endswith(".") else f"{text}."
        above = []
    return found


def operation_docs(run: Callable[..., Any]) -> tuple[str, str]:
    """Return the summary and the description that a function's docstring gives."""
    summary, _, description = cleandoc(run.__doc__ or "").partition("\n\n")
    return as_prose(summary), as_prose(description)


def parameter_comments(run: Callable[..., Any]) -> dict[str, str]:
    """Return the comments of a function's parameters, in the form of `field_comments`."""
    return field_comments(getsource(run).partition(") ->")[0])


def as_prose(text: str) -> str:
    """Return words of a docstring in one line, for readers of JSON.

    >>> as_prose("Height of the block; None for none. See `Block`. Spec: CIP-5 §3.1")
    'Height of the block; null for none. See Block.'
    """
    return " ".join(_NONE.sub("null", _MARKUP.sub("", _CITES.sub("", text))).split())
