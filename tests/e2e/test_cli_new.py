"""`trailboss new`: what it makes works at once."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import Ask, Run
from trailboss.cli.commands.new import TEMPLATES


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
def test_new_actor_passes_its_check_and_its_tests(run: Run, template: str) -> None:
    """Without a warning, as its workflow runs them."""
    made = run("new", "my-clock", "--template", template)
    assert "cd my-clock && trailboss check actors && pytest" in " ".join(made.stdout.split())
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "--trailboss-costs-check"]
    tested = subprocess.run(command, cwd="my-clock", capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout
    assert "prices" not in tested.stdout
    assert "no findings" in run("check", "my-clock", "--strict").stderr


def test_new_folder_has_what_a_project_needs(ask: Ask) -> None:
    """The workflow runs the check and the tests, and nothing is left of the template."""
    made = ask("new", "tide2")
    assert made["folder"] == "tide2"
    assert sorted(made["files"]) == [
        ".github/workflows/check.yml", ".gitignore", "README.md", "actors/tide2.py", "costs.json", "requirements.txt",
        "tests/test_tide2.py",
    ]  # fmt: skip
    texts = {name: Path("tide2", name).read_text(encoding="utf-8") for name in made["files"]}
    steps = yaml.safe_load(texts[".github/workflows/check.yml"])["jobs"]["check"]["steps"]
    assert [step["run"] for step in steps[-2:]] == [
        "trailboss check actors --strict",
        "pytest --trailboss-costs-check --trailboss-costs-tolerance 2%",
    ]
    assert "actors/tide2.py" in texts["README.md"]
    assert not any("${" in text or "$$" in text for text in texts.values())


@pytest.mark.parametrize(
    "name", ["Clock", "2tick", "a b", "../up", ".", "test_it", "it_test", "a--b", "a-", "é", "x" * 61, "conf/test"]
)
def test_name_is_refused_when_it_is_none(run: Run, name: str, tmp_path: Path) -> None:
    """It is the name of a folder and of a file that is no test."""
    result = run("new", name, status=2)
    assert "is no name for an actor" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_folder_is_refused_when_something_is_in_it(run: Run) -> None:
    """An empty one will do, and a file of that name will not."""
    Path("empty").mkdir()
    run("new", "empty")
    Path("taken").write_text("", encoding="utf-8")
    for name in ("empty", "taken"):
        assert f"{name} exists already" in run("new", name, status=2).stderr
    assert "'moon' is none of clock, sdk" in run("new", "clock", "--template", "moon", status=2).stderr
