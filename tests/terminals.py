"""A program in a pseudo-terminal, answered line by line as a person would."""

import os
import pty
import select
import signal
from collections.abc import Sequence

SILENCE = 60  # seconds without a word after which a program hangs


def converse(arguments: Sequence[str], lines: Sequence[str], prompt: str, **environment: str) -> str:
    """Run a program, type the next line at each prompt, and return all that its terminal shows."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(arguments[0], list(arguments), {**os.environ, "TERM": "dumb", **environment})
    waiting, shown, fresh = list(lines), "", ""
    try:
        while select.select([terminal], [], [], SILENCE)[0]:
            try:
                received = os.read(terminal, 65_536).decode(errors="replace")
            except OSError:  # how Linux says that the program has ended
                return shown.replace("\r", "")
            if not received:
                return shown.replace("\r", "")
            shown, fresh = shown + received, fresh + received
            if fresh.endswith(prompt) and waiting:
                os.write(terminal, waiting.pop(0).encode() + b"\n")
                fresh = ""
        raise AssertionError(f"the program waits, with {waiting} to type, after: {shown}")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
