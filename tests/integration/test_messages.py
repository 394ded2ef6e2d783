"""Messages: the other deferred executions of a block, always after its timers, paid for by the actor that sent them."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    FUNDS,
    answers,
    assert_refused_call,
    deploy_puppet,
    only_event,
    perform,
    schedule,
    script,
    step,
)
from trailboss.testing import ActorHandle, LocalChain

LIMIT = 100_000
RESERVED = (LIMIT + LIMIT) * BASEFEE


def send(target: ActorHandle, payload: bytes = b"hi") -> list[object]:
    """Return the step that sends a message."""
    return step("send_message", bytes(target.address), payload)


def messages(actor: ActorHandle) -> int:
    """Return how many messages a puppet has handled."""
    return int(actor.storage.get(b"messages", b"0"))


@pytest.mark.spec("F-44", "F-40")
def test_timers_come_before_messages_when_a_block_has_both(chain: LocalChain) -> None:
    """Transactions, then fires, then messages; a message sent by a fire joins the same block's end."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    height = chain.height + 3
    calls = [step("schedule_timer_ex", height, script(send(target)), gas_limit=200_000) for _ in range(2)]
    answers(perform(actor, *calls))
    assert chain.height == height - 2
    chain.mine()
    perform(actor, send(target), send(target))
    assert [receipt.origin for receipt in chain.receipts(height)] == [
        "transaction",
        "timer",
        "timer",
        "message",
        "message",
        "message",
        "message",
    ]
    assert messages(target) == 4


@pytest.mark.spec("F-46")
def test_message_is_paid_by_its_sending_actor_and_touches_no_timers_money(chain: LocalChain) -> None:
    """Neither the target nor whoever sent the transaction pays for the delivery."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    caller = chain.accounts[0]
    before = chain.balance(caller)
    receipt = perform(actor, send(target))
    _, delivery = chain.receipts(chain.height)
    assert (delivery.origin, delivery.status, delivery.payer) == ("message", "ok", actor.address)
    assert chain.balance(caller) == before - receipt.fee_paid
    assert actor.balance == FUNDS - delivery.fee_paid
    assert target.balance == FUNDS
    record = chain.block().receipts[1]
    assert (record.reserved, record.origin_hash, record.sender) == (RESERVED, bytes(32), actor.address)
    sent = only_event(chain, "message.sent")
    assert sent.data == {"target": bytes(target.address), "size": 2}


def test_message_waits_for_the_next_block_when_a_message_sends_it(chain: LocalChain) -> None:
    """A ping-pong moves one hop a block."""
    one, two = deploy_puppet(chain), deploy_puppet(chain)
    perform(one, send(two, script(send(one, script(send(two, b"end"))))))
    seen = [(messages(one), messages(two))]
    for _ in range(3):
        chain.mine()
        seen.append((messages(one), messages(two)))
    assert seen == [(0, 1), (1, 1), (1, 2), (1, 2)]


def test_message_is_gone_when_the_transaction_that_sent_it_fails(chain: LocalChain) -> None:
    """A rolled-back frame sends nothing."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    perform(actor, send(target), step("raise", "no"))
    chain.mine()
    assert messages(target) == 0
    assert actor.balance == FUNDS


@pytest.mark.parametrize(("missing", "delivered"), [(0, 1), (1, 0)])
def test_message_is_dropped_when_its_sender_cannot_pay(chain: LocalChain, missing: int, delivered: int) -> None:
    """With exactly what a delivery reserves it is delivered; with a unit less an event says why it was not."""
    actor, target = deploy_puppet(chain, value=RESERVED - missing), deploy_puppet(chain)
    perform(actor, send(target))
    chain.mine(2)
    assert messages(target) == delivered
    dropped = chain.events("message.dropped")
    assert [event.data for event in dropped] == [
        {
            "sender": bytes(actor.address),
            "target": bytes(target.address),
            "required": RESERVED,
            "available": RESERVED - 1,
        }
    ] * missing


def test_message_reverts_when_its_target_is_no_actor_or_fails(chain: LocalChain) -> None:
    """The sender pays for what was used; nothing of the delivery remains, and it is not repeated."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    nobody = step("send_message", bytes(chain.accounts[9].address), b"x")
    perform(actor, nobody, send(target, script(step("set_state", b"k", b"v"), step("raise", "no"))))
    reverted = [receipt for receipt in chain.receipts(chain.height) if receipt.origin == "message"]
    assert [receipt.error.code for receipt in reverted if receipt.error is not None] == [1220, 1210]
    assert all(receipt.payer == actor.address and receipt.fee_paid > 0 for receipt in reverted)
    assert dict(target.storage) == {}
    chain.mine(3)
    assert len([receipt for receipt in chain.receipts() if receipt.origin == "message"]) == 2


@pytest.mark.trailboss(params={"limits.messages_delivered_max": 2, "limits.messages_pending_max": 5})
def test_messages_wait_in_order_when_a_block_delivers_fewer(chain: LocalChain) -> None:
    """Two a block, oldest first; a sixth waiting message is refused."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    notes = [send(target, script(step("set_state", b"last", b"%d" % number))) for number in range(5)]
    refused = perform(actor, *notes, send(target))
    words = f"5 messages wait for {target.address} and the limit is 5"
    assert_refused_call(refused, 1226, "mailbox_full", words)
    answers(perform(actor, *notes))
    seen = [target.storage[b"last"]]
    for _ in range(2):
        chain.mine()
        seen.append(target.storage[b"last"])
    assert seen == [b"1", b"3", b"4"]
    assert messages(target) == 5


@pytest.mark.trailboss(params={"limits.message_payload_bytes_max": 10})
@pytest.mark.parametrize(("size", "status"), [(10, "ok"), (11, "reverted")])
def test_message_is_refused_when_its_payload_is_too_long(chain: LocalChain, size: int, status: str) -> None:
    """At the limit it is sent, one byte beyond it is refused with both numbers."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    receipt = perform(actor, send(target, b"x" * size))
    assert receipt.status == status
    if status == "reverted":
        assert_refused_call(receipt, 1202, "invalid_input", "message payload has 11 bytes and the limit is 10")
        assert messages(target) == 0


@pytest.mark.spec("F-18", "F-45")
def test_nobody_but_the_actor_can_be_named_as_payer_when_a_message_schedules(chain: LocalChain) -> None:
    """A delivery has no user behind it: neither the sending actor nor the user before it has consented."""
    actor, target = deploy_puppet(chain), deploy_puppet(chain)
    for payer in (actor.address, chain.accounts[0].address):
        perform(actor, send(target, script(step("schedule_timer_ex", 100, b"", fee_payer=bytes(payer)))))
        delivery = chain.receipts(chain.height)[-1]
        assert_refused_call(delivery, 1202, "invalid_input", f"fee_payer {payer} is refused")
    perform(actor, send(target, script(step("schedule_timer_ex", 100, b"", fee_payer=bytes(target.address)))))
    assert [timer.fee_payer for timer in chain.timers()] == [target.address]


def test_waiting_message_keeps_blocks_from_being_idle_when_advancing(chain: LocalChain) -> None:
    """advance_to delivers what mine would."""
    one, two = deploy_puppet(chain), deploy_puppet(chain)
    perform(one, send(two, script(send(one))))
    schedule(one, 40)
    chain.advance_to(50)
    assert (messages(one), messages(two)) == (1, 1)
