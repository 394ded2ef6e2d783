"""Integers in JSON that JavaScript would round, with their text beside them.

JavaScript numbers are exact up to 2⁵³ - 1. If the member ``balance`` is a larger integer, the object also has
``balance_text``, the same number in decimal digits. A list that holds such an integer gets a list of texts beside it.

Decision: D-97
"""

from typing import Any, Final

EXACT_MAX: Final = 2**53 - 1  # largest integer that JavaScript represents exactly with all smaller ones
SUFFIX: Final = "_text"


def with_texts(members: dict[str, Any]) -> dict[str, Any]:
    """Add to the members of a JSON object the texts of the integers that JavaScript would round.

    An existing member of a text's name is replaced.

    >>> with_texts({"height": 7, "balance": 2**53, "bids": [1, 2**64]})["bids_text"]
    ['1', '18446744073709551616']
    """
    rounded = []
    for name, value in members.items():
        # Without a call for each: every answer comes through here, member by member.
        kind = type(value)
        if (kind is int and not -EXACT_MAX <= value <= EXACT_MAX) or (kind is list and _is_rounded(value)):
            rounded.append(name)
    if not rounded:
        return members
    texts = {name + SUFFIX: _text(members[name]) for name in rounded}
    found: dict[str, Any] = {}
    for name, value in members.items():
        if name not in texts:
            found[name] = value
        if name in rounded:
            found[name + SUFFIX] = texts[name + SUFFIX]
    return found


def without_texts(document: Any) -> Any:
    """Return a JSON value without the texts that `with_texts` adds.

    >>> without_texts({"subject": {"last": 2**53, "last_text": "9007199254740992", "name_text": "x"}})
    {'subject': {'last': 9007199254740992, 'name_text': 'x'}}
    """
    if isinstance(document, list):
        return list(map(without_texts, document))
    if not isinstance(document, dict):
        return document
    texts = {name + SUFFIX for name, value in document.items() if _is_rounded(value)}
    return {name: without_texts(value) for name, value in document.items() if name not in texts}


def _is_rounded(value: object) -> bool:
    if type(value) is int:
        return not -EXACT_MAX <= value <= EXACT_MAX
    if type(value) is not list:
        return False
    kinds = set(map(type, value))
    if kinds == {int}:
        # Byte strings of transactions are long lists of small numbers.
        return bool(max(value) > EXACT_MAX or min(value) < -EXACT_MAX)
    return (int in kinds or list in kinds) and any(map(_is_rounded, value))


def _text(value: Any) -> Any:
    if type(value) is int:
        return str(value)
    return list(map(_text, value)) if type(value) is list else value
