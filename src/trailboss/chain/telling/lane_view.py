"""A block's decision record as people look at it: who was examined, in which order, and why the others were not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from trailboss.mechanisms.lane import NAME as LANE
from trailboss.model.decisions import DecisionRecord, ExaminedTimer, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32

WEIGHT_DECIMALS: Final = 9
"""W and what it is multiplied with are told in parts of 10⁻⁹. Decision: D-11."""

REASONS: Final = {
    DeferralReason.LANE_FULL: "did not fit the rest of the lane",
    DeferralReason.GC_EXHAUSTED: "clean-up budget spent",
    DeferralReason.UNFUNDED: "payer could not pay",
    DeferralReason.OVER_CAP: "over the cap of one fire",
    DeferralReason.PRICED_OUT: "priced out",
    DeferralReason.OUTRANKED: "outranked",
    DeferralReason.NOT_JOINED: "yet to join",
}
ENDINGS: Final = {
    "fire": "fired",
    "expire": "expired",
    "unfund": "unfunded",
    "cancelled": "cancelled by a fire before it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """One due timer in one block. Prices are base units per cycle.

    Attributes:
        rank: Its place in the order, from 1; None if it was decided before any ranking.
        timer_id: Its id.
        actor: Its owner.
        tip: What it offers the proposer.
        weight: W(actor), exactly, as a decimal number such as ``1.7``; None under a mechanism without one.
        effective_priority: What the lane orders by, exactly, as a decimal number; None under a mechanism without one.
        max_fee: Cap of lane basefee and tip together; None under a mechanism without one.
        fees: Where its fees come from.
        gas_limit: Cycles the fire may use.
        cycles_used: Cycles the fire used; None unless it fired.
        outcome: ``fired``, ``expired``, ``unfunded``, ``cancelled …``, or ``waits``.
        reason: Why it waits, in words; empty unless it does.
    """

    rank: int | None
    timer_id: Hash32
    actor: Address
    tip: int
    weight: str | None
    effective_priority: str | None
    max_fee: int | None
    fees: str
    gas_limit: int
    cycles_used: int | None
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneView:
    """How a block chose among its due timers. Prices are base units per cycle or cell, money is base units.

    Attributes:
        height: The block's.
        mechanism: Which mechanism chose.
        cycle_basefee: Cycle basefee of a fire.
        cell_basefee: Cell basefee of a fire.
        lane_basefee: Lane basefee of a fire; None before the activation.
        next_lane_basefee: Lane basefee of the next block; None before the activation.
        previous_tip: Median tip of the block before; None before the activation.
        median_fires: Network median of fires within the fairness window; None before the activation.
        lane_cycles_max: Cycles that the lane offers.
        lane_cycles_used: Cycles that fires used.
        max_cycles_per_fire: Cap of one fire.
        lane_burned: Burned by the lane basefee.
        agent_cycles: Cycles that gas bidding agents used.
        cut_off: Rank of the last timer that fired; None if none did.
        examined: How many were decided.
        rows: Those decided, in that order; a record names the first of them only, if they are many.
        runners_up: The next in rank; nothing was decided about them.
        not_examined: How many were not, by reason, those without any left out.
        sentences: The same in words, and why none of them could have run before those that were.
    """

    height: int
    mechanism: str
    cycle_basefee: int
    cell_basefee: int
    lane_basefee: int | None
    next_lane_basefee: int | None
    previous_tip: int | None
    median_fires: int | None
    lane_cycles_max: int
    lane_cycles_used: int
    max_cycles_per_fire: int
    lane_burned: int
    agent_cycles: int
    cut_off: int | None
    examined: int
    rows: tuple[LaneRow, ...]
    runners_up: tuple[LaneRow, ...]
    not_examined: dict[str, int]
    sentences: tuple[str, ...]


def lane_view(record: DecisionRecord, height: int) -> LaneView:
    """Return a decision record as people see it.

    Args:
        record: Of `Chain.lane`.
        height: Of its block.
    """
    has_market = record.mechanism == LANE
    decided, runners_up = split_record(record)
    counts = {
        DeferralReason.OUTRANKED.value: record.outranked,
        DeferralReason.PRICED_OUT.value: record.priced_out,
        DeferralReason.OVER_CAP.value: record.over_cap,
        DeferralReason.NOT_JOINED.value: record.not_joined,
    }
    return LaneView(
        height=height,
        mechanism=record.mechanism,
        cycle_basefee=record.cycle_basefee,
        cell_basefee=record.cell_basefee,
        lane_basefee=record.lane_basefee if has_market else None,
        next_lane_basefee=record.next_lane_basefee if has_market else None,
        previous_tip=record.previous_tip if has_market else None,
        median_fires=record.median_fires if has_market else None,
        lane_cycles_max=record.lane_cycles_max,
        lane_cycles_used=record.lane_cycles_used,
        max_cycles_per_fire=record.max_cycles_per_fire,
        lane_burned=record.lane_burned,
        agent_cycles=record.agent_cycles,
        cut_off=record.cut_off or None,
        examined=record.examined_count,
        rows=tuple(_row(item, decided=True) for item in decided),
        runners_up=tuple(_row(item, decided=False) for item in runners_up),
        not_examined={reason: count for reason, count in counts.items() if count},
        sentences=tuple(_sentences(record)),
    )


def split_record(record: DecisionRecord) -> tuple[tuple[ExaminedTimer, ...], tuple[ExaminedTimer, ...]]:
    """Return the timers that a record names: those that were decided, and the runners-up."""
    return record.examined[: record.examined_count], record.examined[record.examined_count :]


def decimal_text(parts: int, least: int = 0) -> str:
    """Return a number given in parts of 10⁻⁹ as a decimal number, exactly, with at least so many decimals.

    >>> decimal_text(1_700_000_000), decimal_text(2_000_000_000), decimal_text(2_000_000_000, 1), decimal_text(1)
    ('1.7', '2', '2.0', '0.000000001')
    """
    whole, part = divmod(parts, 10**WEIGHT_DECIMALS)
    decimals = f"{part:0{WEIGHT_DECIMALS}}".rstrip("0").ljust(least, "0")
    return f"{whole}.{decimals}" if decimals else str(whole)


def _row(item: ExaminedTimer, *, decided: bool) -> LaneRow:
    is_ranked = item.rank > 0 and item.weight > 0
    waits = not decided or item.outcome not in ENDINGS
    reason = item.reason if decided else DeferralReason.OUTRANKED
    return LaneRow(
        rank=item.rank or None,
        timer_id=Hash32(item.timer_id),
        actor=Address(item.actor),
        tip=item.tip,
        weight=decimal_text(item.weight, 1) if is_ranked else None,
        effective_priority=decimal_text(item.effective_priority) if is_ranked else None,
        max_fee=item.max_fee if is_ranked else None,
        fees=item.fee_source.value,
        gas_limit=item.gas_limit,
        cycles_used=item.cycles_used if decided and item.outcome == "fire" else None,
        outcome="waits" if waits else ENDINGS[item.outcome],
        reason=REASONS[DeferralReason(reason)] if waits else "",
    )


def _sentences(record: DecisionRecord) -> Iterator[str]:
    """Yield why the timers that were not examined could not have run before those that were."""
    if record.outranked:
        yield f"{record.outranked:,} {_place_words(record)}"
    if record.priced_out:
        whose = "its max_fee is" if record.priced_out == 1 else "their max_fee is"
        yield f"{record.priced_out:,} priced out: {whose} below the lane basefee of {record.lane_basefee:,}"
    if record.over_cap:
        yield f"{record.over_cap:,} over the cap of {record.max_cycles_per_fire:,} cycles a fire"
    if record.not_joined:
        verb = "has" if record.not_joined == 1 else "have"
        yield f"{record.not_joined:,} {verb} yet to join"


def _place_words(record: DecisionRecord) -> str:
    word = "outranked" if record.mechanism == LANE else "further back in the order"
    if record.stopped is Stop.LANE_FULL:
        left = record.lane_cycles_max - record.lane_cycles_used
        waited = f"and the smallest gas limit that waited was {record.smallest_gas:,}"
        return f"{word}: the lane had {left:,} cycles left {waited}"
    if record.stopped is Stop.PASSED_OVER_MAX:
        return f"{word}: the block had passed over as many as it may that did not fit what was left of the lane"
    if record.stopped is Stop.EXAMINED_MAX:
        return f"{word}: one block examines at most {record.examined_count:,} due timers"
    return word
