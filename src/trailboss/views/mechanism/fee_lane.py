"""What people see under the timer lane of CIP-1 v3: max fee and tip, W(actor), the lane basefee."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from trailboss.mechanisms import fee_lane
from trailboss.model.decisions import DecisionRecord
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.base import (
    ACTOR,
    FEE_COLUMNS,
    LIMITS,
    MAX_FEE,
    RANK,
    TIMER,
    TIP,
    Column,
    Fact,
    Kind,
    MechanismViews,
    TimerState,
    Value,
    fee_cells,
    limit_cells,
)
from trailboss.views.mechanism.lane_records import LaneStatus, lane_cap
from trailboss.views.records import AGENT_FEES, DecisionRow, DecisionView, TimerView
from trailboss.views.text import counted

DECISION_COLUMNS: Final = (
    RANK,
    TIMER,
    ACTOR,
    TIP,
    Column("weight", "W", Kind.NUMBER),
    Column("effective_priority", "tip × W", Kind.NUMBER),
    MAX_FEE,
    Column("fees", "fees", extra=True),
    *LIMITS,
)


def _decision_cells(row: DecisionRow) -> tuple[Value, ...]:
    priority = row.effective_priority
    return (
        row.rank,
        row.timer_id,
        row.actor,
        None if priority is None else row.tip,
        row.weight,
        None if priority is None else f"{Decimal(priority):,}",
        row.max_fee,
        row.fees,
        *limit_cells(row),
    )


def _decision_fields(record: DecisionRecord) -> dict[str, int]:
    return {
        "lane_basefee": record.lane_basefee,
        "next_lane_basefee": record.next_lane_basefee,
        "previous_tip": record.previous_tip,
        "median_fires": record.median_fires,
    }


def _decision_facts(view: DecisionView) -> Iterator[Fact]:
    burned = f"it burned {format_cby(view.lane_burned)} CBY"
    yield Fact(
        "lane_basefee", "lane basefee", f"{view.lane_basefee:,} a cycle, next {view.next_lane_basefee:,}; {burned}"
    )
    fires = counted(view.median_fires or 0, "fire")
    yield Fact("medians", "medians", f"tip {view.previous_tip:,} in the block before, {fires} in the window")


def _status_facts(lane: LaneStatus) -> Iterator[Fact]:
    if lane.basefee is None:
        return
    yield Fact("lane_basefee", "lane basefee", f"{lane.basefee:,} base units a cycle")
    yield Fact("median_tip", "median tip", f"{lane.previous_tip:,} a cycle in the last block")
    yield Fact("lane_burned", "burned by the lane", f"{format_cby(lane.burned)} CBY")


def _timer_facts(live: TimerView) -> Iterator[Fact]:
    if live.fees == AGENT_FEES and live.gas_bidding_agent is not None:
        yield Fact("agent", "agent", live.gas_bidding_agent, Kind.ADDRESS)


VIEWS: Final = MechanismViews(
    name=fee_lane.NAME,
    title="Lane",
    timer_columns=FEE_COLUMNS,
    timer_cells=fee_cells,
    timer_states={
        "over-cap": TimerState("over cap", lambda entry: entry.over_cap),
        "priced-out": TimerState("priced out", lambda entry: entry.priced_out),
    },
    timer_facts=_timer_facts,
    decision_columns=DECISION_COLUMNS,
    decision_cells=_decision_cells,
    decision_facts=_decision_facts,
    decision_fields=_decision_fields,
    ranks_by_priority=True,
    status_field="lane",
    status_facts=_status_facts,
    cycles_per_fire=lane_cap,
)
