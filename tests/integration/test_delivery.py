"""The end of a block: after the transactions, classified in order, charged, run, settled."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    CBY,
    FIRE_CELLS,
    FRAME_BASE,
    FUNDS,
    answers,
    deploy_puppet,
    fired_ids,
    fires,
    max_cost,
    perform,
    schedule,
    script,
    step,
)
from trailboss.model.blocks import Origin
from trailboss.model.transactions import UpgradeActor
from trailboss.primitives.octets import ZERO_HASH
from trailboss.testing import LocalChain

NOTES_ITS_CONTEXT = """
def arm(payload):
    return pvm_host.schedule_timer_ex(
        pvm_host.block_height() + 4, payload, fee_payer=pvm_host.context()["sender"], gas_limit=99_999
    )


def handle_timer(payload):
    context = pvm_host.context()
    for name in ("sender", "actor_addr", "tx_hash"):
        pvm_host.set_state(name.encode(), context[name])
    pvm_host.set_state(b"block_height", str(context["block_height"]).encode())
    pvm_host.set_state(b"payload", payload)
"""


@pytest.mark.spec("F-45")
def test_fire_has_the_identity_of_its_actor_when_it_runs(chain: LocalChain) -> None:
    """Origin hash zero, the actor as sender, the payload as given; the receipt says the same."""
    actor = chain.deploy(NOTES_ITS_CONTEXT, sender=chain.accounts[0])
    armed = actor.call("arm", b"tick", sender=chain.accounts[3], check=True)
    chain.mine(4)
    assert dict(actor.storage) == {
        b"sender": actor.address,
        b"actor_addr": actor.address,
        b"tx_hash": bytes(32),
        b"block_height": str(chain.height).encode(),
        b"payload": b"tick",
    }
    (record,) = chain.block().receipts
    assert (record.origin, record.origin_hash) == (Origin.TIMER, ZERO_HASH)
    assert (record.sender, record.actor, record.payer) == (actor.address, actor.address, chain.accounts[3].address)
    assert record.reserved == max_cost(99_999)
    assert record.timer_id == armed.return_value


@pytest.mark.spec("F-45", "F-64")
def test_fire_ends_at_its_cycles_limit_when_its_handler_never_does(chain: LocalChain) -> None:
    """The limit is the timer's own gas limit, used up to the last cycle."""
    actor = deploy_puppet(chain)
    schedule(actor, chain.height + 3, script(step("spin")), gas_limit=43_210)
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.status, receipt.cycles_used) == ("reverted", 43_210)
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1005, "out_of_cycles")
    assert receipt.error.context["limit"] == 43_210


STORES_AS_TOLD = """
def arm(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 2, payload)


def handle_timer(payload):
    pvm_host.set_state(b"k", bytes(int(payload)))
"""


@pytest.mark.spec("F-45")
@pytest.mark.parametrize(("size", "status"), [(FIRE_CELLS - 1, "ok"), (FIRE_CELLS, "reverted")])
def test_fire_has_the_configured_cells_when_it_stores_much(chain: LocalChain, size: int, status: str) -> None:
    """A slot name of one byte and its value fill the limit exactly, or are one cell too many."""
    actor = chain.deploy(STORES_AS_TOLD, sender=chain.accounts[0], value=FUNDS)
    actor.call("arm", b"%d" % size, sender=chain.accounts[0], check=True)
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.status, receipt.cells_used) == (status, FIRE_CELLS)
    assert (receipt.error is None) == (status == "ok")
    if receipt.error is not None:
        assert (receipt.error.code, receipt.error.slug) == (1006, "out_of_cells")
        line = 'line 7, in handle_timer: pvm_host.set_state(b"k", bytes(int(payload)))'
        assert receipt.error.context == {"used": FIRE_CELLS, "limit": FIRE_CELLS, "traceback": line}
    assert (b"k" in actor.storage) == (status == "ok")


@pytest.mark.spec("F-40")
def test_fire_sees_what_the_transactions_of_its_block_left(chain: LocalChain) -> None:
    """A timer due in a block runs after every transaction in it, whoever sent them."""
    source = """
def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")


def write(payload):
    pvm_host.set_state(b"last", payload)


def handle_timer(payload):
    pvm_host.set_state(b"seen", pvm_host.get_state(b"last"))
    pvm_host.set_state(b"last", b"fire")
"""
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    actor.call("arm", sender=chain.accounts[0], check=True)
    with chain.one_block():
        actor.call("write", b"one", sender=chain.accounts[1])
        actor.call("write", b"two", sender=chain.accounts[2])
    assert dict(actor.storage) == {b"seen": b"two", b"last": b"fire"}
    assert [receipt.origin for receipt in chain.receipts(chain.height)] == ["transaction", "transaction", "timer"]


