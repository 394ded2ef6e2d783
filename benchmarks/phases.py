"""Where a frame's time goes, on both engines: its start, the guest, the chain's host calls, the way back.

Clocks are put around the engines' own functions, so a frame here takes some microseconds more than one of `frames`.
"""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from benchmarks.frames import CELLS, CLOCK, CYCLES, FRAMES, RAW, frame_sample
from benchmarks.measure import Figure, Report, calibrate, percentile, timed
from trailboss.chain import Chain
from trailboss.crypto.digest import domain_digest
from trailboss.crypto.signatures import address_of
from trailboss.execution.genesis import Genesis
from trailboss.metering.meter import Meter
from trailboss.model.transactions import DeployActor, Transaction, sign_transaction
from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox.cache import is_built, load_runtime, released_digest
from trailboss.sandbox.engine import FrameRun, SandboxEngine
from trailboss.sandbox.machine import Machine
from trailboss.sandbox.pages import Restorer
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.host import Host
from trailboss.vm.keeping_engine import KeepingEngine
from trailboss.vm.native import NativeEngine

PROGRAMS: Final = {"functions": RAW, "SDK Clock": CLOCK}
BUDGETS: Final = {"functions": 200.0, "SDK Clock": 400.0}
"""Microseconds of CPU of a frame in the sandbox, p50."""
SLOWEST: Final = 3.0  # p99 in p50s
MAPPED: Final = {"functions": 1_200.0, "SDK Clock": 2_500.0}
"""The same where the kernel lists no copied pages, so that each frame's memory is mapped again."""
FIRST_MS: Final = 30.0
RESTART_MS: Final = 100.0  # that 1,000 actors add to the opening of a chain and its next block
KEPT_MIB: Final = 4.0
ACTORS: Final = 1_000
MACHINES: Final = 20  # first frames, and actors that are kept, of one figure
MICROSECONDS: Final = 1e6
MIB: Final = 2**20
_NO_HOST: Final[Any] = SimpleNamespace(context=dict, height=int)  # of frames that call nothing


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
            patch.object(KeepingEngine, "_loaded", self.around(KeepingEngine._loaded, "module")),
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
        image = images["sandbox"]
        with patch("trailboss.sandbox.pages.page_map", lambda: None):
            for program, source in PROGRAMS.items():
                own = f"{source}\n# Machines of the other frames list their pages.\n"
                report.figures += _percentiles(f"sandbox, {program}, mapped", own, image, rounds, MAPPED[program])
        report.figures += [figure for program in PROGRAMS for figure in _kept(program)]
        report.figures.append(_restart(image, rounds))
    else:
        report.notes.append("The sandbox is not built: run make sandbox.")
    report.calibration += [calibrate() for _ in range(rounds)]
    report.notes += [
        "module: the actor's own module runs, or is taken from the frame before.",
        "crossing: values are copied between guest and chain, and read.",
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


def _restart(image: bytes, rounds: int) -> Figure:
    """Measure what deployed actors add to a restart: processes that open a chain and build a block."""
    script = "import pathlib, sys; from trailboss.chain import Chain; Chain.open(pathlib.Path(sys.argv[1])).build()"
    seconds: dict[int, list[float]] = {1: [], ACTORS: []}
    with TemporaryDirectory(dir=Path.cwd()) as temporary:
        for count in seconds:
            _deploy(Path(temporary, str(count)), image, count)
        for _ in range(rounds):
            for count, each in seconds.items():
                start = partial(subprocess.run, [sys.executable, "-c", script, str(Path(temporary, str(count)))])
                each.append(timed(partial(start, check=True), 1))
    few, many = (percentile(each, 50) for each in seconds.values())
    return Figure(name=f"sandbox: {ACTORS:,} actors, a restart", value=(many - few) * 1e3, unit="ms", most=RESTART_MS)


def _deploy(directory: Path, image: bytes, count: int) -> None:
    """Make a chain on which so many actors, each with a source of its own, have been deployed."""
    key = domain_digest(b"benchmark-deployer")
    sender = address_of(key)
    chain = Chain.create(directory, Genesis(chain_id=1, proposer=sender, accounts={sender: 10**24}, image=image))
    for number in range(count):
        transaction = Transaction(
            chain_id=1,
            nonce=number,
            instruction=DeployActor(code=f"{RAW}# {number}\n".encode(), salt=bytes(32)),
            cycles_limit=10**6,
            cells_limit=10**4,
            max_fee_per_cycle=10**9,
            max_fee_per_cell=10**9,
            sender=sender,
        )
        if chain.build([sign_transaction(transaction, key)]).refused:
            raise AssertionError("a deployment was to succeed")
    chain.close()


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
