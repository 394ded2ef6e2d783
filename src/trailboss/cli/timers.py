"""``trailboss timers`` lists timers, ``trailboss timer explain`` tells the life of one."""

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Literal

import typer

from trailboss.chain import ChainReader
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain, resolve_actor, resolve_timer
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Limit, Place
from trailboss.cli.output import Cell, Column, console, note, print_json, print_pairs, print_table
from trailboss.governance.rules import Rules
from trailboss.model.globalbox import format_bid
from trailboss.model.markets import MarketKind
from trailboss.primitives.units import U64_MAX
from trailboss.views import TimerLife
from trailboss.views.records import TimerEntry
from trailboss.views.timer_list import REVERTED, TimerFilter

State = Literal[
    "live", "due", "deferred", "over-cap", "priced-out", "late", "queued", "in-mailbox",
    "fired", "expired", "unfunded", "cancelled", "all",
]  # fmt: skip
COLUMNS = (
    Column("timer"),
    Column("height", right=True),
    Column("state"),
    Column("actor"),
    Column("handler", least=12),
    Column("payer"),
    Column("gas limit", right=True, extra=True),
    Column("expires after", right=True, extra=True),
    Column("tier", extra=True),
)
FEE_COLUMNS = (Column("max fee", right=True, extra=True), Column("tip", right=True, extra=True))
"""Besides, once the timer lane is active, and in the auction."""
AUCTION_COLUMNS = (
    *FEE_COLUMNS,
    Column("asked in", right=True),
    Column("blocks late", right=True),
    Column("agent", extra=True),
)
"""Besides, in the auction."""
GLOBALBOX_COLUMNS = (
    Column("kind", extra=True),
    Column("target", extra=True),
    Column("bid", right=True, extra=True),
    Column("fires", right=True),
    Column("in mailbox", right=True, extra=True),
)
"""Besides, in Globalbox."""


