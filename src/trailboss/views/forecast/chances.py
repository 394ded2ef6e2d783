"""How often a timer would have run in the last blocks, and what of that its mechanism decides.

Decision: D-53
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.model.actors import Account
from trailboss.model.timers import DeferralReason
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.views.forecast.recent import RecentBlock


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
    # Label and field of a `Quote` for each part of the price per cycle after the cycle basefee.
    price_parts: tuple[tuple[str, str], ...] = ()
    has_cap: bool  # whether the default agent freezes a cap
    # The tip that scheduling stores for the one stated, or for none; refuses one that it cannot have.
    priority: Callable[[Rules, int | None], int]
    # W(actor) of an account, or of an actor that has not fired; parts of 10⁻⁹.
    weight: Callable[[ChainReader, Account | None], int]
    # Why a timer would not have run in a recent block; None if it would have.
    why_not: Callable[[RecentBlock, Offer], DeferralReason | None]
    # What the numbers do not say, by the timer's height, the tip stated and its actor's account.
    notes: Callable[[Rules, int, int | None, Account | None], Iterable[str]]


def refused(name: str, value: int, rule: str) -> Rejection:
    """Return the refusal of an argument of a quote."""
    shown = str(value) if abs(value) <= PRICE_MAX else f"an integer of {value.bit_length()} bits"
    return Rejection(RejectionReason.INVALID_INPUT, f"{name} is {shown}, it must be {rule}", field=name, value=shown)


def chance_within(verdicts: Sequence[DeferralReason | None], within: int) -> Chance:
    """Return how many of the blocks begin a run of that length in which a timer would have run; see `Chance`.

    Args:
        verdicts: `Quoting.why_not` of each recent block, oldest first.
        within: Length of the run, at least 1.
    """
    starts = range(max(len(verdicts) - within + 1, 0))
    return Chance(within, sum(None in verdicts[start : start + within] for start in starts), len(starts))
