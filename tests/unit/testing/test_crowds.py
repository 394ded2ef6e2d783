"""Crowds beside the actor under test."""

from collections import Counter

import pytest
from msgspec.structs import asdict

from trailboss.model.transactions import UpdateTimerConfig
from trailboss.primitives.errors import Rejection
from trailboss.testing import CBY, LocalChain

WATCHMAN = """
import pvm_host

def round(payload):
    pvm_host.schedule_timer_ex(int(payload), b"", gas_limit=50_000)

def handle_timer(payload):
    pvm_host.set_state(b"made", b"1")
"""


OUTBID = {"max_priority_fee_per_cycle": 10_000, "max_fee_per_cycle": 10**6}


@pytest.mark.parametrize(("mechanism", "offer"), [("fifo", {}), ("lane", OUTBID)])
def test_one_line_makes_an_actor_late_when_the_lane_is_congested(mechanism: str, offer: dict[str, int]) -> None:
    """Twice the cycles for six blocks, and its timer waits for the rest of them; the money adds up."""
    with LocalChain(mechanism=mechanism) as chain:
        alice = chain.accounts[0]
        watchman = chain.deploy(WATCHMAN, sender=alice, value=100 * CBY)
        watchman.call("round", b"9", sender=alice, check=True)
        chain.congest(blocks=6, load=2, **offer)
        [fire] = chain.mine_to_next_fire(actor=watchman)
        [fired] = [each.data for each in chain.events("timer.fired") if each.emitter == watchman.address]
        assert fired["blocks_deferred"] == fire.block_height - 9 >= 5
        chain.check_invariants()


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "globalbox"])
def test_storm_of_unfunded_timers_ends_them_all(mechanism: str) -> None:
    """In the auction they would wait."""
    with LocalChain(mechanism=mechanism) as chain:
        timers = chain.storm("unfunded", blocks=2)
        chain.mine(20)
        totals = chain.chain.totals()
        assert (totals.unfunded, totals.fired, chain.timers()) == (len(timers), 0, [])


def test_storm_of_expiry_ends_what_one_block_cannot_run(chain: LocalChain) -> None:
    """Each timer either fires in the block of its height or expires."""
    timers = chain.storm("expiry", blocks=5)
    chain.mine(10)
    totals = chain.chain.totals()
    assert (totals.fired, totals.expired) == (4, len(timers) - 4)


@pytest.mark.parametrize(("kind", "delay"), [("same_height", 3), ("outage", 3)])
def test_storm_takes_the_blocks_that_it_asks_for(chain: LocalChain, kind: str, delay: int) -> None:
    """The last of its fires comes so many blocks after its height, and none is lost."""
    timers = chain.storm(kind, blocks=4)
    chain.mine(30)
    fires = chain.receipts(origin="timer")
    assert (len(fires), fires[-1].block_height - fires[0].block_height) == (len(timers), delay)


@pytest.mark.parametrize("most", [1, 5, 30])
def test_crowd_has_as_many_actors_as_its_timers_need(chain: LocalChain, most: int) -> None:
    """Where governance lets an actor have few timers, also fewer than one transaction sets."""
    chain.system(UpdateTimerConfig(**asdict(chain.chain.rules().timer) | {"max_timers_per_actor": most}))
    timers = chain.congest(blocks=2)
    owners = Counter(timer.actor for timer in chain.timers())
    assert owners.total() == len(timers) == 16
    assert max(owners.values()) == min(most, 16)


def test_crowd_is_refused_when_it_makes_no_sense(chain: LocalChain) -> None:
    """The value and the rule are named, and no block is built."""
    for call, words in (
        (lambda: chain.congest(0), "a crowd of 0 blocks: at least 1"),
        (lambda: chain.congest(load=0), "a crowd has 1 to 4,000 timers, not 0"),
        (lambda: chain.congest(blocks=2_000), "a crowd has 1 to 4,000 timers, not 16,000"),
        (lambda: chain.congest(start=1), "due from height 2 on, after the block that sets them, not at 1"),
        (lambda: chain.storm("hail"), "there is no storm 'hail'; there are expiry, unfunded, same_height, outage"),
        (lambda: chain.congest(bid=1), "bid is no option of a timer under mechanism fifo"),
    ):
        with pytest.raises(Rejection, match=words):
            call()
    assert chain.height == 0