@pytest.mark.spec("F-40", "F-53")
def test_transaction_may_cancel_a_timer_in_the_very_block_in_which_it_is_due(chain: LocalChain) -> None:
    """Transactions come first, so it is never too late for them; nothing was charged yet."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, chain.height + 2)
    purse = actor.balance
    answers(perform(actor, step("cancel_timer", timer_id)))
    assert fired_ids(chain) == []
    assert actor.balance == purse


@pytest.mark.spec("F-47")
def test_timer_waits_for_the_next_block_when_a_transaction_creates_it(chain: LocalChain) -> None:
    """Scheduled for the next height in block h, it fires in h + 1 and not in h."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, chain.height + 2)
    assert fired_ids(chain) == []
    assert chain.block().receipts[0].origin is Origin.TRANSACTION
    chain.mine()
    assert fired_ids(chain, since=chain.height) == [timer_id]


@pytest.mark.spec("F-47")
def test_timer_waits_for_the_next_block_when_a_fire_creates_it(chain: LocalChain) -> None:
    """A chain of handlers, each scheduling the next at the nearest height, moves one block at a time."""
    source = """
def handle_timer(payload):
    try:
        pvm_host.schedule_timer(pvm_host.block_height(), b"now")
    except pvm_host.HostError as error:
        pvm_host.set_state(b"refused", error.name.encode())
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, b"next", gas_limit=200_000)


def arm(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, b"first", gas_limit=200_000)
"""
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    actor.call("arm", sender=chain.accounts[0], check=True)
    start = chain.height
    for turn in range(1, 6):
        chain.mine()
        assert len(fired_ids(chain, since=chain.height)) == 1
        assert [timer.height for timer in chain.timers()] == [start + turn + 1]
    assert actor.storage[b"refused"] == b"invalid_input"


@pytest.mark.spec("F-41", "F-42", "F-43", "F-51", "F-52")
def test_due_timers_are_classified_in_order_when_some_are_dead(chain: LocalChain) -> None:
    """Expired before funds, funds before the lane, and what earlier ones reserve counts for later ones."""
    payer = chain.accounts[6]
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=max_cost(100_000) + max_cost(50_000) - 1)
    height = chain.height + 20
    runs = schedule(poor, height, b"runs", gas_limit=100_000)
    expired = schedule(poor, height, b"expired", expires_at=height - 1)
    unfunded = schedule(poor, height, b"unfunded", gas_limit=50_000)
    sponsored = schedule(poor, height, b"sponsored", sender=payer, fee_payer=bytes(payer.address), gas_limit=50_000)
    elsewhere = schedule(rich, height, b"elsewhere", gas_limit=50_000)
    chain.advance_to(height)
    assert fired_ids(chain) == [runs, sponsored, elsewhere]
    assert [(event.name, event.timer_id) for event in chain.events(since=height) if event.name[0] == "T"] == [
        ("TimerExpired", expired),
        ("TimerCancelledInsufficientFunds", unfunded),
    ]
    assert chain.events("TimerExpired")[0].data == {
        "timer_id": expired,
        "expires_at": height - 1,
        "current_height": height,
    }
    # The first one's pre-charge counts although most of it returns within the block.
    assert chain.events("TimerCancelledInsufficientFunds")[0].data == {
        "timer_id": unfunded,
        "fee_payer": bytes(poor.address),
        "required": max_cost(50_000),
        "available": max_cost(50_000) - 1,
    }
    assert chain.timers() == []
    assert chain.chain.queue.next_due_height() is None


