"""What all four mechanisms promise: each timer once, in time, paid for, and never lost."""

from pathlib import Path

import pytest

from tests.conformance.mechanisms.doer import (
    BUDGET,
    CBY,
    GAS,
    MECHANISMS,
    PAYLOAD_MAX,
    TIMERS_MAX,
    bustle,
    check_sums,
    deploy_doer,
    ends_of,
    fires_of,
    open_chain,
    ran,
    roots,
    set_timers,
    tell,
    wish,
)
from trailboss.chain.export import export_chain, import_chain
from trailboss.chain.replay import verify_chain
from trailboss.model.transactions import CancelTimer, FundActor
from trailboss.testing import LocalChain

CAP_CODES = {"fifo": 1501, "lane": 1501, "auction": 1501, "globalbox": 1514, "lifo": 1501}
PARAMETER_CODES = {"fifo": 1202, "lane": 1202, "auction": 1202, "globalbox": 1511, "lifo": 1202}
CROWD = 30


# Once, and in time


@pytest.mark.spec("F-15", "G-01", "Q-05")
def test_timer_runs_once_and_in_its_block_when_there_is_room(chain: LocalChain) -> None:
    """Not before its height, not after it, and never again."""
    actor = deploy_doer(chain)
    due = chain.height + 5
    (timer_id,) = set_timers(actor, due, "a")
    chain.advance_to(due - 1)
    assert (ran(actor), fires_of(chain, timer_id)) == ([], [])
    chain.mine()
    assert ran(actor) == ["a"]
    chain.mine(12)
    (receipt,) = fires_of(chain, timer_id)
    assert (receipt.block_height, receipt.status) == (due, "ok")
    assert ends_of(chain) == {timer_id: ["fired"]}
    check_sums(chain)


@pytest.mark.spec("F-50", "G-17")
def test_timer_waits_for_the_next_block_when_a_handler_sets_it(chain: LocalChain) -> None:
    """Each of a row of timers is set by the one before, and runs one block after it."""
    actor = deploy_doer(chain)
    due = chain.height + 3
    set_timers(actor, due, ">>>")
    chain.mine(12)
    assert ran(actor) == [">>>", ">>", ">"]
    assert [receipt.block_height for receipt in chain.receipts(origin="timer")] == [due, due + 1, due + 2]


@pytest.mark.spec("F-14")
def test_timer_is_refused_when_its_height_is_not_ahead(chain: LocalChain, mechanism: str) -> None:
    """No timer can be set for the block that sets it, or for an earlier one."""
    actor = deploy_doer(chain)
    for height in (chain.height + 1, 1):
        receipt = tell(actor, "set_timers", wish(height, "a"))
        assert receipt.error is not None
        assert receipt.error.code == PARAMETER_CODES[mechanism]
    assert (chain.timers(), chain.chain.totals().scheduled) == ([], 0)


@pytest.mark.spec("F-33")
def test_nothing_is_set_or_cancelled_when_the_transaction_reverts(chain: LocalChain) -> None:
    """The timer that was set is not there; the one that was cancelled runs."""
    actor = deploy_doer(chain)
    due = chain.height + 6
    (timer_id,) = set_timers(actor, due, "a")
    assert not tell(actor, "set_and_fail", wish(due, "b")).ok
    assert not tell(actor, "drop_and_fail", timer_id).ok
    assert [timer.timer_id for timer in chain.timers()] == [timer_id]
    chain.advance_to(due)
    assert ran(actor) == ["a"]


# Cancelling


@pytest.mark.spec("F-13")
def test_timer_never_runs_when_its_owner_has_cancelled_it(chain: LocalChain) -> None:
    """Before its block, its owner may cancel it; cancelling again is silent."""
    actor = deploy_doer(chain)
    due = chain.height + 6
    first, second = set_timers(actor, due, "a", "b")
    assert tell(actor, "drop", first).ok
    assert tell(actor, "drop", first).ok
    chain.advance_to(due + 3)
    assert ran(actor) == ["b"]
    assert ends_of(chain) == {first: ["cancelled"], second: ["fired"]}


