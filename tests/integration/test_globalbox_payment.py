"""Who pays for a fire under Globalbox, when, and at which prices: the money that waits with an entry of the mailbox."""

from collections.abc import Iterator

import pytest

from tests.integration.boxes import BID, GAS, deploy_box, ended, key, mailbox, open_box, put, set_timeout, terms, watch
from tests.integration.helpers import (
    BASEFEE,
    CBY,
    FIRE_CELLS,
    answers,
    events_about,
    fired_ids,
    fires,
    max_cost,
    perform,
    script,
    step,
)
from trailboss.model.configs import amount_of
from trailboss.model.transactions import UpdateBasefeeConfig, UpdateTimerConfig
from trailboss.primitives.octets import system_address
from trailboss.testing import ActorHandle, LocalChain

ESCROW = system_address(11)
TTL, TIMERS, CLEAN_UP = 2_592_000, 1_024, 5_000_000
WRITES = script(step("set_state", b"kept", b"x" * 500))


@pytest.fixture
def chain() -> Iterator[LocalChain]:
    """Return a chain that runs one fire a block, so that the others wait in the mailbox."""
    with open_box(timers__max_cycles_per_fire=GAS, timers__lane_cycles_per_block=GAS) as chain:
        yield chain


def reserved(chain: LocalChain) -> list[int]:
    """Return what each entry of the mailbox has been paid, and check that all of it is there."""
    amounts = [amount_of(entry.reserved) for entry in mailbox(chain)]
    assert chain.balance(ESCROW) == sum(amounts)
    return amounts


def fee_of(chain: LocalChain, timer_id: bytes) -> tuple[int, int]:
    """Return what a timer's only fire had been paid, and what it cost in the end."""
    (receipt,) = (receipt for receipt in chain.receipts(since=0) if receipt.timer_id == timer_id)
    return receipt.fee_paid + receipt.refund, receipt.fee_paid


def wait_in_mailbox(chain: LocalChain, actor: ActorHandle, *payloads: bytes) -> list[bytes]:
    """Set timers for one height, go there, and return their ids: the first has run, and the others wait."""
    due = chain.height + len(payloads) + 1
    ids = [set_timeout(actor, due, payload, bid_fp=(9 - place) * BID) for place, payload in enumerate(payloads)]
    chain.advance_to(due)
    assert [entry.timer.timer_id for entry in mailbox(chain)] == ids[1:]
    return ids


@pytest.mark.spec("G-12", "G-16")
def test_fire_is_paid_for_when_it_is_materialized_and_the_rest_returns_when_it_has_run(chain: LocalChain) -> None:
    """The account of the protocol holds what waiting entries have been paid, after every block, and nothing else."""
    actor = deploy_box(chain)
    before = chain.balance(actor.address)
    ids = wait_in_mailbox(chain, actor, b"0", b"1", b"2")
    costs = [max_cost(GAS, FIRE_CELLS) + (9 - place) * GAS for place in range(3)]
    paid = [event.data["reserved"] for event in chain.events("timer.materialized")]
    assert (paid, reserved(chain)) == (costs, costs[1:])
    fees = [fee_of(chain, ids[0])[1]]
    assert chain.balance(actor.address) == before - fees[0] - sum(costs[1:])
    for place in (1, 2):
        chain.mine(1)
        assert reserved(chain) == costs[place + 1 :]
        found, fee = fee_of(chain, ids[place])
        fees.append(fee)
        assert (found, fee < found) == (costs[place], True)
        assert chain.balance(actor.address) == before - sum(fees) - sum(costs[place + 1 :])


@pytest.mark.spec("G-16")
def test_prices_that_rise_while_an_entry_waits_do_not_change_what_it_pays(chain: LocalChain) -> None:
    """It was paid for at those of its materialization; who is materialized now pays those of now."""
    actor = deploy_box(chain)
    *_, waiting = wait_in_mailbox(chain, actor, *[script(step("spin"))] * 4)
    chain.system(UpdateBasefeeConfig(8, 8, 2 * BASEFEE, 10**24, 10_000_000, 500_000, 0, 0), check=True)
    chain.mine(1)
    assert chain.chain.rules().timer_basefees() == (2 * BASEFEE, 2 * BASEFEE)
    chain.mine(1)
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.timer_id, receipt.cycles_used) == (waiting, GAS)
    assert receipt.fee_paid == GAS * (BASEFEE + 6) + receipt.cells_used * BASEFEE
    assert receipt.fee_paid + receipt.refund == max_cost(GAS, FIRE_CELLS) + 6 * GAS
    later = wait_in_mailbox(chain, actor, b"", b"")[1]
    assert reserved(chain) == [max_cost(GAS, FIRE_CELLS, 2 * BASEFEE) + 8 * GAS]
    chain.mine(1)
    assert fee_of(chain, later)[0] == max_cost(GAS, FIRE_CELLS, 2 * BASEFEE) + 8 * GAS


@pytest.mark.spec("G-16", "G-19")
@pytest.mark.parametrize("cells", [300, 900_000])
def test_entry_keeps_the_cells_that_it_was_paid_for_when_governance_changes_them(chain: LocalChain, cells: int) -> None:
    """More would not be paid for, fewer would be paid for in vain; the next fire has what is in force by then."""
    actor = deploy_box(chain)
    first, second = wait_in_mailbox(chain, actor, b"", b"", WRITES)[1:]
    chain.system(UpdateTimerConfig(TTL, GAS, cells, TIMERS, CLEAN_UP), check=True)
    chain.mine(1)
    assert actor.storage[b"kept"] == b"x" * 500
    assert [fee_of(chain, each)[0] - max_cost(GAS, FIRE_CELLS) for each in (first, second)] == [8 * GAS, 7 * GAS]
    chain.mine(1)
    other = set_timeout(actor, chain.height + 2, WRITES)
    chain.mine(1)
    assert fee_of(chain, other)[0] == max_cost(GAS, cells)
    assert chain.receipts()[-1].status == ("ok" if cells > FIRE_CELLS else "reverted")


