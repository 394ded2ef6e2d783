"""The two budgets of a block: cycles for fires, cycles for removing the dead, and how many due timers it looks at."""

import pytest

from tests.integration.helpers import (
    FUNDS,
    answers,
    deploy_puppet,
    events_about,
    fired_ids,
    max_cost,
    perform,
    schedule,
    script,
    step,
    totals,
)
from trailboss.model.transactions import CancelTimer
from trailboss.testing import ActorHandle, LocalChain

LANE = 2_000_000


def schedule_all(actor: ActorHandle, height: int, *gas_limits: int, **keywords: object) -> list[bytes]:
    """Schedule timers of one height in one transaction; return their ids in order."""
    calls = [
        step("schedule_timer_ex", height, b"%d" % number, gas_limit=gas_limit, **keywords)
        for number, gas_limit in enumerate(gas_limits)
    ]
    return answers(perform(actor, *calls))


def mine_until_empty(chain: LocalChain) -> list[list[bytes]]:
    """Mine until no timer is due any more; return what fired, block by block."""
    fired = []
    while any(timer.height <= chain.height + 1 for timer in chain.timers()):
        chain.mine()
        fired.append(fired_ids(chain, since=chain.height))
    return fired


@pytest.mark.spec("F-74")
def test_lane_is_filled_by_gas_limits_when_more_timers_are_due_than_fit(chain: LocalChain) -> None:
    """Limits add up to the lane exactly; what is reserved counts, though far less is used."""
    actor = deploy_puppet(chain)
    height = chain.height + 5
    ids = schedule_all(actor, height, 550_000, 550_000, 550_000, 350_000, 1)
    chain.advance_to(height)
    assert fired_ids(chain) == ids[:4]
    assert chain.block().header.timer_cycles_used < LANE // 2
    event = chain.events("timer.deferred")[0]
    assert (event.emitter, event.timer_id, event.block_height) == (actor.address, ids[4], height)
    assert event.data == {"timer_id": ids[4], "reason": "lane_full", "gas_limit": 1, "height": height}
    chain.mine()
    assert fired_ids(chain, since=height + 1) == ids[4:]


@pytest.mark.spec("F-74")
def test_scan_goes_on_when_one_timer_does_not_fit(chain: LocalChain) -> None:
    """A large timer that has to wait does not hold up the small one behind it."""
    actor = deploy_puppet(chain)
    height = chain.height + 5
    ids = schedule_all(actor, height, 550_000, 550_000, 550_000, 550_000, 350_000, 350_000)
    chain.advance_to(height)
    assert fired_ids(chain) == [ids[0], ids[1], ids[2], ids[4]]
    assert [event.timer_id for event in chain.events("timer.deferred")] == [ids[3], ids[5]]
    chain.mine()
    assert fired_ids(chain, since=height + 1) == [ids[3], ids[5]]


@pytest.mark.spec("F-74")
def test_deferred_timer_costs_nothing_and_keeps_its_place_when_later_ones_are_due(chain: LocalChain) -> None:
    """It keeps its height and precedes the next block's own timers; its payer is charged in the block it runs in."""
    payer, actor = chain.accounts[5], deploy_puppet(chain)
    height = chain.height + 6
    first = schedule_all(actor, height, 550_000, 550_000, 550_000)
    late = schedule(actor, height, b"waits", sender=payer, fee_payer=bytes(payer.address), gas_limit=550_000)
    own = schedule_all(actor, height + 1, 550_000, 550_000, 550_000)
    before = chain.balance(payer)
    chain.advance_to(height)
    assert fired_ids(chain) == first
    assert chain.balance(payer) == before
    (waiting,) = chain.timers(height=height)
    assert (waiting.timer_id, waiting.tier, waiting.deferrals, waiting.deferred_for) == (late, "due", 1, "lane_full")
    chain.mine()
    assert fired_ids(chain, since=height + 1) == [late, own[0], own[1]]
    assert chain.balance(payer) == before - chain.receipts(height + 1)[0].fee_paid
    assert chain.receipts(height + 1)[0].events[-1].data["blocks_deferred"] == 1
    chain.mine()
    assert fired_ids(chain, since=height + 2) == [own[2]]


