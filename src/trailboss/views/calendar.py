"""How many live timers wait where: by tier, and by stretches of heights."""

from itertools import pairwise

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.primitives.units import U64_MAX
from trailboss.timer_queue.placement import epoch_of, epoch_start


class TierCounts(Struct, frozen=True, kw_only=True):
    """Live timers by tier, after a block. Spec: CIP-1v3 §2."""

    due: int  # those whose height has come: they wait to run
    ring: int  # those of the present epoch, too
    epoch: int  # those of the next epochs, as many as have a bucket
    overflow: int  # those beyond


class CalendarBucket(Struct, frozen=True):
    """Live timers of a stretch of heights."""

    first: int  # its lowest height
    last: int  # its highest
    timers: int  # how many are due there


class CalendarCounts(Struct, frozen=True, kw_only=True):
    """When live timers are due."""

    height: int  # of the last block
    ring_until: int  # last height of the ring
    epochs_until: int  # last height of the epochs that have a bucket
    tiers: TierCounts  # by tier
    buckets: list[CalendarBucket]  # by stretches of heights, ascending, of one length but for the last


def tier_ends(chain: ChainReader) -> tuple[int, int]:
    """Return the last heights of the ring and of the epochs that have a bucket."""
    calendar = chain.params.calendar
    present = epoch_of(chain.height, calendar)
    ends = (epoch_start(epoch, calendar) - 1 for epoch in (present + 1, present + 1 + calendar.epoch_count))
    ring, epochs = (min(end, U64_MAX) for end in ends)
    return ring, epochs


def tier_counts(chain: ChainReader) -> TierCounts:
    """Return how many live timers there are in each tier. Complexity: O(log n)."""
    ring, epochs = tier_ends(chain)
    due, in_ring, in_epochs, overflow = chain.timer_counts((0, chain.height + 1, ring + 1, epochs + 1, U64_MAX + 1))
    return TierCounts(due=due, ring=in_ring, epoch=in_epochs, overflow=overflow)


def calendar_counts(chain: ChainReader, first: int, last: int, buckets: int) -> CalendarCounts:
    """Return what is due ``first`` to ``last``, by at most so many stretches. Complexity: O(buckets · log n)."""
    ring, epochs = tier_ends(chain)
    length = -(-(last - first + 1) // buckets)
    bounds = [*range(first, last + 1, length), last + 1]
    counts = chain.timer_counts(bounds)
    return CalendarCounts(
        height=chain.height,
        ring_until=ring,
        epochs_until=epochs,
        tiers=tier_counts(chain),
        buckets=[
            CalendarBucket(begin, end - 1, count) for (begin, end), count in zip(pairwise(bounds), counts, strict=True)
        ],
    )
