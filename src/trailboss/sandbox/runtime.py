"""The image in this process: loaded once, shared by every engine, with the actors that are compiled for it."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, structs

from trailboss.metering.meter import Meter
from trailboss.params import ChainParams, CostParams, LimitParams
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.sandbox.guest_layout import ANSWERED, BROKEN, CHECK, COMPILE, DONE, FAILED, LOAD, PREPARE, pack
from trailboss.sandbox.image.image import Image, image_params
from trailboss.sandbox.machine import GuestTrap, Machine
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
"""First states that are kept, about 1 MiB each; another actor's first frame compiles it again."""
HOLE_BYTES_MAX: Final = 4_096  # free memory in one piece that an actor's first state keeps
MACHINES_KEPT: Final = 32  # machines that wait for the next frame of their actors, up to 4 MiB each
COMPILE_FUEL: Final = 30_000_000_000  # of a check or a compilation; the deployment pays for it by its size
UNMETERED: Final = 2**62  # cycles and cells of a module that runs ahead
CALLS: Final = (*HOST_CALLS.values(), _print)  # by number
PRINT_TEXT: Final = len(HOST_CALLS)
CONSTANT_CALL: Final = list(HOST_CALLS).index("runtime_config")  # its answer is the same in every frame
MODULE_FUEL: Final = 1_000_000_000
"""Fuel of a module that runs ahead of its frames. One that needs more runs in each of its frames, which pays for it."""


class PreparedActor(Struct, frozen=True):
    """An actor that is ready to run."""

    octets: bytes  # its compiled form, which only a guest reads
    handlers: frozenset[str]
    first: FirstState  # loaded; after its module's run if ``cycles`` is a number
    cycles: int | None  # of its module's run, if that ran ahead
    fuel: int  # of its module's run


class Runtime:
    """A loaded image."""

    def __init__(self, image: Image, compiler: Compiler, code: bytes) -> None:
        self.digest = image.digest()
        self.prices = image_params().source
        self._compiler = compiler
        self._module = compiler.load(code)
        self._memory = ImageFile(image.memory)
        self._idle: list[tuple[PreparedActor, Restorer]] = []  # the one that waits longest first
        self._actors: OrderedDict[tuple[bytes, LimitParams, CostParams], PreparedActor] = OrderedDict()
        self._lock = threading.Lock()

    def new_machine(self) -> Machine:
        """Return a machine; its memory is not yet the image's."""
        return Machine(self._compiler, self._module)

    def check_source(self, source: str, source_bytes_max: int) -> None:
        """Check an actor's source inside a guest; see `trailboss.vm.engine.Engine.check_source`."""
        self._ask_once((CHECK, source, source_bytes_max))

    def actor(self, source: str, code_hash: bytes, params: ChainParams) -> PreparedActor:
        """Return an actor, compiled on its first use.

        Raises:
            Rejection: If its source does not compile.
        """
        key = (code_hash, params.limits, params.costs)
        with self._lock:
            actor = self._actors.get(key)
            if actor is None:
                actor = self._actors[key] = self._prepared(source, code_hash, params)
                if len(self._actors) > ACTORS_KEPT:
                    self._actors.popitem(last=False)
            self._actors.move_to_end(key)
            return actor

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

    def loaded_machine(self, actor: PreparedActor, params: ChainParams) -> Machine:
        """Return a machine with an actor whose module has not run."""
        machine = self._image_machine()
        machine.set_fuel(COMPILE_FUEL)
        ask_guest(machine, (LOAD, actor.octets, limits_of(params)))
        return machine

    def _prepared(self, source: str, code_hash: bytes, params: ChainParams) -> PreparedActor:
        octets = self._compiled(source, code_hash, params)
        machine = self._image_machine()
        machine.set_fuel(COMPILE_FUEL)
        (names,) = ask_guest(machine, (LOAD, octets, limits_of(params)))
        machine.serve = ModuleCalls(params).serve
        machine.set_fuel(MODULE_FUEL)
        cycles: int | None = None
        with suppress(GuestTrap, Forgery):
            (cycles,) = ask_guest(machine, (PREPARE,))
        fuel = MODULE_FUEL - machine.fuel()
        if cycles is None or machine.present_size() != machine.size:
            machine.close()
            machine, cycles, fuel = self._image_machine(), None, 0
            machine.set_fuel(COMPILE_FUEL)
            ask_guest(machine, (LOAD, octets, limits_of(params)))
        machine.set_fuel(COMPILE_FUEL)
        machine.fill_holes(HOLE_BYTES_MAX)
        first = FirstState(self._memory, machine)
        machine.close()
        return PreparedActor(octets, frozenset(names.split("\n")), first, cycles, fuel)

    def _compiled(self, source: str, code_hash: bytes, params: ChainParams) -> bytes:
        request = (COMPILE, source, code_hash, limits_of(params))
        try:
            (octets,) = self._ask_once((*request, True), ModuleCalls(params), fuel=MODULE_FUEL)
        except Rejection:
            # The run of its module can end the guest; the compilation alone cannot, but by its size.
            (octets,) = self._ask_once((*request, False))
        return octets  # type: ignore[no-any-return]  # a value of the guest's

    def _ask_once(
        self, request: tuple[object, ...], calls: "ModuleCalls | None" = None, fuel: int = COMPILE_FUEL
    ) -> tuple[Any, ...]:
        """Ask a guest of its own."""
        machine = self._image_machine()
        machine.set_fuel(fuel)
        if calls is not None:
            machine.serve = calls.serve
        try:
            return ask_guest(machine, request)
        except (GuestTrap, Forgery) as trap:
            reason = RejectionReason.INVALID_DATA
            raise Rejection(reason, f"the source cannot be compiled: {trap}") from None
        finally:
            machine.close()

    def _image_machine(self) -> Machine:
        machine = self.new_machine()
        self._memory.map_into(machine)
        return machine


class ModuleCalls:
    """Serves a module that runs ahead of its frames: only what is the same in every frame."""

    def __init__(self, params: ChainParams) -> None:
        self._meter = Meter(UNMETERED, UNMETERED)
        self._site = CallSite(None, self._meter, params, None)  # type: ignore[arg-type]  # there is no frame yet

    def serve(self, request: bytes) -> bytes:
        """Answer a host call. `GuestTrap` if its answer would be another in each frame."""
        number, positional, named, used = read_value(request)
        if number != CONSTANT_CALL:
            raise GuestTrap("the module asks the chain")
        self._meter.cycles_used = used
        value = CALLS[number](self._site, positional, named)
        return pack((ANSWERED, value, self._meter.cycles_used, 0))


def limits_of(params: ChainParams) -> dict[str, int]:
    """Return the limits of a chain as a guest takes them."""
    return {name: int(value) for name, value in structs.asdict(params.limits).items()}


def ask_guest(machine: Machine, request: tuple[object, ...]) -> tuple[Any, ...]:
    """Return the fields of a guest's answer.

    Raises:
        Rejection: If the guest refuses.
        GuestTrap: If the guest ends without an answer.
        Forgery: If the answer is not an honest guest's.
    """
    match read_value(machine.ask(pack(request))):
        case (int(status), *fields) if status == DONE:
            return tuple(fields)
        case (int(status), fields) if status == FAILED:
            raise rejection_of(read_error(fields, []))
        case (int(status), str(what)) if status == BROKEN:
            raise GuestTrap(f"the guest's engine failed: {what:.200}")
    raise Forgery("an answer of another form")
