"""Liquidation watch: two actors that work together, bounded work, and a neighbour that fails."""

import pytest
from cowboy_sdk import codec

CBY = 10**9
EVERY = 5


@pytest.fixture
def oracle(chain):
    """The example oracle, with two feeders."""
    feeders = [bytes(account.address) for account in chain.accounts[1:3]]
    return chain.deploy("examples/actors/oracle.py", sender=chain.accounts[0], init_payload=codec.encode(feeders))


@pytest.fixture
def watch(chain, oracle):
    """A watch over that oracle."""
    return chain.deploy(
        "examples/actors/liquidation_watch.py",
        sender=chain.accounts[0],
        value=1_000 * CBY,
        init_payload=bytes(oracle.address),
    )


def set_price(chain, oracle, price):
    """Let both feeders report, and wait for the round to close."""
    with chain.one_block():
        for feeder in chain.accounts[1:3]:
            oracle.call("report", codec.encode(price), sender=feeder)
    chain.mine(10)


def open_position(watch, owner, units, debt):
    """Open a position."""
    return watch.call("open_position", codec.encode({"units": units, "debt": debt}), sender=owner, check=True)


def test_watch_liquidates_when_the_price_falls_below_the_limit(chain, oracle, watch):
    """At 100 both positions hold 150 percent of their debt, at 80 one of them does not."""
    set_price(chain, oracle, 100)
    open_position(watch, chain.accounts[3], units=15, debt=1_000)
    open_position(watch, chain.accounts[4], units=30, debt=1_000)
    chain.mine(2 * EVERY)
    assert chain.events("liquidated") == []

    set_price(chain, oracle, 80)
    chain.mine(EVERY)

    (event,) = chain.events("liquidated")
    assert event.data == {"owner": chain.accounts[3].address, "price": 80}
    assert codec.decode(watch.storage[b"count"]) == 1


def test_watch_looks_at_a_few_positions_a_fire_when_there_are_many(chain, oracle, watch):
    """Eight bad positions, three a fire: three fires, each about as dear as the other."""
    set_price(chain, oracle, 100)
    with chain.one_block():
        for number in range(8):
            watch.call("open_position", codec.encode({"units": 1, "debt": 1_000}), sender=chain.accounts[number])
    start = chain.height

    chain.mine(3 * EVERY)

    fires = [
        receipt
        for receipt in chain.receipts(since=start)
        if receipt.origin == "timer" and receipt.actor == watch.address
    ]
    assert [sum(event.name == "liquidated" for event in fire.events) for fire in fires] == [3, 3, 2]
    assert all(fire.ok for fire in fires)
    assert max(fire.cycles_used for fire in fires) < 200_000


def test_watch_goes_on_when_the_oracle_has_no_price(chain, oracle, watch):
    """The failed call is caught: the fire says so and schedules the next one."""
    open_position(watch, chain.accounts[3], units=1, debt=1_000)

    chain.mine(2 * EVERY)

    blind = chain.events("watch.blind")
    assert len(blind) == 2
    assert "no round has closed yet" in blind[0].data["why"]
    assert len(watch.timers()) == 1
    assert chain.events("liquidated") == []


def test_watch_waits_when_the_price_is_old(chain, oracle, watch):
    """Nobody is liquidated by a price from long ago."""
    set_price(chain, oracle, 100)
    chain.mine(40)

    open_position(watch, chain.accounts[3], units=1, debt=1_000)
    chain.mine(EVERY)

    assert chain.events("watch.blind")[-1].data["why"].endswith("blocks old")
    assert chain.events("liquidated") == []


def test_watch_cannot_be_run_when_the_caller_is_a_stranger(chain, watch):
    """A @timer handler without @public answers the actor's own timers alone."""
    receipt = watch.call("watch", b"", sender=chain.accounts[5])

    assert receipt.error.context["exception_type"] == "PermissionDeniedError"
    assert len(watch.timers()) == 1
