"""explain: a timer's whole life, and why each decision fell as it did."""

import pytest

from tests.integration.helpers import answers, deploy_puppet, max_cost, perform, schedule, script, step
from trailboss.model.transactions import CancelTimer, ExtendTimer
from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import format_cby
from trailboss.testing import LocalChain


def stories(chain: LocalChain, timer_id: bytes) -> list[str]:
    """Return what explain tells, with the blocks."""
    return [f"{step.block_height}: {step.story}" for step in chain.explain(timer_id).steps]


def test_life_tells_who_scheduled_and_what_it_cost_when_the_timer_fired(chain: LocalChain) -> None:
    """From the transaction to the refund, amounts included."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    timer_id = schedule(actor, height, b"tick", gas_limit=80_000)
    scheduled_at = chain.height
    chain.advance_to(height)
    (receipt,) = chain.receipts(height)
    life = chain.explain(timer_id)
    assert (life.timer_id, life.state, life.outlook) == (timer_id, "fired", "")
    assert stories(chain, timer_id) == [
        f"{scheduled_at}: scheduled by a transaction of {chain.accounts[0].address} for height {height}: calls "
        f"handle_timer with at most 80,000 cycles, paid by {actor.address}, expires after {scheduled_at + 2_592_000}",
        f"{height}: fired: {receipt.cycles_used:,} cycles and {receipt.cells_used:,} cells cost {actor.address} "
        f"{format_cby(receipt.fee_paid)} CBY, {format_cby(receipt.refund)} CBY of the pre-charge returned",
    ]
    assert str(life).startswith(f"timer 0x{timer_id.hex()}: fired\n  block {scheduled_at}: scheduled by")


def test_life_names_the_parent_when_a_fire_scheduled_the_timer(chain: LocalChain) -> None:
    """Lives link up through the ids."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    parent = schedule(actor, height, script(step("schedule_timer", 100, b"child")))
    chain.advance_to(height)
    (child,) = actor.timers()
    assert f"scheduled by the fire of timer 0x{parent.hex()} for height 100" in stories(chain, child.timer_id)[0]


def test_life_tells_the_error_when_the_fire_reverted(chain: LocalChain) -> None:
    """Code, slug and the actor's own words."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    timer_id = schedule(actor, height, script(step("raise", "no luck")))
    chain.advance_to(height)
    last = stories(chain, timer_id)[-1]
    assert last.startswith(f"{height}: fired and reverted (E1210 pvm_error: ")
    assert "no luck" in last


def test_life_tells_required_and_available_when_the_payer_was_broke(chain: LocalChain) -> None:
    """Both numbers, and whose purse it was."""
    actor = deploy_puppet(chain, value=5)
    height = chain.height + 4
    timer_id = schedule(actor, height, gas_limit=80_000)
    outlook = chain.explain(timer_id).outlook
    assert outlook == (
        f"removed unfunded at height {height} as things stand: a fire costs up to "
        f"{format_cby(max_cost(80_000))} CBY, {actor.address} holds 0.000000005 CBY"
    )
    chain.advance_to(height)
    assert chain.explain(timer_id).state == "unfunded"
    assert stories(chain, timer_id)[-1] == (
        f"{height}: removed without running: a fire costs up to {format_cby(max_cost(80_000))} CBY and "
        f"its payer {actor.address} held 0.000000005 CBY"
    )


def test_life_tells_both_heights_when_the_timer_expired(chain: LocalChain) -> None:
    """And the outlook has said so before."""
    actor = deploy_puppet(chain)
    height = chain.height + 8
    timer_id = schedule(actor, height, b"", expires_at=height - 2)
    assert chain.explain(timer_id).outlook == (
        f"expires unfired at height {height}: it may fire up to {height - 2} only"
    )
    chain.advance_to(height)
    assert chain.explain(timer_id).state == "expired"
    assert (
        stories(chain, timer_id)[-1] == f"{height}: expired: it could fire up to height {height - 2}, this is {height}"
    )


def test_life_tells_every_change_when_owner_and_governance_touch_the_timer(chain: LocalChain) -> None:
    """Extended by both, cancelled by one."""
    actor = deploy_puppet(chain)
    one, two = schedule(actor, 100), schedule(actor, 100)
    answers(perform(actor, step("extend_timer", one, 500)))
    chain.system(ExtendTimer(one, 600))
    chain.system(CancelTimer(one))
    answers(perform(actor, step("cancel_timer", two)))
    assert [story.split(": ", 1)[1] for story in stories(chain, one)[1:]] == [
        "extended by its actor: may now fire up to height 500",
        "extended by governance: may now fire up to height 600",
        "cancelled by governance",
    ]
    assert stories(chain, two)[-1].endswith("cancelled by its actor")
    assert [chain.explain(timer_id).state for timer_id in (one, two)] == ["cancelled", "cancelled"]


@pytest.mark.spec("F-74")
def test_life_tells_why_a_timer_waits_when_the_lane_is_full(chain: LocalChain) -> None:
    """The deferral with its reason while it waits, and how long it took when it is over."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    ids = answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(4))))
    chain.advance_to(height)
    life = chain.explain(ids[3])
    assert life.state == "live"
    assert life.steps[-1].story == (
        f"due at {height}, deferred (lane_full): its 550,000 cycles did not fit what was left of the block's timer "
        "lane; it stays due"
    )
    assert life.outlook.startswith(
        f"fires at height {height + 1} as things stand: a fire costs up to {format_cby(max_cost())} CBY"
    )
    assert life.outlook.endswith("; it waits because of lane_full")
    chain.mine()
    assert "fired, after 1 deferred blocks: " in stories(chain, ids[3])[-1]


@pytest.mark.trailboss(params={"timers.gc_cycles_per_block": 200})
def test_life_tells_why_a_dead_timer_waits_when_the_clean_up_budget_is_spent(chain: LocalChain) -> None:
    """It says that the timer is to be removed."""
    actor = deploy_puppet(chain, value=0)
    height = chain.height + 4
    answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(2))))
    chain.advance_to(height)
    (timer,) = chain.timers()
    assert stories(chain, timer.timer_id)[-1] == (
        f"{height}: due at {height}, deferred (gc_exhausted): it is to be removed and the block's clean-up budget was "
        "spent; it stays due"
    )


def test_explaining_is_refused_when_no_block_scheduled_the_timer(chain: LocalChain) -> None:
    """An unknown id, and one whose block was reverted."""
    actor = deploy_puppet(chain)
    mark = chain.snapshot()
    timer_id = schedule(actor, 100)
    chain.revert(mark)
    for unknown in (timer_id, bytes(32)):
        with pytest.raises(Rejection, match=f"no block of this chain scheduled timer 0x{unknown.hex()}"):
            chain.explain(unknown)
