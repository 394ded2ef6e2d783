"""What the state knows of the auction's actors: lazy counts, epochs that come and go, weights brought up to date.

The minimal preset has epochs of four blocks: blocks 4 to 7 are epoch 1.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.execution.auction.standings import (
    Standings,
    check_standings,
    counted,
    find_actor,
    read_epoch,
    weight_after,
)
from trailboss.execution.session import Fired
from trailboss.model.auction import SCORE_UNIT, AuctionActor, AuctionEpoch, AuctionState
from trailboss.model.configs import amount_of
from trailboss.params import load_params
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

ALICE, BOB = (Address(bytes([number]) * 20) for number in (1, 2))
HALF = SCORE_UNIT // 2
PARAMS = load_params("minimal")


class World:
    """A state that holds nothing but the auction's records."""

    def __init__(self) -> None:
        self.overlay = Overlay(MemoryStore())
        self.rescales: tuple[int, ...] = ()

    def open(self, height: int) -> Standings:
        rules = SimpleNamespace(params=PARAMS)
        session: Any = SimpleNamespace(overlay=self.overlay, context=SimpleNamespace(height=height, rules=rules))
        return Standings(session, AuctionState(self.rescales))

    def block(
        self,
        height: int,
        joined: Mapping[bytes, int] | None = None,
        fires: Mapping[bytes, list[tuple[int, int]]] | None = None,
        left: Mapping[bytes, int] | None = None,
        *,
        freshen: tuple[bytes, ...] = (),
    ) -> None:
        """Go through a block: who joins is freshened, and whom the mechanism names; fires leave, and others may."""
        joined, fires, left = joined or {}, fires or {}, left or {}
        standings = self.open(height)
        for actor in (*joined, *freshen):
            standings.refresh_weight(actor)
        for actor in sorted(joined.keys() | fires.keys() | left.keys()):
            fired = [Fired(actor, *fire) for fire in fires.get(actor, [])]
            gone = len(fired) + left.get(actor, 0)
            standings.count(actor, joined=joined.get(actor, 0), fires=fired, left=gone)

    def actor(self, actor: bytes) -> AuctionActor:
        record = find_actor(self.overlay.read, actor)
        assert record is not None
        return record

    def epoch(self, number: int) -> AuctionEpoch:
        return read_epoch(self.overlay.read, number)


@pytest.mark.spec("A-08")
def test_deferrals_are_counted_when_the_number_of_waiting_timers_changes() -> None:
    """Two join in block 4 and one in block 6, one leaves in block 7: 2 + 2 + 3 after blocks 4 to 6, then 2 in 7."""
    world = World()
    world.block(4, {ALICE: 2})
    assert (world.actor(ALICE).waiting, world.actor(ALICE).deferrals, world.actor(ALICE).counted_at) == (2, 0, 3)
    world.block(6, {ALICE: 1})
    assert (world.actor(ALICE).waiting, world.actor(ALICE).deferrals, world.actor(ALICE).counted_at) == (3, 4, 5)
    world.block(7, left={ALICE: 1})
    assert (world.actor(ALICE).waiting, world.actor(ALICE).deferrals, world.actor(ALICE).counted_at) == (2, 7, 6)
    assert counted(world.actor(ALICE), 7).deferrals == 9


@pytest.mark.spec("A-08")
def test_timer_that_joins_and_ends_in_one_block_was_not_deferred() -> None:
    """Neither a fire at once nor a cancellation at once is a deferral."""
    world = World()
    world.block(4, {ALICE: 2}, {ALICE: [(5, 20_000)]}, {ALICE: 1})
    record = counted(world.actor(ALICE), 7)
    assert (record.waiting, record.deferrals, record.fires, record.longest_wait) == (0, 0, 1, 0)
    assert record.took_part


