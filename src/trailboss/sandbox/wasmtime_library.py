"""The C API of wasmtime, as far as the sandbox uses it: called directly, because a frame has few microseconds to spend.

The wheel's Python layer converts every argument of every call, and has no door to two settings of the stacks. The
structures are those of the pinned version; `check_layout` in the engine's start-up tests them. Source: wasmtime.h.
"""

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, byref, c_bool, c_char_p, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

from trailboss.primitives.errors import ConfigurationError, TrailbossError

VERSION: Final = "50.0.1"
OUT_OF_FUEL: Final = 11  # wasmtime_trap_code_t
STACK_OVERFLOW: Final = 0
_FUNCTION, _GLOBAL, _MEMORY = 0, 1, 3  # wasmtime_extern_kind_t
_I32: Final = 0  # wasm_valkind_t
PAGE: Final = 65_536
OPTIMIZATIONS: Final = {"none": 0, "speed": 1, "speed_and_size": 2}  # wasmtime_opt_level_t


class WasmtimeError(TrailbossError):
    """What wasmtime itself refuses: a module that does not compile, a file that is not its own."""


class Function(ctypes.Structure):
    """The C type wasmtime_func_t."""

    _fields_ = (("store", c_uint64), ("place", c_void_p))


class Instance(ctypes.Structure):
    """The C type wasmtime_instance_t."""

    _fields_ = (("store", c_uint64), ("place", c_size_t))


class Memory(ctypes.Structure):
    """The C type wasmtime_memory_t."""

    _fields_ = (("store", c_uint64), ("place", c_uint32), ("padding", c_uint32), ("place_2", c_uint32))


class _ExternOf(ctypes.Union):
    _fields_ = (("function", Function), ("memory", Memory), ("octets", c_uint8 * 24))


class Extern(ctypes.Structure):
    """The C type wasmtime_extern_t."""

    _fields_ = (("kind", c_uint8), ("of", _ExternOf))


class _Octets(ctypes.Structure):
    """The C type wasm_byte_vec_t."""

    _fields_ = (("size", c_size_t), ("data", c_void_p))


