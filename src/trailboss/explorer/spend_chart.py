"""What a payer spends: by day of chain time."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from trailboss.explorer.documents import HALF, Chart
from trailboss.explorer.page_context import Reading
from trailboss.index.records import DaySpend
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY, format_cby

DAYS_SHOWN: Final = 60
DAY_MS: Final = 86_400_000
DAY_MAX: Final = (date.max - date(1970, 1, 1)).days
NAMES: Final = {Origin.TIMER: "Fires", Origin.TRANSACTION: "Transactions", Origin.MESSAGE: "Messages"}


def spend_chart(reading: Reading, payer: Address, span: str = HALF) -> Iterator[Chart]:
    """Yield the chart of what a payer has spent in the last days, if it has spent anything."""
    today = reading.view.head.header.timestamp_ms // DAY_MS
    days = reading.node.index.spend(payer, reading.height, max(0, today - DAYS_SHOWN + 1), today)
    if not days:
        return
    first = max(days[0].day, today - DAYS_SHOWN + 1)
    by_day = {each.day: each for each in days}
    axis = list(range(first, today + 1))
    series = [
        (name, [_cby(_fees(by_day.get(day), origin)) for day in axis])
        for origin, name in NAMES.items()
        if any(_fees(day, origin) for day in days)
    ]
    total = sum(_fees(day, origin) for day in days for origin in NAMES)
    label = f"{format_cby(total)} CBY spent in {len(axis)} days of chain time."
    note = f"CBY by day of chain time, {format_cby(total)} in all"
    words = [day_words(day) for day in axis]
    yield Chart("spend", "Spend per day", label, words, series, bars=True, note=note, span=span)


def day_words(day: int) -> str:
    """Return a day as people write it; as a number if it lies in no year that the calendar has.

    >>> day_words(0), day_words(10**9)
    ('1970-01-01', 'day 1000000000')
    """
    return f"{date(1970, 1, 1) + timedelta(days=day)}" if day <= DAY_MAX else f"day {day}"


def _fees(day: DaySpend | None, origin: Origin) -> int:
    return 0 if day is None else sum(spend.fees for spend in day.spend if spend.origin is origin)


def _cby(amount: int) -> float:
    return round(amount / BASE_UNITS_PER_CBY, 6)