def timers(
    actor: Annotated[str | None, typer.Option(metavar="ACTOR", help="Only this actor's.")] = None,
    target: Annotated[str | None, typer.Option(metavar="ACTOR", help="Only those that call this actor.")] = None,
    payer: Annotated[str | None, typer.Option(metavar="ACTOR", help="Only those that this account pays for.")] = None,
    state: Annotated[
        State,
        typer.Option(
            help="live is everything that has not ended, due and deferred timers included; over-cap and priced-out are "
            "what the timer lane keeps waiting, late what the auction has told so, queued and in-mailbox where a fire "
            "of Globalbox is.",
        ),
    ] = "live",
    from_height: Annotated[int, typer.Option(min=0, max=U64_MAX, metavar="H", help="Due at this height or later.")] = 0,
    to_height: Annotated[
        int | None,
        typer.Option(min=0, max=U64_MAX, metavar="H", help="Due at this height or earlier.", show_default=False),
    ] = None,
    limit: Limit = LIMIT,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """List timers: live ones by height, ended ones the latest first."""
    last = U64_MAX if to_height is None else to_height
    if last < from_height:
        raise Mistake(f"--to-height {last} lies below --from-height {from_height}", "swap them")
    with open_chain(place) as chain:
        wanted = TimerFilter(
            state=state,
            actor=None if actor is None else resolve_actor(chain, actor),
            target=None if target is None else resolve_actor(chain, target),
            payer=None if payer is None else resolve_actor(chain, payer),
            first=from_height,
            last=last,
        )
        found = chain.list_timers(wanted)
        entries = list(islice(found, limit or None))
        more = next(found, None) is not None
        _show(chain, entries, state, more=more, as_json=as_json)


def _show(chain: ChainReader, entries: list[TimerEntry], state: str, *, more: bool, as_json: bool) -> None:
    if as_json:
        print_json({"height": chain.height, "live": chain.timer_count(), "timers": entries, "more": more})
        return
    if entries:
        title = f"{'Timers' if state == 'all' else f'{state.capitalize()} timers'} after block {chain.height}"
        columns, cells = _besides(chain.rules())
        print_table(title, COLUMNS + columns, [_row(entry) + cells(entry) for entry in entries])
    else:
        note(f"no such timers after block {chain.height}; {chain.timer_count()} are live")
    if more:
        note(f"these are the first {len(entries)}; --limit 0 shows all")


def _row(entry: TimerEntry) -> tuple[Cell, ...]:
    payer = "the actor" if entry.fee_payer == entry.actor else entry.fee_payer
    ending = REVERTED if entry.reverted else entry.state
    state = entry.state if entry.ended_at is None else f"{ending} in {entry.ended_at}"
    return (
        entry.timer_id,
        None if entry.globalbox is not None and entry.globalbox.due_height is None else entry.height,
        state,
        entry.actor,
        entry.handler,
        payer,
        f"{entry.gas_limit:,}",
        "never" if entry.expires_at == U64_MAX else entry.expires_at,
        entry.tier or entry.deferred_for,
    )


def _besides(rules: Rules) -> tuple[tuple[Column, ...], Callable[[TimerEntry], tuple[Cell, ...]]]:
    """Return the columns that timers of a chain have besides, and what fills them."""
    if rules.market.kind is MarketKind.GLOBALBOX:
        return GLOBALBOX_COLUMNS, _globalbox_cells
    if rules.market.kind is MarketKind.AUCTION:
        return AUCTION_COLUMNS, _auction_cells
    return ((), _nothing) if rules.market.kind is not MarketKind.LANE else (FEE_COLUMNS, _fees)


def _nothing(_: TimerEntry) -> tuple[Cell, ...]:
    return ()


def _auction_cells(entry: TimerEntry) -> tuple[Cell, ...]:
    found = entry.auction
    if found is None:
        return (*_fees(entry), None, None, None)
    return (*_fees(entry), found.asked_at, found.delay_count or None, found.agent)


def _globalbox_cells(entry: TimerEntry) -> tuple[Cell, ...]:
    found = entry.globalbox
    if found is None:
        return None, None, None, None, None
    kind = found.kind.lower().replace("_", " ")
    return kind, found.target, format_bid(found.bid_fp), found.fire_seq, found.in_mailbox or None


def _fees(entry: TimerEntry) -> tuple[Cell, ...]:
    if entry.max_fee_per_cycle is None or entry.max_priority_fee_per_cycle is None:
        return entry.fees, None
    return f"{entry.max_fee_per_cycle:,}", f"{entry.max_priority_fee_per_cycle:,}"


timer = typer.Typer(no_args_is_help=True, add_completion=False, help="Look at one timer.")


@timer.callback()
def _one_timer() -> None:
    """Look at one timer."""


@timer.command()
def explain(
    timer_id: Annotated[
        str, typer.Argument(metavar="ID", help="Its id, or the first digits of it.", show_default=False)
    ],
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell a timer's whole life, and why each decision fell as it did."""
    with open_chain(place) as chain:
        identity = resolve_timer(chain, timer_id)
        life = chain.explain(identity)
    if as_json:
        print_json(_document(life))
    else:
        _tell(life)


def _tell(life: TimerLife) -> None:
    printer = console()
    printer.print(life.heading(), markup=False, soft_wrap=True)
    print_pairs(printer, life.lines(), indent="  ")


def _document(life: TimerLife) -> dict[str, object]:
    steps = [
        {"block_height": step.block_height, "event": step.event.name, "story": step.story, "data": step.event.data}
        for step in life.steps
    ]
    return {
        "timer_id": life.timer_id,
        "state": life.state,
        "steps": steps,
        "waited": life.waited or None,
        "waits": life.waits,
        "bids": life.bids,
        "fires": life.fires,
        "outlook": life.outlook or None,
        "reverted": life.has_reverted,
        "failure": life.failure,
    }
