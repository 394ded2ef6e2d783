"""What an execution costs: reserved before it runs, settled after. Pure arithmetic over integers."""

import msgspec


class Prices(msgspec.Struct, frozen=True, gc=False):
    """What one unit costs its payer, in base units.

    Attributes:
        cycle_basefee: Burned per cycle.
        cell_basefee: Burned per cell.
        cycle_tip: To the proposer per cycle.
        cell_tip: To the proposer per cell.
    """

    cycle_basefee: int
    cell_basefee: int
    cycle_tip: int = 0
    cell_tip: int = 0


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """Where a reservation went: ``burned + tip + refund`` is what was reserved.

    Attributes:
        burned: Basefee part of the actual cost; leaves the supply.
        tip: Priority part of the actual cost; the proposer's.
        refund: The rest, back to the payer.
    """

    burned: int
    tip: int
    refund: int

    @property
    def paid(self) -> int:
        """Base units the execution cost its payer in the end."""
        return self.burned + self.tip


def max_cost(cycles: int, cells: int, prices: Prices) -> int:
    """Return the base units to reserve for at most ``cycles`` and ``cells``.

    Spec: CIP-5 §6.3
    """
    return cycles * (prices.cycle_basefee + prices.cycle_tip) + cells * (prices.cell_basefee + prices.cell_tip)


def settle(reserved: int, cycles_used: int, cells_used: int, prices: Prices) -> Settlement:
    """Split a reservation by what was used.

    Spec: CIP-5 §6.3

    Args:
        reserved: Base units taken before the run, at least the cost of what was used.
        cycles_used: Cycles used, within the limit reserved for.
        cells_used: Cells used, within the limit reserved for.
        prices: The prices the reservation was made at.
    """
    burned = cycles_used * prices.cycle_basefee + cells_used * prices.cell_basefee
    tip = cycles_used * prices.cycle_tip + cells_used * prices.cell_tip
    return Settlement(burned, tip, reserved - burned - tip)


def offered_tip(max_fee: int, max_priority_fee: int, basefee: int) -> int:
    """Return the tip per unit that a fee cap leaves room for; the cap covers the basefee already.

    Spec: CIP-3 §2
    """
    return min(max_priority_fee, max_fee - basefee)
