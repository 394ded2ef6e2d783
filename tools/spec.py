"""Report which clauses of the specification are proven, by section.

A clause is proven when, in the latest full run, at least one test that names it passed and none failed. With
``--require F,Q,E`` an open clause of these sections makes the exit status 1, unless ``docs/spec/deferred.toml`` gives
a reason for it. With ``--named`` no run is needed: a clause counts as soon as a test names it.
"""

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

RECORD: Final = ".spec/record.json"


class Clause(Struct, frozen=True):
    """One requirement.

    Attributes:
        section: Letter of its section.
        text: The requirement in one line.
        source: Where the specification says so.
        decisions: Records that settle how to read it, as ``D-09``.
    """

    section: str
    text: str
    source: str
    decisions: tuple[str, ...]


@cache
def load_clauses(root: Path) -> dict[str, Clause]:
    """Read the clause list, in its order."""
    listed = tomllib.loads((root / "docs/spec/clauses.toml").read_text(encoding="utf-8"))
    return {
        name: Clause(letter, entry["text"], entry["source"], tuple(entry.get("decisions", ())))
        for letter, section in listed.items()
        for name, entry in section["clauses"].items()
    }


def load_titles(root: Path) -> dict[str, str]:
    """Read the titles of the sections, by letter."""
    listed = tomllib.loads((root / "docs/spec/clauses.toml").read_text(encoding="utf-8"))
    return {letter: section["title"] for letter, section in listed.items()}


def load_deferred(root: Path) -> dict[str, str]:
    """Read the clauses that may stay open, with their reasons."""
    return tomllib.loads((root / "docs/spec/deferred.toml").read_text(encoding="utf-8"))


def proven_clauses(record: dict[str, dict[str, object]]) -> set[str]:
    """Return the clauses that at least one test proves and none disproves."""
    passed: set[str] = set()
    failed: set[str] = set()
    for test in record.values():
        clauses = test["clauses"]
        assert isinstance(clauses, list)
        if test["failed"]:
            failed.update(clauses)
        elif test["passed"]:
            passed.update(clauses)
    return passed - failed


def named_clauses(tests: Path) -> set[str]:
    """Return the clauses that the tests' sources name in a ``spec`` marker."""
    named: set[str] = set()
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                named.update(str(each.value) for each in node.args if isinstance(each, ast.Constant))
    return named


def report_lines(
    clauses: dict[str, Clause], titles: dict[str, str], proven: set[str], deferred: dict[str, str]
) -> Iterator[str]:
    """Yield the open clauses of each section with their texts, then the table of sections."""
    for letter, title in titles.items():
        still_open = [name for name, clause in clauses.items() if clause.section == letter and name not in proven]
        if still_open:
            yield f"{letter}  {title}: open"
        for name in still_open:
            yield f"  {name}  {clauses[name].text}"
            if name in deferred:
                yield f"        deferred: {deferred[name]}"
    yield f"{'section':<58}{'clauses':>8}{'proven':>8}{'open':>6}"
    for letter, title in titles.items():
        own = {name for name, clause in clauses.items() if clause.section == letter}
        yield f"{letter + '  ' + title:<58}{len(own):>8}{len(own & proven):>8}{len(own - proven):>6}"


def faults(
    clauses: dict[str, Clause], proven: set[str], deferred: dict[str, str], required: list[str]
) -> Iterator[str]:
    """Yield what makes the exit status 1."""
    for letter in required:
        if not any(clause.section == letter for clause in clauses.values()):
            yield f"--require {letter}: there is no such section"
    for name, clause in clauses.items():
        if clause.section in required and name not in proven and name not in deferred:
            yield f"{name} is required and open"
    for name in deferred:
        if name not in clauses:
            yield f"{name} in docs/spec/deferred.toml is not a clause"
        elif name in proven:
            yield f"{name} is proven; remove it from docs/spec/deferred.toml"


def newer_source(root: Path, record: Path) -> Path | None:
    """Return a source or test that changed after the record was written, if any."""
    written = record.stat().st_mtime
    files = (path for folder in ("src", "tests") for path in (root / folder).rglob("*.py"))
    return next((path for path in files if path.stat().st_mtime > written), None)


def main(arguments: list[str], root: Path) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--require", metavar="F,Q,E", default="", help="sections that must have no open clause")
    parser.add_argument("--named", action="store_true", help="count clauses that tests name, without a run")
    parser.add_argument("--quiet", action="store_true", help="print faults only")
    options = parser.parse_args(arguments)
    clauses, deferred = load_clauses(root), load_deferred(root)
    if options.named:
        proven = named_clauses(root / "tests") & set(clauses)
    else:
        record = root / RECORD
        if not record.exists():
            print(f"no record of a full run ({RECORD}); run: make test", file=sys.stderr)
            return 2
        proven = proven_clauses(json.loads(record.read_text(encoding="utf-8")))
        if (changed := newer_source(root, record)) is not None:
            print(f"note: {changed.relative_to(root)} is newer than the latest full run (make test)", file=sys.stderr)
    if not options.quiet:
        print("\n".join(report_lines(clauses, load_titles(root), proven, deferred)))
    found = list(faults(clauses, proven, deferred, [each for each in options.require.split(",") if each]))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent.parent))
