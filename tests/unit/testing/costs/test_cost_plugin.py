"""The options ``--trailboss-costs…`` in a project of its own."""

import json
import os
from pathlib import Path

import pytest

from trailboss.sandbox.cache import is_built
from trailboss.testing import LocalChain

CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
pytestmark = pytest.mark.slow

ACTOR = """
import pvm_host

def tick(payload):
    total = 0
    for each in range(ROUNDS):
        total += each
    pvm_host.set_state(b"total", b"%d" % total)
"""
TESTS = """
import pytest
from trailboss.testing import LocalChain


@pytest.mark.parametrize("times", [1, 3])
def test_ticks(chain, times):
    actor = chain.deploy("actor.py", sender=chain.accounts[0])
    for _ in range(times):
        assert actor.call("tick", sender=chain.accounts[0], check=True).cycles_used


def test_chain_made_by_hand():
    with LocalChain() as chain:
        actor = chain.deploy("actor.py", sender=chain.accounts[0])
        assert actor.call("tick", sender=chain.accounts[0]).ok
"""
SAVE, CHECK, TOLERANCE = (f"--trailboss-costs-{name}" for name in ("save", "check", "tolerance"))


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with an actor and its tests."""
    pytester.makeini("[pytest]")
    pytester.makepyfile(test_actor=TESTS)
    write_actor(pytester, 3)
    return pytester


def write_actor(project: pytest.Pytester, rounds: int) -> None:
    (project.path / "actor.py").write_text(ACTOR.replace("ROUNDS", str(rounds)), encoding="utf-8")


def test_table_shows_handlers_and_lines_when_asked(project: pytest.Pytester) -> None:
    """One row for a handler, then its lines with their text; nothing else of the run changes."""
    ended = project.runpytest_inprocess("--trailboss-costs=lines")
    ended.assert_outcomes(passed=3)
    ended.stdout.fnmatch_lines(
        ["actor.py (*)", "*tick*5*", "*line*cycles*share*", "*7 *        total += each", "*8 receipts*"]
    )
    assert "costs" not in project.runpytest_inprocess().stdout.str()


def test_check_passes_after_save_and_fails_after_growth(project: pytest.Pytester) -> None:
    """The report names the handler, the test and the line that grew; a tolerance lets it pass."""
    project.runpytest_inprocess(SAVE).assert_outcomes(passed=3)
    assert (project.path / "costs.json").exists()
    assert project.runpytest_inprocess(CHECK).ret == pytest.ExitCode.OK
    write_actor(project, 30)
    grown = project.runpytest_inprocess(CHECK)
    assert grown.ret == pytest.ExitCode.TESTS_FAILED
    grown.stdout.fnmatch_lines(
        ["*costs have grown*", "*actor.py tick*+*%", "*most in test_actor.py::*", "*total += each"]
    )
    assert project.runpytest_inprocess(CHECK, TOLERANCE, "50%").ret == pytest.ExitCode.OK


def test_check_passes_when_tests_are_selected_or_added(project: pytest.Pytester) -> None:
    """A selection is compared as far as it goes, and says what did not run; a dear new test is nothing to compare."""
    project.runpytest_inprocess(SAVE)
    selected = project.runpytest_inprocess(CHECK, "-k", "by_hand")
    assert selected.ret == pytest.ExitCode.OK
    selected.stdout.fnmatch_lines(["*2 tests of the baseline did not run*"])
    source = ACTOR.replace("ROUNDS", "900").replace("def tick", "def tock")
    more = f"SOURCE = {source!r}\ndef test_more(chain):\n    chain.deploy(SOURCE, sender=chain.accounts[0])\n"
    project.makepyfile(
        test_more=f"{more}        .call('tock', sender=chain.accounts[0])\n".replace(")\n        .", ").")
    )
    added = project.runpytest_inprocess(CHECK)
    added.assert_outcomes(passed=4)
    assert added.ret == pytest.ExitCode.OK
    added.stdout.fnmatch_lines(["New, not in the baseline:", "*tock(…) tock"])


def test_workers_of_xdist_give_the_same_baseline(project: pytest.Pytester) -> None:
    """Their tables are merged; the file is equal to the byte."""
    project.runpytest_inprocess(SAVE)
    alone = (project.path / "costs.json").read_bytes()
    project.runpytest_inprocess("-n", "2", f"{SAVE}=merged.json", "--trailboss-costs-speedscope", "flame.json")
    assert (project.path / "merged.json").read_bytes() == alone
    document = json.loads((project.path / "flame.json").read_text(encoding="utf-8"))
    assert sum(document["profiles"][0]["weights"]) == document["profiles"][0]["endValue"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([CHECK], "there is no baseline of costs in *costs.json"),
        ([TOLERANCE, "2%"], "*give --trailboss-costs-check with it"),
        ([SAVE, CHECK], "*give one of the two"),
        ([CHECK, TOLERANCE, "much"], "*tolerance much: give a percentage of 0 or more, as 2%"),
        ([CHECK, f"{TOLERANCE}=-1%"], "*tolerance -1%: give a percentage of 0 or more, as 2%"),
        (["--trailboss-costs=calls"], "*'calls' is neither handlers nor lines: give what to test before this option*"),
        ([SAVE, "test_actor.py"], "*-save test_actor.py: the file's name must end in .json; give what to test before*"),
    ],
)
def test_options_that_make_no_sense_are_refused(project: pytest.Pytester, options: list[str], message: str) -> None:
    """Before any test runs, with what to do."""
    ended = project.runpytest_inprocess(*options)
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines([f"*{message}"])


def test_baseline_of_other_prices_is_named_and_not_compared(project: pytest.Pytester) -> None:
    """The run does not fail of it, and does not pass it over in silence."""
    project.runpytest_inprocess(SAVE)
    path = project.path / "costs.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(document | {"sdk": "0.0.1"}), encoding="utf-8")
    write_actor(project, 30)
    ended = project.runpytest_inprocess(CHECK)
    assert ended.ret == pytest.ExitCode.OK
    ended.stdout.fnmatch_lines(["not compared with costs.json: *0.0.1*"])


def test_run_that_fails_saves_nothing(project: pytest.Pytester) -> None:
    """Half of a run is no baseline."""
    project.makepyfile(test_more="def test_more(chain):\n    assert chain.height\n")
    ended = project.runpytest_inprocess(SAVE)
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    ended.stdout.fnmatch_lines(["costs.json is not saved*"])
    assert not (project.path / "costs.json").exists()


def test_property_tests_are_in_no_baseline(project: pytest.Pytester) -> None:
    """Hypothesis draws other inputs in each run."""
    project.makepyfile(
        test_drawn="""
        from hypothesis import given, settings, strategies
        from trailboss.testing import LocalChain

        @given(strategies.integers(0, 9))
        @settings(max_examples=2, deadline=None)
        def test_drawn(number):
            with LocalChain() as chain:
                actor = chain.deploy("actor.py", sender=chain.accounts[0])
                for _ in range(number):
                    actor.call("tick", sender=chain.accounts[0])
        """
    )
    ended = project.runpytest_inprocess(SAVE)
    ended.assert_outcomes(passed=4)
    ended.stdout.fnmatch_lines(["*1 test by Hypothesis*"])
    assert "test_drawn" not in (project.path / "costs.json").read_text(encoding="utf-8")


@pytest.mark.skipif(not is_built(), reason="the sandbox is not built")
def test_lines_of_the_sandbox_are_those_of_the_native_engine(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of the sandbox has the same baseline, line by line."""
    # Pytester gives the run a home of its own, where no image is.
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    monkeypatch.setattr(LocalChain, "default_vm", LocalChain.default_vm)
    project.runpytest_inprocess(SAVE)
    ended = project.runpytest_inprocess("--trailboss-vm", "sandbox", f"{SAVE}=sandbox.json")
    ended.assert_outcomes(passed=3)
    assert (project.path / "sandbox.json").read_bytes() == (project.path / "costs.json").read_bytes()
