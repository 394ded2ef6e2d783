"""The ways in which a timer leaves: it fires, its payer cannot pay, its time is over, or it is cancelled."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    CBY,
    FIRE_CELLS,
    answers,
    deploy_puppet,
    events_about,
    fired_ids,
    fires,
    max_cost,
    perform,
    schedule,
    script,
    step,
    totals,
)
from trailboss.model.transactions import CancelTimer
from trailboss.testing import LocalChain


@pytest.mark.spec("F-50", "F-63")
def test_timer_is_gone_when_its_handler_succeeded(chain: LocalChain) -> None:
    """One event with what it used and cost; the handler's writes stay."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, chain.height + 3, b"tick", gas_limit=80_000)
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.status, receipt.error) == ("ok", None)
    (event,) = receipt.events
    assert event.data == {
        "timer_id": timer_id,
        "reverted": False,
        "cycles_used": receipt.cycles_used,
        "cells_used": len(b"fires1payloadtick"),
        "fee_payer": bytes(actor.address),
        "fee_paid": (receipt.cycles_used + receipt.cells_used) * BASEFEE,
        "refund": max_cost(80_000) - receipt.fee_paid,
        "blocks_deferred": 0,
        "tip": 0,
        "lane_burned": 0,
    }
    assert fires(actor) == 1
    assert chain.timers() == []


@pytest.mark.spec("F-51", "F-42")
@pytest.mark.parametrize(("missing", "fired"), [(0, 1), (1, 0)])
def test_timer_fires_when_its_payer_holds_exactly_the_maximal_cost_and_not_one_unit_less(
    chain: LocalChain, missing: int, fired: int
) -> None:
    """The edge of path two, to the unit."""
    actor = deploy_puppet(chain, value=max_cost(60_000) - missing)
    timer_id = schedule(actor, chain.height + 3, b"", gas_limit=60_000)
    chain.mine(2)
    assert len(fired_ids(chain)) == fires(actor) == fired
    assert chain.timers() == []
    unfunded = chain.events("TimerCancelledInsufficientFunds")
    assert len(unfunded) == missing
    for event in unfunded:
        assert (event.emitter, event.timer_id, event.block_height) == (actor.address, timer_id, chain.height)
        assert event.data == {
            "timer_id": timer_id,
            "fee_payer": bytes(actor.address),
            "required": max_cost(60_000),
            "available": max_cost(60_000) - 1,
        }
        assert chain.receipts(chain.height) == []
        assert actor.balance == max_cost(60_000) - 1


@pytest.mark.spec("F-51")
def test_unfunded_timer_costs_nobody_anything_when_it_is_removed(chain: LocalChain) -> None:
    """No balance moves, nothing is burned, no lane is used."""
    actor = deploy_puppet(chain, value=0)
    schedule(actor, chain.height + 3)
    accounts, burned = dict(chain.chain.accounts()), chain.burned
    chain.mine(2)
    after = dict(chain.chain.accounts())
    assert after.pop(bytes(actor.address)).timer_count == 0
    assert all(accounts[address] == account for address, account in after.items())
    assert chain.burned == burned
    assert chain.block().header.timer_cycles_used == chain.block().header.cycles_used == 0


