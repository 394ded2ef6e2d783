"""Fees, in integers: what an execution costs, reserved before it runs and settled after; a market's next basefee."""

from enum import IntEnum
from typing import Final

import msgspec

from trailboss.primitives.units import Amount, Cells, Cycles, Price

_ONE: Final = 2**64
_EXPONENT_MAX: Final = 90  # exp(90) is above every ceiling


class Prices(msgspec.Struct, frozen=True, gc=False):
    """What one unit costs its payer, in base units."""

    cycle_basefee: Price  # burned per cycle
    cell_basefee: Price  # burned per cell
    cycle_tip: Price = Price(0)  # to the proposer per cycle
    cell_tip: Price = Price(0)  # to the proposer per cell
    lane_basefee: Price = Price(0)  # also burned per cycle, and counted apart. Decision: D-14.


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """Where a reservation went: ``burned + tip + refund`` is what was reserved."""

    burned: Amount  # basefee part of the actual cost, the lane's included; leaves the supply
    tip: Amount  # priority part of the actual cost; the proposer's
    refund: Amount  # the rest, back to the payer
    lane_burned: Amount = Amount(0)  # what of ``burned`` the lane basefee has burned

    @property
    def paid(self) -> Amount:
        """Base units the execution cost its payer in the end."""
        return Amount(self.burned + self.tip)


def max_cost(cycles: Cycles, cells: Cells, prices: Prices) -> Amount:
    """Return the base units to reserve for at most ``cycles`` and ``cells``. Spec: CIP-5 §6.3."""
    cycle_price = prices.cycle_basefee + prices.lane_basefee + prices.cycle_tip
    cell_price = prices.cell_basefee + prices.cell_tip
    return Amount(cycles * cycle_price + cells * cell_price)


def settle(reserved: Amount, cycles_used: Cycles, cells_used: Cells, prices: Prices) -> Settlement:
    """Split ``reserved``, base units taken at these prices, by what was used, which costs no more. Spec: CIP-5 §6.3."""
    lane_burned = cycles_used * prices.lane_basefee
    burned = lane_burned + cycles_used * prices.cycle_basefee + cells_used * prices.cell_basefee
    tip = cycles_used * prices.cycle_tip + cells_used * prices.cell_tip
    # Amount is int with a name: to call it four times takes as long as the sums.
    return Settlement(burned, tip, reserved - burned - tip, lane_burned)  # type: ignore[arg-type]


def offered_tip(max_fee: int, max_priority_fee: int, basefee: Price) -> Price:
    """Return the tip per unit that a fee cap leaves room for; the cap covers the basefee already. Spec: CIP-3 §2."""
    room = max_fee - basefee
    return Price(max_priority_fee if max_priority_fee < room else room)


def offered_cell_tip(fees: tuple[int, int] | None, basefee: Price) -> Price:
    """Return the tip per cell of a bid's cap and tip; None bids the basefee and no tip. Negative if it cannot run.

    Spec: CIP-1v3 §7.1. Decision: D-86
    """
    return Price(0) if fees is None else offered_tip(*fees, basefee)


class Course(IntEnum):
    """How a basefee moves with the distance of use from the target. Decision: D-106."""

    CLIPPED = 0  # in proportion to it, divided by alpha, by at most one part in the denominator. Spec: CIP-1v3 §5.
    PROPORTIONAL = 1  # in proportion to it, divided by the denominator, however large it is. Source: EIP-1559.
    EXPONENTIAL = 2  # by a factor whose logarithm is that proportion. Source: Leonardos et al. 2023.


class BasefeeRule(msgspec.Struct, frozen=True):
    """The rule of one metered resource."""

    target: int  # units a block should use
    alpha: int  # divisor of the relative distance from the target
    max_change_denominator: int  # the fee moves by at most one part in this many
    minimum: int  # floor, base units per unit
    maximum: int  # ceiling, base units per unit
    least_rise: int = 0  # least step up, base units per unit, so that a small fee is not stuck. Decision: D-15.
    course: Course = Course.CLIPPED


def next_basefee(basefee: Price, used: int, rule: BasefeeRule) -> Price:
    """Return the basefee of the next block.

    It rises when a block used more than the target and falls when it used less. With x the distance over the target and
    d ``max_change_denominator``, the clipped rule moves it by the lesser of x ÷ alpha and 1 ÷ d of itself, whatever the
    elasticity. The proportional rule, that of EIP-1559, moves it by x ÷ d: with an elasticity of e, a full block by
    (e − 1) ÷ d. The two are the same where alpha = d and e is 2. Steps of both round down in size. The exponential rule
    multiplies or divides it by exp(x ÷ d), to the nearest whole number, so that equal distances above and below
    the target cancel. Spec: CIP-3 §2. Decision: D-22, D-106

    >>> rule = BasefeeRule(target=1_000, alpha=8, max_change_denominator=8, minimum=1, maximum=10**24)
    >>> next_basefee(800, 1_500, rule), next_basefee(800, 9_000, rule), next_basefee(800, 0, rule)
    (850, 900, 700)
    >>> wide = msgspec.structs.replace(rule, course=Course.PROPORTIONAL)
    >>> next_basefee(800, 1_500, wide), next_basefee(800, 9_000, wide), next_basefee(800, 0, wide)
    (850, 1600, 700)
    >>> curved = msgspec.structs.replace(rule, course=Course.EXPONENTIAL)
    >>> next_basefee(800, 2_000, curved), next_basefee(907, 0, curved)
    (907, 800)
    """
    distance = abs(used - rule.target)
    if rule.course is Course.EXPONENTIAL:
        factor = _exponential(distance, rule.target * rule.max_change_denominator)
        above, below = (factor, _ONE) if used > rule.target else (_ONE, factor)
        step = abs((2 * basefee * above + below) // (2 * below) - basefee)
    elif rule.course is Course.PROPORTIONAL:
        step = basefee * distance // rule.target // rule.max_change_denominator
    else:
        step = basefee * distance // rule.target // rule.alpha
        step = min(step, basefee // rule.max_change_denominator)
    moved = basefee + max(step, rule.least_rise) if used > rule.target else basefee - step
    return Price(min(max(moved, rule.minimum), rule.maximum))


def _exponential(numerator: int, denominator: int) -> int:
    """Return exp(numerator ÷ denominator) in parts of 2⁻⁶⁴, at most that of `_EXPONENT_MAX`: its series, rounded down.

    Complexity: some 400 terms at most. Each is rounded down, so that the sum lacks fewer parts than it has terms.
    """
    numerator = min(numerator, _EXPONENT_MAX * denominator)
    total, term, number = 0, _ONE, 0
    while term:
        total += term
        number += 1
        term = term * numerator // (denominator * number)
    return total
