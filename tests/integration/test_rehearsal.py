"""Rehearsing the activation of the timer lane: what it says comes true, and nothing changes by saying it."""

import json
from pathlib import Path
from typing import Any

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.rehearsal.rehearse import ActivationRehearsal, RehearsedTimer
from trailboss.rehearsal.run import Fate
from trailboss.testing import ActorHandle, LocalChain, SetGovParam

CBY = 10**9
FIFO_COST = 50_000 * 10_000 + 550_000 * 10_000
"""What FIFO reserves for a fire of 50,000 cycles."""

WORKER = """
import json
import pvm_host

def plan(payload):
    for order in json.loads(payload):
        pvm_host.schedule_timer(order.pop("height"), json.dumps(order.pop("then", {})).encode(), **order)

def agent(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())

def get_gas_bid(context):
    return {"max_fee_per_cycle": 5_000, "max_priority_fee_per_cycle": 0}

def handle_timer(payload):
    pvm_host.set_state(b"fires", pvm_host.get_state(b"fires") or b"" + b"x")
    then = json.loads(payload)
    pvm_host.charge_gas(then.get("burn", 0))
    if "plan" in then:
        plan(json.dumps(then["plan"]).encode())
"""


def worker(chain: LocalChain, orders: list[dict[str, Any]], value: int = 1_000 * CBY) -> ActorHandle:
    """Return an actor that has scheduled timers: of each order the height, ``then`` for its fire, and what else."""
    actor = chain.deploy(WORKER, sender=chain.accounts[0], value=value)
    actor.call("plan", json.dumps(orders).encode(), sender=chain.accounts[0], check=True)
    return actor


def activate(chain: LocalChain, height: int) -> None:
    chain.system(SetGovParam(b"system:cip1:activation_height", height.to_bytes(8, "big")), check=True)


def fates(rehearsal: ActivationRehearsal) -> list[tuple[str, int | None, int]]:
    """Return outcome, height and delay in the lane of each timer, in due order."""
    timers = sorted(rehearsal.timers, key=lambda timer: (timer.height, timer.lane.height or 0))
    return [(timer.lane.outcome, timer.lane.height, timer.lane.delay) for timer in timers]


def only(rehearsal: ActivationRehearsal) -> RehearsedTimer:
    [timer] = rehearsal.timers
    return timer


@pytest.mark.spec("L-33", "L-05")
def test_default_timers_are_stranded_when_the_cap_is_kept_literally() -> None:
    """550,000 cycles are above 250,000: counted, listed, told until when, the later ones too; FIFO fires them all."""
    with LocalChain() as chain:
        worker(chain, [{"height": 30}] * 5 + [{"height": 31, "gas_limit": 250_000}, {"height": 500}])
        rehearsal = chain.rehearse_activation(20, blocks=40)
        ttl = 2 + 2_592_000
        assert fates(rehearsal) == [*[("stranded", None, 31)] * 5, ("fired", 31, 0)]
        assert (rehearsal.lane.stranded, rehearsal.lane.on_time, rehearsal.lane.timers) == (5, 1, 6)
        assert rehearsal.lane.waited_for == {"over_cap": 5}
        assert rehearsal.stranded_later == 1
        assert {timer.expires_at for timer in rehearsal.timers[:5]} == {ttl}
        assert all(timer.lane.waits == {"over_cap": 31} for timer in rehearsal.timers[:5])
        # FIFO fits three of 550,000 cycles into a lane of 2,000,000.
        assert (rehearsal.fifo.on_time, rehearsal.fifo.late, rehearsal.fifo.stranded) == (4, 2, 0)
        assert rehearsal.advice == (
            "5 timers carry 550,000 cycles, above the lane's cap of 250,000: it sets them aside until they expire, "
            f"after block {ttl}. 1 timer due later is above it too. Governance can set "
            "system:cip1:activation_clamps_gas_limit = 1; their actors can cancel and schedule them again",
        )


