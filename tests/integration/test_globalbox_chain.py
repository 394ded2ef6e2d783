"""Globalbox over many blocks: governance, going back, opening again, standing idle, and forgetting what has ended."""

from pathlib import Path

import pytest

from tests.integration.boxes import (
    BID,
    GAS,
    carried,
    count_of,
    deploy_box,
    ended,
    key,
    mailbox,
    open_box,
    put,
    set_timeout,
    state,
    terms,
    watch,
)
from tests.integration.helpers import answers, fired_ids, perform, script, step, totals
from trailboss.execution.globalbox.market import clock_at
from trailboss.model.globalbox import standing_of
from trailboss.model.transactions import SetGovParam
from trailboss.testing import ActorHandle, LocalChain

QUOTAS = {
    "globalbox.max_fires_per_block": 2,
    "globalbox.max_fires_per_target": 2,
    "globalbox.hits_max": 3,
    "timers.max_cycles_per_fire": GAS,
    "timers.lane_cycles_per_block": GAS + 50_000,
}
W_AGE = 1 << 96


def vote(chain: LocalChain, name: str, value: int) -> None:
    """Vote a parameter of Globalbox, in a block of its own."""
    instruction = SetGovParam(b"system:globalbox:" + name.encode(), value.to_bytes(8, "big"))
    assert chain.system(instruction).ok


def clock(chain: LocalChain) -> int:
    """Return the age clock of the head's block."""
    kept = state(chain)
    return clock_at(kept, chain.height, chain.chain.params.globalbox.age_weight << 64)


@pytest.mark.spec("G-19")
def test_quotas_change_with_the_next_epoch() -> None:
    """The vote is at once in the state, and in force at the next multiple of four."""
    with open_box(globalbox__max_fires_per_target=1) as chain:
        actor = deploy_box(chain)
        for _ in range(8):
            set_timeout(actor, chain.height + 40 - chain.height % 4)
        chain.advance_to(chain.height + 40 - chain.height % 4 - 8)
        due = min(timer.height for timer in chain.timers())
        chain.advance_to(due + 1)
        vote(chain, "max_fires_per_target", 3)
        begins = (chain.height // 4 + 1) * 4
        chain.mine(5)
        per_block: dict[int, int] = {}
        for event in chain.events("timer.materialized"):
            per_block[event.block_height] = per_block.get(event.block_height, 0) + 1
        assert {count for height, count in per_block.items() if height < begins} == {1}
        assert per_block[begins] == 3


@pytest.mark.spec("G-19", "G-21")
def test_age_clock_follows_a_vote_in_mid_flight() -> None:
    """Up to the epoch it gains the old W_age a block, from then on the new one, whether blocks are mined or skipped."""
    with open_box() as chain:
        deploy_box(chain)
        chain.advance_to(9)
        vote(chain, "age_weight", 3 << 32)
        assert chain.height == 10
        assert standing_of(state(chain).clock) == W_AGE
        chain.advance_to(11)
        assert clock_at(state(chain), 11, W_AGE) == 11 * W_AGE
        chain.advance_to(40)
        assert state(chain).clock_height == 12
        assert clock_at(state(chain), 40, 3 * W_AGE) == (11 + 29 * 3) * W_AGE


@pytest.mark.spec("G-19")
def test_rules_are_those_of_the_height_when_the_chain_goes_back_over_idle_blocks() -> None:
    """A change that comes into force in a block in which nothing else happens is undone with it."""
    with open_box() as chain:
        vote(chain, "min_gas_limit", 20_000)
        begins = (chain.height // 4 + 1) * 4
        chain.advance_to(begins - 2)
        limits = []
        for height in (begins - 2, begins - 1, begins + 5):
            chain.advance_to(height)
            limits.append(chain.chain.rules().params.globalbox.min_gas_limit)
        chain.reorg(7)
        limits.append(chain.chain.rules().params.globalbox.min_gas_limit)
        assert limits == [10_000, 20_000, 20_000, 10_000]


def crowd(chain: LocalChain) -> ActorHandle:
    """Return a puppet with watches and timers enough to fill queue, mailbox and carried hits."""
    actor = deploy_box(chain)
    here, there = bytes(actor.address), key(actor, b"k")
    watching = step("set_state_watch", here, [there], b"heard", GAS)
    due = chain.height + 5
    again = script(step("set_state", b"k", b"again"))
    answers(perform(actor, *[watching] * 7, step("set_timeout", here, due, again, GAS)))
    answers(perform(actor, *[step("set_timeout", here, due, b"%d" % number, GAS, bid_fp=BID) for number in range(6)]))
    return actor


def go_on(chain: LocalChain, actor: ActorHandle) -> None:
    """Let things happen for some blocks: changes, cancels, a vote."""
    put(actor, b"k", b"1")
    first = next(timer for timer in chain.timers() if terms(chain, timer.timer_id).watch_keys)
    chain.mine(1)
    answers(perform(actor, step("cancel_timer", first.timer_id)))
    vote(chain, "age_weight", 5 << 32)
    put(actor, b"k", b"2")
    chain.mine(12)


@pytest.mark.spec("G-21")
def test_queue_mailbox_and_carried_hits_go_back_and_come_again() -> None:
    """A reorg in the midst of a crowd leaves no trace: the same blocks follow."""
    with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS) as chain:
        actor = crowd(chain)
        put(actor, b"k", b"0")
        chain.mine(1)
        assert state(chain).queued
        assert carried(chain)
        mark = chain.snapshot()
        go_on(chain, actor)
        hashes = [chain.block(height).hash for height in range(mark.height, chain.height + 1)]
        assert totals(chain)[1] > 0
        chain.revert(mark)
        chain.chain.check_invariants()
        go_on(chain, actor)
        assert [chain.block(height).hash for height in range(mark.height, chain.height + 1)] == hashes


@pytest.mark.spec("G-21")
def test_chain_goes_on_alike_when_it_is_opened_again(tmp_path: Path) -> None:
    """What the mechanism remembers is an index: a chain closed in the midst of a crowd builds the same blocks."""
    with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS) as chain:
        actor = crowd(chain)
        put(actor, b"k", b"0")
        go_on(chain, actor)
        expected = (chain.height, chain.block().hash)
    with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS, data_dir=tmp_path) as chain:
        actor = crowd(chain)
        put(actor, b"k", b"0")
    for _ in range(2):
        with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS, data_dir=tmp_path) as chain:
            chain.chain.check_invariants()
    with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS, data_dir=tmp_path) as chain:
        go_on(chain, chain.actor(actor.address))
        assert (chain.height, chain.block().hash) == expected


