"""Records as JSON objects that people can read, and back: fields by name, bytes as ``0x`` text."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

_KIND: Final = "kind"
_HEX: Final = "0x"


def to_document(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as a JSON object; one that has a tag names it as its ``kind``."""
    tag = type(record).__struct_config__.tag
    kind = {} if tag is None else {_KIND: tag}
    return kind | {name: _show(getattr(record, name)) for name in record.__struct_fields__}


def from_document(document: object, expected: type[msgspec.Struct], kinds: Sequence[type[msgspec.Struct]]) -> Any:
    """Return the positional form of a JSON object, for ``msgspec.convert`` to check.

    Args:
        document: As ``json.loads`` returns it.
        expected: Type of the record that the whole document is to hold.
        kinds: Types of the records with a ``kind`` that may stand within.

    Raises:
        ValueError: If it is no object, a ``kind`` is unknown, a field is missing, or text is not hexadecimal.
        RecursionError: If it is nested too deep.
    """
    if not isinstance(document, dict):
        raise ValueError("expected an object")
    return _positional(document, expected, {each.__struct_config__.tag: each for each in kinds})


def _show(value: object) -> Any:
    if isinstance(value, bytes):
        return _HEX + value.hex()
    if isinstance(value, tuple):
        return [_show(each) for each in value]
    return to_document(value) if isinstance(value, msgspec.Struct) else value


def _read(value: object, kinds: dict[Any, type[msgspec.Struct]]) -> Any:
    if isinstance(value, str):
        if not value.startswith(_HEX):
            raise ValueError(f"{value!r:.80} does not begin with {_HEX}")
        return bytes.fromhex(value.removeprefix(_HEX))
    if isinstance(value, list):
        return [_read(each, kinds) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"unknown kind {kind!r:.80}")
    return [kind, *_positional(value, kinds[kind], kinds)]


def _positional(members: dict[Any, Any], record: type[msgspec.Struct], kinds: dict[Any, type[msgspec.Struct]]) -> Any:
    for name in record.__struct_fields__:
        if name not in members:
            raise ValueError(f"the field {name} is missing")
    return [_read(members[name], kinds) for name in record.__struct_fields__]
