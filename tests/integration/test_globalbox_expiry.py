"""Timers of Globalbox that end by their expiry: in its order, within the clean-up budget, in the way of none."""

from pathlib import Path

import pytest

from tests.integration.boxes import BID, GAS, count_of, deploy_box, ended, key, open_box, put, set_timeout, watch
from tests.integration.helpers import answers, events_about, fired_ids, fires, perform, step
from trailboss.chain.replay import verify_chain
from trailboss.model.globalbox import TimerStatus
from trailboss.model.transactions import MoveTimer
from trailboss.testing import ActorHandle, LocalChain

FAR = 2_000_000
A_STORM = 2_000
A_TRANSACTION = 250
ROOMY = {
    "globalbox__max_timers_per_owner": 10_000,
    "globalbox__max_timers_per_target": 10_000,
    "limits__block_cycles_max": 10**9,
    "limits__block_cells_max": 10**8,
}
"""Blocks in which a storm can be set, by one owner."""


def expired_at(chain: LocalChain) -> list[tuple[int, bytes]]:
    """Return block and timer of every end by expiry, in order."""
    return [(event.block_height, event.timer_id) for event in chain.events("TimerExpired")]


def brew(actor: ActorHandle, count: int, call: str, trigger: object, **keywords: object) -> list[bytes]:
    """Set many timers alike, in as many blocks as it takes, and return their ids."""
    setting = step(call, bytes(actor.address), trigger, b"", GAS, **keywords)
    sizes = [min(A_TRANSACTION, count - done) for done in range(0, count, A_TRANSACTION)]
    limits = {"cycles_limit": 10**8, "cells_limit": 10**6}
    return [each for size in sizes for each in answers(perform(actor, *[setting] * size, **limits))]


@pytest.mark.spec("G-22")
def test_height_timer_ends_when_its_expiry_passes_before_its_height() -> None:
    """It has one event and is remembered as completed, its owner's and target's quotas are free, a name can follow."""
    with open_box(globalbox__max_timers_per_owner=3, globalbox__ended_kept_blocks=5) as chain:
        actor = deploy_box(chain)
        last = chain.height + 13
        ids = [set_timeout(actor, FAR, expiry_height=last, client_nonce=b"%d" % number) for number in range(3)]
        chain.advance_to(last)
        assert (len(chain.timers()), count_of(chain, actor)) == (3, 3)
        chain.advance_to(last + 1)
        assert (chain.timers(), count_of(chain, actor)) == ([], 0)
        assert expired_at(chain) == [(last + 1, timer_id) for timer_id in ids]
        for timer_id in ids:
            assert events_about(chain, timer_id) == ["timer.scheduled", "TimerExpired"]
            assert ended(chain, timer_id).status == TimerStatus.COMPLETED
        set_timeout(actor, chain.height + 9)
        chain.check_invariants()


@pytest.mark.spec("G-22")
def test_expired_timers_end_by_expiry_within_the_clean_up_budget() -> None:
    """The earliest expiry goes first, whatever the heights, watches and height timers alike; the rest follows."""
    with open_box(timers__gc_cycles_per_block=400) as chain:
        actor = deploy_box(chain)
        last = chain.height + 12
        third, fifth = (set_timeout(actor, height, expiry_height=last) for height in (last + 5, FAR))
        second = watch(actor, key(actor, b"k"), expiry_height=last)
        fourth = set_timeout(actor, last + 9, expiry_height=last)
        first = set_timeout(actor, FAR + 1, expiry_height=last - 1)
        chain.advance_to(last + 9)
        assert expired_at(chain) == [
            (last, first),
            (last + 1, second),
            (last + 1, third),
            (last + 2, fourth),
            (last + 2, fifth),
        ]


@pytest.mark.spec("G-21", "G-22")
def test_blocks_are_the_same_when_expiries_are_mined_skipped_reopened_or_taken_back(tmp_path: Path) -> None:
    """An expiry is a height at which something happens, whatever a node remembers by then."""
    ways: dict[str, list[bytes]] = {}
    for way in ("mined", "skipped", "reopened", "taken back"):
        folder = tmp_path / way.replace(" ", "-")
        with LocalChain(mechanism="globalbox", preset="minimal", data_dir=folder) as chain:
            actor = deploy_box(chain)
            address = actor.address
            for distance in (9, 40, 300):
                set_timeout(actor, FAR, expiry_height=chain.height + distance)
            end = chain.height + 320
            if way == "mined":
                chain.mine(end - chain.height)
            elif way == "reopened":
                chain.advance_to(20)
            else:
                chain.advance_to(end)
            if way == "taken back":
                chain.reorg(315)
                assert len(chain.timers()) == 3
        with LocalChain(mechanism="globalbox", preset="minimal", data_dir=folder) as chain:
            chain.advance_to(end)
            assert (chain.timers(), count_of(chain, chain.actor(address))) == ([], 0)
            chain.check_invariants()
            verify_chain(chain.chain)
            ways[way] = [bytes(chain.block(height).hash) for height in range(1, end + 1)]
    assert len({tuple(hashes) for hashes in ways.values()}) == 1


