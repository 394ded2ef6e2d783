"""Deferred transactions: an actor calls itself in the next block, on gas that its transaction has left."""

import pytest

from tests.integration.helpers import BASEFEE
from trailboss.primitives.octets import ZERO_HASH
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Receipt

CBY = 10**9
DEFERRED_CYCLES = 100_000

ACTOR = """
def defer(payload):
    for number in range(int(payload)):
        pvm_host.create_deferred_tx("later", b"%d" % number)


def defer_long(payload):
    pvm_host.create_deferred_tx("later", bytes(65_537))


def defer_nameless(payload):
    pvm_host.create_deferred_tx(payload.decode(), b"")


def defer_twice(payload):
    pvm_host.create_deferred_tx("defer", b"1")


def defer_reverted(payload):
    try:
        pvm_host.call_actor(pvm_host.self_address(), "defer_and_fail", b"", 100_000)
    except pvm_host.HostError:
        pass
    pvm_host.create_deferred_tx("later", b"kept")


def defer_and_fail(payload):
    pvm_host.create_deferred_tx("later", b"lost")
    raise ValueError("no")


def defer_late(payload):
    pvm_host.charge_gas(pvm_host.gas_left() - 9_000)
    pvm_host.create_deferred_tx("later", b"")


def defer_spinning(payload):
    pvm_host.create_deferred_tx("spin", b"")


def spin(payload):
    while True:
        pass


def all_three(payload):
    height = pvm_host.block_height() + 1
    pvm_host.create_deferred_tx("later", b"deferred")
    pvm_host.schedule_timer(height, b"", None, 100_000)


def handle_timer(payload):
    pvm_host.send_message(pvm_host.self_address(), b"message")
    pvm_host.set_state(b"log", (pvm_host.get_state(b"log") or b"") + b" timer")


def later(payload):
    facts = pvm_host.context()
    pvm_host.set_state(b"sender", facts["sender"])
    pvm_host.set_state(b"tx_hash", facts["tx_hash"])
    pvm_host.set_state(b"height", b"%d" % facts["block_height"])
    pvm_host.set_state(b"log", (pvm_host.get_state(b"log") or b"") + b" " + payload)


def handle_message(payload):
    pvm_host.set_state(b"log", (pvm_host.get_state(b"log") or b"") + b" " + payload)


def get_gas_bid(payload):
    pvm_host.create_deferred_tx("later", b"")
"""


@pytest.fixture
def actor(chain: LocalChain) -> ActorHandle:
    """Return the actor; it has some money of its own, which no deferred transaction touches."""
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=50 * CBY)


def call(chain: LocalChain, actor: ActorHandle, handler: str, payload: bytes = b"", **terms: int) -> Receipt:
    """Call a handler from the second account."""
    return actor.call(handler, payload, sender=chain.accounts[1], **terms)


def deferred(chain: LocalChain) -> list[Receipt]:
    """Return the last block's receipts of what waited for its end."""
    return chain.receipts(chain.height, origin="message")


@pytest.mark.spec("F-44")
def test_deferred_transaction_runs_in_the_next_block_as_a_call_of_the_actor_to_itself(
    chain: LocalChain, actor: ActorHandle
) -> None:
    """Its origin is the transaction that created it, its sender the actor; whoever sent the transaction pays."""
    created = call(chain, actor, "defer", b"1")
    (event,) = [event for event in created.events if event.name == "deferred.created"]
    assert (event.emitter, event.data) == (actor.address, {"handler": "later", "size": 1})
    assert deferred(chain) == []
    payer, own = chain.balance(chain.accounts[1]), chain.balance(actor)
    tx_hash = chain.block().receipts[0].origin_hash
    chain.mine()
    (receipt,) = deferred(chain)
    assert (receipt.ok, receipt.actor, receipt.payer) == (True, actor.address, chain.accounts[1].address)
    assert receipt.fee_paid == (receipt.cycles_used + receipt.cells_used) * BASEFEE
    assert (chain.balance(chain.accounts[1]), chain.balance(actor)) == (payer - receipt.fee_paid, own)
    assert actor.storage[b"sender"] == actor.address
    assert actor.storage[b"tx_hash"] == tx_hash == chain.block().receipts[0].origin_hash != ZERO_HASH
    assert actor.storage[b"height"] == b"%d" % chain.height
    chain.check_invariants()


@pytest.mark.spec("F-44", "F-40")
def test_timers_come_before_deferred_transactions_and_these_before_messages(
    chain: LocalChain, actor: ActorHandle
) -> None:
    """A fire, then what the block before has deferred, then the message that the fire has sent."""
    call(chain, actor, "all_three")
    chain.mine()
    assert actor.storage[b"log"] == b" timer deferred message"
    assert [receipt.origin for receipt in chain.receipts(chain.height)] == ["timer", "message", "message"]


@pytest.mark.spec("F-46")
def test_pool_is_what_the_parent_has_left_and_no_more(chain: LocalChain, actor: ActorHandle) -> None:
    """Two children share 18,000 cycles or so: the first has what it needs, the second what that leaves."""
    receipt = call(chain, actor, "defer", b"2", cycles_limit=34_000)
    assert receipt.ok
    left = 34_000 - receipt.cycles_used
    chain.mine()
    first, second = deferred(chain)
    assert first.ok
    assert first.cycles_used < left < 2 * first.cycles_used
    assert (second.status, second.error.code, second.cycles_used) == ("reverted", 1005, left - first.cycles_used)
    assert second.error.context["limit"] == left - first.cycles_used
    chain.check_invariants()


