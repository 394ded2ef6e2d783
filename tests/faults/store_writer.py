"""A process that writes a chain directory at random until somebody kills it, and keeps a log of what it was told.

The log has two kinds of lines. ``try HEIGHT ROOT RECORD`` is written before an operation that ends at that height and
root, ``done HEIGHT ROOT RECORD`` after it returned; RECORD is 1 if that height has a block record. So the directory
must hold what the last ``done`` says, or the ``try`` after it.
"""

import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from trailboss.primitives.octets import Hash32
from trailboss.state import keys
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.state.slots import encode_slot
from trailboss.state.store import BEFORE_GENESIS

GENESIS = b"a chain of random blocks"
SETTINGS = StoreSettings(flush_interval=5, kept_journal=40, unflushed_values=3, map_size=1 << 16)
"""Small, so that flushes, pruning and growth of the map happen within a second."""

OPERATIONS = 400
ACTORS = [bytes([number]) * 20 for number in range(4)]


def random_changes(dice: random.Random, live: list[bytes]) -> dict[bytes, bytes | None]:
    """Return the changes of a random block; ``live`` holds the keys of timers that may be deleted."""
    changes: dict[bytes, bytes | None] = {}
    for _ in range(dice.randrange(12)):
        timer = keys.timer_key(dice.randrange(1_000), dice.randbytes(32))
        changes[timer] = dice.randbytes(dice.randrange(400))
        live.append(timer)
    for _ in range(min(len(live), dice.randrange(12))):
        changes[live.pop(dice.randrange(len(live)))] = None
    for _ in range(dice.randrange(4)):
        actor, name = dice.choice(ACTORS), bytes([dice.randrange(30)])
        value = None if dice.random() < 0.3 else encode_slot(name, dice.randbytes(dice.randrange(3_000)))
        changes[keys.storage_key(actor, name)] = value
        changes[keys.account_key(actor)] = dice.randbytes(8)
    return changes


def record_of(height: int, root: bytes) -> bytes:
    """Return the block record that the writer seals with a block."""
    return height.to_bytes(8, "big") + root


class Line(NamedTuple):
    """One line of the log; the root is ``-`` where a revert ends that has not returned."""

    word: str
    height: int
    root: str
    recorded: bool


class Writer:
    """Random commits, seals, idle runs and reverts on one directory."""

    def __init__(self, directory: Path, log: Path, seed: int) -> None:
        self._dice = random.Random(seed)
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._store = open_or_create(directory)
        self._live = [key for key, _ in self._store.iterate(keys.TIMERS)]
        recorded = self._store.height in [height for height, _ in self._store.records(0)]
        self._note("done", self._store.height, self._store.state_root, recorded)

    def run(self) -> None:
        """Write ``OPERATIONS`` times, then close the directory."""
        for _ in range(OPERATIONS):
            choice = self._dice.random()
            if choice < 0.12 and self._store.height > BEFORE_GENESIS:
                self._revert()
            elif choice < 0.2:
                self._write(self._dice.randrange(1, 40), changed=0.02)
            else:
                self._write(self._dice.randrange(1, 4), changed=0.9)
        self._store.close()

    def _write(self, blocks: int, changed: float) -> None:
        for _ in range(blocks):
            changes = random_changes(self._dice, self._live) if self._dice.random() < changed else {}
            self._store.commit(self._store.height + 1, changes)
        height, root = self._store.height, self._store.state_root
        record = (height, record_of(height, root)) if self._dice.random() < 0.8 else None
        self._note("try", height, root, record is not None)
        self._store.seal(record)
        self._note("done", height, root, record is not None)

    def _revert(self) -> None:
        height = max(BEFORE_GENESIS, self._store.height - self._dice.choice([1, 2, 5, 12, 30]))
        if height < self._store.floor:
            return
        if self._dice.random() < 0.5:
            # Something staged on top, which the revert takes back too.
            self._store.commit(self._store.height + 1, random_changes(self._dice, self._live))
        self._note("try", height, None)
        self._store.revert(height)
        self._live = [key for key, _ in self._store.iterate(keys.TIMERS)]
        self._note("done", height, self._store.state_root)

    def _note(self, word: str, height: int, root: Hash32 | None, recorded: bool = False) -> None:
        os.write(self._log, f"{word} {height} {'-' if root is None else root.hex()} {int(recorded)}\n".encode())


def open_or_create(directory: Path) -> DiskStore:
    """Open the chain of a directory, or create it there if its creation was never finished."""
    if (directory / "chain.mdb").exists():
        return DiskStore.open(directory, durable=False, settings=SETTINGS)
    return DiskStore.create(directory, GENESIS, durable=False, settings=SETTINGS)


def die_at_line(number: int) -> None:
    """Kill this process when it comes to the ``number``-th line of the modules of the store."""
    lines = iter(range(number))

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if "/trailboss/state/" not in frame.f_code.co_filename or frame.f_code.co_filename.endswith("tree.py"):
            return None
        if event == "line" and next(lines, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def log_lines(log: Path) -> Iterator[Line]:
    """Yield every line of a log, after cutting off a last one without an end.

    A kill can tear a write where it crosses a page. What was to be noted is then as good as not noted: the line before
    it is the `try` of the same step, or the step has not begun.
    """
    text = log.read_text(encoding="ascii")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        log.write_text(whole, encoding="ascii")
    for line in whole.splitlines():
        word, height, root, recorded = line.split()
        yield Line(word, int(height), root, recorded == "1")
