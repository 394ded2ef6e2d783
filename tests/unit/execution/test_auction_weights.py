"""Weights of the auction worked out by hand, in parts of 10⁻⁹: scores, the next weight, idle epochs, rescales."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.execution.auction.standings import relaxed, rescaled, score_of, weight_after
from trailboss.model.auction import SCORE_UNIT, AuctionActor, AuctionEpoch
from trailboss.model.configs import amount_octets
from trailboss.params import load_params

HALF = SCORE_UNIT // 2
AUCTION = load_params("mainnet").auction
SCALE = AUCTION.lateness_scale
COUNTS = st.integers(0, 10**6)
TIPS = st.integers(0, 2**127 - 1)
WEIGHTS = st.integers(AUCTION.weight_min, AUCTION.weight_max)


def actor(
    weight: int = HALF,
    *,
    fires: int = 0,
    deferrals: int = 0,
    waiting: int = 0,
    tip: int = 0,
    cycles: int = 0,
    longest_wait: int = 0,
) -> AuctionActor:
    return AuctionActor(
        weight=weight,
        fires=fires,
        deferrals=deferrals,
        waiting=waiting,
        highest_tip=amount_octets(tip),
        cycles_used=cycles,
        longest_wait=longest_wait,
        took_part=True,
    )


def epoch(tip: int = 0, cycles: int = 0) -> AuctionEpoch:
    return AuctionEpoch(amount_octets(tip), cycles)


@pytest.mark.spec("A-09")
def test_score_is_the_mean_of_four_quotients_when_the_actor_fired_and_waited() -> None:
    """Three fires, nine deferrals, none waits: the example of the page on the auction.

    T = 400 / 1,000 = 0.4. O = 3 / 12 = 0.25. L: 9 / 3 = 3 blocks, 3 / 19 = 0.157894736. C = 1 - 0.1 = 0.9.
    S = 1.707894736 / 4 = 0.426973684. w' = 0.8 * 0.5 + 0.2 * S = 0.4 + 0.0853947368 = 0.485394736.
    """
    did = actor(fires=3, deferrals=9, tip=400, cycles=120_000)
    everybody = epoch(1_000, 1_200_000)
    assert score_of(did, everybody, SCALE) == 426_973_684
    assert weight_after(did, everybody, AUCTION) == 485_394_736


@pytest.mark.spec("A-09")
def test_score_has_no_tip_and_no_outcome_when_nobody_fired() -> None:
    """Three timers have waited 24 blocks in all: T = O = 0, L = 8 / 24, C = 1, S = 1.333333333 / 4.

    w' = 0.4 + 0.2 * 0.333333333 = 0.4666666666.
    """
    did = actor(deferrals=24, waiting=3)
    assert score_of(did, epoch(), SCALE) == 333_333_333
    assert weight_after(did, epoch(), AUCTION) == 466_666_666


@pytest.mark.spec("A-09")
def test_score_is_one_half_and_a_sliver_when_an_actor_had_the_whole_epoch() -> None:
    """It alone fired, at once: T = 1, O = 1, L = 0 (nothing waited), C = 1 - 1 = 0, S = 0.5."""
    assert score_of(actor(fires=7, tip=5, cycles=900), epoch(5, 900), SCALE) == HALF


@pytest.mark.spec("A-09")
@pytest.mark.parametrize(
    ("deferrals", "fires", "waiting", "late"),
    [(0, 0, 0, 0), (15, 1, 15, 0), (16, 1, 15, 1), (40, 1, 1, 20), (7, 0, 0, 7)],
)
def test_lateness_is_whole_blocks_per_timer_that_fired_or_waits(
    deferrals: int, fires: int, waiting: int, late: int
) -> None:
    """L = l / (l + 16), and with nobody else C = 1: what is left of four times the score beside O is L."""
    did = actor(fires=fires, deferrals=deferrals, waiting=waiting)
    outcome = SCORE_UNIT * fires // (fires + deferrals) if fires else 0
    expected = (outcome + SCORE_UNIT * late // (late + SCALE) + SCORE_UNIT) // 4
    assert score_of(did, epoch(), SCALE) == expected


@pytest.mark.spec("A-09")
@pytest.mark.parametrize(("decay", "weight"), [(0, HALF), (200_000_000, 485_394_736), (SCORE_UNIT, 426_973_684)])
def test_weight_moves_by_the_share_that_is_set(decay: int, weight: int) -> None:
    """λ = 0 keeps the weight, 1 takes the score, 0.2 goes a fifth of the way."""
    did = actor(fires=3, deferrals=9, tip=400, cycles=120_000)
    assert weight_after(did, epoch(1_000, 1_200_000), replace(AUCTION, decay=decay)) == weight


@pytest.mark.spec("A-10")
def test_weight_is_clamped_at_both_bounds() -> None:
    """λ = 1, so the weight is the score.

    Low: T = 0, O = 1 / 10, L = 0 (9 deferrals over 10 timers), C = 0: S = 0.025, below 0.1. High: T = O = 1, L = 0,
    C = 0.9: S = 0.725, above a greatest weight of 0.6.
    """
    params = replace(AUCTION, decay=SCORE_UNIT, weight_max=600_000_000)
    low = actor(fires=1, deferrals=9, waiting=9, cycles=10)
    assert score_of(low, epoch(7, 10), SCALE) == 25_000_000
    assert weight_after(low, epoch(7, 10), params) == AUCTION.weight_min == 100_000_000
    high = actor(fires=1, tip=7, cycles=10)
    assert score_of(high, epoch(7, 100), SCALE) == 725_000_000
    assert weight_after(high, epoch(7, 100), params) == 600_000_000


@pytest.mark.spec("A-10")
@pytest.mark.parametrize(("longest_wait", "weight"), [(0, 160_000_000), (7, 160_000_000), (8, HALF), (300, HALF)])
def test_weight_has_a_floor_after_eight_blocks_without_a_fire(longest_wait: int, weight: int) -> None:
    """Weight 0.1, score 0.4 (T = O = 0, L = 24 / 40 = 0.6, C = 1): 0.08 + 0.08 = 0.16, or the floor of 0.5."""
    did = actor(100_000_000, deferrals=24, waiting=1, longest_wait=longest_wait)
    assert weight_after(did, epoch(), AUCTION) == weight


@pytest.mark.spec("A-10")
def test_floor_lowers_nobody() -> None:
    """A starved actor at 0.9 stays above: 0.72 + 0.08 = 0.8."""
    did = actor(900_000_000, deferrals=24, waiting=1, longest_wait=8)
    assert weight_after(did, epoch(), AUCTION) == 800_000_000


@pytest.mark.spec("A-10")
@pytest.mark.parametrize(
    ("weight", "epochs", "after"),
    [
        (900_000_000, 0, 900_000_000),
        (900_000_000, 1, 700_000_000),
        (900_000_000, 4, 525_000_000),
        (100_000_000, 1, 300_000_000),
        (100_000_000, 3, 450_000_000),
        (HALF + 5, 1, HALF + 3),
        (HALF - 5, 1, HALF - 3),
        (HALF - 5, 2, HALF - 2),
        (HALF + 5, 10**18, HALF + 1),
        (HALF, 10**18, HALF),
    ],
)
def test_idle_epochs_halve_the_distance_to_the_start(weight: int, epochs: int, after: int) -> None:
    """0.9 goes to 0.7, 0.6, 0.55, 0.525; an odd distance keeps its odd part; any number of epochs at once."""
    assert relaxed(weight, HALF, epochs) == after


@given(weight=WEIGHTS, start=WEIGHTS, epochs=st.integers(0, 80))
def test_idle_epochs_at_once_are_those_one_by_one(weight: int, start: int, epochs: int) -> None:
    """Each adds half of the distance, rounded toward zero."""
    slow = weight
    for _ in range(epochs):
        distance = start - slow
        slow += distance // 2 if distance >= 0 else -(-distance // 2)
    assert relaxed(weight, start, epochs) == slow


@pytest.mark.spec("A-12")
@pytest.mark.parametrize(
    ("factors", "after"),
    [
        ((), 300_000_000),
        ((0,), HALF),
        ((SCORE_UNIT,), 300_000_000),
        ((2 * SCORE_UNIT,), 600_000_000),
        ((10 * SCORE_UNIT,), SCORE_UNIT),
        ((HALF, HALF), 100_000_000),
        ((333_333_333,), 100_000_000),
        ((10 * SCORE_UNIT, HALF), HALF),
        ((10 * SCORE_UNIT, 0, 3 * HALF), 750_000_000),
    ],
)
def test_rescales_apply_in_order_and_are_clamped_each(factors: tuple[int, ...], after: int) -> None:
    """0.3 twice halved is 0.15 and then 0.1, the least; 0.3 * 0.333333333 is below it too; 0 resets."""
    assert rescaled(300_000_000, factors, AUCTION) == after


@given(
    weight=WEIGHTS,
    counts=st.tuples(COUNTS, COUNTS, COUNTS, COUNTS),
    tips=st.tuples(TIPS, TIPS),
    cycles=st.tuples(COUNTS, COUNTS),
)
def test_scores_and_weights_are_within_their_bounds(
    weight: int, counts: tuple[int, int, int, int], tips: tuple[int, int], cycles: tuple[int, int]
) -> None:
    """Whatever an actor did, as long as all did at least as much: 0 to 1, and the least to the greatest weight."""
    fires, deferrals, waiting, longest_wait = counts
    did = actor(
        weight,
        fires=fires,
        deferrals=deferrals,
        waiting=waiting,
        tip=min(tips),
        cycles=min(cycles),
        longest_wait=longest_wait,
    )
    everybody = epoch(max(tips), max(cycles))
    assert 0 <= score_of(did, everybody, SCALE) <= SCORE_UNIT
    assert AUCTION.weight_min <= weight_after(did, everybody, AUCTION) <= AUCTION.weight_max
