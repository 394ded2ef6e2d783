"""What comes next for a live timer, and whether its payer can pay for that."""

from enum import StrEnum

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.fees.settlement import Prices, max_cost
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cycles, format_cby


class OutlookKind(StrEnum):
    """What comes next for a timer; a page colours by it."""

    RUNS = "runs"
    REVERTS = "reverts"
    WAITS = "waits"
    EXPIRES = "expires"
    UNFUNDED = "unfunded"


class Outlook(Struct, frozen=True):
    """What comes next for a timer.

    Attributes:
        kind: In one word.
        text: In a sentence.
    """

    kind: OutlookKind
    text: str


class Trial(Struct, frozen=True):
    """What the handler of a live timer came to when it was tried on the present state.

    Attributes:
        failure: What its fire would revert with; None if it would end well.
    """

    failure: ErrorObject | None


class Money(Struct, frozen=True):
    """What a fire costs at most and what its payer holds.

    Attributes:
        is_short: Whether the payer holds too little.
        words: Both amounts, in words.
    """

    is_short: bool
    words: str


def money_for(chain: ChainReader, timer: Timer, gas_limit: int, prices: Prices, and_what: str = "") -> Money:
    """Return what a fire with a gas limit costs at most at some prices, and what its payer holds."""
    cost = max_cost(Cycles(gas_limit), chain.rules().timer.max_cells_per_fire, prices)
    balance = chain.balance(timer.fee_payer)
    holds = f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    return Money(balance < cost, f"a fire costs up to {format_cby(cost)} CBY{and_what}, {holds}")


def next_block_for(chain: ChainReader, timer: Timer) -> int:
    """Return the first block in which a timer may fire by its height."""
    return max(timer.height, chain.height + 1)


def expiry_outlook(timer: Timer, when: int) -> Outlook | None:
    """Return that a timer expires before the first block in which it may fire, if it does."""
    if timer.expires_at >= when:
        return None
    text = f"expires unfired at height {when}: it may fire up to {timer.expires_at} only"
    return Outlook(OutlookKind.EXPIRES, text)
