"""A watchtower sees whose purse runs dry first, and whose timers came to nothing."""

import pytest

from tests.unit.forecast.test_runway import CBY, PULSE
from trailboss.forecast.runway import runway_of
from trailboss.forecast.watchtower import WatchedPayer, burned_by_fires, look
from trailboss.model.configs import MarketKind
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.testing import ActorHandle, LocalChain

STUMBLES = PULSE + "\ndef handle_timer(payload):\n    schedule(payload)\n    raise ValueError(payload)\n"


def deploy(chain: LocalChain, value: int, loop: str, source: str = PULSE) -> ActorHandle:
    """Return an actor whose loop goes on until its purse is dry."""
    actor = chain.deploy(source, sender=chain.accounts[0], value=value)
    actor.call("start", loop.encode(), sender=chain.accounts[0], check=True)
    return actor


def of(chain: LocalChain, actor: ActorHandle) -> WatchedPayer:
    """Return what is seen of an actor."""
    return next(each for each in look(chain.chain, limit=100).payers if each.payer == actor.address)


@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
def test_payers_come_by_runway_and_say_what_the_runway_says(mechanism: str) -> None:
    """The one that runs dry first stands first, with the block in which it really does."""
    chain = LocalChain(mechanism=mechanism)
    # By then the prices rest.
    chain.mine(40)
    actors = [deploy(chain, value * CBY, "2,60000") for value in (30, 20, 300)]
    chain.mine(6)
    watch = look(chain.chain)
    assert [each.payer for each in watch.payers] == [actors[at].address for at in (1, 0, 2)]
    assert (watch.known, watch.height) == (3, chain.height)
    for each in watch.payers:
        reach = runway_of(chain.chain, each.payer).reaches[0]
        assert (each.fires_left, each.dry_at, each.required) == (reach.fires, reach.dry_at, reach.required)
        assert each.balance == chain.balance(each.payer)
        assert each.blocks_left == (each.dry_at or 0) - chain.height
    first = watch.payers[0]
    chain.advance_to(first.dry_at or 0)
    [unfunded] = chain.events(name=TIMER_UNFUNDED)
    assert (unfunded.data["fee_payer"], unfunded.block_height) == (first.payer, first.dry_at)


@pytest.mark.spec("F-51")
def test_failures_are_counted_by_actor_when_timers_come_to_nothing() -> None:
    """Of the recent blocks: ended unfunded, expired, reverted; an actor without a live timer is seen for them."""
    chain = LocalChain()
    dry, stumbling, healthy = (
        deploy(chain, 6 * CBY, "2,100000"),
        deploy(chain, 90 * CBY, "2,60000", STUMBLES),
        deploy(chain, 90 * CBY, "2,60000"),
    )
    chain.mine(10)
    assert not chain.timers(actor=dry)
    seen = of(chain, dry)
    assert (seen.timers, seen.fires_left, seen.unfunded, seen.expired, seen.reverted) == (0, None, 1, 0, 0)
    assert (of(chain, stumbling).reverted, of(chain, healthy).reverted) == (1, 0)
    chain.mine(101)
    assert dry.address not in [each.payer for each in look(chain.chain).payers]


def test_prices_and_burn_are_those_of_the_chain() -> None:
    """Basefees of the next block, and what the fires of the last ones have burned."""
    chain = LocalChain(mechanism="lane")
    deploy(chain, 900 * CBY, "1,60000")
    chain.mine(30)
    watch, rules = look(chain.chain), chain.chain.rules()
    assert (watch.cycle_basefee, watch.cell_basefee) == rules.timer_basefees()
    assert rules.market.kind is MarketKind.LANE
    assert watch.lane_basefee == rules.market.basefee
    receipts = chain.receipts(origin="timer")
    assert watch.burned == sum(each.fee_burned for each in receipts if each.block_height == chain.height) > 0
    assert watch.burned_recently == sum(each.fee_burned for each in receipts)
    assert burned_by_fires(chain.chain.blocks[1]) == 0


def test_payer_that_never_runs_dry_is_told_so() -> None:
    """One timer that it can pay for is no reason to call anybody."""
    chain = LocalChain()
    payer = deploy(chain, 90 * CBY, "50,60000")
    seen = of(chain, payer)
    assert (seen.timers, seen.fires_left, seen.blocks_left, seen.dry_at) == (1, None, None, None)
    assert not seen.is_near(511)
