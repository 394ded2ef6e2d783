"""`SandboxEngine`: actor code in a guest that reaches nothing but the chain's host calls, for code that others send.

The guest runs the native engine, so equal source costs equal cycles. Behind its meter stands the fuel of WebAssembly: a
frame is charged the larger of its cycles and its fuel divided by `FUEL_PER_CYCLE`. Decision: D-102.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import structs

from trailboss.metering.meter import Meter, OutOfGas
from trailboss.params import ChainParams, deployment_price
from trailboss.primitives.errors import ConfigurationError, ErrorObject, Rejection, RejectionReason
from trailboss.sandbox.guest_layout import (
    ANSWERED,
    EXHAUSTED,
    FAULT,
    LOCATE,
    REFUSAL_NUMBER,
    REFUSED,
    RUN,
    RUN_ALL,
    pack,
)
from trailboss.sandbox.image.image import image_params
from trailboss.sandbox.machine import GuestTrap, Machine
from trailboss.sandbox.runtime import CALLS, PreparedActor, Runtime, ask_guest
from trailboss.sandbox.stage import near_stage, on_stage
from trailboss.sandbox.values import PLAIN, Forgery, argument, read_call, read_error
from trailboss.vm import failures
from trailboss.vm.arguments import plain
from trailboss.vm.engine import CallSite, Frame, FrameOutcome, HostCall
from trailboss.vm.guest_api import ArgumentFault, host_code
from trailboss.vm.host import Host
from trailboss.vm.native import VERSION
from trailboss.vm.rules import check_size

FUEL_PER_CYCLE: Final = 4_000
"""Units of fuel that one cycle buys. Everyday lines use 100 to 3,300; see D-102."""
DEPLOYMENT_FUEL_PER_CYCLE: Final = 4_000  # what a cycle of a deployment buys; everyday sources use 500 to 800
REQUEST_FUEL: Final = 20  # of each byte that a guest sends: the chain copies and reads it
_ANSWER_FIELDS: Final = 3  # of a frame: what it returns, its error, the cycles used
LOCATE_FUEL: Final = 100_000_000  # of the question where an interrupted program stands
T = TypeVar("T")


class SandboxEngine:
    """An `Engine` of guests. Frames may nest, and run on several threads at once."""

    def __init__(self, params: ChainParams, load: Callable[[], Runtime], calls: Sequence[HostCall] = CALLS) -> None:
        """Run frames in the image that ``load`` returns, on the first use; a tracer gives it host calls of its own.

        Raises:
            ConfigurationError: If the chain's prices are not those of the image.
        """
        if params.source != image_params().source:
            what = "the sandbox's image has the prices of the preset mainnet; this chain overrides source.*"
            raise ConfigurationError(f"{what}, which only the native engine can run")
        self._params = params
        self._load = load
        self._calls = calls

    def version(self) -> str:
        """Return the version of the machine that actors see: the same for every engine, as its results are."""
        return VERSION

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Check and compile a source with the fuel that its deployment buys; see `Engine.check_source`."""
        size = check_size(source, self._params.limits.source_bytes_max)
        fuel = deployment_price(size, self._params.costs) * DEPLOYMENT_FUEL_PER_CYCLE
        on_stage(lambda: self._load().check_source(source, code_hash, fuel))

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names that can be called; see `Engine.handlers`."""
        return on_stage(lambda: self._load().compiled(source, code_hash).handlers)

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Do nothing: no debugger reaches a guest."""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end; see `Engine.run`."""
        return on_stage(lambda: self._run(frame, CallSite(host, meter, self._params, frame)))

    def perform(self, action: Callable[[], T]) -> T:
        """Run an action on a stage, on which its frames then run too; see `Engine.perform`."""
        return near_stage(action)

    def prepare(self) -> None:
        """Load the image."""
        self._load()

    def close(self) -> None:
        """Do nothing: machines and threads are the process's."""

    def _run(self, frame: Frame, site: CallSite) -> FrameOutcome:
        # CHECK
        runtime = self._load()
        try:
            actor = runtime.actor(frame.source, frame.code_hash, self._params)
        except Rejection as refusal:
            return FrameOutcome(b"", refusal.error())

        # RUN
        meter = site.meter
        if actor.cycles is not None and actor.cycles > meter.cycles_left:
            # Its module alone uses everything up. The frame runs it again, to say in which line.
            machine = runtime.loaded_machine(actor.octets, self._params)
            outcome, _ = FrameRun(machine, site, actor, RUN_ALL, self._calls).outcome()
            machine.close()
            return outcome
        restorer = runtime.take_machine(actor)
        restorer.mark()
        kind = RUN_ALL if actor.cycles is None else RUN
        run = FrameRun(restorer.machine, site, actor, kind, self._calls)
        is_whole = False
        try:
            outcome, is_whole = run.outcome()
        finally:
            if is_whole and restorer.restore():
                runtime.keep_machine(actor, restorer)
            else:
                restorer.close()
        return outcome


