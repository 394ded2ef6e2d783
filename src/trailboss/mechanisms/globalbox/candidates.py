"""Candidates of a block, scored and in order. Spec: CIP-5old §8. Decision: D-61, D-62."""

from collections.abc import Iterable
from hashlib import sha256
from heapq import merge
from typing import Final, NamedTuple

from trailboss.mechanisms.globalbox.fires import QueuePosition, position_of
from trailboss.model.globalbox import FRACTION_BITS, bid_of, standing_octets
from trailboss.model.terms import GlobalboxTerms, QueuedFire
from trailboss.model.timers import Timer, terms_of
from trailboss.primitives.units import Height

SHARD_OCTETS: Final = 8  # bytes of a target's digest that choose its shard


class Candidate(NamedTuple):
    """A timer that is due, or that a change has hit."""

    timer: Timer
    hit_height: int  # height from which its age counts
    matched_keys: tuple[bytes, ...] = ()  # keys whose modification hit it, ascending; empty for a height timer


class Scoring(NamedTuple):
    """What scores a block's candidates: height, weights and age clock of `GlobalboxMarket`. Decision: D-61."""

    height: int
    age_weight: int
    bid_weight: int
    clock: int

    def standing(self, hit_height: int, bid: int) -> int:
        """Return the score W_age × age + W_bid × bid less the age clock, which is how it compares at all later heights.

        All in units of 2⁻⁹⁶. Spec: CIP-5old §8.1. Decision: D-61.
        """
        return self.age_weight * max(0, self.height - hit_height) + self.bid_weight * bid - self.clock


class RankedFire(NamedTuple):
    """A candidate as a fire to insert; sorts by its position in the queue."""

    position: QueuePosition
    timer: Timer
    fire: QueuedFire


def order_candidates(candidates: Iterable[Candidate], scoring: Scoring, shards: int) -> list[RankedFire]:
    """Return the candidates of a block as fires, in the order in which they are inserted.

    They are sorted in shards by target and merged; the number of shards changes nothing.
    Spec: CIP-5old §8.1, CIP-5old §8.2, CIP-5old §15. Decision: D-61, D-62. Complexity: O(m log m) for m candidates.

    Raises:
        InvariantError: If a timer is none of Globalbox.
    """
    parts: list[list[Candidate]] = [[] for _ in range(shards)]
    for candidate in candidates:
        digest = sha256(candidate.timer.target).digest() if shards > 1 else b""
        parts[int.from_bytes(digest[:SHARD_OCTETS], "big") % shards].append(candidate)
    return list(merge(*(_order_shard(part, scoring) for part in parts)))


def _order_shard(candidates: list[Candidate], scoring: Scoring) -> list[RankedFire]:
    """Sort some targets' candidates; their cursors follow their order within each target. Decision: D-62."""
    rows = []
    for timer, hit_height, matched_keys in candidates:
        terms = terms_of(timer, GlobalboxTerms)
        bid = bid_of(terms.bid)
        standing, bucket = scoring.standing(hit_height, bid), (bid >> FRACTION_BITS).bit_length()
        rows.append((-standing, -bucket, hit_height, timer.timer_id, timer, terms, matched_keys))
    # Ids differ, so that what follows them is never compared.
    rows.sort()
    cursors: dict[bytes, int] = {}
    fires = []
    for standing, bucket, hit_height, _, timer, terms, matched_keys in rows:
        target = terms.target
        cursors[target] = cursors.get(target, -1) + 1
        fire = QueuedFire(
            standing=standing_octets(-standing),
            bucket=-bucket,
            cursor=cursors[target],
            hit_height=Height(hit_height),
            queued_at=Height(scoring.height),
            matched_keys=matched_keys,
            handler=timer.handler,
            payload=timer.payload,
            gas_limit=timer.gas_limit,
            bid=terms.bid,
        )
        fires.append(RankedFire(position_of(timer, fire), timer, fire))
    fires.sort()
    return fires
