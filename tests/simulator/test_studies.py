"""A study gives the same results whoever runs it and however often it is stopped, and refuses what it cannot answer."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from socket import socket
from time import sleep

import polars as pl
import pytest
from typer.testing import CliRunner

from trailboss.cli.main import app
from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.simulator.study.catalogue import PLACE, Case, Mode, provenance_of, read_case, study_names
from trailboss.simulator.study.journal import RunJournal
from trailboss.simulator.study.page import page_of, write_figures
from trailboss.simulator.study.replication import StudyFault, measured, task_of
from trailboss.simulator.study.results import StoredResults, read_results
from trailboss.simulator.study.run import journal_path, results_path, run_study
from trailboss.simulator.study.workers import open_workers

DICE = "tests.simulator.dice"
NO_RAY = "needs Ray: pip install 'trailboss[cluster]'"
SETTINGS = Path(__file__).with_name("dice.toml").read_text(encoding="utf-8")


def dice(folder: Path, more: str = "", settings: str = SETTINGS) -> Case:
    """Return the study of dice, with more lines in its table ``[full]``."""
    path = folder / "settings.toml"
    path.write_text(settings.replace("[quick]", f"{more}\n[quick]"), encoding="utf-8")
    return read_case(DICE, Mode.FULL, path)


def unseen(*_counts: int) -> None:
    """Watch nothing."""


def run(
    case: Case, folder: Path, workers: int = 1, ray: str | None = None, note: Callable[[str], None] = print
) -> StoredResults:
    return run_study(case, folder, lambda: open_workers(workers, ray, note), unseen)


def octets(case: Case, folder: Path) -> bytes:
    return results_path(folder, case).read_bytes()


@pytest.fixture
def expected(tmp_path: Path) -> bytes:
    """What one process writes."""
    case = dice(tmp_path)
    run(case, tmp_path / "one")
    return octets(case, tmp_path / "one")


@pytest.mark.slow
def test_two_workers_write_the_bytes_of_one_process(tmp_path: Path, expected: bytes) -> None:
    """The order in which replications end leaves no trace."""
    case = dice(tmp_path)
    run(case, tmp_path / "two", workers=2)
    assert octets(case, tmp_path / "two") == expected


@pytest.mark.slow
def test_a_ray_cluster_writes_the_bytes_of_one_process(tmp_path: Path, expected: bytes) -> None:
    """A local cluster is a cluster."""
    pytest.importorskip("ray", reason=NO_RAY)
    case = dice(tmp_path)
    run(case, tmp_path / "ray", ray="local")
    assert octets(case, tmp_path / "ray") == expected


def test_a_point_goes_on_until_its_interval_is_narrow_or_it_may_not(tmp_path: Path) -> None:
    """Points go on by rounds, each for itself, from the fewest replications to the most."""
    results = run(dice(tmp_path), tmp_path)
    assert [results.count(point.name) for point in results.points] == [3, 3, 14]
    assert results.interval("spread 1", "thrown").half_width <= 1.0 < results.interval("spread 30", "thrown").half_width


def test_points_share_their_random_numbers(tmp_path: Path) -> None:
    """Their differences are taken replication by replication, over those that both have."""
    results = run(dice(tmp_path), tmp_path)
    ones = results.values("spread 1", "thrown")
    assert results.values("spread 30", "thrown")[:3] == [30 * one for one in ones]
    difference = results.difference("spread 30", "spread 1", "thrown")
    assert difference.count == 3
    assert difference.mean == pytest.approx(29 * sum(ones) / 3)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Its results are those of a run that was not killed."""
    case = dice(tmp_path, "pause = 0.05")
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.simulator import test_studies as of\n"
        "from trailboss.simulator.study.catalogue import Mode, read_case\n"
        "if __name__ == '__main__':\n"
        f"    of.run(read_case(of.DICE, Mode.FULL, Path({str(tmp_path / 'settings.toml')!r})), Path(sys.argv[1]), 2)\n"
    )
    script = tmp_path / "runner.py"
    script.write_text(f"import sys\nsys.path[:0] = {sys.path!r}\n{program}", encoding="utf-8")
    folder = tmp_path / "killed"
    path = journal_path(folder, case)
    with subprocess.Popen([sys.executable, script, folder]) as runner:
        while not path.exists() or path.read_bytes().count(b"\n") < 4:
            assert runner.poll() is None
            sleep(0.01)
        runner.send_signal(signal.SIGKILL)
    kept = path.read_bytes().count(b"\n") - 1
    assert kept < 20
    calls: list[tuple[int, int]] = []
    run_study(case, folder, lambda: open_workers(1, None, print), lambda *seen: calls.append(seen))
    assert calls[0][0] == kept
    run(case, tmp_path / "whole")
    assert octets(case, folder) == octets(case, tmp_path / "whole")
    assert not path.exists()


