"""A fork: a chain in memory that goes on from where another one stands."""

from pathlib import Path

import pytest

from trailboss.chain import Chain
from trailboss.governance.parameters import ACTIVATION
from trailboss.primitives.errors import InvariantError
from trailboss.rehearsal.run import fork_of, governed_slots
from trailboss.testing import LocalChain
from trailboss.views import explain_timer

CBY = 10**9
BEATS = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 3, b"", gas_limit=50_000)

def handle_timer(payload):
    pvm_host.set_state(b"beats", payload + b"x")
    init(payload)
"""


@pytest.fixture
def chain() -> LocalChain:
    """Return a chain at height 8 on which a timer fires every three blocks."""
    chain = LocalChain()
    chain.deploy(BEATS, sender=chain.accounts[0], value=50 * CBY)
    chain.mine(7)
    return chain


def advance(chain: Chain, height: int) -> None:
    for _ in chain.advance_to(height):
        pass


def test_fork_knows_the_blocks_before_it_when_the_original_goes_on(chain: LocalChain) -> None:
    """A timer's life spans both; what the original builds later is not part of it."""
    fork = fork_of(chain.chain)
    [timer] = fork.timers()
    advance(fork, 12)
    chain.mine(30)
    life = explain_timer(fork, timer.timer_id)
    assert [step.block_height for step in life.steps] == [7, 10]
    assert [block.height for block in fork.blocks] == list(range(13))
    assert [block.height for block in fork.blocks.eventful(5)] == [7, 10]
    assert (fork.blocks[3], fork.blocks[8]) == (chain.chain.blocks[3], chain.chain.blocks[8])


def test_fork_has_other_parameters_when_they_are_governed_so(chain: LocalChain) -> None:
    """Whether the original's state has a value or not."""
    fork = fork_of(chain.chain, governed_slots(chain.chain, {ACTIVATION: 20}))
    assert fork.rules().params.lane.activation_height == 20
    again = fork_of(fork, governed_slots(fork, {ACTIVATION: 0}))
    assert again.rules().params.lane.activation_height == chain.chain.rules().params.lane.activation_height == 0
    advance(fork, 30)
    advance(again, 30)
    assert (fork.mechanism.name, again.mechanism.name) == ("lane", "fifo")
    fork.check_invariants()


def test_fork_goes_back_no_further_than_its_beginning(chain: LocalChain) -> None:
    """Within its own blocks it can."""
    fork = fork_of(chain.chain)
    advance(fork, 12)
    fork.reorg(4)
    assert (fork.height, fork.state_root) == (8, chain.state_root)
    with pytest.raises(InvariantError, match="this branch began after block 8"):
        fork.reorg(1)


def test_fork_of_a_chain_on_disk_is_in_memory(tmp_path: Path) -> None:
    """No file of the directory changes."""
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        chain.deploy(BEATS, sender=chain.accounts[0], value=50 * CBY)
        chain.mine(7)
        files = {path: path.read_bytes() for path in (tmp_path / "chain").iterdir()}
        fork = fork_of(chain.chain)
        advance(fork, 40)
        assert {path: path.read_bytes() for path in (tmp_path / "chain").iterdir()} == files
        chain.advance_to(40)
        assert fork.state_root == chain.state_root
