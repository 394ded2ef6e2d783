"""Whether a payer can pay: its runway, what of it is an alert, and what it spends by day of chain time."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import HALF, Chart, Notice, PageTable, Row, Section, bare, numbers
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import blocks_words
from trailboss.forecast.runway import PaidActor, Reach, Runway
from trailboss.index.records import DaySpend
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY, format_cby
from trailboss.views.text import counted, rounded

BASEFEES: Final = {"present": "present", "twice": "twice", "p95": "95th percentile"}
SOON_BLOCKS: Final = 100
LATER_BLOCKS: Final = 1_000
ALERTS_SHOWN: Final = 5
REACH_COLUMNS: Final = bare("Basefees") + numbers("Cycle", "Lane", "Cell", "CBY a fire", "Fires left", "Dry in block")
ACTOR_COLUMNS: Final = bare("Actor") + numbers("Live timers", "Fires seen", "A fire every", "Cycles", "Cells")
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
    return Notice(key, title, cells.line(payer, words), tone=alert_tone(runway))


def payer_alerts(runways: Sequence[Runway], reading: Reading) -> tuple[Notice, ...]:
    """Return an alert for each payer that runs dry soon, the most pressing first."""
    pressing = [runway for runway in runways if alert_tone(runway)]
    pressing.sort(key=lambda runway: runway.reaches[0].dry_at or 0)
    return tuple(_alert(each, reading.names, f"alert-{each.payer.hex()}") for each in pressing[:ALERTS_SHOWN])


def runway_alert(runway: Runway, reading: Reading) -> tuple[Notice, ...]:
    """Return the alert of one payer, if it runs dry soon."""
    return (_alert(runway, reading.names, "balance-alert", "It runs dry"),) if alert_tone(runway) else ()


def runway_sections(runway: Runway, reading: Reading) -> Iterator[Section]:
    """Yield what is known of a payer: an alert if there is one, how far its balance reaches, and for which actors."""
    yield from runway_alert(runway, reading)
    if runway.timers or runway.actors:
        note = f"by the last {counted(max(0, runway.last_block - runway.first_block + 1), 'block')}"
        yield PageTable("reaches", "Runway", REACH_COLUMNS, tuple(map(_reach_row, runway.reaches)), note=note)
    if len(runway.actors) > 1:
        rows = tuple(_actor_row(each, reading.names) for each in runway.actors)
        yield PageTable("paid-actors", "Whose fires it pays for", ACTOR_COLUMNS, rows)


def runway_facts(runway: Runway) -> dict[str, Words]:
    """Return a payer's balance, and how far it reaches."""
    more = "more than " if runway.has_more else ""
    stuck = f", {runway.stuck:,} of which cannot fire" if runway.stuck else ""
    present, twice = (f"{reach.fires:,}" for reach in runway.reaches[:2])
    dry_at, dry = runway.reaches[0].dry_at, cells.text("not at present basefees", kind="good")
    if dry_at is not None:
        dry = cells.text(f"in block {dry_at}, {blocks_words(dry_at - runway.height)}", kind=alert_tone(runway))
    return {
        "Balance": cells.money(runway.balance),
        "Pays for": f"{more}{counted(runway.timers, 'live timer')}{stuck}",
        "Fires left": f"{present} at the present basefees, {twice} at twice these",
        "Runs dry": dry,
    }


def _reach_row(reach: Reach) -> Row:
    cost = cells.bare_money(reach.spent // reach.fires) if reach.fires else None
    prices = (reach.cycle_basefee, reach.lane_basefee, reach.cell_basefee)
    dry = "never" if reach.dry_at is None else cells.height(reach.dry_at)
    return cells.row(reach.name, BASEFEES[reach.name], *prices, cost, reach.fires, dry)


def _actor_row(actor: PaidActor, names: Names) -> Row:
    interval = None if actor.interval is None else f"{rounded(actor.interval)} blocks"
    used = (actor.cycles_used, actor.cells_used)
    means = (amount // actor.fires if actor.fires else None for amount in used)
    shown = cells.address(actor.actor, names)
    return cells.row(actor.actor.hex(), shown, actor.timers, actor.fires, interval, *means)


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
