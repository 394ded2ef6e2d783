"""Subjects in processes of their own, so that neither their memory nor their garbage is another's.

A worker keeps its subject and answers one call at a time, so the cases of a comparison can still take turns.
"""

import gc
import multiprocessing
from collections.abc import Callable
from ctypes import CDLL
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
HELD = "RssAnon:"
"""The line of `STATUS` that counts anonymous pages; those of a mapped file are not among them."""
UNIT = 1_024


class Worker:
    """A fresh process that holds one object and calls its methods on request."""

    def __init__(self, make: Callable[..., object], *arguments: object) -> None:
        """Start the process and make the object there.

        Args:
            make: A function or class of a module; it is imported by name.
            arguments: What it is called with.
        """
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def ask(self, method: str, *arguments: object) -> Any:
        """Call a method of the object and return what it returns.

        Raises:
            RuntimeError: If the method raises; the worker has printed the traceback.
        """
        self._connection.send((method, arguments))
        return self._answer()

    def close(self) -> None:
        """Let the process end, and wait for it."""
        self._connection.close()
        self._process.join()

    def kill(self) -> None:
        """Kill the process with SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _answer(self) -> object:
        try:
            return self._connection.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"a worker ended with exit code {self._process.exitcode}") from None


def anonymous_memory() -> int | None:
    """Return the bytes of anonymous memory that the process holds; None where the system does not tell."""
    gc.collect()
    if not STATUS.exists():
        return None
    # What has been freed goes back to the system first, as far as the allocator can give it.
    CDLL(None).malloc_trim(0)
    for line in STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(HELD):
            return int(line.split()[1]) * UNIT
    return None


def _serve(connection: Connection, make: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Make the object, then answer calls until nobody asks any more."""
    subject = make(*arguments)
    connection.send(None)
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:
            return
        connection.send(getattr(subject, method)(*arguments))
