"""The results of a study: one Parquet file, with their provenance in its metadata."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl
from msgspec import Struct, ValidationError, json

from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.simulator.metrics.statistics import Interval, interval_of
from trailboss.simulator.scenario import converted
from trailboss.simulator.study.base import Point, Settings
from trailboss.simulator.study.catalogue import Provenance, study_of
from trailboss.simulator.study.journal import Rows
from trailboss.simulator.study.replication import StudyFault

KEYS: Final = ("point", "replication")  # columns beside the facts and the measures
PROVENANCE: Final = "provenance"  # key of the metadata
SEEDS: Final = "seeds"  # another: how many replications each point has; their seeds are 1 to this number


class StoredResults(Struct):
    """Results, as `trailboss.simulator.study.base.Results` describes them."""

    provenance: Provenance
    points: Sequence[Point]
    settings: Any
    rows: Rows

    def count(self, point: str) -> int:
        """Return how many replications a point has."""
        return sum(name == point for name, _ in self.rows)

    def values(self, point: str, measure: str) -> list[float]:
        """Return the measure of each replication of a point, in order."""
        return values_of(self.rows, point, measure, self.count(point))

    def interval(self, point: str, measure: str) -> Interval:
        """Return the interval of a measure at a point."""
        return interval_of(self.values(point, measure))

    def difference(self, point: str, other: str, measure: str) -> Interval:
        """Return the interval of the differences, over the replications that both points have."""
        count = min(self.count(point), self.count(other))
        pairs = zip(self.values(point, measure)[:count], self.values(other, measure)[:count], strict=True)
        return interval_of([one - two for one, two in pairs])


def values_of(rows: Rows, point: str, measure: str, count: int) -> list[float]:
    """Return a measure of replications 1 to a number of a point.

    Raises:
        StudyFault: If one of them does not have it.
    """
    found = [rows[point, number] for number in range(1, count + 1)]
    if lacking := [each for each in found if measure not in each]:
        raise StudyFault(f"point {point} has no measure {measure!r}; it has: {', '.join(lacking[0])}")
    return [each[measure] for each in found]


def results_of(provenance: Provenance, settings: Settings, rows: Rows) -> StoredResults:
    """Return the results of a run, ordered by point and replication."""
    order = [point.name for point in provenance.points]
    keys = sorted(rows, key=lambda key: (order.index(key[0]), key[1]))
    return StoredResults(provenance, provenance.points, settings, {key: rows[key] for key in keys})


def write_results(results: StoredResults, path: Path) -> None:
    """Write results; equal results give equal bytes. The file is there whole, or not at all.

    Raises:
        StudyFault: If a fact and a measure have one name.
    """
    metadata = {
        PROVENANCE: json.encode(results.provenance, order="deterministic").decode(),
        SEEDS: json.encode({point.name: results.count(point.name) for point in results.points}).decode(),
    }
    part = path.with_name(f"{path.name}.part")
    _frame(results).write_parquet(part, compression="zstd", metadata=metadata)
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def _frame(results: StoredResults) -> pl.DataFrame:
    """Return a row for each replication, by name of the point and number; columns by name."""
    facts = {point.name: point.facts for point in results.points}
    measures = {name for row in results.rows.values() for name in row}
    known = {name for each in facts.values() for name in each}
    if twice := (measures & known) | ((measures | known) & set(KEYS)):
        raise StudyFault(f"{min(twice)} names two columns of the results")
    keys = sorted(results.rows)
    columns: dict[str, pl.Series] = {
        "point": pl.Series([point for point, _ in keys], dtype=pl.String),
        "replication": pl.Series([number for _, number in keys], dtype=pl.Int64),
    }
    for name in measures:
        columns[name] = pl.Series([results.rows[key].get(name) for key in keys], dtype=pl.Float64)
    for name in known:
        columns[name] = _fact_column([facts[point].get(name) for point, _ in keys])
    return pl.DataFrame({name: columns[name] for name in sorted(columns)})


def _fact_column(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int}:
        return pl.Series(values, dtype=pl.Int64)
    if kinds <= {int, float}:
        return pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


def read_results(path: Path) -> StoredResults:
    """Read results.

    Raises:
        StorageError: If the file is not there, or is not one of a study.
        ConfigurationError: If its study has other settings today.
    """
    fix = "run the study again, or name another file with --results"
    if not path.exists():
        raise StorageError(path, "there are no results", fix)
    try:
        metadata = pl.read_parquet_metadata(path)
        provenance = json.decode(metadata[PROVENANCE], type=Provenance)
        rows = pl.read_parquet(path).iter_rows(named=True)
        study = study_of(provenance.module)
    except (KeyError, ValidationError, pl.exceptions.PolarsError, ModuleNotFoundError) as error:
        raise StorageError(path, f"this is no file of a study's results: {error}", fix) from None
    try:
        settings = converted(provenance.settings, study.Settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: its study has other settings today: {error}") from None
    beside = {*KEYS, *(name for point in provenance.points for name in point.facts)}
    found = Rows()
    for row in rows:
        measures = {name: value for name, value in row.items() if name not in beside and value is not None}
        found[row["point"], row["replication"]] = measures
    return results_of(provenance, settings, found)
