"""The clause report counts what tests prove, and its marker refuses what it does not know."""

import json
from pathlib import Path

import pytest

from tools import spec

ROOT = Path(__file__).resolve().parents[2]
CLAUSES = {
    "F-01": spec.Clause("F", "first", "CIP-5 §3.1", ()),
    "F-02": spec.Clause("F", "second", "CIP-5 §3.1", ()),
    "Q-01": spec.Clause("Q", "third", "CIP-1v3 §2.1", ()),
}
MARKED = """
import pytest

@pytest.mark.spec("F-01", "F-02")
@pytest.mark.parametrize("value", [1, 2])
def test_parametrized(value):
    assert value

class TestGroup:
    @pytest.mark.spec("F-03")
    def test_failing(self):
        assert False

@pytest.mark.spec("F-04")
@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.spec("F-05")
@pytest.mark.xfail
def test_expected_to_fail():
    assert False

def test_unmarked():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a small project that uses the marker."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini(
        "[pytest]\nmarkers = spec(clause): x\naddopts = --strict-markers -p no:trailboss -p tools.spec_plugin\n"
    )
    return pytester


@pytest.mark.parametrize("processes", ["0", "2"])
def test_record_holds_each_outcome_when_run_in_any_number_of_processes(
    project: pytest.Pytester, processes: str
) -> None:
    """Only a test that ran and passed proves; the record is the same from one process and from two."""
    project.makepyfile(test_marked=MARKED)
    project.runpytest_subprocess("-n", processes, "--spec-record=out/record.json")
    record = json.loads((project.path / "out/record.json").read_text())
    assert len(record) == 5
    assert spec.proven_clauses(record) == {"F-01", "F-02"}
    assert record["test_marked.py::TestGroup::test_failing"] == {"clauses": ["F-03"], "passed": False, "failed": True}


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('spec("F-99")', "'F-99' is not in docs/spec/clauses.toml"),
        ("spec", "a spec marker without a clause"),
    ],
)
def test_collection_fails_when_a_marker_names_no_known_clause(
    project: pytest.Pytester, marker: str, message: str
) -> None:
    """The error names the test and the clause."""
    project.makepyfile(test_marked=f"import pytest\n\n@pytest.mark.{marker}\ndef test_one():\n    pass\n")
    finished = project.runpytest_subprocess("--spec-record=record.json")
    finished.stdout.fnmatch_lines([f"*test_marked.py::test_one: {message}"])
    finished.assert_outcomes(errors=1)
    assert not (project.path / "record.json").exists()


def test_clause_is_not_proven_when_one_of_its_tests_fails() -> None:
    """One failure outweighs any number of passes."""
    record = {
        "a": {"clauses": ["F-01"], "passed": True, "failed": False},
        "b": {"clauses": ["F-01", "F-02"], "passed": False, "failed": True},
        "c": {"clauses": ["Q-01"], "passed": True, "failed": False},
    }
    assert spec.proven_clauses(record) == {"Q-01"}


def test_report_tells_open_clauses_and_counts_sections() -> None:
    """Each open clause with its text and the reason for its deferral, then one row a section."""
    lines = list(spec.report_lines(CLAUSES, {"F": "Timers", "Q": "Queue"}, {"F-01", "Q-01"}, {"F-02": "needs a disk"}))
    assert lines[:3] == ["F  Timers: open", "  F-02  second", "        deferred: needs a disk"]
    assert [line.split() for line in lines[4:]] == [["F", "Timers", "2", "1", "1"], ["Q", "Queue", "1", "1", "0"]]


@pytest.mark.parametrize(
    ("proven", "deferred", "required", "expected"),
    [
        ({"F-01", "F-02"}, {}, ["F"], []),
        ({"F-01"}, {}, ["F"], ["F-02 is required and open"]),
        ({"F-01"}, {"F-02": "later"}, ["F"], []),
        ({"F-01"}, {}, ["Q"], ["Q-01 is required and open"]),
        ({"F-01"}, {"F-01": "later"}, [], ["F-01 is proven; remove it from docs/spec/deferred.toml"]),
        (set(), {"F-77": "later"}, [], ["F-77 in docs/spec/deferred.toml is not a clause"]),
        (set(), {}, ["Z"], ["--require Z: there is no such section"]),
    ],
)
def test_faults_name_the_clause_when_it_is_required_and_open_or_wrongly_deferred(
    proven: set[str], deferred: dict[str, str], required: list[str], expected: list[str]
) -> None:
    """An open clause needs a reason, and a reason needs an open clause."""
    assert list(spec.faults(CLAUSES, proven, deferred, required)) == expected


def test_named_clauses_are_read_from_the_sources_when_nothing_ran(tmp_path: Path) -> None:
    """Markers count on functions and inside parameters."""
    (tmp_path / "test_a.py").write_text(
        "@pytest.mark.spec('F-01')\ndef test_a(): ...\nX = pytest.param(1, marks=pytest.mark.spec('F-02', 'Q-01'))\n"
    )
    assert spec.named_clauses(tmp_path) == {"F-01", "F-02", "Q-01"}
