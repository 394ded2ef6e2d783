"""A run: replications of every point, in whatever order they finish, until each point has what it needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from trailboss.simulator.metrics.statistics import interval_of
from trailboss.simulator.study.base import Point
from trailboss.simulator.study.catalogue import Case, provenance_of
from trailboss.simulator.study.journal import Rows, RunJournal
from trailboss.simulator.study.replication import task_of
from trailboss.simulator.study.results import StoredResults, results_of, values_of, write_results
from trailboss.simulator.study.workers import Workers

ROUND: Final = 5  # replications by which a point goes on whose intervals are too wide
Watch = Callable[[int, int], None]
"""Takes how many replications are finished, and how many are wanted so far."""


def results_path(folder: Path, case: Case) -> Path:
    """Return where a run writes its results."""
    return folder / f"{case.stem}.parquet"


def journal_path(folder: Path, case: Case) -> Path:
    """Return where a run keeps what is finished until then."""
    return folder / f"{case.stem}.journal"


def run_study(
    case: Case, folder: Path, open_workers: Callable[[], Workers], watch: Watch, *, fresh: bool = False
) -> StoredResults:
    """Run a study, or go on with it; write its results to a folder and return them.

    Raises:
        ConfigurationError: If the folder holds the journal of another run; ``fresh`` drops it.
        StorageError: If that journal is in use or damaged.
        StudyFault: If a replication cannot be had.
    """
    provenance = provenance_of(case)
    journal = RunJournal(journal_path(folder, case), provenance, fresh=fresh)
    try:
        workers = open_workers()
        try:
            _complete(case, journal, workers, watch)
        finally:
            workers.close()
        results = results_of(provenance, case.settings, journal.rows)
        write_results(results, results_path(folder, case))
        journal.remove()
    finally:
        journal.close()
    return results


def _complete(case: Case, journal: RunJournal, workers: Workers, watch: Watch) -> None:
    asked = set(journal.rows)
    while True:
        wanted = [
            (number, point) for point in case.points for number in range(1, _wanted(case, point, journal.rows) + 1)
        ]
        for number, point in sorted(wanted, key=lambda each: each[0]):
            if (point.name, number) not in asked:
                asked.add((point.name, number))
                workers.submit(task_of(case, point, number))
        watch(len(journal.rows), len(wanted))
        if len(journal.rows) == len(wanted):
            return
        task, measures = workers.take()
        journal.add(task.point.name, task.replication, measures)


def _wanted(case: Case, point: Point, rows: Rows) -> int:
    """Return how many replications a point wants: this follows from those that it has, not from when they came."""
    settings = case.settings
    wanted = settings.replications_min
    while wanted < settings.replications_max:
        has_all = all((point.name, number) in rows for number in range(1, wanted + 1))
        if not has_all or _is_narrow(case, point, rows, wanted):
            break
        wanted = min(wanted + ROUND, settings.replications_max)
    return wanted


def _is_narrow(case: Case, point: Point, rows: Rows, count: int) -> bool:
    """Return whether the intervals over the first replications of a point meet all targets."""
    found = {name: interval_of(values_of(rows, point.name, name, count)) for name in case.settings.targets}
    return all(found[name].half_width <= width for name, width in case.settings.targets.items())
