"""Pytest plugin of the ``spec`` marker: which clauses a test proves, and whether it passed.

A marker that names an unknown clause is a collection error. With ``--spec-record FILE`` the outcome of every marked
test is written there at the end of the run, also when the tests ran in several processes: a test's clauses travel
with its reports.
"""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from tools.spec import load_clauses

PROPERTY: Final = "spec"
ROOT: Final = Path(__file__).resolve().parent.parent


class ClauseRecorder:
    """Collects the outcomes of marked tests in the process that reports them.

    Attributes:
        path: File to write at the end.
        tests: Outcome of each marked test, by node id: its clauses, whether it passed, whether any phase failed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tests: dict[str, dict[str, object]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of one test."""
        clauses = [value for name, value in report.user_properties if name == PROPERTY]
        if not clauses:
            return
        test = self.tests.setdefault(report.nodeid, {"clauses": clauses, "passed": False, "failed": False})
        if report.failed:
            test["failed"] = True
        elif report.passed and report.when == "call":
            test["passed"] = True

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the record of a run that came to its end; an interrupted one proves nothing."""
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(dict(sorted(self.tests.items())), indent=1) + "\n", encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--spec-record``."""
    help_text = "write the outcomes of tests with a spec marker to FILE"
    parser.addoption("--spec-record", metavar="FILE", type=Path, default=None, help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    """Record in the controlling process only; a worker's reports arrive there."""
    path = config.getoption("--spec-record")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ClauseRecorder(config.rootpath / path), "clause-recorder")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class) -> Generator[None, Any, Any]:
    """Check the clauses that a test names, and attach them to its reports.

    Raises:
        CollectError: If a marker is empty or names a clause that is not in the list.
    """
    made = yield
    known = load_clauses(ROOT)
    for item in made if isinstance(made, list) else [made]:
        if not isinstance(item, pytest.Item):
            continue
        for marker in item.iter_markers("spec"):
            if not marker.args:
                raise collector.CollectError(f"{item.nodeid}: a spec marker without a clause")
            for clause in marker.args:
                if clause not in known:
                    raise collector.CollectError(f"{item.nodeid}: {clause!r} is not in docs/spec/clauses.toml")
                item.user_properties.append((PROPERTY, clause))
    return made
