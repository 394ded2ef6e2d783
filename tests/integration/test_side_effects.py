"""What scheduling and cancelling leave behind: all of it when the transaction commits, nothing when it does not."""

import pytest

from tests.integration.helpers import (
    answers,
    assert_refused_call,
    deploy_puppet,
    fired_ids,
    perform,
    schedule,
    script,
    step,
    totals,
    world,
)
from trailboss.testing import LocalChain

REFUSED_CALLS = [
    step("schedule_timer", 0, b""),
    step("schedule_timer_ex", 100, b"", fee_payer=b"\x07" * 20),
    step("schedule_timer_ex", 100, b"", fee_payer=bytes(20)),
    step("schedule_timer_ex", 100, b"", gas_limit=0),
    step("schedule_timer_ex", 100, b"", gas_limit=550_001),
    step("schedule_timer_ex", 100, b"", expires_at=1),
    step("schedule_timer_ex", 100, b"", expires_at=10_000_000),
]


@pytest.mark.spec("F-30", "F-33")
@pytest.mark.parametrize("refused", REFUSED_CALLS)
def test_transaction_reverts_when_a_schedule_is_refused(chain: LocalChain, refused: list[object]) -> None:
    """What came before the refused call in the same transaction is gone too."""
    actor = deploy_puppet(chain)
    kept = schedule(actor, 90)
    caller = chain.accounts[0]
    before = world(chain, without=(caller.address,))
    receipt = perform(
        actor,
        step("set_state", b"note", b"1"),
        step("schedule_timer", 100, b"fine"),
        step("cancel_timer", kept),
        refused,
        step("set_state", b"note", b"2"),
    )
    assert_refused_call(receipt, 1202, "invalid_input")
    assert world(chain, without=(caller.address,)) == before
    assert receipt.events == ()
    assert receipt.return_value == b""
    assert 0 < receipt.fee_paid == receipt.fee_burned


@pytest.mark.spec("F-30")
@pytest.mark.parametrize("refused", REFUSED_CALLS)
def test_transaction_goes_on_when_a_refusal_is_caught(chain: LocalChain, refused: list[object]) -> None:
    """Actor code sees code and name of the refusal; nothing of the refused call remains, all else does."""
    actor = deploy_puppet(chain)
    receipt = perform(
        actor,
        step("schedule_timer", 100, b"before"),
        step("attempt", refused),
        step("schedule_timer", 100, b"after"),
    )
    first, caught, second = answers(receipt)
    assert caught == [2, "invalid_input"]
    assert [(timer.timer_id, timer.sequence) for timer in chain.timers()] == [(first, 0), (second, 1)]
    assert [event.name for event in receipt.events] == ["timer.scheduled", "timer.scheduled"]
    assert totals(chain) == (2, 0, 0, 0, 0)


@pytest.mark.spec("F-31", "F-33")
@pytest.mark.parametrize("end", [step("raise", "on purpose"), step("spin")])
def test_nothing_is_scheduled_or_cancelled_when_the_transaction_fails(chain: LocalChain, end: list[object]) -> None:
    """Neither an exception nor exhaustion leaves a timer, a cancellation, an extension, a slot or an event."""
    actor = deploy_puppet(chain)
    live, other = schedule(actor, 90, b"live"), schedule(actor, 95, b"other")
    caller = chain.accounts[0]
    before = world(chain, without=(caller.address,))
    receipt = perform(
        actor,
        step("schedule_timer", 100, b"never"),
        step("cancel_timer", live),
        step("extend_timer", other, 1_000),
        step("set_state", b"k", b"v"),
        step("emit_event", "told", b"x"),
        end,
        cycles_limit=300_000,
    )
    assert receipt.status == "reverted"
    assert receipt.events == ()
    assert world(chain, without=(caller.address,)) == before
    chain.advance_to(101)
    assert fired_ids(chain) == [live, other]


@pytest.mark.spec("F-31")
def test_timer_is_visible_when_its_transaction_has_committed_and_not_before(chain: LocalChain) -> None:
    """While a block gathers transactions nothing is stored; with the block, all of it is."""
    actor = deploy_puppet(chain)
    with chain.one_block():
        perform(actor, step("schedule_timer", 100, b"a"))
        lost = perform(actor, step("schedule_timer", 100, b"b"), step("raise", "no"))
        perform(actor, step("schedule_timer", 100, b"c"))
        assert chain.timers() == []
    assert lost.status == "reverted"
    assert [(timer.payload, timer.sequence) for timer in chain.timers()] == [(b"a", 0), (b"c", 1)]


@pytest.mark.spec("F-33")
def test_callees_timers_are_gone_when_only_the_callee_fails(chain: LocalChain) -> None:
    """A caught failure of a nested call rolls back that call alone."""
    outer, inner = deploy_puppet(chain), deploy_puppet(chain)
    old = schedule(inner, 80, b"old")
    nested = script(step("schedule_timer", 100, b"inner"), step("cancel_timer", old), step("raise", "no"))
    receipt = perform(
        outer,
        step("schedule_timer", 100, b"outer"),
        step("attempt", step("call_actor", bytes(inner.address), "perform", nested, 200_000, 0)),
        step("set_state", b"k", b"v"),
    )
    assert answers(receipt)[1] == [1210, "pvm_error"]
    assert [(timer.actor, timer.payload) for timer in chain.timers()] == [
        (inner.address, b"old"),
        (outer.address, b"outer"),
    ]
    assert outer.storage[b"k"] == b"v"
