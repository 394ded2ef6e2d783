"""Auction liquidator: its bid grows while it waits, and nobody can keep it waiting for long."""

import json

import pytest

from trailboss.codec.canonical import decode_canonical, encode_canonical

CBY = 10**9
GAS_LIMIT = 100_000
REWARD = 200 * CBY
MOST = REWARD // 2 // GAS_LIMIT
SAFE, UNSAFE = b"200", b"100"
CROWD_TIP = 600_000
"""What each timer of the crowd offers a cycle: more than the first bids of the liquidator, less than its last."""

CROWD = f"""
from trailboss.sdk import AuctionBidContext, auction_bid


def start(payload):
    for number in range(5):
        again(payload)


def again(payload):
    pvm_host.set_timeout(pvm_host.block_height() + 1, payload, pvm_host.self_address(), 100_000)


def get_gas_bid(payload):
    return auction_bid(10**9, {CROWD_TIP})


def handle_timer(payload):
    again(payload)
    while pvm_host.gas_left() > 30_000:
        pass
"""
ROOM = {"auction.budget_cycles": 200_000, "timers.max_cycles_per_fire": 200_000}
AUCTION = pytest.mark.trailboss(mechanism="auction", params=ROOM)


@pytest.fixture
def liquidator(chain):
    """A liquidator with a safe loan, on an auction of two fires a block."""
    actor = chain.deploy("examples/actors/auction_liquidator.py", sender=chain.accounts[0], value=10_000 * CBY)
    actor.call("report", SAFE, sender=chain.accounts[0], check=True)
    loan = {"units": 10, "debt": 1_000, "reward": REWARD}
    actor.call("watch", json.dumps(loan).encode(), sender=chain.accounts[0], check=True)
    return actor


def crowd(chain):
    """Fill the auction with timers that go on for ever and offer a good tip."""
    for number in range(2):
        actor = chain.deploy(CROWD, sender=chain.accounts[number], value=500_000 * CBY)
        actor.call("start", b"%d" % number, sender=chain.accounts[number], check=True)


def fires(chain, actor, since=0):
    """Return the liquidator's fires from a height on."""
    return [receipt for receipt in chain.receipts(since, origin="timer") if receipt.actor == actor.address]


@AUCTION
def test_liquidator_pays_no_tip_when_nothing_is_at_stake(chain, liquidator):
    """In a quiet auction it fires every other block, for the basefees alone."""
    start = chain.height
    chain.mine(20)

    quiet = fires(chain, liquidator, start + 1)
    assert len(quiet) == 10
    assert [receipt.tip for receipt in quiet] == [0] * 10


@AUCTION
def test_liquidator_bids_more_each_block_until_it_runs(chain, liquidator):
    """Its first offers are outbid by the crowd; the one that is not wins the block, and takes the reward."""
    crowd(chain)
    chain.mine(6)
    (waiting,) = liquidator.timers()
    waited = chain.height - waiting.height
    assert waited >= 4

    liquidator.call("report", UNSAFE, sender=chain.accounts[0], check=True)
    chain.mine(12)

    (event,) = chain.events("liquidated")
    assert json.loads(event.raw) == {"price": 100, "reward": REWARD}
    (fire,) = fires(chain, liquidator, event.block_height)
    assert fire.tip // fire.cycles_used > CROWD_TIP
    assert fire.fee_paid < REWARD


@AUCTION
def test_bid_of_the_liquidator_grows_with_its_delay(chain, liquidator):
    """An eighth of what it can give in the due block, everything from the eighth block on."""
    liquidator.call("report", UNSAFE, sender=chain.accounts[0], check=True)
    facts = {
        "trigger_block_height": 100,
        "basefee_cycle": 10_000,
        "basefee_cell": 10_000,
        "last_block_cycle_usage": 0,
        "owner_actor_balance": CBY,
    }

    def tip(waited):
        asked = encode_canonical(facts | {"current_block_height": 100 + waited})
        answer = decode_canonical(liquidator.view("get_gas_bid", asked).return_value)
        assert answer["max_fee_per_cycle"] == MOST
        return answer["tip_per_cycle"]

    room = MOST - 10_000
    assert [tip(waited) for waited in (0, 1, 6, 7, 50)] == [room // 8, room // 4, room * 7 // 8, room, room]


@AUCTION
def test_stranger_cannot_start_a_second_loop(chain, liquidator):
    """It would be at the liquidator's expense."""
    receipt = liquidator.call("handle_timer", b"", sender=chain.accounts[1])
    assert receipt.error.context["exception_message"] == "only the actor's own timer may look"
    assert len(liquidator.timers()) == 1
