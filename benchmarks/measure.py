"""Rounds, medians and ratios.

A machine that is shared, or that changes its clock, times the same code a factor of two apart minutes later. So the
cases of a comparison take turns: each runs once a round, and a ratio is taken within a round, where both sides met
the same machine. What is reported is the median over the rounds, of times and of ratios.
"""

import gc
from collections.abc import Callable
from hashlib import sha256
from statistics import median
from time import perf_counter

from msgspec import Struct, field

CALIBRATION_CALLS = 2_000
CALIBRATION_MESSAGE = bytes(64)


class Case(Struct, frozen=True, kw_only=True):
    """One thing to measure.

    Attributes:
        name: What it is, as the table says it.
        sample: Runs it once and returns seconds per operation; what it prepares it does not count.
        beside: Name of the case that its ratio is taken to; empty for none. It must stand earlier in the list.
        ratio_max: Budget: the greatest ratio to ``beside``.
        seconds_max: Budget: the greatest time of one operation.
        rate_min: Budget: the fewest operations a second.
    """

    name: str
    sample: Callable[[], float]
    beside: str = ""
    ratio_max: float | None = None
    seconds_max: float | None = None
    rate_min: float | None = None


class Row(Struct, frozen=True):
    """What a case measured.

    Attributes:
        case: The case.
        seconds: Seconds per operation, one of each round.
        ratios: Ratio to the case beside it, one of each round; empty if there is none.
    """

    case: Case
    seconds: list[float]
    ratios: list[float]

    @property
    def median(self) -> float:
        """Median seconds per operation."""
        return median(self.seconds)

    @property
    def ratio(self) -> float | None:
        """Median ratio to the case beside it."""
        return median(self.ratios) if self.ratios else None

    def budget(self) -> tuple[str, bool] | None:
        """Return the budget in words, and whether it is met; None if the case has none."""
        case = self.case
        if case.ratio_max is not None:
            return f"≤ {case.ratio_max:.3g} ×", self.ratio is not None and self.ratio <= case.ratio_max
        if case.seconds_max is not None:
            return f"≤ {shown_time(case.seconds_max)}", self.median <= case.seconds_max
        if case.rate_min is not None:
            return f"≥ {case.rate_min:,.0f}/s", 1 / self.median >= case.rate_min
        return None


class Figure(Struct, frozen=True, kw_only=True):
    """One number that is no time of an operation.

    Attributes:
        name: What it is, as the table says it.
        value: The number.
        unit: Of what; empty for a plain number.
        most: Budget: the greatest value; None for none.
        least: Budget: the least value; None for none.
    """

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def shown(self) -> str:
        """The number with its unit."""
        return f"{self.value:,.4g} {self.unit}".rstrip()

    def budget(self) -> tuple[str, bool] | None:
        """Return the budget in words, and whether it is met; None if the figure has none."""
        if self.least is not None:
            return f"≥ {self.least:,g} {self.unit}".rstrip(), self.value >= self.least
        return None if self.most is None else (f"≤ {self.most:,g} {self.unit}".rstrip(), self.value <= self.most)


class Report(Struct):
    """One table.

    Attributes:
        title: What it is about.
        operation: What one operation is.
        rows: What was measured, in the order of the cases.
        figures: Numbers that are no times of operations.
        notes: Sentences below the table.
        calibration: Seconds of one SHA-256 of 64 bytes, one of each round: how fast the machine was.
    """

    title: str
    operation: str
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    calibration: list[float] = field(default_factory=list)


def measure(report: Report, cases: list[Case], rounds: int, *, warm: bool = True) -> None:
    """Run every case once a round, in turn, and add the rows to the report.

    Args:
        report: Where the rows go.
        cases: In the order of the table.
        rounds: How many are counted.
        warm: Whether one round that is not counted comes first.
    """
    seconds: dict[str, list[float]] = {case.name: [] for case in cases}
    gc.collect()
    # What exists before a measurement is not garbage of it: a collection would walk it over and over.
    gc.freeze()
    for case in cases if warm else ():
        case.sample()
    for number in range(rounds):
        report.calibration.append(calibrate())
        # The order alternates, so that no case always follows the same one.
        for case in cases if number % 2 else reversed(cases):
            seconds[case.name].append(case.sample())
    gc.unfreeze()
    for case in cases:
        pairs = zip(seconds[case.name], seconds[case.beside], strict=True) if case.beside else ()
        report.rows.append(Row(case, seconds[case.name], [own / other for own, other in pairs]))


def timed(run: Callable[[], object], operations: int = 1) -> float:
    """Run once and return seconds per operation."""
    start = perf_counter()
    run()
    return (perf_counter() - start) / operations


def repeated(run: Callable[[], object], calls: int) -> Callable[[], float]:
    """Return a sample that calls a function many times."""

    def loop() -> None:
        for _ in range(calls):
            run()

    return lambda: timed(loop, calls)


def shown_time(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1_000 * scale else f"{seconds / scale:,.0f} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def percentile(values: list[float], hundredth: int) -> float:
    """Return the least value that so many of a hundred do not exceed."""
    return sorted(values)[-(-len(values) * hundredth // 100) - 1]


def calibrate() -> float:
    """Return the seconds of one SHA-256 of 64 bytes, now."""
    return repeated(lambda: sha256(CALIBRATION_MESSAGE).digest(), CALIBRATION_CALLS)()