@pytest.mark.spec("F-46")
def test_fire_draws_on_its_payer_alone_when_its_actor_has_deferred(chain: LocalChain, actor: ActorHandle) -> None:
    """The fire's reservation is the actor's, the deferred transaction's that of the account that sent it."""
    call(chain, actor, "all_three")
    before, payer = chain.balance(actor), chain.balance(chain.accounts[1])
    chain.mine()
    fire, child, message = chain.receipts(chain.height)
    assert chain.balance(actor) == before - fire.fee_paid - message.fee_paid
    assert chain.balance(chain.accounts[1]) == payer - child.fee_paid


def test_deferred_transaction_uses_at_most_its_own_limit(chain: LocalChain, actor: ActorHandle) -> None:
    """It stops at 100,000 cycles, fails in its receipt, and pays for these, whatever is in the pool."""
    call(chain, actor, "defer_spinning", cycles_limit=1_000_000)
    chain.mine()
    (receipt,) = deferred(chain)
    assert (receipt.error.slug, receipt.cycles_used) == ("out_of_cycles", DEFERRED_CYCLES)


def test_what_a_deferred_transaction_defers_draws_on_the_same_pool(chain: LocalChain, actor: ActorHandle) -> None:
    """Each generation runs a block later with the first one's origin; the gas of one transaction bounds them all."""
    call(chain, actor, "defer_twice", cycles_limit=100_000)
    origin = chain.block().receipts[0].origin_hash
    chain.mine(2)
    assert actor.storage[b"log"] == b" 0"
    assert actor.storage[b"tx_hash"] == origin
    empty = chain.state_root
    chain.mine()
    assert chain.state_root == empty, "the pool is gone with the last that drew on it"


def test_deferred_transaction_is_dropped_with_an_event_when_its_payer_cannot_pay(
    chain: LocalChain, actor: ActorHandle
) -> None:
    """What was promised is not reserved: the event says what was needed and what was there."""
    poor = chain.accounts[1]
    receipt = call(chain, actor, "defer", b"1", cycles_limit=200_000, cells_limit=1_000)
    chain.set_balance(poor, 5)
    chain.mine()
    (event,) = chain.events("deferred.dropped")
    required = DEFERRED_CYCLES * BASEFEE + (1_000 - receipt.cells_used) * BASEFEE
    assert event.data == {"handler": "later", "payer": poor.address, "required": required, "available": 5}
    assert (deferred(chain), b"log" in actor.storage) == ([], False)


def test_reverted_frame_has_deferred_nothing(chain: LocalChain, actor: ActorHandle) -> None:
    """The one that stands keeps its own pool."""
    assert call(chain, actor, "defer_reverted").ok
    chain.mine()
    assert actor.storage[b"log"] == b" kept"
    assert not call(chain, actor, "defer_and_fail").ok
    chain.mine()
    assert deferred(chain) == []


@pytest.mark.parametrize(
    ("handler", "payload", "code", "what"),
    [
        ("defer_long", b"", 1202, "deferred transaction payload has 65537 bytes and the limit is 65536"),
        ("defer_nameless", b"", 1202, "handler has 0 bytes, outside 1..=256"),
        ("defer_nameless", b"x" * 257, 1202, "handler has 257 bytes, outside 1..=256"),
        ("defer_late", b"", 1502, "cycles are left for a deferred transaction, and starting one uses 10000"),
        ("defer", b"3", 1226, "2 deferred transactions wait for"),
    ],
)
@pytest.mark.trailboss(params={"limits.messages_pending_max": 2})
def test_deferred_transaction_is_refused_when_a_rule_does_not_hold(
    chain: LocalChain, handler: str, payload: bytes, code: int, what: str
) -> None:
    """By its size, its name, what is left of the gas, and how many wait already; nothing waits after it."""
    actor = chain.deploy(ACTOR, sender=chain.accounts[0])
    refused = call(chain, actor, handler, payload)
    assert what in refused.error.what
    assert f"E{code}" in refused.error.what or refused.error.code == code
    root = chain.state_root
    chain.mine()
    assert chain.state_root == root or deferred(chain) == []


@pytest.mark.trailboss(params={"limits.messages_delivered_max": 2})
def test_deferred_transactions_beyond_the_limit_of_a_block_wait_in_order(chain: LocalChain) -> None:
    """Two a block, the oldest first."""
    actor = chain.deploy(ACTOR, sender=chain.accounts[0])
    call(chain, actor, "defer", b"5", cycles_limit=1_000_000)
    for ran in (b" 0 1", b" 0 1 2 3", b" 0 1 2 3 4"):
        chain.mine()
        assert actor.storage[b"log"] == ran


@pytest.mark.spec("L-21")
def test_agent_cannot_defer(chain: LocalChain) -> None:
    """A read-only frame refuses it as every change."""
    actor = chain.deploy(ACTOR, sender=chain.accounts[0])
    answer = actor.view("get_gas_bid")
    assert "create_deferred_tx in a read-only frame" in answer.error.what


def test_chain_reaches_the_same_root_when_it_goes_astray_in_between(chain: LocalChain, actor: ActorHandle) -> None:
    """Deferred transactions and pools are state: what a dropped branch did with them leaves no trace."""
    call(chain, actor, "defer", b"2")
    mark = chain.snapshot()
    chain.mine(2)
    root = chain.state_root
    chain.revert(mark)
    call(chain, actor, "defer", b"3")
    chain.mine()
    chain.revert(mark)
    chain.mine(2)
    assert chain.state_root == root
