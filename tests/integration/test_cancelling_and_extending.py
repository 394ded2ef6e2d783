"""cancel_timer and extend_timer from actor code: for the owner alone, and harmless when the timer is gone."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    answers,
    assert_refused_call,
    deploy_puppet,
    events_about,
    fired_ids,
    only_event,
    perform,
    schedule,
    step,
    totals,
    world,
)
from trailboss.testing import LocalChain

TTL = 2_592_000


@pytest.mark.spec("F-13", "F-53", "F-42")
def test_timer_is_gone_when_its_owner_cancels_it(chain: LocalChain) -> None:
    """It leaves store, index and count, never fires, and one event tells of it."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100, b"x")
    answers(perform(actor, step("cancel_timer", timer_id)))
    assert chain.timers() == []
    assert chain.chain.queue.height_of(timer_id) is None
    event = only_event(chain, "timer.cancelled")
    assert (event.emitter, event.timer_id) == (actor.address, timer_id)
    assert event.data == {"timer_id": timer_id, "refund": 0}
    chain.advance_to(110)
    assert fired_ids(chain) == []
    assert events_about(chain, timer_id) == ["timer.scheduled", "timer.cancelled"]
    assert totals(chain) == (1, 0, 0, 0, 1)


@pytest.mark.spec("F-13")
def test_cancel_is_refused_when_the_timer_belongs_to_another_actor(chain: LocalChain) -> None:
    """Neither code of the same deployer nor of the same source may touch it; nothing but the fee remains."""
    owner, other = deploy_puppet(chain), deploy_puppet(chain)
    timer_id = schedule(owner, 100, b"mine")
    caller = chain.accounts[0]
    before = world(chain, without=(caller.address,))
    refused = perform(other, step("cancel_timer", timer_id))
    words = f"timer 0x{timer_id.hex()} belongs to {owner.address}, not to {other.address}"
    assert_refused_call(refused, 1503, "unauthorized_timer", words)
    assert world(chain, without=(caller.address,)) == before
    chain.advance_to(100)
    assert fired_ids(chain) == [timer_id]


@pytest.mark.spec("F-13", "F-30")
def test_cancel_leaves_the_timer_when_its_refusal_is_caught(chain: LocalChain) -> None:
    """Catching the refusal does not make it happen."""
    owner, other = deploy_puppet(chain), deploy_puppet(chain)
    timer_id = schedule(owner, 100)
    ((_, name),) = answers(perform(other, step("attempt", step("cancel_timer", timer_id))))
    assert name == "unauthorized_timer"
    assert [timer.timer_id for timer in owner.timers()] == [timer_id]
    assert chain.events("timer.cancelled") == []


@pytest.mark.spec("F-13", "F-53")
@pytest.mark.parametrize("call", ["cancel_timer", "extend_timer"])
def test_nothing_happens_when_the_timer_is_gone(chain: LocalChain, call: str) -> None:
    """One that fired, one that was cancelled and one that never was: the call succeeds and leaves no event."""
    actor = deploy_puppet(chain)
    fired, cancelled = schedule(actor, chain.height + 3), schedule(actor, 100)
    answers(perform(actor, step("cancel_timer", cancelled)))
    chain.mine(5)
    for timer_id in (fired, cancelled, bytes(32)):
        arguments = (timer_id,) if call == "cancel_timer" else (timer_id, chain.height + 10)
        receipt = perform(actor, step(call, *arguments))
        assert answers(receipt) == [None]
        assert receipt.events == ()
    assert totals(chain) == (2, 1, 0, 0, 1)


@pytest.mark.spec("F-12")
def test_expiry_moves_when_the_owner_extends(chain: LocalChain) -> None:
    """Forwards and backwards; the height and the place in the order stay."""
    actor = deploy_puppet(chain)
    first = schedule(actor, 100, b"a", expires_at=50)
    second = schedule(actor, 100, b"b")
    answers(perform(actor, step("extend_timer", first, 400)))
    answers(perform(actor, step("extend_timer", second, 300)))
    assert [(timer.timer_id, timer.expires_at) for timer in chain.timers()] == [(first, 400), (second, 300)]
    assert [event.data for event in chain.events("timer.extended")] == [
        {"timer_id": first, "expires_at": 400},
        {"timer_id": second, "expires_at": 300},
    ]
    chain.advance_to(100)
    assert fired_ids(chain) == [first, second]


