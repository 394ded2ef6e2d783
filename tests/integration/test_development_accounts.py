"""Development chains: transactions that nobody has signed, and balances that are set."""

import msgspec
import pytest

from tests.integration.development import assert_reverted, of_deployer, open_local, ordinary_chain
from tests.integration.helpers import CBY, FUNDS, deploy_puppet, fires, only_event, schedule
from trailboss.chain import Chain
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_transaction, draft_unsigned
from trailboss.model.transactions import (
    CreateAccount,
    ExecuteActor,
    MoveTimer,
    SetBalance,
    Transaction,
    Transfer,
    sign_transaction,
    transaction_hash,
)
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.primitives.units import U128_MAX
from trailboss.testing import LocalChain, RevertedError

NOBODY = Address(b"\x77" * 20)
"""An account whose key nobody has."""
ASKS = """
def who(payload):
    return pvm_host.context()["sender"]
"""


def refusal_of(chain: Chain, transaction: Transaction) -> Rejection:
    """Return why a chain refuses a transaction, which changes nothing."""
    root, head = chain.state_root, chain.head
    ((_, rejection),) = chain.build([transaction], unless_refused=True).refused
    assert (chain.state_root, chain.head) == (root, head)
    return rejection


def unsigned(chain: LocalChain, sender: Address, **changes: object) -> Transaction:
    """Return an unsigned transfer of one base unit, but for the changes."""
    drafted = draft_unsigned(chain.chain, Transfer(NOBODY, 1), sender)
    return msgspec.structs.replace(drafted, **changes)


# Impersonation


def test_unsigned_transaction_is_its_senders_in_everything_but_the_signature(chain: LocalChain) -> None:
    """It pays the fee of a signed one, counts up the nonce, and is named by its hash."""
    alice, bob = chain.accounts[:2]
    before = chain.balance(alice), chain.balance(bob)
    signed = chain.transfer(NOBODY, 5, sender=bob)
    receipt = chain.impersonate(alice, Transfer(NOBODY, 5))
    assert receipt.ok
    assert receipt.payer == alice.address
    assert receipt.fee_paid == signed.fee_paid > 0
    assert (chain.balance(alice), chain.balance(bob)) == tuple(held - 5 - signed.fee_paid for held in before)
    assert (chain.nonce(alice), chain.balance(NOBODY)) == (1, 10)
    (transaction,) = chain.block().transactions
    assert transaction.signature == bytes(65)
    assert chain.block().receipts[0].origin_hash == transaction_hash(transaction)


def test_actor_can_be_impersonated_and_pays(chain: LocalChain) -> None:
    """A handler sees the actor as its caller; what an actor never could, it sends a transaction."""
    actor = chain.deploy(ASKS, sender=chain.accounts[0], value=FUNDS)
    other = chain.deploy(ASKS, sender=chain.accounts[0])
    receipt = chain.impersonate(actor, Transfer(other.address, CBY))
    assert receipt.ok
    assert (other.balance, actor.balance) == (CBY, FUNDS - CBY - receipt.fee_paid)
    with chain.one_block():
        receipts = [chain.impersonate(actor, CreateAccount(Address(bytes([number]) * 20))) for number in (50, 51)]
    assert [receipt.status for receipt in receipts] == ["ok", "ok"]
    assert chain.nonce(actor) == 3


def test_limits_and_fees_hold_when_a_sender_is_impersonated(chain: LocalChain) -> None:
    """Who has nothing cannot pay, and limits are given as for `send`."""
    refused = chain.impersonate(NOBODY, Transfer(NOBODY, 0))
    assert refused.status == "refused"
    assert refused.error is not None
    assert refused.error.slug == "insufficient_gas_balance"
    chain.set_balance(NOBODY, CBY)
    assert chain.impersonate(NOBODY, Transfer(NOBODY, 0), cycles_limit=10_000, cells_limit=500).ok
    with pytest.raises(RevertedError, match="holds"):
        chain.impersonate(NOBODY, Transfer(NOBODY, 0), check=True)


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({"nonce": 3}, "nonce_mismatch"),
        ({"chain_id": 2}, "chain_id_mismatch"),
        ({"origin_tx_hash": Hash32(bytes(32))}, "invalid_data"),
        ({"max_fee_per_cycle": 1}, "basefee_too_low"),
        ({"cycles_limit": 1}, "out_of_cycles"),
        ({"instruction": Transfer(NOBODY, 2**64)}, "overflow"),
        ({"metadata": "text"}, "invalid_data"),
    ],
)
def test_unsigned_transaction_is_refused_for_everything_that_a_signed_one_is(
    chain: LocalChain, changes: dict[str, object], slug: str
) -> None:
    """The signature is all that may be missing."""
    sender = chain.accounts[0].address
    assert refusal_of(chain.chain, unsigned(chain, sender, **changes)).reason.slug == slug