@pytest.mark.spec("G-16")
def test_owner_that_empties_its_purse_still_has_the_fires_that_are_paid_for(chain: LocalChain) -> None:
    """And gets back what they do not use."""
    actor = deploy_box(chain)
    last = wait_in_mailbox(chain, actor, b"0", b"1", b"2")[-1]
    left = chain.balance(actor.address)
    answers(perform(actor, step("transfer_balance", bytes(chain.accounts[0].address), left)))
    assert len(reserved(chain)) == 1
    chain.mine(1)
    assert (reserved(chain), fires(actor), fired_ids(chain)[-1]) == ([], 3, last)
    receipts = [receipt for receipt in chain.receipts(since=0) if receipt.timer_id][-2:]
    assert chain.balance(actor.address) == sum(receipt.refund for receipt in receipts) > 0


@pytest.mark.spec("G-07", "G-16")
def test_watch_that_is_cancelled_has_paid_for_the_entries_that_wait(chain: LocalChain) -> None:
    """They run, though its owner holds nothing by then, and the money comes back to it."""
    busy, actor = deploy_box(chain), deploy_box(chain)
    listener = watch(actor, key(busy, b"k"))
    due = chain.height + 5
    for _ in range(4):
        set_timeout(busy, due, bid_fp=9 * BID)
    for number in range(3):
        put(busy, b"k", b"%d" % number)
    assert terms(chain, listener).in_mailbox == 3
    assert reserved(chain)[-3:] == [max_cost(GAS, FIRE_CELLS)] * 3
    assert answers(perform(actor, step("cancel_timer", bytes(actor.address), listener))) == [True]
    left = chain.balance(actor.address)
    answers(perform(actor, step("transfer_balance", bytes(chain.accounts[0].address), left)))
    chain.mine(3)
    assert (reserved(chain), fires(actor)) == ([], 3)
    assert ended(chain, listener) is not None
    assert chain.balance(actor.address) > 0


@pytest.mark.spec("G-12", "G-16")
@pytest.mark.parametrize("setting", ["watch", "height"])
def test_fire_that_cannot_be_paid_for_takes_no_place(setting: str) -> None:
    """However much it bids: the places of its target and of the block are for those who pay. Its timer ends."""
    bounds = {"globalbox__max_fires_per_block": 2, "globalbox__max_fires_per_target": 1}
    with open_box(**bounds) as chain:
        empty, rich, target = deploy_box(chain, value=10), deploy_box(chain), deploy_box(chain)
        due = chain.height + 6
        bids = {"target": target.address, "bid_fp": 2**128 - 1}
        if setting == "height":
            poor = [set_timeout(empty, due, **bids) for _ in range(3)]
        else:
            poor = [watch(empty, key(rich, b"k"), **bids) for _ in range(3)]
        honest = set_timeout(rich, due, target=target.address)
        other = set_timeout(rich, due)
        put(rich, b"k", b"1")
        assert chain.height == due
        assert set(fired_ids(chain)) == {honest, other}
        assert [events_about(chain, each)[-1] for each in poor] == ["TimerCancelledInsufficientFunds"] * 3
        assert chain.balance(empty.address) == 10
        assert (mailbox(chain), chain.balance(ESCROW)) == ([], 0)


@pytest.mark.spec("G-12", "G-22")
def test_fire_without_funds_ends_when_expiries_have_taken_the_clean_up_budget() -> None:
    """One timer expires a block, and takes all of a budget of one removal; what nobody pays for stops nobody."""
    with open_box(timers__gc_cycles_per_block=200) as chain:
        dying, rich, empty = (deploy_box(chain, value=value) for value in (CBY, 100 * CBY, 10))
        last = chain.height + 8
        for expires_at in range(last - 4, last):
            watch(dying, key(dying, b"never"), expiry_height=expires_at + 2)
        unpaid = set_timeout(empty, chain.height + 3, bid_fp=BID)
        for _ in range(2):
            honest = set_timeout(rich, chain.height + 2)
            chain.mine(1)
            assert fired_ids(chain)[-1] == honest
        (event,) = chain.events("TimerCancelledInsufficientFunds")
        assert (event.timer_id, chain.events("TimerExpired", since=event.block_height)[0].block_height) == (
            unpaid,
            event.block_height,
        )


@pytest.mark.spec("G-12")
def test_money_that_somebody_sends_to_the_account_of_entries_stays_there(chain: LocalChain) -> None:
    """It is nobody's, and no entry is paid with it."""
    actor = deploy_box(chain)
    chain.transfer(ESCROW, 777, sender=chain.accounts[0], check=True)
    wait_in_mailbox(chain, actor, b"0", b"1")
    assert chain.balance(ESCROW) == max_cost(GAS, FIRE_CELLS) + 8 * GAS + 777
    chain.mine(1)
    assert (mailbox(chain), chain.balance(ESCROW)) == ([], 777)


@pytest.mark.spec("G-16", "G-23")
def test_failed_fire_is_settled_from_what_was_paid_for_it(chain: LocalChain) -> None:
    """It is charged what it used, and the rest returns all the same."""
    actor = deploy_box(chain)
    before = chain.balance(actor.address)
    ids = wait_in_mailbox(chain, actor, b"", script(step("raise", "no")))
    chain.mine(1)
    assert chain.balance(actor.address) == before - sum(fee_of(chain, each)[1] for each in ids)
    assert [event.data["status"] for event in chain.events("TimerFireReceipt")] == ["ok", "reverted"]