@pytest.mark.spec("F-74", "F-58")
def test_deferral_is_told_once_when_a_timer_waits_for_many_blocks(chain: LocalChain) -> None:
    """Ten timers through a lane of three: in order, three a block, one event for each that waits."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = schedule_all(actor, height, *[550_000] * 10)
    chain.advance_to(height - 1)
    assert mine_until_empty(chain) == [ids[0:3], ids[3:6], ids[6:9], ids[9:]]
    assert [event.timer_id for event in chain.events("timer.deferred")] == ids[3:]
    waited = [event.data["blocks_deferred"] for event in chain.events("timer.fired")]
    assert waited == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    for timer_id in ids[3:]:
        assert events_about(chain, timer_id) == ["timer.scheduled", "timer.deferred", "timer.fired"]


@pytest.mark.spec("F-41", "F-74")
def test_funds_are_checked_before_the_lane_when_both_are_short(chain: LocalChain) -> None:
    """Who cannot pay is removed, not deferred; what a deferred timer would cost binds nobody's money."""
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=max_cost(550_000))
    height = chain.height + 8
    schedule_all(rich, height, 550_000, 550_000, 550_000)
    (deferred,) = schedule_all(poor, height, 550_000)
    (small,) = schedule_all(poor, height, 350_000)
    (unfunded,) = schedule_all(poor, height, 550_000)
    chain.advance_to(height)
    assert small in fired_ids(chain)
    assert [event.timer_id for event in chain.events("timer.deferred")] == [deferred]
    (event,) = chain.events("TimerCancelledInsufficientFunds")
    assert event.timer_id == unfunded
    assert event.data["available"] == max_cost(550_000) - max_cost(350_000)


@pytest.mark.spec("F-74", "F-53")
def test_deferred_timer_can_be_cancelled_when_its_owner_thinks_again(chain: LocalChain) -> None:
    """A timer that waits is as live as any; by its owner or by governance."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = schedule_all(actor, height, *[550_000] * 8)
    chain.advance_to(height)
    answers(perform(actor, step("cancel_timer", ids[6])))
    assert fired_ids(chain, since=height + 1) == ids[3:6]
    assert chain.system(CancelTimer(ids[7])).ok
    assert chain.timers() == []
    assert totals(chain) == (8, 6, 0, 0, 2)


@pytest.mark.spec("F-52", "F-74")
def test_deferred_timer_expires_when_its_time_ends_before_there_is_room(chain: LocalChain) -> None:
    """Waiting does not stop the clock."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = schedule_all(actor, height, *[550_000] * 4, expires_at=height)
    chain.advance_to(height + 1)
    assert fired_ids(chain) == ids[:3]
    assert events_about(chain, ids[3]) == ["timer.scheduled", "timer.deferred", "TimerExpired"]


GC_OF_FIVE = {"timers.gc_cycles_per_block": 1_000}


@pytest.mark.spec("F-75", "F-76")
@pytest.mark.trailboss(params=GC_OF_FIVE)
def test_storm_of_expired_timers_is_cleared_in_slices_and_delays_no_live_one(chain: LocalChain) -> None:
    """Twelve dead timers before a live one: it runs in its block, they leave five a block, in order."""
    actor = deploy_puppet(chain)
    height = chain.height + 8
    dead = schedule_all(actor, height, *[550_000] * 12, expires_at=height - 1)
    alive = schedule_all(actor, height, 550_000, 550_000, 550_000)
    chain.advance_to(height)
    assert fired_ids(chain) == alive
    assert [event.timer_id for event in chain.events("TimerExpired")] == dead[:5]
    assert [(event.timer_id, event.data["reason"]) for event in chain.events("timer.deferred")] == [
        (timer_id, "gc_exhausted") for timer_id in dead[5:]
    ]
    next_alive = schedule_all(actor, height + 2, 550_000)
    assert [event.timer_id for event in chain.events("TimerExpired", since=height + 1)] == dead[5:10]
    chain.mine()
    last = chain.events("TimerExpired", since=height + 2)
    assert [(event.timer_id, event.data["current_height"]) for event in last] == [
        (timer_id, height + 2) for timer_id in dead[10:]
    ]
    assert fired_ids(chain, since=height + 2) == next_alive
    assert len(chain.events("timer.deferred")) == 7
    assert chain.timers() == []
    assert totals(chain) == (16, 4, 0, 12, 0)


@pytest.mark.spec("F-75", "F-51")
@pytest.mark.trailboss(params=GC_OF_FIVE)
def test_expired_and_unfunded_timers_share_the_budget_the_expired_first(chain: LocalChain) -> None:
    """Each removal costs the same 200 cycles; the fifth is for the first unfunded. Events stand in due order."""
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=0)
    height = chain.height + 12
    order = []
    for number in range(4):
        order.append(("TimerCancelledInsufficientFunds", schedule(poor, height, b"%d" % number)))
        order.append(("TimerExpired", schedule(rich, height, b"%d" % number, expires_at=height - 1)))
    chain.advance_to(height)
    gone = [(event.name, event.timer_id) for event in chain.events(since=height) if event.name.startswith("Timer")]
    assert gone == [order[0], *order[1::2]]
    deferred = [event.timer_id for event in chain.events("timer.deferred")]
    assert deferred == [timer_id for _, timer_id in order[2::2]]
    chain.mine()
    gone = [(event.name, event.timer_id) for event in chain.events(since=height + 1) if event.name.startswith("Timer")]
    assert gone == order[2::2]


