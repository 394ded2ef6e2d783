"""Integers that JavaScript would round have their text beside them, and nothing else does."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trailboss.codec.exact import EXACT_MAX, with_texts, without_texts
from trailboss.views.json_values import to_json_value

INTEGERS = st.integers(-(2**130), 2**130) | st.sampled_from([EXACT_MAX, EXACT_MAX + 1, -EXACT_MAX, -EXACT_MAX - 1])
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PLAIN_NAMES = st.text("abc", max_size=2)  # none is that of a text


def values(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Generate what a document can hold, its objects with members of these names."""
    return st.recursive(
        INTEGERS | st.booleans() | st.none() | st.text(max_size=3) | st.binary(max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
        max_leaves=20,
    )


def lacking(document: Any, path: str = "$") -> list[str]:
    """Return the paths of the integers above 2⁵³ - 1 of a JSON value that have no text beside them.

    A reading of its own, as a client does it: every integer that JavaScript rounds is looked for by name and place.
    """
    found = []
    if isinstance(document, list):
        return [each for at, value in enumerate(document) for each in lacking(value, f"{path}[{at}]")]
    if isinstance(document, dict):
        for name, value in document.items():
            here = f"{path}.{name}"
            if differs(value, document.get(f"{name}_text")):
                found.append(here)
            found += lacking(value, here)
    return found


def differs(value: Any, text: Any) -> bool:
    """Return whether a value holds, itself or in its lists, a large integer that the text has not at the same place."""
    if type(value) is int:
        return abs(value) >= 2**53 and text != str(value)
    if isinstance(value, list):
        texts = text if isinstance(text, list) and len(text) == len(value) else [None] * len(value)
        return any(map(differs, value, texts))
    return False


@given(st.dictionaries(NAMES, values(NAMES), max_size=4))
def test_every_large_integer_has_its_text_whatever_the_document_is(members: dict[str, Any]) -> None:
    """After it has been written and read as JSON."""
    assert lacking(json.loads(json.dumps(to_json_value(members)))) == []


@given(st.dictionaries(PLAIN_NAMES, values(PLAIN_NAMES), max_size=4))
def test_document_is_as_before_when_its_texts_are_taken_out(members: dict[str, Any]) -> None:
    """To write it again changes nothing, and without the texts it is what it was."""
    once = to_json_value(members)
    assert to_json_value(once) == once
    assert without_texts(once) == json.loads(json.dumps(once), object_hook=_forget_texts)


def _forget_texts(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if not name.endswith("_text")}


def test_no_text_is_added_when_javascript_counts_that_far() -> None:
    """The shapes of the public node stay what they are."""
    assert to_json_value({"balance": EXACT_MAX, "loss": -EXACT_MAX}) == {"balance": EXACT_MAX, "loss": -EXACT_MAX}


def test_text_is_the_integers_when_another_member_has_its_name() -> None:
    """What stands under the name is what the rule says, or an actor could show one amount and mean another."""
    assert with_texts({"paid": 2**60, "paid_text": "5"})["paid_text"] == str(2**60)
