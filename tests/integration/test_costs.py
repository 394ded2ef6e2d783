"""Cost tables of whole chains: they add up to the receipts, and change nothing."""

import json
from pathlib import Path

import pytest

from tests.golden.lives import ACTORS, LIVES, run_life
from trailboss.chain import Chain
from trailboss.testing import CBY, LocalChain
from trailboss.testing.costs.recorder import CostRecorder
from trailboss.testing.costs.table import frames_of

PINNED = json.loads((Path(__file__).parents[1] / "golden" / "cycles.json").read_text(encoding="utf-8"))
CLOCK = ACTORS / "clock.py"
CALLER = """
import pvm_host

def relay(payload):
    try:
        pvm_host.call_actor(payload, "endless", b"", 30_000)
    except pvm_host.HostError:
        pass
    pvm_host.call_actor(payload, "answer", b"", 50_000)
    while True:
        pass

def answer(payload):
    return payload

def endless(payload):
    while True:
        payload = payload + b"1"
"""


class RecordedTest:
    """A chain whose costs are recorded."""

    def __init__(self, *, with_flames: bool = False, **options: object) -> None:
        self.recorder = CostRecorder(ACTORS, with_flames=with_flames)

        class RecordedLocalChain(LocalChain):
            chain_class = self.recorder.chain_class()

        self.chain = RecordedLocalChain(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LIVES)
def test_rows_add_up_to_the_receipts_of_every_example(name: str) -> None:
    """Cycles, cells and money by handler and line are those of the receipts; the root is that of a chain unrecorded."""
    recorder = CostRecorder(ACTORS, with_flames=True)
    receipts, state_root = run_life(name, recorder)
    table = recorder.table
    table.check()
    lines = sum(costs.base + sum(costs.lines.values()) for *_, costs in table.rows())
    assert lines + sum(rest.cycles for rest in table.rest.values()) == sum(each.cycles_used for each in receipts)
    cells = sum(costs.cells for *_, costs in table.rows()) + sum(rest.cells for rest in table.rest.values())
    assert cells == sum(each.cells_used for each in receipts)
    paid = sum(costs.paid for *_, costs in table.rows()) + sum(rest.paid for rest in table.rest.values())
    assert paid == sum(each.fee_paid for each in receipts)
    assert recorder.flames is not None
    assert sum(recorder.flames.stacks.values()) == table.total.cycles
    assert str(state_root) == PINNED[f"examples/{name}"]["state_root"]


def test_rows_add_up_when_frames_exhaust_their_cycles() -> None:
    """A callee at its limit, and then its caller at its own: the charge that passes a limit counts up to it."""
    recorded = RecordedTest(with_flames=True)
    with recorded.chain as chain:
        alice = chain.accounts[0]
        caller, callee = chain.deploy(CALLER, sender=alice), chain.deploy(CALLER, sender=alice)
        receipt = caller.call("relay", callee.address, sender=alice, cycles_limit=150_000)
        assert receipt.error is not None
        table, flames = recorded.recorder.table, recorded.recorder.flames
        table.check()
        [code_hash] = table.sources
        costs = table.of_handlers(code_hash)
        assert set(costs) == {"relay", "answer", "endless"}
        assert costs["endless"].cycles == 30_000 == costs["endless"].calls[0]
        assert flames is not None
        assert sum(flames.stacks.values()) == table.total.cycles == sum(each.cycles_used for each in chain.receipts())
        assert min(flames.stacks.values()) >= 0


def test_only_blocks_that_were_built_are_recorded() -> None:
    """Views, outlooks, a refused transaction and a rehearsal run handlers, and cost nothing."""
    recorded = RecordedTest()
    with recorded.chain as chain:
        clock = chain.deploy(CLOCK, sender=chain.accounts[0], value=100 * CBY)
        before = recorded.recorder.table.executions
        assert clock.view("ticks").ok
        str(chain.explain(clock.timers()[0].timer_id))
        chain.rehearse_activation(chain.height + 30)
        assert clock.call("ticks", sender=chain.accounts[0], max_fee_per_cycle=1).status == "refused"
        assert recorded.recorder.table.executions == before
        chain.mine(5)
        recorded.recorder.table.check()
        assert recorded.recorder.table.executions == before + 1


def test_blocks_that_a_test_reverts_are_recorded() -> None:
    """What ran has been paid for in its block, whatever became of the block."""
    recorded = RecordedTest()
    with recorded.chain as chain:
        mark = chain.snapshot()
        chain.deploy(CLOCK, sender=chain.accounts[0])
        chain.revert(mark)
        chain.deploy(CLOCK, sender=chain.accounts[0])
        [code_hash] = recorded.recorder.table.sources
        assert len(recorded.recorder.table.of_handlers(code_hash)["init"].calls) == 2


def test_recorded_chain_opens_its_directory_again(tmp_path: Path) -> None:
    """A chain on disk is recorded from where it goes on."""
    first = RecordedTest(data_dir=tmp_path / "chain")
    with first.chain as chain:
        clock = chain.deploy(CLOCK, sender=chain.accounts[0], value=100 * CBY)
        root = chain.state_root
    again = RecordedTest(data_dir=tmp_path / "chain")
    with again.chain as chain:
        assert chain.state_root == root
        chain.actor(clock.address).call("ticks", sender=chain.accounts[0])
        again.recorder.table.check()
        assert again.recorder.table.executions == 1


def test_chain_beneath_is_a_plain_one_when_nothing_is_recorded() -> None:
    """Costs are nothing that every chain pays for."""
    with LocalChain() as chain:
        assert type(chain.chain) is Chain


def test_questions_to_agents_have_a_row() -> None:
    """The auction asks its agents before it chooses; what that cost is beside the fires."""
    recorder = CostRecorder(ACTORS)
    run_life("auction_liquidator", recorder)
    assert recorder.table.rest["questions to gas bidding agents"].cycles > 0
    assert list(frames_of(None)) == []


def test_hits_count_how_often_lines_ran() -> None:
    """A loop's line as often as it began and turned, its body in each turn, a function when it was made and entered."""
    source = "def add(payload):\n    for each in range(5):\n        payload += b'1'\n        if each > 3: pass\n"
    recorded = RecordedTest()
    with recorded.chain as chain:
        actor = chain.deploy(source, sender=chain.accounts[0])
        for _ in range(2):
            actor.call("add", sender=chain.accounts[0], check=True)
    [code_hash] = recorded.recorder.table.sources
    assert recorded.recorder.table.of_handlers(code_hash)["add"].hits == {1: 4, 2: 12, 3: 10, 4: 10}
