"""A runway ends in the block in which the purse really runs dry."""

from fractions import Fraction

import pytest

from trailboss.forecast import runway as module
from trailboss.forecast.runway import Reach, Runway
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
CELLS = 550_000 * 10_000
"""What the cells of a fire reserve at the lowest basefee."""

PULSE = """
import pvm_host

def start(payload):
    for each in payload.split(b" "):
        schedule(each)

def handle_timer(payload):
    schedule(payload)

def once(payload):
    height, gas, cap = payload.split(b",")
    fees = {} if cap == b"-" else {"max_fee_per_cycle": int(cap), "max_priority_fee_per_cycle": 0}
    payer = pvm_host.context()["sender"]
    pvm_host.schedule_timer(int(height), b"x", fee_payer=payer, gas_limit=int(gas), **fees)

def ask_me(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())

def schedule(payload):
    if payload != b"x":
        every, gas = payload.split(b",")
        pvm_host.schedule_timer(pvm_host.block_height() + int(every), payload, gas_limit=int(gas))
"""
"""Loops that go on for ever, each given as blocks between fires and gas limit; and timers that the sender pays for."""


def beating(mechanism: str, loops: str, value: int, blocks: int = 40) -> ActorHandle:
    """Return an actor whose loops have gone on for so many blocks, at prices that rest."""
    chain = LocalChain(mechanism=mechanism)
    chain.mine(40)
    pulse = chain.deploy(PULSE, sender=chain.accounts[0], value=value)
    pulse.call("start", loops.encode(), sender=chain.accounts[0], check=True)
    chain.mine(blocks)
    return pulse


def present(runway: Runway) -> Reach:
    """Return how far the purse reaches at the prices of now."""
    return runway.reaches[0]


def check_truth(pulse: ActorHandle, blocks: int) -> None:
    """Build blocks until the purse is dry; block, fires, need and lack are those that the runway has told."""
    chain = pulse.chain
    runway = chain.runway(pulse)
    reach = present(runway)
    assert reach.dry_at is not None
    assert reach.dry_at < chain.height + blocks
    mark = chain.height
    chain.advance_to(reach.dry_at)
    [ending] = chain.events(TIMER_UNFUNDED, mark)
    assert (ending.block_height, ending.data["required"]) == (reach.dry_at, reach.required)
    assert ending.data["available"] == reach.available
    assert len(chain.receipts(mark + 1, origin="timer")) == reach.fires
    assert runway.balance - pulse.balance == reach.spent


@pytest.mark.spec("F-51")
@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
@pytest.mark.parametrize("every", [1, 7, 10])
def test_purse_runs_dry_in_the_block_told_when_a_heart_beats(mechanism: str, every: int) -> None:
    """One loop, paid by its actor: the last pre-charge is what stays in the purse."""
    pulse = beating(mechanism, f"{every},50000", 12 * CBY)
    lane = 1_000 if mechanism == "lane" else 0
    runway = pulse.chain.runway(pulse)
    [actor] = runway.actors
    assert (actor.timers, actor.interval, actor.is_worst_case) == (1, Fraction(every), False)
    assert (present(runway).lane_basefee, present(runway).required) == (lane, 50_000 * (10_000 + lane) + CELLS)
    check_truth(pulse, 1_000)


@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
def test_example_heart_runs_dry_in_the_block_told_when_its_fires_grow(mechanism: str) -> None:
    """Its counter gets a digit more at 100 beats and at 1,000: too little to move the block."""
    with LocalChain(mechanism=mechanism) as chain:
        heart = chain.deploy("examples/actors/heartbeat.py", sender=chain.accounts[0], value=30 * CBY)
        chain.mine(150)
        reach = present(chain.runway(heart))
        assert reach.dry_at is not None
        mark = chain.height
        chain.advance_to(reach.dry_at)
        assert [event.block_height for event in chain.events(TIMER_UNFUNDED)] == [reach.dry_at]
        assert len(chain.receipts(mark + 1, origin="timer")) == reach.fires > 150


@pytest.mark.spec("F-51")
def test_two_loops_of_one_height_need_both_reserves_when_the_order_is_fifo() -> None:
    """The first of the pair still fires in the block in which the second finds too little."""
    pulse = beating("fifo", "5,50000 5,50000", 16 * CBY)
    runway = pulse.chain.runway(pulse)
    assert (runway.actors[0].timers, runway.actors[0].interval) == (2, Fraction(5, 2))
    check_truth(pulse, 1_000)


def test_two_loops_of_one_height_need_one_reserve_when_each_is_settled_in_turn() -> None:
    """The purse reaches further down in the lane."""
    pulse = beating("lane", "5,50000 5,50000", 16 * CBY)
    check_truth(pulse, 1_000)


def test_prices_are_those_told_when_they_have_moved() -> None:
    """10,000, 8,750, 7,657, 6,700 … fall to 1,000 in 40 blocks: the 38th of 40 by price is the third."""
    with LocalChain(mechanism="lane") as chain:
        chain.mine(40)
        now, twice, high = chain.runway(chain.accounts[0]).reaches
        assert (now.name, now.cycle_basefee, now.lane_basefee, now.cell_basefee) == ("present", 10_000, 1_000, 10_000)
        assert (twice.name, twice.cycle_basefee, twice.lane_basefee, twice.cell_basefee) == (
            "twice", 20_000, 2_000, 20_000,
        )  # fmt: skip
        assert (high.name, high.cycle_basefee, high.lane_basefee, high.cell_basefee) == ("p95", 10_000, 7_657, 10_000)
        assert chain.decisions(3).lane_basefee == 7_657
        assert chain.runway(chain.accounts[0], blocks=1).reaches[2].lane_basefee == 1_000