@pytest.mark.spec("A-09")
def test_epoch_sums_are_those_of_all_fires() -> None:
    """The highest tip and all cycles, of the actor and of the epoch."""
    world = World()
    world.block(4, {ALICE: 2, BOB: 1}, {ALICE: [(5, 20_000), (9, 10_000)], BOB: [(7, 12_000)]})
    world.block(5, {BOB: 1}, {BOB: [(1, 11_000)]})
    epoch, alice, bob = world.epoch(1), world.actor(ALICE), world.actor(BOB)
    assert (amount_of(epoch.highest_tip), epoch.cycles_used, epoch.actors) == (9, 53_000, 2)
    assert (amount_of(alice.highest_tip), alice.cycles_used, alice.fires) == (9, 30_000, 2)
    assert (amount_of(bob.highest_tip), bob.cycles_used, bob.fires) == (7, 23_000, 2)


@pytest.mark.spec("A-09", "A-12")
def test_weight_follows_from_the_epoch_before_when_the_actor_takes_part_again() -> None:
    """Alice fired 1 of 2, the other waited through blocks 4 to 7: T = 1, O = 1/5, L: 4 // 2 = 2 blocks, 2/18, C = 1/3.

    S = (1 + 0.2 + 0.111111111 + (1 - 0.666666666)) / 4 = 1.644444445 / 4 = 0.411111111, w' = 0.4 + 0.0822222222.
    """
    world = World()
    world.block(4, {ALICE: 2, BOB: 1}, {ALICE: [(9, 20_000)], BOB: [(9, 10_000)]})
    assert world.open(7).is_behind(ALICE) is False
    assert world.open(8).is_behind(ALICE) is True
    assert world.open(8).weight_of(ALICE) == HALF
    world.block(8, {ALICE: 1})
    assert world.open(8).weight_of(ALICE) == 482_222_222
    record = world.actor(ALICE)
    assert (record.epoch, record.fires, record.deferrals, record.waiting, record.counted_at) == (2, 0, 0, 2, 7)
    assert (world.epoch(1).actors, world.epoch(2).actors) == (1, 1)


@pytest.mark.spec("A-10")
@pytest.mark.parametrize(("height", "epochs"), [(8, 0), (12, 1), (16, 2), (44, 9)])
def test_idle_epochs_between_two_appearances_halve_the_distance(height: int, epochs: int) -> None:
    """Alice fired once in epoch 1, alone: T = O = 1, L = C = 0, so S = 0.5, and her weight of 0.9 falls to 0.82."""
    world = World()
    world.rescales = (0,)
    world.block(4, {ALICE: 1}, {ALICE: [(9, 20_000)]})
    world.rescales = (0, 1_800_000_000)
    world.block(5, freshen=(ALICE,))
    assert world.actor(ALICE).weight == 900_000_000
    world.block(height, {ALICE: 1})
    expected = 820_000_000
    for _ in range(epochs):
        expected -= (expected - HALF) // 2
    assert world.actor(ALICE).weight == expected


@pytest.mark.spec("A-10")
def test_actor_that_waits_is_not_idle() -> None:
    """Nobody freshens her for two epochs: 20 blocks of waiting are one epoch's, and no distance halves."""
    world = World()
    world.block(4, {ALICE: 1})
    world.rescales = (1_800_000_000,)
    world.block(5, freshen=(ALICE,))
    before = counted(world.actor(ALICE), 23)
    assert (before.deferrals, before.longest_wait) == (20, 20)
    world.block(24, freshen=(ALICE,))
    assert world.actor(ALICE).weight == weight_after(before, AuctionEpoch(), PARAMS.auction)


@pytest.mark.spec("A-10")
@pytest.mark.parametrize(("last", "is_starved"), [(11, False), (12, True)])
def test_actor_is_starved_once_it_has_waited_through_eight_blocks(last: int, is_starved: bool) -> None:
    """It begins to wait in block 5: the eighth block at whose end it waits is block 12."""
    world = World()
    world.block(5, {ALICE: 1})
    assert (counted(world.actor(ALICE), last).longest_wait >= PARAMS.auction.starvation_blocks) is is_starved