@pytest.mark.spec("F-43", "F-63")
def test_all_are_pre_charged_when_the_first_one_runs(chain: LocalChain) -> None:
    """A fire sees its payer's balance with the pre-charges of its siblings taken, and gives nothing of them away."""
    source = """
def arm(payload):
    for label in (b"a", b"b"):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 2, label, gas_limit=100_000)


def handle_timer(payload):
    if payload == b"a":
        try:
            pvm_host.transfer_balance(bytes(19) + b"\\x77", 20_000_000_000)
        except pvm_host.HostError as error:
            pvm_host.set_state(b"refused", str(error).encode()[:60])
"""
    # Enough for both pre-charges and 10 CBY: a transfer of 20 would eat into what is reserved.
    actor = chain.deploy(source, sender=chain.accounts[0], value=2 * max_cost(100_000) + 10 * CBY)
    actor.call("arm", sender=chain.accounts[0], check=True)
    chain.mine(2)
    assert b"refused" in actor.storage
    first, second = chain.receipts(chain.height)
    assert (first.status, second.status) == ("ok", "ok")
    assert actor.balance == 2 * max_cost(100_000) + 10 * CBY - first.fee_paid - second.fee_paid


@pytest.mark.spec("F-46", "F-60", "F-63")
def test_fire_is_paid_by_its_payer_alone_when_somebody_else_scheduled_it(chain: LocalChain) -> None:
    """Nothing of the scheduling transaction's gas carries over, and its sender pays for that transaction only."""
    caller, actor = chain.accounts[2], deploy_puppet(chain)
    before = chain.balance(caller)
    receipt = perform(actor, step("schedule_timer", chain.height + 4, b""), sender=caller)
    assert chain.balance(caller) == before - receipt.fee_paid
    assert actor.balance == FUNDS
    after = chain.balance(caller)
    chain.mine(3)
    (fire,) = chain.receipts(chain.height)
    assert chain.balance(caller) == after
    assert fire.payer == actor.address
    assert actor.balance == FUNDS - fire.fee_paid
    assert fire.fee_paid + fire.refund == max_cost()


@pytest.mark.spec("F-50", "F-64")
def test_fire_is_a_revert_at_base_cost_when_its_actor_has_no_such_handler(chain: LocalChain) -> None:
    """A missing handler is neither a crash nor a reason to try again."""
    source = "def arm(payload):\n    return pvm_host.schedule_timer(pvm_host.block_height() + 2, b'')\n"
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    timer_id = actor.call("arm", sender=chain.accounts[0], check=True).return_value
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert receipt.timer_id == timer_id
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1223, "handler_not_found")
    assert "handle_timer" in receipt.error.what
    assert FRAME_BASE <= receipt.cycles_used < FRAME_BASE + 1_000
    assert receipt.cells_used == 0
    assert receipt.fee_paid == receipt.cycles_used * BASEFEE
    chain.mine(5)
    assert fired_ids(chain) == [timer_id]


@pytest.mark.spec("F-50")
def test_fire_runs_the_new_code_when_the_actor_was_upgraded_meanwhile(chain: LocalChain) -> None:
    """Timers belong to the actor, not to its code; a handler that the new code lacks is a revert."""
    actor = deploy_puppet(chain)
    first = schedule(actor, chain.height + 4)
    second = schedule(actor, chain.height + 8, b'{"_handler":"perform","_payload":"W10="}')
    new = b"def handle_timer(payload):\n    pvm_host.set_state(b'new', b'code')\n"
    assert chain.system(UpgradeActor(actor.address, new)).ok
    chain.mine(9)
    assert fired_ids(chain) == [first, second]
    assert actor.storage[b"new"] == b"code"
    statuses = [receipt.status for receipt in chain.receipts() if receipt.origin == "timer"]
    assert statuses == ["ok", "reverted"]


@pytest.mark.spec("F-15", "F-50")
def test_reverted_fire_is_not_repeated_when_later_blocks_have_room(chain: LocalChain) -> None:
    """Its writes are gone, its timer too; one event says that it reverted and what it cost."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, chain.height + 3, script(step("raise", "never works")))
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert receipt.error.slug == "pvm_error"
    assert "never works" in str(receipt.error)
    assert fires(actor) == 0
    (event,) = receipt.events
    assert (event.name, event.emitter, event.timer_id) == ("timer.fired", actor.address, timer_id)
    assert event.data == {
        "timer_id": timer_id,
        "reverted": True,
        "cycles_used": receipt.cycles_used,
        "cells_used": receipt.cells_used,
        "fee_payer": bytes(actor.address),
        "fee_paid": receipt.fee_paid,
        "refund": receipt.refund,
        "blocks_deferred": 0,
        "tip": 0,
        "lane_burned": 0,
    }
    chain.mine(10)
    assert fired_ids(chain) == [timer_id]
