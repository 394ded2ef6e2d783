"""Fees, in integers: what an execution costs, reserved before it runs and settled after; a market's next basefee."""

import msgspec

from trailboss.primitives.units import Amount, Cells, Cycles, Price


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
    return Settlement(Amount(burned), Amount(tip), Amount(reserved - burned - tip), Amount(lane_burned))


def offered_tip(max_fee: int, max_priority_fee: int, basefee: Price) -> Price:
    """Return the tip per unit that a fee cap leaves room for; the cap covers the basefee already. Spec: CIP-3 §2."""
    return Price(min(max_priority_fee, max_fee - basefee))


def offered_cell_tip(fees: tuple[int, int] | None, basefee: Price) -> Price:
    """Return the tip per cell of a bid's cap and tip; None bids the basefee and no tip. Negative if it cannot run.

    Spec: CIP-1v3 §7.1. Decision: D-86
    """
    return Price(0) if fees is None else offered_tip(*fees, basefee)


class BasefeeRule(msgspec.Struct, frozen=True):
    """The rule of one metered resource."""

    target: int  # units a block should use
    alpha: int  # divisor of the relative distance from the target
    max_change_denominator: int  # the fee moves by at most one part in this many
    minimum: int  # floor, base units per unit
    maximum: int  # ceiling, base units per unit
    least_rise: int = 0  # least step up, base units per unit, so that a small fee is not stuck. Decision: D-15.


def next_basefee(basefee: Price, used: int, rule: BasefeeRule) -> Price:
    """Return the basefee of the next block.

    It rises when a block used more than the target and falls when it used less, in proportion to the distance, by at
    most one part in ``max_change_denominator``. The step rounds down in size. Spec: CIP-3 §2. Decision: D-22

    >>> rule = BasefeeRule(target=1_000, alpha=8, max_change_denominator=8, minimum=1, maximum=10**24)
    >>> next_basefee(800, 1_500, rule), next_basefee(800, 9_000, rule), next_basefee(800, 0, rule)
    (850, 900, 700)
    """
    step = basefee * abs(used - rule.target) // rule.target // rule.alpha
    step = min(step, basefee // rule.max_change_denominator)
    moved = basefee + max(step, rule.least_rise) if used > rule.target else basefee - step
    return Price(min(max(moved, rule.minimum), rule.maximum))
