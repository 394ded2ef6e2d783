"""Who pays what, to the unit: scheduling, fires, basefees, burned money and tips."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    FIRE_CELLS,
    FUNDS,
    INDEX_CELLS,
    answers,
    deploy_puppet,
    fires,
    max_cost,
    perform,
    schedule,
    script,
    step,
)
from trailboss.chain import development
from trailboss.testing import LocalChain
from trailboss.views.records import Receipt

CALLS = {
    "costs.timer_schedule": step("schedule_timer", 100, b"payload"),
    "costs.timer_extend": step("extend_timer", b"\x05" * 32, 100),
    "costs.timer_cancel": step("cancel_timer", b"\x05" * 32),
}


def used_with(overrides: dict[str, int], call: list[object]) -> Receipt:
    """Return the receipt of one call on a chain with other prices."""
    with LocalChain(params=overrides) as chain:
        return perform(deploy_puppet(chain), call)


@pytest.mark.spec("F-60")
@pytest.mark.parametrize("price", sorted(CALLS))
def test_timer_calls_cost_200_cycles_when_made(price: str) -> None:
    """The same program with the call for nothing uses exactly 200 cycles less; cells do not change."""
    priced, free = used_with({}, CALLS[price]), used_with({price: 0}, CALLS[price])
    assert priced.ok
    assert priced.cycles_used - free.cycles_used == 200
    assert priced.cells_used == free.cells_used


@pytest.mark.spec("F-60")
def test_extended_schedule_costs_the_same_200_cycles(chain: LocalChain) -> None:
    """schedule_timer_ex is priced like schedule_timer."""
    call = step("schedule_timer_ex", 100, b"payload", gas_limit=100_000)
    assert used_with({}, call).cycles_used - used_with({"costs.timer_schedule": 0}, call).cycles_used == 200


@pytest.mark.spec("F-60", "F-61")
@pytest.mark.parametrize("size", [0, 1, 777])
def test_schedule_costs_a_cell_a_byte_and_its_index_entry(chain: LocalChain, size: int) -> None:
    """The transaction's own bytes, the payload's bytes, and 40 cells for the entry under height and id."""
    source = """
def arm(payload):
    pvm_host.schedule_timer(100, bytes(int(payload)))


def idle(payload):
    bytes(int(payload))
"""
    actor = chain.deploy(source, sender=chain.accounts[0])
    argument = b"%d" % size
    idle = actor.call("idle", argument, sender=chain.accounts[0], check=True)
    armed = actor.call("arm", argument, sender=chain.accounts[0], check=True)
    assert idle.cells_used == len("idle") + len(argument)
    assert armed.cells_used == len("arm") + len(argument) + size + INDEX_CELLS


@pytest.mark.spec("F-60")
def test_cancel_costs_no_cells_when_it_removes_a_large_timer(chain: LocalChain) -> None:
    """The price is flat, and extending costs no payload either."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100, b"x" * 5_000)
    for call in (step("extend_timer", timer_id, 999), step("cancel_timer", timer_id)):
        receipt = perform(actor, call)
        assert answers(receipt) == [None]
        assert receipt.cells_used == len(b"perform") + len(script(call))


@pytest.mark.spec("F-60")
def test_scheduling_is_drawn_from_the_fire_when_a_handler_schedules() -> None:
    """Inside a fire the 200 cycles and the cells are the fire's, so its payer pays for them."""
    used = []
    for overrides in ({}, {"costs.timer_schedule": 0}):
        with LocalChain(params=overrides) as chain:
            actor = deploy_puppet(chain)
            height = chain.height + 3
            inner = script(step("schedule_timer", 100, b"inner"))
            schedule(actor, height, inner)
            chain.advance_to(height)
            (fire,) = chain.receipts(height)
            assert fire.cells_used == len(b"fires1payload") + len(inner) + len(b"inner") + INDEX_CELLS
            assert actor.balance == FUNDS - fire.fee_paid
            used.append(fire.cycles_used)
    assert used[0] - used[1] == 200


DEAR = {"fees.genesis_cycle_basefee": 1_000_000, "fees.genesis_cell_basefee": 300_000}


def basefees(chain: LocalChain, height: int | None = None) -> tuple[int, int]:
    """Return the basefees in force in a block."""
    header = chain.block(height).header
    return int.from_bytes(header.cycle_basefee, "big"), int.from_bytes(header.cell_basefee, "big")


@pytest.mark.spec("F-62", "F-63", "F-65", "F-81")
@pytest.mark.trailboss(params={**DEAR, "timers.max_cells_per_fire": 1_234})
def test_fire_is_settled_at_the_basefees_of_its_own_block(chain: LocalChain) -> None:
    """Both limits at their basefees are reserved, what was used is burned, the rest returns; there is no tip."""
    actor = deploy_puppet(chain)
    height = chain.height + 6
    schedule(actor, height, b"tick", gas_limit=54_321)
    at_schedule = basefees(chain)
    chain.advance_to(height - 1)
    purse, burned = actor.balance, chain.burned
    chain.mine()
    cycle, cell = basefees(chain)
    assert cycle < at_schedule[0]
    assert cell < at_schedule[1]
    (record,) = chain.block().receipts
    assert record.reserved == 54_321 * cycle + 1_234 * cell
    cost = record.cycles_used * cycle + record.cells_used * cell
    assert (record.fee_burned, record.tip, record.refund) == (cost, 0, record.reserved - cost)
    assert 0 < cost < record.reserved
    assert actor.balance == purse - cost
    assert chain.burned == burned + cost
    assert chain.balance(chain.proposer) == 0


