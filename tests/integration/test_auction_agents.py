"""Agents of the auction: what a good one brings about, what stands of an answer, and that a bad one delays nobody."""

import pytest

from tests.integration.auctions import (
    CAP,
    CBY,
    arm,
    bidder,
    examined,
    fired,
    open_auction,
    price,
    ran,
    record,
    tell,
    terms,
    timer_of,
    told,
)
from trailboss.codec.canonical import decode_canonical
from trailboss.execution.auction import market
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.timers import freeze_fees
from trailboss.model.transactions import FundActor
from trailboss.testing import LocalChain

FAILURES = {
    "loops": "out_of_cycles",
    "raises": "failed",
    "writes": "failed",
    "sets": "failed",
    "pays": "failed",
    "garbage": "malformed",
    "echo": "malformed",
    "lane": "malformed",
    "more": "malformed",
    "cells": "malformed",
    "5 6": "malformed",
    "1000000 -1": "malformed",
    f"{2**127} 0": "malformed",
}


def default_cap(chain: LocalChain) -> int:
    """Return the cap of the default bid in the last block."""
    return 2 * record(chain).cycle_basefee


@pytest.mark.spec("A-03")
@pytest.mark.parametrize(("bid", "tip"), [(f"{CAP} 77", 77), ("swallows", 7)])
def test_fire_pays_what_the_agent_bids(bid: str, tip: int) -> None:
    """The agent's cycles are the fire's; what it tried and was refused leaves no trace."""
    chain = open_auction()
    actor = bidder(chain, bid)
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    chain.mine()
    (receipt,) = chain.receipts(chain.height, origin="timer")
    item = examined(chain)[timer_id]
    assert (item.outcome, item.fee_source, item.max_fee, item.tip) == ("fire", FeeSource.AGENT, CAP, tip)
    assert receipt.tip == tip * receipt.cycles_used
    assert 10_000 < record(chain).agent_cycles < receipt.cycles_used
    assert b"trace" not in actor.storage
    assert told(chain, "gba.fallback") == []


@pytest.mark.spec("A-03")
def test_agent_is_told_the_six_facts_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of its own block and of the one before, and nothing else."""
    heard = []
    chain = open_auction()
    actor = bidder(chain, "echo")
    arm(actor, "a", height=chain.height + 2)
    parent, rules, balance = chain.block().header, chain.chain.rules(), chain.balance(actor)
    monkeypatch.setattr(
        "trailboss.execution.agents.read_bid", lambda answer, *_: heard.append(decode_canonical(answer))
    )
    chain.mine()
    assert heard == [
        {
            "trigger_block_height": chain.height,
            "current_block_height": chain.height,
            "basefee_cycle": rules.timer_basefees()[0],
            "basefee_cell": rules.timer_basefees()[1],
            "last_block_cycle_usage": parent.cycles_used,
            "owner_actor_balance": balance,
        }
    ]


@pytest.mark.spec("A-03")
@pytest.mark.parametrize(("bid", "reason"), FAILURES.items())
def test_agent_changes_nothing_and_delays_nobody_when_it_fails(bid: str, reason: str) -> None:
    """Its timer runs in its own block at the default bid, and so does everybody else's; one event says why."""
    chain = open_auction()
    bad, good = bidder(chain, bid), bidder(chain)
    height = chain.height + 3
    (timer_id,), _ = arm(bad, "a", height=height), arm(good, "b", height=height)
    before, funds = dict(bad.storage), chain.balance(bad)
    chain.mine()
    (event,) = told(chain, "gba.fallback")
    assert event.data == {"timer_id": timer_id, "agent": bytes(bad.address), "reason": reason}
    item = examined(chain)[timer_id]
    assert (item.outcome, item.fee_source, item.max_fee, item.tip) == (
        "fire",
        FeeSource.FALLBACK,
        default_cap(chain),
        0,
    )
    assert [failure.timer_id for failure in record(chain).agent_failures] == [timer_id]
    assert (ran(bad), ran(good)) == (["a"], ["b"])
    assert dict(bad.storage) == before | {b"saw:a": b"nothing", b"ran": b" a"}
    (receipt,) = [each for each in chain.receipts(chain.height, origin="timer") if each.timer_id == timer_id]
    assert chain.balance(bad) == funds - receipt.fee_paid


