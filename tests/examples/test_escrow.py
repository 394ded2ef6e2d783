"""Escrow: a deadline that acts, and one that is cancelled because the deal ended sooner."""

import json

import pytest

CBY = 10**9


@pytest.fixture
def buyer(chain):
    """Deploys, funds, and pays for the deadline."""
    return chain.accounts[0]


@pytest.fixture
def seller(chain):
    """Gets the price, sooner or later."""
    return chain.accounts[1]


@pytest.fixture
def escrow(chain, buyer, seller):
    """An escrow over 50 CBY with a deadline a hundred blocks ahead."""
    terms = {"seller": str(seller.address), "price": 50 * CBY, "blocks": 100}
    return chain.deploy(
        "examples/actors/escrow.py", sender=buyer, value=50 * CBY, init_payload=json.dumps(terms).encode()
    )


def test_escrow_pays_the_seller_when_the_deadline_passes_in_silence(chain, escrow, buyer, seller):
    """The timer is the judge; the buyer pays for its fire."""
    before = chain.balance(seller)

    chain.advance_to(101)

    assert chain.balance(seller) - before == 50 * CBY
    assert escrow.storage[b"settled"] == b"released"
    (fire,) = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert fire.payer == buyer.address
    assert json.loads(chain.events("escrow.settled")[0].data) == {"how": "released"}


def test_escrow_cancels_its_deadline_when_the_buyer_confirms(chain, escrow, buyer, seller):
    """Early completion: paid at once, and no fire is left to pay for."""
    before = chain.balance(seller)
    (deadline,) = escrow.timers()

    escrow.call("confirm", b"", sender=buyer, check=True)
    chain.advance_to(200)

    assert chain.balance(seller) - before == 50 * CBY
    assert chain.explain(deadline.timer_id).state == "cancelled"
    assert chain.events("timer.fired") == []


def test_escrow_pays_the_buyer_back_when_the_seller_gives_up(chain, escrow, buyer, seller):
    """The buyer gets the price whole: the seller paid for the transaction."""
    before = chain.balance(buyer)

    escrow.call("give_back", b"", sender=seller, check=True)

    assert chain.balance(buyer) - before == 50 * CBY
    assert escrow.timers() == []


def test_escrow_keeps_money_and_deadline_when_a_stranger_confirms(chain, escrow):
    """The refusal reverts the cancellation together with everything else."""
    receipt = escrow.call("confirm", b"", sender=chain.accounts[5])

    assert receipt.status == "reverted"
    assert receipt.error.context["exception_message"] == "the sender may not say 'confirmed'"
    assert escrow.balance == 50 * CBY
    assert len(escrow.timers()) == 1


def test_escrow_ignores_its_deadline_when_the_buyer_has_disputed(chain, escrow, buyer, seller):
    """What happens in two futures, from one snapshot."""
    mark = chain.snapshot()
    chain.advance_to(150)
    assert escrow.storage[b"settled"] == b"released"

    chain.revert(mark)
    escrow.call("dispute", b"", sender=buyer, check=True)
    chain.advance_to(150)

    assert b"settled" not in escrow.storage
    assert escrow.call("confirm", b"", sender=seller).status == "reverted"
    assert escrow.call("give_back", b"", sender=seller).ok
    assert escrow.call("confirm", b"", sender=buyer).error.context["exception_message"] == (
        "the escrow is settled already"
    )
