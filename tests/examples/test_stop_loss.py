"""Stop loss: a watch that fires in the block of the change, costs nothing in between, and is cancelled by a sale."""

import json

import pytest

CBY = 10**9
GLOBALBOX = pytest.mark.trailboss(mechanism="globalbox")


@pytest.fixture
def feed(chain):
    """An actor that keeps a price."""
    return chain.deploy("examples/actors/price_feed.py", sender=chain.accounts[0])


@pytest.fixture
def stop_loss(chain, feed):
    """A stop at a price of 100."""
    terms = json.dumps({"feed": str(feed.address), "stop": 100}).encode()
    source = "examples/actors/stop_loss.py"
    # The deployment sets the watch; the actor pays for the first fire only when it comes.
    return chain.deploy(source, sender=chain.accounts[1], value=1_000 * CBY, init_payload=terms)


def fires(chain):
    """Return the receipts of fires, oldest first."""
    return chain.receipts(origin="timer")


@GLOBALBOX
def test_stop_loss_sells_in_the_block_in_which_the_price_falls(chain, feed, stop_loss):
    """The watch hears of the transactions of its own block; with the sale it ends."""
    feed.call("report", b"150", sender=chain.accounts[0], check=True)
    assert chain.events("sold") == []

    fallen = feed.call("report", b"99", sender=chain.accounts[0], check=True)

    (sold,) = chain.events("sold")
    assert (sold.raw, sold.block_height) == (b"99", fallen.block_height)
    assert stop_loss.timers() == []
    feed.call("report", b"98", sender=chain.accounts[0], check=True)
    assert len(fires(chain)) == 2


@GLOBALBOX
def test_stop_loss_costs_nothing_when_the_price_stands_still(chain, feed, stop_loss):
    """No block without a change of that slot runs it, and the same price again is no change."""
    feed.call("report", b"150", sender=chain.accounts[0], check=True)
    before = stop_loss.balance

    feed.call("report", b"150", sender=chain.accounts[0], check=True)
    chain.mine(50)

    assert stop_loss.balance == before
    assert len(fires(chain)) == 1


@GLOBALBOX
def test_stop_loss_bids_when_the_price_comes_near(chain, feed, stop_loss):
    """From ten percent above the stop on, the next fire pays a tip."""
    for price in (b"150", b"110", b"105"):
        feed.call("report", price, sender=chain.accounts[0], check=True)

    far, near, urgent = fires(chain)
    assert (far.tip, near.tip) == (0, 0)
    assert urgent.tip == 2_000 * urgent.cycles_used


@GLOBALBOX
def test_stop_loss_has_one_watch_however_often_it_is_armed(chain, stop_loss):
    """The client nonce names it."""
    (watch,) = stop_loss.timers()

    stop_loss.call("arm", b"", sender=chain.accounts[1], check=True)

    assert [timer.timer_id for timer in stop_loss.timers()] == [watch.timer_id]
