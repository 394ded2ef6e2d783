"""The chain against a slow model of the first draft of CIP-5, over random histories of heights, watches and votes.

The model shares no code with the chain; it compares all watches with all modified keys and sorts the whole queue in
every block. ``python -m tests.model.hunt globalbox`` plays thousands of histories.
"""

from collections import Counter
from random import Random
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model import globalbox, globalbox_scripts
from tests.model.globalbox import GlobalboxBlocks
from tests.model.globalbox_histories import globalbox_histories, globalbox_history
from tests.model.globalbox_scripts import GlobalboxInterpreter
from tests.model.histories import History, seeded
from tests.model.hunt import differs, played, wandered
from tests.model.language import delivered
from tests.model.session import Session
from tests.model.world import NO_CAP

SHARE = settings.default.max_examples * 2 // 10
SEEDS = 80
OFTEN = 3
OUTCOMES = """
    fire of HEIGHT ok, fire of HEIGHT reverted, fire of STATE_WATCH ok, fire of STATE_WATCH reverted
    timer.queued, timer.materialized, timer.updated, timer.fired, TimerExpired, TimerCancelledInsufficientFunds
    timer.cancelled, timer.cancelled_by_governance, answer True, answer False
    passed over for want of funds, unfunded by one unit, entry waits for cells
    payer barred, barred timer joins
    fan-out carried, delivery modifies a watched key, fire delivered as it was queued, fire waits in the queue
    passed over for its target's share, entries wait in the mailbox, several entries of a watch
    fire longer than the lane, expired timer not removed, due timer not joined, ended timer collected, set again
    parameter.set, note, message ok, transaction reverted 1209, transaction reverted 1212
    transaction reverted 1511, timer reverted 1512
    transaction reverted 1513, timer reverted 1514, transaction reverted 1601, timer reverted 1515
    expired before its height, delivery of HEIGHT, delivery of STATE_WATCH, delivery of nothing
"""
RARE = {"fire delivered as it was queued", "transaction reverted 1209", "timer reverted 1512", "unfunded by one unit"}
"""These want two random things of one timer or actor at once."""
BENT_NUMBERS = (
    ("max_fires_per_block", -1),
    ("max_fires_per_target", 1),
    ("age_weight", 1),
    ("bid_weight", 1),
    ("min_gas_limit", 5_001),
    ("max_timers_per_owner", -1),
    ("max_timers_per_target", -1),
    ("watch_keys_max", -1),
    ("joined_max", -1),
    ("hits_max", -1),
    ("passed_over_max", -1),
    ("ended_kept_blocks", 1),
    ("epoch_blocks", 1),
)


@pytest.mark.spec("G-01", "G-02", "G-04", "G-05", "G-06", "G-07", "G-08", "G-09", "G-10", "G-11", "G-12", "G-13")
@pytest.mark.spec("G-14", "G-15", "G-16", "G-17", "G-18", "G-19", "G-20", "G-22", "G-23")
@given(st.one_of(globalbox_histories(), st.integers(0, 2**64).map(lambda seed: globalbox_history(seeded(seed)))))
@settings(max_examples=SHARE)
def test_chain_equals_the_slow_model_of_globalbox_over_random_histories(random_history: History) -> None:
    """Receipts, events, queue, mailbox, ids, ended timers, carried keys, money and totals agree after every block."""
    played(random_history)


def test_random_globalbox_histories_reach_every_outcome() -> None:
    """Over fixed seeds, every way in and out of queue and mailbox, and every refusal, occurs."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen += played(globalbox_history(seeded(seed))).seen
    outcomes = [outcome.strip() for line in OUTCOMES.strip().splitlines() for outcome in line.split(",")]
    least = {outcome: 1 if outcome in RARE else OFTEN for outcome in outcomes}
    assert {outcome: seen[outcome] for outcome in outcomes if seen[outcome] < least[outcome]} == {}


@pytest.mark.spec("G-20", "G-21")
@pytest.mark.parametrize("seed", range(3))
def test_globalbox_blocks_are_the_same_when_a_chain_goes_astray(seed: int) -> None:
    """Branches that are built and dropped leave no trace, in the state or in what Globalbox remembers."""
    trunk, branch = globalbox_history(seeded(seed)), globalbox_history(seeded(seed + SEEDS))
    wandered(trunk, branch, Random(seed))


@pytest.mark.parametrize(("name", "change"), BENT_NUMBERS)
def test_comparison_fails_when_a_number_of_globalbox_is_bent(name: str, change: int) -> None:
    """A model that is off in one number is told apart within a few histories."""

    def bend(session: Session) -> None:
        numbers = session.model.params["globalbox"]
        numbers[name] += change if numbers[name] + change > 0 else 0

    assert any(differs(globalbox_history(seeded(seed)), bend) for seed in range(SEEDS))


def _bare_key(model: GlobalboxBlocks, timer: Any, hit_height: int) -> int:
    return int(model.own["bid_weight"]) * int(timer.terms.bid) - model.age_weight * hit_height


def _hears_at_once(model: GlobalboxBlocks, timer: Any, hit: Any) -> bool:
    return timer.sequence >= hit.next_sequence and any(hit.key.startswith(prefix) for prefix in timer.terms.watch_keys)


def _of_nothing(_: object) -> bytes:
    return cbor2.dumps({})


def _without_keys(facts: dict[str, Any] | None) -> bytes:
    trigger = {} if facts is None else {"trigger_ctx": facts["trigger_ctx"] | {"matched_keys": []}}
    return delivered(None if facts is None else facts | trigger)


BENT_RULES: dict[str, tuple[Any, str, Any]] = {
    "a changed W_age is applied to all heights": (GlobalboxBlocks, "_standing", _bare_key),
    "bids have no buckets": (GlobalboxBlocks, "_bucket", lambda *_: 0),
    "a watch hears of its own block": (GlobalboxBlocks, "_hears", _hears_at_once),
    "the cells of fires have no bound": (GlobalboxBlocks, "cells_max", lambda _: NO_CAP),
    "every write is a modification": (GlobalboxBlocks, "_differ", lambda *_: True),
    "what is in the mailbox expires": (GlobalboxBlocks, "_may_expire", lambda *_: True),
    "sixteen ended timers at most are collected": (globalbox, "COLLECTED_LEAST", 1),
    "a name is never taken": (GlobalboxInterpreter, "_is_known", lambda *_: False),
    "what has expired joins": (GlobalboxBlocks, "is_due", lambda model, timer: timer.height <= model.height),
    "every height is one": (globalbox_scripts, "lives_to_see", lambda *_: True),
    "a fire knows nothing of itself": (globalbox_scripts, "delivered", _of_nothing),
    "a fire knows no keys": (globalbox_scripts, "delivered", _without_keys),
}


@pytest.mark.parametrize("rule", BENT_RULES)
def test_comparison_fails_when_a_rule_of_globalbox_is_bent(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with another rule is told apart within a few histories."""
    monkeypatch.setattr(*BENT_RULES[rule])
    assert any(differs(globalbox_history(seeded(seed))) for seed in range(SEEDS))
