"""One instance of the guest: its memory, its fuel, its calls in both directions."""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Final

from trailboss.primitives.errors import ConfigurationError
from trailboss.sandbox import wasmtime_library as wasmtime
from trailboss.sandbox.guest_layout import ANSWER_AT, BUFFER_BYTES, LONG_REQUEST, METER_AT, REQUEST_AT

ARGUMENTS_MAX: Final = 4  # of a call of an exported function
MEMORY_BYTES_MAX: Final = 64 << 20  # what a frame's memory can grow to
COMPILE_MEMORY_BYTES_MAX: Final = 256 << 20  # and that of a check and compilation of a source
_OTHER_LIMITS: Final = 4  # tables, their size, instances and memories of a machine: left as they are
WORD: Final = 2**32 - 1
SIZE_MAX: Final = 2**31 - 1  # of an answer; a guest without one says -1
FETCH: Final = 0xFFFFFFFF  # size of a request that asks for the last answer
_BLOCK_STEP: Final = 16  # between the sizes of blocks of the guest's ``malloc``
_SMALL_BLOCK: Final = 512  # bytes of a block up to which holes of every size are filled
_START_FUEL: Final = 1 << 40  # of instructions that are not a guest's: its instance is made, a library asked its base


class GuestTrap(Exception):
    """A guest's call ended without an answer; the fuel and the memory say how far it came."""

    def __init__(self, what: str, *, is_out_of_fuel: bool = False) -> None:
        super().__init__(what)
        self.is_out_of_fuel = is_out_of_fuel


