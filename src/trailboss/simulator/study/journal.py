"""The journal of a run: finished replications, one a line, so that a run which is killed goes on where it was."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.json import decode

from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.simulator.study.catalogue import Provenance
from trailboss.simulator.study.replication import Measures

Rows = dict[tuple[str, int], Measures]
"""Measures by name of a point and replication."""


class RunJournal:
    """A file of lines of JSON: the provenance, then a line for each replication.

    Attributes:
        rows: What it holds.
    """

    def __init__(self, path: Path, provenance: Provenance, *, fresh: bool = False) -> None:
        """Open the journal at a path, or begin it; ``fresh`` begins it anyway.

        Raises:
            ConfigurationError: If it is of another provenance, naming what has changed.
            StorageError: If another process has it open, or a line other than the last is damaged.
        """
        self.path, self.rows = path, Rows()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if fresh:
                os.ftruncate(self._file, 0)
            self._read(provenance)
        except BlockingIOError:
            self.close()
            raise StorageError(path, "another process runs this study here", "let it finish, or stop it") from None
        except BaseException:
            self.close()
            raise

    def _read(self, provenance: Provenance) -> None:
        octets = self.path.read_bytes()
        # A run that is killed while it writes leaves a part of a line.
        whole = octets[: octets.rfind(b"\n") + 1]
        lines = whole.splitlines()
        # Without a replication there is nothing to go on from, or to lose.
        os.ftruncate(self._file, len(whole) if len(lines) > 1 else 0)
        if len(lines) <= 1:
            self._write(to_builtins(provenance))
            return
        number = 1
        try:
            before = decode(lines[0], type=Provenance)
            for number, line in enumerate(lines[1:], 2):  # noqa: B007  # named if it is damaged
                found = json.loads(line)
                self.rows[found["point"], found["replication"]] = found["measures"]
        except (ValueError, KeyError, TypeError):
            raise StorageError(self.path, f"line {number} is damaged", "start afresh with --fresh") from None
        if changes := _changes(before, provenance):
            raise ConfigurationError(
                f"{self.path} holds {len(self.rows)} replications of another run: {'; '.join(changes)}; restore that "
                "to go on, or drop them with --fresh"
            )

    def add(self, point: str, replication: int, measures: Measures) -> None:
        """Note a finished replication."""
        self.rows[point, replication] = measures
        self._write({"point": point, "replication": replication, "measures": measures})

    def _write(self, record: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(record).encode() + b"\n")

    def remove(self) -> None:
        """Remove the file, once the results are written."""
        self.path.unlink()

    def close(self) -> None:
        """Leave the file as it is."""
        os.close(self._file)


def _changes(before: Provenance, now: Provenance) -> list[str]:
    """Return what differs between two runs, in words."""
    names = sorted(before.settings.keys() | now.settings.keys())
    pairs = [(name, before.settings.get(name), now.settings.get(name)) for name in names]
    pairs += [(name, getattr(before, name), getattr(now, name)) for name in ("module", "mode", "version", "numpy")]
    words = [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]
    if before.source_digest != now.source_digest:
        words.append("the sources of the simulation have changed")
    return words
