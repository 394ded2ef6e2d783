"""Counting live timers by tier and by stretches of heights gives what walking over them gives."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.helpers import FUNDS, PUPPET, perform, step
from trailboss.primitives.units import U64_MAX
from trailboss.testing import LocalChain
from trailboss.views.calendar import calendar_counts, tier_counts, tier_ends


@pytest.fixture(scope="module")
def chain() -> LocalChain:
    """A chain with timers in every tier, and some that wait for the lane."""
    chain = LocalChain(
        preset="minimal", params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}
    )
    puppet = chain.deploy(PUPPET, sender=chain.accounts[0], value=FUNDS)
    now = chain.height
    ahead = (2, 2, 2, 4, 6, 7, 9, 11, 20, 21, 40, 900, 10**6)
    perform(puppet, *(step("schedule_timer_ex", now + each, b"", gas_limit=60_000) for each in ahead))
    chain.mine(3)
    return chain


def test_tiers_hold_every_live_timer_once(chain: LocalChain) -> None:
    """Each is counted in the tier that the queue has for it."""
    tiers = Counter(timer.tier for timer in chain.timers())
    counts = tier_counts(chain.chain)
    assert {name: getattr(counts, name) for name in ("due", "ring", "epoch", "overflow")} == {
        name: tiers[name] for name in ("due", "ring", "epoch", "overflow")
    }
    assert min(tiers["due"], tiers["ring"], tiers["epoch"], tiers["overflow"]) > 0


@settings(max_examples=60)
@given(first=st.integers(0, 60), length=st.integers(0, 2_000), buckets=st.integers(1, 50))
def test_buckets_count_the_timers_of_their_heights(chain: LocalChain, first: int, length: int, buckets: int) -> None:
    """Stretches follow one another from the first height to the last, at most as many as are wanted."""
    found = calendar_counts(chain.chain, first, first + length, buckets)
    assert found.buckets[0].first == first
    assert found.buckets[-1].last == first + length
    assert len(found.buckets) <= buckets
    for before, after in zip(found.buckets, found.buckets[1:], strict=False):
        assert after.first == before.last + 1
    heights = [timer.height for timer in chain.timers()]
    for bucket in found.buckets:
        assert bucket.timers == sum(bucket.first <= height <= bucket.last for height in heights)


def test_calendar_reaches_to_the_last_height_there_is(chain: LocalChain) -> None:
    """Nothing lies beyond, and one bucket may be all of it."""
    [bucket] = calendar_counts(chain.chain, 0, U64_MAX, 1).buckets
    assert (bucket.first, bucket.last, bucket.timers) == (0, U64_MAX, len(chain.timers()))
    ring, epochs = tier_ends(chain.chain)
    assert chain.height <= ring < epochs < U64_MAX
