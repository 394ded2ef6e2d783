"""When a timer of the auction was asked for a bid, and what it bid, from the decision records.

Spec: CIP-1v1 §3
Decision: D-53, D-57
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from trailboss.execution.agents import BUDGET_SPENT
from trailboss.model.blocks import Block
from trailboss.model.decisions import AgentBid, DecisionRecord
from trailboss.model.events import AGENT_FALLBACK
from trailboss.views.records import event_view
from trailboss.views.text import heights_words

BIDS_MAX: Final = 4
"""Different bids in a row that are named one by one; of more only the last ones."""


class AskedBid(Struct, frozen=True, kw_only=True):
    """What stood for a timer's bid after its agent was asked.

    Attributes:
        height: Block in which it was asked.
        max_fee: Cap of cycle basefee and tip together, base units per cycle.
        max_priority_fee: Cap of the tip, base units per cycle.
        is_default: Whether the agent gave none, and the default bid stands for it.
        max_fee_per_cell: Cap of cell basefee and tip together, base units; None for the basefee. Decision: D-86.
        max_priority_fee_per_cell: Cap of the tip per cell, base units; None likewise.
    """

    height: int
    max_fee: int
    max_priority_fee: int
    is_default: bool
    max_fee_per_cell: int | None = None
    max_priority_fee_per_cell: int | None = None


def bid_in(block: Block, timer_id: bytes) -> AskedBid | None:
    """Return what a timer's agent bid in a block, or what stands for that; None if it was not asked.

    A record names the first 256 bids of a block only.
    """
    record = block.decisions
    if record is None:
        return None
    bid = recorded_bid(record, timer_id)
    if bid is not None:
        cell_cap, cell_tip = bid.cell_fees or (None, None)
        return AskedBid(
            height=block.height,
            max_fee=bid.max_fee,
            max_priority_fee=bid.max_priority_fee,
            is_default=False,
            max_fee_per_cell=cell_cap,
            max_priority_fee_per_cell=cell_tip,
        )
    fallbacks = (event for event in block.events if event.timer_id == timer_id and event.name == AGENT_FALLBACK)
    if all(event_view(event, block.height).data["reason"] == BUDGET_SPENT for event in fallbacks):
        return None
    return AskedBid(height=block.height, max_fee=2 * record.cycle_basefee, max_priority_fee=0, is_default=True)


def recorded_bid(record: DecisionRecord, timer_id: bytes) -> AgentBid | None:
    """Return what a timer's agent bid according to a record, which has the first 256 bids; None if it has none."""
    return next((bid for bid in record.agent_bids if bid.timer_id == timer_id), None)


def bids_words(bids: Sequence[AskedBid]) -> str:
    """Return when a timer was asked and what it bid, in words; empty if it never was."""
    runs = [list(group) for _, group in groupby(bids, key=_offer)]
    clauses = list(map(_run_words, runs[-BIDS_MAX:]))
    earlier = f"{len(runs) - BIDS_MAX:,} other bids before that, then " if len(runs) > BIDS_MAX else ""
    times = "once" if len(bids) == 1 else f"{len(bids):,} times"
    return f"{times}: {earlier}{', '.join(clauses)}" if bids else ""


def _offer(bid: AskedBid) -> tuple[int | None, ...]:
    return bid.max_fee, bid.max_priority_fee, bid.is_default, bid.max_fee_per_cell, bid.max_priority_fee_per_cell


def _run_words(run: Iterable[AskedBid]) -> str:
    bids = list(run)
    whose = " by default" if bids[0].is_default else ""
    where, cells = heights_words([bid.height for bid in bids]), ""
    if bids[0].max_fee_per_cell is not None:
        cells = f" and up to {bids[0].max_fee_per_cell:,} a cell with a tip of {bids[0].max_priority_fee_per_cell:,}"
    return f"up to {bids[0].max_fee:,} a cycle with a tip of {bids[0].max_priority_fee:,}{cells}{whose} at {where}"
