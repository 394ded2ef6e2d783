"""What a mempool asks of a chain: the block's own rules, and whose account has changed."""

import pytest
from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.admission import Needs, Standing, check_admission, check_sender, standing_of
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.chain.drafts import draft_transaction
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address

ALICE, BOB, CAROL = (development_account(account_name(index)) for index in range(3))
NOBODY = Address(b"\x55" * 20)


@pytest.fixture
def chain() -> Chain:
    """Return a new chain."""
    return Chain(development_genesis())


def draft(chain: Chain, **changes: object) -> Transaction:
    """Return a transfer that the next block can hold, but for changes after its signature."""
    return replace(draft_transaction(chain, Transfer(BOB.address, 5), ALICE.private_key), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"chain_id": 9},
        {"origin_tx_hash": bytes(32)},
        {"cycles_limit": 9_999},
        {"cells_limit": 499},
        {"cycles_limit": 20_000_001},
        {"cells_limit": 2_200_001},
        {"max_fee_per_cycle": 9_999},
        {"max_fee_per_cell": 9_999},
        {"max_fee_per_cycle": 10**12},
        {"instruction": Transfer(BOB.address, 10**15)},
    ],
    ids=lambda changes: ",".join(f"{name}={value}" for name, value in changes.items())[:40],
)
def test_refusal_is_the_same_when_a_block_is_offered_the_transaction(chain: Chain, changes: dict[str, object]) -> None:
    """Reason, words and facts."""
    transaction = draft(chain, **changes, signature=bytes(65))
    with pytest.raises(Rejection) as ahead:
        check_admission(chain, transaction, standing_of(chain, ALICE.address), ahead=0)
    [(_, refusal)] = chain.build([transaction]).refused
    assert (ahead.value.reason, ahead.value.what) == (refusal.reason, refusal.what)
    assert ahead.value.context == refusal.context


def test_needs_are_what_a_block_would_take_at_most(chain: Chain) -> None:
    """The least that it uses, and its limits at its fee caps with what it sends."""
    transaction = draft(chain, cycles_limit=20_000, cells_limit=600)
    needs = check_admission(chain, transaction, standing_of(chain, ALICE.address), ahead=0)
    assert needs == Needs(10_000, 500, 20_000 * 20_000 + 600 * 20_000 + 5)


def test_nonce_may_be_ahead_as_far_as_the_mempool_says(chain: Chain) -> None:
    """And any way for what has waited before, at any basefee."""
    standing = standing_of(chain, ALICE.address)
    far = draft(chain, nonce=4)
    check_admission(chain, far, standing, ahead=4)
    with pytest.raises(Rejection, match="the transaction has 4: more than 3 ahead") as caught:
        check_admission(chain, far, standing, ahead=3)
    assert caught.value.reason is RejectionReason.NONCE_GAP
    check_admission(chain, draft(chain, nonce=400, max_fee_per_cycle=1), standing, ahead=None)
    with pytest.raises(Rejection, match="is at nonce 5, the transaction has 4"):
        check_admission(chain, far, Standing(5, 10**15), ahead=None)


def test_standing_of_nobody_is_nothing(chain: Chain) -> None:
    """An account that is not there has sent nothing and holds nothing."""
    assert standing_of(chain, NOBODY) == Standing(0, 0)
    chain.build([draft(chain)])
    assert standing_of(chain, ALICE.address).nonce == 1
    assert standing_of(chain, BOB.address).balance == 10**15 + 5


def test_sender_is_checked_by_the_rules_of_the_chain(chain: Chain) -> None:
    """An unsigned one passes on a development chain, a wrongly signed one nowhere."""
    check_sender(chain, draft(chain))
    check_sender(chain, draft(chain, signature=bytes(65)))
    with pytest.raises(Rejection, match="but the signature is one of"):
        check_sender(chain, draft(chain, nonce=1))
