"""Positional records as JSON objects: fields by name, bytes as ``0x`` text, a tagged record with its ``kind``."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

KIND: Final = "kind"
_HEX: Final = "0x"


def to_document(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as a JSON object; a tagged one names its tag as its ``kind``."""
    tag = type(record).__struct_config__.tag
    kind = {} if tag is None else {KIND: tag}
    return kind | {name: _show(getattr(record, name)) for name in record.__struct_fields__}


def to_positions(members: object, record: type[msgspec.Struct], kinds: Mapping[Any, type[msgspec.Struct]]) -> list[Any]:
    """Return the positional form of a JSON object as ``json.loads`` returns it, for ``msgspec.convert`` to check.

    Args:
        members: The object, of which nothing is known.
        record: What it is to be.
        kinds: Tagged records that may lie within it, by their tags.

    Raises:
        ValueError: If it is no object, lacks a field, or has a text that is not ``0x`` and digits.
    """
    if not isinstance(members, dict):
        raise ValueError("expected an object")
    for name in record.__struct_fields__:
        if name not in members:
            raise ValueError(f"the field {name} is missing")
    return [_read(members[name], kinds) for name in record.__struct_fields__]


def _show(value: object) -> Any:
    if isinstance(value, bytes):
        return _HEX + value.hex()
    if isinstance(value, tuple):
        return [_show(each) for each in value]
    return to_document(value) if isinstance(value, msgspec.Struct) else value


def _read(value: object, kinds: Mapping[Any, type[msgspec.Struct]]) -> Any:
    if isinstance(value, str):
        if not value.startswith(_HEX):
            raise ValueError(f"{value!r:.80} does not begin with {_HEX}")
        return bytes.fromhex(value.removeprefix(_HEX))
    if isinstance(value, list):
        return [_read(each, kinds) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(KIND)
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"unknown kind {kind!r:.80}")
    return [kind, *to_positions(value, kinds[kind], kinds)]
