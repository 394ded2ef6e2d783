"""EIP-1559 itself, from the chain's rule with other parameters."""

from typing import Final

from trailboss.fees import BasefeeRule, next_basefee
from trailboss.primitives.units import Price
from trailboss.simulator.streams import stream
from trailboss.simulator.validation.laws import Law, equal

TARGET: Final = 10_000_000  # gas
PARENT: Final = 1_000_000_000  # base fee of the parent block
VECTORS: Final = {
    20_000_000: (1_125_000_000, 1_125_000_000),
    11_000_000: (1_012_500_000, 1_100_000_000),
    10_000_000: (1_000_000_000, 1_000_000_000),
    9_000_000: (987_500_000, 900_000_000),
    0: (875_000_000, 875_000_000),
}
"""Gas that the parent used to the base fee of the next block: by EIP-1559, and by the lane's rule as written."""
DRAWN: Final = 10_000
BITS: Final = 60  # of the greatest numbers drawn
ALPHA: Final = 8
DENOMINATOR: Final = 8


def rule(target: int, alpha: int) -> BasefeeRule:
    """Return the chain's rule: that of EIP-1559 with an alpha of 8, the lane's as written with 1."""
    return BasefeeRule(target, alpha, DENOMINATOR, 0, 10**24, least_rise=1)


def by_the_proposal(basefee: int, used: int, target: int) -> int:
    """Return the next base fee as EIP-1559 words it: the delta rounds down, and is 1 at least when it rises."""
    delta = basefee * abs(used - target) // target // DENOMINATOR
    return basefee + max(delta, 1) if used > target else basefee - delta


def differing() -> int:
    """Return how many of `DRAWN` random blocks have another base fee by the proposal than by the chain's rule."""
    draws, found = stream(1, "EIP-1559"), 0
    for _ in range(DRAWN):
        target = int(draws.integers(1, 1 << int(draws.integers(1, BITS))))
        basefee, used = (
            int(draws.integers(0, 1 << int(draws.integers(1, BITS)))),
            int(draws.integers(0, 2 * target + 1)),
        )
        found += next_basefee(Price(basefee), used, rule(target, ALPHA)) != by_the_proposal(basefee, used, target)
    return found


def eip_1559() -> Law:
    """Return the known vectors, and where the lane as written differs."""
    found = {
        (used, alpha): next_basefee(Price(PARENT), used, rule(TARGET, alpha))
        for used in VECTORS
        for alpha in (ALPHA, 1)
    }
    vectors = [
        equal(f"{name}, {used:,} used", expected[at], found[used, alpha])
        for at, (name, alpha) in enumerate((("EIP-1559", ALPHA), ("the lane as written", 1)))
        for used, expected in VECTORS.items()
    ]
    return Law(
        name="EIP-1559 from the same code",
        source="[EIP-1559](https://eips.ethereum.org/EIPS/eip-1559), the specification's integer rule",
        known=EIP_KNOWN,
        readings=(*vectors, equal(f"differences over {DRAWN:,} random blocks", 0, differing())),
    )


EIP_KNOWN: Final = f"""
The parent has a base fee of {PARENT:,} and a target of {TARGET:,}. The chain's rule with `alpha` = {ALPHA} and
`max_change_denominator` = {DENOMINATOR} is that of EIP-1559, to the unit. The lane as written, `alpha` = 1, agrees
where a block is full, empty or at the target; between them it moves the price {ALPHA} times as far, up to the clamp.
"""