def unfinished(tmp_path: Path) -> Path:
    """Return the journal of a run whose third replications fail."""
    case = dice(tmp_path, "fails_at = 3")
    with pytest.raises(
        StudyFault, match=r"point spread 0, replication 3 fails: ValueError: the dice are lost \(dice.py"
    ):
        run(case, tmp_path)
    return journal_path(tmp_path, case)


def test_a_failing_replication_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    """Nothing is written that looks like results."""
    path = unfinished(tmp_path)
    assert path.read_bytes().count(b"\n") == 1 + 2 * 3
    assert not list(tmp_path.glob("*.parquet*"))


def test_a_changed_setting_does_not_go_on_with_old_replications(tmp_path: Path) -> None:
    """It is named, with both values; ``fresh`` begins again."""
    path = unfinished(tmp_path)
    case = dice(tmp_path)
    with pytest.raises(ConfigurationError, match=r"6 replications of another run: fails_at was 3, is 0; .*--fresh"):
        run(case, tmp_path)
    run_study(case, tmp_path, lambda: open_workers(1, None, print), unseen, fresh=True)
    assert not path.exists()


def test_changed_sources_do_not_go_on_with_old_replications(tmp_path: Path) -> None:
    """What an older program has simulated is not mixed with what this one does."""
    case = dice(tmp_path, "fails_at = 3")
    path = unfinished(tmp_path)
    digest = provenance_of(case).source_digest
    path.write_bytes(path.read_bytes().replace(digest.encode(), b"0" * len(digest)))
    with pytest.raises(ConfigurationError, match="the sources of the simulation have changed"):
        run(case, tmp_path)


def test_a_torn_line_of_the_journal_is_dropped(tmp_path: Path) -> None:
    """Its replication is run again; what is written after it is whole."""
    case, path = dice(tmp_path, "fails_at = 3"), unfinished(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    journal = RunJournal(path, provenance_of(case))
    assert len(journal.rows) == 5
    journal.add("spread 30", 2, {"thrown": 1.0})
    journal.close()
    again = RunJournal(path, provenance_of(case))
    assert len(again.rows) == 6
    again.close()


def test_a_damaged_line_of_the_journal_is_refused(tmp_path: Path) -> None:
    """Only the last line can be torn by a kill; another one has been damaged otherwise."""
    case, path = dice(tmp_path, "fails_at = 3"), unfinished(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'{"point": "spread 1"', b'{"point": "spread', 1))
    with pytest.raises(StorageError, match="line 3 is damaged"):
        run(case, tmp_path)


def test_two_runs_do_not_share_a_journal(tmp_path: Path) -> None:
    """The second one is refused while the first one runs."""
    case = dice(tmp_path)
    journal = RunJournal(journal_path(tmp_path, case), provenance_of(case))
    with pytest.raises(StorageError, match="another process runs this study here"):
        run(case, tmp_path)
    journal.close()


