"""Links WebAssembly dynamic libraries into one plain module.

What is position independent becomes constant: the bases of memory and table, and the addresses of symbols. A function
that no library defines becomes a trap. One mutable global remains, the stack pointer: a module's state is its memory.
Source: the tool conventions' "DynamicLinking".
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError
from trailboss.sandbox.image import wasm
from trailboss.sandbox.image.instructions import Renumbering, renumbered
from trailboss.sandbox.image.wasm import Constant, DynamicLibrary, GlobalVariable, Import

PAGE: Final = 65_536  # bytes of a page of WebAssembly's memory
INITIALIZERS: Final = ("__wasm_apply_data_relocs", "_initialize", "__wasm_call_ctors")
"""Functions that a library exports for its own start, in the order of their calls; no other library calls them."""
_TRAP: Final = b"\x00\x00\x0b"  # a body: no locals, ``unreachable``
ALIGNMENT_MIN: Final = 4  # log2
_FUNCTION_REFERENCE: Final = b"\x70"


class LinkedModule(Struct):
    """The module, in the parts of which its binary consists."""

    types: list[bytes]
    imports: list[tuple[str, str, int]]  # module, name and type
    functions: list[int]
    bodies: list[bytes]
    globals: list[GlobalVariable]
    table_slots: int
    elements: list[tuple[int, list[int]]]
    segments: list[tuple[int | None, bytes]]
    pages: int  # of memory at the start
    symbols: dict[str, int]  # exported functions of the libraries
    addresses: dict[str, int]  # exported data of the libraries
    starts: dict[str, int]  # start functions and `INITIALIZERS`, by library and name
    missing: list[str]  # symbols that no library defines

    def encoded(self, exports: Sequence[str], pages_max: int) -> bytes:
        """Return the binary; it exports its memory, its globals, these functions, and those of `starts`."""
        functions = {each: self.symbols[each] for each in exports} | self.starts
        exported = [wasm.name("memory") + bytes((wasm.MEMORY,)) + wasm.unsigned(0)]
        exported += [
            wasm.name(each) + bytes((wasm.FUNCTION,)) + wasm.unsigned(index) for each, index in functions.items()
        ]
        exported += [
            wasm.name(f"global{index}") + bytes((wasm.GLOBAL,)) + wasm.unsigned(index)
            for index, each in enumerate(self.globals)
            if each.is_mutable
        ]
        imports = (
            wasm.name(module) + wasm.name(field) + bytes((wasm.FUNCTION,)) + wasm.unsigned(kind)
            for module, field, kind in self.imports
        )
        slots = wasm.unsigned(self.table_slots)
        memory = b"\x01" + wasm.unsigned(self.pages) + wasm.unsigned(pages_max)
        variables = (bytes((each.value_type, each.is_mutable)) + each.first.encoded() for each in self.globals)
        elements = (
            b"\0" + Constant(wasm.I32_CONST, at).encoded() + wasm.vector(map(wasm.unsigned, functions))
            for at, functions in self.elements
        )
        segments = (
            (b"\x01" if at is None else b"\0" + Constant(wasm.I32_CONST, at).encoded())
            + wasm.unsigned(len(octets)) + octets
            for at, octets in self.segments
        )  # fmt: skip
        sections = (
            (wasm.SECTION_TYPES, wasm.vector(self.types)),
            (wasm.SECTION_IMPORTS, wasm.vector(imports)),
            (wasm.SECTION_FUNCTIONS, wasm.vector(map(wasm.unsigned, self.functions))),
            (wasm.SECTION_TABLES, wasm.vector([_FUNCTION_REFERENCE + b"\x01" + slots + slots])),
            (wasm.SECTION_MEMORIES, wasm.vector([memory])),
            (wasm.SECTION_GLOBALS, wasm.vector(variables)),
            (wasm.SECTION_EXPORTS, wasm.vector(exported)),
            (wasm.SECTION_ELEMENTS, wasm.vector(elements)),
            (wasm.SECTION_DATA_COUNT, wasm.unsigned(len(self.segments))),
            (wasm.SECTION_CODE, wasm.vector(wasm.unsigned(len(body)) + body for body in self.bodies)),
            (wasm.SECTION_DATA, wasm.vector(segments)),
        )
        return wasm.MAGIC + b"".join(wasm.section(number, body) for number, body in sections)


def link(
    libraries: Sequence[DynamicLibrary], host: Collection[tuple[str, str]], *, stack_bytes: int, heap_pages: int
) -> LinkedModule:
    """Link libraries; the first one that defines a name wins, for all of them.

    ``host`` are the imports, module and name, that stay imports. The stack lies first in memory, so that an overflow
    leaves memory instead of meeting data; then the libraries' data; then ``heap_pages`` pages.

    Raises:
        ConfigurationError: If a library needs what this linker does not do.
    """
    return _Linking(libraries, host, stack_bytes, heap_pages).run()


class _Linking:
    """One run of the linker."""

    def __init__(
        self, libraries: Sequence[DynamicLibrary], host: Collection[tuple[str, str]], stack_bytes: int, heap_pages: int
    ) -> None:
        self.libraries = libraries
        self.types: dict[bytes, int] = {}
        self.memory_bases: dict[str, int] = {}
        self.table_bases: dict[str, int] = {}
        self.table_slots = 1
        self.slots: dict[int, int] = {}  # table slot of each function whose address is taken
        self.traps: dict[int, int] = {}  # function index of the trap of each type
        self.missing: list[str] = []
        end = self._lay_out(stack_bytes)
        self.imports = self._host_imports(host)
        self.first_functions, self.functions = self._number_functions()
        self.symbols, self.addresses = self._collect_symbols()
        heap_base = _aligned(end, ALIGNMENT_MIN)
        self.pages = -(-heap_base // PAGE) + heap_pages
        self.addresses |= {
            "__heap_base": heap_base, "__heap_end": self.pages * PAGE,
            "__stack_high": stack_bytes, "__stack_low": 0,
        }  # fmt: skip
        self.globals = [GlobalVariable(wasm.I32, True, Constant(wasm.I32_CONST, stack_bytes))]  # the stack pointer
        self.bodies: list[bytes] = []
        self.elements: list[tuple[int, list[int]]] = []
        self.segments: list[tuple[int | None, bytes]] = []
        self.starts: dict[str, int] = {}

    def run(self) -> LinkedModule:
        for library in self.libraries:
            self._add(library)
        self.elements += [(slot, [function]) for function, slot in self.slots.items()]
        return LinkedModule(
            list(self.types),
            [(module, field, kind) for (module, field), kind in self.imports.items()],
            self.functions + list(self.traps),
            self.bodies + [_TRAP] * len(self.traps),
            self.globals,
            self.table_slots,
            self.elements,
            self.segments,
            self.pages,
            self.symbols,
            self.addresses,
            self.starts,
            self.missing,
        )

    def _lay_out(self, at: int) -> int:
        for library in self.libraries:
            (size, alignment), (slots, slot_alignment) = library.memory, library.table
            at = _aligned(at, max(alignment, ALIGNMENT_MIN))
            self.memory_bases[library.name] = at
            at += size
            self.table_slots = _aligned(self.table_slots, slot_alignment)
            self.table_bases[library.name] = self.table_slots
            self.table_slots += slots
        return at

    def _type(self, encoded: bytes) -> int:
        return self.types.setdefault(encoded, len(self.types))

    def _host_imports(self, host: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for library in self.libraries:
            for each in library.imported(wasm.FUNCTION):
                if (each.module, each.name) in host:
                    found.setdefault((each.module, each.name), self._type(library.types[each.type_index]))
        return found

    def _number_functions(self) -> tuple[dict[str, int], list[int]]:
        first: dict[str, int] = {}
        kinds: list[int] = []
        for library in self.libraries:
            first[library.name] = len(self.imports) + len(kinds)
            kinds += [self._type(library.types[each]) for each in library.functions]
        return first, kinds

    def _own_index(self, library: DynamicLibrary, index: int) -> int:
        """Return the index in the module of a function that a library defines; negative for one that it imports."""
        own = index - len(library.imported(wasm.FUNCTION))
        return self.first_functions[library.name] + own if own >= 0 else -1

    def _collect_symbols(self) -> tuple[dict[str, int], dict[str, int]]:
        symbols: dict[str, int] = {}
        addresses: dict[str, int] = {}
        for library in self.libraries:
            imported_globals = len(library.imported(wasm.GLOBAL))
            for symbol, (kind, index) in library.exports.items():
                if kind == wasm.FUNCTION and (own := self._own_index(library, index)) >= 0:
                    symbols.setdefault(symbol, own)
                elif kind == wasm.GLOBAL and index >= imported_globals:
                    first = library.globals[index - imported_globals].first
                    if first.kind == wasm.I32_CONST:
                        addresses.setdefault(symbol, self.memory_bases[library.name] + first.number)
        return symbols, addresses

    def _add(self, library: DynamicLibrary) -> None:
        functions = self._function_numbers(library)
        getters, setters, values = self._global_numbers(library)
        new = Renumbering(
            [self._type(each) for each in library.types],
            [wasm.unsigned(each) for each in functions],
            getters,
            setters,
            len(self.segments),
        )

        def value(constant: Constant) -> int:
            known = constant.number if constant.kind == wasm.I32_CONST else values[constant.number]
            if known is None:
                raise ConfigurationError(f"{library.name} places something at a variable address")
            return known + constant.addend

        self.bodies += [renumbered(library.octets, first, end, new) for first, end in library.bodies]
        self.elements += [(value(at), [functions[each] for each in members]) for at, members in library.elements]
        self.segments += [
            (None if each.offset is None else value(each.offset), each.octets) for each in library.segments
        ]
        if library.start is not None:
            self.starts[f"{library.name}:start"] = functions[library.start]
        for name in INITIALIZERS:
            kind, index = library.exports.get(name, (wasm.GLOBAL, 0))
            if kind == wasm.FUNCTION and (own := self._own_index(library, index)) >= 0:
                self.starts[f"{library.name}:{name}"] = own

    def _function_numbers(self, library: DynamicLibrary) -> list[int]:
        """Return the index in the module of each function of a library, imported ones first."""
        numbers = [self._resolved(library, each) for each in library.imported(wasm.FUNCTION)]
        imported, first = len(numbers), self.first_functions[library.name]
        numbers += range(first, first + len(library.functions))
        for symbol, (kind, index) in library.exports.items():
            # A name that an earlier library defines is that library's within this one too.
            is_shared = kind == wasm.FUNCTION and index >= imported and symbol not in INITIALIZERS
            if is_shared and self.symbols[symbol] < first:
                numbers[index] = self.symbols[symbol]
        return numbers

    def _resolved(self, library: DynamicLibrary, each: Import) -> int:
        if (each.module, each.name) in self.imports:
            return list(self.imports).index((each.module, each.name))
        for symbol in (each.name if each.module == "env" else "", f"{each.module}#{each.name}"):
            if symbol in self.symbols:
                return self.symbols[symbol]
        self.missing.append(f"{each.module}.{each.name}")
        kind = self._type(library.types[each.type_index])
        return self.traps.setdefault(kind, len(self.imports) + len(self.functions) + len(self.traps))

    def _global_numbers(self, library: DynamicLibrary) -> tuple[list[bytes], list[bytes | None], list[int | None]]:
        """Return, for each global, the instructions that read and write it, and its value if that is constant."""
        getters: list[bytes] = []
        setters: list[bytes | None] = []
        values: list[int | None] = []

        def add_constant(number: int) -> None:
            getters.append(bytes((wasm.I32_CONST,)) + wasm.address(number))
            setters.append(None)
            values.append(number)

        def add_variable(index: int, *, is_mutable: bool) -> None:
            getters.append(bytes((wasm.GLOBAL_GET,)) + wasm.unsigned(index))
            setters.append(bytes((wasm.GLOBAL_SET,)) + wasm.unsigned(index) if is_mutable else None)
            values.append(None)

        for each in library.imported(wasm.GLOBAL):
            if each.name == "__stack_pointer":
                add_variable(0, is_mutable=True)
            else:
                add_constant(self._address(library, each))
        for variable in library.globals:
            first = variable.first
            if variable.is_mutable or first.kind not in (wasm.I32_CONST, wasm.GLOBAL_GET):
                add_variable(len(self.globals), is_mutable=variable.is_mutable)
                self.globals.append(variable)
            elif first.kind == wasm.I32_CONST:
                add_constant(first.number)
            else:
                add_constant((values[first.number] or 0) + first.addend)
        return getters, setters, values

    def _address(self, library: DynamicLibrary, each: Import) -> int:
        match each.module, each.name:
            case "env", "__memory_base":
                return self.memory_bases[library.name]
            case "env", "__table_base":
                return self.table_bases[library.name]
            case "GOT.mem", symbol if symbol in self.addresses:
                return self.addresses[symbol]
            case "GOT.func", symbol if symbol in self.symbols:
                function = self.symbols[symbol]
                if function not in self.slots:
                    self.slots[function] = self.table_slots
                    self.table_slots += 1
                return self.slots[function]
        self.missing.append(f"{each.module}.{each.name}")
        return 0


def _aligned(number: int, log2: int) -> int:
    unit = 1 << log2
    return -(-number // unit) * unit
