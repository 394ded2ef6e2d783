"""Errors, reported on stderr without a traceback: what happened, the rule behind it, and how to fix it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from msgspec.structs import asdict

from trailboss.primitives.errors import ErrorObject, InvariantError, ProofError, Rejection, StorageError, TrailbossError

FAILED: Final = 1
"""Exit status of what was understood and could not be done: refused, reverted, damaged, different, not proven."""
MISUSED: Final = 2  # exit status of what could not be understood
NODE_INSTALL: Final = "pip install 'trailboss[node]'"
NETWORK_INSTALL: Final = "pip install 'trailboss[network]'"
STUDY_INSTALL: Final = "pip install 'trailboss[study]'"
CLUSTER_INSTALL: Final = "pip install 'trailboss[cluster]'"
SAID: Final = ("what", "where", "why", "fix")


class Mistake(TrailbossError):
    """Something typed that cannot be read: what was typed and where, and as ``fix`` what can be typed instead."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what} ({self.fix})"


class NotFound(Mistake):
    """Something named, correctly, that the chain does not have."""


class Refused(TrailbossError):
    """Something that a node refuses; ``error`` says why."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def installed(what: str, install: str) -> Iterator[None]:
    """Turn the lack of a package that only some commands need into `NotFound`; ``what`` needs it, ``install`` helps."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trailboss"):
            raise
        raise NotFound(f"{what} needs {error.name}, which is not installed", install) from None


def report(error: TrailbossError, *, as_json: bool) -> int:
    """Print an error to stderr and return the exit status."""
    facts = _facts(error)
    if as_json:
        # Only now: the program's own help does without it.
        from trailboss.views.json_values import to_json_value  # noqa: PLC0415

        typer.echo(json.dumps(to_json_value({"error": facts})), err=True)
    else:
        report_facts("error", facts)
    return MISUSED if isinstance(error, Mistake) and not isinstance(error, NotFound) else FAILED


def report_failed(error: ErrorObject, status: str) -> None:
    """Print why a transaction was refused or reverted to stderr."""
    facts = asdict(error)
    traceback = facts.pop("context").get("traceback")
    report_facts(status, facts | ({"where": traceback} if traceback else {}))


def report_facts(heading: str, facts: dict[str, object]) -> None:
    """Print a heading and, below it, each fact that has a label of its own."""
    # Only now: commands that succeed do without it, and so does the program's own help.
    from trailboss.cli.output import console, print_pairs  # noqa: PLC0415

    printer = console(stderr=True)
    name = f" E{facts['code']} {facts['slug']}" if "code" in facts else ""
    printer.print(f"{heading}{name}", style="bold red", markup=False)
    print_pairs(printer, [(label, str(facts[label])) for label in SAID if facts.get(label)], indent="  ")


def _facts(error: TrailbossError) -> dict[str, object]:
    match error:
        case Rejection():
            return asdict(error.error())
        case Refused(error=refusal):
            return asdict(refusal)
        case StorageError(path=path, what=what, fix=fix):
            return {"what": f"{path}: {what}", "fix": fix}
        case Mistake(what=what, fix=fix):
            return {"what": what, "fix": fix}
        case InvariantError():
            why = "the chain contradicts itself, so it stops here; this is a bug of the program"
            return {"what": str(error), "why": why, "fix": "report it, with the file that `trailboss export` writes"}
        case ProofError():
            why = "a proof is exact: with one bit changed, or for another state root or network, it shows nothing"
            fix = "take the root from that block's header, or the genesis of that network, or have the proof made again"
            return {"what": str(error), "why": why, "fix": fix}
        case _:
            return {"what": str(error)}
