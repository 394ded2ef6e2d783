"""Threads with a stack that is deep enough for WebAssembly.

wasmtime trusts that a thread has the stack that its settings state, and looks no further: on a smaller one a deep
recursion ends the process. So every frame runs on a thread of this module, and a nested frame on one of its own.
"""

import _thread
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Final, TypeVar

WASM_STACK_BYTES: Final = 64 << 20
"""What WebAssembly may use of a thread's stack: more than CPython needs to fill its own stack of 2 MiB."""
STACK_BYTES: Final = WASM_STACK_BYTES + (32 << 20)  # address space of a thread's stack, host calls included
T = TypeVar("T")
_here: Final = threading.local()  # its ``stage`` is that of the present thread


class Stage:
    """One thread that waits for something to run."""

    def __init__(self) -> None:
        self.is_occupied = False  # whether a frame uses the stack
        self._work: tuple[Callable[[], None], _thread.LockType] | None = None
        self._called = _thread.allocate_lock()
        self._called.acquire()
        before = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=self._serve, name="sandbox", daemon=True).start()
        finally:
            threading.stack_size(before)

    def run(self, action: Callable[[], T]) -> T:
        """Run an action there, wait for it, and return or raise its result."""
        results: list[T] = []
        errors: list[BaseException] = []
        begun, done = _thread.allocate_lock(), _thread.allocate_lock()
        done.acquire()

        def work() -> None:
            if begun.acquire(blocking=False):
                try:
                    results.append(action())
                # The exception continues on the caller's thread.
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)

        self._work = work, done
        try:
            self._called.release()
            done.acquire()
        # An interrupt from the keyboard. What has begun still changes what the caller would otherwise change at once.
        except BaseException:
            while not begun.acquire(blocking=False) and not (results or errors):
                with suppress(KeyboardInterrupt):
                    done.acquire()
            raise
        if errors:
            raise errors[0]
        return results[0]

    def occupy(self, action: Callable[[], T]) -> T:
        """Run a frame's action on the present thread, which is this stage's."""
        self.is_occupied = True
        try:
            return action()
        finally:
            self.is_occupied = False

    def _serve(self) -> None:
        _here.stage = self
        while True:
            self._called.acquire()
            assert self._work is not None
            (work, done), self._work = self._work, None
            work()
            del work
            done.release()


@cache
def _waiting() -> list[Stage]:
    """Return the stages that wait; appending and popping are atomic."""
    stages: list[Stage] = []
    # A process that was forked has the list, but not the threads.
    os.register_at_fork(after_in_child=stages.clear)
    return stages


def on_stage(action: Callable[[], T]) -> T:
    """Run a frame's action on a thread with a deep stack of which no other frame uses any, and wait for its end."""
    stage = _free_stage()
    return _elsewhere(lambda stage: stage.occupy(action)) if stage is None else stage.occupy(action)


def near_stage(action: Callable[[], T]) -> T:
    """Run an action on a thread on which its frames can run, one after another, and wait for its end."""
    return _elsewhere(lambda _: action()) if _free_stage() is None else action()


def _free_stage() -> Stage | None:
    """Return the present thread's stage, if it is one that no frame uses."""
    stage: Stage | None = getattr(_here, "stage", None)
    return None if stage is None or stage.is_occupied else stage


def _elsewhere(action: Callable[[Stage], T]) -> T:
    try:
        stage = _waiting().pop()
    except IndexError:
        stage = Stage()
    try:
        return stage.run(partial(action, stage))
    finally:
        _waiting().append(stage)
