"""What people see under FIFO: timers by height and insertion, without prices of their own."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.mechanisms import fifo
from trailboss.views.mechanism.base import (
    ACTOR,
    LIMITS,
    RANK,
    TIMER,
    Fact,
    MechanismViews,
    Value,
    limit_cells,
    outranked_words,
)
from trailboss.views.mechanism.lane_records import LaneStatus
from trailboss.views.records import DecisionRow


def _decision_cells(row: DecisionRow) -> tuple[Value, ...]:
    return row.rank, row.timer_id, row.actor, *limit_cells(row)


def _status_facts(lane: LaneStatus) -> Iterator[Fact]:
    begins = lane.activation_height
    words = f"begins at height {begins}" if begins else "no height is set at which it begins"
    yield Fact("timer_lane", "timer lane", words)


VIEWS: Final = MechanismViews(
    name=fifo.NAME,
    title="Lane",
    gives_way=True,
    decision_columns=(RANK, TIMER, replace(ACTOR, extra=False), *LIMITS),
    decision_cells=_decision_cells,
    outranked=partial(outranked_words, place="further back in the order"),
    status_field="lane",
    status_facts=_status_facts,
)
