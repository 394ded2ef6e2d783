"""Oracle: rounds that exist only while somebody reports, each paid by whoever opened it."""

import pytest
from cowboy_sdk import codec

CBY = 10**9


@pytest.fixture
def feeders(chain):
    """Three accounts that may report."""
    return chain.accounts[1:4]


@pytest.fixture
def oracle(chain, feeders):
    """An oracle without any money of its own."""
    return chain.deploy(
        "examples/actors/oracle.py",
        sender=chain.accounts[0],
        init_payload=codec.encode([bytes(feeder.address) for feeder in feeders]),
    )


def report(oracle, feeder, price):
    """Report a price in a transaction of its own."""
    return oracle.call("report", codec.encode(price), sender=feeder)


def test_oracle_publishes_the_median_when_a_round_closes(chain, oracle, feeders):
    """The first reporter opened the round and pays for its end; the oracle pays nothing."""
    opened = report(oracle, feeders[0], 100)
    assert report(oracle, feeders[1], 104).ok
    assert report(oracle, feeders[2], 90).ok
    closes = opened.block_height + 10

    chain.advance_to(closes)

    (closed,) = chain.events("round.closed")
    assert closed.data == {"price": 100, "reports": 3}
    (fire,) = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert fire.payer == feeders[0].address
    quote = oracle.call("price", b"", sender=chain.accounts[5], check=True).return_value
    assert codec.decode(quote) == {"price": 100, "height": closes}
    # Nobody reports, so no timer waits, and nobody pays.
    assert oracle.timers() == []


def test_oracle_counts_a_report_when_it_comes_in_the_closing_block(chain, oracle, feeders):
    """Timers run after the transactions of their block."""
    opened = report(oracle, feeders[0], 100)
    chain.advance_to(opened.block_height + 9)

    late = report(oracle, feeders[1], 102)

    assert late.block_height == opened.block_height + 10
    assert chain.events("round.closed")[0].data == {"price": 100, "reports": 2}


def test_oracle_keeps_its_price_when_too_few_report(chain, oracle, feeders):
    """A round below the quorum is void."""
    report(oracle, feeders[0], 100)

    chain.mine(10)

    assert chain.events("round.void")[0].data == {"reports": 1}
    unknown = oracle.call("price", b"", sender=chain.accounts[5])
    assert unknown.error.context["exception_message"] == "no round has closed yet"


def test_oracle_refuses_a_report_when_its_sender_is_no_feeder(chain, oracle):
    """And opens no round for it."""
    receipt = report(oracle, chain.accounts[5], 100)

    assert receipt.error.context["exception_message"] == "not a feeder"
    assert oracle.timers() == []


def test_oracle_opens_a_new_round_when_the_last_one_was_never_closed(chain, oracle, feeders):
    """The opener spent its money before the fire: the timer ended unfunded, and the next report starts over."""
    report(oracle, feeders[0], 100)
    cheap = {"cycles_limit": 10_000, "cells_limit": 500}
    chain.transfer(chain.accounts[9], chain.balance(feeders[0]) - CBY, sender=feeders[0], check=True, **cheap)
    chain.mine(10)
    assert [event.data["fee_payer"] for event in chain.events("TimerCancelledInsufficientFunds")] == [
        feeders[0].address
    ]

    reopened = report(oracle, feeders[1], 102)

    assert [timer.fee_payer for timer in oracle.timers()] == [feeders[1].address]
    chain.advance_to(reopened.block_height + 10)
    assert chain.events("round.closed")[0].data == {"price": 100, "reports": 2}
