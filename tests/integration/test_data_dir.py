"""A local chain that lives in a directory: the same chain, also tomorrow."""

from pathlib import Path

import pytest

from tests.integration.helpers import CBY, PUPPET, deploy_puppet, fires, schedule
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason
from trailboss.testing import AccountSubject, LocalChain, TimersSubject


@pytest.mark.spec("Q-05", "F-83")
def test_chain_goes_on_when_its_directory_is_opened_again(tmp_path: Path) -> None:
    """Height, blocks, root, balances, timers, their order and their stories survive; the rest of the life is equal."""
    with LocalChain(preset="minimal") as never_closed:
        actor = deploy_puppet(never_closed)
        schedule(actor, 30)
        never_closed.mine(40)
        expected = never_closed.state_root, never_closed.block().hash
    with LocalChain(preset="minimal", data_dir=tmp_path / "chain") as chain:
        actor = deploy_puppet(chain)
        timer_id = schedule(actor, 30)
        chain.mine(5)
        blocks, timers, story = list(chain.chain.blocks), chain.timers(), str(chain.explain(timer_id))
    with LocalChain(preset="minimal", data_dir=tmp_path / "chain") as chain:
        assert list(chain.chain.blocks) == blocks
        assert (chain.timers(), str(chain.explain(timer_id))) == (timers, story)
        again = chain.actor(actor.address)
        assert again.receipt == actor.receipt
        chain.check_invariants()
        chain.mine(35)
        assert fires(again) == 1
        assert (chain.state_root, chain.block().hash) == expected


def test_deployment_gives_another_actor_when_the_same_source_comes_after_a_restart(tmp_path: Path) -> None:
    """The address depends on the sender's nonce, which the state holds."""
    addresses = set()
    for _ in range(2):
        with LocalChain(data_dir=tmp_path / "chain") as chain:
            addresses.add(deploy_puppet(chain).address)
    assert len(addresses) == 2


def test_opening_is_refused_when_the_directory_holds_a_chain_of_another_genesis(tmp_path: Path) -> None:
    """The message names the field, what is there and what was asked for."""
    LocalChain(data_dir=tmp_path / "chain").close()
    with pytest.raises(ConfigurationError, match="started with preset = 'mainnet', not 'minimal'"):
        LocalChain(preset="minimal", data_dir=tmp_path / "chain")
    # It is not left open.
    LocalChain(data_dir=tmp_path / "chain").close()


@pytest.mark.spec("F-83")
@pytest.mark.parametrize("on_disk", [False, True])
def test_reorganization_drops_blocks_and_others_take_their_place(tmp_path: Path, *, on_disk: bool) -> None:
    """Fires, fees and timers of the dropped blocks are as if they had never been."""
    with LocalChain(preset="minimal", data_dir=tmp_path / "chain" if on_disk else None) as chain:
        actor = deploy_puppet(chain)
        timer_id = schedule(actor, chain.height + 3)
        before = chain.state_root, chain.burned, chain.timers(), chain.balance(actor)
        mark = chain.height
        chain.mine(6)
        dropped = chain.block().hash
        assert fires(actor) == 1
        chain.reorg(depth=chain.height - mark)
        assert (chain.height, fires(actor)) == (mark, 0)
        assert (chain.state_root, chain.burned, chain.timers(), chain.balance(actor)) == before
        assert chain.explain(timer_id).state == "live"
        chain.transfer(chain.accounts[1], CBY, sender=chain.accounts[0], check=True)
        chain.mine(5)
        assert fires(actor) == 1
        assert chain.block().hash != dropped
        chain.check_invariants()


@pytest.mark.parametrize("depth", [0, -1, 4])
def test_reorganization_is_refused_when_there_are_not_so_many_blocks(depth: int) -> None:
    """Genesis stays, and dropping nothing is a mistake."""
    with LocalChain() as chain:
        chain.mine(3)
        with pytest.raises(Rejection, match=f"cannot drop {depth} blocks") as caught:
            chain.reorg(depth)
        assert caught.value.reason is RejectionReason.INVALID_DATA
        assert chain.height == 3


@pytest.mark.parametrize("on_disk", [False, True])
def test_height_stays_when_every_transaction_of_a_block_is_refused(tmp_path: Path, *, on_disk: bool) -> None:
    """A refusal changes nothing, on disk as in memory, and the chain goes on from there."""
    with LocalChain(data_dir=tmp_path / "chain" if on_disk else None) as chain:
        actor = chain.deploy(PUPPET, sender=chain.accounts[0], value=CBY)
        before = chain.height, chain.state_root
        refused = chain.transfer(actor, CBY, sender=chain.accounts[0], max_fee_per_cycle=0)
        assert refused.status == "refused"
        assert (chain.height, chain.state_root) == before
        chain.mine(2)
        assert chain.transfer(actor, CBY, sender=chain.accounts[0]).ok
        chain.check_invariants()


@pytest.mark.spec("Q-09")
def test_proof_verifies_against_the_root_of_a_block_when_the_chain_is_gone() -> None:
    """A timer, its absence afterwards, the timers of a range, and an account."""
    with LocalChain() as chain:
        actor = deploy_puppet(chain)
        height = chain.height + 5
        timer_id = schedule(actor, height)
        root, proof = chain.state_root, chain.prove(timer_id)
        every = chain.prove(TimersSubject(height - 1, height + 1))
        chain.mine(10)
        later, gone = chain.state_root, chain.prove(timer_id, height=height)
        with pytest.raises(Rejection, match="give the height it was due at"):
            chain.prove(timer_id)
        account = chain.prove(AccountSubject(actor.address))
    (timer,) = proof.verify(root).records
    assert timer.timer_id == timer_id
    assert [each.timer_id for each in every.verify(root).records] == [timer_id]
    assert not gone.verify(later).is_present
    assert account.verify(later).is_present
