"""The slices of a block's budget: what is kept for each actor during the first walk over the timers.

Spec: CIP-1v1 §3
Decision: D-68
"""

import msgspec

from trailboss.mechanisms.auction.index import AuctionIndex, WeighedActor
from trailboss.primitives.units import Cycles


class Slice(msgspec.Struct, gc=False):
    """What is left of an actor's slice."""

    cycles: int
    smallest_gas: Cycles  # smallest gas limit of its joined timers, before the walk
    to_come: int  # ranked timers of the actor that the walk has not come to


def cut_slices(index: AuctionIndex, budget: int, basefee: int) -> dict[WeighedActor, Slice]:
    """Cut a budget among the actors that have joined timers, by their weights.

    Only slices from which a timer could run are returned: without any, the first walk keeps all timers for the second.

    Complexity: O(log n) for each actor whose slice holds the smallest gas limit that waits.
    """
    slices: dict[WeighedActor, Slice] = {}
    for weight, address in reversed(index.by_weight):
        cycles = budget * weight // max(1, index.total_weight)
        if cycles < index.gas_limits.smallest:
            break
        owner: WeighedActor = index.actors[address]
        to_come = owner.count_ranked(basefee)
        if to_come and cycles >= owner.gas_limits[0]:
            slices[owner] = Slice(cycles, owner.gas_limits[0], to_come)
    return slices


def skip_timer(slices: dict[WeighedActor, Slice], owner: WeighedActor) -> None:
    """Skip a timer of an actor, which takes nothing from its slice; drop the slice after the actor's last timer."""
    own = slices.get(owner)
    if own is not None:
        own.to_come -= 1
        if not own.to_come:
            del slices[owner]
