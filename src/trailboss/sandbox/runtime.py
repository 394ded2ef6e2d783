"""The image in this process: loaded once, shared by every engine, with the actors that are compiled for it."""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, structs

from trailboss.params import ChainParams, CostParams, LimitParams
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.sandbox.forms import CompiledActor, CompiledForms
from trailboss.sandbox.guest_layout import BROKEN, COMPILE, DONE, FAILED, GATHER, LOAD, PREPARE, pack
from trailboss.sandbox.image.image import Image, image_params
from trailboss.sandbox.machine import COMPILE_MEMORY_BYTES_MAX, GuestTrap, Machine
from trailboss.sandbox.pages import FirstState, ImageFile, Restorer
from trailboss.sandbox.values import Forgery, read_error, read_value, rejection_of
from trailboss.sandbox.wasmtime_library import Compiler
from trailboss.vm.engine import CallSite
from trailboss.vm.guest_api import HOST_CALLS


def _print(site: CallSite, positional: Sequence[object], _named: Mapping[str, object]) -> None:
    match positional:
        case (str(text),):
            site.host.print_text(text)
        case _:
            raise Forgery("printed text of another form")


ACTORS_KEPT: Final = 256
"""First states that are kept, some 0.3 MiB each; another actor's first frame makes its own again."""
FIRST_STATE_BYTES_MAX: Final = 4 * 2**20  # of one of them; an actor's module that makes more runs in each frame
COMPILED_BYTES_MAX: Final = 128 * 2**20  # of all compiled actors that are kept in memory, a few KiB each; disk has more
HOLE_BYTES_MAX: Final = 4_096  # free memory in one piece that an actor's first state keeps
MACHINES_KEPT: Final = 32  # machines that wait for the next frame of their actors, up to 4 MiB each
COMPILE_FUEL: Final = 1_000_000_000_000
"""Of a check and compilation that a deployment has paid for, or of loading its result: more than a deployment buys."""
CALLS: Final = (*HOST_CALLS.values(), _print)  # by number
PRINT_TEXT: Final = len(HOST_CALLS)
MODULE_FUEL: Final = 200_000_000
"""Fuel of a module that runs ahead of its frames, which the flat part of a deployment's price pays for. One that needs
more runs in each of its frames, which pays for it."""


ActorKey = tuple[bytes, LimitParams, CostParams]
"""What an actor's first state depends on: the hash of its source, and parameters of its chain."""


class PreparedActor(Struct, frozen=True):
    """An actor that is ready to run."""

    octets: bytes  # its compiled form
    first: FirstState  # loaded; after its module's run if ``cycles`` is a number
    cycles: int | None  # of its module's run, if that ran ahead
    fuel: int  # of its module's run