class Machine:
    """One instance. A machine belongs to one thread at a time.

    ``serve`` answers what the guest asks, bytes to bytes; what it raises ends the guest's call.
    """

    def __init__(self, compiler: wasmtime.Compiler, module: int) -> None:
        self.serve: Callable[[bytes], bytes] = _refuse
        self._library = lib = compiler.library
        self._callback: Any = wasmtime.Callback(self._on_call)
        self._store = lib.wasmtime_store_new(compiler.engine, None, None)
        self._context = lib.wasmtime_store_context(self._store)
        self.limit_memory(MEMORY_BYTES_MAX)
        linker = compiler.linker("host", "call", self._callback)
        self.set_fuel(_START_FUEL)
        instance, trap = wasmtime.Instance(), c_void_p()
        error = lib.wasmtime_linker_instantiate(linker, self._context, module, byref(instance), byref(trap))
        lib.wasmtime_linker_delete(linker)
        wasmtime.checked(lib, error)
        if trap.value:
            raise wasmtime.WasmtimeError(wasmtime.trap_text(lib, trap.value)[1])
        self._instance = instance
        self._memory = self._export("memory").of.memory
        self.address: int = lib.wasmtime_memory_data(self._context, byref(self._memory))
        self.size: int = lib.wasmtime_memory_data_size(self._context, byref(self._memory))
        # An instance's memory never moves, and never becomes smaller.
        self._view = memoryview((ctypes.c_uint8 * self.size).from_address(self.address)).cast("B")
        self._arguments = (c_uint64 * (wasmtime.VALUE_WORDS * ARGUMENTS_MAX))()
        self._trap, self._fuel = c_void_p(), c_uint64()
        self._trap_place, self._fuel_place = byref(self._trap), byref(self._fuel)
        self._functions: dict[str, Any] = {}
        self._failure: BaseException | None = None
        self._long_request: bytes | None = None
        self._long_answer = b""
        self.base = self.call("glue_base")
        self._answer_address = ctypes.c_uint32.from_address(self.address + self.base)
        self._request_at, self._answer_at = self.base + REQUEST_AT, self.base + ANSWER_AT
        self._run = byref(self._function("run"))

    def ask(self, request: bytes) -> bytes:
        """Let the guest answer a request.

        Raises:
            GuestTrap: If it ends without an answer, or answers outside its memory.
        """
        size = len(request)
        if size > BUFFER_BYTES:
            self._long_request, request, size = request, LONG_REQUEST, len(LONG_REQUEST)
        self._view[self._request_at : self._request_at + size] = request
        self._arguments[0] = size
        size = self._enter(self._run, 1)
        if size > SIZE_MAX:
            raise GuestTrap("the guest gives no answer")
        return self.read(self._answer_address.value, size)

    def call(self, name: str, *arguments: int) -> int:
        """Call an exported function with numbers; return its result."""
        for index, argument in enumerate(arguments):
            self._arguments[wasmtime.VALUE_WORDS * index] = argument
        return self._enter(byref(self._function(name)), max(len(arguments), 1))

    def fill_holes(self, most: int) -> None:
        """Take the free memory between the guest's objects, but for pieces of ``most`` bytes or more.

        What is made later then lies side by side, so a frame writes to fewer pages.
        """
        size = most // 2
        while size > 0:
            self.call("glue_fill", size, most)
            size = size // 2 if size > _SMALL_BLOCK else size - _BLOCK_STEP

    def limit_memory(self, size: int) -> None:
        """Let memory grow to so many bytes."""
        self._library.wasmtime_store_limiter(self._store, size, *[-1] * _OTHER_LIMITS)

    def set_fuel(self, fuel: int) -> None:
        """Allow so many units of fuel from now on."""
        self._library.wasmtime_context_set_fuel(self._context, fuel)

    def fuel(self) -> int:
        """Return the fuel that is left."""
        self._library.wasmtime_context_get_fuel(self._context, self._fuel_place)
        return self._fuel.value

    def counted_cycles(self) -> int:
        """Return the count of the guest's meter, which lies in its memory and can be forged."""
        return ctypes.c_int64.from_address(self.address + self.base + METER_AT).value

    def present_size(self) -> int:
        """Return the bytes of memory, which can have grown."""
        return self._library.wasmtime_memory_data_size(self._context, byref(self._memory))  # type: ignore[no-any-return]

    def read(self, at: int, size: int) -> bytes:
        """Return bytes of the guest's memory. `GuestTrap` if they are not all inside it."""
        if 0 <= at <= at + size <= self.size:
            return self._view[at : at + size].tobytes()
        if not 0 <= at <= at + size <= self.present_size():
            raise GuestTrap(f"{size} bytes at {at} are outside the guest's memory")
        return ctypes.string_at(self.address + at, size)

    def write(self, at: int, octets: bytes) -> None:
        """Write to the guest's memory. `GuestTrap` if it would leave it."""
        if not 0 <= at <= at + len(octets) <= self.present_size():
            raise GuestTrap(f"{len(octets)} bytes at {at} are outside the guest's memory")
        ctypes.memmove(self.address + at, octets, len(octets))

    def close(self) -> None:
        """Release the instance."""
        if self._store:
            self._library.wasmtime_store_delete(self._store)
            self._store = None
            # The circle through the callback would keep the last frame, with its actor, until Python looks for circles.
            self._callback = None
            self.serve = _refuse

    def _enter(self, function: Any, values: int) -> int:
        self._failure = None
        error = self._library.wasmtime_func_call_unchecked(
            self._context, function, self._arguments, values, self._trap_place
        )
        if error or self._trap.value:
            raise self._ended(error)
        return self._arguments[0] & WORD

    def _ended(self, error: int | None) -> BaseException:
        if self._trap.value:
            code, text = wasmtime.trap_text(self._library, self._trap.value)
            self._trap.value = None
        else:
            code, text = None, wasmtime.error_text(self._library, error or 0)
        return self._failure or GuestTrap(text, is_out_of_fuel=code == wasmtime.OUT_OF_FUEL)

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            self._functions[name] = self._export(name).of.function
        return self._functions[name]

    def _export(self, name: str) -> Any:
        found = wasmtime.Extern()
        octets = name.encode()
        if not self._library.wasmtime_instance_export_get(
            self._context, byref(self._instance), octets, len(octets), byref(found)
        ):
            raise ConfigurationError(f"the sandbox's module exports no {name}")
        return found

    def _on_call(self, _environment: object, _caller: object, values: Any, _count: object) -> int:
        """Serve one call of the guest's; an exception cannot pass through the guest, so it waits outside."""
        try:
            at, size = values[0] & WORD, values[wasmtime.VALUE_WORDS] & WORD
            if size == FETCH:
                self.write(at, self._long_answer)
                self._long_answer = b""
                return 0
            request = self.read(at, size)
            if self._long_request is not None and request == LONG_REQUEST:
                answer, self._long_request = self._long_request, None
            else:
                answer = self.serve(request)
            if len(answer) <= BUFFER_BYTES:
                self._view[self._answer_at : self._answer_at + len(answer)] = answer
            else:
                self._long_answer = answer
            values[0] = len(answer)
        except BaseException as error:  # noqa: BLE001
            self._failure = error
            return self._library.wasmtime_trap_new(b"host", len(b"host"))  # type: ignore[no-any-return]
        return 0


def _refuse(_request: bytes) -> bytes:
    raise GuestTrap("the guest asks while it should not run")
