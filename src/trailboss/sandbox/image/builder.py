"""Builds the image: links CPython, boots it with constants, loads the engine and the SDK, and keeps the memory.

Nothing that differs between machines reaches the guest: clock, entropy, files, environment and hash seed are constants.
So the same sources give the same image everywhere, and its digest can be stated.
"""

import struct
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

import wasmtime
from msgspec import Struct, structs

import trailboss
from trailboss.primitives.errors import ConfigurationError, InvariantError
from trailboss.sandbox.guest_layout import DEFINITION_BYTES, DEFINITIONS_AT, FUNCTIONS, METER_AT
from trailboss.sandbox.image import wasm
from trailboss.sandbox.image.image import Image, image_params
from trailboss.sandbox.image.linker import ALIGNMENT_MIN, INITIALIZERS, PAGE, LinkedModule, link
from trailboss.sandbox.image.parts import Parts, read_parts
from trailboss.sandbox.machine import COMPILE_MEMORY_BYTES_MAX, Machine
from trailboss.sandbox.stage import WASM_STACK_BYTES
from trailboss.sandbox.wasmtime_library import Compiler
from trailboss.vm.guest_api import HOST_CALLS
from trailboss.vm.sdk_source import sdk_module_names, sdk_text

STACK_BYTES: Final = 2 << 20
"""The guest's own stack. CPython ends a recursion when it is used up, long before the machine's stack is."""
HEAP_PAGES: Final = 416
"""Pages behind the libraries' data: 15 MiB for the engine, and 8 MiB in which frames need no more memory, for a machine
whose memory has grown is not used again."""
GROUPS: Final = ("source", "limits", "costs")
"""Groups of the parameters that the guest's engine reads; the first one's prices are those of the image."""
HOLE_BYTES_MAX: Final = 65_536  # free memory in one piece that the image keeps
_FROZEN: Final = ("encodings", "encodings.aliases", "encodings.utf_8")
"""What CPython imports before it can read a source: compiled in the guest itself, by a first boot."""
_SETTINGS: Final = {
    "use_environment": 0, "site_import": 0, "use_hash_seed": 1, "hash_seed": 0, "install_signal_handlers": 0,
    "write_bytecode": 0, "user_site_directory": 0, "utf8_mode": 1, "configure_locale": 0, "parse_argv": 0,
    "pathconfig_warnings": 0,
}  # fmt: skip
_PATHS: Final = """program_name executable base_executable prefix exec_prefix base_prefix base_exec_prefix platlibdir
    stdlib_dir"""
_EXPORTS: Final = """malloc PyInitConfig_Create PyInitConfig_SetInt PyInitConfig_SetStr PyInitConfig_SetStrList
    PyInitConfig_GetError Py_InitializeFromInitConfig Py_CompileString PyMarshal_WriteObjectToString PyBytes_AsString
    PyBytes_Size PyRun_SimpleString PyImport_AddModule PyObject_SetAttrString PyObject_GetAttrString glue_base
    glue_fill glue_function glue_handler run"""
_FILE_INPUT: Final = 257  # Py_file_input
_MARSHAL: Final = 5
_FROZEN_ROW: Final = struct.Struct("<IIii")  # struct _frozen
_POINTER: Final = struct.Struct("<I")
_MESSAGE_BYTES: Final = 200
_BOOT_FUEL: Final = 1 << 60
_REPORT: Final = b"!"  # what a message of the guest's begins with, during a build; any other request is a module's name
_FINDER: Final = """
import sys, _frozen_importlib
class Finder:
    def find_spec(self, name, path=None, target=None):
        answer = host_call(name.encode())
        if not answer:
            return None
        spec = _frozen_importlib.ModuleSpec(name, self, origin="<image>", is_package=answer[0] == 1)
        spec.loader_state = answer[1:]
        return spec
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        spec = module.__spec__
        text, spec.loader_state = spec.loader_state, None
        exec(compile(text, f"<{spec.name}>", "exec", dont_inherit=True, optimize=0), module.__dict__)
    def get_source(self, name):
        return None
sys.meta_path.append(Finder())
sys.path[:] = []
"""
_CAREFULLY: Final = """
try:
    from trailboss.sandbox.guest import boot
    {statement}
except BaseException:
    import traceback
    host_call(b"!" + traceback.format_exc().encode())
    raise
"""


