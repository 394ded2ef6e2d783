"""A quote agrees with what then really happens, block by block."""

from fractions import Fraction

import pytest

from trailboss.forecast import quote as module
from trailboss.forecast.quote import Quote
from trailboss.model.blocks import Origin
from trailboss.model.timers import DeferralReason
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.testing import ActorHandle, LocalChain, SetGovParam

CBY = 10**9
FRAME = 10_000
"""Least gas limit in the lane."""
SMALL = {"timers.max_cycles_per_fire": 20_000, "timers.lane_cycles_per_block": 40_000, "lane.elasticity": 1}
"""A lane with room for two gas limits of 20,000, whose price rests at the floor even when it is full."""

CROWD = """
import pvm_host

def start(payload):
    for each in payload.split(b" "):
        schedule(each)

def handle_timer(payload):
    every, turns = payload.split(b",")[:2]
    for _ in range(int(turns)):
        pass
    schedule(payload)

def schedule(payload):
    every, _, gas, tip = payload.split(b",")
    fees = {} if tip == b"-" else {"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": int(tip)}
    pvm_host.schedule_timer(pvm_host.block_height() + int(every), payload, gas_limit=int(gas), **fees)
"""
"""Loops that go on for ever, each given as blocks between fires, turns of work, gas limit, and tip or ``-``."""

PROBE = """
import pvm_host

def probe(payload):
    height, gas, tip = payload.split(b",")
    fees = {} if tip == b"-" else {"max_priority_fee_per_cycle": int(tip)}
    pvm_host.schedule_timer(int(height), b"", gas_limit=int(gas), **fees)

def price(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())

def handle_timer(payload):
    pass
"""


def crowded(mechanism: str, loops: str, blocks: int, **params: int) -> tuple[LocalChain, ActorHandle]:
    """Return a chain on which loops have gone on for so many blocks, and an actor that has not fired."""
    chain = LocalChain(mechanism=mechanism, params={**SMALL, **params})
    crowd = chain.deploy(CROWD, sender=chain.accounts[0], value=100_000 * CBY)
    probe = chain.deploy(PROBE, sender=chain.accounts[1], value=1_000 * CBY)
    chain.mine(20)  # the lane basefee comes to rest
    crowd.call("start", loops.encode(), sender=chain.accounts[0], check=True)
    chain.mine(blocks)
    return chain, probe


def schedule(probe: ActorHandle, height: int, gas_limit: int, tip: int | None) -> None:
    """Schedule a timer, in a block of its own."""
    terms = f"{height},{gas_limit},{'-' if tip is None else tip}"
    probe.call("probe", terms.encode(), sender=probe.chain.accounts[1], check=True)


def fired_at(probe: ActorHandle, height: int, gas_limit: int, tip: int | None, blocks: int) -> int | None:
    """Schedule a timer, build blocks, and return in which of them it has fired."""
    chain = probe.chain
    schedule(probe, height, gas_limit, tip)
    chain.advance_to(height + blocks - 1)
    fires = [each.block_height for each in chain.receipts(height, origin="timer") if each.actor == probe.address]
    return fires[0] if fires else None


def counts(quote: Quote) -> list[tuple[int, int, int]]:
    """Return the chances as plain numbers."""
    return [(each.within, each.runs, each.of) for each in quote.chances]


@pytest.mark.spec("L-06")
@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
def test_quote_equals_the_pre_charge_when_the_timer_fires_at_unchanged_prices(mechanism: str) -> None:
    """On a quiet chain it would have run in every block, and does; what was quoted is what is reserved."""
    chain, probe = crowded(mechanism, "9000,1,15000,-", 110)
    quote = chain.quote(chain.height + 30, 15_000, actor=probe)
    assert counts(quote) == [(1, 100, 100), (5, 96, 96), (10, 91, 91), (50, 51, 51)]
    assert quote.chances[0].share == Fraction(1)
    assert (quote.first_block, quote.last_block, quote.not_run) == (chain.height - 99, chain.height, {})
    lane = 0 if mechanism == "fifo" else 1_000
    assert (quote.mechanism, quote.lane_basefee, quote.tip, quote.per_cycle) == (mechanism, lane, 0, 10_000 + lane)
    assert quote.max_cost == 15_000 * (10_000 + lane) + 550_000 * 10_000

    assert fired_at(probe, quote.height, 15_000, None, 1) == quote.height
    [receipt] = [each for each in chain.block(quote.height).receipts if each.origin is Origin.TIMER]
    assert receipt.reserved == quote.max_cost