@pytest.mark.spec("E-06")
def test_unsigned_transaction_is_refused_when_it_is_no_development_chain() -> None:
    """With the public code of a bad signature, and in plain words."""
    chain = ordinary_chain()
    sender = development_account("account 0").address
    refusal = refusal_of(chain, draft_unsigned(chain, Transfer(NOBODY, 1), sender))
    assert refusal.reason.code == 1001
    assert refusal.what == (
        f"the transaction of {sender} is not signed: only a development chain takes unsigned transactions"
    )
    assert refusal.context == {"field": "from", "claimed": str(sender)}


def test_unsigned_transaction_is_refused_when_it_has_additional_signers(chain: LocalChain) -> None:
    """Whoever wants several signatures wants that of the sender; signed as a whole it is taken."""
    alice = chain.accounts[0]
    lone = unsigned(chain, alice.address, additional_signers=((NOBODY, bytes(65)),))
    refusal = refusal_of(chain.chain, lone)
    assert refusal.reason.code == 1001
    assert refusal.what == (
        f"the transaction of {alice.address} is not signed: one with additional signers must be signed, by its sender "
        "too"
    )
    half = sign_transaction(lone, alice.private_key)
    assert "additional_signers[0]" in refusal_of(chain.chain, half).what


@pytest.mark.parametrize("number", [0, 10, 11, 15])
def test_unsigned_transaction_is_refused_when_a_system_actor_would_send_it(chain: LocalChain, number: int) -> None:
    """What they hold belongs to somebody; the first address after them is anybody's."""
    sender = system_address(number)
    refusal = refusal_of(chain.chain, unsigned(chain, sender))
    assert refusal.reason.code == 1001
    assert refusal.what == f"the transaction of {sender} is not signed: nobody acts for a system actor"
    assert refusal_of(chain.chain, unsigned(chain, system_address(16))).reason.slug == "insufficient_gas_balance"


@pytest.mark.parametrize("signature", [bytes(64) + b"\x01", b"\x01" + bytes(64)])
def test_bad_signature_is_no_impersonation(chain: LocalChain, signature: bytes) -> None:
    """Only a signature that is all zeros says that nobody has signed."""
    refusal = refusal_of(chain.chain, unsigned(chain, chain.accounts[0].address, signature=signature))
    assert refusal.reason.code == 1001
    assert "is not signed" not in refusal.what


# Balances


@pytest.mark.spec("E-04")
@pytest.mark.parametrize("amount", [0, 1, 5 * CBY, 10**30])
def test_balance_and_supply_move_together_when_a_balance_is_set(chain: LocalChain, amount: int) -> None:
    """Up or down, of an account or an actor; the event has both amounts."""
    actor = deploy_puppet(chain)
    for party, before in ((chain.accounts[3], 1_000_000 * CBY), (actor, FUNDS)):
        supply = chain.supply
        receipt = chain.set_balance(party, amount)
        assert chain.balance(party) == amount
        assert chain.supply == supply + amount - before
        (event,) = receipt.events
        assert (event.name, event.emitter) == ("development.balance_set", system_address(10))
        assert event.data == {"account": bytes(party.address), "before": before, "after": amount}
    assert chain.chain.account(actor.address).code_hash  # type: ignore[union-attr]


def test_balance_counts_within_the_block_when_it_is_set_before_others(chain: LocalChain) -> None:
    """A transaction after it spends it, and one of two settings after the other sees the first."""
    with chain.one_block():
        chain.set_balance(NOBODY, 50 * CBY)
        chain.impersonate(NOBODY, Transfer(chain.accounts[0].address, 1), cycles_limit=20_000, check=True)
        chain.set_balance(NOBODY, 3)
    settings = chain.events("development.balance_set")
    assert [(event.data["before"] < 50 * CBY, event.data["after"]) for event in settings] == [
        (True, 50 * CBY),
        (True, 3),
    ]
    assert chain.balance(NOBODY) == 3


