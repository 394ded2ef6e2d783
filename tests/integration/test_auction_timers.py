"""Timers of the auction on a chain: how one is set, when it runs, who pays, and what becomes of one that cannot."""

import pytest

from tests.integration.auctions import (
    CAP,
    CBY,
    GAS,
    arm,
    bidder,
    examined,
    fired,
    open_auction,
    price,
    ran,
    record,
    standing,
    tell,
    terms,
    timer_of,
    told,
)
from tests.integration.helpers import INDEX_CELLS
from trailboss.model.timers import ASK_AGENT
from trailboss.model.transactions import CancelTimer, ExtendTimer, FundActor
from trailboss.primitives.units import U64_MAX
from trailboss.testing import LocalChain


def costs(chain: LocalChain, gas_limit: int = GAS, tip: int = 0) -> int:
    """Return what a fire is pre-charged in the next block."""
    rules = chain.chain.rules()
    cycle, cell = rules.timer_basefees()
    return gas_limit * (cycle + tip) + rules.timer.max_cells_per_fire * cell


@pytest.mark.spec("A-01", "A-06")
def test_timer_names_its_agent_its_owner_pays_and_it_never_expires() -> None:
    """The record, and the event that tells of it."""
    chain = open_auction()
    actor, agent = bidder(chain), bidder(chain)
    actor.call("choose", bytes(agent.address), sender=chain.accounts[0], check=True)
    (timer_id,) = arm(actor, "a", height=30)
    timer = timer_of(chain, timer_id)
    assert (timer.actor, timer.fee_payer, timer.gas_limit) == (actor.address, actor.address, GAS)
    assert (timer.height, timer.expires_at, timer.fees, timer.payload) == (30, U64_MAX, ASK_AGENT, b"a")
    assert terms(chain, timer_id).agent == agent.address
    (event,) = told(chain, "timer.scheduled")
    assert event.data["gba"] == bytes(agent.address)
    assert event.data["expires_at"] == U64_MAX


@pytest.mark.spec("A-01")
@pytest.mark.parametrize(
    ("height", "size", "agent", "gas_limit", "code", "words"),
    [
        (0, 0, "own", GAS, 2, "must be above the present height"),
        (99, 4_097, "own", GAS, 2, "payload has 4097 bytes and the limit is 4096"),
        (99, 0, "77", GAS, 3, "there is no actor at"),
        (99, 0, "account", GAS, 3, "there is no actor at"),
        (99, 0, "own", 9_999, 2, "gas_limit is 9999, outside 10000..=550000"),
        (99, 0, "own", 550_001, 2, "gas_limit is 550001, outside 10000..=550000"),
        # The first rule that is broken is named.
        (0, 4_097, "77", 1, 2, "must be above the present height"),
        (99, 4_097, "77", 1, 2, "payload has 4097 bytes"),
        (99, 0, "77", 1, 3, "there is no actor at"),
    ],
)
def test_timer_is_refused_when_a_rule_is_broken(
    *, height: int, size: int, agent: str, gas_limit: int, code: int, words: str
) -> None:
    """Height, payload, agent, gas limit, in this order; nothing has changed."""
    chain = open_auction(timers__payload_bytes_max=4_096)
    actor = bidder(chain)
    addresses = {"own": actor.address, "account": chain.accounts[1].address, "77": bytes(19) + b"\x77"}
    payload = f"{height} {size} {bytes(addresses[agent]).hex()} {gas_limit}"
    receipt = actor.call("try_to_set", payload.encode(), sender=chain.accounts[0], check=True)
    number, _, said = receipt.return_value.decode().partition(" ")
    assert int(number) == code
    assert words in said
    assert chain.timers() == []
    assert chain.chain.totals().scheduled == 0


@pytest.mark.spec("A-01")
def test_timer_is_refused_when_its_actor_holds_too_many() -> None:
    """The cap on live timers is that of every mechanism."""
    chain = open_auction(timers__max_timers_per_actor=2)
    actor = bidder(chain)
    arm(actor, "a", "b", height=30)
    payload = f"30 0 {bytes(actor.address).hex()} {GAS}"
    receipt = actor.call("try_to_set", payload.encode(), sender=chain.accounts[0], check=True)
    assert b"holds 2 live timers and the limit is 2" in receipt.return_value