@pytest.mark.spec("L-33", "L-05")
def test_no_timer_is_stranded_when_governance_clamps_older_ones() -> None:
    """With the parameter at 1 all of them fire, held to the cap."""
    with LocalChain() as chain:
        worker(chain, [{"height": 30}] * 5 + [{"height": 500}])
        chain.system(SetGovParam(b"system:cip1:activation_clamps_gas_limit", (1).to_bytes(8, "big")), check=True)
        rehearsal = chain.rehearse_activation(20, blocks=40)
        assert rehearsal.clamps_gas_limit
        assert fates(rehearsal) == [("fired", 30, 0)] * 5
        assert (rehearsal.lane.stranded, rehearsal.stranded_later, rehearsal.advice) == (0, 0, ())


def test_clamped_timer_reverts_when_its_handler_needs_more_than_the_cap() -> None:
    """A fire that the clamp leaves too few cycles is told as reverted, with advice, and never as no worse than FIFO."""
    with LocalChain() as chain:
        actor = worker(chain, [{"height": 30, "then": {"burn": 300_000}}])
        chain.system(SetGovParam(b"system:cip1:activation_clamps_gas_limit", (1).to_bytes(8, "big")), check=True)
        rehearsal = chain.rehearse_activation(20, blocks=20)
        activate(chain, 20)
        chain.advance_to(40)
        [receipt] = chain.receipts(origin="timer")

    timer = only(rehearsal)
    assert receipt.error is not None
    assert timer.fifo is not None
    assert (timer.lane.outcome, timer.lane.error, timer.fifo.error) == ("fired", receipt.error.slug, "")
    assert (rehearsal.lane.on_time, rehearsal.lane.reverted, rehearsal.fifo.reverted) == (1, 1, 0)
    [advice] = rehearsal.advice
    assert advice.startswith(
        "1 timer would fire and revert (out_of_cycles), and does not under FIFO: a fire has at most 250,000"
    )
    assert b"fires" not in actor.storage


def test_stranded_timer_expires_when_its_time_ends_within_the_rehearsal() -> None:
    """It is told as expired, and why it waited."""
    with LocalChain() as chain:
        worker(chain, [{"height": 30, "expires_at": 33}])
        timer = only(chain.rehearse_activation(20, blocks=40))
        assert (timer.lane.outcome, timer.lane.height) == ("expired", 34)
        assert timer.lane.waits == {"over_cap": 4}
        assert timer.fifo is not None
        assert timer.fifo.outcome == "fired"


def test_timer_is_priced_out_when_its_agent_offers_less_than_the_basefee() -> None:
    """The agent offers 5,000. The basefee falls by an eighth a block from 10,000, and is 4,490 in the seventh."""
    with LocalChain() as chain:
        actor = chain.deploy(WORKER, sender=chain.accounts[0], value=1_000 * CBY)
        actor.call("agent", sender=chain.accounts[0], check=True)
        actor.call("plan", b'[{"height": 10, "gas_limit": 60000}]', sender=chain.accounts[0], check=True)
        rehearsal = chain.rehearse_activation(10, blocks=20)
        timer = only(rehearsal)
        assert (timer.lane.outcome, timer.lane.height, timer.lane.delay) == ("fired", 16, 6)
        assert (timer.lane.priced_out, timer.lane.waits) == (((10, 15),), {"priced_out": 6})
        assert timer.lane.payment is not None
        assert (timer.lane.payment.lane_basefee, timer.lane.payment.price_per_cycle) == (4_490, 14_490)
        assert rehearsal.basefees[:7] == (
            (10, 10_000), (11, 8_750), (12, 7_657), (13, 6_700), (14, 5_863), (15, 5_131), (16, 4_490),
        )  # fmt: skip
        assert rehearsal.advice == (
            "1 timer would be priced out for a while: what it offers is below the lane basefee",
            "1 timer would fire later than under FIFO, by up to 6 blocks",
        )


