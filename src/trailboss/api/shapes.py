"""What answers look like, for OpenAPI: JSON schemas of the records that are answered, written from the records.

A record's fields are the members of its JSON object, all of them always there, and its docstring tells what they mean.
`plain` writes what these schemas say; a test holds one to the other.

Decision: D-72
"""

import re
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from inspect import cleandoc
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from trailboss.codec.exact import SUFFIX
from trailboss.primitives.octets import Address, Hash32

Schema = Mapping[str, Any]
COMPONENTS: Final = "#/components/schemas/"
SIMPLE: Final[Mapping[object, Schema]] = {
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "pattern": "^0x([0-9a-f]{2})*$"},
    Address: {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
    Hash32: {"type": "string", "pattern": "^0x[0-9a-f]{64}$"},
    Any: {},
}
_MEMBER: Final = re.compile(r"^    (\w+): (.*(?:\n      .*)*)", re.MULTILINE)
_CITES: Final = re.compile(r"\s*(?:Spec|Decision|Source): .*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"``?")
_NONE: Final = re.compile(r"\bNone\b")


class Shape(Struct, frozen=True, eq=False):
    """A JSON object that no record stands for.

    Attributes:
        name: Of the component.
        schema: Its schema.
    """

    name: str
    schema: Schema


EXACT_TEXT: Final = Shape(
    "ExactText",
    {
        "description": "The integer of the member of that name in decimal digits, where it exceeds 2⁵³ - 1; of a list "
        "that holds one, the list with such text in place of its integers.",
        "anyOf": [{"type": "string", "pattern": "^-?[0-9]+$"}, {"type": "array"}],
    },
)


class Schemas:
    """The schemas of records, gathered as they are referred to.

    Attributes:
        components: By name.
    """

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {}
        self._kinds: dict[str, type] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type: of a record a reference to its component.

        Args:
            kind: A record, a simple type, a `Shape` or what is annotated with one, or what is made of
                them: lists, tuples, mappings, optional ones.

        Raises:
            TypeError: For a type that has no JSON, and for two records of one name.
        """
        if kind in SIMPLE:
            return dict(SIMPLE[kind])
        if isinstance(kind, Shape):
            is_object = "properties" in kind.schema
            self.components[kind.name] = self.with_texts(kind.schema) if is_object else dict(kind.schema)
            return {"$ref": COMPONENTS + kind.name}
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.of(arguments[1])
        if origin in (Union, types.UnionType):
            return self._one_of(arguments)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is not None:
            return self._gathered(kind, origin, arguments)
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._record(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"type": "string", "enum": [each.value for each in kind]}
        raise TypeError(f"{kind!r} has no schema")

    def _one_of(self, arguments: Sequence[Any]) -> dict[str, Any]:
        found = [self.of(each) for each in arguments]
        if all(set(each) == {"type"} for each in found):
            return {"type": [each["type"] for each in found]}
        return {"anyOf": found}

    def _gathered(self, kind: Any, origin: Any, arguments: Sequence[Any]) -> dict[str, Any]:
        if origin is tuple and arguments[1:] != (Ellipsis,):
            items = [self.of(each) for each in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if issubclass(origin, Mapping):
            return self.with_texts({"type": "object", "additionalProperties": self.of(arguments[1])})
        if issubclass(origin, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        raise TypeError(f"{kind!r} has no schema")

    def _record(self, kind: type) -> dict[str, Any]:
        name = kind.__name__
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"two records have the name {name}: {kind} and {self._kinds[name]}")
        if name not in self.components:
            # A record may hold others of its own kind.
            self.components[name] = {}
            self.components[name] = self._described(kind)
        return {"$ref": COMPONENTS + name}

    def _described(self, kind: Any) -> dict[str, Any]:
        hints = get_type_hints(kind, include_extras=True)
        summary, members = documentation(kind)
        properties = {}
        for each in fields(kind):
            about = members.get(each.name)
            schema = self.of(hints[each.name])
            properties[each.name] = schema | ({"description": about} if about else {})
        return self.with_texts(
            {
                "type": "object",
                "description": summary,
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        )

    def with_texts(self, schema: Schema) -> dict[str, Any]:
        """Return the schema of an object that also holds the texts of its large integers.

        Decision: D-97
        """
        self.components[EXACT_TEXT.name] = dict(EXACT_TEXT.schema)
        return {**schema, "patternProperties": {f"{SUFFIX}$": {"$ref": COMPONENTS + EXACT_TEXT.name}}}


def documentation(kind: type) -> tuple[str, dict[str, str]]:
    """Return what a record's docstring says of it and of each field, of those of its bases too."""
    text = cleandoc(kind.__doc__ or "")
    members: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        below = cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2]
        members |= {name: as_prose(about) for name, about in _MEMBER.findall(below)}
    return as_prose(text.split("\n\n")[0]), members


def as_prose(text: str) -> str:
    """Return words of a docstring in one line as a reader of JSON needs them.

    >>> as_prose("Height of the block; None for none. See `Block`. Spec: CIP-5 §3.1")
    'Height of the block; null for none. See Block.'
    """
    return " ".join(_NONE.sub("null", _MARKUP.sub("", _CITES.sub("", text))).split())