class FrameRun:
    """One frame in one machine."""

    def __init__(
        self, machine: Machine, site: CallSite, actor: PreparedActor, kind: int, calls: Sequence[HostCall] = CALLS
    ) -> None:
        self.machine = machine
        self.site = site
        self.actor = actor
        self.kind = kind
        self.calls = calls  # by number
        self.first_cycles = site.meter.cycles_used
        self.host_cycles = 0  # that host calls have charged
        self.refusals: list[ErrorObject] = []
        self.failure: BaseException | None = None  # what ends the frame beyond its own errors
        self.module_fuel = actor.fuel if kind == RUN else 0
        self.base: int = site.params.costs.frame_base  # cycles of the frame itself, which pay for its start
        self.allowed_fuel = 0

    def outcome(self) -> tuple[FrameOutcome, bool]:
        """Run the frame; return how it ended, and whether the guest came to its end, so that it can be used again."""
        meter, machine = self.site.meter, self.machine
        machine.serve = self.serve
        self.allowed_fuel = max((meter.cycles_left + self.base) * FUEL_PER_CYCLE - self.module_fuel, 0)
        machine.set_fuel(self.allowed_fuel)
        returned, error = b"", None
        is_whole = False
        try:
            returned, error = self._answered(ask_guest(machine, self._request()))
            is_whole = True
        except Rejection as refusal:
            error = refusal.error()
            is_whole = True
        except (GuestTrap, Forgery, OutOfGas) as ended:
            error = self._interrupted(ended)
        if self.failure is not None and not isinstance(self.failure, OutOfGas):
            raise self.failure
        # SETTLE
        self._charge_fuel()
        if meter.is_exhausted:
            error = failures.located(failures.exhaustion(meter), error)
        return FrameOutcome(returned if error is None else b"", error), is_whole

    def serve(self, request: bytes) -> bytes:
        """Serve a host call."""
        number, positional, named, used = read_call(request)
        if not 0 <= number < len(self.calls):
            raise Forgery(f"a host call {number}, which does not exist")
        meter = self.site.meter
        if self.failure is not None or used < meter.cycles_used:
            raise Forgery("a host call after the frame's end, or a meter that runs back")
        meter.cycles_used = used
        cells = meter.cells_used
        fuel = self.machine.fuel() - len(request) * REQUEST_FUEL
        if fuel < 0:
            raise GuestTrap("all fuel consumed", is_out_of_fuel=True)
        status, value = self._served(number, positional, named)
        self.host_cycles += meter.cycles_used - used
        if meter.cycles_used > used or meter.cells_used > cells:
            # The guest keeps no more fuel than the cycles that are left buy, since this call has used some.
            bought = (meter.cycles_left + self.base) * FUEL_PER_CYCLE
            if bought < fuel:
                self.allowed_fuel -= fuel - bought
                fuel = bought
        self.machine.set_fuel(fuel)
        return pack((status, value, meter.cycles_used, meter.cells_used))

    def _served(self, number: int, positional: Sequence[object], named: dict[str, object]) -> tuple[int, object]:
        try:
            arguments = tuple([each if type(each) in PLAIN else argument(each) for each in positional])
            names = {name: argument(value) for name, value in named.items()} if named else named
            return ANSWERED, self.calls[number](self.site, arguments, names)
        except ArgumentFault as fault:
            return FAULT, (fault.kind.__name__, str(fault))
        except Rejection as rejection:
            refusal = rejection.error()
            facts = refusal.context | {REFUSAL_NUMBER: len(self.refusals)}
            self.refusals.append(refusal)
            texts = (refusal.code, refusal.slug, refusal.what, refusal.why, refusal.fix, facts)
            return REFUSED, (host_code(rejection.reason), texts)
        except OutOfGas as exhausted:
            self.failure = exhausted
            return EXHAUSTED, None
        except Forgery:
            raise
        # Faults of the chain itself pass through the guest without a word.
        except BaseException as failure:
            self.failure = failure
            raise

    def _request(self) -> tuple[object, ...]:
        frame, meter = self.site.frame, self.site.meter
        used = meter.cycles_used + (self.actor.cycles or 0 if self.kind == RUN else 0)
        limits = (meter.cycles_limit, meter.cells_limit)
        addresses = (bytes(frame.actor), bytes(frame.deployer))
        facts = (self.site.host.height(), self._context())
        return self.kind, frame.handler, bytes(frame.payload), *addresses, limits, (used, meter.cells_used), facts

    def _context(self) -> bytes:
        context = self.site.host.context()
        try:
            return pack(context)
        except ValueError:  # A value of a class of the chain's own; most frames have none.
            return pack(plain(context))

    def _answered(self, fields: tuple[object, ...]) -> tuple[bytes, ErrorObject | None]:
        meter = self.site.meter
        returned, error, used = fields if len(fields) == _ANSWER_FIELDS else (None, None, None)
        if type(returned) is not bytes or type(used) is not int or used < meter.cycles_used:
            raise Forgery("an answer of another form, or a meter that runs back")
        meter.cycles_used = used
        if len(returned) > self.site.params.limits.return_bytes_max:
            raise Forgery(f"an answer of {len(returned)} bytes")
        return returned, None if error is None else read_error(error, self.refusals)

    def _interrupted(self, ended: BaseException) -> ErrorObject:
        """Return the error of a guest that did not come to its end; it pays for what it did."""
        meter = self.site.meter
        meter.cycles_used = max(meter.cycles_used, min(self.machine.counted_cycles(), meter.cycles_limit))
        if isinstance(ended, GuestTrap) and ended.is_out_of_fuel:
            meter.cycles_used = meter.cycles_limit + 1
            what = f"its work in C used the fuel that its limit of {meter.cycles_limit} cycles buys"
            return structs.replace(failures.exhaustion(meter, self._lines()), what=what)
        if isinstance(ended, Forgery):
            return Rejection(RejectionReason.PVM_ERROR, f"the sandbox ended the frame: {ended}").error()
        return Rejection(RejectionReason.OUT_OF_MEMORY, f"the sandbox ended the frame: {ended}").error()

    def _lines(self) -> list[str]:
        """Ask an interrupted guest in which lines it stood; it can be in no state to answer."""
        self.machine.set_fuel(LOCATE_FUEL)
        try:
            (lines,) = ask_guest(self.machine, (LOCATE,))
            return str(lines).splitlines()
        except (GuestTrap, Forgery, Rejection):
            return []
        finally:
            self.machine.set_fuel(0)

    def _charge_fuel(self) -> None:
        """Charge what the fuel comes to above the cycles that the program itself has used."""
        meter = self.site.meter
        fuel = self.allowed_fuel - self.machine.fuel() + self.module_fuel
        own = meter.cycles_used - self.first_cycles - self.host_cycles
        meter.cycles_used += max(-(-fuel // FUEL_PER_CYCLE) - own - self.base, 0)
