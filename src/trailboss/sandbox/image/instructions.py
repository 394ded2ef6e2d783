"""Renumbers what the instructions of a function's body refer to: types, functions, globals, data segments.

No instruction is added or removed, but that reading a global whose value is known becomes a constant.
Source: the WebAssembly core specification 2.0, §5.4 (instructions).
"""

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError
from trailboss.sandbox.image.wasm import GLOBAL_GET, BinaryReader, signed, unsigned


class OperandForm(IntEnum):
    """What follows an instruction's code."""

    NONE = auto()
    BLOCK = auto()
    NUMBER = auto()
    CALL = auto()
    INDIRECT = auto()
    GLOBAL = auto()
    ADDRESS = auto()
    FLOAT = auto()
    DOUBLE = auto()
    BRANCHES = auto()
    TYPES = auto()
    PAGES = auto()
    HEAP = auto()
    BULK = auto()
    VECTOR = auto()


_MORE: Final = 0x80
_VALUE_TYPE: Final = 0x40  # of a block's type: it is a value type or empty, in one byte
_SECOND_MEMORY: Final = 0x40  # flag of an address that names its memory
_FORMS: Final = (
    (OperandForm.NONE, (0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, 0xD1, *range(0x45, 0xC5))),
    (OperandForm.BLOCK, (0x02, 0x03, 0x04)),
    (OperandForm.NUMBER, (0x0C, 0x0D, 0x20, 0x21, 0x22, 0x41, 0x42)),
    (OperandForm.BRANCHES, (0x0E,)),
    (OperandForm.CALL, (0x10, 0x12, 0xD2)),
    (OperandForm.INDIRECT, (0x11, 0x13)),
    (OperandForm.TYPES, (0x1C,)),
    (OperandForm.GLOBAL, (0x23, 0x24)),
    (OperandForm.ADDRESS, tuple(range(0x28, 0x3F))),
    (OperandForm.PAGES, (0x3F, 0x40)),
    (OperandForm.FLOAT, (0x43,)),
    (OperandForm.DOUBLE, (0x44,)),
    (OperandForm.HEAP, (0xD0,)),
    (OperandForm.BULK, (0xFC,)),
    (OperandForm.VECTOR, (0xFD,)),
)
_FORM: Final = {code: form for form, codes in _FORMS for code in codes}
_OPERANDS: Final = tuple(int(_FORM.get(code, 0)) for code in range(256))  # form of the operands, by instruction
_CONVERSIONS_END, _MEMORY_INIT, _DATA_DROP, _MEMORY_COPY, _MEMORY_FILL = 8, 8, 9, 10, 11  # of 0xFC
_V128_LOADS_END, _V128_CONST, _SHUFFLE = 11, 12, 13  # of 0xFD
_V128_LOAD_ZERO: Final = (92, 93)
_V128_LANES: Final = range(21, 35)
_V128_LANE_MEMORY: Final = range(84, 92)
_V128_WIDTH: Final = 16


class Renumbering(Struct, frozen=True):
    """What a library's numbers become in the module."""

    types: Sequence[int]
    functions: Sequence[bytes]  # encoded
    getters: Sequence[bytes]  # the whole instruction that reads each global
    setters: Sequence[bytes | None]  # the whole instruction that writes it; None for a constant
    first_segment: int


def renumbered(octets: bytes, first: int, end: int, new: Renumbering) -> bytes:
    """Return one body with every reference renumbered.

    Raises:
        ConfigurationError: For an instruction that a library of CPython does not have.
    """
    reader = BinaryReader(octets, first)
    for _ in range(reader.unsigned()):  # groups of locals
        reader.unsigned()
        reader.byte()
    written: list[bytes] = []
    kept, at = first, reader.at
    operands, none, number = _OPERANDS, int(OperandForm.NONE), int(OperandForm.NUMBER)
    while at < end:
        form = operands[octets[at]]
        if form == none:
            at += 1
        elif form == number:
            at += 1
            while octets[at] >= _MORE:
                at += 1
            at += 1
        else:
            reader.at = at + 1
            replacement, start = _operands(form, reader, new)
            if replacement is not None:
                written += (octets[kept:start], replacement)
                kept = reader.at
            at = reader.at
    if at != end:
        raise ConfigurationError("a function's body ends within an instruction")
    return b"".join((*written, octets[kept:end]))


def _operands(form: int, reader: BinaryReader, new: Renumbering) -> tuple[bytes | None, int]:
    """Read the operands of an instruction; return what replaces them from a place on, or None if they stay."""
    at = reader.at
    code = reader.octets[at - 1]
    match form:
        case OperandForm.CALL:
            return new.functions[reader.unsigned()], at
        case OperandForm.INDIRECT:
            return unsigned(new.types[reader.unsigned()]), at
        case OperandForm.GLOBAL:
            number = reader.unsigned()
            instruction = new.getters[number] if code == GLOBAL_GET else new.setters[number]
            if instruction is None:
                raise ConfigurationError(f"a function writes the constant global {number}")
            return instruction, at - 1
        case OperandForm.BLOCK if reader.octets[at] & 0xC0 != _VALUE_TYPE:
            return signed(new.types[reader.signed()]), at
        case OperandForm.BULK:
            return _bulk(reader, new)
    _skip(form, reader)
    return None, at


def _bulk(reader: BinaryReader, new: Renumbering) -> tuple[bytes | None, int]:
    code = reader.unsigned()
    at = reader.at
    if code in (_MEMORY_INIT, _DATA_DROP):
        return unsigned(reader.unsigned() + new.first_segment), at
    if code not in (*range(_CONVERSIONS_END), _MEMORY_COPY, _MEMORY_FILL):
        raise ConfigurationError(f"instruction 0xFC {code}, which changes a table")
    reader.take({_MEMORY_COPY: 2, _MEMORY_FILL: 1}.get(code, 0))
    return None, at


def _skip(form: int, reader: BinaryReader) -> None:
    match form:
        case OperandForm.BLOCK:  # of a value type
            reader.byte()
        case OperandForm.ADDRESS:
            if reader.unsigned() & _SECOND_MEMORY:
                raise ConfigurationError("an instruction names a second memory")
            reader.unsigned()
        case OperandForm.FLOAT:
            reader.take(4)
        case OperandForm.DOUBLE:
            reader.take(8)
        case OperandForm.BRANCHES:
            for _ in range(reader.unsigned() + 1):
                reader.unsigned()
        case OperandForm.TYPES:
            reader.take(reader.unsigned())
        case OperandForm.PAGES | OperandForm.HEAP:
            reader.byte()
        case OperandForm.VECTOR:
            _skip_vector(reader)
        case _:
            raise ConfigurationError(f"unknown instruction {reader.octets[reader.at - 1]:#x}")


def _skip_vector(reader: BinaryReader) -> None:
    code = reader.unsigned()
    if code <= _V128_LOADS_END or code in _V128_LOAD_ZERO or code in _V128_LANE_MEMORY:
        reader.unsigned()
        reader.unsigned()
        reader.take(1 if code in _V128_LANE_MEMORY else 0)
    elif code in (_V128_CONST, _SHUFFLE):
        reader.take(_V128_WIDTH)
    elif code in _V128_LANES:
        reader.byte()