@pytest.mark.spec("G-21")
def test_state_root_tells_queues_apart() -> None:
    """Two chains that differ in a queued fire's bid alone have different roots."""
    roots = []
    for bid in (BID, 2 * BID):
        with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS) as chain:
            actor = crowd(chain)
            put(actor, b"k", b"0")
            first = next(timer for timer in chain.timers() if terms(chain, timer.timer_id).fire is not None)
            update = step("update_timer", bytes(actor.address), first.timer_id, bid_fp=bid)
            assert answers(perform(actor, update)) == [True]
            roots.append(chain.state_root)
    assert len(set(roots)) == 2


@pytest.mark.spec("G-21")
def test_skipping_blocks_is_building_them_one_by_one() -> None:
    """Epochs, the clock, collections and expiries end an idle stretch; all blocks come out alike."""
    hashes = []
    for builds in (False, True):
        with LocalChain(mechanism="globalbox", preset="minimal", params=QUOTAS) as chain:
            actor = deploy_box(chain)
            set_timeout(actor, chain.height + 3)
            watch(actor, key(actor, b"k"), expiry_height=chain.height + 20)
            vote(chain, "age_weight", 7)
            vote(chain, "max_timers_per_owner", 3)
            end = chain.height + 60
            while chain.height < end:
                if builds:
                    chain.chain.build()
                else:
                    chain.advance_to(end)
            hashes.append([chain.block(height).hash for height in range(end + 1)])
            assert (state(chain).first_ended, state(chain).next_ended) == (2, 2)
    assert hashes[0] == hashes[1]


@pytest.mark.spec("G-22")
def test_ended_timers_are_forgotten_oldest_first_and_in_bounded_numbers() -> None:
    """Without clean-up budget left, sixteen a block all the same; in the end nothing is left."""
    params = {
        "timers__gc_cycles_per_block": 200,
        "timers__gc_cycles_per_timer": 200,
        "timers__lane_cycles_per_block": 25_000_000,
    }
    with open_box(**params, globalbox__max_fires_per_block=100, globalbox__max_fires_per_target=100) as chain:
        actor = deploy_box(chain)
        here, due = bytes(actor.address), chain.height + 3
        setting = step("set_timeout", here, due, b"", 50_000)
        ids = answers(perform(actor, *[setting] * 20))
        chain.advance_to(due)
        assert len(fired_ids(chain)) == 20
        assert state(chain).next_ended == 20
        kept = chain.chain.params.globalbox.ended_kept_blocks
        chain.advance_to(due + kept)
        assert state(chain).first_ended == 0
        chain.mine(1)
        assert state(chain).first_ended == 16
        assert [ended(chain, timer_id) is None for timer_id in sorted(ids)].count(True) == 16
        chain.mine(1)
        assert (state(chain).first_ended, state(chain).next_ended) == (20, 20)
        assert [ended(chain, timer_id) for timer_id in ids] == [None] * 20


@pytest.mark.spec("G-22")
def test_expired_fires_leave_the_queue_within_the_clean_up_budget() -> None:
    """One a block, the earliest expiry first; those left over are not delivered meanwhile."""
    quotas = {"globalbox__max_fires_per_block": 1, "globalbox__max_fires_per_target": 1}
    with open_box(**quotas, timers__gc_cycles_per_block=200, timers__gc_cycles_per_timer=200) as chain:
        actor = deploy_box(chain)
        here, due = bytes(actor.address), chain.height + 3
        settings = [step("set_timeout", here, due, b"", GAS, expiry_height=due + late) for late in (0, 2, 1, 0, 1)]
        ids = answers(perform(actor, *settings))
        chain.advance_to(due + 6)
        ends = [(event.timer_id, event.block_height - due) for event in chain.events("TimerExpired")]
        fired = fired_ids(chain)
        assert len(fired) + len(ends) == 5
        assert [height for _, height in ends] == sorted({height for _, height in ends})
        assert all(height > {0: 0, 1: 2, 2: 1, 3: 0, 4: 1}[ids.index(timer_id)] for timer_id, height in ends)
        assert (state(chain).queued, mailbox(chain), count_of(chain, actor)) == (0, [], 0)