@pytest.mark.spec("F-76", "F-41")
@pytest.mark.trailboss(params={"timers.gc_cycles_per_block": 200})
def test_timer_is_classified_anew_when_it_waited_for_the_clean_up(chain: LocalChain) -> None:
    """Every block decides by the state it finds: an expired timer is still expired, a funded payer can pay now."""
    poor = deploy_puppet(chain, value=0)
    height = chain.height + 6
    unfunded = schedule(poor, height, b"", gas_limit=50_000)
    expired = [schedule(poor, height, b"%d" % number, expires_at=height - 1) for number in range(2)]
    chain.advance_to(height)
    assert [event.timer_id for event in chain.events("TimerExpired")] == expired[:1]
    chain.transfer(poor, FUNDS, sender=chain.accounts[0])
    assert fired_ids(chain) == [unfunded]
    assert events_about(chain, unfunded) == ["timer.scheduled", "timer.deferred", "timer.fired"]
    assert events_about(chain, expired[1]) == ["timer.scheduled", "timer.deferred", "TimerExpired"]


@pytest.mark.spec("F-74", "F-75", "F-58")
@pytest.mark.trailboss(params={"timers.due_examined_max": 2})
def test_block_looks_at_a_bounded_number_of_due_timers_and_the_rest_keep_their_order(chain: LocalChain) -> None:
    """Oldest first; those not looked at are neither written nor told of, and the next height's come after them.

    They have waited all the same, and their fires say how many blocks.
    """
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = schedule_all(actor, height, *[20_000] * 5)
    later = schedule_all(actor, height + 1, 20_000, 20_000)
    chain.advance_to(height - 1)
    assert mine_until_empty(chain) == [ids[0:2], ids[2:4], [ids[4], later[0]], later[1:]]
    assert chain.events("timer.deferred") == []
    assert [event.data["blocks_deferred"] for event in chain.events("timer.fired")] == [0, 0, 1, 1, 2, 1, 2]


@pytest.mark.spec("F-75")
@pytest.mark.trailboss(params={"timers.due_examined_max": 3})
def test_dead_timers_do_not_count_among_those_a_block_looks_at(chain: LocalChain) -> None:
    """All four are removed in the block of their height, and three living ones behind them fire; the fourth waits."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    dead = schedule_all(actor, height, *[20_000] * 4, expires_at=height - 1)
    alive = schedule_all(actor, height, *[20_000] * 4)
    chain.advance_to(height)
    assert [event.timer_id for event in chain.events("TimerExpired")] == dead
    assert fired_ids(chain) == alive[:3]
    chain.mine()
    assert fired_ids(chain) == alive


@pytest.mark.spec("F-75", "F-76", "F-51")
@pytest.mark.trailboss(params={"timers.gc_cycles_per_block": 200, "timers.dead_examined_max": 2})
def test_so_many_dead_timers_are_deferred_and_the_others_left_without_a_word(chain: LocalChain) -> None:
    """One removed, two told that they wait, of six expired and six unfunded ones; the living fires beside them."""
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=0)
    height = chain.height + 16
    expired = [schedule(rich, height, b"%d" % number, expires_at=height - 7 + number) for number in range(6)]
    unfunded = [schedule(poor, height, b"%d" % number) for number in range(6)]
    (alive,) = schedule_all(rich, height, 20_000)
    chain.advance_to(height)
    assert fired_ids(chain) == [alive]
    assert [event.timer_id for event in chain.events("timer.deferred")] == expired[1:3]
    chain.mine(11)
    assert [event.timer_id for event in chain.events("TimerExpired")] == expired
    assert [event.timer_id for event in chain.events("TimerCancelledInsufficientFunds")] == unfunded
    assert chain.timers() == []


@pytest.mark.spec("F-74", "F-65")
def test_fires_do_not_take_from_the_blocks_transactions(chain: LocalChain) -> None:
    """A block full of transactions runs its timers all the same: the lane is a budget of its own."""
    actor = deploy_puppet(chain)
    height = chain.height + 2
    (timer_id,) = schedule_all(actor, height, 550_000)
    with chain.one_block():
        for _ in range(4):
            perform(actor, step("spin"), cycles_limit=5_000_000, cells_limit=1_000)
        over = perform(actor, step("spin"), cycles_limit=1_000_000, cells_limit=1_000)
    assert over.status == "refused"
    assert fired_ids(chain) == [timer_id]
    assert chain.block().header.cycles_used > 20_000_000


def test_script_that_spins_uses_all_it_may(chain: LocalChain) -> None:
    """What the scenarios above stand on."""
    assert script(step("spin")) == b'[["spin",[],{}]]'
