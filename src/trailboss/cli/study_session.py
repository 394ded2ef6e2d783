"""What `trailboss study` does, once the packages that it needs are there."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from trailboss.cli.command import Invocation
from trailboss.cli.errors import CLUSTER_INSTALL, Mistake, installed
from trailboss.cli.output import (
    Cell,
    columns,
    growing_progress,
    note,
    print_facts,
    print_json,
    print_section,
    print_table,
)
from trailboss.simulator.study.base import Point
from trailboss.simulator.study.catalogue import Case, Mode, find_case, study_names, study_of
from trailboss.simulator.study.page import page_of, write_figures
from trailboss.simulator.study.replication import measured, task_of
from trailboss.simulator.study.results import StoredResults, read_results
from trailboss.simulator.study.run import journal_path, results_path, run_study
from trailboss.simulator.study.workers import Workers, open_workers
from trailboss.views.mechanism.base import Column, ValueKind

Document = dict[str, Any]


def show_studies(run: Invocation) -> None:
    """Print the name, the points and the question of each study."""
    cases = [find_case(name, Mode.FULL) for name in study_names()]
    if run.as_json:
        print_json([{"name": case.name, "points": len(case.points), "question": case.study.TITLE} for case in cases])
    else:
        rows = [(case.name, len(case.points), case.study.TITLE) for case in cases]
        print_table("Studies", columns("study | >points | question/29"), rows)


def show_replication(run: Invocation, name: str, replication: int, point: str | None, *, quick: bool) -> None:
    """Run one replication of one point or of all, and print its measures, as a run would store them."""
    case = _case(name, quick=quick)
    points = case.points if point is None else [case.point(point)]
    found = [measured(task_of(case, each, replication)) for each in points]
    if run.as_json:
        keys = zip(points, found, strict=True)
        print_json([_replication(each, replication, measures) for each, measures in keys])
        return
    names = sorted({measure for measures in found for measure in measures})
    rows = [(measure, *(repr(each[measure]) if measure in each else None for each in found)) for measure in names]
    title = f"{case.name} ({case.mode}), replication {replication}"
    print_section(title, _heads(["measure", *(each.name for each in points)]), rows)


def _heads(titles: Sequence[str]) -> list[Column]:
    """Return the columns of a table, the first one of text, the others of numbers."""
    kinds = [ValueKind.TEXT, *(ValueKind.NUMBER for _ in titles[1:])]
    return [Column(title, title, kind) for title, kind in zip(titles, kinds, strict=True)]


def _replication(point: Point, replication: int, measures: dict[str, float]) -> Document:
    return {"point": point.name, "replication": replication, "facts": dict(point.facts), "measures": measures}


def run_whole(
    run: Invocation, name: str, folder: Path, workers: int, address: str | None, *, quick: bool, fresh: bool
) -> None:
    """Run a study, and print what came of it."""
    case = _case(name, quick=quick)
    left = journal_path(folder, case)
    if left.exists() and left.read_bytes().count(b"\n") > 1 and not fresh:
        note(f"going on with {left}")
    try:
        with growing_progress(f"running {case.name}", quiet=run.as_json) as watch:
            results = run_study(case, folder, partial(_workers, workers, address), watch, fresh=fresh)
    except KeyboardInterrupt:
        note(f"stopped; what is finished is kept in {left}: the same command goes on from there")
        raise
    figures = write_figures(results, folder)
    _show(run, results, [results_path(folder, case), *figures])


def _workers(count: int, address: str | None) -> Workers:
    with installed("--ray", CLUSTER_INSTALL):
        return open_workers(count, address, note)


def show_report(
    run: Invocation, name: str, path: Path | None, place: Path, page: Path | None, figures: Path | None, *, quick: bool
) -> None:
    """Print the results of a file, or of the last run in a place; write page and figures if they are asked for."""
    results = read_results(path or results_path(place, _case(name, quick=quick)))
    found = results.provenance.study
    if found != name:
        raise Mistake(f"{path} has the results of {found}, not of {name}", f"trailboss study report {found}")
    written = list[Path]()
    folder = figures or (page.parent if page is not None else None)
    if folder is not None:
        written += write_figures(results, folder)
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(page_of(results, written, page.parent), encoding="utf-8")
        written.insert(0, page)
    _show(run, results, written)


def _show(run: Invocation, results: StoredResults, written: Sequence[Path]) -> None:
    """Print results with their intervals, and which files have been written."""
    provenance = results.provenance
    if run.as_json:
        points = [_point_document(results, point) for point in results.points]
        print_json({"provenance": provenance, "points": points, "files": [str(path) for path in written]})
        return
    head, rows = study_of(provenance.module).table(results)
    cells: list[tuple[Cell, ...]] = [tuple(row) for row in rows]
    print_section(f"{provenance.study} ({provenance.mode})", _heads(head), cells)
    typer.echo()
    least, *_, most = sorted([results.count(point.name) for point in results.points] * 2)
    facts: dict[str, Cell] = {
        "±": "half of a 95 % confidence interval",
        "replications": f"{least} of each point" if least == most else f"{least} to {most} of a point",
        "sources": provenance.source_digest,
        "settings": provenance.settings_digest,
    }
    print_facts(facts | ({"written": ", ".join(map(str, written))} if written else {}))


def _point_document(results: StoredResults, point: Point) -> Document:
    names = results.rows[point.name, 1]
    intervals = {name: results.interval(point.name, name) for name in names}
    return {"name": point.name, "facts": dict(point.facts), "measures": intervals}


def _case(name: str, *, quick: bool) -> Case:
    names = study_names()
    if name not in names:
        raise Mistake(f"there is no study {name!r}", f"there are: {', '.join(names)}")
    return find_case(name, Mode.QUICK if quick else Mode.FULL)
