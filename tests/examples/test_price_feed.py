"""Price feed: who may report, and who hears of it."""

import pytest

from trailboss.sdk import watch_key


@pytest.fixture
def feed(chain):
    """A feed of the first account."""
    return chain.deploy("examples/actors/price_feed.py", sender=chain.accounts[0])


def test_feed_tells_the_last_price(chain, feed):
    """To actors and to people."""
    assert feed.view("price").error.context["exception_message"] == "no price has been reported yet"
    feed.call("report", b"0150", sender=chain.accounts[0], check=True)

    assert feed.view("price").return_value == b"150"


def test_feed_takes_reports_of_its_owner_alone(chain, feed):
    """And only numbers."""
    stranger = feed.call("report", b"1", sender=chain.accounts[1])
    nonsense = feed.call("report", b"dear", sender=chain.accounts[0])

    assert stranger.error.context["exception_message"] == "only the owner reports"
    assert nonsense.error.context["exception_type"] == "ValueError"
    assert feed.storage == {}


@pytest.mark.trailboss(mechanism="globalbox")
def test_feed_wakes_who_watches_it_when_the_price_is_another(chain, feed):
    """In the block of the report."""
    chain.watch([watch_key(feed.address, b"price")], b"a new price")

    heights = [
        feed.call("report", price, sender=chain.accounts[0], check=True).block_height for price in (b"1", b"1", b"2")
    ]

    assert [event.block_height for event in chain.events("timer.payload")] == [heights[0], heights[2]]