@pytest.mark.slow
@pytest.mark.parametrize(("ray", "how"), [(None, "SIGKILL"), ("local", "WorkerCrashedError")])
def test_what_a_dead_worker_had_is_repeated(ray: str | None, how: str, tmp_path: Path) -> None:
    """Each death is one line, and leaves the results as they would have been."""
    if ray is not None:
        pytest.importorskip("ray", reason=NO_RAY)
    graves = tmp_path / "graves"
    graves.mkdir()
    more = f'replications_max = 3\ndeadly = 2\ndeaths = 2\ngraves = "{graves}"'
    case = dice(tmp_path, more, SETTINGS.replace("replications_max = 14\n", ""))
    notes: list[str] = []
    run(case, tmp_path / "deadly", workers=2, ray=ray, note=notes.append)
    expected = [f"a worker died at point spread {each}, replication 2 ({how}); it is repeated" for each in (0, 1, 30)]
    assert sorted(notes) == sorted(expected * 2)
    run(case, tmp_path / "after")
    assert octets(case, tmp_path / "deadly") == octets(case, tmp_path / "after")


@pytest.mark.slow
def test_a_replication_whose_workers_always_die_is_given_up(tmp_path: Path) -> None:
    """It is repeated three times."""
    graves = tmp_path / "graves"
    graves.mkdir()
    case = dice(tmp_path, f'deadly = 1\ndeaths = 9\ngraves = "{graves}"')
    notes: list[str] = []
    with pytest.raises(StudyFault, match=r"point spread \S+, replication 1 fails: 4 workers in a row died of it"):
        run(case, tmp_path, workers=2, note=notes.append)
    assert len(list(graves.iterdir())) >= 4


def test_one_replication_alone_equals_the_stored_row(tmp_path: Path) -> None:
    """Who distrusts a number runs its replication again, of a simulation as of dice."""
    path = tmp_path / "settings.toml"
    table = "blocks = 40\nwarm_up = 5\nreplications_min = 2\nreplications_max = 2\nloads = [0.9]\ncycles = 200_000\n"
    path.write_text(f"[full]\n{table}[quick]\n{table}", encoding="utf-8")
    case = read_case(f"{PLACE}lane_load", Mode.QUICK, path)
    run(case, tmp_path)
    row = pl.read_parquet(results_path(tmp_path, case)).filter(pl.col("replication") == 2).row(0, named=True)
    alone = measured(task_of(case, case.points[0], 2))
    assert row == {"point": "load 0.9", "replication": 2, "load": 0.9, **alone}


def test_results_say_what_they_follow_from(tmp_path: Path) -> None:
    """The file has its settings, digests, versions and seeds, its columns and rows in order, and no time."""
    case = dice(tmp_path)
    written = run(case, tmp_path)
    path = results_path(tmp_path, case)
    metadata, frame = pl.read_parquet_metadata(path), pl.read_parquet(path)
    provenance = json.loads(metadata["provenance"])
    assert provenance["settings"]["spreads"] == [0.0, 1.0, 30.0]
    assert provenance["mode"] == "full"
    assert json.loads(metadata["seeds"]) == {"spread 0": 3, "spread 1": 3, "spread 30": 14}
    assert frame.columns == sorted(frame.columns)
    assert frame.select("point", "replication").rows() == sorted(written.rows)
    read = read_results(path)
    assert (read.provenance, read.points, read.settings) == (written.provenance, written.points, written.settings)
    assert read.values("spread 30", "thrown") == written.values("spread 30", "thrown")


def test_a_file_that_holds_no_results_is_refused(tmp_path: Path) -> None:
    """So is one that is not there."""
    path = tmp_path / "dice.parquet"
    with pytest.raises(StorageError, match="there are no results"):
        read_results(path)
    pl.DataFrame({"point": ["a"]}).write_parquet(path)
    with pytest.raises(StorageError, match="this is no file of a study's results"):
        read_results(path)
    path.write_text("no Parquet", encoding="utf-8")
    with pytest.raises(StorageError, match="this is no file of a study's results"):
        read_results(path)


