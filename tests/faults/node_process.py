"""A node in a process of its own, forked from this one, which has imported all of it: it is ready in a moment.

What it runs is the program itself, from its arguments to its exit status.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from threading import Timer
from typing import Any, Final

# Imported for the node's sake, before it is forked.
import trailboss.server  # noqa: F401
from trailboss.cli.main import app

TIMEOUT_SECONDS: Final = 30
OCTETS: Final = "application/octet-stream"
JSON: Final = "application/json"


class NodeProcess:
    """A node, and a connection to it.

    Attributes:
        pid: Its process.
        document: What it has printed; empty if it ended, or was killed, before it was ready.
        start_seconds: How long that took.
        is_running: Whether nobody has waited for its end yet.
    """

    def __init__(self, *arguments: str, log: Path, seconds: float | None = None) -> None:
        """Start a node, and wait until it is ready, or has ended.

        Args:
            arguments: The command and its options, but for ``--json``.
            log: File that gets what it writes to stderr.
            seconds: Time after which it is killed, whatever it does then; None for not yet.
        """
        begun = time.monotonic()
        self.is_running = True
        output, given = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _become([*arguments, "--json"], given, log)
        os.close(given)
        self._killer: Timer | None = None
        if seconds is not None:
            self.kill_after(seconds)
        with os.fdopen(output) as said:
            self.document = _read_document(said.readline)
        self.start_seconds = time.monotonic() - begun
        self._connection: HTTPConnection | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it has come as far as to say where it listens."""
        return bool(self.document)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self.document["host"], self.document["port"]

    def ask(self, method: str, path: str, body: bytes | None = None, media: str = JSON) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        if self._connection is None:
            self._connection = HTTPConnection(*self.address, timeout=TIMEOUT_SECONDS)
        self._connection.request(method, path, body, {} if body is None else {"Content-Type": media})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def post(self, path: str, **members: Any) -> tuple[int, Any]:
        """Return the status and the document of the answer to a document."""
        return self.ask("POST", path, json.dumps(members).encode())

    def kill_after(self, seconds: float) -> None:
        """Have it killed, whatever it does then."""
        self._forget_killer()
        self._killer = Timer(seconds, os.kill, (self.pid, signal.SIGKILL))
        self._killer.start()

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for its end, and return how it ended: minus the signal, or the status."""
        if self._connection is not None:
            self._connection.close()
        _, status = os.waitpid(self.pid, 0)
        self.is_running = False
        self._forget_killer()
        return os.waitstatus_to_exitcode(status)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, and return how it did."""
        self.send(number)
        return self.wait()

    def _forget_killer(self) -> None:
        if self._killer is not None:
            self._killer.cancel()
            self._killer.join()


def _become(arguments: list[str], output: int, log: Path) -> None:
    """Run the program, in a child process, until it ends."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        app(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # nothing may get beyond this process's end
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _read_document(read_line: Callable[[], str]) -> dict[str, Any]:
    """Return the document that a node prints when it is ready; an empty one if it has not come so far."""
    text = ""
    while not text.endswith("\n}\n"):
        line = read_line()
        if not line:
            return {}
        text += line
    document: dict[str, Any] = json.loads(text)
    return document