@pytest.mark.spec("L-19")
@pytest.mark.parametrize("alpha", [1, 8])
def test_default_cap_covers_five_full_lanes_when_the_price_starts_at_the_floor(alpha: int) -> None:
    """1,000 → 1,125 → 1,265 → 1,423 → 1,600 → 1,800 ≤ 2,000 < 2,025, under both readings of the rule."""
    with LocalChain(mechanism="lane", params={"lane.alpha": alpha}) as chain:
        chain.mine(30)
        quote = chain.quote(chain.height + 2, 250_000)
        assert (quote.lane_basefee, quote.max_fee, quote.full_blocks_covered) == (1_000, 2_000, 5)
        assert quote.max_cost_at_cap == 250_000 * (10_000 + 2_000) + 550_000 * 10_000
        assert quote.weight == 2 * 10**9


def test_cap_is_covered_without_end_when_the_price_cannot_rise() -> None:
    """Between a floor and a ceiling of 1,000 a full lane changes nothing."""
    fixed = {"lane.basefee_max": 1_000, "lane.basefee_min": 1_000}
    with LocalChain(mechanism="lane", params=fixed) as chain:
        assert chain.quote(5, FRAME).full_blocks_covered == module.FULL_BLOCKS_MAX


@pytest.mark.spec("L-02")
def test_tip_decides_when_the_lane_is_congested() -> None:
    """Six loops tip 400 at W = 1: a newcomer of W = 2 runs above a tip of 200 always, at it and below it never."""
    chain, probe = crowded("lane", " ".join(["1,100,20000,400"] * 6), 110)
    height = chain.height + 3
    for tip, runs in ((0, 0), (199, 0), (200, 0), (201, 100), (1_000, 100)):
        quote = chain.quote(height, 20_000, tip, actor=probe)
        assert (quote.tip, quote.weight, counts(quote)[0]) == (tip, 2 * 10**9, (1, runs, 100)), tip
        assert quote.not_run == ({} if runs else {DeferralReason.OUTRANKED: 100})
    assert quote.waiting.timers >= 3
    assert quote.ahead.timers == 6
    assert (quote.ahead.gas, quote.ahead.full_blocks) == (120_000, 3)

    mark = chain.snapshot()
    for tip, expected in ((199, None), (201, height)):
        assert fired_at(probe, height, 20_000, tip, 20) == expected
        chain.revert(mark)


@pytest.mark.spec("L-04")
def test_gas_limit_decides_when_the_lane_has_a_rest() -> None:
    """What is left behind the cut-off runs a smaller gas limit without any tip, and not one cycle more."""
    chain, probe = crowded("lane", " ".join(["1,100,20000,400"] * 6), 110)
    record = chain.decisions(chain.height)
    assert record is not None
    rest = record.lane_cycles_max - record.lane_cycles_used
    assert 0 < rest < 20_000
    height = chain.height + 3
    for gas_limit, runs in ((rest, 100), (rest + 1, 0)):
        quote = chain.quote(height, gas_limit, 0, actor=probe)
        assert counts(quote)[0] == (1, runs, 100)
    mark = chain.snapshot()
    assert fired_at(probe, height, rest, 0, 1) == height
    chain.revert(mark)
    assert fired_at(probe, height, rest + 1, 0, 20) is None


def test_chance_within_two_blocks_is_certain_when_every_other_block_is_full() -> None:
    """Under FIFO two gas limits fill the lane in every other block: 50 of 100 at once, 99 of 99 within two."""
    chain, probe = crowded("fifo", " ".join(["2,100,20000,-"] * 2), 110)
    quote = chain.quote(chain.height + 4, 15_000, actor=probe, within=(1, 2, 101))
    assert counts(quote) == [(1, 50, 100), (2, 99, 99), (101, 0, 0)]
    assert quote.chances[0].share == Fraction(1, 2)
    assert quote.chances[2].share is None
    assert quote.not_run == {DeferralReason.LANE_FULL: 50}
    assert (quote.max_fee, quote.max_cost_at_cap, quote.full_blocks_covered, quote.weight) == (None, None, None, 0)


def verdict(probe: ActorHandle, height: int, gas_limit: int, tip: int | None) -> int:
    """Return what a quote says of one block, with a timer scheduled before it that is due elsewhere."""
    schedule(probe, height + 500, gas_limit, tip)
    probe.chain.advance_to(height)
    return probe.chain.quote(height + 5, gas_limit, tip, actor=probe, within=(1,), blocks=1).chances[0].runs


LOOPS = "1,100,20000,400 2,300,18000,700 3,10,14000,100 3,200,20000,900 5,600,20000,650 1,5,13000,50 4,300,16000,800"


