"""``check``: a linter for the sources of actors."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from trailboss import __version__
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import FAILED, Mistake
from trailboss.cli.options import Text, Texts, argument, flag, one_of, option
from trailboss.cli.output import note, print_json
from trailboss.cli.targets import find_actor
from trailboss.cli.values import read_file
from trailboss.lint import (
    RULES,
    LintFinding,
    LintTerms,
    Severity,
    actor_files,
    called_by_timers,
    lint_source,
    sarif_log,
    selected,
)
from trailboss.params import load_params
from trailboss.params.loader import PRESETS
from trailboss.views.text import counted

PAGE = "urn:trailboss:docs:reference:check"
"""Name of the page ``docs/reference/check.md``, which has no address on the web."""


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


@command()
def check(
    run: Invocation,
    paths: Annotated[list[Path], argument("PATH", "Sources of actors, or folders with some.")],
    format: Annotated[Format, option("FORM", "text, json, or sarif for code hosts and editors.")] = Format.TEXT,  # noqa: A002
    select: Annotated[Texts, option("RULE", "Only this rule, or the rules that begin so; may be repeated.")] = None,
    ignore: Annotated[Texts, option("RULE", "Not this rule, or the rules that begin so; may be repeated.")] = None,
    against: Annotated[
        Text,
        option(
            "OLD.py|ACTOR",
            "What the source is to replace: an older source, or an actor of --chain, whose live timers count.",
            "nothing",
            "--against --actor",
        ),
    ] = None,
    preset: Annotated[
        str, option("NAME", f"Limits to hold it to: {', '.join(PRESETS)}.", parser=one_of(PRESETS))
    ] = PRESETS[0],
    strict: Annotated[bool, flag("--strict", "Exit with 1 for warnings too.")] = False,
) -> None:
    """Check sources of actors: what a deployment refuses, and what hurts later.

    Of a folder it takes the files that are actors. It exits with 1 if it finds an error.

    Example: trailboss check actors/ --strict
    """
    if run.as_json and format is Format.SARIF:
        raise Mistake("both --json and --format sarif are given", "give one of the two")
    rules = _selected(select or [], ignore or [])
    files = _files(paths)
    terms = _terms(run, files, against, preset)
    found = [each for path in files for each in lint_source(read_file(path, "source"), terms, str(path))]
    shown = [each for each in found if each.rule in rules]
    notes = sum(each.severity is Severity.NOTE for each in found) if select is None else 0
    _show(Format.JSON if run.as_json else format, shown, len(files), notes)
    bad = (Severity.ERROR, Severity.WARNING) if strict else (Severity.ERROR,)
    if any(each.severity in bad for each in shown):
        raise typer.Exit(FAILED)


def _selected(select: list[str], ignore: list[str]) -> frozenset[str]:
    try:
        return selected(select, ignore)
    except KeyError as error:
        raise Mistake(f"there is no rule {error.args[0]!r}", f"there are {', '.join(RULES)}, and prefixes") from None


def _files(paths: Sequence[Path]) -> list[Path]:
    """Return the files to check, each once, in the order given."""
    files: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise Mistake(f"there is no file or folder {path}", "check the path")
        found = actor_files(path) if path.is_dir() else [path]
        if not found:
            what = "an actor imports pvm_host, cowboy_sdk or trailboss.sdk, and is no test"
            raise Mistake(f"there is no actor in {path}", f"{what}; name a file to have it checked as it is")
        files.update(dict.fromkeys(found))
    return list(files)


def _terms(run: Invocation, files: list[Path], against: str | None, preset: str) -> LintTerms:
    params = load_params(preset)
    if against is None:
        return LintTerms(params)
    if len(files) != 1:
        raise Mistake(f"{len(files)} sources would replace {against}", "name the one source that replaces it")
    if Path(against).is_file():
        try:
            return LintTerms(params, called_by_timers(read_file(Path(against), "source"), params))
        except ValueError as error:
            raise Mistake(f"a deployment refuses {against}: {error}", "give the source that is deployed") from None
    if against.endswith(".py"):
        raise Mistake(f"there is no file {against}", "give the source that is deployed, or the actor's address")
    # Only now: a check of sources alone opens no chain.
    from trailboss.cli.upgrades import live_calls  # noqa: PLC0415

    return LintTerms(run.chain.params, live_calls(run.chain, find_actor(run.chain, against)))


def _show(form: Format, findings: list[LintFinding], files: int, notes: int) -> None:
    """Print findings, and how many notes there are that no option selects."""
    if form is Format.SARIF:
        print_json(sarif_log(findings, __version__, PAGE))
    elif form is Format.JSON:
        print_json({"files": files, "findings": findings, "notes": notes})
    else:
        for each in findings:
            typer.echo(f"{each.path}:{each.line}:{each.column}: {each.severity} {each.rule}: {each.message}.")
        counts = Counter(each.severity for each in findings)
        parts = [counted(counts[each], str(each)) for each in Severity if counts[each]]
        rest = f"; --select TB shows {counted(notes, 'note')} too" if notes else ""
        note(f"{counted(files, 'source')}: {', '.join(parts) or 'no findings'}{rest}")
