"""What `trailboss compare` does, once the packages that it needs are there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from trailboss.cli.command import Invocation
from trailboss.cli.errors import Mistake
from trailboss.cli.output import Cell, columns, print_facts, print_json, print_section, progress
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.simulator.comparison import ComparedMechanism, compare, owners
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.scenario import Scenario, read_scenario
from trailboss.simulator.study.text import interval_text

FIX: Final = "correct the scenario; docs/reference/scenarios.md has every field"

CBY: Final = BASE_UNITS_PER_CBY
MEASURES: Final[tuple[tuple[str, str, float], ...]] = (
    ("scheduled", "scheduled", 1),
    ("refused", "refused", 1),
    ("fired", "fired", 1),
    ("  reverted", "reverted", 1),
    ("  blocks late, mean", "late_mean", 1),
    ("  blocks late, p50", "late_p50", 1),
    ("  blocks late, p95", "late_p95", 1),
    ("  blocks late, p99", "late_p99", 1),
    ("  blocks late, max", "late_max", 1),
    ("expired", "expired", 1),
    ("unfunded", "unfunded", 1),
    ("cancelled", "cancelled", 1),
    ("waiting at the end", "waiting", 1),
    ("use of the budget, %", "use_mean", 0.01),
    ("  full blocks, %", "full", 0.01),
    ("CBY paid a fire", "paid_mean", CBY),
    ("CBY burned a block", "burn_mean", CBY),
    ("CBY of tips a block", "revenue_mean", CBY),
    ("Jain's index", "jain_actors", 1),
    ("CBY of welfare", "welfare", CBY),
)
"""Rows of the first table: heading, measure, and how many of its units are one that is shown."""
OF_OWNERS: Final = ("refused", "fired", "late_mean", "late_p95", "expired", "unfunded", "paid_mean", "welfare")
"""Measures of the second table."""
LEAST: Final = 0.001  # no half width is shown smaller, unless it is 0


def show_comparison(
    run: Invocation, path: Path, mechanisms: Sequence[str], seeds: int, blocks: int | None, *, is_whole: bool
) -> None:
    """Run a scenario under mechanisms, and print what came of it.

    Raises:
        Mistake: If the scenario cannot be run; the message names file, field, value and rule.
    """
    try:
        found = read_scenario(path)
    except ConfigurationError as error:
        raise Mistake(str(error), FIX) from None
    scenario = found if blocks is None else replace(found, blocks=blocks)
    with progress("running blocks", scenario.blocks * seeds * len(mechanisms), quiet=run.as_json) as advance:
        results = list(compare(scenario, mechanisms, seeds, is_whole=is_whole, on_block=advance))
    if run.as_json:
        facts = {"name": scenario.name, "blocks": scenario.blocks, "warm_up": scenario.warm_up}
        shown = [{"mechanism": result.mechanism, "measures": _document(result)} for result in results]
        print_json({"scenario": facts, "seeds": seeds, "is_whole": is_whole, "results": shown})
    else:
        _show(scenario, seeds, results)


def _document(result: ComparedMechanism) -> dict[str, object]:
    intervals = {name: result.interval(name) for name in result.values}
    return {
        name: {"mean": found.mean, "half_width": found.half_width, "values": result.values[name]}
        for name, found in intervals.items()
    }


def _show(scenario: Scenario, seeds: int, results: Sequence[ComparedMechanism]) -> None:
    budgets = {result.mechanism: round(result.values["budget"][0]) for result in results}
    same, *others = set(budgets.values())
    each = ", ".join(f"{name} {budget:,}" for name, budget in budgets.items())
    warm_up = f", after {scenario.warm_up:,} that no measure sees" if scenario.warm_up else ""
    print_facts(
        {
            "scenario": scenario.name,
            "blocks": f"{scenario.blocks:,}{warm_up}",
            "seeds": f"1 to {seeds} under each mechanism; ± is half of a 95 % confidence interval",
            "budget": f"{each} cycles a block" if others else f"{same:,} cycles a block, the same for all",
        }
    )
    names = " | >".join(f"{result.mechanism}/9" for result in results)
    rows = [(heading, *_cells(results, measure, unit)) for heading, measure, unit in MEASURES]
    print_section("What became of the timers", columns(f" | >{names}"), rows)
    own = [row for row in MEASURES if row[1] in OF_OWNERS]
    of_owners: list[tuple[Cell, ...]] = []
    for name in owners(scenario):
        for heading, measure, unit in own:
            first = name if measure == own[0][1] else ""
            of_owners.append((first, heading.strip(), *_cells(results, f"{name}.{measure}", unit)))
    print_section("Of each row of the scenario", columns(f"agents | measure | >{names}"), of_owners)


def _cells(results: Sequence[ComparedMechanism], measure: str, unit: float) -> list[Cell]:
    cells: list[Cell] = []
    for interval in (result.interval(measure) for result in results):
        half_width = interval.half_width / unit
        shown = max(half_width, LEAST) if half_width else 0.0
        cells.append(interval_text(Interval(interval.mean / unit, shown, interval.count)))
    return cells