VALUE_WORDS: Final = 2  # of 64 bits, in a value of the C type wasmtime_val_raw_t; a number is in the first
Callback: Final = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, POINTER(c_uint64), c_size_t)
"""A function of the host: environment, caller, arguments that become results, their number; it returns a trap or 0."""
_Finalizer: Final = ctypes.CFUNCTYPE(None, c_void_p)
_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {  # the result's type, then the arguments'
    "wasm_config_new": (c_void_p,),
    "wasm_engine_new_with_config": (c_void_p, c_void_p),
    "wasm_engine_delete": (None, c_void_p),
    "wasmtime_config_consume_fuel_set": (None, c_void_p, c_bool),
    "wasmtime_config_cranelift_nan_canonicalization_set": (None, c_void_p, c_bool),
    "wasmtime_config_cranelift_opt_level_set": (None, c_void_p, c_uint8),
    "wasmtime_config_wasm_relaxed_simd_set": (None, c_void_p, c_bool),
    "wasmtime_config_wasm_threads_set": (None, c_void_p, c_bool),
    "wasmtime_config_max_wasm_stack_set": (None, c_void_p, c_size_t),
    "wasmtime_config_async_stack_size_set": (None, c_void_p, c_size_t),
    "wasmtime_module_new": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "wasmtime_module_serialize": (c_void_p, c_void_p, c_void_p),
    "wasmtime_module_deserialize": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "wasmtime_module_deserialize_file": (c_void_p, c_void_p, c_char_p, c_void_p),
    "wasmtime_module_delete": (None, c_void_p),
    "wasmtime_store_new": (c_void_p, c_void_p, c_void_p, c_void_p),
    "wasmtime_store_context": (c_void_p, c_void_p),
    "wasmtime_store_delete": (None, c_void_p),
    "wasmtime_store_limiter": (None, c_void_p, c_int64, c_int64, c_int64, c_int64, c_int64),
    "wasmtime_context_set_fuel": (c_void_p, c_void_p, c_uint64),
    "wasmtime_context_get_fuel": (c_void_p, c_void_p, c_void_p),
    "wasmtime_linker_new": (c_void_p, c_void_p),
    "wasmtime_linker_delete": (None, c_void_p),
    "wasmtime_linker_define_func_unchecked": (
        c_void_p, c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p, Callback, c_void_p, _Finalizer,
    ),
    "wasmtime_linker_instantiate": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "wasmtime_instance_export_get": (c_bool, c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "wasmtime_memory_data": (c_void_p, c_void_p, c_void_p),
    "wasmtime_memory_data_size": (c_size_t, c_void_p, c_void_p),
    "wasmtime_func_call_unchecked": (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "wasmtime_trap_new": (c_void_p, c_char_p, c_size_t),
    "wasmtime_trap_code": (c_bool, c_void_p, c_void_p),
    "wasm_trap_message": (None, c_void_p, c_void_p),
    "wasm_trap_delete": (None, c_void_p),
    "wasmtime_error_message": (None, c_void_p, c_void_p),
    "wasmtime_error_delete": (None, c_void_p),
    "wasm_byte_vec_delete": (None, c_void_p),
    "wasm_valtype_new": (c_void_p, c_uint8),
    "wasm_valtype_vec_new": (None, c_void_p, c_size_t, c_void_p),
    "wasm_functype_new": (c_void_p, c_void_p, c_void_p),
    "wasm_functype_delete": (None, c_void_p),
}  # fmt: skip


def installed_wheel() -> Any:
    """Return the installed wasmtime.

    Raises:
        ConfigurationError: If wasmtime is missing or is another version than the one whose fuel is pinned.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # help does without it

    try:
        wheel = distribution("wasmtime")
    except PackageNotFoundError:
        raise ConfigurationError(
            "the sandbox needs wasmtime, which is not installed; install it with: pip install 'trailboss[sandbox]'"
        ) from None
    if wheel.version != VERSION:
        what = f"the sandbox needs wasmtime {VERSION}, here is {wheel.version}"
        raise ConfigurationError(f"{what}; another version may count other fuel: see docs/concepts/sandbox.md")
    return wheel


def load_library() -> Any:
    """Return the library of the installed wheel, with the types of its functions; see `installed_wheel`."""
    wheel = installed_wheel()
    names = [each for each in wheel.files or () if each.name.startswith(("_libwasmtime", "_wasmtime.dll"))]
    library = ctypes.CDLL(str(Path(str(names[0].locate()))))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def checked(library: Any, error: int | None) -> None:
    """Raise what a call has returned, if it has returned an error."""
    if error:
        raise WasmtimeError(error_text(library, error))


def error_text(library: Any, error: int) -> str:
    """Return the last line of an error, and release it."""
    text = _text(library, library.wasmtime_error_message, library.wasmtime_error_delete, error)
    return text.strip().rpartition("\n")[2].strip()


def trap_text(library: Any, trap: int) -> tuple[int | None, str]:
    """Return the code of a trap and its reason, and release it."""
    code = c_uint8()
    known = library.wasmtime_trap_code(trap, byref(code))
    text = _text(library, library.wasm_trap_message, library.wasm_trap_delete, trap)
    return code.value if known else None, text.strip().rpartition("\n")[2].strip()


def _text(library: Any, read: Any, delete: Any, pointer: int) -> str:
    octets = _Octets()
    read(pointer, byref(octets))
    text = ctypes.string_at(octets.data, octets.size).rstrip(b"\0").decode("utf-8", "replace")
    library.wasm_byte_vec_delete(byref(octets))
    delete(pointer)
    return text


class Compiler:
    """An engine of wasmtime: compiles modules to machine code, and runs it."""

    def __init__(self, wasm_stack_bytes: int, optimization: str = "speed", *, counts_fuel: bool = True) -> None:
        self.library = load_library()
        lib = self.library
        config = lib.wasm_config_new()
        lib.wasmtime_config_consume_fuel_set(config, counts_fuel)
        # Not a number has one form, whatever the processor makes of it.
        lib.wasmtime_config_cranelift_nan_canonicalization_set(config, True)
        lib.wasmtime_config_cranelift_opt_level_set(config, OPTIMIZATIONS[optimization])
        lib.wasmtime_config_wasm_relaxed_simd_set(config, False)
        lib.wasmtime_config_wasm_threads_set(config, False)
        # wasmtime wants this one to be the larger, though nothing here is asynchronous.
        lib.wasmtime_config_async_stack_size_set(config, wasm_stack_bytes + PAGE)
        lib.wasmtime_config_max_wasm_stack_set(config, wasm_stack_bytes)
        self.engine = lib.wasm_engine_new_with_config(config)
        if not self.engine:
            raise WasmtimeError("wasmtime refuses the sandbox's settings")

    def compile(self, module: bytes) -> bytes:
        """Return a module's machine code, for this version of wasmtime, these settings and this processor."""
        pointer = c_void_p()
        checked(self.library, self.library.wasmtime_module_new(self.engine, module, len(module), byref(pointer)))
        octets = _Octets()
        checked(self.library, self.library.wasmtime_module_serialize(pointer, byref(octets)))
        code = ctypes.string_at(octets.data, octets.size)
        self.library.wasm_byte_vec_delete(byref(octets))
        self.library.wasmtime_module_delete(pointer)
        return code

    def load(self, code: bytes) -> int:
        """Return a module of machine code, which runs as it is: it must come from `compile`.

        Raises:
            WasmtimeError: If another version, other settings or another processor made it.
        """
        return self._loaded(self.library.wasmtime_module_deserialize, code, len(code))

    def load_file(self, path: Path) -> int:
        """Return a module of machine code as `load` does, mapped from its file, which nothing may write to again."""
        return self._loaded(self.library.wasmtime_module_deserialize_file, os.fsencode(path))

    def _loaded(self, load: Callable[..., int | None], *given: object) -> int:
        pointer = c_void_p()
        checked(self.library, load(self.engine, *given, byref(pointer)))
        assert pointer.value is not None
        return pointer.value

    def linker(self, module: str, name: str, callback: Any) -> int:
        """Return a linker with one function of the host, of two numbers to a number."""
        lib = self.library
        parameters, results = _Octets(), _Octets()
        two = (c_void_p * 2)(lib.wasm_valtype_new(_I32), lib.wasm_valtype_new(_I32))
        one = (c_void_p * 1)(lib.wasm_valtype_new(_I32))
        lib.wasm_valtype_vec_new(byref(parameters), 2, two)
        lib.wasm_valtype_vec_new(byref(results), 1, one)
        kind = lib.wasm_functype_new(byref(parameters), byref(results))
        linker = lib.wasmtime_linker_new(self.engine)
        names = (module.encode(), len(module), name.encode(), len(name))
        checked(lib, lib.wasmtime_linker_define_func_unchecked(linker, *names, kind, callback, None, _Finalizer()))
        lib.wasm_functype_delete(kind)
        return linker  # type: ignore[no-any-return]  # ctypes gives no types
