"""What a local chain lets tests alone do: how they ask for it, and what they get."""

from pathlib import Path

import pytest

from trailboss.model.transactions import MoveTimer, SetBalance, Transfer
from trailboss.primitives.errors import ConfigurationError
from trailboss.testing import ActorHandle, LocalChain, PendingReceipt, RevertedError

CBY = 10**9
IDLE = "def go(payload):\n    pass\n"


@pytest.fixture
def actor(chain: LocalChain) -> ActorHandle:
    """Return an actor with a little money."""
    return chain.deploy(IDLE, sender=chain.accounts[0], value=5)


def test_interferences_are_gathered_when_a_block_is_open(chain: LocalChain, actor: ActorHandle) -> None:
    """One block for all of them; a receipt can be read when it is built, and what failed raises then."""
    timer = chain.schedule(100)
    height = chain.height
    with chain.one_block():
        receipts = [chain.set_balance(actor, 7), chain.hold(timer.timer_id, until=50), chain.force(timer.timer_id)]
        sent = chain.impersonate(actor, Transfer(actor.address, 0), cycles_limit=10_000, cells_limit=500)
    assert isinstance(receipts[0], PendingReceipt)
    assert [receipt.status for receipt in receipts] == ["ok", "ok", "ok"]
    assert (sent.status, chain.height) == ("refused", height + 1)
    assert [event.timer_id for event in chain.events("timer.fired")] == [timer.timer_id]
    with pytest.raises(RevertedError, match="sets its own balance"), chain.one_block():
        chain.set_balance(chain.deployer, 1)


def test_interferences_are_transactions_of_the_deployer(chain: LocalChain) -> None:
    """The chain records them as such, signed."""
    timer = chain.schedule(100)
    chain.set_balance(bytes(19) + b"\x77", 1)
    chain.hold(timer.timer_id, until=80)
    assert [
        (block.transactions[0].sender, block.transactions[0].instruction) for block in map(chain.block, (2, 3))
    ] == [
        (chain.deployer.address, SetBalance(bytes(19) + b"\x77", 1)),  # type: ignore[arg-type]
        (chain.deployer.address, MoveTimer(timer.timer_id, 80)),
    ]
    assert all(any(chain.block(height).transactions[0].signature) for height in (2, 3))


def test_impersonation_returns_the_receipt_and_raises_only_with_check(chain: LocalChain, actor: ActorHandle) -> None:
    """As `send` does; options are those of `send`, and others are none."""
    assert chain.impersonate(chain.accounts[0], Transfer(actor.address, 1)).ok
    assert chain.impersonate(chain.accounts[0], Transfer(actor.address, 10**18)).status == "refused"
    with pytest.raises(RevertedError, match="insufficient_balance"):
        chain.impersonate(chain.accounts[0], Transfer(actor.address, 10**18), check=True)
    with pytest.raises(TypeError, match="nexpected keyword argument 'colour'"):
        chain.impersonate(chain.accounts[0], Transfer(actor.address, 1), colour=1)


@pytest.mark.trailboss(accounts=25)
def test_chain_has_as_many_accounts_as_asked_for(chain: LocalChain) -> None:
    """All different and funded, the first ten those of every other chain."""
    assert len({account.address for account in chain.accounts}) == len(chain.accounts) == 25
    assert {chain.balance(account) for account in chain.accounts} == {1_000_000 * CBY}
    with LocalChain() as other:
        assert other.accounts == chain.accounts[:10]
    assert chain.transfer(chain.accounts[0], 1, sender=chain.accounts[24]).ok


@pytest.mark.parametrize("accounts", [0, 1_001, 2.5])
def test_chain_is_refused_when_it_cannot_have_so_many_accounts(accounts: int) -> None:
    """One to a thousand."""
    with pytest.raises(ConfigurationError, match=rf"accounts = {accounts} must be an integer within 1\.\.=1000"):
        LocalChain(accounts=accounts)


def test_chain_in_a_directory_is_refused_when_it_has_other_accounts(tmp_path: Path) -> None:
    """It goes on with those that it started with."""
    LocalChain(data_dir=tmp_path / "chain", accounts=3).close()
    with pytest.raises(ConfigurationError, match="holds a chain that started with accounts = "):
        LocalChain(data_dir=tmp_path / "chain")
    with LocalChain(data_dir=tmp_path / "chain", accounts=3) as chain:
        assert len(chain.accounts) == 3
