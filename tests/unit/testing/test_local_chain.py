"""The front door: how a local chain is started, driven and read, and what it refuses."""

from pathlib import Path

import pytest

from trailboss import testing
from trailboss.model.transactions import CancelTimer, FundActor, Transfer
from trailboss.primitives.errors import ConfigurationError, Rejection, TrailbossError
from trailboss.testing import LocalChain, PendingReceipt
from trailboss.testing.parties import RevertedError

CBY = 10**9
FAILS = "def go(payload):\n    raise ValueError('no')\n"
COUNTS = """
def init(payload):
    pvm_host.set_state(b"init", payload)


def go(payload):
    pvm_host.set_state(b"go", payload)
    return b"went " + payload
"""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vm": "quantum"}, "unknown vm 'quantum'; there are: native"),
        ({"mechanism": "lottery"}, "unknown mechanism 'lottery'; there are: fifo"),
        ({"preset": "huge"}, "unknown preset 'huge'; there are: mainnet, minimal"),
        ({"params": {"timers.colour": 1}}, "unknown parameter 'timers.colour'"),
        ({"params": {"timers.max_ttl_blocks": 0}}, "timers.max_ttl_blocks = 0 must be an integer of at least 1"),
        ({"params": {"calendar.ring_size": 10}}, "calendar.ring_size = 10 is too small"),
    ],
)
def test_chain_is_refused_when_its_options_cannot_be(options: dict[str, object], words: str) -> None:
    """The message names path, value and rule."""
    with pytest.raises(ConfigurationError) as caught:
        LocalChain(**options)
    assert words in str(caught.value)


def test_chain_starts_with_ten_funded_accounts_and_a_deployer() -> None:
    """All different, the same on every run, a million CBY each."""
    with LocalChain() as one, LocalChain() as two:
        addresses = [account.address for account in (*one.accounts, one.deployer)]
        assert len(one.accounts) == 10
        assert len(set(addresses)) == 11
        assert {one.balance(address) for address in addresses} == {1_000_000 * CBY}
        assert [account.address for account in two.accounts] == addresses[:10]
        assert one.block(0).hash == two.block(0).hash
        assert (one.height, one.burned, one.supply) == (0, 0, 11_000_000 * CBY)


def test_actor_is_deployed_from_text_and_from_a_path(chain: LocalChain, tmp_path: Path) -> None:
    """The handle knows address, storage, balance and timers; deploying and funding share a block."""
    path = tmp_path / "counts.py"
    path.write_text(COUNTS)
    for source in (COUNTS, path, str(path)):
        height = chain.height
        actor = chain.deploy(source, sender=chain.accounts[0], value=7, init_payload=b"hi")
        assert chain.height == height + 1
        assert actor.receipt.ok
        assert (dict(actor.storage), actor.balance, actor.timers()) == ({b"init": b"hi"}, 7, [])
    named = chain.deploy(COUNTS, sender=chain.accounts[0], init_handler="go", init_payload=b"on")
    assert dict(named.storage) == {b"go": b"on"}
    assert named.receipt.return_value == b"went on"


def test_deploying_raises_when_the_path_cannot_be_read(chain: LocalChain) -> None:
    """A wrong path is a mistake of the test, and refused at once."""
    with pytest.raises(ConfigurationError, match=r"cannot read actor source /nowhere/x\.py: No such file"):
        chain.deploy("/nowhere/x.py", sender=chain.accounts[0])


def test_deploying_raises_when_the_deployment_reverts(chain: LocalChain) -> None:
    """With the receipt of what failed."""
    with pytest.raises(RevertedError, match="reverted: E1101 non_deterministic_code") as caught:
        chain.deploy("import os\n", sender=chain.accounts[0])
    assert caught.value.receipt.status == "reverted"
    with pytest.raises(RevertedError, match="refused: E1003 insufficient_balance"):
        chain.deploy(COUNTS, sender=chain.accounts[0], value=10**16)


def test_call_returns_the_receipt_when_it_reverts_and_raises_only_with_check(chain: LocalChain) -> None:
    """Reverts and refusals are answers, unless the test says otherwise."""
    actor = chain.deploy(FAILS, sender=chain.accounts[0])
    assert actor.call("go", sender=chain.accounts[0]).status == "reverted"
    assert actor.call("go", sender=chain.accounts[0], cycles_limit=1).status == "refused"
    with pytest.raises(RevertedError, match="reverted: E1210"):
        actor.call("go", sender=chain.accounts[0], check=True)
    with pytest.raises(RevertedError, match="refused: E1005"):
        actor.call("go", sender=chain.accounts[0], check=True, cycles_limit=1)


def test_caps_default_to_twice_the_basefee_and_the_tip(chain: LocalChain) -> None:
    """So that a transaction signed now still fits when the fee has risen a little."""
    receipt = chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0], max_priority_fee_per_cycle=3)
    (transaction,) = chain.block().transactions
    assert (transaction.max_fee_per_cycle, transaction.max_fee_per_cell) == (20_003, 20_000)
    assert receipt.tip == 3 * receipt.cycles_used


