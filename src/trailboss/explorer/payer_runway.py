"""Whether a payer can pay: its runway, in the command line's words, and what of it is an alert."""

from fractions import Fraction
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import FULL, Column, Content, Fact, Notice, Row, Section, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import blocks_words
from trailboss.primitives.units import format_cby
from trailboss.views.forecast.runway import PaidActor, Reach, Runway
from trailboss.views.text import counted

NAMES: Final = {"present": "present", "twice": "twice", "p95": "95th percentile"}
SOON_BLOCKS: Final = 100
LATER_BLOCKS: Final = 1_000
REACH_COLUMNS: Final = (
    Column("Basefees", bare=True),
    Column("Cycle", right=True),
    Column("Lane", right=True),
    Column("Cell", right=True),
    Column("CBY a fire", right=True),
    Column("Fires left", right=True),
    Column("Dry in block", right=True),
)
ACTOR_COLUMNS: Final = (
    Column("Actor", bare=True),
    Column("Live timers", right=True),
    Column("Fires seen", right=True),
    Column("A fire every", right=True),
    Column("Cycles", right=True),
    Column("Cells", right=True),
)


def present_reach(runway: Runway) -> Reach:
    """Return how far the purse reaches at the basefees of now."""
    return runway.reaches[0]


def alert_tone(runway: Runway) -> str:
    """Return how pressing a purse is at the basefees of now: ``bad`` within 100 blocks, ``warn`` within 1,000."""
    dry_at = present_reach(runway).dry_at
    if dry_at is None or dry_at - runway.height > LATER_BLOCKS:
        return ""
    return "bad" if dry_at - runway.height <= SOON_BLOCKS else "warn"


def alert_words(runway: Runway) -> str:
    """Return in a sentence when a purse runs dry; empty if it does not as things stand."""
    reach = present_reach(runway)
    if reach.dry_at is None:
        return ""
    fires = "pays for no fire any more" if not reach.fires else f"pays for {counted(reach.fires, 'more fire')}"
    return (
        f"{fires}: in block {reach.dry_at}, {blocks_words(reach.dry_at - runway.height)}, a timer needs "
        f"{format_cby(reach.required)} CBY and finds {format_cby(reach.available)} CBY"
    )


def alert_notice(runway: Runway, names: Names, key: str, title: str = "") -> Notice:
    """Return the alert of a purse that runs dry."""
    payer = cells.without_copy(cells.address(runway.payer, names))
    content = (*payer, *cells.text(f" {alert_words(runway)}."))
    return Notice(key, title, content=content, tone=alert_tone(runway))


def purse_sections(runway: Runway, reading: Reading, *, title: str = "Runway", span: str = FULL) -> tuple[Section, ...]:
    """Return what is known of a purse: an alert if there is one, how far it reaches, and for whom."""
    found: list[Section] = []
    if alert_tone(runway):
        found.append(alert_notice(runway, reading.names, "purse-alert", "It runs dry"))
    if runway.timers or runway.actors:
        note = f"by the last {counted(max(0, runway.last_block - runway.first_block + 1), 'block')}"
        rows = tuple(Row(_reach_cells(each), each.name) for each in runway.reaches)
        found.append(Table("reaches", title, REACH_COLUMNS, rows, "", note=note, span=span))
    if len(runway.actors) > 1:
        rows = tuple(Row(_actor_cells(each, reading.names), each.actor.hex()) for each in runway.actors)
        found.append(Table("paid-actors", "Whose fires it pays for", ACTOR_COLUMNS, rows, "", span=span))
    return tuple(found)


def purse_facts(runway: Runway) -> tuple[Fact, ...]:
    """Return a purse in three facts."""
    more, stuck = "more than " if runway.has_more else "", ""
    if runway.stuck:
        stuck = f", {runway.stuck:,} of which cannot fire"
    return (
        Fact("Balance", cells.money(runway.balance)),
        Fact("Pays for", cells.text(f"{more}{counted(runway.timers, 'live timer')}{stuck}")),
        Fact("Fires left", cells.text(_left_words(runway))),
        Fact("Runs dry", _dry_words(runway)),
    )


def _left_words(runway: Runway) -> str:
    present, twice = (f"{reach.fires:,}" for reach in runway.reaches[:2])
    return f"{present} at the present basefees, {twice} at twice these"


def _dry_words(runway: Runway) -> Content:
    reach = present_reach(runway)
    if reach.dry_at is None:
        return cells.text("not as things stand", kind="good")
    words = f"in block {reach.dry_at}, {blocks_words(reach.dry_at - runway.height)}"
    return cells.text(words, kind=alert_tone(runway))


def _reach_cells(reach: Reach) -> tuple[Content, ...]:
    cost = reach.spent // reach.fires if reach.fires else None
    return (
        cells.text(NAMES[reach.name]),
        cells.number(reach.cycle_basefee),
        cells.number(reach.lane_basefee),
        cells.number(reach.cell_basefee),
        NOTHING if cost is None else cells.bare_money(cost),
        cells.number(reach.fires),
        cells.text("never") if reach.dry_at is None else cells.text(reach.dry_at, kind="number"),
    )


def _actor_cells(actor: PaidActor, names: Names) -> tuple[Content, ...]:
    return (
        cells.address(actor.actor, names),
        cells.number(actor.timers),
        cells.number(actor.fires),
        NOTHING if actor.interval is None else cells.text(f"{rounded(actor.interval)} blocks"),
        cells.number(actor.cycles_used // actor.fires if actor.fires else None),
        cells.number(actor.cells_used // actor.fires if actor.fires else None),
    )


def rounded(value: Fraction) -> str:
    """Return a positive number with one decimal, or none if it is whole.

    >>> rounded(Fraction(10)), rounded(Fraction(10, 3))
    ('10', '3.3')
    """
    tenths = round(value * 10)
    return f"{tenths // 10:,}" if value.denominator == 1 else f"{tenths // 10:,}.{tenths % 10}"
