"""WebAssembly binaries: numbers, sections, and the parts of a dynamic library that the linker needs.

Source: the WebAssembly core specification 2.0, chapter 5 (binary format), and the tool conventions' "DynamicLinking".
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from msgspec import Struct, field

from trailboss.primitives.errors import ConfigurationError

WASM: Final = b"\0asm"
MAGIC: Final = WASM + b"\1\0\0\0"
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)  # kinds of imports and exports
I32, I64, F32, F64 = 0x7F, 0x7E, 0x7D, 0x7C  # value types
SECTION_CUSTOM, SECTION_TYPES, SECTION_IMPORTS, SECTION_FUNCTIONS, SECTION_TABLES, SECTION_MEMORIES = range(6)
SECTION_GLOBALS, SECTION_EXPORTS, SECTION_START, SECTION_ELEMENTS, SECTION_CODE, SECTION_DATA, SECTION_DATA_COUNT = (
    range(6, 13)
)
END: Final = 0x0B
ADDRESS_SPACE: Final = 2**32
I32_CONST, I64_CONST, F32_CONST, F64_CONST, GLOBAL_GET, GLOBAL_SET, I32_ADD = 0x41, 0x42, 0x43, 0x44, 0x23, 0x24, 0x6A
_GROUP: Final = 7  # bits of a number in each byte of LEB128
_LOW_BITS, _MORE, _SIGN = 0x7F, 0x80, 0x40
_MEMORY_INFO: Final = 1  # subsection of ``dylink.0``: sizes of the library's memory and table
_TYPE_FORM: Final = 0x60
_HAS_MAXIMUM: Final = 1
_FLOAT_BYTES: Final = {F32_CONST: 4, F64_CONST: 8}
T = TypeVar("T")


def unsigned(number: int) -> bytes:
    """Return a number in LEB128."""
    octets = bytearray()
    while number > _LOW_BITS:
        octets.append(number & _LOW_BITS | _MORE)
        number >>= _GROUP
    octets.append(number)
    return bytes(octets)


def signed(number: int) -> bytes:
    """Return a signed number in LEB128."""
    octets = bytearray()
    while not -_SIGN <= number < _SIGN:
        octets.append(number & _LOW_BITS | _MORE)
        number >>= _GROUP
    octets.append(number & _LOW_BITS)
    return bytes(octets)


def address(number: int) -> bytes:
    """Return an unsigned 32-bit number as the operand of ``i32.const``."""
    return signed(number - ADDRESS_SPACE if number >= ADDRESS_SPACE // 2 else number)


def vector(items: Iterable[bytes]) -> bytes:
    """Return items with their number before them."""
    kept = list(items)
    return unsigned(len(kept)) + b"".join(kept)


def name(text: str) -> bytes:
    """Return a name."""
    octets = text.encode()
    return unsigned(len(octets)) + octets


def section(number: int, body: bytes) -> bytes:
    """Return a section of a module."""
    return bytes((number,)) + unsigned(len(body)) + body


class BinaryReader:
    """Reads a binary from a place onwards."""

    __slots__ = ("at", "octets")

    def __init__(self, octets: bytes, at: int = 0) -> None:
        self.octets = octets
        self.at = at

    def byte(self) -> int:
        """Read a byte."""
        self.at += 1
        return self.octets[self.at - 1]

    def unsigned(self) -> int:
        """Read a number."""
        number = shift = 0
        while True:
            octet = self.byte()
            number |= (octet & _LOW_BITS) << shift
            shift += _GROUP
            if octet < _MORE:
                return number

    def signed(self) -> int:
        """Read a signed number."""
        number = shift = 0
        while True:
            octet = self.byte()
            number |= (octet & _LOW_BITS) << shift
            shift += _GROUP
            if octet < _MORE:
                return number - (1 << shift) if octet & _SIGN else number

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        self.at += size
        return self.octets[self.at - size : self.at]

    def name(self) -> str:
        """Read a name."""
        return self.take(self.unsigned()).decode()

    def vector(self, read: Callable[[], T]) -> list[T]:
        """Read items with their number before them."""
        return [read() for _ in range(self.unsigned())]

    def limits(self) -> int:
        """Read the limits of a table or a memory; return the minimum."""
        flags, minimum = self.byte(), self.unsigned()
        if flags & _HAS_MAXIMUM:
            self.unsigned()
        return minimum


class Constant(Struct, frozen=True):
    """A constant expression: an operand of this kind, or the value of an imported global plus ``addend``."""

    kind: int  # I32_CONST, I64_CONST, F32_CONST or F64_CONST; GLOBAL_GET for a global
    number: int  # of a 32-bit constant, or the global's index
    octets: bytes = b""  # operand of any other constant
    addend: int = 0

    def encoded(self) -> bytes:
        """Return the expression in a module where every global is known."""
        operand = address(self.number) if self.kind == I32_CONST else self.octets
        return bytes((self.kind,)) + operand + bytes((END,))


class Import(Struct, frozen=True):
    """An import of a library."""

    module: str
    name: str
    kind: int
    type_index: int = 0  # of a function


class GlobalVariable(Struct, frozen=True):
    """A global of a module."""

    value_type: int
    is_mutable: bool
    first: Constant


class Segment(Struct, frozen=True):
    """A data segment; ``offset`` is None if the module's own code copies it."""

    offset: Constant | None
    octets: bytes