class Runtime:
    """A loaded image."""

    def __init__(self, image: Image, digest: bytes, compiler: Compiler, module: int, forms: CompiledForms) -> None:
        self.digest = digest  # the image's
        self.prices = image_params().source
        self._compiler = compiler
        self._module = module
        self._memory = ImageFile(image.memory)
        self._forms = forms
        self._idle: list[tuple[PreparedActor, Restorer]] = []  # the one that waits longest first
        self._actors: OrderedDict[ActorKey, PreparedActor] = OrderedDict()
        self._compiled: OrderedDict[bytes, CompiledActor] = OrderedDict()  # by the hash of the source
        self._compiled_bytes = 0
        self._making: dict[ActorKey, threading.Lock] = {}  # of actors that a thread compiles; others wait for it
        self._lock = threading.Lock()

    def new_machine(self) -> Machine:
        """Return a machine; its memory is not yet the image's."""
        return Machine(self._compiler, self._module)

    def check_source(self, source: str, code_hash: bytes, fuel: int) -> None:
        """Check and compile an actor's source inside a guest; see `trailboss.vm.engine.Engine.check_source`.

        Raises:
            Rejection: Also ``OUT_OF_CYCLES`` if that takes more than ``fuel``.
        """
        made = self._compile(source, code_hash, fuel)
        self._keep(code_hash, made)
        self._forms.keep(source, code_hash, made)

    def compiled(self, source: str, code_hash: bytes) -> CompiledActor:
        """Return an actor's compiled form, which is made again if it is kept neither here nor on disk."""
        with self._lock:
            kept = self._compiled.get(code_hash)
            if kept is not None:
                self._compiled.move_to_end(code_hash)
                return kept
        found = self._forms.find(source, code_hash)
        if found is None:
            found = self._compile(source, code_hash, COMPILE_FUEL)
            self._forms.keep(source, code_hash, found)
        self._keep(code_hash, found)
        return found

    def actor(self, source: str, code_hash: bytes, params: ChainParams) -> PreparedActor:
        """Return an actor in its first state, which is made on its first use, by one thread.

        Raises:
            Rejection: If its source does not compile.
        """
        key = code_hash, params.limits, params.costs
        with self._lock:
            if key in self._actors:
                self._actors.move_to_end(key)
                return self._actors[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            actor = self._actors.get(key)
            if actor is not None:
                return actor
            try:
                actor = self._prepared(self.compiled(source, code_hash), params)
                with self._lock:
                    self._actors[key] = actor
                    if len(self._actors) > ACTORS_KEPT:
                        self._actors.popitem(last=False)
                return actor
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def take_machine(self, actor: PreparedActor) -> Restorer:
        """Return a machine in an actor's first state, which nothing else uses."""
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] is actor:
                    return self._idle.pop(place)[1]
        return Restorer(self.new_machine(), actor.first)

    def keep_machine(self, actor: PreparedActor, restorer: Restorer) -> None:
        """Keep a machine, back in the actor's first state, for its next frame."""
        with self._lock:
            self._idle.append((actor, restorer))
            if len(self._idle) > MACHINES_KEPT:
                self._idle.pop(0)[1].close()

    def _prepared(self, compiled: CompiledActor, params: ChainParams) -> PreparedActor:
        """Run an actor's module twice: for what the SDK compiles for it, and for its first state."""
        octets = compiled.octets
        machine = self.loaded_machine(octets, params)
        machine.set_fuel(MODULE_FUEL)
        with suppress(GuestTrap, Forgery):
            (octets,) = ask_guest(machine, (GATHER,))
        machine.close()
        machine = self.loaded_machine(octets, params)
        machine.set_fuel(MODULE_FUEL)
        cycles: int | None = None
        with suppress(GuestTrap, Forgery):
            (cycles,) = ask_guest(machine, (PREPARE,))
        fuel = MODULE_FUEL - machine.fuel()
        if cycles is None or machine.present_size() != machine.size:
            machine.close()
        else:
            first = self._first_state(machine)
            if os.fstat(first.descriptor).st_size <= FIRST_STATE_BYTES_MAX:
                return PreparedActor(octets, first, cycles, fuel)
        return PreparedActor(octets, self._first_state(self.loaded_machine(octets, params)), None, 0)

    def _first_state(self, machine: Machine) -> FirstState:
        """Return the state of a machine, which is then closed."""
        machine.set_fuel(COMPILE_FUEL)
        machine.fill_holes(HOLE_BYTES_MAX)
        first = FirstState(self._memory, machine)
        machine.close()
        return first

    def loaded_machine(self, octets: bytes, params: ChainParams) -> Machine:
        """Return a machine with a compiled actor whose module has not run.

        Raises:
            Rejection: ``OUT_OF_MEMORY`` if the actor does not fit a frame's memory.
        """
        machine = self._image_machine()
        machine.set_fuel(COMPILE_FUEL)
        try:
            ask_guest(machine, (LOAD, octets, *tables_of(params)))
        except GuestTrap as trap:
            machine.close()
            raise Rejection(RejectionReason.OUT_OF_MEMORY, f"the actor does not fit its memory: {trap}") from None
        return machine

    def _keep(self, code_hash: bytes, compiled: CompiledActor) -> None:
        with self._lock:
            if code_hash not in self._compiled:
                self._compiled[code_hash] = compiled
                self._compiled_bytes += len(compiled.octets)
            while self._compiled_bytes > COMPILED_BYTES_MAX:
                self._compiled_bytes -= len(self._compiled.popitem(last=False)[1].octets)

    def _compile(self, source: str, code_hash: bytes, fuel: int) -> CompiledActor:
        machine = self._image_machine()
        machine.limit_memory(COMPILE_MEMORY_BYTES_MAX)
        machine.set_fuel(fuel)
        try:
            octets, names = ask_guest(machine, (COMPILE, source, code_hash))
        except GuestTrap as trap:
            if trap.is_out_of_fuel:
                what = "checking and compiling the source takes more than its length has paid for"
                raise Rejection(RejectionReason.OUT_OF_CYCLES, what, "make the source simpler") from None
            raise Rejection(RejectionReason.INVALID_DATA, f"the source cannot be compiled: {trap}") from None
        except Forgery as forgery:
            raise Rejection(RejectionReason.INVALID_DATA, f"the source cannot be compiled: {forgery}") from None
        finally:
            machine.close()
        return CompiledActor(octets, frozenset(names.split("\n")))

    def _image_machine(self) -> Machine:
        machine = self.new_machine()
        self._memory.map_into(machine)
        return machine


def tables_of(params: ChainParams) -> tuple[dict[str, int], dict[str, int]]:
    """Return the limits and the costs of a chain as a guest takes them."""
    limits, costs = (
        {name: int(value) for name, value in structs.asdict(each).items()} for each in (params.limits, params.costs)
    )
    return limits, costs


def ask_guest(machine: Machine, request: tuple[object, ...]) -> tuple[Any, ...]:
    """Return the fields of a guest's answer.

    Raises:
        Rejection: If the guest refuses.
        GuestTrap: If the guest ends without an answer.
        Forgery: If the answer is not an honest guest's.
    """
    answer = read_value(machine.ask(pack(request)))
    if type(answer) is tuple and answer and type(answer[0]) is int:
        status = answer[0]
        if status == DONE:
            return answer[1:]
        if status == FAILED and len(answer) == 2:  # with one error
            raise rejection_of(read_error(answer[1], []))
        if status == BROKEN:
            raise GuestTrap(f"the guest's engine failed: {answer[1:]!r:.200}")
    raise Forgery("an answer of another form")
