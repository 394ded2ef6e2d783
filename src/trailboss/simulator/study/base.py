"""The seam: what a study is.

A study compares *points*: alternatives, with their parameters. A point is run several times; each run is a
*replication*, whose number is its seed. The replications of one number draw the same random numbers at all points, so
that differences between points are those of the alternatives (common random numbers).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from trailboss.simulator.metrics.statistics import Interval

Value = str | int | float
Positive = Annotated[int, Meta(ge=1)]


class Point(Struct, frozen=True):
    """One alternative of a study."""

    name: str  # unique within the study
    facts: Mapping[str, Value]  # its parameters: columns of the results


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a table ``[full]`` or ``[quick]`` of a study's file states; a study has fields of its own beside these."""

    blocks: Positive  # of each replication
    warm_up: Annotated[int, Meta(ge=0)] = 0  # blocks before those, which no measure sees
    replications_min: Annotated[int, Meta(ge=2)] = 5  # of each point
    replications_max: Annotated[int, Meta(ge=2)] = 5
    # Measure to the half width of its 95 % confidence interval that a point goes on for, up to the most replications.
    targets: Mapping[str, Annotated[float, Meta(gt=0.0)]] = {}


class Results(Protocol):
    """The results of a study, as its page and figures read them."""

    points: Sequence[Point]
    settings: Any

    def interval(self, point: str, measure: str) -> Interval:
        """Return the interval of a measure at a point, by name."""

    def difference(self, point: str, other: str, measure: str) -> Interval:
        """Return the interval of the differences, replication by replication: point less other."""

    def values(self, point: str, measure: str) -> list[float]:
        """Return the measure of each replication of a point, in order."""


class Study(Protocol):
    """A module of `trailboss.simulator.studies`."""

    TITLE: str  # the question
    Settings: type[Settings]
    points: Callable[[Any], Sequence[Point]]  # settings to the alternatives, the base one first
    # Settings, point and seed to the measures of one replication; equal arguments give equal measures everywhere.
    replicate: Callable[[Any, Point, int], Mapping[str, float]]
    table: Callable[[Results], tuple[Sequence[str], Sequence[Sequence[str]]]]  # results to what the terminal shows
    figures: Callable[[Results], Mapping[str, Any]]  # results to matplotlib figures, by file name without an ending
    page: Callable[[Results], str]  # results to the Markdown of its page, below the title