def test_page_and_figures_follow_from_the_results(tmp_path: Path) -> None:
    """Written twice, they are equal; the page has question, settings, digest, numbers and figure."""
    case = dice(tmp_path)
    run(case, tmp_path)
    results = read_results(results_path(tmp_path, case))
    first = write_figures(results, tmp_path / "pictures")
    octets_before = first[0].read_bytes()
    assert write_figures(results, tmp_path / "pictures") == first
    assert first[0].read_bytes() == octets_before
    text = page_of(results, first, tmp_path)
    for part in ("# Dice", "Where do dice fall?", "spreads = [0.0, 1.0, 30.0]", results.provenance.source_digest[:16],
                 "| spread 0 | 0 |", "3 to 14 replications", "](pictures/dice-thrown.svg)"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("blocks = 10", "blocks = 0", "full.blocks = 0: expected `int` >= 1"),
        ("blocks = 10", "height = 10", "full: object contains unknown field `height`"),
        ("blocks = 1\n", 'blocks = "x"\n', "quick.blocks = 'x': expected `int`, got `str`"),
        ("replications_max = 14", "replications_max = 2", "full.replications_min = 3 must be at most replications_max"),
        ("spreads = [1.0]", "spreads = [-1.0]", "quick.spreads = -1.0 must be at least 0"),
        ("spreads = [1.0]", "spreads = [1.0, 1.0]", "there must be one at least, each with its own name"),
        ("[quick]", "[slow]", "object contains unknown field `slow`"),
        ("[quick]", "[quick", "this is not TOML"),
    ],
)
def test_a_wrong_field_is_refused_before_anything_runs(before: str, after: str, said: str, tmp_path: Path) -> None:
    """File, field, value and rule are named, whichever of the two tables is run."""
    with pytest.raises(ConfigurationError) as refusal:
        dice(tmp_path, settings=SETTINGS.replace(before, after))
    assert str(refusal.value).startswith(f"{tmp_path / 'settings.toml'}: ")
    assert said in str(refusal.value)


def test_a_target_without_a_measure_is_refused(tmp_path: Path) -> None:
    """The measures that there are stand beside it."""
    with pytest.raises(StudyFault, match="point spread 0 has no measure 'fallen'; it has: highest, nothing, thrown"):
        run(dice(tmp_path, settings=SETTINGS.replace("thrown = 1.0", "fallen = 1.0")), tmp_path)


def test_every_study_can_be_read_and_its_replications_can_be_run() -> None:
    """Its settings follow their rules, and the command line lists it and runs a replication."""
    listed = CliRunner().invoke(app, ["study", "list", "--json"])
    assert [each["name"] for each in json.loads(listed.stdout)] == study_names()
    arguments = ["study", "run", "lane-load", "--quick", "--replication", "1", "--point", "load 0.5", "--json"]
    found = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert found[0]["facts"] == {"load": 0.5}
    assert set(found[0]["measures"]) == {"backlog_mean", "late_mean", "late_p95"}


def test_an_address_without_a_cluster_is_refused(tmp_path: Path) -> None:
    """At once, with the address."""
    pytest.importorskip("ray", reason=NO_RAY)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match=f"cannot join the Ray cluster at '{address}': .*refused"):
            run(dice(tmp_path), tmp_path, ray=address)


def test_ray_that_is_missing_is_named_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray is needed by ``--ray`` alone."""
    monkeypatch.setitem(sys.modules, "ray", None)
    arguments = ["study", "run", "lane-load", "--quick", "--ray", "local", "--output", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "--ray needs ray, which is not installed" in result.stderr
    assert "pip install 'trailboss[cluster]'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("package", ["numpy", "polars", "matplotlib"])
def test_packages_that_are_missing_are_named_with_what_installs_them(package: str) -> None:
    """Help does without them, and no command shows a traceback."""
    program = f"import sys\nsys.modules[{package!r}] = None\nfrom trailboss.cli.main import app\napp(sys.argv[1:])\n"
    command = [sys.executable, "-c", program, "study"]
    helped = subprocess.run([*command, "run", "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    refused = subprocess.run([*command, "list"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert f"a study needs {package}" in refused.stderr
    assert "pip install 'trailboss[study]'" in refused.stderr
