"""The page of validation, from the readings of all laws."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from trailboss.simulator.validation.block_use import block_use
from trailboss.simulator.validation.calendar_moves import migration
from trailboss.simulator.validation.eip_1559 import eip_1559
from trailboss.simulator.validation.fee_market import stability
from trailboss.simulator.validation.laws import Law, allowed, shown
from trailboss.simulator.validation.queues import bulk_service, conservation, jain, little

LAWS: Final[tuple[Callable[[], Law], ...]] = (
    stability,
    block_use,
    eip_1559,
    bulk_service,
    little,
    conservation,
    jain,
    migration,
)
"""All laws, in the order of the page."""
INTRO: Final = """<!-- Written by `python -m trailboss.simulator.validation --page FILE`; do not edit. -->

# What the simulator reproduces

A simulator is worth its answers if it gives what is known where something is known. Each table below compares what a
published result says with what Trailboss computes: the chain's own fee rule, its mechanisms alone
(`trailboss.simulator.alone.Alone`), its timer queue. A test holds every line to its bounds, and this page to what the
program computes. `python -m trailboss.simulator.validation` computes everything again
in less than a minute.

A bound "± t" is that of rounding, or half of the confidence interval that the line states.
"""


def page(laws: Iterable[Law]) -> str:
    """Return the page."""
    return "\n".join([INTRO, *("\n".join(_section(law)) for law in laws)])


def _section(law: Law) -> Iterator[str]:
    yield f"## {law.name}\n\n{law.source}.\n\n{law.known.strip()}\n"
    yield "| what | known | found |\n| --- | --- | --- |"
    for reading in law.readings:
        found = shown(reading.found) + ("" if reading.holds else " **differs**")
        yield f"| {reading.name} | {allowed(reading)} | {found} |"
    yield ""
