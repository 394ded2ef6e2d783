"""``demo``: six actors run for several hundred blocks, and one table shows how their timers ended."""

import json
import warnings
from importlib import resources
from typing import Annotated, Final

from msgspec import Struct
from msgspec.structs import asdict
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from trailboss.cli.options import AsJson, number
from trailboss.cli.output import console
from trailboss.model import events as names
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing import ActorHandle, ChainWarning, LocalChain, Receipt
from trailboss.views.json_values import to_json_value

BLOCKS: Final = 400
WIDE: Final = 128
"""Columns of a terminal in which what each actor is has room beside the rest."""
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


class Tally(Struct):
    """What became of one actor's timers. Money in base units."""

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


def demo(
    blocks: Annotated[int, number(text="Blocks to run.", least=50, most=100_000)] = BLOCKS, as_json: AsJson = False
) -> None:
    """Run six actors for several hundred blocks and show how every timer ended.

    Example: trailboss demo --blocks 1000
    """
    printer = console()
    # Its actors live on no public chain.
    with LocalChain() as chain, warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainWarning)
        cast = [_deploy(chain, name, value) for name, _, value in CAST]
        _run(chain, blocks, Console(stderr=True, quiet=as_json))
        chain.check_invariants()
        tallies = [_tally(chain, *member[:2], handle) for member, handle in zip(CAST, cast, strict=True)]
        _check_tallies(chain, tallies)
        if as_json:
            printer.print_json(json.dumps(to_json_value(_document(chain, tallies, cast))))
        else:
            _show(printer, chain, tallies, cast)


def _deploy(chain: LocalChain, name: str, value: int) -> ActorHandle:
    source = resources.files("trailboss.cli").joinpath("demo_actors", f"{name}.py").read_text(encoding="utf-8")
    return chain.deploy(source, sender=chain.accounts[0], value=value)


def _run(chain: LocalChain, blocks: int, console: Console) -> None:
    columns = (
        TextColumn("[bold]running blocks"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[live]} timers live"),
        TimeElapsedColumn(),
    )
    end = chain.height + blocks
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=blocks, live=chain.chain.timer_count())
        for _ in chain.chain.advance_to(end):
            progress.update(task, advance=1, live=chain.chain.timer_count())


def _tally(chain: LocalChain, name: str, about: str, handle: ActorHandle) -> Tally:
    tally = Tally(name, about, str(handle.address))
    for event in chain.events():
        if event.emitter == handle.address and event.name in COUNTED:
            field = COUNTED[event.name]
            setattr(tally, field, getattr(tally, field) + 1)
    for receipt in chain.receipts(origin="timer", actor=handle):
        _count(tally, receipt)
    tally.live = len(handle.timers())
    return tally


def _count(tally: Tally, receipt: Receipt) -> None:
    tally.reverted += receipt.status == "reverted"
    tally.cycles += receipt.cycles_used
    tally.cells += receipt.cells_used
    tally.paid += receipt.fee_paid
    tally.burned += receipt.fee_burned
    tally.refunded += receipt.refund


def _check_tallies(chain: LocalChain, tallies: list[Tally]) -> None:
    """Hold the table, which counts events, against the chain's own totals."""
    totals = chain.chain.totals()
    for field in ("scheduled", "fired", "expired", "unfunded", "cancelled"):
        counted = sum(getattr(tally, field) for tally in tallies)
        if counted != getattr(totals, field):
            raise InvariantError(f"events tell of {counted} timers {field}, the chain counts {getattr(totals, field)}")


def _cby(amount: int) -> str:
    return f"{amount / BASE_UNITS_PER_CBY:,.3f}"