@pytest.mark.parametrize("mechanism", ["fifo", "globalbox"])
def test_balance_of_a_system_actor_is_not_set(mechanism: str) -> None:
    """Such as the account that keeps what waiting entries of the mailbox have been paid."""
    with open_local(mechanism) as chain:
        receipt = chain.system(SetBalance(system_address(11), 0))
        what = f"the balance of system actor {system_address(11)} is not set: the chain keeps it"
        assert_reverted(receipt, 1202, what)


def test_balance_of_the_sender_itself_is_not_set(chain: LocalChain) -> None:
    """What it would hold afterwards depends on a fee that is not settled yet."""
    receipt = chain.system(SetBalance(chain.deployer.address, 5))
    assert_reverted(
        receipt,
        1202,
        f"{chain.deployer.address} sets its own balance, and its fees are still to be settled: have another account "
        "send it",
    )
    with pytest.raises(RevertedError, match="sets its own balance"):
        chain.set_balance(chain.deployer, 5)


def test_balance_is_refused_when_the_supply_would_not_fit(chain: LocalChain) -> None:
    """128 bits are enough for all money together, and then for every balance."""
    chain.set_balance(NOBODY, U128_MAX - chain.supply)
    assert chain.supply == U128_MAX
    receipt = chain.system(SetBalance(Address(b"\x78" * 20), 1))
    assert_reverted(receipt, 1007, f"a balance of 1 makes the supply {U128_MAX + 1}, more than 128 bits")
    with pytest.raises(RevertedError, match="overflow"):
        chain.set_balance(NOBODY, U128_MAX + 1)
    with pytest.raises(RevertedError, match="overflow"):
        chain.set_balance(NOBODY, -1)


def test_instructions_of_development_are_refused_when_nobody_may_govern(chain: LocalChain) -> None:
    """A user's impersonation of the deployer is one thing, a user another."""
    for instruction in (SetBalance(NOBODY, 1), MoveTimer(bytes(32), 9)):
        receipt = chain.system(instruction, sender=chain.accounts[0])
        assert receipt.error is not None
        assert receipt.error.slug == "unauthorized"
    assert chain.impersonate(chain.deployer, SetBalance(NOBODY, 1)).ok


@pytest.mark.parametrize("instruction", [SetBalance(NOBODY, 1), MoveTimer(bytes(32), 9)])
def test_instructions_of_development_are_unsupported_when_it_is_no_development_chain(
    instruction: SetBalance | MoveTimer,
) -> None:
    """Whoever sends them, and by name."""
    chain = ordinary_chain()
    senders = [of_deployer(chain, instruction)]
    senders.append(draft_transaction(chain, instruction, development_account("account 0").private_key))
    applied = chain.build(senders)
    assert not applied.refused
    for receipt in applied.block.receipts:
        assert receipt.error is not None
        assert receipt.error.slug == "unsupported_instruction"
        assert receipt.error.what == (
            f"{instruction.name} is executed by development chains only, which say so in their genesis"
        )
    assert chain.balance(NOBODY) == 0


def test_timer_ends_unfunded_when_its_purse_is_emptied(chain: LocalChain) -> None:
    """And fires when the purse is filled in time: money is money."""
    actor = deploy_puppet(chain)
    poor = schedule(actor, chain.height + 4, b"poor")
    chain.set_balance(actor, 0)
    chain.mine(4)
    assert only_event(chain, "TimerCancelledInsufficientFunds").timer_id == poor
    chain.set_balance(actor, FUNDS)
    saved = schedule(actor, chain.height + 4, b"saved")
    chain.set_balance(actor, 0)
    chain.set_balance(actor, FUNDS)
    chain.mine(3)
    assert only_event(chain, "timer.fired").timer_id == saved
    assert fires(actor) == 1


def test_handler_sees_whom_a_transaction_claims_to_be_from(chain: LocalChain) -> None:
    """An account without a key, an actor, a test account."""
    actor, puppet = chain.deploy(ASKS, sender=chain.accounts[0]), deploy_puppet(chain)
    chain.set_balance(NOBODY, FUNDS)
    for party in (NOBODY, puppet, chain.accounts[5]):
        receipt = chain.impersonate(party, ExecuteActor(actor.address, "who", b""))
        assert receipt.return_value == (party if isinstance(party, Address) else party.address)
