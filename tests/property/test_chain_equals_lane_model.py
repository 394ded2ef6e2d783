"""The chain against a slow model of CIP-1 v3, over random histories that cross the lane's activation or begin with it.

The model shares no code with the chain; it sorts all due timers in every block.
"""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model import lane
from tests.model.histories import History, seeded
from tests.model.hunt import differs, played
from tests.model.lane import WHOLE, Model
from tests.model.lane_histories import lane_histories, lane_history
from tests.model.session import Session
from tests.model.timer_scripts import TimerScripts
from tests.model.world import NO_CAP, Timer

SHARE = settings.default.max_examples * 8 // 10
SEEDS = 120
OFTEN = 3
OUTCOMES = """
    lane.activated, activation moved, activation with a backlog, gas limit clamped
    lane timer.deferred over_cap, lane timer.deferred lane_full, lane timer.deferred gc_exhausted, priced out
    ranked fire, ranked unfund, ranked defer lane_full, ranked defer gc_exhausted, ranked timer cancelled
    lane stopped none_left, lane stopped lane_full, lane stopped examined_max, lane stopped cells_full
    ranked defer outranked
    lane TimerExpired, lane TimerCancelledInsufficientFunds, expired timer not removed, expired timer extended
    due timer not joined, unfunded by one unit, payer runs dry before the turn, payer left out
    payer barred, barred timer joins, barred timer removed
    timer.fired after deferral, timer.deferred for another reason
    fees frozen, fees default, fees agent, fees fallback, gba.set
    own agent asked, agent of the actor asked, too little for a cell, tip for cells
    gba.fallback no_agent, gba.fallback out_of_cycles, gba.fallback failed, gba.fallback malformed, gba.fallback budget
    TimerPriorityClampedAtSchedule, timer.argument_deprecated, timer reverted 1504, timer reverted 1505
    W between its bounds, tie broken by id, tip above zero
    lane basefee rises, lane basefee rises by the least step, lane basefee falls to its floor
    block leaves the window, block waits to leave the window
    timer.extended, timer.cancelled, parameter.set, transaction reverted 1601, message ok, note
"""
RARE = {"expired timer extended"}
"""This wants a transaction in the very block in which a timer has died."""
BENT_NUMBERS = (
    ("activation_height", 1),
    ("max_cycles_per_fire", -1),
    ("alpha", 1),
    ("max_change_denominator", 1),
    ("elasticity", 1),
    ("basefee_min", 1),
    ("joined_max", -1),
    ("gba_cycles_max", -1),
    ("fairness_window_blocks", 1),
    ("fairness_window_blocks", -1),
    ("weight_min", 1),
    ("weight_max", -1),
    ("basefee_rule", 1),
    ("caps_at_fire", 1),
    ("weight_per_deployer", 1),
    ("fires_median_blocks", 1),
    ("weight_age_blocks", 1),
)


@pytest.mark.spec("L-01", "L-02", "L-03", "L-04", "L-05", "L-06", "L-07", "L-08", "L-09", "L-10", "L-11", "L-12")
@pytest.mark.spec("L-13", "L-14", "L-15", "L-16", "L-17", "L-18", "L-19", "L-20", "L-21", "L-23", "L-24", "L-25")
@pytest.mark.spec("L-26", "L-27", "L-28", "L-29", "L-30", "L-31")
@given(st.one_of(lane_histories(), st.integers(0, 2**64).map(lambda seed: lane_history(seeded(seed)))))
@settings(max_examples=SHARE)
def test_chain_equals_the_slow_model_of_the_lane_over_random_histories(random_history: History) -> None:
    """Receipts, events, order, fees, weights, balances, basefees, window, timers and totals agree after every block."""
    played(random_history)


