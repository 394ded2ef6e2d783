"""``compare``: one workload through every mechanism."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.options import Texts, argument, completing, option
from trailboss.cli.output import Cell, columns, print_facts, print_json, print_section, progress, short_cby
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import format_cby
from trailboss.simulator.measures import MechanismResult, Outcome
from trailboss.simulator.run import MECHANISMS, compare
from trailboss.simulator.sources import DIALECTS
from trailboss.simulator.workload import Workload
from trailboss.simulator.workload_file import read_workload

PERCENT: Final = 100
FIX: Final = "correct the workload; those in examples/workloads have every key"

OUTCOMES: Final[tuple[tuple[str, Callable[[Outcome], Cell]], ...]] = (
    ("scheduled", lambda of: of.scheduled),
    ("delivered", lambda of: of.delivered),
    ("  reverted", lambda of: of.reverted),
    ("  delayed", lambda of: of.delayed),
    ("  blocks late, p50", lambda of: of.late_p50),
    ("  blocks late, p95", lambda of: of.late_p95),
    ("  blocks late, max", lambda of: of.late_max),
    ("expired", lambda of: of.expired),
    ("unfunded", lambda of: of.unfunded),
    ("cancelled", lambda of: of.cancelled),
    ("waiting at the end", lambda of: of.waiting),
    ("  overdue", lambda of: of.overdue),
    ("CBY paid", lambda of: short_cby(of.paid)),
    ("  burned", lambda of: short_cby(of.burned)),
    ("  tips", lambda of: short_cby(of.tips)),
    ("Jain's index", lambda of: None if of.jain is None else short_cby(of.jain)),
)
"""Rows of the table: heading, and what of an outcome stands there."""
RESULTS: Final[tuple[tuple[str, Callable[[MechanismResult], Cell]], ...]] = (
    ("cycles of fires", lambda of: of.outcome.cycles_used),
    ("  of the budget", lambda of: share_text(of.outcome.cycles_used, of.budget_cycles * len(of.timeline))),
    ("  of it, fullest block", lambda of: share_text(of.fullest_block, of.budget_cycles)),
    ("  full blocks", lambda of: of.full_blocks),
    ("transactions", lambda of: of.transactions),
    ("  refused", lambda of: of.transactions_refused),
    ("state root", lambda of: f"0x{of.state_root.hex()[:8]}"),
)
"""More rows, about a whole chain."""
GROUPS: Final = columns(
    "actors | mechanism | >asked | >delivered | >late p50 | >p95 | >max | >waiting? | "
    ">overdue? | >expired? | >unfunded | >CBY paid | >tips?"
)


@command(on_chain=False)
def compare_mechanisms(
    run: Invocation,
    workload: Annotated[Path, argument("WORKLOAD", "A TOML file; see examples/workloads.")],
    mechanism: Annotated[
        Texts, option("NAME", "Only this mechanism; may be repeated.", "all", autocompletion=completing(MECHANISMS))
    ] = None,
) -> None:
    """Run one workload through every mechanism and compare the results.

    Example: trailboss compare examples/workloads/congested.toml
    """
    names = tuple(dict.fromkeys(mechanism or MECHANISMS))
    for name in names:
        if name not in MECHANISMS:
            raise Mistake(f"there is no mechanism {name!r}", f"there are: {', '.join(MECHANISMS)}")
    try:
        found = read_workload(workload, names)
    except ConfigurationError as error:
        raise Mistake(str(error), FIX) from None
    with progress("running blocks", found.blocks * len(names), quiet=run.as_json) as advance:
        results = compare(found, names, advance)
    if run.as_json:
        kept = [name for name in MechanismResult.__struct_fields__ if name != "fires"]
        # Single fires are left out: each is in the numbers of its actor and its group.
        shown = [{name: getattr(result, name) for name in kept} for result in results]
        print_json({"workload": found, "results": shown})
    else:
        _show(found, results)


def _show(workload: Workload, results: Sequence[MechanismResult]) -> None:
    budgets = {result.mechanism: result.budget_cycles for result in results}
    same = len(set(budgets.values())) == 1
    each = ", ".join(f"{name} {budget:,}" for name, budget in budgets.items()) + " cycles a block"
    stated = f"{results[0].budget_cycles:,} cycles a block, the same for all" if same else each
    print_facts(
        {
            "workload": f"{workload.name} (seed {workload.seed})",
            "blocks": f"{workload.blocks:,}",
            "actors": ", ".join(f"{group.count} {group.name}" for group in workload.actors),
            "budget": stated,
        }
    )
    heads = columns(" | >".join(("", *budgets)))
    rows = [(name, *(cell(result.outcome) for result in results)) for name, cell in OUTCOMES]
    rows += [(name, *(cell(result) for result in results)) for name, cell in RESULTS]
    print_section("What became of the timers", heads, rows)
    groups: list[tuple[Cell, ...]] = []
    for index, group in enumerate(workload.actors):
        for result in results:
            of = result.groups[index].outcome
            late = (of.asked, of.delivered, of.late_p50, of.late_p95, of.late_max)
            ended = (of.waiting, of.overdue, of.expired, of.unfunded, short_cby(of.paid), short_cby(of.tips))
            groups.append((group.name if result is results[0] else "", result.mechanism, *late, *ended))
    print_section("Whose fires were late", GROUPS, groups)
    typer.echo()
    supply = results[0].supply
    print_facts(
        {
            "conserved": f"under each, balances + burned = supply = {format_cby(supply)} CBY, and every timer has "
            "exactly one end or waits",
            **{result.mechanism: DIALECTS[result.mechanism].offers for result in results},
        }
    )


def share_text(part: int, whole: int) -> str:
    """Return a share in percent, the rest cut off.

    >>> share_text(2, 3)
    '66 %'
    """
    return f"{PERCENT * part // whole} %"
