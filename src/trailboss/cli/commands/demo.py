"""``demo``: six actors run for several hundred blocks, and one table shows how their timers ended."""

import warnings
from collections import Counter
from importlib import resources
from typing import Annotated, Final

import typer

from trailboss.cli import output
from trailboss.cli.command import Invocation, command
from trailboss.cli.options import number
from trailboss.model.events import TIMER_ENDINGS, TIMER_SCHEDULED
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing import ActorHandle, ChainWarning, LocalChain
from trailboss.views import TimerLife

BLOCKS: Final = 400
ONE_FIRE: Final = 11 * BASE_UNITS_PER_CBY
"""What a fire with the default limits reserves at the lowest basefees: 550,000 cycles and as many cells."""

CAST: Final = (
    ("clock", "SDK Clock: @actor, @timer, timer.schedule", 40 * ONE_FIRE),
    ("interval", "SDK set_interval, re-armed by the SDK", 40 * ONE_FIRE),
    ("heartbeat", "CIP-style HeartbeatActor class", 40 * ONE_FIRE),
    ("runs_dry", "pays for itself until it cannot", ONE_FIRE + ONE_FIRE // 8),
    ("short_lived", "time to live ends before the height", 40 * ONE_FIRE),
    ("stumbles", "handler reverts every third fire", 40 * ONE_FIRE),
)


COUNTED: Final = {TIMER_SCHEDULED: "scheduled", **TIMER_ENDINGS}
ENDS: Final = ("scheduled", "fired", "reverted", "expired", "unfunded", "cancelled", "live")
USED: Final = {
    "cycles": "cycles_used", "cells": "cells_used", "paid": "fee_paid", "burned": "fee_burned", "refunded": "refund"
}  # fmt: skip
"""What the fires of an actor used and cost in base units, and the field of a receipt that says it."""
HALF: Final = 5 * 10**5  # half of the last decimal shown, base units, so that what is cut is rounded
STORY: Final = 3  # place in the cast of the actor whose last timer has its story told


@command(on_chain=False)
def demo(run: Invocation, blocks: Annotated[int, number("Blocks to run.", least=50, most=100_000)] = BLOCKS) -> None:
    """Run six actors for several hundred blocks and show how every timer ended.

    Example: trailboss demo --blocks 1000
    """
    # Its actors live on no public chain.
    with LocalChain() as chain, warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainWarning)
        folder, owner = resources.files("trailboss.cli").joinpath("demo_actors"), chain.accounts[0]
        sources = [folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name, _, _ in CAST]
        values = [value for _, _, value in CAST]
        cast = [chain.deploy(code, sender=owner, value=value) for code, value in zip(sources, values, strict=True)]
        with output.progress("running blocks", blocks, quiet=run.as_json) as advance:
            for _ in chain.chain.advance_to(chain.height + blocks):
                advance()
        chain.check_invariants()
        tallies = [_tally(chain, handle) for handle in cast]
        # The table counts events; the chain has totals of its own.
        for field in set(COUNTED.values()):
            counted, total = sum(tally[field] for tally in tallies), getattr(chain.chain.totals(), field)
            if counted != total:
                raise InvariantError(f"the events are of {counted} timers {field}, the chain counts {total}")
        life = chain.explain(
            [each.timer_id for each in chain.events() if each.emitter == cast[STORY].address and each.timer_id][-1]
        )
        if run.as_json:
            output.print_json(_document(chain, tallies, cast, life))
        else:
            _show(chain, tallies, life)


def _tally(chain: LocalChain, handle: ActorHandle) -> Counter[str]:
    """Count how an actor's timers ended, and what their fires used and cost."""
    own = [event.name for event in chain.events() if event.emitter == handle.address]
    tally = Counter(COUNTED[name] for name in own if name in COUNTED)
    for receipt in chain.receipts(origin="timer", actor=handle):
        tally["reverted"] += receipt.status == "reverted"
        tally.update({name: getattr(receipt, field) for name, field in USED.items()})
    tally["live"] = len(handle.timers())
    return tally


def _show(chain: LocalChain, tallies: list[Counter[str]], life: TimerLife) -> None:
    names = [name for name, _, _ in CAST]
    total = {field: sum(tally[field] for tally in tallies) for field in ENDS}
    ended = [(name, *(tally[field] or None for field in ENDS)) for name, tally in zip(names, tallies, strict=True)]
    costs: list[tuple[output.Cell, ...]] = []
    for name, tally in zip(names, tallies, strict=True):
        amounts = (output.short_cby(tally[field] + HALF) for field in ("paid", "burned", "refunded"))
        mean = output.short_cby(tally["paid"] // tally["fired"] + HALF) if tally["fired"] else None
        costs.append((name, tally["cycles"], tally["cells"], *amounts, mean))
    typer.echo(f"Six actors, {chain.height} blocks")
    output.print_table("", output.columns("actor | what it is"), [(name, about) for name, about, _ in CAST])
    heads = output.columns(" | >".join(("actor", *ENDS)))
    output.print_section("How their timers ended", heads, [*ended, ("all", *total.values())])
    heads = output.columns(" | >".join(("actor", *USED, "paid a fire")))
    output.print_section("What their fires used and cost (CBY)", heads, costs)
    ends = " + ".join(f"{total[field]} {field}" for field in ENDS if field not in ("scheduled", "reverted"))
    balances = chain.chain.circulating()
    typer.echo()
    output.print_facts(
        {
            "money": f"balances {balances:,} + burned {chain.burned:,} = supply {chain.supply:,}",
            "timers": f"{ends} = {total['scheduled']} scheduled",
            "state root": chain.state_root,
        }
    )
    typer.echo("\nThe story of one timer (the last of runs_dry)")
    output.console().print(str(life), markup=False, soft_wrap=True)


def _document(
    chain: LocalChain, tallies: list[Counter[str]], cast: list[ActorHandle], life: TimerLife
) -> dict[str, object]:
    steps = [{"block": step.block_height, "event": step.event.name, "story": step.story} for step in life.steps]
    return {
        "height": chain.height,
        "actors": [
            {"actor": name, "about": about, "address": handle.address, **{each: tally[each] for each in (*ENDS, *USED)}}
            for (name, about, _), handle, tally in zip(CAST, cast, tallies, strict=True)
        ],
        "supply": chain.supply,
        "burned": chain.burned,
        "balances": chain.chain.circulating(),
        "state_root": chain.state_root,
        "story": {"timer_id": life.timer_id, "state": life.state, "steps": steps, "outlook": life.outlook},
    }
