"""What all fires of a block may write together: nothing bounds it, unless a parameter does. Decision: D-80."""

import pytest

from trailboss.model.decisions import Stop
from trailboss.model.transactions import SetGovParam
from trailboss.testing import LocalChain

MECHANISMS = ("fifo", "lane", "auction", "globalbox")
TIMERS = 5
HEIGHT = 9
WRITTEN = 300_000
"""Bytes of the value that a fire writes; the slot's name has one more."""
BOUND = 1_200_000
KEY = b"system:timers:lane_cells_per_block"
CALLS = {
    "fifo": "pvm_host.schedule_timer_ex(int(height), label, gas_limit=50000)",
    "lane": "pvm_host.schedule_timer_ex(int(height), label, gas_limit=50000)",
    "auction": "pvm_host.set_timeout(int(height), label, pvm_host.self_address(), 50000)",
    "globalbox": "pvm_host.set_timeout(pvm_host.self_address(), int(height), label, 50000)",
}
WRITER = f"""
def arm(height):
    for number in range({TIMERS}):
        label = b"%d" % number
        CALL


def get_gas_bid(payload):
    return {{"max_fee_per_cycle": 10**6, "tip_per_cycle": 0}}


def handle_timer(label):
    pvm_host.set_state(label, bytes({WRITTEN}))
"""


def armed(mechanism: str, bound: int) -> LocalChain:
    """Return a chain on which five timers that write much are due in the next block."""
    chain = LocalChain(mechanism=mechanism, params={"timers.lane_cells_per_block": bound})
    source = WRITER.replace("CALL", CALLS[mechanism])
    writer = chain.deploy(source, sender=chain.accounts[0], value=10**12)
    writer.call("arm", b"%d" % HEIGHT, sender=chain.accounts[0], check=True)
    chain.advance_to(HEIGHT - 1)
    return chain


def fires(chain: LocalChain, blocks: int) -> list[int]:
    """Mine blocks and return how many timers fired in each; all of them wrote."""
    counts = []
    for _ in range(blocks):
        chain.mine()
        receipts = chain.receipts(chain.height, origin="timer")
        assert all(receipt.cells_used == WRITTEN + 1 for receipt in receipts)
        counts.append(len(receipts))
    return counts


@pytest.mark.spec("F-45")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_fires_of_a_block_write_what_each_may_when_nothing_bounds_them_together(mechanism: str) -> None:
    """As the documents have it, and as the parameter has it unless it is set."""
    assert fires(armed(mechanism, 0), 2) == [TIMERS, 0]


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [("fifo", [2, 2, 1]), ("lane", [3, 2, 0]), ("auction", [3, 2, 0]), ("globalbox", [3, 2, 0])],
)
def test_fires_wait_for_the_next_block_when_the_cells_of_one_are_spent(mechanism: str, expected: list[int]) -> None:
    """FIFO reserves the 550,000 that a fire may use; the others go by what those before have used, 600,002 of them."""
    chain = armed(mechanism, BOUND)
    assert fires(chain, 3) == expected
    assert all(chain.block(HEIGHT + block).header.cells_used <= BOUND for block in range(3))
    assert chain.timers() == []


@pytest.mark.parametrize("mechanism", ["lane", "auction", "globalbox"])
def test_record_says_that_the_cells_were_spent_when_a_block_ends_with_them(mechanism: str) -> None:
    """The block is over, as it is when its cycles are."""
    chain = armed(mechanism, BOUND)
    chain.mine(2)
    records = [chain.chain.decisions(height) for height in (HEIGHT, HEIGHT + 1)]
    assert [record.stopped for record in records if record is not None] == [Stop.CELLS_FULL, Stop.NONE_LEFT]


def test_timer_is_told_that_it_waits_for_cells_when_fifo_defers_it() -> None:
    """The event, the record of the timer, and the story of its life."""
    chain = armed("fifo", BOUND)
    chain.mine()
    assert [event.data["reason"] for event in chain.events("timer.deferred")] == ["cells_full"] * 3
    waiting = chain.timers()[0]
    assert (waiting.tier, waiting.deferred_for) == ("due", "cells_full")
    assert chain.explain(waiting.timer_id).steps[-1].story == (
        f"due at {HEIGHT}, deferred (cells_full): what was left of the block's cells for fires was less than one fire "
        "may use; it stays due"
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bound_is_voted_and_lifted_when_governance_sets_the_parameter(mechanism: str) -> None:
    """A vote counts from the next block on."""
    chain = armed(mechanism, 0)
    chain.reorg(2)
    chain.system(SetGovParam(KEY, (550_000).to_bytes(8, "big")), check=True)
    chain.advance_to(HEIGHT - 1)
    assert fires(chain, 1) == [1]
    chain.system(SetGovParam(KEY, bytes(8)), check=True)
    assert fires(chain, 1) == [TIMERS - 2]
