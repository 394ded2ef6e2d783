"""Whether a payer can pay: its runway, what of it is an alert, and what it spends by day of chain time."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import HALF, Chart, Column, Content, Fact, Notice, Row, Section, Table, numbers
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import blocks_words
from trailboss.index.records import DaySpend
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY, format_cby
from trailboss.views.forecast.runway import PaidActor, Reach, Runway
from trailboss.views.text import counted

BASEFEES: Final = {"present": "present", "twice": "twice", "p95": "95th percentile"}
SOON_BLOCKS: Final = 100
LATER_BLOCKS: Final = 1_000
ALERTS_SHOWN: Final = 5
REACH_COLUMNS: Final = (
    Column("Basefees", bare=True),
    *numbers("Cycle", "Lane", "Cell", "CBY a fire", "Fires left", "Dry in block"),
)
ACTOR_COLUMNS: Final = (
    Column("Actor", bare=True),
    *numbers("Live timers", "Fires seen", "A fire every", "Cycles", "Cells"),
)
DAYS_SHOWN: Final = 60
DAY_MS: Final = 86_400_000
DAY_MAX: Final = (date.max - date(1970, 1, 1)).days
SPENDING: Final = {Origin.TIMER: "Fires", Origin.TRANSACTION: "Transactions", Origin.MESSAGE: "Messages"}


def alert_tone(runway: Runway) -> str:
    """Return how pressing it is at the present basefees: ``bad`` within 100 blocks, ``warn`` within 1,000."""
    dry_at = runway.reaches[0].dry_at
    if dry_at is None or dry_at - runway.height > LATER_BLOCKS:
        return ""
    return "bad" if dry_at - runway.height <= SOON_BLOCKS else "warn"


def _alert(runway: Runway, names: Names, key: str, title: str = "") -> Notice:
    reach = runway.reaches[0]
    dry_at = reach.dry_at or 0
    fires = "can pay for no further fire" if not reach.fires else f"can pay for {counted(reach.fires, 'more fire')}"
    words = (
        f" {fires}: in block {dry_at}, {blocks_words(dry_at - runway.height)}, a timer needs "
        f"{format_cby(reach.required)} CBY and finds {format_cby(reach.available)} CBY."
    )
    payer = cells.without_copy(cells.address(runway.payer, names))
    return Notice(key, title, (*payer, *cells.text(words)), tone=alert_tone(runway))


def payer_alerts(runways: Sequence[Runway], reading: Reading) -> tuple[Notice, ...]:
    """Return an alert for each payer that runs dry soon, the most pressing first."""
    pressing = [runway for runway in runways if alert_tone(runway)]
    pressing.sort(key=lambda runway: runway.reaches[0].dry_at or 0)
    return tuple(_alert(each, reading.names, f"alert-{each.payer.hex()}") for each in pressing[:ALERTS_SHOWN])


def runway_alert(runway: Runway, reading: Reading) -> tuple[Notice, ...]:
    """Return the alert of one payer, if it runs dry soon."""
    return (_alert(runway, reading.names, "purse-alert", "It runs dry"),) if alert_tone(runway) else ()


def runway_sections(runway: Runway, reading: Reading) -> Iterator[Section]:
    """Yield what is known of a payer: an alert if there is one, how far its balance reaches, and for which actors."""
    yield from runway_alert(runway, reading)
    if runway.timers or runway.actors:
        note = f"by the last {counted(max(0, runway.last_block - runway.first_block + 1), 'block')}"
        rows = tuple(Row(_reach_cells(each), each.name) for each in runway.reaches)
        yield Table("reaches", "Runway", REACH_COLUMNS, rows, note=note)
    if len(runway.actors) > 1:
        rows = tuple(Row(_actor_cells(each, reading.names), each.actor.hex()) for each in runway.actors)
        yield Table("paid-actors", "Whose fires it pays for", ACTOR_COLUMNS, rows)


def runway_facts(runway: Runway) -> tuple[Fact, ...]:
    """Return a payer's balance, and how far it reaches."""
    more = "more than " if runway.has_more else ""
    stuck = f", {runway.stuck:,} of which cannot fire" if runway.stuck else ""
    present, twice = (f"{reach.fires:,}" for reach in runway.reaches[:2])
    return (
        Fact("Balance", cells.money(runway.balance)),
        Fact("Pays for", cells.text(f"{more}{counted(runway.timers, 'live timer')}{stuck}")),
        Fact("Fires left", cells.text(f"{present} at the present basefees, {twice} at twice these")),
        Fact("Runs dry", _dry_words(runway)),
    )


def _dry_words(runway: Runway) -> Content:
    dry_at = runway.reaches[0].dry_at
    if dry_at is None:
        return cells.text("not at present basefees", kind="good")
    return cells.text(f"in block {dry_at}, {blocks_words(dry_at - runway.height)}", kind=alert_tone(runway))


def _reach_cells(reach: Reach) -> tuple[Content, ...]:
    return (
        cells.text(BASEFEES[reach.name]),
        cells.number(reach.cycle_basefee),
        cells.number(reach.lane_basefee),
        cells.number(reach.cell_basefee),
        cells.bare_money(reach.spent // reach.fires) if reach.fires else NOTHING,
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


def spend_chart(reading: Reading, payer: Address, span: str = HALF) -> Iterator[Chart]:
    """Yield the chart of what a payer has spent in the last days, if it has spent anything."""
    today = reading.view.head.header.timestamp_ms // DAY_MS
    days = reading.node.index.spend(payer, reading.height, max(0, today - DAYS_SHOWN + 1), today)
    if not days:
        return
    axis = range(max(days[0].day, today - DAYS_SHOWN + 1), today + 1)
    by_day = {each.day: each for each in days}
    series = [
        (name, [round(_fees(by_day.get(day), origin) / BASE_UNITS_PER_CBY, 6) for day in axis])
        for origin, name in SPENDING.items()
        if any(_fees(day, origin) for day in days)
    ]
    total = format_cby(sum(_fees(day, origin) for day in days for origin in SPENDING))
    label = f"{total} CBY spent in {len(axis)} days of chain time."
    note = f"CBY by day of chain time, {total} in all"
    yield Chart("spend", "Spend per day", label, list(map(day_words, axis)), series, bars=True, note=note, span=span)


def day_words(day: int) -> str:
    """Return a day as people write it; as a number if it lies in no year that the calendar has.

    >>> day_words(0), day_words(10**9)
    ('1970-01-01', 'day 1000000000')
    """
    return f"{date(1970, 1, 1) + timedelta(days=day)}" if day <= DAY_MAX else f"day {day}"


def _fees(day: DaySpend | None, origin: Origin) -> int:
    return 0 if day is None else sum(spend.fees for spend in day.spend if spend.origin is origin)
