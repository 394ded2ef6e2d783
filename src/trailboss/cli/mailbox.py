"""``trailboss mailbox``: what waits under Globalbox, materialized entries and the fires behind them."""

from typing import Annotated

import typer

from trailboss.chain import ChainReader
from trailboss.cli.failures import Missing
from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Limit, Place
from trailboss.cli.output import Cell, Column, note, print_json, print_table
from trailboss.model.globalbox import format_bid
from trailboss.model.markets import MarketKind
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.globalbox_records import FireView, MailboxView, globalbox_of, mailbox_of

ENTRY_COLUMNS = (
    Column("deliver seq", right=True),
    Column("timer"),
    Column("fire", right=True),
    Column("target"),
    Column("because of", least=12),
    Column("bid", right=True),
    Column("gas limit", right=True),
    Column("reserved CBY", right=True),
    Column("since", right=True, extra=True),
    Column("owner", extra=True),
    Column("deliver id", extra=True),
)
FIRE_COLUMNS = (
    Column("place", right=True),
    Column("timer"),
    Column("fire", right=True),
    Column("target"),
    Column("because of", least=12),
    Column("bid", right=True),
    Column("gas limit", right=True),
    Column("since", right=True, extra=True),
    Column("bucket", right=True, extra=True),
    Column("owner", extra=True),
)


def mailbox(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", help="Only what is for this actor.", show_default=False),
    ] = None,
    queued: Annotated[
        bool, typer.Option("--queued", help="The fires that stand in Globalbox, not yet in the mailbox.")
    ] = False,
    limit: Limit = LIMIT,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """List the mailbox of Globalbox in the order of delivery, or the fires that are queued behind it."""
    with open_chain(place) as chain:
        if chain.rules().market.kind is not MarketKind.GLOBALBOX:
            raise Missing(
                f"this chain has no mailbox: its mechanism is {chain.mechanism.name}",
                "list its timers with `trailboss timers`; a chain begun with `trailboss init --mechanism globalbox` "
                "has one",
            )
        wanted = None if target is None else resolve_actor(chain, target)
        if queued:
            fires = [view for view in globalbox_of(chain) if wanted in (None, view.target)]
            _show_fires(chain, fires, limit, as_json=as_json)
        else:
            _show_entries(chain, mailbox_of(chain, wanted), limit, as_json=as_json)


def _show_entries(chain: ChainReader, entries: list[MailboxView], limit: int, *, as_json: bool) -> None:
    shown = entries[: limit or None]
    if as_json:
        print_json({"height": chain.height, "total": len(entries), "mailbox": shown})
        return
    if shown:
        print_table(f"Mailbox after block {chain.height}", ENTRY_COLUMNS, [_entry_row(entry) for entry in shown])
    else:
        note(f"nothing waits in the mailbox after block {chain.height}")
    _say_rest(len(shown), len(entries))


def _show_fires(chain: ChainReader, fires: list[FireView], limit: int, *, as_json: bool) -> None:
    shown = fires[: limit or None]
    if as_json:
        print_json({"height": chain.height, "total": len(fires), "globalbox": shown})
        return
    if shown:
        print_table(f"Globalbox after block {chain.height}", FIRE_COLUMNS, [_fire_row(fire) for fire in shown])
    else:
        note(f"no fire stands in Globalbox after block {chain.height}")
    _say_rest(len(shown), len(fires))


def _say_rest(shown: int, total: int) -> None:
    if shown < total:
        note(f"these are the first {shown} of {total:,}; --limit 0 shows all")


def _entry_row(entry: MailboxView) -> tuple[Cell, ...]:
    trigger = entry.trigger
    return (
        entry.deliver_seq,
        entry.timer_id,
        entry.fire_seq,
        entry.target,
        _trigger_words(trigger.due_height, len(trigger.matched_keys)),
        format_bid(entry.bid_fp),
        f"{entry.gas_limit:,}",
        format_cby(entry.reserved),
        entry.materialized_at,
        entry.owner,
        entry.deliver_id,
    )


def _fire_row(view: FireView) -> tuple[Cell, ...]:
    fire = view.fire
    return (
        view.place,
        view.timer_id,
        view.fire_seq,
        view.target,
        _trigger_words(None if fire.matched_keys else fire.hit_height, len(fire.matched_keys)),
        format_bid(fire.bid_fp),
        f"{fire.gas_limit:,}",
        fire.queued_at,
        fire.bucket,
        view.owner,
    )


def _trigger_words(due_height: int | None, keys: int) -> str:
    """Return what made a timer fire, in words."""
    if due_height is not None:
        return f"height {due_height}"
    return f"{keys:,} changed key{'' if keys == 1 else 's'}"
