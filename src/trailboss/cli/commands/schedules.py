"""``schedules``: recurring timers of actors, and their last runs."""

from itertools import islice
from typing import Annotated, Final

from trailboss.cli import options
from trailboss.cli.command import Invocation, command
from trailboss.cli.output import Cell, columns, note, print_json, print_section, print_table
from trailboss.cli.targets import find_actor
from trailboss.recurrence import RUN_EVENT
from trailboss.views.schedules import LOST, WAITING, RunView, ScheduleView, all_schedules, runs_of, schedules_of

RUNS: Final = 20  # last runs of an actor by default
COLUMNS: Final = columns(
    "actor | schedule/8 | >blocks | align? | handler/8? | >next | >attempt? | >ok | >failed | >missed | >skipped"
)
RUN_COLUMNS: Final = columns("schedule/8 | >block | >slot | >late | >attempt? | >missed? | outcome | why/29")


@command()
def schedules(
    run: Invocation,
    actor: Annotated[options.Text, options.argument("ACTOR", "Actor: its address or first digits.", "all")] = None,
    limit: Annotated[int, options.number("Most runs of the actor; 0 for all.")] = RUNS,
) -> None:
    """List recurring timers: period, next run, and what became of each slot.

    They are those that actors make with `every` of trailboss.sdk. With an actor its last runs follow, the latest first.

    Example: trailboss schedules 0x044d2D5f
    """
    chain = run.chain
    if actor is None:
        found = list(all_schedules(chain))
        if run.as_json:
            print_json({"height": chain.height, "schedules": found})
            return
        _print(found, f"Schedules after block {chain.height}")
        return
    address = find_actor(chain, actor)
    found = list(schedules_of(chain, address))
    past = runs_of(chain.latest_events(0, RUN_EVENT, address))
    runs = list(islice(past, limit or None))
    more = next(past, None) is not None
    if run.as_json:
        print_json({"height": chain.height, "schedules": found, "runs": runs, "more": more})
        return
    _print(found, f"Schedules after block {chain.height}")
    print_section("Last runs", RUN_COLUMNS, [_run_row(each) for each in runs])
    if more:
        note(f"these are the last {len(runs)}; --limit 0 shows all")


def _print(found: list[ScheduleView], title: str) -> None:
    print_table(title, COLUMNS, [_row(each) for each in found], "no actor has a recurring timer")
    if any(each.state == LOST for each in found):
        note("lost: the chain has removed its timer; the actor's next call of every() with these terms schedules it")


def _row(each: ScheduleView) -> tuple[Cell, ...]:
    following = str(each.due) if each.state == WAITING else each.state
    counts = (each.attempt, each.ok, each.failed, each.missed, each.skipped)
    return each.actor, each.name, each.blocks, each.align, each.handler, following, *counts


def _run_row(each: RunView) -> tuple[Cell, ...]:
    numbers = (str(each.block_height), str(each.slot), each.late, each.attempt, each.missed)
    return each.name, *numbers, each.outcome, each.why
