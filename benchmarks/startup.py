"""The start of the command line, beside the start of Python itself."""

import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import Case, Report, measure, timed

BARE = "Python alone"
RATIO_MAX = 8
"""0.1 s where Python alone needs 0.0125 s."""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("The start of a command", "one process")
    report.notes += ["each case is a new process, from its start to its end; its output goes nowhere."]
    cases = [
        Case(name=BARE, sample=_process("-c", "pass")),
        Case(name="trailboss --help", sample=_process("-m", "trailboss", "--help"), beside=BARE, ratio_max=RATIO_MAX),
        Case(name="trailboss timers --help", sample=_process("-m", "trailboss", "timers", "--help"), beside=BARE),
    ]
    measure(report, cases, rounds)
    return report


def _process(*arguments: str) -> Callable[[], float]:
    command = [sys.executable, *arguments]
    return lambda: timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True), 1)
