"""Who runs replications: this process, several processes, or the machines of a Ray cluster.

All run `attempt`, so that results do not depend on who does. A worker that dies is named, and its replication repeated.
"""

import os
import signal
import socket
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.study.replication import Measures, StudyFault, Task, attempt

REPEATS_MAX: Final = 3  # of a replication whose workers die
CONNECT_SECONDS: Final = 10  # for a Ray cluster to answer
Note = Callable[[str], None]


class Workers(Protocol):
    """Who runs replications."""

    def submit(self, task: Task) -> None:
        """Take on a replication."""

    def take(self) -> tuple[Task, Measures]:
        """Return one that is finished, in whatever order, once there is one; `StudyFault` if it cannot be had."""

    def close(self) -> None:
        """Stop, with what is not finished."""


def open_workers(count: int, address: str | None, note: Note) -> Workers:
    """Return this process for a count of 1, several processes, or a Ray cluster by its address.

    Raises:
        ConfigurationError: If no Ray cluster answers.
        ModuleNotFoundError: If an address is given and Ray is not installed.
    """
    if address is not None:
        return _Cluster(address, note)
    return _Here() if count == 1 else _Processes(count, note)


def _answer(task: Task, found: Measures | str) -> tuple[Task, Measures]:
    if isinstance(found, str):
        raise StudyFault(f"{task} fails: {found}")
    return task, found


class _Deaths:
    """The deaths of workers, by the replication that each had."""

    def __init__(self, note: Note) -> None:
        self._note, self._counts = note, Counter[tuple[str, int]]()

    def note(self, task: Task, how: str) -> None:
        """Note a death; `StudyFault` if the replication has had enough of them."""
        key = task.point.name, task.replication
        self._counts[key] += 1
        if self._counts[key] > REPEATS_MAX:
            raise StudyFault(f"{task} fails: {self._counts[key]} workers in a row died of it, the last one: {how}")
        self._note(f"a worker died at {task} ({how}); it is repeated")


class _Here:
    """This process."""

    def __init__(self) -> None:
        self._waiting = deque[Task]()

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def take(self) -> tuple[Task, Measures]:
        task = self._waiting.popleft()
        return _answer(task, attempt(task))

    def close(self) -> None:
        self._waiting.clear()


class _Processes:
    """Processes of this machine. Each has a pipe of its own, so that it is known which one died, and at what."""

    def __init__(self, count: int, note: Note) -> None:
        self._count, self._deaths = count, _Deaths(note)
        self._waiting = deque[Task]()
        self._idle: list[tuple[Any, BaseProcess]] = []
        self._busy: dict[Any, tuple[BaseProcess, Task]] = {}

    def submit(self, task: Task) -> None:
        self._waiting.append(task)

    def take(self) -> tuple[Task, Measures]:
        while True:
            while self._waiting and len(self._busy) < self._count:
                self._assign(self._waiting.popleft())
            pipe: Any = connection.wait(list(self._busy))[0]
            process, task = self._busy.pop(pipe)
            try:
                found = pipe.recv()
            except (EOFError, OSError):
                self._bury(process, task)
                continue
            self._idle.append((pipe, process))
            return _answer(task, found)

    def _assign(self, task: Task) -> None:
        pipe, process = self._idle.pop() if self._idle else _start()
        try:
            pipe.send(task)
        except OSError:
            self._bury(process, task)
        else:
            self._busy[pipe] = process, task

    def _bury(self, process: BaseProcess, task: Task) -> None:
        process.join()
        self._waiting.appendleft(task)
        code = process.exitcode or 0
        self._deaths.note(task, signal.Signals(-code).name if code < 0 else f"exit status {code}")

    def close(self) -> None:
        workers = [*(process for _, process in self._idle), *(process for process, _ in self._busy.values())]
        for process in workers:
            process.terminate()
        for process in workers:
            process.join()


def _start() -> tuple[Any, BaseProcess]:
    """Start a worker; return the pipe to it, and its process."""
    context = get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_serve, args=(its,), daemon=True)
    process.start()
    its.close()
    return ours, process


def _serve(pipe: Any) -> None:
    """Run what comes through a pipe, until it closes."""
    # Ctrl-C is for the process that has the workers: it ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(pipe.recv()))


class _Cluster:
    """The machines of a Ray cluster; ``local`` starts one on this machine."""

    def __init__(self, address: str, note: Note) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
        self._ray: Any = import_module("ray")
        own = {"include_dashboard": False} if address == "local" else {}
        try:
            _check_port(address)
            self._ray.init(address=address, log_to_driver=False, logging_level="error", **own)
        except (OSError, RuntimeError, ValueError) as error:
            what = f"cannot join the Ray cluster at {address!r}: {error}"
            raise ConfigurationError(f"{what}; one that asks for a token finds it in RAY_AUTH_TOKEN") from None
        self._attempt = self._ray.remote(max_retries=0)(attempt)
        self._pending: dict[Any, Task] = {}
        self._deaths = _Deaths(note)

    def submit(self, task: Task) -> None:
        self._pending[self._attempt.remote(task)] = task

    def take(self) -> tuple[Task, Measures]:
        while True:
            ready = self._ray.wait(list(self._pending), num_returns=1)[0][0]
            task = self._pending.pop(ready)
            try:
                return _answer(task, self._ray.get(ready))
            except self._ray.exceptions.RayTaskError as error:
                # The worker could not even read it: that does not change when it is repeated.
                raise StudyFault(f"{task} fails: {error.cause}") from None
            except self._ray.exceptions.RayError as error:
                self._deaths.note(task, type(error).__name__)
                self.submit(task)

    def close(self) -> None:
        self._ray.shutdown()


def _check_port(address: str) -> None:
    """Raise `OSError` if nothing listens at an address with a port: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
