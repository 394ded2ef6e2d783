"""The last blocks, with what a fire cost in each, and how often a timer would have run in them. Decision: D-53."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.markets import is_active
from trailboss.governance.rules import Rules
from trailboss.model.actors import Account
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.timers import DeferralReason
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import Rejection, RejectionReason

BLOCKS: Final = 100  # blocks to judge by, by default
BLOCKS_MAX: Final = 10_000  # most blocks to judge by; each is read and held at once


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
    Its multiplier is taken to be the present one. Complexity: O(count + receipts in them).

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


class Chance(Struct, frozen=True):
    """How often a timer like this would have run within so many blocks of its due height."""

    within: int  # blocks, the due one counted
    runs: int  # of the recent blocks taken as the due one, those from which on it would have run in time
    of: int  # how many there are with so many blocks to look at; 0 if the chain is too young to say

    @property
    def share(self) -> Fraction | None:
        """The chance, exactly; None without a block to judge by."""
        return Fraction(self.runs, self.of) if self.of else None


class Offer(Struct, frozen=True):
    """A timer that recent blocks are asked about. Prices are base units per cycle."""

    gas_limit: int  # cycles the fire may use
    max_fee: int  # cap of lane basefee and tip together; of no effect under FIFO
    priority: int  # cap of the tip; of no effect under FIFO
    weight: int  # W(actor) in parts of 10⁻⁹


class Quoting(Struct, frozen=True, kw_only=True):
    """What a quote asks mechanisms: the first three at the timer's height, the rest of now."""

    lane_basefee: Callable[[Rules], int]  # what a cycle costs on top of the cycle basefee
    # Cycles that a fire is charged for, by its gas limit; refuses one that could never run.
    charged_cycles: Callable[[Rules, int], int]
    price_parts: tuple[tuple[str, str], ...] = ()  # label and field of a `Quote` for each later part of the price
    has_cap: bool  # whether the default agent freezes a cap
    priority: Callable[[Rules, int | None], int]  # the tip that scheduling stores; refuses one that it cannot have
    weight: Callable[[ChainReader, Account | None], int]  # W(actor), also of one that has not fired; parts of 10⁻⁹
    why_not: Callable[[RecentBlock, Offer], DeferralReason | None]  # why it would not have run; None if it would
    # What the numbers do not say, by the timer's height, the tip stated and its actor's account.
    notes: Callable[[Rules, int, int | None, Account | None], Iterable[str]]


def refused(name: str, value: int, rule: str) -> Rejection:
    """Return the refusal of an argument of a quote."""
    shown = str(value) if abs(value) <= PRICE_MAX else f"an integer of {value.bit_length()} bits"
    return Rejection(RejectionReason.INVALID_INPUT, f"{name} is {shown}, it must be {rule}", field=name, value=shown)


def chance_within(verdicts: Sequence[DeferralReason | None], within: int) -> Chance:
    """Return in how many runs of that length a timer would have run, by `Quoting.why_not` of each block in order."""
    starts = range(max(len(verdicts) - within + 1, 0))
    return Chance(within, sum(None in verdicts[start : start + within] for start in starts), len(starts))
