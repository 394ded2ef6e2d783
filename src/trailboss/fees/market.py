"""The basefee of the next block, from the use of this one."""

from msgspec import Struct

from trailboss.primitives.units import Price


class BasefeeRule(Struct, frozen=True):
    """The rule of one metered resource."""

    target: int  # units a block should use
    alpha: int  # divisor of the relative distance from the target
    max_change_denominator: int  # the fee moves by at most one part in this many
    minimum: int  # floor, base units per unit
    maximum: int  # ceiling, base units per unit
    least_rise: int = 0  # least step up, base units per unit, so that a small fee is not stuck. Decision: D-15.


def next_basefee(basefee: Price, used: int, rule: BasefeeRule) -> Price:
    """Return the basefee of the next block.

    The fee rises when a block used more than the target and falls when it used less, in proportion to the
    distance, by at most one part in ``max_change_denominator``. The step rounds down in size.

    Spec: CIP-3 §2. Decision: D-22

    Examples:
        >>> rule = BasefeeRule(target=1_000, alpha=8, max_change_denominator=8, minimum=1, maximum=10**24)
        >>> next_basefee(800, 1_500, rule), next_basefee(800, 9_000, rule), next_basefee(800, 0, rule)
        (850, 900, 700)
    """
    step = basefee * abs(used - rule.target) // rule.target // rule.alpha
    step = min(step, basefee // rule.max_change_denominator)
    moved = basefee + max(step, rule.least_rise) if used > rule.target else basefee - step
    return Price(min(max(moved, rule.minimum), rule.maximum))