@pytest.mark.spec("F-13")
def test_timer_runs_when_another_actor_tries_to_cancel_it(chain: LocalChain) -> None:
    """Whose it is not may not cancel it, and changes nothing."""
    actor, other = deploy_doer(chain), deploy_doer(chain, account=1)
    due = chain.height + 4
    (timer_id,) = set_timers(actor, due, "a")
    receipt = tell(other, "drop", timer_id)
    assert receipt.error is not None
    assert receipt.error.code == 1503
    chain.advance_to(due)
    assert ran(actor) == ["a"]


@pytest.mark.spec("F-61")
def test_timer_never_runs_when_governance_has_cancelled_it(chain: LocalChain) -> None:
    """A system deployer may cancel anybody's; nobody else may."""
    actor = deploy_doer(chain)
    due = chain.height + 5
    first, second = set_timers(actor, due, "a", "b")
    assert chain.system(CancelTimer(first)).ok
    assert not chain.send(CancelTimer(second), sender=chain.accounts[3]).ok
    chain.advance_to(due + 3)
    assert ran(actor) == ["b"]
    assert ends_of(chain) == {first: ["cancelled"], second: ["fired"]}


def test_timer_never_runs_when_an_earlier_fire_has_cancelled_it(chain: LocalChain) -> None:
    """The first of two that are due one after the other cancels the second."""
    actor = deploy_doer(chain)
    due = chain.height + 4
    (victim,) = set_timers(actor, due + 1, "v")
    (killer,) = set_timers(actor, due, "-v")
    chain.advance_to(due + 4)
    assert ran(actor) == ["-v"]
    assert ends_of(chain) == {killer: ["fired"], victim: ["cancelled"]}


# Paying


@pytest.mark.spec("E-04", "A-06", "G-18")
def test_owner_pays_for_what_a_fire_has_used_and_for_no_more(chain: LocalChain) -> None:
    """What was reserved comes back but for what was used; the basefee is burned, a tip goes to the proposer."""
    actor = deploy_doer(chain)
    (timer_id,) = set_timers(actor, chain.height + 3, "a")
    chain.mine()
    before, burned, tips = chain.balance(actor.address), chain.burned, chain.balance(chain.proposer)
    chain.mine()
    (receipt,) = fires_of(chain, timer_id)
    assert 0 < receipt.cycles_used < GAS
    (record,) = chain.block().receipts
    assert record.reserved == receipt.fee_burned + receipt.tip + record.refund
    assert before - chain.balance(actor.address) == receipt.fee_burned + receipt.tip > 0
    assert chain.burned - burned == receipt.fee_burned
    assert chain.balance(chain.proposer) - tips == receipt.tip
    assert receipt.payer == actor.address


@pytest.mark.spec("F-53", "G-16")
def test_fire_leaves_nothing_but_its_price_when_it_reverts(chain: LocalChain) -> None:
    """Its writes and transfers are taken back, what it used is paid, and it does not come again."""
    actor = deploy_doer(chain)
    (timer_id,) = set_timers(actor, chain.height + 3, "!")
    before = chain.balance(actor.address)
    chain.mine(6)
    (receipt,) = fires_of(chain, timer_id)
    assert (receipt.status, ran(actor)) == ("reverted", [])
    assert 0 < receipt.cycles_used < GAS
    assert before - chain.balance(actor.address) == receipt.fee_burned + receipt.tip
    assert chain.balance(bytes(19) + b"\x77") == 0
    assert ends_of(chain) == {timer_id: ["fired"]}


