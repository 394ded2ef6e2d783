"""Reports as tables for people and as JSON for programs."""

import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Figure, Report, Row, shown_time


def show(console: Console, report: Report) -> None:
    """Print one report."""
    table = Table(title=report.title, title_justify="left", title_style="bold", caption_justify="left")
    table.add_column(report.operation, no_wrap=True)
    for heading in ("median", "fastest", "a second", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("to", no_wrap=True)
    table.add_column("budget", justify="right")
    table.add_column("")
    for row in report.rows:
        table.add_row(*_cells(row))
    table.caption = "\n".join([*report.notes, pace(report)])
    # A subject without cases has figures alone.
    console.print(table if report.rows else f"[bold]{report.title}[/]\n{table.caption}")
    for figure in report.figures:
        console.print(_told(figure))
    console.print()


def document(reports: Mapping[str, Report], commit: str, date: str) -> dict[str, object]:
    """Return everything that was measured, every round of it.

    Args:
        reports: By the name of the subject.
        commit: Of the code, as the caller gives it.
        date: Of the run, as the caller gives it.
    """
    return {
        "commit": commit,
        "date": date,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "subjects": {name: _subject(report) for name, report in reports.items()},
    }


def pace(report: Report) -> str:
    """Return how fast the machine was meanwhile, in words."""
    low, middle, high = min(report.calibration), median(report.calibration), max(report.calibration)
    return f"sha256 of 64 bytes, the machine's pace: {shown_time(middle)} ({shown_time(low)} to {shown_time(high)})"


def shown_ratio(row: Row) -> str:
    """Return the ratio to the case beside it; empty if there is none."""
    if row.ratio is None:
        return ""
    return f"{row.ratio:.2f} ×" if row.ratio < 10 else f"{row.ratio:,.0f} ×"


def _cells(row: Row) -> tuple[str, ...]:
    rate = 1 / row.median
    budget = row.budget()
    limit, verdict = ("", "") if budget is None else (budget[0], _verdict(budget[1]))
    return (
        row.case.name,
        shown_time(row.median),
        shown_time(min(row.seconds)),
        f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}",
        shown_ratio(row),
        row.case.beside,
        limit,
        verdict,
    )


def _told(figure: Figure) -> str:
    said = f"{figure.name}: {figure.shown}"
    budget = figure.budget()
    return said if budget is None else f"{said} (budget {budget[0]}: {_verdict(budget[1])})"


def _verdict(met: bool) -> str:
    return "[green]met[/]" if met else "[red]missed[/]"


def _subject(report: Report) -> dict[str, object]:
    return {
        "title": report.title,
        "operation": report.operation,
        "notes": report.notes,
        "calibration": report.calibration,
        "rows": [
            {
                "name": row.case.name,
                "seconds": row.seconds,
                "median": row.median,
                "beside": row.case.beside,
                "ratios": row.ratios,
                "ratio": row.ratio,
                "budget": budget[0] if budget else None,
                "met": budget[1] if budget else None,
            }
            for row in report.rows
            for budget in (row.budget(),)
        ],
        "figures": [
            {
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
                "budget": budget[0] if budget else None,
                "met": budget[1] if budget else None,
            }
            for figure in report.figures
            for budget in (figure.budget(),)
        ],
    }


def processor() -> str:
    """Return the processor's name where the system tells it, else what the platform says."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
