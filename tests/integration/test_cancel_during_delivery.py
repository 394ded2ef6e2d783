"""A fire that cancels a sibling of its own block, which has been classified and paid for already."""

import pytest

from tests.integration.helpers import events_about, fired_ids, max_cost, totals
from tests.integration.siblings import GAS_LIMIT, deploy_siblings, ran
from trailboss.model.timers import timer_id
from trailboss.testing import LocalChain

PAYER = 4


@pytest.mark.spec("F-32", "F-43", "F-57")
def test_pre_charge_returns_whole_when_an_earlier_fire_cancels_a_due_sibling(chain: LocalChain) -> None:
    """The sibling does not run, its payer gets back all that was taken, and it counts as cancelled."""
    payer = chain.accounts[PAYER]
    actor, ids = deploy_siblings(chain, (b"first=cancel:second",), payer=payer)
    before, burned = chain.balance(payer), chain.burned
    chain.mine(3)
    assert fired_ids(chain) == [ids[b"first"], ids[b"third"]]
    assert ran(actor) == [b"first", b"third"]
    first, third = chain.receipts(chain.height)
    cancelled, fired = first.events
    assert (cancelled.name, cancelled.emitter, cancelled.timer_id) == (
        "timer.cancelled",
        actor.address,
        ids[b"second"],
    )
    assert cancelled.data == {"timer_id": ids[b"second"], "refund": max_cost(GAS_LIMIT)}
    assert fired.name == "timer.fired"
    assert chain.balance(payer) == before - first.fee_paid - third.fee_paid
    assert chain.burned == burned + first.fee_burned + third.fee_burned
    assert events_about(chain, ids[b"second"]) == ["timer.scheduled", "timer.cancelled"]
    assert chain.timers() == []
    assert totals(chain) == (3, 2, 0, 0, 1)


@pytest.mark.spec("F-32", "F-33")
@pytest.mark.parametrize("end", [b"raise", b"spin"])
def test_sibling_runs_when_the_fire_that_cancelled_it_fails(chain: LocalChain, end: bytes) -> None:
    """The cancellation goes with the frame that made it, and so does its refund."""
    payer = chain.accounts[PAYER]
    actor, ids = deploy_siblings(chain, (b"first=cancel:second " + end,), payer=payer)
    before = chain.balance(payer)
    chain.mine(3)
    assert fired_ids(chain) == [ids[b"first"], ids[b"second"], ids[b"third"]]
    assert ran(actor) == [b"second", b"third"]
    assert chain.balance(payer) == before - sum(receipt.fee_paid for receipt in chain.receipts(chain.height))
    assert chain.events("timer.cancelled") == []
    assert totals(chain) == (3, 3, 0, 0, 0)


@pytest.mark.spec("F-33")
def test_sibling_runs_when_only_a_failed_nested_call_cancelled_it(chain: LocalChain) -> None:
    """The outer frame catches the failure and commits; the cancellation was the inner frame's."""
    actor, ids = deploy_siblings(chain, (b"first=try:cancel/second",))
    chain.mine(3)
    assert actor.storage[b"caught"] == b"pvm_error"
    assert fired_ids(chain) == list(ids.values())
    assert totals(chain) == (3, 3, 0, 0, 0)


@pytest.mark.spec("F-57")
def test_sibling_is_cancelled_once_when_asked_twice_after_a_failed_attempt(chain: LocalChain) -> None:
    """First in a nested call that fails, then twice for good: one event, one refund."""
    payer = chain.accounts[PAYER]
    _, ids = deploy_siblings(chain, (b"first=try:cancel/second cancel:second cancel:second",), payer=payer)
    before = chain.balance(payer)
    chain.mine(3)
    assert fired_ids(chain) == [ids[b"first"], ids[b"third"]]
    assert [event.data["refund"] for event in chain.events("timer.cancelled")] == [max_cost(GAS_LIMIT)]
    assert chain.balance(payer) == before - sum(receipt.fee_paid for receipt in chain.receipts(chain.height))


@pytest.mark.spec("F-57")
def test_two_fires_may_cancel_one_sibling_when_it_is_still_to_run(chain: LocalChain) -> None:
    """The second finds it gone."""
    _, ids = deploy_siblings(chain, (b"first=cancel:third", b"second=cancel:third"))
    chain.mine(3)
    assert fired_ids(chain) == [ids[b"first"], ids[b"second"]]
    assert len(chain.events("timer.cancelled")) == 1
    assert totals(chain) == (3, 2, 0, 0, 1)


@pytest.mark.spec("F-15", "F-50")
def test_nothing_is_cancelled_when_the_sibling_or_the_timer_itself_has_run(chain: LocalChain) -> None:
    """A timer that is running or has run is gone: cancelling or extending it is a call without effect."""
    plans = (b"first=cancel:first extend:first", b"second=cancel:first extend:first")
    actor, ids = deploy_siblings(chain, plans)
    chain.mine(3)
    assert fired_ids(chain) == list(ids.values())
    assert ran(actor) == [b"first", b"second", b"third"]
    assert chain.events("timer.cancelled") == chain.events("timer.extended") == []
    assert totals(chain) == (3, 3, 0, 0, 0)


@pytest.mark.spec("F-42")
def test_extension_has_no_effect_when_the_sibling_is_already_paid_for(chain: LocalChain) -> None:
    """It has left the store with its classification: there is nothing to extend, and it runs in its turn."""
    actor, ids = deploy_siblings(chain, (b"first=extend:second",))
    chain.mine(3)
    assert fired_ids(chain) == list(ids.values())
    assert chain.events("timer.extended") == []
    assert actor.timers() == []


@pytest.mark.spec("F-13")
def test_cancel_is_refused_when_the_due_timer_belongs_to_another_actor(chain: LocalChain) -> None:
    """A pre-charged timer is no easier to remove than a live one."""
    attacker, _ = deploy_siblings(chain, (), labels=b"")
    victim, _ = deploy_siblings(chain, (), labels=b"")
    height = chain.height + 5
    doomed = timer_id(victim.address, height, b"victim", 0)
    attacker.call("plan", b"attack=cancel-foreign:" + doomed.hex().encode(), sender=chain.accounts[0], check=True)
    with chain.one_block():
        attacker.call("arm", b"attack", sender=chain.accounts[4])
        victim.call("arm", b"victim", sender=chain.accounts[5])
    assert [timer.timer_id for timer in chain.timers(height=height)][1:] == [doomed]
    chain.advance_to(height)
    assert attacker.storage[b"caught"] == b"unauthorized_timer"
    assert ran(victim) == [b"victim"]
    assert len(fired_ids(chain)) == 2
    assert chain.events("timer.cancelled") == []
