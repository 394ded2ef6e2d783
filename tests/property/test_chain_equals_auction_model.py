"""The chain against a slow model of the first CIP-1, over random histories of crowds, agents, empty purses and votes.

The model shares no code with the chain; it asks and sorts all due timers in every block, and counts deferrals one by
one. ``python -m tests.model.hunt auction`` plays thousands of histories.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.auction import AuctionBlocks
from tests.model.auction_histories import auction_histories, auction_history
from tests.model.auction_weights import UNIT, Actor
from tests.model.histories import History, seeded
from tests.model.hunt import differs, played, wandered
from tests.model.joining import due_order
from tests.model.session import Session
from tests.model.world import NO_CAP

SHARE = settings.default.max_examples * 2 // 10
SEEDS = 80
OFTEN = 3
OUTCOMES = """
    from the pool fire, from the pool defer, bid agent fire, bid frozen fire, bid fallback fire, priced out, set aside
    stopped none_left, stopped lane_full, stopped passed_over_max, stopped cells_full, ranked timer cancelled
    tie broken by weight, timer.deferred unfunded, timer.deferred priced_out, timer.deferred lane_full, tip for cells
    timer.deferred for another reason, timer.fired after deferral
    timer.delayed event, timer.delayed front, late before a higher tip, timer.cancelled_by_delay
    owner left out, payer barred, barred timer joins
    gba.fallback budget, gba.fallback failed, gba.fallback malformed, gba.fallback out_of_cycles
    starvation floor, weight of the idle, weight rescaled, weight reset, weight stays behind
    timer.cancelled, timer.cancelled_by_governance, parameter.set, message ok, note
    transaction reverted 1203, transaction reverted 1209, transaction reverted 1212, transaction reverted 1601
"""
BENT_NUMBERS = (
    ("budget_cycles", -1_000),
    ("joined_max", -1),
    ("passed_over_max", -1),
    ("gba_cycles_max", -1),
    ("decay", 1_000),
    ("weight_min", 100_000),
    ("weight_max", -1),
    ("starvation_blocks", 1),
    ("starvation_floor", -1_000),
    ("lateness_scale", 1),
    ("actors_weighed_max", -1),
    ("delays_max", 1),
    ("delay_penalty_cycles", 1),
)


@pytest.mark.spec("A-01", "A-02", "A-03", "A-04", "A-05", "A-06", "A-07", "A-08", "A-09", "A-10", "A-11", "A-12")
@pytest.mark.spec("A-13")
@given(st.one_of(auction_histories(), st.integers(0, 2**64).map(lambda seed: auction_history(seeded(seed)))))
@settings(max_examples=SHARE)
def test_chain_equals_the_slow_model_of_the_auction_over_random_histories(random_history: History) -> None:
    """Receipts, events, order, bids, weights, statistics, balances and totals agree after every block."""
    played(random_history)


def test_random_auction_histories_reach_every_outcome() -> None:
    """Over fixed seeds, every way to wait, to bid, to be late and to weigh occurs."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen += played(auction_history(seeded(seed))).seen
    outcomes = [outcome.strip() for line in OUTCOMES.strip().splitlines() for outcome in line.split(",")]
    assert {outcome: seen[outcome] for outcome in outcomes if seen[outcome] < OFTEN} == {}


@pytest.mark.parametrize("seed", range(3))
def test_auction_blocks_are_the_same_when_a_chain_goes_astray(seed: int) -> None:
    """Branches that are built and dropped leave no trace, in the state or in what the auction remembers."""
    trunk, branch = auction_history(seeded(seed)), auction_history(seeded(seed + SEEDS))
    wandered(trunk, branch, Random(seed))


@pytest.mark.parametrize(("name", "change"), BENT_NUMBERS)
def test_comparison_fails_when_a_number_of_the_auction_is_bent(name: str, change: int) -> None:
    """A model that is off in one number is told apart within a few histories."""

    def bend(session: Session) -> None:
        numbers = session.model.params["auction"]
        numbers[name] += change if numbers[name] + change > 0 else 0

    assert any(differs(auction_history(seeded(seed)), bend) for seed in range(SEEDS))


def _score_without(part: int) -> Callable[..., int]:
    whole = AuctionBlocks._score

    def score(model: AuctionBlocks, state: Actor, waiting: int) -> int:
        bent = (state._replace(highest_tip=0), state._replace(fires=0), state._replace(deferrals=0))
        return whole(model, bent[part], waiting)

    return score


BENT_RULES: dict[str, tuple[str, Any]] = {
    "the oldest are asked first": ("_asking_order", lambda _, timer: due_order(timer)),
    "those asked once are asked first": (
        "_asking_order",
        lambda _, timer: (timer.terms.asked_at, timer.height, timer.sequence),
    ),
    "nothing is bid for a cell": ("_cell_tip", lambda *_: 0),
    "who cannot pay is ranked anyhow": ("_is_set_aside", lambda *_: False),
    "ties go to the oldest": ("_order", lambda _, each: (-each.tip, *due_order(each.timer))),
    "slices are equal": ("_slice", lambda model, _, total: model.budget * UNIT // max(1, total)),
    "a bid without an answer has a tip": ("_default_bid", lambda model: (2 * model.terms.cycle_price, 1)),
    "scores leave out tips": ("_score", _score_without(0)),
    "scores leave out fires": ("_score", _score_without(1)),
    "scores leave out deferrals": ("_score", _score_without(2)),
    "the idle keep their weight": ("_halved", lambda *_: 0),
    "fires take the room of transactions": ("_taken", lambda model: model.used),
    "the freshened keep their weight": ("_first_idle", lambda _, state: state.epoch + 1),
    "the cells of fires have no bound": ("cells_max", lambda _: NO_CAP),
    "the oldest join first": ("_joining_order", lambda _, own, gaps: sorted([own, *gaps])),
}


@pytest.mark.parametrize("rule", BENT_RULES)
def test_comparison_fails_when_a_rule_of_the_auction_is_bent(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with another rule is told apart within a few histories."""
    monkeypatch.setattr(AuctionBlocks, *BENT_RULES[rule])
    assert any(differs(auction_history(seeded(seed))) for seed in range(SEEDS))
