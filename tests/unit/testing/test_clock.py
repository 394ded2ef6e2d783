"""Time that passes up to what is next."""

import pytest

from trailboss.primitives.errors import Rejection, TrailbossError
from trailboss.testing import CBY, LocalChain


def test_mine_to_next_fire_stops_in_the_block_of_the_fire(chain: LocalChain) -> None:
    """However far away it is; the receipts of its fires come back, in order."""
    alice, bob = chain.accounts[:2]
    clock = chain.deploy("examples/actors/clock.py", sender=alice, value=100 * CBY)
    with chain.one_block():
        pass
    far = [chain.schedule(50_000, sender=each) for each in (alice, bob)]
    [tick] = chain.mine_to_next_fire()
    assert (chain.height, tick.actor, tick.ok) == (6, clock.address, True)
    chain.set_balance(clock, 0)
    fires = chain.mine_to_next_fire(within=60_000)
    assert (chain.height, [fire.timer_id for fire in fires]) == (50_000, [timer.timer_id for timer in far])


def test_mine_to_next_fire_awaits_the_actor_that_is_named(chain: LocalChain) -> None:
    """Fires of others pass by; a late fire counts when it comes."""
    alice = chain.accounts[0]
    chain.deploy("examples/actors/clock.py", sender=alice, value=100 * CBY)
    slow = chain.schedule(40, sender=chain.accounts[1])
    [fire] = chain.mine_to_next_fire(actor=slow.actor)
    assert (chain.height, fire.timer_id) == (40, slow.timer_id)


def test_mine_to_next_fire_is_refused_when_nothing_can_fire(chain: LocalChain) -> None:
    """Without a timer no block is built; with one beyond the bound the blocks are."""
    with pytest.raises(TrailbossError, match="no timer is left that could fire: the chain is at height 0"):
        chain.mine_to_next_fire()
    chain.schedule(5_000)
    with pytest.raises(TrailbossError, match="no timer has fired in 100 blocks, up to height 101"):
        chain.mine_to_next_fire(within=100)
    with pytest.raises(Rejection, match="within = 0: at least one block"):
        chain.mine_to_next_fire(within=0)


def test_mine_until_stops_when_the_condition_holds(chain: LocalChain) -> None:
    """It is asked before the first block too, and the error names a condition that never holds."""
    clock = chain.deploy("examples/actors/clock.py", sender=chain.accounts[0], value=100 * CBY)
    assert chain.mine_until(lambda: clock.storage[b"ticks"] == b"\x03") == 16
    assert chain.mine_until(lambda: True) == 16

    def has_stopped() -> bool:
        return not clock.timers()

    with pytest.raises(TrailbossError, match="has_stopped does not hold after 20 blocks, at height 36"):
        chain.mine_until(has_stopped, within=20)
