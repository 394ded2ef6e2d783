"""The last blocks, with what a fire cost in each: what quotes and runways judge by."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.markets import is_active
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.primitives.errors import Rejection, RejectionReason

BLOCKS: Final = 100
"""Blocks to judge by, by default."""
BLOCKS_MAX: Final = 10_000
"""Most blocks to judge by; each is read and held at once."""


class RecentBlock(Struct, frozen=True):
    """One block and its timer prices, the timer lane's multiplier applied. Prices are base units."""

    block: Block  # the block
    cycle_basefee: int  # of a fire, per cycle
    lane_basefee: int | None  # of a fire, per cycle on top of it; None under FIFO, which charges none
    cell_basefee: int  # of a fire, per cell
    fires: Mapping[bytes, Sequence[ReceiptRecord]]  # receipts of its fires, by payer


def recent_blocks(chain: ChainReader, count: int) -> list[RecentBlock]:
    """Return the last blocks, oldest first; all but genesis if the chain has fewer.

    A block without a decision record had no timer due and a lane basefee at rest: it has that of the block after it.
    Its multiplier is taken to be the present one.

    Complexity: O(count + receipts in them).

    Raises:
        Rejection: ``INVALID_INPUT`` unless the count lies within ``1..=BLOCKS_MAX``.
    """
    if not 1 <= count <= BLOCKS_MAX:
        raise Rejection(RejectionReason.INVALID_INPUT, f"blocks is {count}, outside 1..={BLOCKS_MAX}", field="blocks")
    rules = chain.rules()
    multiplier, unit = rules.multipliers.timer, rules.params.fees.lane_multiplier_unit
    lane_basefee = rules.market.basefee
    found = []
    for block in reversed(chain.blocks[max(chain.height + 1 - count, 1) :]):
        record = block.decisions
        if record is None:
            header = block.header
            cycle_basefee = amount_of(header.cycle_basefee) * multiplier // unit
            cell_basefee = amount_of(header.cell_basefee) * multiplier // unit
        else:
            cycle_basefee, cell_basefee, lane_basefee = record.cycle_basefee, record.cell_basefee, record.lane_basefee
        is_lane = is_active(rules.params, block.height)
        found.append(RecentBlock(block, cycle_basefee, lane_basefee if is_lane else None, cell_basefee, _fires(block)))
    found.reverse()
    return found


def _fires(block: Block) -> dict[bytes, list[ReceiptRecord]]:
    found: dict[bytes, list[ReceiptRecord]] = {}
    for receipt in block.receipts:
        if receipt.origin is Origin.TIMER:
            found.setdefault(receipt.payer, []).append(receipt)
    return found


def of_present_mechanism(chain: ChainReader, recent: Sequence[RecentBlock]) -> list[RecentBlock]:
    """Return the recent blocks under the mechanism of now."""
    params, height = chain.rules().params, chain.height + 1
    is_lane = is_active(params, height)
    return [each for each in recent if is_active(params, each.block.height) == is_lane]
