"""Runs many programs in a few child processes, each program under a hard limit of CPU time and memory.

A child runs programs one after another and reports each; when one kills it, the next child goes on behind that one. The
kernel enforces the limits, so that work in C cannot evade them.
"""

import faulthandler
import os
import resource
import selectors
import signal
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.hostile.harness import PARAMS, MakeEngine, Outcome, run_program
from tests.hostile.program import HostileProgram

MEMORY: Final = 3 * 2**29  # bytes of address space of a child
CPU_SECONDS: Final = 5.0  # of one program
WALL_SECONDS: Final = 120.0  # of one program, for what waits without working
CHILDREN: Final = 2
_READ: Final = 2**16
_KILLS: Final = {signal.SIGPROF: "time", signal.SIGXCPU: "time"}


class Ending(Struct, frozen=True):
    """What became of a program.

    Attributes:
        outcome: The engine's answer; None if there is none.
        limit: ``time`` or ``memory`` if the program reached a limit of the child, ``signal N`` if it broke the child,
            ``raised X`` if an exception left the engine; empty if the engine ended the program itself.
        seconds: CPU time of check and frame.
    """

    outcome: Outcome | None = None
    limit: str = ""
    seconds: float = 0.0


class Limits(Struct, frozen=True):
    """What a child may use.

    Attributes:
        seconds: CPU time of a program by its name; `CPU_SECONDS` for those that are not named.
        memory: Address space beyond what the parent has, bytes.
        marked: Names of programs after which a child is not used again.
    """

    seconds: Mapping[str, float] = {}
    memory: int = MEMORY
    marked: Container[str] = ()


def run_in_children(
    programs: Sequence[HostileProgram], make_engine: MakeEngine, limits: Limits | None = None
) -> dict[str, Ending]:
    """Run programs, each once, and return their endings by name.

    ``make_engine`` is called in each child after it was forked; it may return what the parent has prepared.
    """
    limits = limits or Limits()
    endings: dict[str, Ending] = {}
    lanes = [_Lane(programs[place::CHILDREN], make_engine, limits) for place in range(CHILDREN)]
    with selectors.DefaultSelector() as selector:
        for lane in lanes:
            lane.start(selector)
        while selector.get_map():
            for key, _ in selector.select(timeout=1.0):
                key.data.read(selector, endings)
            for key in list(selector.get_map().values()):
                key.data.check_clock()
    return endings


class _Lane:
    """A queue of programs, and the child that works on it."""

    def __init__(self, programs: Sequence[HostileProgram], make_engine: MakeEngine, limits: Limits) -> None:
        self._waiting = list(programs)
        self._make_engine = make_engine
        self._limits = limits
        self._pid = 0
        self._pipe = -1
        self._buffer = b""
        self._begun = 0.0

    def start(self, selector: selectors.BaseSelector) -> None:
        """Fork a child for what waits."""
        if not self._waiting:
            return
        self._pipe, given = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            _work(self._waiting, given, self._make_engine, self._limits)
        os.close(given)
        self._buffer, self._begun = b"", time.monotonic()
        selector.register(self._pipe, selectors.EVENT_READ, self)

    def read(self, selector: selectors.BaseSelector, endings: dict[str, Ending]) -> None:
        """Take what the child reports; if it has ended, say of what, and fork the next."""
        read = os.read(self._pipe, _READ)
        *lines, self._buffer = (self._buffer + read).split(b"\n")
        for line in lines:
            endings[self._waiting.pop(0).name] = msgspec.json.decode(line, type=Ending)
            self._begun = time.monotonic()
        if read:
            return
        selector.unregister(self._pipe)
        os.close(self._pipe)
        _, status = os.waitpid(self._pid, 0)
        if self._waiting and status:
            endings[self._waiting.pop(0).name] = Ending(limit=_killed(status))
        self.start(selector)

    def check_clock(self) -> None:
        """Kill a child that neither works nor ends."""
        if time.monotonic() - self._begun > WALL_SECONDS:
            os.kill(self._pid, signal.SIGKILL)


def _killed(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"exit {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return _KILLS.get(signal.Signals(number), f"signal {signal.Signals(number).name}")


def _work(programs: Sequence[HostileProgram], pipe: int, make_engine: MakeEngine, limits: Limits) -> None:
    """Be a child: run programs, report each, and leave without the parent's own clean-up."""
    status = 1
    try:
        faulthandler.disable()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        memory = _address_space() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        engine = make_engine(PARAMS)
        for program in programs:
            # RLIMIT_CPU counts whole seconds of the process; this one counts those of the program.
            signal.setitimer(signal.ITIMER_PROF, limits.seconds.get(program.name, CPU_SECONDS))
            ending = _attempt(engine, program)
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(pipe, msgspec.json.encode(ending) + b"\n")
            if program.name in limits.marked:
                break
        status = 0
    finally:
        os._exit(status)


def _address_space() -> int:
    """Return the bytes that this process has mapped; 0 where the system does not say."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[0]) * resource.getpagesize() if path.exists() else 0


def _attempt(engine: Any, program: HostileProgram) -> Ending:
    begun = time.process_time()
    outcome, limit = None, ""
    try:
        outcome = run_program(engine, program)
    except MemoryError:
        limit = "memory"
    # The engine must not raise, and this is how a test learns that it does.
    except BaseException as error:  # noqa: BLE001
        limit = f"raised {type(error).__name__}: {error}"
    # The engine refuses results above 32 MiB before they are made (D-101), so a MemoryError is an end like any other. A
    # deque that cannot grow raises a SystemError.
    if outcome is not None and outcome.exception == "SystemError":
        limit = "memory"
    return Ending(outcome, limit, time.process_time() - begun)
