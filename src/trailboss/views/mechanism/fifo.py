"""What people see under FIFO: timers by height and insertion, without prices of their own."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.fees.settlement import Prices
from trailboss.mechanisms import fifo
from trailboss.model.timers import Timer
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
from trailboss.views.mechanism.outlook import Outlook, OutlookKind, Trial, expiry_outlook, money_for, next_block_for
from trailboss.views.records import DecisionRow


def _decision_cells(row: DecisionRow) -> tuple[Value, ...]:
    return row.rank, row.timer_id, row.actor, *limit_cells(row)


def _status_facts(lane: LaneStatus) -> Iterator[Fact]:
    begins = lane.activation_height
    words = f"begins at height {begins}" if begins else "no height is set at which it begins"
    yield Fact("timer_lane", "timer lane", words)


def _outlook(chain: ChainReader, timer: Timer, trial: Trial | None) -> Outlook:
    when = next_block_for(chain, timer)
    expires = expiry_outlook(timer, when)
    if expires is not None:
        return expires
    money = money_for(chain, timer, timer.gas_limit, Prices(*chain.rules().timer_basefees()))
    if money.is_short:
        return Outlook(OutlookKind.UNFUNDED, f"removed unfunded at height {when} as things stand: {money.words}")
    waits = f"; it waits because of {timer.deferred_for}" if timer.deferred_for else ""
    fires = "is due" if trial is None else "fires" if trial.failure is None else "fires and reverts"
    return Outlook(OutlookKind.RUNS, f"{fires} at height {when} as things stand: {money.words}{waits}")


VIEWS: Final = MechanismViews(
    name=fifo.NAME,
    title="Lane",
    gives_way=True,
    decision_columns=(RANK, TIMER, replace(ACTOR, extra=False), *LIMITS),
    decision_cells=_decision_cells,
    outranked=partial(outranked_words, place="further back in the order"),
    outlook=_outlook,
    status_field="lane",
    status_facts=_status_facts,
)