@pytest.mark.spec("A-07")
def test_setting_a_timer_costs_its_price_and_its_cells_at_once() -> None:
    """The same transaction on two chains whose price for setting a timer differs by 1,000 cycles."""
    receipts = []
    for cycles in (200, 1_200):
        chain = open_auction(costs__timer_schedule=cycles)
        actor = bidder(chain)
        payload = b"a:30:100000"
        receipts.append(actor.call("arm", payload, sender=chain.accounts[0], check=True))
    cheap, dear = receipts
    assert dear.cycles_used - cheap.cycles_used == 1_000
    written = len(b"id:a") + 32
    assert cheap.cells_used == len("arm") + len(b"a:30:100000") + len(b"a") + INDEX_CELLS + written


@pytest.mark.spec("A-01")
def test_governance_cannot_extend_a_timer_that_never_expires() -> None:
    """The instruction is refused, whatever timer it names; cancelling works."""
    chain = open_auction()
    (timer_id,) = arm(bidder(chain), "a", height=30)
    for named in (timer_id, bytes(32)):
        receipt = chain.system(ExtendTimer(named, chain.height + 50))
        assert receipt.error is not None
        assert receipt.error.slug == "unsupported_instruction"
        assert receipt.error.what == ("ExtendTimer is not executed under mechanism auction, whose timers never expire")
    assert timer_of(chain, timer_id).expires_at == U64_MAX
    chain.system(CancelTimer(timer_id), check=True)
    assert chain.timers() == []


@pytest.mark.spec("A-02")
def test_timers_run_before_the_transactions_of_their_block() -> None:
    """A transaction of the same block is not seen by the fire, and sees what the fire did."""
    chain = open_auction()
    actor = bidder(chain)
    arm(actor, "a", height=chain.height + 2)
    with chain.one_block():
        tell(actor, "note", "early")
        tell(actor, "price", "5 5")
    assert actor.storage[b"saw:a"] == b"nothing"
    assert actor.storage[b"noted"] == b"early"
    assert [receipt.origin for receipt in chain.receipts(chain.height)] == ["timer", "transaction", "transaction"]


@pytest.mark.spec("A-06", "A-08")
def test_timer_is_deferred_and_not_destroyed_when_its_owner_cannot_pay() -> None:
    """It is told once, waits while the purse is empty, and fires in the block after money has come."""
    chain = open_auction()
    actor = bidder(chain, value=CBY)
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    due = chain.height + 1
    chain.mine(5)
    assert ran(actor) == []
    assert timer_of(chain, timer_id).deferred_for == "unfunded"
    assert [event.data["reason"] for event in told(chain, "timer.deferred")] == ["unfunded"]
    assert terms(chain, timer_id).asked_at == chain.height
    chain.send(FundActor(actor.address, 100 * CBY), sender=chain.accounts[0], check=True)
    assert ran(actor) == []
    chain.mine()
    assert ran(actor) == ["a"]
    (event,) = told(chain, "timer.fired")
    assert event.data["blocks_deferred"] == chain.height - due
    assert event.data["fee_payer"] == bytes(actor.address)


@pytest.mark.spec("A-06")
@pytest.mark.parametrize("shortfall", [0, 1])
def test_owner_needs_the_worst_case_cost_at_its_own_bid(shortfall: int) -> None:
    """Gas at basefee and tip, cells at their basefee: with exactly that it fires, with one unit less it waits."""
    chain = open_auction()
    actor = bidder(chain, f"{CAP} 500", value=0)
    arm(actor, "a", height=chain.height + 3)
    chain.mine()
    chain.send(FundActor(actor.address, costs(chain, tip=500) - shortfall), sender=chain.accounts[0], check=True)
    chain.mine()
    assert ran(actor) == ([] if shortfall else ["a"])


@pytest.mark.spec("A-08")
def test_timers_carry_over_until_all_have_run() -> None:
    """Room for one a block: the three go in order of insertion, one in each of three blocks, and none is lost."""
    chain = open_auction(auction__budget_cycles=550_000)
    actor = bidder(chain)
    ids = arm(actor, "~a", "~b", "~c", height=chain.height + 2, gas_limit=550_000)
    chain.mine()
    for timer_id in ids:
        assert fired(chain) == [timer_id]
        chain.mine()
    assert [event.data["blocks_deferred"] for event in told(chain, "timer.fired")] == [0, 1, 2]
    totals = chain.chain.totals()
    assert (totals.scheduled, totals.fired, totals.cancelled) == (3, 3, 0)


