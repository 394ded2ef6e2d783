"""Weights of the auction on a chain: where they come from, when they move, and what governance does to them."""

import pytest

from tests.integration.auctions import CAP, CBY, arm, bidder, fired, open_auction, standing, tell
from trailboss.execution.auction.standings import read_epoch, score_of, weight_after
from trailboss.governance.parameters import RESCALE_WEIGHTS
from trailboss.model.auction import SCORE_UNIT
from trailboss.model.configs import amount_of
from trailboss.model.transactions import SetGovParam
from trailboss.testing import LocalChain

HALF = SCORE_UNIT // 2


def rescale(chain: LocalChain, factor: int) -> None:
    """Have governance multiply all weights, or reset them with 0."""
    chain.system(SetGovParam(RESCALE_WEIGHTS, factor.to_bytes(8, "big")), check=True)


@pytest.mark.spec("A-09", "A-12")
def test_weight_is_drawn_from_the_epoch_before_in_which_the_actor_fired() -> None:
    """Two actors fire in an epoch at different tips; both weights follow in the next epoch in which they take part."""
    chain = open_auction()
    high, low = bidder(chain, f"{CAP} 90"), bidder(chain, f"{CAP} 30")
    start = 4 * (chain.height // 4 + 2)
    for actor in (high, low):
        arm(actor, "a", height=start)
    again = start + 8
    for actor in (high, low):
        arm(actor, "b", height=again)
    chain.advance_to(start + 1)
    epoch = read_epoch(chain.chain.store.read, start // 4)
    seen = {actor.address: standing(actor) for actor in (high, low)}
    assert (amount_of(epoch.highest_tip), epoch.actors) == (90, 2)
    assert epoch.cycles_used == sum(record.cycles_used for record in seen.values())
    assert [amount_of(record.highest_tip) for record in seen.values()] == [90, 30]
    assert [record.weight for record in seen.values()] == [HALF, HALF]
    chain.advance_to(again)
    for actor in (high, low):
        weight = weight_after(seen[actor.address], epoch, chain.chain.rules().params.auction)
        assert standing(actor).weight == weight + (HALF - weight) // 2
        assert standing(actor).epoch == again // 4
    assert standing(high).weight > standing(low).weight
    assert read_epoch(chain.chain.store.read, start // 4).actors == 0


@pytest.mark.spec("A-10")
def test_actor_relaxes_for_an_epoch_that_begins_with_the_end_of_its_last_timer() -> None:
    """Its timer waits through epoch 5 and is cancelled in the first block of epoch 6; the next one is due in epoch 8.

    Four deferrals: S = (4 / 20 + 1) / 4 = 0.3 and w' = 0.46; the distance halves for epoch 6 and for epoch 7.
    """
    chain = open_auction()
    actor = bidder(chain, "1 0")
    arm(actor, "a", height=20)
    arm(actor, "b", height=32)
    chain.advance_to(23)
    tell(actor, "drop", "a")
    assert (chain.height, standing(actor).weight, standing(actor).epoch) == (24, 460_000_000, 6)
    chain.advance_to(32)
    assert standing(actor).weight == 490_000_000


@pytest.mark.spec("A-10")
def test_actor_that_is_passed_by_gets_its_floor() -> None:
    """Room for one fire, which others always take: after eight blocks the one that waits has the floor at least."""
    chain = open_auction(auction__budget_cycles=550_000, auction__weight_start=300_000_000)
    poor, rich = bidder(chain, f"{CAP} 1", 10_000 * CBY), bidder(chain, f"{CAP} 100", 100_000 * CBY)
    start = 4 * (chain.height // 4 + 6)
    arm(poor, "~p", height=start, gas_limit=550_000)
    for number in range(14):
        arm(rich, f"~{number}", height=start + number, gas_limit=550_000)
    chain.advance_to(start + 7)
    assert standing(poor).weight < HALF
    chain.advance_to(start + 8)
    assert standing(poor).weight == HALF
    assert standing(poor).waiting == 1
    chain.advance_to(start + 14)
    assert fired(chain) != []


@pytest.mark.spec("A-12")
def test_governance_rescales_and_resets_weights() -> None:
    """It takes effect in the next block, for whoever waits; weights stay in the state and come back after a reorg."""
    chain = open_auction()
    actor = bidder(chain, "1 0")
    arm(actor, "a", height=4 * (chain.height // 4 + 2))
    chain.advance_to(4 * (chain.height // 4 + 2))
    assert standing(actor).weight == HALF
    rescale(chain, 1_500_000_000)
    assert standing(actor).weight == HALF
    chain.mine()
    assert standing(actor).weight == 750_000_000
    root = chain.state_root
    rescale(chain, 0)
    chain.mine()
    assert standing(actor).rescaled == 2
    assert standing(actor).weight == HALF
    chain.reorg(2)
    assert chain.state_root == root
    assert (standing(actor).weight, standing(actor).rescaled) == (750_000_000, 1)


@pytest.mark.spec("A-12")
def test_sweep_brings_few_actors_up_to_date_in_a_block() -> None:
    """Three wait and one is weighed a block: by address, in the first three blocks of the epoch."""
    chain = open_auction(auction__actors_weighed_max=1)
    actors = [bidder(chain, "1 0") for _ in range(3)]
    start = 4 * (chain.height // 4 + 3)
    for actor in actors:
        arm(actor, "a", height=start - 1)
    chain.advance_to(start - 1)
    actors.sort(key=lambda actor: actor.address)
    for number in range(3):
        chain.mine()
        assert [standing(actor).epoch == start // 4 for actor in actors] == [each <= number for each in range(3)]


@pytest.mark.spec("A-09")
def test_cancelled_timer_is_no_deferral_in_its_block() -> None:
    """Two wait; a transaction of the third block takes one away: 2 + 2 + 1."""
    chain = open_auction(calendar__epoch_length=64, calendar__ring_size=128)
    actor = bidder(chain, "1 0")
    arm(actor, "a", "b", height=chain.height + 2)
    chain.mine(2)
    tell(actor, "drop", "a")
    chain.mine(1)
    tell(actor, "drop", "b")
    assert (standing(actor).deferrals, standing(actor).waiting) == (2 + 2 + 1 + 1, 0)


@pytest.mark.spec("A-09")
def test_score_of_who_waits_and_never_fires_is_that_of_its_lateness() -> None:
    """Nobody fires in the epoch: no tip, no outcome, all of the cycles spared."""
    chain = open_auction()
    actor = bidder(chain, "1 0")
    start = 4 * (chain.height // 4 + 2)
    arm(actor, "a", height=start)
    chain.advance_to(start + 4)
    score = (4 * SCORE_UNIT // (4 + 16) + SCORE_UNIT) // 4
    assert standing(actor).weight == (800_000_000 * HALF + 200_000_000 * score) // SCORE_UNIT
    assert score_of(standing(actor), read_epoch(chain.chain.store.read, start // 4 + 1), 16) == SCORE_UNIT // 4
