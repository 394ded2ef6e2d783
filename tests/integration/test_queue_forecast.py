"""Forecasts of the live queue: what they say comes true if nothing is sent, and they change nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.development import MECHANISMS
from tests.integration.simulations import CBY, arm, busy
from trailboss.chain import Chain
from trailboss.model.blocks import Origin
from trailboss.model.events import TIMER_ENDINGS
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32
from trailboss.rehearsal.forecast import ForecastTimer, forecast_words
from trailboss.testing import LocalChain
from trailboss.views.records import block_events

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.parties.ChainWarning")
NARROW = {"timers.lane_cycles_per_block": 600_000, "timers.max_cycles_per_fire": 200_000}


def narrow(mechanism: str) -> LocalChain:
    """Return a chain on which few timers fire in one block."""
    params = NARROW | {"auction.budget_cycles": 400_000} if mechanism == "auction" else NARROW
    if mechanism == "lane":
        params = params | {"lane.max_cycles_per_fire": 200_000}
    if mechanism == "globalbox":
        params = params | {"globalbox.max_fires_per_block": 4, "globalbox.max_fires_per_target": 4}
    return LocalChain(mechanism=mechanism, params=params)


def what_happens(chain: Chain, blocks: int) -> list[tuple[object, ...]]:
    """Return what happens to timers in the next blocks, in order: id, block, how, and what it cost."""
    found: list[tuple[object, ...]] = []
    for block in chain.advance_to(chain.height + blocks):
        for receipt in block.receipts:
            if receipt.origin is Origin.TIMER:
                how = "fires" if receipt.error is None else "reverts"
                found.append((Hash32(receipt.timer_id), block.height, how, receipt.fee_paid))
        for event in block_events(block):
            if TIMER_ENDINGS.get(event.name, "fired") != "fired":
                found.append((Hash32(event.timer_id), block.height, TIMER_ENDINGS[event.name], None))
    return found


def ends_of(timers: tuple[ForecastTimer, ...]) -> list[tuple[object, ...]]:
    """Return the same of a forecast."""
    return [(each.timer_id, each.block, each.outcome, each.paid) for each in timers if each.block is not None]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_flood_fires_as_forecast(mechanism: str) -> None:
    """Forty timers of one height, some of which raise, schedule or cancel others, where few fit into a block."""
    chain = narrow(mechanism)
    actor = busy(chain, mechanism)
    due = chain.height + 4
    words = ("hello", "raise/", "spin/", "again/", "cancel/hello3")
    arm(actor, *(f"{words[place % 5]}{place}:{due}:{80_000 + 1_000 * place}" for place in range(40)))
    root, height = chain.state_root, chain.height
    told = chain.forecast(30)
    assert (chain.state_root, chain.height) == (root, height)
    chain.check_invariants()
    chain.advance_to(height + 30)
    happened = [
        (receipt.timer_id, receipt.block_height, "fires" if receipt.ok else "reverts", receipt.fee_paid)
        for receipt in chain.receipts(origin="timer")
    ]
    fires = [each for each in ends_of(told.timers) if each[2] in ("fires", "reverts")]
    assert fires == happened
    assert len(happened) >= 39
    late = [each for each in told.timers if each.block is not None and each.delay]
    assert {each.delay for each in late} >= {1, 2}
    waiting = {each.timer_id for each in told.timers if each.outcome == "waits"}
    assert waiting == {timer.timer_id for timer in chain.timers() if timer.height <= chain.height}
    assert told.later == sum(timer.height > chain.height for timer in chain.timers())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_whatever_waits_ends_as_forecast(mechanism: str, data: st.DataObject) -> None:
    """Any timers, any number of blocks."""
    chain = narrow(mechanism)
    actor = busy(chain, mechanism, value=data.draw(st.sampled_from((5, 50, 1_000)), "value") * CBY)
    word = st.sampled_from(("hello", "raise/", "spin/", "again/", "cancel/again/0", "deep/count/"))
    order = st.tuples(word, st.integers(2, 20), st.integers(20_000, 200_000))
    orders = data.draw(st.lists(order, max_size=20), "orders")
    text = " ".join(f"{word}{at}:{chain.height + ahead}:{gas}" for at, (word, ahead, gas) in enumerate(orders))
    actor.call("arm", text.encode(), sender=chain.accounts[0])
    chain.mine(data.draw(st.integers(1, 10), "blocks before"))
    blocks, root = data.draw(st.integers(1, 30), "blocks"), chain.state_root
    told = chain.forecast(blocks)
    assert (told.from_height, told.last_height, chain.state_root) == (chain.height, chain.height + blocks, root)
    assert sorted(ends_of(told.timers), key=repr) == sorted(what_happens(chain.chain, blocks), key=repr)


def test_forecast_says_who_pays_and_why() -> None:
    """A payer that runs dry, a timer that expires, one that waits for room, one that reverts, with the line."""
    chain = narrow("fifo")
    actor = busy(chain, "fifo", value=60 * CBY)
    due = chain.height + 3
    arm(actor, f"raise/:{due}:100000", *(f"hello{place}:{due}:200000" for place in range(6)))
    told = chain.forecast(2)
    reverted = next(each for each in told.timers if each.error is not None)
    assert forecast_words(reverted).endswith("E1210 pvm_error: ValueError: as asked, line 24, in do")
    assert (reverted.fee_payer, reverted.scheduled_at, reverted.delay) == (actor.address, None, 0)
    waits = [each for each in told.timers if each.outcome == "waits"]
    assert len(waits) == 4
    assert forecast_words(waits[0]).startswith("still waits: is due at height 5 as things stand")
    longer = chain.forecast(10)
    late = next(each for each in longer.timers if each.delay == 1)
    assert "1 block late (did not fit the rest of the lane), at 10,000 base units a cycle" in forecast_words(late)
    chain.set_balance(actor, 5 * CBY)
    poor = chain.forecast(10)
    assert {each.outcome for each in poor.timers} == {"unfunded"}
    assert forecast_words(poor.timers[0]).startswith("is removed unfunded in block 4: its payer lacks ")


def test_forecast_follows_what_fires_schedule() -> None:
    """A chain of timers, each of which the fire before it has scheduled."""
    chain = LocalChain()
    actor = busy(chain, "fifo")
    arm(actor, f"again/:{chain.height + 2}:100000", f"far:{chain.height + 50}:100000")
    told = chain.forecast(8)
    assert [(each.block, each.scheduled_at) for each in told.timers] == [(3, None), (6, 3), (9, 6)]
    assert (told.later, told.has_more, told.last_height) == (2, False, 10)
    assert len(told.of(told.timers[0].timer_id)) == 1


@pytest.mark.parametrize("blocks", [0, -1, 10_001])
def test_forecast_of_other_numbers_of_blocks_is_refused(blocks: int) -> None:
    """One block at least, and no more than a few minutes of work."""
    with pytest.raises(Rejection, match=rf"a forecast of {blocks} blocks: it can be of 1\.\.=10000"):
        LocalChain().forecast(blocks)


@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
@pytest.mark.parametrize("ahead", [3, 4, 6, 9])
def test_quoted_timer_runs_where_the_quote_expects_it(mechanism: str, ahead: int) -> None:
    """Behind a flood, at what its cycles cost there; the past alone knows nothing of that flood."""
    chain = narrow(mechanism)
    crowd, lone = busy(chain, mechanism), busy(chain, mechanism)
    due = chain.height + 4
    arm(crowd, *(f"hello{place}:{due}:150000" for place in range(12)))
    height = chain.height + ahead
    expected = chain.quote(height, 150_000, actor=lone).expected
    assert expected is not None
    [timer_id] = arm(lone, f"mine:{height}:150000")
    chain.mine(20)
    [fire] = [receipt for receipt in chain.receipts(origin="timer") if receipt.timer_id == timer_id]
    assert fire.block_height == expected.block
    cells = chain.chain.decisions(fire.block_height)
    assert cells is not None
    assert fire.fee_paid == fire.cycles_used * expected.per_cycle + fire.cells_used * cells.cell_basefee
    assert (expected.why is None) == (expected.block == height)


def test_quote_beyond_the_forecast_expects_nothing() -> None:
    """A hundred blocks are looked at, and the past stands for the rest."""
    chain = LocalChain()
    assert chain.quote(chain.height + 100, 50_000).expected is not None
    assert chain.quote(chain.height + 101, 50_000).expected is None


def test_explanation_has_the_forecast_where_it_says_more_than_the_outlook() -> None:
    """A timer that is due now and has no room; none for one that fires at its height."""
    chain = narrow("fifo")
    actor = busy(chain, "fifo")
    due = chain.height + 3
    first, *_, last = arm(actor, *(f"hello{place}:{due}:200000" for place in range(6)))
    assert chain.explain(first).forecast == ""
    life = chain.explain(last)
    assert life.outlook.startswith(f"fires at height {due} as things stand")
    words = f"fires in block {due + 1}, 1 block late (did not fit the rest of the lane), at 10,000 base units a cycle"
    assert life.forecast.startswith(words)
    assert life.forecast.endswith("if nothing is sent until then")
    assert str(life).endswith(f"forecast: {life.forecast}")
    chain.mine(10)
    assert chain.explain(last).forecast == ""
