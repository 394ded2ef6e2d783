"""``demo``: six actors run for several hundred blocks, and one table shows how their timers ended."""

import warnings
from importlib import resources
from typing import Annotated, Final

import typer
from msgspec import Struct
from msgspec.structs import asdict

from trailboss.cli import output
from trailboss.cli.options import AsJson, number
from trailboss.model import events as names
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing import ActorHandle, ChainWarning, LocalChain

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


class ActorTally(Struct):
    """How one actor's timers ended. Money in base units."""

    actor: str
    about: str
    address: str
    scheduled: int = 0
    fired: int = 0
    reverted: int = 0
    expired: int = 0
    unfunded: int = 0
    cancelled: int = 0
    live: int = 0
    cycles: int = 0
    cells: int = 0
    paid: int = 0
    burned: int = 0
    refunded: int = 0


COUNTED: Final = {
    names.TIMER_SCHEDULED: "scheduled",
    names.TIMER_FIRED: "fired",
    names.TIMER_EXPIRED: "expired",
    names.TIMER_UNFUNDED: "unfunded",
    names.TIMER_CANCELLED: "cancelled",
}
ENDINGS: Final = ("fired", "expired", "unfunded", "cancelled")
HALF: Final = 5 * 10**5  # half of the last decimal shown, base units, so that what is cut is rounded
ACTOR: Final = output.TableColumn("actor")


def demo(
    blocks: Annotated[int, number("Blocks to run.", least=50, most=100_000)] = BLOCKS, as_json: AsJson = False
) -> None:
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
        with output.progress("running blocks", blocks, quiet=as_json) as advance:
            for _ in chain.chain.advance_to(chain.height + blocks):
                advance()
        chain.check_invariants()
        tallies = [_tally(chain, *member[:2], handle) for member, handle in zip(CAST, cast, strict=True)]
        _check_tallies(chain, tallies)
        if as_json:
            output.print_json(_document(chain, tallies, cast))
        else:
            _show(chain, tallies, cast)


def _tally(chain: LocalChain, name: str, about: str, handle: ActorHandle) -> ActorTally:
    tally = ActorTally(name, about, str(handle.address))
    for event in chain.events():
        if event.emitter == handle.address and event.name in COUNTED:
            field = COUNTED[event.name]
            setattr(tally, field, getattr(tally, field) + 1)
    for receipt in chain.receipts(origin="timer", actor=handle):
        tally.reverted += receipt.status == "reverted"
        tally.cycles += receipt.cycles_used
        tally.cells += receipt.cells_used
        tally.paid += receipt.fee_paid
        tally.burned += receipt.fee_burned
        tally.refunded += receipt.refund
    tally.live = len(handle.timers())
    return tally


def _check_tallies(chain: LocalChain, tallies: list[ActorTally]) -> None:
    """Compare the table, which counts events, with the chain's own totals."""
    totals = chain.chain.totals()
    for field in ("scheduled", *ENDINGS):
        counted = sum(getattr(tally, field) for tally in tallies)
        if counted != getattr(totals, field):
            raise InvariantError(
                f"the events are of {counted} timers {field}, the chain counts {getattr(totals, field)}"
            )


def _show(chain: LocalChain, tallies: list[ActorTally], cast: list[ActorHandle]) -> None:
    fields = ("scheduled", "fired", "reverted", "expired", "unfunded", "cancelled", "live")
    rows = [(tally.actor, *(getattr(tally, field) or None for field in fields)) for tally in tallies]
    total = {field: sum(getattr(tally, field) for tally in tallies) for field in fields}
    columns = [ACTOR, *(output.TableColumn(field, right=True) for field in fields)]
    typer.echo(f"Six actors, {chain.height} blocks")
    output.print_table("", (ACTOR, output.TableColumn("what it is")), [(tally.actor, tally.about) for tally in tallies])
    output.print_section("How their timers ended", columns, [*rows, ("all", *total.values())])
    headings = ("cycles", "cells", "paid", "burned", "refunded", "paid a fire")
    costs: list[tuple[output.Cell, ...]] = []
    for each in tallies:
        amounts = (output.short_cby(amount + HALF) for amount in (each.paid, each.burned, each.refunded))
        mean = output.short_cby(each.paid // each.fired + HALF) if each.fired else None
        costs.append((each.actor, each.cycles, each.cells, *amounts, mean))
    money = [ACTOR, *(output.TableColumn(heading, right=True) for heading in headings)]
    output.print_section("What their fires used and cost (CBY)", money, costs)
    ends = " + ".join(f"{total[field]} {field}" for field in (*ENDINGS, "live"))
    balances = chain.chain.circulating()
    typer.echo()
    output.print_facts(
        {
            "money": f"balances {balances:,} + burned {chain.burned:,} = supply {chain.supply:,}",
            "timers": f"{ends} = {total['scheduled']} scheduled",
            "state root": str(chain.state_root),
        }
    )
    typer.echo("\nThe story of one timer (the last of runs_dry)")
    output.console().print(str(chain.explain(_last_timer(chain, cast[3]))), markup=False, soft_wrap=True)


def _last_timer(chain: LocalChain, handle: ActorHandle) -> bytes:
    ended = [event.timer_id for event in chain.events() if event.emitter == handle.address and event.timer_id]
    return ended[-1]


def _document(chain: LocalChain, tallies: list[ActorTally], cast: list[ActorHandle]) -> dict[str, object]:
    life = chain.explain(_last_timer(chain, cast[3]))
    steps = [{"block": step.block_height, "event": step.event.name, "story": step.story} for step in life.steps]
    return {
        "height": chain.height,
        "actors": [asdict(tally) for tally in tallies],
        "supply": chain.supply,
        "burned": chain.burned,
        "balances": chain.chain.circulating(),
        "state_root": chain.state_root,
        "story": {"timer_id": life.timer_id, "state": life.state, "steps": steps, "outlook": life.outlook},
    }