@pytest.mark.spec("A-03")
def test_agent_without_code_leaves_the_default_bid(monkeypatch: pytest.MonkeyPatch) -> None:
    """No chain can get there, for an agent is checked and no code goes; should one, the timer runs all the same."""
    chain = open_auction()
    actor = bidder(chain)
    actor.call("choose", bytes(19) + b"\x77", sender=chain.accounts[0], check=True)
    with monkeypatch.context() as patch:
        patch.setattr(market, "check_agent", lambda *_: None)
        arm(actor, "a", height=chain.height + 2)
    chain.mine()
    assert ran(actor) == ["a"]
    assert [event.data["reason"] for event in told(chain, "gba.fallback")] == ["failed"]
    (failure,) = record(chain).agent_failures
    assert "there is no actor at" in failure.what


@pytest.mark.spec("A-03")
def test_answer_stands_and_every_waiting_timer_is_asked_in_every_block() -> None:
    """A cap below the basefee waits; as soon as the agent answers otherwise, the timer runs."""
    chain = open_auction()
    actor = bidder(chain, "9 3")
    (timer_id,) = arm(actor, "a", height=chain.height + 2)
    for _ in range(3):
        chain.mine()
        assert timer_of(chain, timer_id).fees == freeze_fees(9, 3)
        assert terms(chain, timer_id).asked_at == chain.height
    price(actor, f"{CAP} 3")
    assert ran(actor) == []
    chain.mine()
    assert ran(actor) == ["a"]


@pytest.mark.spec("A-03")
def test_failure_leaves_the_default_bid_as_the_standing_one() -> None:
    """Two timers of a failing agent, room for one fire: the other waits with the default bid of its block."""
    chain = open_auction(auction__budget_cycles=550_000, auction__gba_cycles_per_block=50_000)
    actor = bidder(chain, "loops", value=100_000 * CBY)
    first, second = arm(actor, "~a", "~b", height=chain.height + 2, gas_limit=550_000)
    chain.mine()
    assert fired(chain) == [first]
    assert timer_of(chain, second).fees == b"\x01"
    price(actor, "raises")
    assert fired(chain) == [second]
    assert [event.data["reason"] for event in told(chain, "gba.fallback")] == ["out_of_cycles", "out_of_cycles"]


@pytest.mark.spec("A-03")
def test_questions_go_to_the_own_height_first_then_the_oldest_never_asked_then_the_longest_ago() -> None:
    """One question fits a block; whoever is not asked competes with the default bid, and all are priced out of a fire.

    The owner is poor, so that nobody fires: what is asked shows in the records alone.
    """
    chain = open_auction(auction__gba_cycles_per_block=50_000)
    actor = bidder(chain, value=0)
    height = chain.height + 4
    old = [*arm(actor, "a", "b", height=height)]
    young = arm(actor, "c", height=height + 1)
    asked = []
    chain.advance_to(height - 1)
    for _ in range(6):
        chain.mine()
        asked += [timer_id for timer_id in (*old, *young) if terms(chain, timer_id).asked_at == chain.height]
    assert asked == [old[0], young[0], old[1], old[0], young[0], old[1]]


@pytest.mark.spec("A-03")
def test_timer_that_could_not_be_asked_about_fires_at_the_default_bid_and_is_told_so() -> None:
    """The budget was for one question: the other has the default cap and no tip, and its agent's name in the event."""
    chain = open_auction(auction__gba_cycles_per_block=50_000)
    actor, agent = bidder(chain), bidder(chain, f"{CAP} 9")
    actor.call("choose", bytes(agent.address), sender=chain.accounts[0], check=True)
    first, second = arm(actor, "a", "b", height=chain.height + 2)
    chain.mine()
    items = examined(chain)
    assert (items[first].fee_source, items[first].tip) == (FeeSource.AGENT, 9)
    assert (items[second].fee_source, items[second].tip) == (FeeSource.FALLBACK, 0)
    assert items[second].max_fee == default_cap(chain)
    (event,) = told(chain, "gba.fallback")
    assert event.data == {"timer_id": second, "agent": bytes(agent.address), "reason": "budget"}
    assert record(chain).agent_cycles < 50_000