def _show(printer: Console, chain: LocalChain, tallies: list[Tally], cast: list[ActorHandle]) -> None:
    is_wide = printer.width >= WIDE
    if not is_wide:
        printer.print(_cast_table(tallies))
    printer.print(_timer_table(tallies, chain.height, with_about=is_wide))
    printer.print(_money_table(tallies))
    for line in _conservation(chain, tallies):
        printer.print(line, soft_wrap=True)
    printer.print(f"state root  {chain.state_root}", soft_wrap=True)
    printer.print()
    printer.print("[bold]The story of one timer[/bold] (the last of runs_dry)")
    story = str(chain.explain(_last_timer(chain, cast[3])))
    printer.print(story, markup=False, soft_wrap=True)


def _table(title: str) -> Table:
    """Return an empty table, tight enough for a terminal of 80 columns."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _cast_table(tallies: list[Tally]) -> Table:
    """Return who the actors are, for a terminal in which that does not fit beside what became of their timers."""
    table = _table("Six actors")
    table.add_column("actor", style="bold", no_wrap=True)
    table.add_column("what it is", style="dim")
    for tally in tallies:
        table.add_row(tally.actor, tally.about)
    return table


def _timer_table(tallies: list[Tally], height: int, *, with_about: bool) -> Table:
    table = _table(f"Six actors, {height} blocks: what became of their timers")
    table.add_column("actor", style="bold", no_wrap=True)
    if with_about:
        table.add_column("what it is", style="dim", no_wrap=True)
    fields = ("scheduled", "fired", "reverted", "expired", "unfunded", "cancelled", "live")
    for field in fields:
        table.add_column(field, justify="right")

    def about(text: str) -> tuple[str, ...]:
        return (text,) if with_about else ()

    for tally in tallies:
        cells = [str(getattr(tally, field) or "·") for field in fields]
        table.add_row(tally.actor, *about(tally.about), *cells)
    table.add_section()
    table.add_row("all", *about(""), *(str(sum(getattr(tally, field) for tally in tallies)) for field in fields))
    return table


def _money_table(tallies: list[Tally]) -> Table:
    table = _table("What their fires used and cost (CBY)")
    table.add_column("actor", style="bold")
    for heading in ("cycles", "cells", "paid", "burned", "refunded", "paid a fire"):
        table.add_column(heading, justify="right")
    for tally in tallies:
        each = _cby(tally.paid // tally.fired) if tally.fired else "·"
        used = (f"{tally.cycles:,}", f"{tally.cells:,}")
        table.add_row(tally.actor, *used, _cby(tally.paid), _cby(tally.burned), _cby(tally.refunded), each)
    return table


def _conservation(chain: LocalChain, tallies: list[Tally]) -> tuple[str, str]:
    balances = chain.chain.circulating()
    total = {field: sum(getattr(tally, field) for tally in tallies) for field in asdict(tallies[0]) if field in SUMMED}
    money = f"money   balances {balances:,} + burned {chain.burned:,} = supply {chain.supply:,}"
    timers = (
        f"timers  {total['fired']} fired + {total['expired']} expired + {total['unfunded']} unfunded + "
        f"{total['cancelled']} cancelled + {total['live']} live = {total['scheduled']} scheduled"
    )
    return money, timers


SUMMED: Final = ("scheduled", "fired", "expired", "unfunded", "cancelled", "live")


def _last_timer(chain: LocalChain, handle: ActorHandle) -> bytes:
    ended = [event.timer_id for event in chain.events() if event.emitter == handle.address and event.timer_id]
    return ended[-1]


def _document(chain: LocalChain, tallies: list[Tally], cast: list[ActorHandle]) -> dict[str, object]:
    life = chain.explain(_last_timer(chain, cast[3]))
    return {
        "height": chain.height,
        "actors": [asdict(tally) for tally in tallies],
        "supply": chain.supply,
        "burned": chain.burned,
        "balances": chain.chain.circulating(),
        "state_root": str(chain.state_root),
        "story": {
            "timer_id": str(life.timer_id),
            "state": life.state,
            "steps": [
                {"block": step.block_height, "event": step.event.name, "story": step.story} for step in life.steps
            ],
            "outlook": life.outlook,
        },
    }