@pytest.mark.spec("A-08")
def test_waiting_writes_nothing_about_timers_that_are_not_asked_about() -> None:
    """Three are priced out and one question fits a block: one record changes, and nobody's count of deferrals."""
    chain = open_auction(auction__gba_cycles_per_block=50_000, auction__delays_max=1_000)
    actor = bidder(chain, "1 0")
    first = chain.height + 4
    ids = [arm(actor, label, height=first + number)[0] for number, label in enumerate("abc")]
    chain.advance_to(first + 6)
    before, counts = {timer.timer_id: timer for timer in chain.chain.timers()}, standing(actor)
    assert sorted(terms(chain, timer_id).asked_at for timer_id in ids) == [chain.height - 2 + n for n in range(3)]
    chain.mine()
    asked = [timer_id for timer_id in ids if timer_of(chain, timer_id) != before[timer_id]]
    assert asked == [min(ids, key=lambda timer_id: before[timer_id].terms.asked_at)]
    assert record(chain).priced_out == 3
    assert standing(actor) == counts
    assert counts.waiting == 3


def test_timer_can_be_cancelled_by_its_owner_and_by_an_earlier_fire() -> None:
    """Before it is due, while it waits, and in its own block before its turn."""
    chain = open_auction()
    actor = bidder(chain)
    arm(actor, "early", height=chain.height + 9)
    tell(actor, "drop", "early")
    assert chain.timers() == []
    price(actor, "1 0")
    arm(actor, "late", height=chain.height + 2)
    chain.mine(2)
    tell(actor, "drop", "late")
    price(actor, f"{CAP} 0")
    arm(actor, "drop/last", "last", height=chain.height + 2)
    chain.mine()
    assert ran(actor) == ["drop/last"]
    assert chain.timers() == []
    assert len(told(chain, "timer.cancelled")) == 3


def test_fire_pays_the_proposer_its_effective_tip() -> None:
    """The tip is held within the cap less the cycle basefee."""
    chain = open_auction()
    basefee = chain.chain.rules().timer_basefees()[0]
    actor = bidder(chain, f"{basefee + 5} 77")
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    chain.mine()
    (receipt,) = chain.receipts(chain.height, origin="timer")
    item = examined(chain)[timer_id]
    assert item.tip == basefee + 5 - record(chain).cycle_basefee
    assert receipt.tip == item.tip * receipt.cycles_used


@pytest.mark.spec("A-15")
@pytest.mark.parametrize(
    ("gas_limit", "labels", "limits"),
    [
        (40_000, ("big1", "big2"), {"cells_limit": 500_000}),
        (500_000, tuple(f"~{number}" for number in range(20)), {"cycles_limit": 10_000_000}),
    ],
)
def test_fires_take_no_room_from_the_transactions_after_them(
    gas_limit: int, labels: tuple[str, ...], limits: dict[str, int]
) -> None:
    """Fires have the budget; two transactions find all 20,000,000 cycles and 1,000,000 cells. Both count as used."""
    chain = LocalChain(mechanism="auction")
    actor = bidder(chain, value=100_000 * CBY)
    arm(actor, *labels, height=9, gas_limit=gas_limit)
    chain.advance_to(8)
    with chain.one_block():
        sent = [chain.transfer(actor.address, 5, sender=sender, **limits) for sender in chain.accounts[:2]]
    assert [receipt.status for receipt in sent] == ["ok", "ok"]
    header, fires = chain.chain.head.header, chain.receipts(origin="timer")
    assert len(fires) == len(labels)
    assert header.timer_cycles_used == sum(fire.cycles_used for fire in fires)
    receipts = [*fires, *sent]
    assert header.cycles_used == sum(receipt.cycles_used for receipt in receipts)
    assert header.cells_used == sum(receipt.cells_used for receipt in receipts)


@pytest.mark.spec("A-15")
def test_transactions_still_fill_their_own_room() -> None:
    """One cell more than the block has for transactions is refused, with and without a fire before it."""
    chain = LocalChain(mechanism="auction")
    actor = bidder(chain, value=100_000 * CBY)
    arm(actor, "big1", height=9, gas_limit=40_000)
    chain.advance_to(8)
    with chain.one_block():
        first = chain.transfer(actor.address, 5, sender=chain.accounts[0])
        room = chain.chain.params.limits.block_cells_max
        second = chain.transfer(actor.address, 5, sender=chain.accounts[1], cells_limit=room - 499)
    assert (first.status, second.status) == ("ok", "refused")
    assert second.error is not None
    assert second.error.what == f"cells_limit is {room - 499}, the block has {room - 500} of {room} cells left"
