"""One replication: what every kind of worker runs, wherever it is."""

from math import isnan, nan
from pathlib import Path
from traceback import extract_tb

from msgspec import Struct

from trailboss.primitives.errors import TrailbossError
from trailboss.simulator.study.base import Point, Settings
from trailboss.simulator.study.catalogue import Case, source_digest, study_of

Measures = dict[str, float]


class Task(Struct, frozen=True):
    """A replication that is to be run."""

    module: str
    source: str  # digest of the sources that it must run with
    settings: Settings
    point: Point
    replication: int

    def __str__(self) -> str:
        return f"point {self.point.name}, replication {self.replication}"


class StudyFault(TrailbossError):
    """A replication that cannot be had; the message names it."""


def task_of(case: Case, point: Point, replication: int) -> Task:
    """Return a replication of a case."""
    return Task(case.module, source_digest(case.module), case.settings, point, replication)


def measured(task: Task) -> Measures:
    """Run a replication; return its measures by name, ascending. Whatever the study raises comes through."""
    found = study_of(task.module).replicate(task.settings, task.point, task.replication)
    # There is one nan: files would show the sign of another.
    return {name: nan if isnan(value) else float(value) for name, value in sorted(found.items())}


def attempt(task: Task) -> Measures | str:
    """Run a replication; return its measures, or in words why there are none."""
    here = source_digest(task.module)
    if here != task.source:
        return f"this worker has other sources (digest {here[:8]}) than the run (digest {task.source[:8]})"
    try:
        return measured(task)
    except Exception as error:  # noqa: BLE001  # it must reach another process, where its type may be unknown
        last = extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
