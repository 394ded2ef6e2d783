"""The stored run of a page: tables in Markdown between two marks, written by the run itself."""

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.measure import Report, Row, shown_time
from benchmarks.report import pace, processor, shown_ratio

BEGIN = "<!-- run: written by python -m benchmarks --page -->"
END = "<!-- end of run -->"


def store(path: Path, reports: Mapping[str, Report], commit: str, date: str) -> None:
    """Replace what a page has between its marks by the tables of a run.

    Args:
        path: The page.
        reports: By the name of the subject.
        commit: Of the code, as the caller gives it.
        date: Of the run, as the caller gives it.

    Raises:
        ValueError: If the page has not both marks, in order.
    """
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} needs the marks {BEGIN!r} and {END!r}, in that order")
    tables = "\n".join([_machine(commit, date), "", *_budgets(reports), *_subjects(reports)])
    path.write_text(f"{before}{begin}\n\n{tables}\n{end}{after}", encoding="utf-8")


def _machine(commit: str, date: str) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    told = [date, f"commit `{commit}`" if commit else "", python, processor()]
    return ", ".join(part for part in told if part) + ". Times are medians."


def _budgets(reports: Mapping[str, Report]) -> Iterator[str]:
    """Yield one line for every budget, those that are missed in bold."""
    yield from ("### Budgets", "", "| what | budget | this run | |", "| --- | ---: | ---: | --- |")
    for name, report in reports.items():
        rows = [(row.case.name, row.budget(), _judged(row)) for row in report.rows]
        figures = [(figure.name, figure.budget(), figure.shown) for figure in report.figures]
        for what, budget, shown in rows + figures:
            if budget is not None:
                limit, met = budget
                yield f"| {name}: {what} | {limit} | {shown} | {'met' if met else '**missed**'} |"
    yield ""


def _judged(row: Row) -> str:
    """Return what the budget of a row is about."""
    if row.case.ratio_max is not None:
        return shown_ratio(row)
    return f"{1 / row.median:,.0f}/s" if row.case.rate_min is not None else shown_time(row.median)


def _subjects(reports: Mapping[str, Report]) -> Iterator[str]:
    for name, report in reports.items():
        yield from (f"### {report.title} (`{name}`)", "")
        if report.rows:
            yield from (f"| {report.operation} | median | ratio | to |", "| --- | ---: | ---: | --- |")
            for row in report.rows:
                yield f"| {row.case.name} | {shown_time(row.median)} | {shown_ratio(row)} | {row.case.beside} |"
            yield ""
        if report.figures:
            yield from ("| figure | |", "| --- | ---: |")
            for figure in report.figures:
                yield f"| {figure.name} | {figure.shown} |"
            yield ""
        yield from (*report.notes, "", f"({pace(report)})", "")