def build_image(optimization: str = "none", report: Callable[[str], None] = lambda _: None) -> Image:
    """Build the image; ``report`` gets a line for each step.

    Raises:
        ConfigurationError: If a part is missing, or the guest does not start.
    """
    report("reading CPython's libraries")
    parts = read_parts()
    report("linking")
    linked = link_guest(parts)
    module = linked.encoded(_EXPORTS.split(), COMPILE_MEMORY_BYTES_MAX // PAGE)
    report("compiling the module")
    compiler = Compiler(WASM_STACK_BYTES, optimization)
    loaded = compiler.load(compiler.compile(module))
    report("booting")
    frozen = _frozen_modules(_Boot(compiler, loaded, linked, parts))
    boot = _Boot(compiler, loaded, linked, parts)
    boot.initialize(frozen)
    report("loading the engine and the SDK")
    boot.load_engine()
    if boot.machine.present_size() != boot.machine.size:
        raise InvariantError("the engine does not fit the memory that the image begins with: raise HEAP_PAGES")
    memory = boot.machine.read(0, boot.machine.size)
    boot.machine.close()
    return Image(module, memory)


def link_guest(parts: Parts) -> LinkedModule:
    """Link the guest's module: our glue first, so that what it defines wins."""
    source = files("trailboss.sandbox.image").joinpath("glue.wat").read_text()
    glue = wasm.read_library("glue", bytes(wasmtime.wat2wasm(source)))
    glue.memory = (DEFINITIONS_AT + DEFINITION_BYTES * len(FUNCTIONS), ALIGNMENT_MIN)
    glue.table = (len(FUNCTIONS), 0)
    libraries = (glue, *parts.libraries.values())
    linked = link(libraries, {("host", "call")}, stack_bytes=STACK_BYTES, heap_pages=HEAP_PAGES)
    if sum(each.is_mutable for each in linked.globals) != 1:
        raise InvariantError("the guest's module has a second mutable global, which is not put back after a frame")
    return linked


class _Boot:
    """One interpreter that boots."""

    def __init__(self, compiler: Compiler, module: int, linked: LinkedModule, parts: Parts) -> None:
        self.machine = Machine(compiler, module)
        self.machine.set_fuel(_BOOT_FUEL)
        self.machine.serve = self._serve
        self.linked = linked
        self.sources = parts.sources
        self.reports: list[str] = []
        for library in ("c", "memory", "clocks", "signals", "python"):
            for name in ("start", *INITIALIZERS):
                if f"{library}:{name}" in linked.starts:
                    self.machine.call(f"{library}:{name}")

    def compile_source(self, name: str) -> bytes:
        """Return the compiled form of a module of the standard library, before any module can be imported."""
        text = self.sources[_path(self.sources, name)]
        call = self.machine.call
        code = call("Py_CompileString", self.place(text), self.place(f"<frozen {name}>".encode()), _FILE_INPUT)
        octets = call("PyMarshal_WriteObjectToString", code, _MARSHAL) if code else 0
        if not octets:
            raise ConfigurationError(f"the guest cannot compile {name}")
        return self.machine.read(call("PyBytes_AsString", octets), call("PyBytes_Size", octets))

    def initialize(self, frozen: dict[str, bytes] | None) -> None:
        """Start the interpreter; with no frozen modules, only its core."""
        call, place = self.machine.call, self.place
        if frozen is not None:
            rows = [
                _FROZEN_ROW.pack(place(name.encode()), place(code), len(code), name == "encodings")
                for name, code in frozen.items()
            ]
            table = place(b"".join(rows) + bytes(_FROZEN_ROW.size))
            self.machine.write(self.linked.addresses["PyImport_FrozenModules"], _POINTER.pack(table))
        config = call("PyInitConfig_Create")
        settings = _SETTINGS | ({"_init_main": 0} if frozen is None else {})
        for name, value in settings.items():
            self._expect(call("PyInitConfig_SetInt", config, place(name.encode()), value), config, name)
        for name in _PATHS.split():
            path = b"/python" if "executable" in name else b"/"
            self._expect(call("PyInitConfig_SetStr", config, place(name.encode()), place(path)), config, name)
        name = "module_search_paths"
        self._expect(call("PyInitConfig_SetStrList", config, place(name.encode()), 0, 0), config, name)
        self._expect(call("Py_InitializeFromInitConfig", config), config, "start")

    def load_engine(self) -> None:
        """Load the engine and the SDK, and connect the function that answers requests."""
        call, place = self.machine.call, self.place
        builtins = call("PyImport_AddModule", place(b"builtins"))
        for number, (name, flags) in enumerate(FUNCTIONS):
            call("PyObject_SetAttrString", builtins, place(name.encode()), call("glue_function", number, flags))
        self._execute(_FINDER)
        params = image_params()
        texts = {name: sdk_text(name) for name in sdk_module_names()}
        groups = {name: _group(getattr(params, name)) for name in GROUPS}
        calls = tuple(HOST_CALLS)
        self._execute(_CAREFULLY.format(statement=f"server = boot.begin({groups!r}, {calls!r}, {texts!r})"))
        self.machine.fill_holes(HOLE_BYTES_MAX)
        meter_address = self.machine.base + METER_AT
        self._execute(_CAREFULLY.format(statement=f"handler = boot.finish(server, {calls!r}, {meter_address})"))
        self.machine.fill_holes(HOLE_BYTES_MAX)
        main = call("PyImport_AddModule", place(b"__main__"))
        call("glue_handler", call("PyObject_GetAttrString", main, place(b"handler")))

    def place(self, octets: bytes) -> int:
        """Copy a C string into the guest's memory; return its address."""
        address = self.machine.call("malloc", len(octets) + 1)
        self.machine.write(address, octets + b"\0")
        return address

    def _execute(self, text: str) -> None:
        if self.machine.call("PyRun_SimpleString", self.place(text.encode())):
            raise ConfigurationError("the guest does not start: " + ("\n".join(self.reports) or "no report"))

    def _expect(self, status: int, config: int, name: str) -> None:
        if status:
            slot = self.place(bytes(_POINTER.size))
            self.machine.call("PyInitConfig_GetError", config, slot)
            (at,) = _POINTER.unpack(self.machine.read(slot, _POINTER.size))
            text = self.machine.read(at, _MESSAGE_BYTES).partition(b"\0")[0].decode("utf-8", "replace")
            raise ConfigurationError(f"the guest's interpreter refuses {name}: {text}")

    def _serve(self, request: bytes) -> bytes:
        if request.startswith(_REPORT):
            self.reports.append(request[1:].decode("utf-8", "replace"))
            return b""
        return find_source(self.sources, request.decode())


def _frozen_modules(boot: _Boot) -> dict[str, bytes]:
    boot.initialize(None)
    frozen = {name: boot.compile_source(name) for name in _FROZEN}
    boot.machine.close()
    return frozen


def find_source(sources: dict[str, bytes], name: str) -> bytes:
    """Return a module's text for the guest, after a byte that is 1 for a package; nothing if there is none."""
    path = _path(sources, name)
    if path in sources:
        text = sources[path]
    elif name.partition(".")[0] == "trailboss":
        place = Path(trailboss.__file__).parent.joinpath(*name.split(".")[1:])
        if place.is_dir():
            return b"\1"  # Packages are empty: what they export is for people.
        if not place.with_suffix(".py").exists():
            return b""
        text = place.with_suffix(".py").read_bytes()
    else:
        return b""
    return bytes([path.endswith("__init__.py")]) + text


def _path(sources: dict[str, bytes], name: str) -> str:
    plain = name.replace(".", "/")
    return f"{plain}/__init__.py" if f"{plain}/__init__.py" in sources else f"{plain}.py"


def _group(record: Struct) -> tuple[str, dict[str, int]]:
    values = {name: int(value) for name, value in structs.asdict(record).items() if isinstance(value, int)}
    return type(record).__name__, values
