"""Gas bidding agents on a chain's own history."""

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.rehearsal.backtest import backtest
from trailboss.testing import CBY, LocalChain

AGENT = """
import pvm_host
from trailboss.sdk import AuctionBidContext, auction_bid

def get_gas_bid(payload):
    context = AuctionBidContext.decode(payload)
    waited = context.current_block_height - context.trigger_block_height
    return auction_bid(2 * context.basefee_cycle + %d * (1 + waited), %d * (1 + waited))

def begin(payload):
    pvm_host.set_timeout(pvm_host.block_height() + 3, b"", gba=pvm_host.self_address(), gas_limit=100_000)

def handle_timer(payload):
    pvm_host.charge_gas(60_000)
    pvm_host.set_timeout(pvm_host.block_height() + 3, b"", gba=pvm_host.self_address(), gas_limit=100_000)
"""
SMALL = {"auction.budget_cycles": 250_000, "timers.max_cycles_per_fire": 250_000}


@pytest.fixture
def history() -> LocalChain:
    """Return an auction in which three actors compete for room for two."""
    chain = LocalChain(mechanism="auction", params=SMALL)
    owners = chain.accounts[:3]
    actors = [chain.deploy(AGENT % (at, at), sender=owner, value=100 * CBY) for at, owner in enumerate(owners)]
    with chain.one_block():
        for actor, owner in zip(actors, owners, strict=True):
            actor.call("begin", sender=owner, check=True)
    chain.mine(60)
    return chain


def test_agent_that_answered_gives_what_happened(history: LocalChain) -> None:
    """For one actor's timers its own agent is the one tried, and every figure is that of the chain."""
    [owner] = {event.emitter for event in history.events("actor.deployed")[1:2]}
    found = backtest(history.chain, AGENT % (1, 1), actors=[owner])
    assert found.agent == found.recorded
    assert found.recorded.fires > 10
    assert found.recorded.paid == sum(each.fee_paid for each in history.receipts(origin="timer", actor=owner))


def test_agent_that_offers_more_waits_less_and_pays_more(history: LocalChain) -> None:
    """And the default bid, which is without a tip, waits longest."""
    [owner] = {event.emitter for event in history.events("actor.deployed")[:1]}
    found = backtest(history.chain, AGENT % (50, 50), actors=[owner])
    assert found.agent.mean_delay < found.recorded.mean_delay
    assert found.agent.tips > found.recorded.tips
    assert found.default.failures == found.default.questions > 0
    assert found.agent.overpaid > 0


def test_agent_is_asked_from_a_block_on(history: LocalChain) -> None:
    """What came before counts for nothing."""
    whole, late = (backtest(history.chain, AGENT % (9, 9), first=first) for first in (1, 40))
    assert 0 < late.recorded.fires < whole.recorded.fires
    assert late.agent.refused == 0


def test_agents_own_failures_are_counted(history: LocalChain) -> None:
    """An answer that is no bid falls back to the default."""
    found = backtest(history.chain, "def get_gas_bid(payload):\n    return b'no bid'\n")
    assert found.agent.failures == found.agent.questions
    assert (found.agent.fires, found.agent.delays) == (found.default.fires, found.default.delays)


def test_backtest_is_refused_when_there_is_nothing_to_ask(history: LocalChain, chain: LocalChain) -> None:
    """A chain without agents, a source without the handler, a block that is not there, a stranger."""
    chain.mine(3)
    for where, source, options, words in (
        (chain, AGENT % (1, 1), {}, "blocks 1 to 3 ask no gas bidding agent for a bid"),
        (history, "def other(payload):\n    pass\n", {}, "the agent has no handler get_gas_bid"),
        (history, AGENT % (1, 1), {"first": 1_000}, "a backtest begins with a block of 1..=64, not 1000"),
        (history, AGENT % (1, 1), {"actors": [bytes(20)]}, "about timers of 0x0000"),
        (history, "import random\n", {}, "import of random"),
    ):
        with pytest.raises(Rejection, match=words):
            backtest(where.chain, source, **options)


def test_lane_agent_is_tried_on_its_own_timers() -> None:
    """In the lane an agent prices the timers that name it."""
    source = """
from trailboss.sdk import GasBidContext, gas_bid

def get_gas_bid(payload):
    context = GasBidContext.decode(payload)
    return gas_bid(10**6, %d)
"""
    with LocalChain(mechanism="lane") as chain:
        agent = chain.deploy(source % 7, sender=chain.accounts[0])
        for account in chain.accounts[:4]:
            for height in (20, 22, 24):
                chain.schedule(height, sender=account, gas_bidding_agent=agent, gas_limit=250_000)
        chain.advance_to(40)
        same, more = (backtest(chain.chain, source % tip) for tip in (7, 700))
    assert same.agent == same.recorded
    assert same.recorded.fires == 12
    assert more.agent.tips == 100 * same.agent.tips