@pytest.mark.spec("F-12")
def test_extend_is_refused_when_the_timer_belongs_to_another_actor(chain: LocalChain) -> None:
    """The expiry stays as it was."""
    owner, other = deploy_puppet(chain), deploy_puppet(chain)
    timer_id = schedule(owner, 100, b"", expires_at=120)
    refused = perform(other, step("extend_timer", timer_id, 500))
    words = f"belongs to {owner.address}, not to {other.address}"
    assert_refused_call(refused, 1503, "unauthorized_timer", words)
    assert [timer.expires_at for timer in chain.timers()] == [120]


@pytest.mark.spec("F-56")
def test_extension_is_held_at_the_maximal_ttl_when_the_owner_asks_for_more(chain: LocalChain) -> None:
    """Up to the ceiling it is taken as given, above it it becomes the ceiling."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100)
    for asked, offset in ((TTL - 1, TTL - 1), (TTL, TTL), (TTL + 1, TTL), (2**63, TTL)):
        now = chain.height + 1
        answers(perform(actor, step("extend_timer", timer_id, now + asked)))
        assert [timer.expires_at for timer in chain.timers()] == [now + offset]
        assert chain.events("timer.extended")[-1].data == {"timer_id": timer_id, "expires_at": now + offset}


@pytest.mark.spec("F-56")
@pytest.mark.parametrize("offset", [0, -1])
def test_extension_is_refused_when_not_above_the_present_height(chain: LocalChain, offset: int) -> None:
    """One block further is enough; the present one is not."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100)
    now = chain.height + 1
    refused = perform(actor, step("extend_timer", timer_id, now + offset))
    assert_refused_call(refused, 1202, "invalid_input", f"new_expires_at is {now + offset}, outside {now + 1}..=")
    assert [timer.expires_at for timer in chain.timers()] == [now - 1 + TTL]
    now = chain.height + 1
    answers(perform(actor, step("extend_timer", timer_id, now + 1)))
    assert [timer.expires_at for timer in chain.timers()] == [now + 1]


@pytest.mark.spec("F-12", "F-52")
def test_timer_lives_on_when_extended_before_it_would_expire(chain: LocalChain) -> None:
    """A timer whose TTL ends before its height fires after all if its actor renews it in time."""
    actor = deploy_puppet(chain)
    renewed = schedule(actor, 30, b"r", expires_at=20)
    left = schedule(actor, 30, b"l", expires_at=20)
    answers(perform(actor, step("extend_timer", renewed, 30)))
    chain.advance_to(30)
    assert fired_ids(chain) == [renewed]
    assert events_about(chain, left)[-1] == "TimerExpired"


@pytest.mark.spec("F-53", "F-31")
def test_timer_can_be_cancelled_and_extended_in_the_transaction_that_schedules_it(chain: LocalChain) -> None:
    """Its events come in the order of the calls, and the sums hold."""
    source = """
def act(payload):
    doomed = pvm_host.schedule_timer(100, b"doomed")
    kept = pvm_host.schedule_timer(100, b"kept")
    pvm_host.extend_timer(kept, 123)
    pvm_host.cancel_timer(doomed)
    pvm_host.cancel_timer(doomed)
    return kept
"""
    actor = chain.deploy(source, sender=chain.accounts[0])
    receipt = actor.call("act", sender=chain.accounts[0], check=True)
    assert [event.name for event in receipt.events] == [
        "timer.scheduled",
        "timer.scheduled",
        "timer.extended",
        "timer.cancelled",
    ]
    assert [(timer.timer_id, timer.expires_at) for timer in chain.timers()] == [(receipt.return_value, 123)]
    assert totals(chain) == (2, 0, 0, 0, 1)


@pytest.mark.spec("F-60")
def test_caller_pays_for_cancelling_and_not_the_payer(chain: LocalChain) -> None:
    """No money moves but the caller's fee."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100)
    purse, caller = actor.balance, chain.balance(chain.accounts[0])
    receipt = perform(actor, step("cancel_timer", timer_id))
    assert actor.balance == purse
    assert chain.balance(chain.accounts[0]) == caller - receipt.fee_paid
    assert receipt.fee_paid == receipt.fee_burned == (receipt.cycles_used + receipt.cells_used) * BASEFEE
