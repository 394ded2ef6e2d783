"""The sandbox for hostile programs: an engine that notes the fuel of everything that its guests are asked.

``python -m tests.hostile.sandbox`` runs the whole corpus under every setting of the code generator, and compares the
fuel; it takes some minutes.
"""

import marshal
import sys
import time
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tests.faults.sandbox_kills import read_image
from tests.hostile.corpus import all_programs
from tests.hostile.harness import CYCLES, PARAMS, Outcome, run_program
from tests.hostile.program import HostileProgram
from trailboss.params import deployment_price
from trailboss.sandbox import cache
from trailboss.sandbox.engine import DEPLOYMENT_FUEL_PER_CYCLE, FUEL_PER_CYCLE, SandboxEngine
from trailboss.sandbox.forms import CompiledActor, CompiledForms
from trailboss.sandbox.guest_layout import LOCATE, RUN, RUN_ALL
from trailboss.sandbox.image.image import Image
from trailboss.sandbox.machine import Machine
from trailboss.sandbox.runtime import Runtime
from trailboss.sandbox.stage import WASM_STACK_BYTES
from trailboss.sandbox.wasmtime_library import OPTIMIZATIONS, Compiler

FRAME_FUEL_MAX: Final = (CYCLES + PARAMS.costs.frame_base) * FUEL_PER_CYCLE
DEPLOYMENT_FUEL_MAX: Final = deployment_price(PARAMS.limits.source_bytes_max, PARAMS.costs) * DEPLOYMENT_FUEL_PER_CYCLE
Asked = tuple[int, int]  # kind of a request to a guest, units of fuel that it used


class Run(Struct, frozen=True):
    """How a program ended in the sandbox.

    Attributes:
        outcome: As on every engine.
        asked: Requests to guests, in the order of their ends.
        seconds: CPU time of check, compilation and frame.
    """

    outcome: Outcome
    asked: tuple[Asked, ...]
    seconds: float


class LoggedMachine(Machine):
    """A machine that notes the fuel of every request."""

    def __init__(self, compiler: Compiler, module: int, asked: list[Asked]) -> None:
        super().__init__(compiler, module)
        self._asked = asked

    def ask(self, request: bytes) -> bytes:
        kind, before = marshal.loads(request)[0], self.fuel()
        try:
            return super().ask(request)
        finally:
            self._asked.append((kind, before - self.fuel()))


class NoForms(CompiledForms):
    """Forms that are not there: every source is compiled here, and none of another test's."""

    def find(self, source: str, code_hash: bytes) -> CompiledActor | None:
        return None

    def keep(self, source: str, code_hash: bytes, actor: CompiledActor) -> None:
        pass


class LoggedRuntime(Runtime):
    """A runtime of such machines; ``asked`` holds what they note."""

    def __init__(self, image: Image, compiler: Compiler, module: int) -> None:
        digest = image.digest()
        super().__init__(image, digest, compiler, module, NoForms(cache.cache_directory(), digest))
        self.asked: list[Asked] = []

    def new_machine(self) -> Machine:
        return LoggedMachine(self._compiler, self._module, self.asked)


def new_runtime(optimization: str = cache.OPTIMIZATION) -> LoggedRuntime:
    """Return a runtime of its own, with machine code that is made with a setting of the code generator."""
    compiler = Compiler(WASM_STACK_BYTES, optimization)
    is_kept = optimization == cache.OPTIMIZATION
    image = read_image()
    if is_kept:
        return LoggedRuntime(image, compiler, cache.load_module(image, image.digest(), compiler))
    return LoggedRuntime(image, compiler, compiler.load(compiler.compile(image.module)))


def run_all(runtime: LoggedRuntime, programs: Iterable[HostileProgram]) -> dict[str, Run]:
    """Run programs in this process, each once; an exception that is the host's own leaves this function."""
    engine = SandboxEngine(PARAMS, lambda: runtime)
    runs: dict[str, Run] = {}
    for program in programs:
        runtime.asked.clear()
        begun = time.process_time()
        outcome = run_program(engine, program)
        runs[program.name] = Run(outcome, tuple(runtime.asked), time.process_time() - begun)
    return runs


def too_much_fuel(runs: dict[str, Run]) -> list[str]:
    """Return the programs of which a frame, a check or a compilation used more fuel than it may."""
    return [
        name
        for name, run in runs.items()
        if any(fuel > (FRAME_FUEL_MAX if kind in (RUN, RUN_ALL) else DEPLOYMENT_FUEL_MAX) for kind, fuel in run.asked)
    ]


def differences(programs: Iterable[HostileProgram], settings: Iterable[str]) -> list[str]:
    """Return the programs whose outcomes or fuel differ between settings of the code generator."""
    programs = list(programs)
    reference: dict[str, Run] | None = None
    found: set[str] = set()
    for setting in settings:
        runs = run_all(new_runtime(setting), programs)
        reference = reference or runs
        found |= {name for name, run in runs.items() if _measured(run) != _measured(reference[name])}
    return sorted(found)


def _measured(run: Run) -> tuple[Outcome, tuple[Asked, ...]]:
    # Where an interrupted program stood is asked afterwards, and is not charged.
    return run.outcome, tuple(each for each in run.asked if each[0] != LOCATE)


def main() -> int:
    """Compare every setting over the whole corpus."""
    if not cache.is_built():
        print("the sandbox is not built: run make sandbox")
        return 0
    programs = all_programs()
    different = differences(programs.values(), OPTIMIZATIONS)
    print(f"{len(programs)} hostile programs under {', '.join(OPTIMIZATIONS)}: {len(different)} differ in fuel")
    for name in different:
        print(name)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
