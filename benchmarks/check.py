"""The linter over a hundred sources, beside Python's own parser over the same."""

import ast
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Case, Report, measure, timed
from trailboss.lint import LintTerms, lint_source
from trailboss.params import load_params

FILES = 100
SECONDS_MAX = 3
ACTORS = Path(__file__).resolve().parents[1] / "examples/actors"
PARSED = "Python's parser"


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"trailboss check, {FILES} sources", f"{FILES} sources")
    sources = [path.read_bytes() for path in sorted(ACTORS.glob("*.py"))]
    texts = [sources[number % len(sources)] for number in range(FILES)]
    terms = LintTerms(load_params())
    size = sum(map(len, texts))
    report.notes += [f"the example actors, again and again: {size:,} bytes.", "the command is a new process."]
    with TemporaryDirectory() as folder:
        for number, text in enumerate(texts):
            (Path(folder) / f"actor_{number}.py").write_bytes(text)
        command = [sys.executable, "-m", "trailboss", "check", folder, "--strict"]

        def whole() -> None:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

        cases = [
            Case(name=PARSED, sample=lambda: timed(lambda: [ast.parse(text) for text in texts], 1)),
            Case(
                name="the linter",
                sample=lambda: timed(lambda: [lint_source(text, terms) for text in texts], 1),
                beside=PARSED,
            ),
            Case(name="the command", sample=lambda: timed(whole, 1), beside=PARSED, seconds_max=SECONDS_MAX),
        ]
        measure(report, cases, rounds)
    return report