class DynamicLibrary(Struct):
    """A dynamic library, as far as linking needs it."""

    name: str
    octets: bytes
    types: list[bytes] = field(default_factory=list)  # encoded function types
    imports: list[Import] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)  # type of each function
    globals: list[GlobalVariable] = field(default_factory=list)
    exports: dict[str, tuple[int, int]] = field(default_factory=dict)  # kind and index
    elements: list[tuple[Constant, list[int]]] = field(default_factory=list)
    bodies: list[tuple[int, int]] = field(default_factory=list)  # first byte and end of each function's body
    segments: list[Segment] = field(default_factory=list)
    memory: tuple[int, int] = (0, 0)  # bytes, and log2 of their alignment
    table: tuple[int, int] = (0, 0)  # slots, and log2 of their alignment
    start: int | None = None

    def imported(self, kind: int) -> list[Import]:
        """Return the imports of one kind."""
        return [each for each in self.imports if each.kind == kind]


def read_library(library_name: str, octets: bytes) -> DynamicLibrary:
    """Return the parts of a dynamic library.

    Raises:
        ConfigurationError: If it is not a WebAssembly library that the linker understands.
    """
    if not octets.startswith(MAGIC):
        raise ConfigurationError(f"{library_name} is not a WebAssembly module")
    library = DynamicLibrary(library_name, octets)
    reader = BinaryReader(octets, len(MAGIC))
    while reader.at < len(octets):
        number, size = reader.byte(), reader.unsigned()
        end = reader.at + size
        _read_section(library, number, reader, end)
        reader.at = end
    return library


def _read_section(library: DynamicLibrary, number: int, reader: BinaryReader, end: int) -> None:
    if number == SECTION_CUSTOM:
        _read_custom(library, reader, end)
    elif number == SECTION_TYPES:
        library.types = reader.vector(lambda: _function_type(reader))
    elif number == SECTION_IMPORTS:
        library.imports = reader.vector(lambda: _import(reader))
    elif number == SECTION_FUNCTIONS:
        library.functions = reader.vector(reader.unsigned)
    elif number == SECTION_GLOBALS:
        library.globals = reader.vector(lambda: _global(reader))
    elif number == SECTION_EXPORTS:
        library.exports = dict(reader.vector(lambda: (reader.name(), (reader.byte(), reader.unsigned()))))
    elif number == SECTION_START:
        library.start = reader.unsigned()
    elif number == SECTION_ELEMENTS:
        library.elements = reader.vector(lambda: _elements(library, reader))
    elif number == SECTION_CODE:
        library.bodies = reader.vector(lambda: _body(reader))
    elif number == SECTION_DATA:
        library.segments = reader.vector(lambda: _segment(library, reader))
    elif number != SECTION_DATA_COUNT:
        raise ConfigurationError(f"{library.name} has a section {number}, which a dynamic library does not have")


def _read_custom(library: DynamicLibrary, reader: BinaryReader, end: int) -> None:
    if reader.name() != "dylink.0":
        return
    while reader.at < end:
        kind, size = reader.byte(), reader.unsigned()
        rest = reader.at + size
        if kind == _MEMORY_INFO:
            library.memory = (reader.unsigned(), reader.unsigned())
            library.table = (reader.unsigned(), reader.unsigned())
        reader.at = rest


def _function_type(reader: BinaryReader) -> bytes:
    first = reader.at
    if reader.byte() != _TYPE_FORM:
        raise ConfigurationError("a type is not a function's")
    reader.take(reader.unsigned())
    reader.take(reader.unsigned())
    return reader.octets[first : reader.at]


def _import(reader: BinaryReader) -> Import:
    module, field_name, kind = reader.name(), reader.name(), reader.byte()
    if kind == FUNCTION:
        return Import(module, field_name, kind, reader.unsigned())
    if kind == TABLE:
        reader.byte()
        reader.limits()
    elif kind == MEMORY:
        reader.limits()
    else:
        reader.take(2)
    return Import(module, field_name, kind)


def _global(reader: BinaryReader) -> GlobalVariable:
    value_type, is_mutable = reader.byte(), reader.byte() == 1
    return GlobalVariable(value_type, is_mutable, constant(reader))


def constant(reader: BinaryReader) -> Constant:
    """Read a constant expression."""
    kind, first = reader.byte(), reader.at
    number = addend = 0
    if kind == I32_CONST:
        number = reader.signed()
    elif kind == I64_CONST:
        reader.signed()
    elif kind in (F32_CONST, F64_CONST):
        reader.take(_FLOAT_BYTES[kind])
    elif kind == GLOBAL_GET:
        number = reader.unsigned()
    else:
        raise ConfigurationError(f"instruction {kind:#x} in a constant")
    octets = reader.octets[first : reader.at]
    if kind == GLOBAL_GET and reader.octets[reader.at] == I32_CONST:
        reader.byte()
        addend = reader.signed()
        if reader.byte() != I32_ADD:
            raise ConfigurationError("a constant does more than add to a global")
    if reader.byte() != END:
        raise ConfigurationError("a constant does not end where it should")
    return Constant(kind, number, octets, addend)


def _elements(library: DynamicLibrary, reader: BinaryReader) -> tuple[Constant, list[int]]:
    if reader.byte():
        raise ConfigurationError(f"{library.name} has elements of another kind than functions at an offset")
    return constant(reader), reader.vector(reader.unsigned)


def _body(reader: BinaryReader) -> tuple[int, int]:
    size = reader.unsigned()
    reader.take(size)
    return reader.at - size, reader.at


def _segment(library: DynamicLibrary, reader: BinaryReader) -> Segment:
    mode = reader.byte()
    if mode > 1:
        raise ConfigurationError(f"{library.name} has a data segment of mode {mode}")
    return Segment(constant(reader) if mode == 0 else None, reader.take(reader.unsigned()))