def test_block_gathers_transactions_in_order_when_opened(chain: LocalChain) -> None:
    """Receipts can be read once it is built; nonces count on within it; refused ones are reported, not included."""
    alice, bob = chain.accounts[:2]
    with chain.one_block():
        pending = [chain.transfer(bob, amount, sender=alice) for amount in (1, 2, 3)]
        refused = chain.transfer(bob, 1, sender=chain.accounts[2], cycles_limit=1)
        assert chain.nonce(alice) == 3
        assert isinstance(pending[0], PendingReceipt)
        with pytest.raises(TrailbossError, match="the block is still open"):
            _ = pending[0].status
    assert chain.height == 1
    assert [receipt.status for receipt in (*pending, refused)] == ["ok", "ok", "ok", "refused"]
    assert [transaction.instruction.amount for transaction in chain.block().transactions] == [1, 2, 3]
    assert chain.nonce(alice) == 3


def test_open_block_allows_nothing_else_when_it_is_open(chain: LocalChain) -> None:
    """No second one, no mining, no going back; leaving it by an exception drops what was gathered."""
    mark = chain.snapshot()
    with chain.one_block():
        with pytest.raises(TrailbossError, match="does not nest"), chain.one_block():
            pass
        with pytest.raises(TrailbossError, match="cannot advance while a block is open"):
            chain.mine()
        with pytest.raises(TrailbossError, match="cannot revert while a block is open"):
            chain.revert(mark)
    assert chain.height == 1

    def fail_within() -> None:
        with chain.one_block():
            chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0])
            raise KeyError("elsewhere")

    with pytest.raises(KeyError):
        fail_within()
    assert (chain.height, chain.nonce(chain.accounts[0])) == (1, 0)
    assert chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0]).ok


def test_same_transaction_gets_two_answers_when_sent_twice_in_one_block(chain: LocalChain) -> None:
    """The first applies, the second is refused."""
    chain.transfer(chain.accounts[1], 5, sender=chain.accounts[0])
    (transaction,) = chain.block().transactions
    chain.revert(type(chain.snapshot())(0, chain.block(0).hash))
    with chain.one_block():
        first, second = chain.submit(transaction), chain.submit(transaction)
    assert (first.status, second.status) == ("ok", "refused")


def test_mining_is_refused_when_there_is_nothing_to_mine(chain: LocalChain) -> None:
    """At least one block."""
    for blocks in (0, -1):
        with pytest.raises(Rejection, match="at least one block"):
            chain.mine(blocks)
    with pytest.raises(Rejection, match="cannot advance to height -3"):
        chain.advance_to(-3)
    assert chain.height == 0


def test_chain_answers_by_party_name_or_bytes(chain: LocalChain) -> None:
    """An account, an actor, an address and twenty bytes are all somebody."""
    actor = chain.deploy(COUNTS, sender=chain.accounts[0], value=5)
    assert chain.balance(actor) == chain.balance(actor.address) == chain.balance(bytes(actor.address)) == 5
    assert chain.nonce(chain.accounts[0]) == chain.nonce(chain.accounts[0].address) == 2
    with pytest.raises(Rejection, match="Address must be 20 bytes"):
        chain.balance(b"short")


def test_system_instructions_come_from_the_deployer_unless_told_otherwise(chain: LocalChain) -> None:
    """The front door knows who may."""
    assert chain.system(CancelTimer(bytes(32))).ok
    assert chain.system(CancelTimer(bytes(32)), sender=chain.accounts[0]).status == "reverted"


def test_events_and_receipts_begin_where_asked(chain: LocalChain) -> None:
    """From a block on, inclusive; by name."""
    for _ in range(3):
        chain.deploy(COUNTS, sender=chain.accounts[0])
    assert [event.block_height for event in chain.events("actor.deployed", since=2)] == [2, 3]
    assert [receipt.block_height for receipt in chain.receipts(since=3)] == [3]
    assert chain.events("nothing of that name") == []


def test_instructions_can_be_sent_raw(chain: LocalChain) -> None:
    """Whatever has no method of its own."""
    actor = chain.deploy(COUNTS, sender=chain.accounts[0])
    assert chain.send(FundActor(actor.address, 3), sender=chain.accounts[1]).ok
    assert chain.send(Transfer(actor.address, 4), sender=chain.accounts[1]).ok
    assert actor.balance == 7


def test_every_public_name_is_there_when_asked_for() -> None:
    """Names load late, so each one is asked for once."""
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Chain'"):
        _ = testing.Chain


def test_actors_are_deployed_when_a_block_is_open(chain: LocalChain) -> None:
    """Two of the same source in one block are two actors; one that fails raises when the block is built."""
    source = "def init(payload):\n    if payload:\n        raise ValueError('no')\n"
    alice = chain.accounts[0]
    with chain.one_block():
        first = chain.deploy(source, sender=alice, value=5)
        second = chain.deploy(source, sender=alice)
    assert (chain.height, first.receipt.status, second.receipt.status) == (1, "ok", "ok")
    assert first.address != second.address
    assert (first.balance, second.balance) == (5, 0)
    with pytest.raises(RevertedError, match="ValueError"), chain.one_block():
        chain.deploy(source, sender=alice, init_payload=b"x")
    assert chain.height == 2