@pytest.mark.spec("F-53", "G-16")
def test_fire_costs_its_whole_gas_limit_when_it_is_exhausted(chain: LocalChain) -> None:
    """It is charged for all of its cycles and leaves nothing else."""
    actor = deploy_doer(chain)
    (timer_id,) = set_timers(actor, chain.height + 3, "~", gas_limit=40_000)
    chain.mine(6)
    (receipt,) = fires_of(chain, timer_id)
    assert receipt.error is not None
    assert (receipt.error.code, receipt.cycles_used, ran(actor)) == (1005, 40_000, [])
    assert ends_of(chain) == {timer_id: ["fired"]}


# Limits


@pytest.mark.spec("F-21")
def test_timer_is_refused_when_its_owner_holds_as_many_as_it_may(chain: LocalChain, mechanism: str) -> None:
    """One more than the cap reverts; after one has ended there is room again."""
    actor = deploy_doer(chain)
    due = chain.height + 20
    ids = set_timers(actor, due, *(f"a{number}" for number in range(TIMERS_MAX)))
    receipt = tell(actor, "set_timers", wish(due, "b"))
    assert receipt.error is not None
    assert receipt.error.code == CAP_CODES[mechanism]
    assert tell(actor, "drop", ids[0]).ok
    assert tell(actor, "set_timers", wish(due, "b")).ok
    assert len(chain.timers()) == TIMERS_MAX


@pytest.mark.spec("F-02")
def test_payload_and_id_are_refused_when_they_are_too_long(chain: LocalChain, mechanism: str) -> None:
    """A payload of the limit is taken and one byte more is not; an id has 1 to 256 bytes."""
    actor = deploy_doer(chain)
    due = chain.height + 9
    assert tell(actor, "set_timers", wish(due, "a" * PAYLOAD_MAX)).ok
    receipt = tell(actor, "set_timers", wish(due, "a" * (PAYLOAD_MAX + 1)))
    assert receipt.error is not None
    assert receipt.error.code == PARAMETER_CODES[mechanism]
    assert tell(actor, "drop", bytes(256)).ok
    for timer_id in (b"", bytes(257)):
        refused = tell(actor, "drop", timer_id)
        assert refused.error is not None
        assert refused.error.code in (1202, 1511)


# Congestion


@pytest.mark.spec("F-51", "A-05", "A-08", "G-12")
def test_all_timers_run_once_when_more_are_due_than_blocks_have_room_for(chain: LocalChain) -> None:
    """No block's fires use more than the budget, every timer runs in or after its height, and none is lost."""
    actors = [deploy_doer(chain), deploy_doer(chain, account=1)]
    due = chain.height + 4
    labels = [[f"{sign}{number}" for number in range(CROWD)] for sign in ("a", "b")]
    ids = [each for actor, names in zip(actors, labels, strict=True) for each in set_timers(actor, due, *names)]
    for _ in range(2 * CROWD):
        chain.mine()
        check_sums(chain)
        assert chain.block().header.timer_cycles_used <= BUDGET
    assert [sorted(ran(actor)) for actor in actors] == [sorted(names) for names in labels]
    receipts = chain.receipts(origin="timer")
    assert sorted(receipt.timer_id or b"" for receipt in receipts) == sorted(ids)
    assert min(receipt.block_height for receipt in receipts) == due
    assert len({receipt.block_height for receipt in receipts}) > 1


def test_nothing_is_lost_when_timers_fail_loop_cancel_each_other_and_want_for_money(chain: LocalChain) -> None:
    """Whatever becomes of a timer, one event says so, and the sums hold in every block."""
    actors = bustle(chain, blocks=1)
    for _ in range(40):
        chain.mine()
        check_sums(chain)
    assert chain.send(FundActor(actors[2].address, 100 * CBY), sender=chain.accounts[0]).ok
    chain.mine(60)
    check_sums(chain)
    assert all(len(ends) == 1 for ends in ends_of(chain).values())
    assert chain.timers() == []


# Determinism


