"""No test waits for ever: one that hangs fails, by its name, and the others go on."""

import pytest

HANGING = """
from threading import Event

def test_that_waits():
    Event().wait()

def test_after_it():
    pass
"""


def test_hanging_test_is_named_when_its_time_is_over(pytester: pytest.Pytester) -> None:
    """Wherever it hangs; the next one runs."""
    pytester.makepyfile(HANGING)
    result = pytester.runpytest_subprocess("--timeout=0.5")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["FAILED *test_that_waits*"])


def test_every_test_has_a_time_when_nobody_gives_one(pytestconfig: pytest.Config) -> None:
    """Ten minutes, which no test takes on a machine that is busy with six others."""
    assert float(pytestconfig.getini("timeout")) == 600
