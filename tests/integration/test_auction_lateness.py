"""Timers that wait too long: told, moved to the front, or cancelled at a penalty."""

import pytest

from tests.integration.auctions import CAP, CBY, arm, bidder, fired, open_auction, price, ran, terms, told
from trailboss.model.transactions import SetGovParam, Transfer
from trailboss.testing import LocalChain

EVENT, FRONT, CANCEL = range(3)
PENALTY_CYCLES = 10_000


def vote(chain: LocalChain, name: str, value: int) -> None:
    """Have governance set a parameter of the auction, in a block of its own."""
    chain.system(SetGovParam(f"system:auction:{name}".encode(), value.to_bytes(8, "big")), check=True)


@pytest.mark.spec("A-08", "A-13")
def test_late_timer_is_told_once_and_nothing_else_by_default() -> None:
    """Late in the third block after its own, where two are allowed; it runs when it can."""
    chain = open_auction(auction__delays_max=2)
    actor = bidder(chain, "1 0")
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    due = chain.height + 1
    chain.advance_to(due + 2)
    assert told(chain, "timer.delayed") == []
    chain.advance_to(due + 6)
    (event,) = told(chain, "timer.delayed")
    assert event.data == {"timer_id": timer_id, "delay_count": 3, "action": "event"}
    assert (event.block_height, event.emitter) == (due + 3, actor.address)
    assert terms(chain, timer_id).is_late
    price(actor, f"{CAP} 0")
    chain.mine()
    assert ran(actor) == ["a"]


@pytest.mark.spec("A-13")
@pytest.mark.parametrize(("action", "wins"), [(EVENT, False), (FRONT, True)])
def test_late_timer_goes_to_the_front_when_that_is_the_action(*, action: int, wins: bool) -> None:
    """One fire fits a block and others bid more in every block: forced to the front it runs, at its own tip."""
    chain = open_auction(auction__delays_max=2, auction__delay_action=action, auction__budget_cycles=550_000)
    poor, rich = bidder(chain, f"{CAP} 1", 100_000 * CBY), bidder(chain, f"{CAP} 100", 100_000 * CBY)
    start = chain.height + 9
    (timer_id,) = arm(poor, "~p", height=start, gas_limit=550_000)
    for number in range(6):
        arm(rich, f"~{number}", height=start + number, gas_limit=550_000)
    chain.advance_to(start + 2)
    assert len(told(chain, "timer.fired")) == 3
    chain.mine()
    (event,) = told(chain, "timer.delayed")
    assert event.data["action"] == ("front" if wins else "event")
    assert (fired(chain) == [timer_id]) is wins
    (receipt,) = chain.receipts(chain.height, origin="timer")
    assert receipt.tip == (1 if wins else 100) * receipt.cycles_used


@pytest.mark.spec("A-13")
def test_late_timer_is_cancelled_at_a_penalty_when_that_is_the_action() -> None:
    """It ends without running; 10,000 cycles at the cycle basefee are burned from its owner."""
    chain = open_auction(auction__delays_max=2, auction__delay_action=CANCEL)
    actor = bidder(chain, "1 0")
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    chain.mine(3)
    before, burned = chain.balance(actor), chain.burned
    penalty = PENALTY_CYCLES * chain.chain.rules().timer_basefees()[0]
    chain.mine()
    (event,) = told(chain, "timer.cancelled_by_delay")
    assert event.data == {"timer_id": timer_id, "refund": 0, "penalty": penalty}
    assert (chain.balance(actor), chain.burned) == (before - penalty, burned + penalty)
    assert chain.timers() == []
    assert ran(actor) == []
    assert told(chain, "timer.delayed") == []
    assert chain.chain.totals().cancelled == 1


@pytest.mark.spec("A-13")
def test_penalty_is_what_the_owner_has_when_that_is_less() -> None:
    """Nothing is owed: the purse is empty afterwards, and the timer is gone."""
    chain = open_auction(auction__delays_max=2, auction__delay_action=CANCEL)
    actor = bidder(chain, "1 0", value=5)
    arm(actor, "a", "b", height=chain.height + 2)
    chain.mine(4)
    assert [event.data["penalty"] for event in told(chain, "timer.cancelled_by_delay")] == [5, 0]
    assert chain.balance(actor) == 0


@pytest.mark.spec("A-13")
def test_action_is_the_one_in_force_in_the_block() -> None:
    """Told under one action, cancelled in the block after governance has chosen another."""
    chain = open_auction(auction__delays_max=2)
    actor = bidder(chain, "1 0")
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    chain.mine(6)
    assert terms(chain, timer_id).is_late
    vote(chain, "delay_action", CANCEL)
    assert len(chain.timers()) == 1
    chain.send(Transfer(chain.accounts[1].address, 1), sender=chain.accounts[0], check=True)
    assert chain.timers() == []
    assert [event.data["action"] for event in told(chain, "timer.delayed")] == ["event"]


@pytest.mark.spec("A-13")
def test_late_timers_of_a_block_are_told_in_due_order_and_within_a_bound() -> None:
    """Three are late and two may join a block: two are told, the oldest first, and the third in the next block."""
    chain = open_auction(auction__delays_max=5, auction__joined_max=2)
    actor = bidder(chain, "1 0")
    start = chain.height + 4
    last = arm(actor, "c", height=start + 1)
    first = arm(actor, "a", "b", height=start)
    chain.advance_to(start + 3)
    vote(chain, "delays_max", 1)
    chain.mine(2)
    events = [(event.timer_id, event.block_height, event.data["delay_count"]) for event in told(chain, "timer.delayed")]
    assert events == [
        (first[0], start + 5, 5),
        (first[1], start + 5, 5),
        (last[0], start + 6, 5),
    ]
