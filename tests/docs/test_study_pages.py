"""The pages of studies follow from stored results of full runs, and those from the code as it is."""

from pathlib import Path

import pytest

from tools.studies import EXAMPLES, FIGURES, RESULTS, pages
from trailboss.simulator.metrics.statistics import interval_of
from trailboss.simulator.study.catalogue import Mode, find_case, study_names
from trailboss.simulator.study.replication import measured, task_of
from trailboss.simulator.study.results import StoredResults, read_results

ANSWERS = sorted({*study_names()} - EXAMPLES)
HELD = {
    "activation": ("clamped, small fires", "fresh_paid"),
    "ageing": ("below, no ageing", "low_late_mean"),
    "basefee-rule": ("exponential, elasticity 2", "use_mean"),
    "caps": ("price ×2, default frozen", "bill_2_10"),
    "fairness-window": ("heavy 100", "newcomer_lag"),
    "fragmentation": ("actor / 10 actors / 1", "share"),
    "lane-multiplier": ("load 0.15, elasticity 2, multiplier 0.8", "use"),
    # Under the lane a quick run ends before its basefee has come to rest.
    "mechanisms": ("steady, fifo", "use"),
    "median-shocks": ("large / 1", "weight_400"),
    "tier-multipliers": ("{0.8, 1, 1.5, 2.5} of basefee ÷ 10 / full / hurried", "separation"),
}
"""Study to a point that its quick and its full settings have, and a measure that does not follow from the length."""


def stored(name: str) -> StoredResults:
    """Return the results of the full run of a study."""
    return read_results(RESULTS / f"{name}.parquet")


@pytest.mark.slow
def test_pages_and_figures_are_those_of_the_stored_results(tmp_path: Path) -> None:
    """``python -m tools.studies`` would change nothing."""
    for path, text in pages(tmp_path).items():
        assert path.read_text(encoding="utf-8") == text, path.name
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_bytes() for path in FIGURES.iterdir()}


@pytest.mark.parametrize("name", ANSWERS)
def test_stored_results_have_the_settings_of_the_study(name: str) -> None:
    """Its file states what the full run ran, and the results have all of its points."""
    results, case = stored(name), find_case(name, Mode.FULL)
    assert results.settings == case.settings
    assert [point.name for point in results.points] == [point.name for point in case.points]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_replication_equals_its_stored_row(name: str) -> None:
    """The code as it is gives the first replication of a point to the last digit, as a full run would store it."""
    case, results = find_case(name, Mode.FULL), stored(name)
    point = case.point(HELD[name][0])
    assert measured(task_of(case, point, 1)) == results.rows[point.name, 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_quick_run_agrees_with_the_full_one(name: str) -> None:
    """The mean of a quick run lies as close to that of the full run as their intervals say."""
    point, measure = HELD[name]
    case = find_case(name, Mode.QUICK)
    numbers = range(1, case.settings.replications_min + 1)
    quick = interval_of([measured(task_of(case, case.point(point), number))[measure] for number in numbers])
    full = stored(name).interval(point, measure)
    assert abs(quick.mean - full.mean) <= quick.half_width + full.half_width, (quick, full)