@pytest.mark.spec("A-06")
def test_unfunded_timer_competes_again_when_its_agent_is_asked_again() -> None:
    """Two empty purses and one question a block: each has its turn every other block, and fires in it once it can."""
    chain = open_auction(auction__gba_cycles_per_block=50_000)
    actor = bidder(chain, value=0)
    height = chain.height + 4
    ids = [arm(actor, label, height=height + number)[0] for number, label in enumerate("ab")]
    chain.advance_to(height + 2)
    assert {timer_of(chain, timer_id).deferred_for for timer_id in ids} == {"unfunded"}
    turns = {timer_id: terms(chain, timer_id).asked_at for timer_id in ids}
    with chain.one_block():
        chain.transfer(actor, 1_000 * CBY, sender=chain.accounts[0])
    chain.mine()
    (timer_id,) = fired(chain)
    assert turns[timer_id] == chain.height - 2
    chain.mine()
    assert len(fired(chain)) == 1
    assert chain.timers() == []


@pytest.mark.spec("A-06")
def test_empty_purse_is_in_nobodys_way_when_it_bids_most_for_more_timers_than_a_block_passes_over() -> None:
    """Ten of them with a block that passes over four: told once, asked in every block, and the honest one runs at once.

    So does the next honest one, beside ten new ones; when the purse is filled, the next block has all of them run.
    """
    chain = open_auction(auction__passed_over_max=4)
    poor, honest = bidder(chain, f"{10**30} {10**30}", value=0), bidder(chain, f"{CAP} 1")
    due = chain.height + 6
    crowd = [*arm(poor, *"abcdefghij", height=due), *arm(poor, *"klmnopqrst", height=due + 1)]
    (first,), (second,) = arm(honest, "a", height=due), arm(honest, "b", height=due + 1)
    for height, timer_id, told_by_then in [(due, first, crowd[:10]), (due + 1, second, crowd)]:
        chain.advance_to(height)
        assert fired(chain) == [timer_id]
        assert [event.data["timer_id"] for event in told(chain, "timer.deferred")] == told_by_then
        found = record(chain)
        assert (found.stopped, found.outranked, found.examined_count) == (Stop.NONE_LEFT, 0, 11)
    price(poor, f"{CAP} 2")
    chain.send(FundActor(poor.address, 1_000 * CBY), sender=chain.accounts[0], check=True)
    assert fired(chain) == []
    chain.mine()
    assert sorted(fired(chain)) == sorted(crowd)


def test_record_names_who_ran_when_more_are_set_aside_than_it_names() -> None:
    """Seventy are told, sixty-four of them by name, and then the one that ran."""
    chain = open_auction()
    poor, honest = bidder(chain, value=0), bidder(chain, f"{CAP} 1")
    due = chain.height + 5
    crowd = [timer_id for part in "ab" for timer_id in arm(poor, *(f"{part}{n}" for n in range(35)), height=due)]
    (timer_id,) = arm(honest, "z", height=due)
    chain.advance_to(due)
    found = record(chain)
    assert [item.timer_id for item in found.decided] == [*crowd[:64], timer_id]
    assert (found.examined_count, found.cut_off, found.decided[0].rank) == (71, 1, 0)


def test_agent_of_another_actor_prices_for_its_owner() -> None:
    """The owner pays, whoever bids; the agent's storage decides, and it can change its mind."""
    chain = open_auction()
    actor, agent = bidder(chain), bidder(chain, "1 0")
    actor.call("choose", bytes(agent.address), sender=chain.accounts[0], check=True)
    arm(actor, "a", height=chain.height + 2)
    chain.mine(2)
    before = chain.balance(agent)
    tell(agent, "price", f"{CAP} 4")
    chain.mine()
    (receipt,) = chain.receipts(chain.height, origin="timer")
    assert (receipt.payer, receipt.tip) == (actor.address, 4 * receipt.cycles_used)
    assert chain.balance(agent) == before