@pytest.mark.spec("F-75", "G-22")
@pytest.mark.parametrize("kind", ["heights", "watches"])
@pytest.mark.parametrize("lag", [0, 1])
def test_storm_of_expired_timers_delays_no_live_one(kind: str, lag: int) -> None:
    """Thousands end at the height of a live timer that was set after them; few join and few are removed in a block."""
    few = {"globalbox__joined_max": 10, "timers__gc_cycles_per_block": 2_000}
    with open_box(**ROOMY, **few) as chain:
        actor, other = deploy_box(chain), deploy_box(chain, chain.accounts[1])
        height = chain.height + 2 * A_STORM // A_TRANSACTION
        if kind == "heights":
            brew(actor, A_STORM, "set_timeout", height, expiry_height=height - 1)
        else:
            brew(actor, A_STORM, "set_state_watch", [key(actor, b"k")], expiry_height=height - 1)
        live = set_timeout(other, height + lag)
        chain.advance_to(height + lag)
        assert fired_ids(chain) == [live]
        assert len(chain.timers()) == A_STORM - 10 * (1 + lag)


@pytest.mark.spec("F-75", "G-22")
def test_storm_of_unfunded_fires_delays_no_live_one() -> None:
    """Thousands of fires of an owner that has spent its money stand before a live one that was set last."""
    with open_box(**ROOMY) as chain:
        actor, other = deploy_box(chain), deploy_box(chain, chain.accounts[1])
        height = chain.height + 2 * A_STORM // A_TRANSACTION
        brew(actor, A_STORM, "set_timeout", height, bid_fp=BID)
        live = set_timeout(other, height)
        rest = chain.balance(actor.address)
        answers(perform(actor, step("transfer_balance", bytes(other.address), rest)))
        chain.advance_to(height)
        assert fired_ids(chain) == [live]
        assert (len(chain.events("TimerCancelledInsufficientFunds")), chain.timers()) == (A_STORM, [])


@pytest.mark.spec("F-75", "G-22")
@pytest.mark.parametrize("death", ["expiry", "poverty"])
def test_crowd_that_dies_before_it_has_joined_delays_no_live_timer(death: str) -> None:
    """Ten join in a block; of thousands of one height the others expire or cannot be paid, and the last one can."""
    few = {"globalbox__joined_max": 10, "timers__gc_cycles_per_block": 2_000}
    with open_box(**ROOMY, **few) as chain:
        actor, other = deploy_box(chain), deploy_box(chain, chain.accounts[1])
        height = chain.height + 2 * A_STORM // A_TRANSACTION
        brew(actor, A_STORM, "set_timeout", height, expiry_height=height if death == "expiry" else None)
        live = set_timeout(other, height)
        if death == "poverty":
            rest = chain.balance(actor.address)
            answers(perform(actor, step("transfer_balance", bytes(other.address), rest)))
        chain.advance_to(height + 1)
        assert live in fired_ids(chain)
        assert len(chain.timers()) > A_STORM - 50


@pytest.mark.spec("G-02")
def test_timer_that_waits_to_expire_can_be_cancelled_updated_and_moved_to_where_it_fires() -> None:
    """Until its end it is a timer like any other; a development chain may bring it forward."""
    with LocalChain(mechanism="globalbox", preset="minimal") as chain:
        actor = deploy_box(chain)
        last = chain.height + 20
        cancelled, moved, left = (set_timeout(actor, FAR, expiry_height=last) for _ in range(3))
        (is_cancelled,) = answers(perform(actor, step("cancel_timer", bytes(actor.address), cancelled)))
        (is_updated,) = answers(perform(actor, step("update_timer", bytes(actor.address), moved, b"brought forward")))
        assert (is_cancelled, is_updated) == (True, True)
        chain.system(MoveTimer(moved, last - 2), check=True)
        chain.advance_to(last + 1)
        assert (fired_ids(chain), fires(actor), actor.storage[b"payload"]) == ([moved], 1, b"brought forward")
        assert expired_at(chain) == [(last + 1, left)]
        chain.check_invariants()


@pytest.mark.spec("G-22")
def test_watch_that_hears_of_a_change_in_its_last_block_is_still_queued() -> None:
    """It expires after its last height, and what is in the mailbox by then runs."""
    with open_box() as chain:
        actor = deploy_box(chain)
        last = chain.height + 2
        timer_id = watch(actor, key(actor, b"k"), expiry_height=last)
        put(actor, b"k", b"1")
        assert (chain.height, fires(actor)) == (last, 1)
        put(actor, b"k", b"2")
        assert (fires(actor), expired_at(chain)) == (1, [(last + 1, timer_id)])
