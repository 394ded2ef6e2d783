"""What a transaction asks for, decoded: in one line for lists, field by field for its own page."""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from trailboss.codec.canonical import decode_canonical
from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.documents import Content, Fact
from trailboss.explorer.text import visible
from trailboss.model.transactions import (
    CancelTimer,
    ExecuteActor,
    ExtendTimer,
    FundActor,
    Instruction,
    MoveTimer,
    SetBalance,
    SetGovParam,
    Transfer,
)
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address
from trailboss.views.text import WIDE, value_words

CODE_FIELDS: Final = ("code", "manifest")
"""Fields that may be long; their length says enough."""
AMOUNT_FIELDS: Final = ("amount",)
ID_FIELDS: Final = ("timer_id",)
DECODED_MAX: Final = 600
"""Characters of a decoded value that are shown."""
DECODED_BYTES_MAX: Final = 65_536
"""Bytes that are decoded; of more only the first are shown."""
SPACE: Final = cells.text(" ")


def instruction_line(instruction: Instruction, names: Names) -> Content:
    """Return an instruction in one line."""
    return cells.without_copy(_line(instruction, names))


def _line(instruction: Instruction, names: Names) -> Content:
    name = cells.text(instruction.name)
    match instruction:
        case ExecuteActor(actor, handler, _):
            return (*cells.text("calls "), *cells.said(handler, 60), *cells.text(" of "), *cells.address(actor, names))
        case Transfer(to, amount):
            return (*cells.text("sends "), *cells.money(amount), *cells.text(" to "), *cells.address(to, names))
        case FundActor(actor, amount):
            return (*cells.text("funds "), *cells.address(actor, names), *cells.text(" with "), *cells.money(amount))
        case CancelTimer(timer_id) | ExtendTimer(timer_id, _) | MoveTimer(timer_id, _):
            return (*name, *SPACE, *cells.timer(timer_id))
        case SetBalance(account, amount):
            return (*name, *SPACE, *cells.address(account, names), *SPACE, *cells.money(amount))
        case SetGovParam(key, value):
            return (*name, *cells.text(f" {decoded(key)} = {int.from_bytes(value, 'big'):,}"))
        case _:
            return name


def instruction_facts(instruction: Instruction, names: Names) -> Iterator[Fact]:
    """Yield the fields of an instruction."""
    yield Fact("Instruction", cells.text(instruction.name))
    for name in instruction.__struct_fields__:
        value = getattr(instruction, name)
        if value is not None:
            yield Fact(name.replace("_", " ").capitalize(), _field(name, value, names))


def _field(name: str, value: Any, names: Names) -> Content:
    if isinstance(value, Address):
        return cells.address(value, names)
    if isinstance(value, bytes):
        if name in ID_FIELDS:
            return cells.timer(value)
        return cells.text(f"{len(value):,} bytes") if name in CODE_FIELDS else payload(value)
    if isinstance(value, Struct):
        return cells.said(str(value))
    if isinstance(value, Enum):
        return cells.text(value.name.lower())
    if isinstance(value, int) and name in AMOUNT_FIELDS:
        return cells.money(value)
    return cells.said(value) if isinstance(value, str) else cells.text(f"{value:,}")


def payload(octets: bytes) -> Content:
    """Return bytes that an actor gets or gives: decoded if they are canonical CBOR of something, else as they are."""
    if not octets:
        return cells.text("empty", kind="dim")
    found = decoded(octets)
    raw = cells.octets(octets)
    return raw if found == raw[0].text else (*cells.text(found), *cells.text(f" ({len(octets):,} bytes)", kind="dim"))


def decoded(octets: bytes) -> str:
    """Return bytes in words: what they encode if that is a map, a list or text; else as text or digits."""
    try:
        value = decode_canonical(octets) if len(octets) <= DECODED_BYTES_MAX else None
    except Rejection:
        value = None
    # Almost any byte alone is canonical CBOR of some number, so a decoded number says nothing about what was meant.
    if isinstance(value, dict | list | str) and octets:
        return visible(value_words(value, WIDE), DECODED_MAX)
    return cells.octets(octets)[0].text