@pytest.mark.parametrize(("rivals", "reason"), [(8, "priced_out"), (30, "agent_offer")])
def test_agent_s_timer_is_told_apart_from_outranked_ones_as_far_as_records_name_them(rivals: int, reason: str) -> None:
    """The lane takes one fire a block. A record names 16 who come next: of 8 rivals all, of 30 not before the end."""
    with LocalChain(params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}) as chain:
        worker(chain, [{"height": 10, "gas_limit": 60_000}] * rivals)
        actor = chain.deploy(WORKER, sender=chain.accounts[1], value=100 * CBY)
        actor.call("agent", sender=chain.accounts[1], check=True)
        actor.call("plan", b'[{"height": 10, "gas_limit": 60000}]', sender=chain.accounts[1], check=True)
        rehearsal = chain.rehearse_activation(10, blocks=4)
        [timer] = [timer for timer in rehearsal.timers if timer.actor == actor.address]
        assert timer.lane.waits == {reason: 5}
        outranked = [timer.lane.waits["outranked"] for timer in rehearsal.timers if "outranked" in timer.lane.waits]
        assert sorted(outranked) == [1, 2, 3, 4, *[5] * (rivals - 5)]


def test_timer_of_a_fire_is_marked_and_priced_out_when_the_basefee_passes_its_cap() -> None:
    """Block 10 uses more than half of the lane, so 10,000 becomes 11,250; an empty block makes it 9,844 again."""
    then = {"burn": 30_000, "plan": [{"height": 11, "gas_limit": 50_000, "max_fee_per_cycle": 10_000}]}
    with LocalChain(params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}) as chain:
        worker(chain, [{"height": 10, "then": then}])
        rehearsal = chain.rehearse_activation(10, blocks=10)
        assert rehearsal.basefees[:3] == ((10, 10_000), (11, 11_250), (12, 9_844))
        first, second = sorted(rehearsal.timers, key=lambda timer: timer.height)
        assert (first.scheduled_at, second.scheduled_at) == (None, 10)
        assert (second.lane.height, second.lane.priced_out, second.lane.waits) == (12, ((11, 11),), {"priced_out": 1})
        # Under FIFO the fee is refused, so the fire reverts and there is no second timer.
        assert first.fifo is not None
        assert second.fifo is None
        assert (rehearsal.lane.timers, rehearsal.fifo.timers) == (2, 1)


def test_timers_are_delayed_when_the_lane_has_room_for_one_a_block() -> None:
    """One fire leaves less than the smallest gas limit, so the other two are not examined: outranked."""
    orders = [{"height": 12, "gas_limit": 60_000, "then": {"burn": 20_000}}] * 3
    with LocalChain(params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}) as chain:
        worker(chain, orders)
        rehearsal = chain.rehearse_activation(10, blocks=10)
        assert fates(rehearsal) == [("fired", 12, 0), ("fired", 13, 1), ("fired", 14, 2)]
        assert sorted(timer.lane.waits.get("outranked", 0) for timer in rehearsal.timers) == [0, 1, 2]
        assert (rehearsal.lane.on_time, rehearsal.lane.late) == (1, 2)
        assert rehearsal.lane.delays == {"0": 1, "1": 1, "2-10": 1, "11-100": 0, "101+": 0}


def test_timers_wait_to_join_when_more_fall_due_than_a_block_lets_in() -> None:
    """One joins in a block, in due order; the lane would have room for all."""
    with LocalChain(params={"lane.joined_max": 1}) as chain:
        worker(chain, [{"height": 12, "gas_limit": 60_000}] * 3)
        rehearsal = chain.rehearse_activation(10, blocks=10)
        assert fates(rehearsal) == [("fired", 12, 0), ("fired", 13, 1), ("fired", 14, 2)]
        assert sorted(timer.lane.waits.get("not_joined", 0) for timer in rehearsal.timers) == [0, 1, 2]
        assert rehearsal.lane.waited_for == {"not_joined": 2}


