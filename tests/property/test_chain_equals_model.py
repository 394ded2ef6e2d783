"""The chain against a slow model of CIP-5, over random histories. The model shares no code with the chain."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.histories import History, histories, history, seeded
from tests.model.hunt import differs
from tests.model.lane import Model
from tests.model.session import Session
from tests.model.world import NO_CAP

SEEDS = 250
OUTCOMES = """
    transaction ok, timer ok, message ok, transaction reverted, timer reverted, message reverted, message.dropped
    timer reverted 1003, timer reverted 1005, timer reverted 1006, timer reverted 1202, timer reverted 1210
    timer reverted 1223, timer reverted 1501, message reverted 1220
    transaction reverted 1003, transaction reverted 1005, transaction reverted 1006, transaction reverted 1202
    transaction reverted 1203, transaction reverted 1210, transaction reverted 1211, transaction reverted 1213
    transaction reverted 1220, transaction reverted 1221, transaction reverted 1223, transaction reverted 1501
    transaction reverted 1503, transaction reverted 1601
    refused 1001, refused 1002, refused 1003, refused 1004, refused 1005, refused 1006, refused 1008, refused 1011
    refused 1012
    timer.scheduled, timer.fired, timer.fired after deferral, timer.extended, timer.extended_by_governance
    timer.cancelled, timer.cancelled after charge, timer.cancelled_by_governance, due timer not examined
    timer.deferred for another reason, unfunded by one unit, payer left out
    TimerExpired, TimerCancelledInsufficientFunds, timer.deferred lane_full, timer.deferred gc_exhausted
    timer.deferred cells_full
    timer_config.updated, basefee_config.updated, lane_fee_multipliers.updated, parameter.set
    actor.deployed, message.sent, note
"""
OFTEN = 3
BENT_RULES = (
    ("costs", "frame_base"),
    ("costs", "timer_schedule"),
    ("costs", "timer_index_cells"),
    ("timers", "max_ttl_blocks"),
    ("timers", "max_cells_per_fire"),
    ("timers", "max_timers_per_actor"),
    ("timers", "gc_cycles_per_block"),
    ("timers", "dead_examined_max"),
    ("timers", "lane_cycles_per_block"),
    ("fees", "cycles_target"),
    ("fees", "max_change_denominator"),
    ("limits", "messages_delivered_max"),
)


def played(random_history: History) -> Session:
    """Return a session in which a history has been played; it raises at the first difference."""
    session = Session(random_history)
    session.play(random_history.blocks)
    return session


@pytest.mark.spec("F-05", "F-40", "F-41", "F-42", "F-43", "F-44", "F-45", "F-46", "F-47")
@pytest.mark.spec(
    "F-03", "F-12", "F-13", "F-14", "F-15", "F-16", "F-17", "F-18", "F-19", "F-20", "F-21", "F-32", "F-33"
)
@pytest.mark.spec("F-50", "F-51", "F-52", "F-53", "F-54", "F-55", "F-56", "F-57", "F-58")
@pytest.mark.spec("F-60", "F-61", "F-62", "F-63", "F-64", "F-65", "F-66", "F-72", "F-73", "F-74", "F-75", "F-76")
@pytest.mark.spec("E-01", "E-02", "E-03", "E-04", "E-05", "E-06")
@given(st.one_of(histories(), st.integers(0, 2**64).map(lambda seed: history(seeded(seed)))))
def test_chain_equals_the_slow_model_over_random_histories(random_history: History) -> None:
    """Receipts, events, refusals, balances, basefees, timers and totals are the model's after every block."""
    played(random_history)


def test_random_histories_reach_every_outcome() -> None:
    """Over fixed seeds, every way out, every reason to wait and every refusal occurs more than by accident."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen += played(history(seeded(seed))).seen
    outcomes = [outcome.strip() for line in OUTCOMES.strip().splitlines() for outcome in line.split(",")]
    assert {outcome: seen[outcome] for outcome in outcomes if seen[outcome] < OFTEN} == {}


@pytest.mark.parametrize(("subject", "name"), BENT_RULES)
def test_comparison_fails_when_a_rule_of_the_model_is_bent(subject: str, name: str) -> None:
    """The comparison is no formality: a model that is off by one in one number is told apart within a few histories."""

    def bend(session: Session) -> None:
        session.model.params[subject][name] -= 1

    assert any(differs(history(seeded(seed)), bend) for seed in range(SEEDS))


def test_comparison_fails_when_the_cells_of_fires_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that lets every fire of a block write what it may is told apart within a few histories."""
    monkeypatch.setattr(Model, "cells_max", lambda _: NO_CAP)
    assert any(differs(history(seeded(seed))) for seed in range(SEEDS))