@pytest.mark.spec("F-64")
def test_reverted_fire_loses_its_writes_and_pays_for_what_it_used(chain: LocalChain) -> None:
    """Cells of writes that are discarded are charged all the same; what was not used returns."""
    actor = deploy_puppet(chain)
    height = chain.height + 3
    payload = script(step("set_state", b"k", b"v" * 100), step("raise", "after writing"))
    schedule(actor, height, payload)
    chain.advance_to(height)
    (receipt,) = chain.receipts(height)
    assert receipt.status == "reverted"
    assert dict(actor.storage) == {}
    assert fires(actor) == 0
    assert receipt.cells_used == len(b"fires1payload") + len(payload) + 101
    assert receipt.fee_paid == (receipt.cycles_used + receipt.cells_used) * BASEFEE
    assert receipt.refund == max_cost() - receipt.fee_paid > 0
    assert actor.balance == FUNDS - receipt.fee_paid


@pytest.mark.spec("F-65", "E-03")
@pytest.mark.trailboss(params={"fees.cycles_target": 400_000, "timers.lane_cycles_per_block": 700_000})
def test_fires_count_into_the_block_when_the_basefee_moves(chain: LocalChain) -> None:
    """A block in which only timers run is as full as one in which transactions use the same."""
    actor = deploy_puppet(chain)
    chain.mine(60)
    assert basefees(chain) == (BASEFEE, BASEFEE)
    height = chain.height + 3
    schedule(actor, height, script(step("spin")), gas_limit=500_000)
    chain.advance_to(height)
    assert chain.block().header.cycles_used == chain.block().header.timer_cycles_used == 500_000
    chain.mine()
    # A quarter above the target, divided by 8, rounded down.
    assert basefees(chain)[0] == BASEFEE + BASEFEE * 100_000 // 400_000 // 8


@pytest.mark.spec("E-03")
@pytest.mark.trailboss(params=DEAR)
def test_basefees_fall_by_an_eighth_to_the_floor_when_blocks_are_empty(chain: LocalChain) -> None:
    """Both markets fall, each from where it stands, and neither below the floor."""
    cycle, cell = 1_000_000, 300_000
    for _ in range(50):
        chain.mine()
        assert basefees(chain) == (cycle, cell)
        cycle, cell = (max(fee - fee // 8, BASEFEE) for fee in (cycle, cell))
    assert basefees(chain) == (BASEFEE, BASEFEE)


@pytest.mark.spec("E-03", "E-01")
def test_basefees_move_apart_when_only_one_resource_is_used(chain: LocalChain) -> None:
    """A block full of cycles raises the price of cycles by an eighth and leaves cells at the floor."""
    actor = deploy_puppet(chain)
    with chain.one_block():
        full = [perform(actor, step("spin"), cycles_limit=5_000_000, cells_limit=1_000) for _ in range(4)]
    assert [receipt.cycles_used for receipt in full] == [5_000_000] * 4
    assert chain.block().header.cycles_used == 20_000_000
    chain.mine()
    assert basefees(chain) == (BASEFEE + BASEFEE // 8, BASEFEE)
    stored = chain.deploy(
        "def fill(payload):\n    pvm_host.set_state(b'k', bytes(240_000))\n", sender=chain.accounts[0]
    )
    with chain.one_block():
        for sender in chain.accounts[:4]:
            stored.call("fill", sender=sender)
    used = chain.block().header.cells_used
    cycle, cell = basefees(chain)
    chain.mine()
    assert basefees(chain)[1] == cell + cell * (used - 500_000) // 500_000 // 8 > cell
    assert (cycle, basefees(chain)[0]) == (BASEFEE, BASEFEE)


@pytest.mark.spec("E-01")
@pytest.mark.trailboss(params=DEAR)
def test_transaction_pays_each_meter_at_its_own_price_when_it_runs(chain: LocalChain) -> None:
    """Cycles and cells of a transfer, each at its basefee plus the part of the tip that its cap leaves."""
    sender = chain.accounts[0]
    before = chain.balance(sender)
    receipt = chain.transfer(
        chain.accounts[1],
        12_345,
        sender=sender,
        max_fee_per_cycle=1_000_100,
        max_priority_fee_per_cycle=500,
        max_fee_per_cell=400_000,
        max_priority_fee_per_cell=7,
    )
    assert receipt.ok
    assert (receipt.cycles_used, receipt.cells_used) == (10_000, 500)
    burned, tip = 10_000 * 1_000_000 + 500 * 300_000, 10_000 * 100 + 500 * 7
    assert (receipt.fee_burned, receipt.tip, receipt.fee_paid) == (burned, tip, burned + tip)
    assert chain.balance(sender) == before - 12_345 - burned - tip
    assert chain.balance(chain.proposer) == tip
    assert chain.burned == burned


@pytest.mark.spec("F-81", "F-62", "F-63")
def test_money_is_exact_when_amounts_are_beyond_what_floats_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balances of 100 bits and prices that are no round numbers: no unit is lost."""
    monkeypatch.setattr(development, "ACCOUNT_BALANCE", 2**100 + 1)
    prices = {"fees.genesis_cycle_basefee": 10**11 + 7, "fees.genesis_cell_basefee": 10**11 + 13}
    with LocalChain(params=prices) as chain:
        value = 2**63 + 1
        actor = deploy_puppet(chain, value=value)
        height = chain.height + 3
        schedule(actor, height, b"tick", gas_limit=123_457)
        chain.advance_to(height)
        (record,) = chain.block().receipts
        cycle, cell = basefees(chain)
        assert record.reserved == 123_457 * cycle + FIRE_CELLS * cell > 2**53
        assert actor.balance == value - record.cycles_used * cycle - record.cells_used * cell
        spent = sum(receipt.fee_paid for receipt in chain.receipts() if receipt.payer == chain.accounts[0].address)
        assert chain.balance(chain.accounts[0]) == 2**100 + 1 - value - spent