def test_timer_ends_unfunded_when_its_payer_has_just_what_fifo_takes() -> None:
    """The lane reserves its basefee besides: 50,000 cycles at 10,000 are missing."""
    with LocalChain() as chain:
        worker(chain, [{"height": 10, "gas_limit": 50_000}], value=FIFO_COST)
        rehearsal = chain.rehearse_activation(10, blocks=5)
        fate = only(rehearsal).lane
        assert (fate.outcome, fate.height, fate.missing) == ("unfunded", 10, 50_000 * 10_000)
        assert rehearsal.fifo.on_time == 1
        assert rehearsal.advice == (
            "1 timer would end unfunded, and fires under FIFO: a fire in the lane reserves more. Fund the payers; 0.5 "
            "CBY is the most that one lacks",
        )


def test_timer_that_is_overdue_before_the_activation_is_told_too() -> None:
    """Three of 60,000 cycles at one height: FIFO fires one a block, two before the activation and one after it."""
    with LocalChain(params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}) as chain:
        worker(chain, [{"height": 4, "gas_limit": 60_000}] * 4)
        chain.mine(2)
        rehearsal = chain.rehearse_activation(7, blocks=5)
        assert fates(rehearsal) == [("fired", 5, 1), ("fired", 6, 2), ("fired", 7, 3)]
        last = max(rehearsal.timers, key=lambda timer: timer.lane.delay)
        # Block 4 lies before the rehearsal.
        assert last.lane.waits == {"lane_full": 2}
        assert last.lane.payment is not None
        assert last.lane.payment.lane_basefee == 10_000


CROWD = [
    *({"height": 15 + index % 7, "gas_limit": 60_000, "then": {"burn": 10_000 * (index % 4)}} for index in range(24)),
    {"height": 16},
    {"height": 17, "gas_limit": 50_000, "expires_at": 17},
    {"height": 18, "gas_limit": 90_000, "then": {"plan": [{"height": 22}, {"height": 23, "gas_limit": 50_000}]}},
]


def real_fates(chain: LocalChain, rehearsal: ActivationRehearsal, *, fifo: bool) -> None:
    """Hold a rehearsal's payments against the events of a chain that has lived through the same blocks."""
    fired = {event.timer_id: event for event in chain.events("timer.fired", since=rehearsal.from_height + 1)}
    seen: dict[bytes, Fate] = {}
    for timer in rehearsal.timers:
        fate = timer.fifo if fifo else timer.lane
        if fate is None:
            continue
        if fate.payment is None:
            assert timer.timer_id not in fired
            continue
        seen[timer.timer_id] = fate
        event, payment = fired[timer.timer_id], fate.payment
        assert (event.block_height, event.data["blocks_deferred"]) == (fate.height, fate.delay)
        assert {name: event.data[name] for name in ("cycles_used", "cells_used", "tip", "lane_burned")} == {
            name: getattr(payment, name) for name in ("cycles_used", "cells_used", "tip", "lane_burned")
        }
        assert event.data["fee_paid"] == payment.paid
        assert payment.paid == payment.cycle_burned + payment.cell_burned + payment.lane_burned + payment.tip
        assert payment.cycle_burned == payment.cycles_used * payment.cycle_basefee
        assert payment.price_per_cycle * payment.cycles_used == payment.paid - payment.cell_burned
    totals = rehearsal.fifo if fifo else rehearsal.lane
    assert totals.paid == sum(event.data["fee_paid"] for event in fired.values())
    assert totals.on_time + totals.late == len(fired)
    if not fifo:
        assert seen.keys() == fired.keys()


@pytest.mark.spec("L-33")
@pytest.mark.parametrize("clamps", [0, 1])
def test_what_a_rehearsal_says_comes_true_when_the_lane_is_activated(clamps: int) -> None:
    """Each fire at its height and price, to the base unit; and as FIFO pays, where nobody activates it."""
    params = {"timers.lane_cycles_per_block": 150_000, "timers.max_cycles_per_fire": 150_000}
    params |= {"lane.max_cycles_per_fire": 100_000, "lane.clamps_gas_limit": clamps}
    with LocalChain(params=params) as chain:
        worker(chain, CROWD)
        other = chain.deploy(WORKER, sender=chain.accounts[1], value=1_000 * CBY)
        other.call("agent", sender=chain.accounts[1], check=True)
        other.call("plan", json.dumps(CROWD).encode(), sender=chain.accounts[1], check=True)
        rehearsal = chain.rehearse_activation(17, blocks=30)
        mark = chain.snapshot()

        activate(chain, 17)
        chain.advance_to(rehearsal.last_height)
        real_fates(chain, rehearsal, fifo=False)
        live = {timer.timer_id for timer in chain.timers() if timer.height <= rehearsal.last_height}
        assert live == {t.timer_id for t in rehearsal.timers if t.lane.outcome in ("stranded", "waiting")}
        assert bool(rehearsal.lane.stranded) == (clamps == 0)

        chain.revert(mark)
        chain.advance_to(rehearsal.last_height)
        real_fates(chain, rehearsal, fifo=True)


