"""Where a frame's time goes, on both engines: its start, the guest, the chain's host calls, the way back.

Clocks are put around the engines' own functions, so a frame here takes some microseconds more than one of `frames`.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from unittest.mock import patch

from benchmarks.frames import CELLS, CLOCK, CYCLES, FRAMES, RAW, frame_sample
from benchmarks.measure import Figure, Report, calibrate, percentile
from trailboss.metering.meter import Meter
from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox.cache import is_built, load_runtime, released_digest
from trailboss.sandbox.engine import FrameRun, SandboxEngine
from trailboss.sandbox.machine import Machine
from trailboss.sandbox.pages import Restorer
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.host import Host
from trailboss.vm.native import NativeEngine

PROGRAMS: Final = {"functions": RAW, "SDK Clock": CLOCK}
BUDGETS: Final = {"functions": 200.0, "SDK Clock": 400.0}
"""Microseconds of CPU of a frame in the sandbox, p50."""
SLOWEST: Final = 3.0  # p99 in p50s
FIRST_MS: Final = 30.0
KEPT_MIB: Final = 4.0
MACHINES: Final = 20  # first frames, and actors that are kept, of one figure
MICROSECONDS: Final = 1e6
MIB: Final = 2**20
_NO_HOST: Final[Any] = None


class Clocks:
    """Seconds by what they went into."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def around(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a function that adds what it takes to a name."""

        def clocked(*arguments: Any, **named: Any) -> Any:
            began = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - began

        return clocked

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Put clocks around the functions of both engines."""
        with (
            patch.object(NativeEngine, "run", self._with_host(NativeEngine.run)),
            patch.object(SandboxEngine, "run", self._with_host(SandboxEngine.run)),
            patch.object(NativeEngine, "_loaded", self.around(NativeEngine._loaded, "module")),
            patch.object(Machine, "ask", self.around(Machine.ask, "ask")),
            patch.object(FrameRun, "serve", self.around(FrameRun.serve, "serve")),
            patch.object(Restorer, "restore", self.around(Restorer.restore, "restore")),
        ):
            yield

    def _with_host(self, run: Callable[..., FrameOutcome]) -> Callable[..., FrameOutcome]:
        timed = self.around(run, "run")
        return lambda engine, frame, host, meter: timed(engine, frame, _ClockedHost(host, self), meter)


class _ClockedHost:
    """A host whose calls are timed."""

    def __init__(self, host: Host, clocks: Clocks) -> None:
        self._host, self._clocks = host, clocks

    def __getattr__(self, name: str) -> Any:
        return self._clocks.around(getattr(self._host, name), "chain")


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Frames by phase, on both engines", "")
    images = {"native": b""} | ({"sandbox": released_digest()} if is_built() else {})
    for engine, image in images.items():
        for program, source in PROGRAMS.items():
            name = f"{engine}, {program}"
            report.figures += _percentiles(name, source, image, rounds, BUDGETS[program])
            report.figures += _phases(name, source, image, rounds)
    if is_built():
        report.figures += [figure for program in PROGRAMS for figure in _kept(program)]
    else:
        report.notes.append("The sandbox is not built: run make sandbox.")
    report.calibration += [calibrate() for _ in range(rounds)]
    report.notes += [
        "module: the actor's own module runs. crossing: values are copied between guest and chain, and read.",
        "around: what is left: stages, fuel, meters, the answer.",
    ]
    return report


def _percentiles(name: str, source: str, image: bytes, rounds: int, most: float) -> list[Figure]:
    seconds: list[float] = []
    sample = frame_sample(source, image, seconds.append)
    sample()
    seconds.clear()
    for _ in range(rounds):
        sample()
    p50, p99 = (percentile(seconds, hundredth) for hundredth in (50, 99))
    return [
        Figure(name=f"{name}: CPU, p50", value=p50 * MICROSECONDS, unit="µs", most=most if image else None),
        Figure(name=f"{name}: CPU, p99", value=p99 / p50, unit="p50s", most=SLOWEST if image else None),
    ]


def _phases(name: str, source: str, image: bytes, rounds: int) -> list[Figure]:
    sample, clocks = frame_sample(source, image), Clocks()
    with clocks.attached():
        sample()
        clocks.seconds.clear()
        for _ in range(rounds):
            sample()
    seconds = clocks.seconds
    if image:
        phases = {
            "guest": seconds["ask"] - seconds["serve"],
            "crossing": seconds["serve"] - seconds["chain"],
            "host calls": seconds["chain"],
            "restore": seconds["restore"],
            "around": seconds["run"] - seconds["ask"] - seconds["restore"],
        }
    else:
        phases = {
            "module": seconds["module"],
            "host calls": seconds["chain"],
            "guest and around": seconds["run"] - seconds["module"] - seconds["chain"],
        }
    each = MICROSECONDS / (rounds * FRAMES)
    return [Figure(name=f"{name}: {phase}", value=spent * each, unit="µs") for phase, spent in phases.items()]


def _kept(program: str) -> Iterator[Figure]:
    """Measure what a new actor costs: its first frame, and what the process keeps of it."""
    params, runtime, source = load_params("mainnet"), load_runtime(released_digest()), PROGRAMS[program]
    engine = SandboxEngine(params, lambda: runtime)
    seconds: list[float] = []
    gc.collect()
    before = _held()
    for number in range(MACHINES):
        text = f"{source}\n# {os.getpid()} {program} {number}\n"
        frame = Frame(text, keccak256(text.encode()), bytes(20), bytes(20), "nothing", b"")
        began = perf_counter()
        # There is no such handler: the actor is compiled, its module runs, and the frame ends before any host call.
        engine.run(frame, _NO_HOST, Meter(CYCLES, CELLS))
        seconds.append(perf_counter() - began)
    yield Figure(name=f"sandbox, {program}: a new actor", value=percentile(seconds, 50) * 1e3, unit="ms", most=FIRST_MS)
    yield Figure(
        name=f"sandbox, {program}: a kept actor", value=(_held() - before) / MACHINES / MIB, unit="MiB", most=KEPT_MIB
    )


def _held() -> int:
    """Return the bytes that this process holds: private memory, and files without a name."""
    status = Path("/proc/self/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("Private_"))
    return private * 1_024 + sum(_size(descriptor) for descriptor in os.listdir("/proc/self/fd"))


def _size(descriptor: str) -> int:
    try:
        is_memory = os.readlink(f"/proc/self/fd/{descriptor}").startswith("/memfd:")
        return os.fstat(int(descriptor)).st_size if is_memory else 0
    except OSError:
        return 0
