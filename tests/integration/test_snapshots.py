"""Going back and forward again: state, clock, queue and fees return together, and what follows repeats itself."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    answers,
    deploy_puppet,
    fired_ids,
    max_cost,
    perform,
    schedule,
    script,
    step,
    totals,
)
from tests.integration.siblings import deploy_siblings
from trailboss.model.transactions import CancelTimer, SetGovParam, UpdateTimerConfig
from trailboss.primitives.errors import Rejection
from trailboss.testing import ActorHandle, LocalChain

DEAR = {"fees.genesis_cycle_basefee": 900_000, "fees.genesis_cell_basefee": 50_000}


def picture(chain: LocalChain) -> dict[str, object]:
    """Return all of a chain that can be seen from outside, its rules and its calendar included."""
    heights = [timer.height for timer in chain.timers()]
    return {
        "height": chain.height,
        "hash": chain.block().hash,
        "root": chain.state_root,
        "accounts": dict(chain.chain.accounts()),
        "burned": chain.burned,
        "timers": chain.timers(),
        "order": [[timer.timer_id for timer in chain.timers(height=height)] for height in heights],
        "rules": chain.chain.rules(),
        "totals": totals(chain),
        "next": chain.chain.queue.next_due_height(),
        "events": chain.events(),
    }


def populate(chain: LocalChain) -> ActorHandle:
    """Return a puppet with timers in every tier and of every fate, several blocks after genesis."""
    actor = deploy_puppet(chain)
    now = chain.height
    again = script(step("schedule_timer_ex", now + 29, b"child", gas_limit=100_000))
    perform(
        actor,
        step("schedule_timer_ex", now + 3, again, gas_limit=200_000),
        step("schedule_timer_ex", now + 4, script(step("raise", "x")), gas_limit=100_000),
        step("schedule_timer_ex", now + 9, b"expires", gas_limit=100_000, expires_at=now + 8),
        *(step("schedule_timer_ex", now + 12, b"%d" % number, gas_limit=550_000) for number in range(6)),
        step("schedule_timer_ex", now + 35, b"far", gas_limit=100_000),
        step("schedule_timer_ex", now + 500, b"very far", gas_limit=100_000),
    )
    deploy_siblings(chain, (b"first=cancel:second",))
    return actor


def later(chain: LocalChain, actor: ActorHandle) -> None:
    """Let forty blocks pass with transactions, fires, deferrals, cancellations and changed rules among them."""
    chain.mine(3)
    schedule(actor, chain.height + 6, b"new", gas_limit=60_000)
    chain.system(UpdateTimerConfig(5_000, 300_000, 200_000, 64, 1_000))
    chain.mine(2)
    victim = chain.timers()[-1].timer_id
    chain.system(CancelTimer(victim))
    chain.system(SetGovParam(b"system:cip1:lane_timer_cycles", (600_000).to_bytes(8, "big")))
    with chain.one_block():
        chain.transfer(actor, 7, sender=chain.accounts[3], max_priority_fee_per_cycle=11)
        perform(actor, step("spin"), sender=chain.accounts[2], cycles_limit=100_000)
    chain.mine(40)


@pytest.mark.spec("F-83", "Q-05")
@pytest.mark.trailboss(preset="minimal", params=DEAR)
def test_chain_is_as_it_was_when_reverted_and_repeats_itself_when_replayed(chain: LocalChain) -> None:
    """Across rollovers, fires, deferrals, changed fees and changed rules; twice, with equal blocks each time."""
    actor = populate(chain)
    mark, before = chain.snapshot(), picture(chain)
    later(chain, actor)
    after, blocks = picture(chain), list(chain.chain.blocks)
    assert after["rules"] != before["rules"]
    assert after["root"] != before["root"]
    for _ in range(2):
        chain.revert(mark)
        chain.check_invariants()
        assert picture(chain) == before
        later(chain, actor)
        assert picture(chain) == after
        assert list(chain.chain.blocks) == blocks


@pytest.mark.spec("F-83")
@pytest.mark.trailboss(preset="minimal", params=DEAR)
def test_chain_can_go_back_to_any_block_when_it_has_marked_them_all(chain: LocalChain) -> None:
    """Every block in turn, newest first; the state of each is the one it had."""
    populate(chain)
    marks, pictures = [], []
    for _ in range(45):
        marks.append(chain.snapshot())
        pictures.append(picture(chain))
        chain.mine()
    for mark, expected in zip(reversed(marks), reversed(pictures), strict=True):
        chain.revert(mark)
        chain.check_invariants()
        assert picture(chain) == expected


@pytest.mark.spec("F-83")
def test_pre_charge_and_refund_are_undone_when_the_firing_block_is_reverted(chain: LocalChain) -> None:
    """The timer is pending again, its payer has its money, and firing it again costs the same."""
    actor = deploy_puppet(chain)
    height = chain.height + 5
    timer_id = schedule(actor, height, b"tick")
    chain.advance_to(height - 1)
    mark, purse, burned = chain.snapshot(), actor.balance, chain.burned
    chain.mine()
    fired, spent = chain.block(), purse - actor.balance
    assert spent > 0
    chain.revert(mark)
    assert (actor.balance, chain.burned) == (purse, burned)
    assert [timer.timer_id for timer in chain.timers(height=height)] == [timer_id]
    assert fired_ids(chain) == []
    chain.mine()
    assert chain.block() == fired
    assert actor.balance == purse - spent


@pytest.mark.spec("F-83")
def test_another_branch_goes_its_own_way_when_the_firing_block_is_replaced(chain: LocalChain) -> None:
    """After going back, a cancel in the new block takes the place of the fire; the old branch is forgotten."""
    actor = deploy_puppet(chain)
    height = chain.height + 5
    timer_id = schedule(actor, height, b"tick")
    chain.advance_to(height - 1)
    mark = chain.snapshot()
    chain.mine(3)
    abandoned = chain.snapshot()
    chain.revert(mark)
    answers(perform(actor, step("cancel_timer", timer_id)))
    chain.mine(2)
    assert fired_ids(chain) == []
    assert totals(chain) == (1, 0, 0, 0, 1)
    with pytest.raises(Rejection, match="the chain does not hold block"):
        chain.revert(abandoned)


@pytest.mark.spec("F-83", "F-54")
def test_deferred_timer_waits_again_when_the_block_that_ran_it_is_reverted(chain: LocalChain) -> None:
    """Place, reason and age of a deferral are state like anything else."""
    actor = deploy_puppet(chain)
    height = chain.height + 3
    answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(5))))
    chain.advance_to(height)
    mark, waiting = chain.snapshot(), chain.timers()
    assert [(timer.deferrals, timer.deferred_for) for timer in waiting] == [(1, "lane_full")] * 2
    chain.mine(2)
    assert chain.timers() == []
    chain.revert(mark)
    assert chain.timers() == waiting
    chain.mine()
    assert fired_ids(chain, since=height + 1) == [timer.timer_id for timer in waiting]


@pytest.mark.spec("F-80")
@pytest.mark.trailboss(preset="minimal", params=DEAR)
def test_advancing_equals_mining_block_by_block(chain: LocalChain) -> None:
    """Every header, receipt and event is the same, with blocks in which nothing happens among them."""
    populate(chain)
    mark = chain.snapshot()
    for _ in range(150):
        chain.mine()
    blocks = list(chain.chain.blocks)
    chain.revert(mark)
    chain.advance_to(mark.height + 150)
    assert list(chain.chain.blocks) == blocks
    chain.revert(mark)
    for _ in range(150):
        chain.chain.build()
    assert list(chain.chain.blocks) == blocks


def test_fees_are_back_at_their_heights_when_reverted(chain: LocalChain) -> None:
    """A full block moves the basefee of the next; going back before it takes the move back."""
    actor = deploy_puppet(chain)
    mark = chain.snapshot()
    with chain.one_block():
        for _ in range(4):
            perform(actor, step("spin"), cycles_limit=5_000_000, cells_limit=1_000)
    assert chain.chain.rules().cycle_basefee == BASEFEE + BASEFEE // 8
    chain.revert(mark)
    assert chain.chain.rules().cycle_basefee == BASEFEE
    assert max_cost() == 11_000_000_000
