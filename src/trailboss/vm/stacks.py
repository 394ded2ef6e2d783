"""Room for deep calls: what the interpreter itself allows, and fresh stacks for deeply nested frames.

Guest code may be 256 calls deep in each of 33 nested frames. CPython spends up to 2 KiB of the C stack on such a call
(a sort whose key function sorts), so eight frames fit the usual 8 MiB and the ninth gets a stack of its own. Python
3.12 counts such calls besides and allows 499 of them on a stack, so there each frame has its own. The caller waits for
it: nothing runs beside anything else.
"""

import _thread
import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

FRAMES_ON_A_STACK: Final = 1 if sys.version_info[:2] == (3, 12) else 8
STACK_BYTES: Final = 64 * 2**20
"""Address space of a fresh stack; only what is used takes memory."""
RECURSION_LIMIT: Final = 8_000
"""CPython's own limit while frames run: above 8 frames of 256 calls at up to three of its levels each."""
T = TypeVar("T")


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let calls go deep, and keep the process out of what guests do.

    The collector of cycles would run guest code at moments that differ, and a filter of warnings could turn what one
    version warns of into an exception.
    """
    collects, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.setrecursionlimit(limit)
        if collects:
            gc.enable()


def on_fresh_stack(action: Callable[[], T]) -> T:
    """Run an action on a stack of its own, wait for it, and return or raise what it does."""
    done = _thread.allocate_lock()
    done.acquire()
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(action())
        # The caller's stack is where this belongs; whatever it is, it goes on there.
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            done.release()

    before = _thread.stack_size(STACK_BYTES)
    try:
        _thread.start_new_thread(run, ())
    finally:
        _thread.stack_size(before)
    done.acquire()
    if errors:
        raise errors[0]
    return answers[0]