@pytest.mark.spec("L-02", "L-04")
def test_verdict_of_each_block_equals_what_the_same_timer_meets_in_it_when_the_lane_is_congested() -> None:
    """Each of 12 blocks is built again with the timer due in it: it fires just where the quote says that it would."""
    chain, probe = crowded("lane", LOOPS, 15)
    mark = chain.snapshot()
    seen = []
    for gas_limit, tip in ((20_000, 150), (15_000, 230), (12_000, 0), (18_000, 390)):
        for height in range(mark.height + 4, mark.height + 16):
            says = verdict(probe, height, gas_limit, tip)
            chain.revert(mark)
            did_run = fired_at(probe, height, gas_limit, tip, 1) == height
            chain.revert(mark)
            assert says == did_run, (height, gas_limit, tip)
            seen.append(did_run)
    assert 10 < sum(seen) < len(seen) - 10


def activating(height: int, clamps: int = 0) -> LocalChain:
    """Return a FIFO chain whose lane begins at a height."""
    params = {"lane.activation_height": height, "lane.clamps_gas_limit": clamps}
    return LocalChain(params=params)


@pytest.mark.spec("L-05", "L-30")
def test_quote_knows_of_the_activation_when_it_lies_before_the_due_height() -> None:
    """Before it FIFO and 550,000 cycles; from it on the lane's price and its cap, unless governance clamps."""
    with activating(50) as chain:
        chain.mine(20)
        before, after = chain.quote(49, 550_000), chain.quote(50, 250_000)
        assert (before.mechanism, before.lane_basefee, before.charged_cycles) == ("fifo", 0, 550_000)
        assert [note.split(":")[0] for note in before.notes] == ["the timer lane begins at height 50"]
        assert (after.mechanism, after.lane_basefee, after.max_fee, after.tip) == ("lane", 10_000, None, 0)
        assert after.max_cost == 250_000 * 20_000 + 550_000 * 10_000
        assert counts(after)[0] == (1, 20, 20)
        with pytest.raises(Rejection, match="250000: the timer lane, active from height 50"):
            chain.quote(50, 250_001)
        chain.mine(29)
        assert chain.quote(60, FRAME).chances[0].of == 0
        chain.mine(1)
        assert counts(chain.quote(60, FRAME))[0] == (1, 1, 1)
    with activating(50, clamps=1) as chain:
        clamped = chain.quote(50, 550_000)
        assert (clamped.gas_limit, clamped.charged_cycles) == (550_000, 250_000)
        assert clamped.max_cost == 250_000 * 20_000 + 550_000 * 10_000


@pytest.mark.parametrize(
    ("arguments", "options", "what"),
    [
        ((31, FRAME), {}, "height is 31, it must be above 31"),
        ((0, FRAME), {}, "height is 0, it must be above 31"),
        ((31 + 2_592_001, FRAME), {}, "or the timer expires before it is due"),
        ((2**200, FRAME), {}, "height is an integer of 201 bits"),
        ((40, 0), {}, r"gas_limit is 0, it must be within 10000\.\.=250000"),
        ((40, FRAME - 1), {}, r"gas_limit is 9999, it must be within 10000\.\.=250000"),
        ((40, 250_001), {}, r"gas_limit is 250001, it must be within 10000\.\.=250000"),
        ((40, FRAME, -1), {}, "tip is -1"),
        ((40, FRAME, 2**127), {}, "tip is an integer of 128 bits"),
        ((40, FRAME), {"within": (5, 0)}, "within is 0, it must be at least 1 block"),
        ((40, FRAME), {"blocks": 0}, r"blocks is 0, outside 1\.\.=10000"),
        ((40, FRAME), {"blocks": 10_001}, r"blocks is 10001, outside 1\.\.=10000"),
    ],
)
def test_nonsense_is_refused_when_a_quote_is_asked_for(
    arguments: tuple[int, ...], options: dict[str, object], what: str
) -> None:
    """Naming value and rule."""
    with LocalChain(mechanism="lane") as chain:
        chain.mine(30)
        with pytest.raises(Rejection, match=what) as caught:
            chain.quote(*arguments, **options)
        assert caught.value.reason is RejectionReason.INVALID_INPUT