@pytest.mark.spec("A-10")
def test_fire_ends_a_wait_and_the_epoch_remembers_it() -> None:
    """Waiting since block 5, one of two fires in block 14: nine blocks so far, and none at the end of block 14."""
    world = World()
    world.block(5, {ALICE: 2})
    world.block(14, fires={ALICE: [(1, 10_000)]})
    record = world.actor(ALICE)
    assert (record.longest_wait, record.quiet_since, record.waiting) == (9, 14, 1)
    assert counted(record, 15).longest_wait == 9
    assert counted(record, 30).longest_wait == 16


@pytest.mark.spec("A-10")
def test_wait_begins_anew_when_nothing_waited() -> None:
    """The last one left in block 6; what joins in block 20 has waited one block at its end."""
    world = World()
    world.block(5, {ALICE: 1})
    world.block(6, left={ALICE: 1})
    world.block(20, {ALICE: 1})
    assert counted(world.actor(ALICE), 20).longest_wait == 1


@pytest.mark.spec("A-09", "A-10")
@pytest.mark.parametrize(("height", "weight"), [(11, 460_000_000), (12, 480_000_000), (20, 495_000_000)])
def test_epoch_in_which_an_actor_is_freshened_and_takes_no_part_halves_the_distance(height: int, weight: int) -> None:
    """Freshened in block 8, her only timer left in it: she has no part in epoch 2, no score from it, and relaxes.

    Epoch 1 has four deferrals: T = O = 0, L = 4 / 20, C = 1, S = 0.3, w' = 0.46. The distance of 0.04 halves for epoch
    2, and by block 20 for epochs 3 and 4 as well.
    """
    world = World()
    world.block(4, {ALICE: 1})
    world.block(8, left={ALICE: 1}, freshen=(ALICE,))
    assert world.actor(ALICE).weight == 460_000_000
    assert world.actor(ALICE).took_part is False
    world.block(height, {ALICE: 1})
    assert world.actor(ALICE).weight == weight


@pytest.mark.spec("A-12")
def test_rescale_is_applied_once_and_after_the_epochs_before() -> None:
    """Weight 0.46 after epoch 1 as above, then doubled; again freshened in the same epoch nothing moves."""
    world = World()
    world.block(4, {ALICE: 1})
    world.rescales = (2 * SCORE_UNIT,)
    assert world.open(8).is_behind(ALICE)
    world.block(8, freshen=(ALICE,))
    assert world.actor(ALICE).weight == 920_000_000
    assert not world.open(9).is_behind(ALICE)
    assert world.open(9).refresh_weight(ALICE) == 920_000_000


@pytest.mark.spec("A-12")
def test_rescale_within_an_epoch_leaves_its_statistics_alone() -> None:
    """Only the weight moves: reset, in block 6."""
    world = World()
    world.block(4, {ALICE: 2}, {ALICE: [(5, 20_000)]})
    before = world.actor(ALICE)
    world.rescales = (SCORE_UNIT, 1_500_000_000, 0)
    assert world.open(6).is_behind(ALICE)
    world.block(6, freshen=(ALICE,))
    after = world.actor(ALICE)
    assert (after.rescaled, after.weight) == (3, HALF)
    assert (after.fires, after.waiting, after.counted_at, after.epoch) == (1, 1, before.counted_at, 1)
    assert world.epoch(1).actors == 1


@pytest.mark.spec("A-12")
def test_newcomer_starts_afresh_whatever_was_rescaled_before() -> None:
    """There was no weight to multiply."""
    world = World()
    world.rescales = (2 * SCORE_UNIT,)
    assert world.open(4).weight_of(ALICE) == HALF
    assert world.open(4).is_behind(ALICE)
    world.block(4, {ALICE: 1})
    assert world.actor(ALICE).weight == HALF
    assert not world.open(4).is_behind(ALICE)


