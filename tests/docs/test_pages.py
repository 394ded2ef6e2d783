"""The code that the pages show runs, in the order of the page.

A fence ``python`` is executed, all of a page in one namespace; with ``title="clock.py"`` it is written to that file
instead, and a file named ``test_*.py`` is then run by pytest, as a reader would; ``pycon`` is a session whose answers
must be equal. A fence ``py`` is only shown.
"""

import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n`]*)\n(?P<code>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Fence:
    """A block of code: its language, its title if it has one, its text, and the line where it begins."""

    language: str
    title: str | None
    code: str
    line: int


def fences(text: str) -> Iterator[Fence]:
    """Yield the runnable fences of a page."""
    for match in FENCE.finditer(text):
        if match["language"] in ("python", "pycon"):
            title = TITLE.search(match["options"])
            yield Fence(match["language"], title and title[1], match["code"], text.count("\n", 0, match.start("code")))


def run_page(name: str, text: str, folder: Path) -> None:
    """Run a page in ``folder``, which is the present directory; fail with the page's own line numbers.

    Tests that follow one another run together.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    tests: list[str] = []
    for fence in fences(text):
        if fence.title is None or (folder / fence.title).exists():
            run_tests(tests, folder)
        if fence.title is not None:
            (folder / fence.title).write_text(fence.code, encoding="utf-8")
            if fence.title.startswith("test_"):
                tests.append(fence.title)
        elif fence.language == "python":
            exec(compile("\n" * fence.line + fence.code, name, "exec"), namespace)
        else:
            session = doctest.DocTestParser().get_doctest(fence.code, namespace, name, name, fence.line)
            report: list[str] = []
            runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
            runner.run(session, out=report.append, clear_globs=False)
            namespace.update(session.globs)
            assert runner.summarize(verbose=False).failed == 0, "".join(report)
    run_tests(tests, folder)


def run_tests(tests: list[str], folder: Path) -> None:
    """Run the files of tests that wait, and empty the list."""
    if tests:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stdout
        tests.clear()


def pages() -> list[str]:
    """Return the pages that show code which runs."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in paths if any(fences(path.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", pages())
def test_page_runs_as_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of the page does what the page says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run_page(page, (ROOT / page).read_text(encoding="utf-8"), tmp_path)


def test_page_passes_when_files_code_and_session_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is written before the code that reads it; names carry over from fence to fence."""
    monkeypatch.chdir(tmp_path)
    page = (
        '```python title="a.py"\nX = 1\n```\n\n```python title="test_a.py"\ndef test_a():\n    assert True\n```\n\n'
        '```python\nfrom pathlib import Path\ntext = Path("a.py").read_text()\n```\n\n'
        "```pycon\n>>> text\n'X = 1\\n'\n```\n\n```py\n1 / 0\n```\n"
    )
    run_page("page.md", page, tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nassert 1 == 2\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        '```python title="test_a.py"\ndef test_a():\n    assert False\n```\n',
    ],
)
def test_page_fails_when_an_example_is_wrong(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of fence can fail."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        run_page("page.md", page, tmp_path)
