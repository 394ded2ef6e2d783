"""Subscription: a mandate that is a time to live, renewed in time, too late, and not at all."""

import pytest
from cowboy_sdk import codec

CBY = 10**9


@pytest.fixture
def customer(chain):
    """Owns the wallet."""
    return chain.accounts[0]


@pytest.fixture
def merchant(chain):
    """Is paid 2 CBY every ten blocks."""
    return chain.accounts[1]


@pytest.fixture
def wallet(chain, customer, merchant):
    """A mandate of 35 blocks, given in block 1: three charges fit in, the fourth would come in block 41."""
    terms = {"merchant": bytes(merchant.address), "price": 2 * CBY, "every": 10, "mandate": 35}
    return chain.deploy(
        "examples/actors/subscription.py", sender=customer, value=100 * CBY, init_payload=codec.encode(terms)
    )


def test_subscription_ends_when_the_mandate_runs_out(chain, wallet, merchant):
    """The fourth charge is due in block 41, its TTL ends with block 36: the chain removes it, nothing runs."""
    before = chain.balance(merchant)
    chain.advance_to(31)
    (waiting,) = wallet.timers()
    assert (waiting.height, waiting.expires_at, waiting.will_expire_unfired) == (41, 36, True)
    assert "expires unfired at height 41" in chain.explain(waiting.timer_id).outlook

    chain.advance_to(100)

    assert chain.balance(merchant) - before == 6 * CBY
    (end,) = chain.events("TimerExpired")
    assert end.data == {"timer_id": waiting.timer_id, "expires_at": 36, "current_height": 41}
    assert wallet.timers() == []


def test_subscription_goes_on_when_it_is_renewed_before_the_charge_is_due(chain, wallet, customer, merchant):
    """Even after the mandate's last block: the timer still waits, and extend_timer reaches it."""
    before = chain.balance(merchant)
    chain.advance_to(38)

    receipt = wallet.call("renew", codec.encode(20), sender=customer, check=True)

    assert [event.name for event in receipt.events] == ["timer.extended"]
    chain.advance_to(100)
    assert chain.balance(merchant) - before == 10 * CBY
    assert [event.block_height for event in chain.events("charged")] == [11, 21, 31, 41, 51]


def test_subscription_starts_again_when_it_is_renewed_after_it_lapsed(chain, wallet, customer):
    """The timer is gone, so a new one is scheduled."""
    chain.advance_to(60)

    receipt = wallet.call("renew", codec.encode(15), sender=customer, check=True)

    assert [event.name for event in receipt.events] == ["timer.scheduled"]
    assert [timer.height for timer in wallet.timers()] == [71]


def test_subscription_stays_when_the_merchant_tries_to_renew_it(chain, wallet, merchant):
    """@callable_by(OWNER) refuses; nothing has changed."""
    before = wallet.timers()

    receipt = wallet.call("renew", codec.encode(1_000), sender=merchant)

    assert receipt.status == "reverted"
    assert receipt.error.context["exception_type"] == "PermissionDeniedError"
    assert wallet.timers() == before


def test_subscription_gives_the_rest_back_when_its_owner_closes_it(chain, wallet, customer):
    """Cancelled and withdrawn in one transaction."""
    before = chain.balance(customer)

    receipt = wallet.call("close", codec.encode(100 * CBY), sender=customer, check=True)

    assert wallet.timers() == []
    assert chain.balance(customer) - before == 100 * CBY - receipt.fee_paid


def test_subscription_is_over_when_a_charge_cannot_be_paid(chain, customer, merchant):
    """The transfer fails, the fire reverts, and with it the next charge that it would have scheduled."""
    terms = {"merchant": bytes(merchant.address), "price": 50 * CBY, "every": 10, "mandate": 1_000}
    wallet = chain.deploy(
        "examples/actors/subscription.py", sender=customer, value=60 * CBY, init_payload=codec.encode(terms)
    )

    chain.advance_to(100)

    paid, failed = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert (paid.status, failed.status) == ("ok", "reverted")
    assert failed.fee_paid > 0
    assert wallet.timers() == []