@pytest.mark.spec("F-80", "G-20")
def test_blocks_are_the_same_when_the_same_things_happen_again(mechanism: str) -> None:
    """Two chains that are told the same have the same hashes."""
    with open_chain(mechanism) as first, open_chain(mechanism) as second:
        bustle(first)
        bustle(second)
        assert roots(first) == roots(second)


@pytest.mark.spec("F-83", "G-21")
def test_blocks_are_the_same_when_a_branch_was_dropped_in_mid_flight(mechanism: str) -> None:
    """While fires wait everywhere, a chain builds other blocks, goes back, and goes on as if it had not."""
    with open_chain(mechanism) as straight, open_chain(mechanism) as wandering:
        bustle(straight, blocks=8)
        actors = bustle(wandering, blocks=2)
        assert wandering.timers()
        mark = wandering.snapshot()
        for timer in wandering.timers():
            wandering.system(CancelTimer(timer.timer_id))
        wandering.revert(mark)
        tell(actors[0], "set_timers", wish(wandering.height + 2, "z"))
        wandering.mine(4)
        wandering.reorg(5)
        assert wandering.height == mark.height
        wandering.mine(6)
        assert roots(wandering) == roots(straight)
        check_sums(wandering)


@pytest.mark.spec("F-83", "Q-05")
def test_blocks_are_the_same_when_the_chain_is_closed_and_opened_in_mid_flight(mechanism: str, tmp_path: Path) -> None:
    """What a mechanism remembers follows from the state alone."""
    with open_chain(mechanism) as straight:
        bustle(straight, blocks=8)
        expected = roots(straight)
    with open_chain(mechanism, tmp_path / "chain") as chain:
        bustle(chain, blocks=2)
        assert chain.timers()
        height = chain.height
    while height < len(expected) - 1:
        with open_chain(mechanism, tmp_path / "chain") as chain:
            chain.mine(2)
            height = chain.height
            chain.check_invariants()
    with open_chain(mechanism, tmp_path / "chain") as chain:
        assert roots(chain) == expected


@pytest.mark.spec("F-80")
def test_chain_is_verified_exported_and_imported_when_fires_wait(mechanism: str, tmp_path: Path) -> None:
    """Replaying gives every block again, in memory and from a file."""
    with open_chain(mechanism) as chain:
        bustle(chain, blocks=3)
        assert chain.timers()
        assert verify_chain(chain.chain).failure is None
        export_chain(chain.chain, tmp_path / "chain.export")
        with import_chain(tmp_path / "chain.export", None) as imported:
            assert (imported.height, imported.state_root) == (chain.height, chain.state_root)
            assert list(imported.advance_to(chain.height + 9))[-1].hash == _head_after(chain, 9)


def _head_after(chain: LocalChain, blocks: int) -> bytes:
    chain.mine(blocks)
    return chain.block().hash


@pytest.mark.spec("F-04", "Q-09")
def test_timer_is_proven_to_be_there_and_then_to_be_gone(chain: LocalChain) -> None:
    """Whoever has the state root alone can be shown both."""
    actor = deploy_doer(chain)
    due = chain.height + 3
    (timer_id,) = set_timers(actor, due, "a")
    assert [record.timer_id for record in chain.prove(timer_id).verify(chain.state_root).records] == [timer_id]
    chain.advance_to(due)
    assert chain.prove(timer_id, height=due).verify(chain.state_root).records == ()


def test_blocks_are_the_same_when_advanced_or_built_one_by_one(mechanism: str) -> None:
    """Blocks that are sealed as idle are those that would have been built."""
    with open_chain(mechanism) as advanced, open_chain(mechanism) as built:
        for chain in (advanced, built):
            bustle(chain, blocks=1)
        advanced.mine(60)
        for _ in range(60):
            built.chain.build()
        assert roots(advanced) == roots(built)


def test_suite_runs_under_every_mechanism() -> None:
    """The four are those that a chain can start with."""
    for mechanism in MECHANISMS:
        with open_chain(mechanism) as chain:
            assert chain.chain.mechanism.name == mechanism