@pytest.mark.spec("F-66", "F-51")
def test_payer_without_money_causes_one_event_a_timer_and_no_more(chain: LocalChain) -> None:
    """Seven timers over several heights: seven events, no fire, no repetition."""
    actor = deploy_puppet(chain, value=0)
    first = chain.height + 5
    calls = [step("schedule_timer", first + number // 3, b"%d" % number) for number in range(7)]
    ids = answers(perform(actor, *calls))
    chain.mine(30)
    unfunded = chain.events("TimerCancelledInsufficientFunds")
    assert [event.timer_id for event in unfunded] == ids
    assert all(event.data["available"] == 0 for event in unfunded)
    assert fired_ids(chain) == []
    assert totals(chain) == (7, 0, 7, 0, 0)


@pytest.mark.spec("F-51", "F-66")
def test_loop_ends_when_its_payer_runs_dry(chain: LocalChain) -> None:
    """A pay-as-you-go subscription beats until a fire can no longer be reserved for, and then stops for good."""
    source = """
class Heartbeat:
    def deploy(self):
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")

    def handle_timer(self, payload):
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")
"""
    actor = chain.deploy(source, sender=chain.accounts[0], value=max_cost() + 500_000_000)
    chain.mine(60)
    beats = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert len({receipt.fee_paid for receipt in beats}) == 1
    (dead,) = chain.events("TimerCancelledInsufficientFunds")
    assert len(beats) == 500_000_000 // beats[0].fee_paid + 1
    assert dead.data["available"] == actor.balance == max_cost() + 500_000_000 - len(beats) * beats[0].fee_paid
    assert totals(chain) == (len(beats) + 1, len(beats), 1, 0, 0)


@pytest.mark.spec("F-52")
@pytest.mark.parametrize(("late", "fired"), [(0, 1), (1, 0)])
def test_timer_fires_in_the_last_block_of_its_time_and_expires_one_later(
    chain: LocalChain, late: int, fired: int
) -> None:
    """At current height = expires_at it still may; above it no more."""
    actor = deploy_puppet(chain)
    height = chain.height + 9
    timer_id = schedule(actor, height, b"", expires_at=height - late)
    purse = actor.balance
    chain.advance_to(height)
    assert len(fired_ids(chain)) == fires(actor) == fired
    expired = chain.events("TimerExpired")
    assert [event.data for event in expired] == [
        {"timer_id": timer_id, "expires_at": height - 1, "current_height": height}
    ] * late
    assert [(event.emitter, event.timer_id) for event in expired] == [(actor.address, timer_id)] * late
    assert (actor.balance == purse) == bool(late)
    assert chain.timers() == []


@pytest.mark.spec("F-41", "F-52", "F-58")
def test_timer_expires_and_nothing_else_when_its_payer_is_broke_too(chain: LocalChain) -> None:
    """One path, the first that applies."""
    actor = deploy_puppet(chain, value=0)
    height = chain.height + 9
    timer_id = schedule(actor, height, b"", expires_at=height - 1)
    chain.advance_to(height + 5)
    assert events_about(chain, timer_id) == ["timer.scheduled", "TimerExpired"]
    assert totals(chain) == (1, 0, 0, 1, 0)


@pytest.mark.spec("F-58", "E-04")
def test_every_timer_leaves_by_exactly_one_path_when_all_paths_are_taken(chain: LocalChain) -> None:
    """Created = fired + unfunded + expired + cancelled + live, and each has the one event of its path."""
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=0)
    height = chain.height + 30
    paths = {
        "timer.fired": [
            schedule(rich, height, b"fires", gas_limit=100_000),
            schedule(rich, height, script(step("raise", "x")), gas_limit=100_000),
        ],
        "TimerCancelledInsufficientFunds": [schedule(poor, height)],
        "TimerExpired": [schedule(rich, height, b"", expires_at=height - 1)],
        "timer.cancelled": [schedule(rich, height, b"own")],
        "timer.cancelled_by_governance": [schedule(rich, height, b"governance")],
        "timer.scheduled": [schedule(rich, height + 50, b"lives")],
    }
    answers(perform(rich, step("cancel_timer", paths["timer.cancelled"][0])))
    assert chain.system(CancelTimer(paths["timer.cancelled_by_governance"][0])).ok
    chain.advance_to(height + 3)
    assert totals(chain) == (7, 2, 1, 1, 2)
    assert [timer.timer_id for timer in chain.timers()] == paths["timer.scheduled"]
    for last, ids in paths.items():
        for timer_id in ids:
            expected = ["timer.scheduled"] if last == "timer.scheduled" else ["timer.scheduled", last]
            assert events_about(chain, timer_id) == expected


@pytest.mark.spec("E-04")
def test_balances_and_burned_money_are_the_supply_after_every_block(chain: LocalChain) -> None:
    """Counted here, by hand, over deployments, calls, fires, reverts, tips, transfers and dead timers."""
    supply = chain.supply
    assert supply == 11 * 1_000_000 * CBY

    def counted() -> int:
        return sum(int.from_bytes(account.balance, "big") for _, account in chain.chain.accounts()) + chain.burned

    seen_burned = [chain.burned]
    actor, broke = deploy_puppet(chain), deploy_puppet(chain, value=3)
    assert counted() == supply
    tip = {"max_priority_fee_per_cycle": 77, "max_priority_fee_per_cell": 13}
    for number in range(12):
        height = chain.height + 3
        with chain.one_block():
            perform(actor, step("schedule_timer", height, script(step("raise", "x")) if number % 3 else b"tick"), **tip)
            perform(broke, step("schedule_timer", height, b""), sender=chain.accounts[1], **tip)
            chain.transfer(broke, 1 + number, sender=chain.accounts[2], **tip)
            perform(actor, step("spin"), sender=chain.accounts[3], cycles_limit=60_000, **tip)
        assert counted() == supply
        seen_burned.append(chain.burned)
    for _ in range(5):
        chain.mine()
        assert counted() == supply
        seen_burned.append(chain.burned)
    assert seen_burned == sorted(seen_burned)
    assert chain.burned == sum(receipt.fee_burned for receipt in chain.receipts())
    assert chain.balance(chain.proposer) == sum(receipt.tip for receipt in chain.receipts()) > 0
    assert chain.chain.rules().timer.max_cells_per_fire == FIRE_CELLS