def test_random_lane_histories_reach_every_outcome() -> None:
    """Over fixed seeds, every reason to wait, every fallback, every refusal and every edge occurs."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen += played(lane_history(seeded(seed))).seen
    outcomes = [outcome.strip() for line in OUTCOMES.strip().splitlines() for outcome in line.split(",")]
    least = {outcome: 1 if outcome in RARE else OFTEN for outcome in outcomes}
    assert {outcome: seen[outcome] for outcome in outcomes if seen[outcome] < least[outcome]} == {}


@pytest.mark.parametrize(("name", "change"), BENT_NUMBERS)
def test_comparison_fails_when_a_number_of_the_lane_is_bent(name: str, change: int) -> None:
    """A model that is off in one number is told apart within a few histories."""

    def bend(session: Session) -> None:
        numbers = session.model.params["lane"]
        numbers[name] += change if numbers[name] + change > 0 else 0

    assert any(differs(lane_history(seeded(seed)), bend) for seed in range(SEEDS))


def _upper_median(_: Model, numbers: list[int]) -> int:
    return sorted(numbers)[len(numbers) // 2] if numbers else 0


def _weight_rounded_up(model: Model, fires: int, median: int) -> int:
    own = model.rules["lane"]
    return min(max(2 * WHOLE - fires * WHOLE // max(1, median), own["weight_min"]), own["weight_max"])


def _weight_of_all(model: Model, fires: int, median: int) -> int:
    return min(max(2 * WHOLE - fires * WHOLE // (1 + median), model.rules["lane"]["weight_min"]), 2 * WHOLE)


def _greatest_id_first(_: Model, timer: Timer) -> Any:
    return [-octet for octet in timer.timer_id]


def _read_anyhow(model: Model, octets: bytes) -> tuple[int, int, tuple[int, int] | None]:
    return _READ_ANSWER(model, octets) or (0, 0, None)


_READ_ANSWER = Model._read_answer
BENT_RULES: dict[str, tuple[Any, str, Any]] = {
    "ties go to the greatest id": (Model, "_tie", _greatest_id_first),
    "ties go to the oldest": (Model, "_tie", lambda _, timer: (timer.height, timer.sequence)),
    "W is rounded up": (Model, "_weight", _weight_rounded_up),
    "W has another denominator": (Model, "_weight", _weight_of_all),
    "the median of fires is the upper one": (Model, "_median_fires", _upper_median),
    "the median tip is the upper one": (Model, "_median_tip", _upper_median),
    "the lane basefee is not charged": (Model, "_lane_price", lambda _: 0),
    "a small lane basefee is stuck": (lane, "LEAST_RISE", 0),
    "any cap for a cell will do": (Model, "_pays", lambda model, offer: offer.max_fee >= model.terms.basefee),
    "agents have no budget": (Model, "_budget", lambda _: 10**12),
    "a malformed answer offers nothing": (Model, "_read_answer", _read_anyhow),
    "fires of less than a frame have votes": (Model, "_counts", lambda *_: True),
    "the cells of fires have no bound": (Model, "cells_max", lambda _: NO_CAP),
    "the oldest join first": (Model, "_joining_order", lambda _, own, gaps: sorted([own, *gaps])),
}


@pytest.mark.parametrize("rule", BENT_RULES)
def test_comparison_fails_when_a_rule_of_the_lane_is_bent(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with another rule is told apart within a few histories."""
    monkeypatch.setattr(*BENT_RULES[rule])
    assert any(differs(lane_history(seeded(seed))) for seed in range(SEEDS))


def test_comparison_fails_when_default_fees_are_settled_at_the_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that leaves the default fees open until the fire is told apart within a few histories."""
    as_stated = TimerScripts.fees_of

    def left_open(scripts: TimerScripts, frame: Any, offer: dict[str, int]) -> Any:
        fees, stated = as_stated(scripts, frame, offer)
        return (fees if "max_fee" in offer or "priority" in offer else ()), stated

    monkeypatch.setattr(TimerScripts, "fees_of", left_open)
    assert any(differs(lane_history(seeded(seed))) for seed in range(SEEDS))