def test_gas_limit_of_one_cycle_is_quoted_until_the_lane_is_active() -> None:
    """The bounds are those of the block that would schedule the timer, also for a height behind the activation."""
    with activating(50) as chain:
        assert [chain.quote(height, 1).charged_cycles for height in (49, 60)] == [1, 1]
        with pytest.raises(Rejection, match=r"gas_limit is 0, it must be within 1\.\.=550000"):
            chain.quote(60, 0)
        chain.advance_to(48)
        assert chain.quote(60, 1).mechanism == "lane"
        chain.advance_to(49)
        with pytest.raises(Rejection, match=r"gas_limit is 1, it must be within 10000\.\.=250000"):
            chain.quote(60, 1)


def test_tip_is_refused_when_there_is_no_lane_to_pay_it_in() -> None:
    """As scheduling refuses it."""
    with activating(50) as chain, pytest.raises(Rejection, match="none while the timer lane is not active"):
        chain.quote(60, FRAME, 5)


def test_actor_is_refused_when_nobody_deployed_it() -> None:
    """An account is no actor either."""
    with LocalChain(mechanism="lane") as chain:
        for address in (bytes(20), chain.accounts[0]):
            with pytest.raises(Rejection) as caught:
                chain.quote(5, FRAME, actor=address)
            assert caught.value.reason is RejectionReason.ACTOR_NOT_FOUND


@pytest.mark.spec("L-16")
def test_tip_is_held_to_the_room_under_the_cap_when_it_is_above() -> None:
    """As scheduling would store it; the note has the cap that it takes."""
    chain, probe = crowded("lane", "9000,1,15000,-", 1)
    quote = chain.quote(chain.height + 3, 15_000, 1_500, actor=probe)
    assert (quote.tip, quote.max_fee) == (1_000, 2_000)
    assert "at least 2,500" in quote.notes[0]
    schedule(probe, quote.height, 15_000, 1_500)
    [timer] = chain.timers(actor=probe)
    assert (timer.max_fee_per_cycle, timer.max_priority_fee_per_cycle) == (quote.max_fee, quote.tip)


def test_note_names_the_agent_when_the_actor_has_one() -> None:
    """Unless a tip is stated: then the fees are frozen and nobody is asked."""
    chain, probe = crowded("lane", "9000,1,15000,-", 1)
    probe.call("price", sender=chain.accounts[1], check=True)
    assert str(probe.address) in chain.quote(chain.height + 3, FRAME, actor=probe).notes[0]
    assert chain.quote(chain.height + 3, FRAME, 5, actor=probe).notes == ()


def test_backlog_tells_what_waits_when_some_of_it_never_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gas limits above the lane's cap are counted apart; beyond the bound timers are counted and not read."""
    chain = activating(60)
    crowd = chain.deploy(CROWD, sender=chain.accounts[0], value=1_000 * CBY)
    crowd.call("start", b"80,1,550000,- 80,1,200000,- 90,1,50000,-", sender=chain.accounts[0], check=True)
    start = chain.height
    chain.advance_to(70)
    ahead = chain.quote(start + 85, FRAME).ahead
    assert (ahead.timers, ahead.counted, ahead.over_cap, ahead.gas, ahead.full_blocks) == (2, 2, 1, 200_000, 1)
    chain.advance_to(start + 85)
    quote = chain.quote(start + 90, FRAME)
    assert (quote.waiting.timers, quote.waiting.over_cap, quote.waiting.gas) == (1, 1, 0)
    assert (quote.ahead.timers, quote.ahead.over_cap, quote.ahead.gas) == (2, 1, 50_000)
    monkeypatch.setattr(module, "QUEUED_MAX", 1)
    bounded = chain.quote(start + 90, FRAME).ahead
    assert (bounded.timers, bounded.counted, bounded.over_cap, bounded.gas) == (2, 1, 1, 0)


@pytest.mark.spec("L-24")
def test_weight_of_the_actor_counts_when_it_has_fired() -> None:
    """The crowd is at its own median: W = 1, and the tip that a newcomer runs with is outranked."""
    chain, probe = crowded("lane", " ".join(["1,100,20000,400"] * 6), 60)
    crowd = chain.timers()[0].actor
    mine, theirs = (chain.quote(chain.height + 3, 20_000, 300, actor=actor, blocks=50) for actor in (probe, crowd))
    assert (mine.weight, mine.chances[0].runs) == (2 * 10**9, 50)
    assert (theirs.weight, theirs.chances[0].runs) == (10**9, 0)


def test_governed_activation_is_seen_when_it_is_voted() -> None:
    """The height is a governed value, read from the state."""
    with LocalChain() as chain:
        value = (40).to_bytes(8, "big")
        chain.system(SetGovParam(b"system:cip1:activation_height", value), check=True)
        assert chain.quote(39, FRAME).mechanism == "fifo"
        assert chain.quote(40, FRAME).mechanism == "lane"