def scheduled(mechanism: str, timers: list[str], **params: int) -> LocalChain:
    """Return a chain with timers that the third account pays for, each as height, gas limit and cap or ``-``."""
    chain = LocalChain(mechanism=mechanism, params=params)
    chain.mine(40)
    pulse = chain.deploy(PULSE, sender=chain.accounts[0], value=CBY)
    for each in timers:
        pulse.call("once", each.encode(), sender=chain.accounts[2], check=True)
    return chain


def test_timers_are_counted_once_and_at_their_worst_when_none_has_fired() -> None:
    """What is scheduled is paid for, and nothing follows."""
    chain = scheduled("fifo", ["100,50000,-", "90,20000,-"])
    runway = chain.runway(chain.accounts[2])
    [actor] = runway.actors
    assert (actor.timers, actor.fires, actor.interval, actor.is_worst_case) == (2, 0, None, True)
    assert (present(runway).fires, present(runway).dry_at) == (2, None)
    assert present(runway).spent == 70_000 * 10_000 + 2 * CELLS
    assert "no fire of 1 of its actors was seen" in runway.notes[0]
    for nobody in (chain.accounts[3], actor.actor):
        assert (chain.runway(nobody).timers, chain.runway(nobody).actors) == (0, ())

    spare = chain.balance(chain.accounts[2]) - 11 * CBY
    limits = {"cycles_limit": 20_000, "cells_limit": 1_000}
    chain.transfer(chain.accounts[3], spare, sender=chain.accounts[2], check=True, **limits)
    reach = present(chain.runway(chain.accounts[2]))
    assert (reach.fires, reach.dry_at, reach.required) == (1, 100, 6 * CBY)
    assert reach.available == chain.balance(chain.accounts[2]) - 20_000 * 10_000 - CELLS


def test_actor_that_has_no_live_timer_does_not_go_on_when_it_has_fired() -> None:
    """Its fires were paid, and are told."""
    chain = scheduled("fifo", ["60,50000,-"])
    chain.advance_to(61)
    runway = chain.runway(chain.accounts[2])
    [actor] = runway.actors
    assert (actor.timers, actor.fires, actor.span, actor.interval) == (0, 1, 0, None)
    assert (runway.timers, present(runway).fires, present(runway).dry_at) == (0, 0, None)


@pytest.mark.spec("L-02")
def test_timer_is_left_out_when_a_price_shuts_it_out() -> None:
    """A cap of 1,500 holds at 1,000, and not at 2,000 nor at the 95th percentile."""
    chain = scheduled("lane", ["100,50000,1500"])
    runway = chain.runway(chain.accounts[2])
    assert [(reach.fires, reach.priced_out, reach.dry_at) for reach in runway.reaches] == [
        (1, 0, None), (0, 1, None), (0, 1, None),
    ]  # fmt: skip


@pytest.mark.spec("L-05", "L-30")
def test_timers_that_cannot_fire_are_stuck_when_the_lane_has_begun() -> None:
    """The lane sets 550,000 aside, before as after its activation, and a clamp frees it."""
    chain = scheduled("fifo", ["100,550000,-", "110,50000,-"], **{"lane.activation_height": 80})
    runway = chain.runway(chain.accounts[2])
    assert (runway.timers, runway.stuck, runway.actors[0].timers, present(runway).fires) == (2, 1, 1, 1)
    assert "the timer lane begins at height 80" in runway.notes[0]
    chain.advance_to(105)
    runway = chain.runway(chain.accounts[2])
    assert (runway.timers, runway.stuck, present(runway).fires) == (2, 1, 1)
    assert "no fire" in runway.notes[0]
    clamped = scheduled("fifo", ["100,550000,-"], **{"lane.activation_height": 80, "lane.clamps_gas_limit": 1})
    reach = present(clamped.runway(clamped.accounts[2]))
    assert (reach.fires, reach.spent) == (1, 250_000 * 10_000 + CELLS)


def test_rest_of_the_timers_is_left_out_when_there_are_more_than_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the lowest heights are counted, and the note says so."""
    chain = scheduled("fifo", ["100,50000,-", "90,50000,-", "110,50000,-"])
    assert not chain.runway(chain.accounts[2]).has_more
    monkeypatch.setattr(module, "TIMERS_MAX", 2)
    runway = chain.runway(chain.accounts[2])
    assert (runway.timers, runway.has_more, present(runway).fires) == (2, True, 2)
    assert "more than 2 timers" in runway.notes[0]


def test_payer_is_refused_when_it_is_no_address() -> None:
    """And so is a number of blocks that cannot be looked at."""
    with LocalChain() as chain:
        with pytest.raises(Rejection, match="Address must be 20 bytes"):
            chain.runway(b"short")
        with pytest.raises(Rejection, match="blocks is 0") as caught:
            chain.runway(bytes(20), blocks=0)
        assert caught.value.reason is RejectionReason.INVALID_INPUT


@pytest.mark.spec("L-20")
def test_note_says_so_when_agents_price_the_timers() -> None:
    """They are counted at the default's fees: the tip is the median of the block before, here 0."""
    pulse = beating("lane", "10,50000", 12 * CBY)
    pulse.call("ask_me", sender=pulse.chain.accounts[0], check=True)
    pulse.chain.mine(10)
    runway = pulse.chain.runway(pulse)
    assert "gas bidding agents decide" in runway.notes[0]
    assert present(runway).required == 50_000 * 11_000 + CELLS