@pytest.mark.spec("L-33")
def test_chain_is_untouched_when_an_activation_is_rehearsed(tmp_path: Path) -> None:
    """Every byte of the directory, the root, the height and the timers; and the chain goes on as it would have."""
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        worker(chain, CROWD)
        files = {path: path.read_bytes() for path in (tmp_path / "chain").iterdir()}
        before = chain.height, chain.state_root, chain.chain.head, chain.timers()
        chain.rehearse_activation(17, blocks=30)
        assert (chain.height, chain.state_root, chain.chain.head, chain.timers()) == before
        assert {path: path.read_bytes() for path in (tmp_path / "chain").iterdir()} == files
        chain.advance_to(50)
        root = chain.state_root
    with LocalChain() as plain:
        worker(plain, CROWD)
        plain.advance_to(50)
        assert plain.state_root == root


def test_activation_that_is_voted_can_be_rehearsed_until_it_begins() -> None:
    """Its own height up to the last block before it; another one as long as governance would take it."""
    with LocalChain() as chain:
        worker(chain, [{"height": 12, "gas_limit": 60_000}])
        activate(chain, 10)
        assert chain.rehearse_activation(8, blocks=5).lane.lane_burned > 0
        assert chain.rehearse_activation(20, blocks=5).lane.lane_burned == 0
        chain.advance_to(7)
        with pytest.raises(Rejection, match="system:cip1:activation_height = 9 must be at least 10"):
            chain.rehearse_activation(9)
        chain.advance_to(9)
        rehearsal = chain.rehearse_activation(10, blocks=5)
        assert rehearsal.lane.lane_burned > 0
        assert rehearsal.fifo.lane_burned == 0
        chain.mine()
        with pytest.raises(Rejection, match="the lane is active from height 10 on, and this is block 11"):
            chain.rehearse_activation(20)


def test_rehearsal_is_refused_when_its_heights_cannot_be() -> None:
    """As governance refuses: two blocks ahead of the next one; and for a day at most, as far as heights go."""
    with LocalChain() as chain:
        with pytest.raises(Rejection, match="= 2 must be at least 3, 2 blocks ahead of height 1"):
            chain.rehearse_activation(2)
        with pytest.raises(Rejection, match="cannot rehearse -1 blocks after height 3"):
            chain.rehearse_activation(3, blocks=-1)
        for blocks in (100_001, 2**64 - 1):
            with pytest.raises(Rejection, match=rf"cannot rehearse {blocks} blocks .* it can be 0\.\.=100000"):
                chain.rehearse_activation(3, blocks=blocks)
        with pytest.raises(Rejection, match=r"cannot rehearse 8 blocks .* it can be 0\.\.=7"):
            chain.rehearse_activation(2**64 - 9, blocks=8)
    for height in (1, 10):
        with LocalChain(mechanism="lane") as chain, pytest.raises(Rejection, match="active from height 1 on"):
            chain.rehearse_activation(height)


def test_rehearsal_of_an_idle_chain_shows_the_way_of_the_basefee() -> None:
    """Without a timer: no advice, and the basefee falls to its floor."""
    with LocalChain() as chain:
        rehearsal = chain.rehearse_activation(3, blocks=0)
        assert (rehearsal.basefees, rehearsal.timers, rehearsal.advice) == (((3, 10_000),), (), ())
        assert chain.rehearse_activation(3, blocks=50).basefees[-1] == (21, 1_000)