@pytest.mark.spec("A-09")
def test_fire_of_an_actor_that_is_behind_counts_where_its_record_is() -> None:
    """Not freshened in epoch 2, she fires in it: her share of the cycles of epoch 1 stays a share."""
    world = World()
    world.block(4, {ALICE: 2, BOB: 1}, {BOB: [(3, 10_000)]})
    world.block(8, fires={ALICE: [(9, 30_000)]})
    record, epoch = world.actor(ALICE), world.epoch(1)
    assert (record.epoch, record.fires, record.deferrals, record.quiet_since) == (1, 1, 8, 8)
    assert (amount_of(epoch.highest_tip), epoch.cycles_used) == (9, 40_000)
    assert world.epoch(2) == AuctionEpoch()


@given(
    blocks=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=30
    )
)
def test_lazy_counts_are_those_of_a_count_at_the_end_of_every_block(
    blocks: list[tuple[int, int, int, bool]],
) -> None:
    """One actor; up to three timers join, fire and leave in a block; the sums begin anew when it is freshened."""
    world, waiting, quiet_since = World(), 0, 0
    deferrals = fires = longest = 0
    for height, (joins, firing, leaving, freshens) in enumerate(blocks, start=4):
        is_known = find_actor(world.overlay.read, ALICE) is not None
        epoch = height // PARAMS.calendar.epoch_length
        is_fresh = joins > 0 or (freshens and is_known)
        if is_fresh and (not is_known or world.actor(ALICE).epoch < epoch):
            deferrals = fires = longest = 0
        fired = min(firing, waiting + joins)
        left = min(leaving, waiting + joins - fired)
        if joins and not waiting:
            quiet_since = height - 1
        if fired:
            quiet_since = height
        world.block(
            height,
            {ALICE: joins} if joins else {},
            {ALICE: [(1, 10_000)] * fired} if fired else {},
            {ALICE: left} if left else {},
            freshen=(ALICE,) if freshens and is_known else (),
        )
        waiting += joins - fired - left
        fires += fired
        deferrals += waiting
        if waiting:
            longest = max(longest, height - quiet_since)
        if find_actor(world.overlay.read, ALICE) is None:
            continue
        record = counted(world.actor(ALICE), height)
        assert (record.waiting, record.fires, record.deferrals, record.longest_wait) == (
            waiting,
            fires,
            deferrals,
            longest,
        )
        check_standings({ALICE: world.actor(ALICE)}, {ALICE: waiting}, world.epoch)


def test_more_timers_than_wait_cannot_leave() -> None:
    """A broken invariant stops the chain."""
    world = World()
    world.block(4, {ALICE: 1})
    with pytest.raises(InvariantError, match=r"2 timers of .* leave the auction, which has 1"):
        world.block(5, left={ALICE: 2})
    with pytest.raises(InvariantError, match="no record of"):
        world.block(5, left={BOB: 1})


@pytest.mark.parametrize(
    ("actors", "waiting", "epoch", "message"),
    [
        ({ALICE: AuctionActor(weight=1, waiting=2)}, {ALICE: 1}, AuctionEpoch(actors=1), "counts 2 waiting timers"),
        ({}, {BOB: 1}, AuctionEpoch(), "counts 0 waiting timers"),
        ({ALICE: AuctionActor(weight=1)}, {}, AuctionEpoch(actors=2), "epoch 0 counts 2 actors and has 1"),
        ({ALICE: AuctionActor(weight=1, cycles_used=5)}, {}, AuctionEpoch(actors=1), "used 5 cycles"),
    ],
)
def test_records_that_contradict_one_another_are_found(
    actors: dict[bytes, AuctionActor], waiting: dict[bytes, int], epoch: AuctionEpoch, message: str
) -> None:
    """Timers, actors and epochs against one another."""
    with pytest.raises(InvariantError, match=message):
        check_standings(actors, waiting, lambda _: epoch)
