"""What a decision record says of a timer that was not there."""

from fractions import Fraction

import msgspec
import pytest
from msgspec.structs import replace

from trailboss.model.blocks import Block
from trailboss.model.configs import JoiningGap
from trailboss.model.decisions import DecisionRecord, ExaminedTimer, FeeSource, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.units import Price
from trailboss.testing import LocalChain
from trailboss.views.mechanism.registry import views_of
from trailboss.views.recent_blocks import Offer, RecentBlock, chance_within

OUTRANKED, PRICED_OUT, LANE_FULL = DeferralReason.OUTRANKED, DeferralReason.PRICED_OUT, DeferralReason.LANE_FULL
GAS = 300
LANE = 1_000


def some_blocks() -> list[Block]:
    """Return the blocks of a chain on which nothing was due; in them the lane basefee moved."""
    with LocalChain(mechanism="lane") as chain:
        chain.mine(7)
        return list(chain.chain.blocks)


BLOCK = some_blocks()[7]
SOME_RECORD = BLOCK.decisions


def examined(rank: int, tip: int, cycles_used: int, outcome: str = "fire") -> ExaminedTimer:
    """Return a timer of W = 1."""
    return ExaminedTimer(
        timer_id=bytes(32), actor=bytes(20), rank=rank, outcome=outcome, reason="", gas_limit=GAS,
        cycles_used=cycles_used, tip=Price(tip), weight=1, max_fee=Price(0), fee_source=FeeSource.FROZEN,
    )  # fmt: skip


THREE = (examined(1, 90, 250), examined(2, 60, 250), examined(3, 30, 250))
"""Three fires, which leave 250 cycles of 1,000."""


def record(*timers: ExaminedTimer, **others: object) -> DecisionRecord:
    """Return a record of a lane of 1,000 cycles that names these timers."""
    used = sum(timer.cycles_used for timer in timers)
    facts = {"lane_cycles_max": LANE, "lane_cycles_used": used, "examined": timers, "examined_count": len(timers)}
    assert SOME_RECORD is not None
    return msgspec.structs.replace(SOME_RECORD, **{"stopped": Stop.LANE_FULL, **facts, **others})


def verdict(
    decisions: DecisionRecord | None, tip: int = 0, gas_limit: int = GAS, *, lane: int | None = 100, max_fee: int = 200
) -> DeferralReason | None:
    """Return why a timer of W = 1 would not have run in a block with that record."""
    recent = RecentBlock(replace(BLOCK, decisions=decisions), 1, lane, 1, {})
    quoting = views_of("fifo" if lane is None else "lane").quoting
    assert quoting is not None
    return quoting.why_not(recent, Offer(gas_limit, max_fee, tip, 1))


@pytest.mark.spec("L-04")
@pytest.mark.parametrize(
    ("tip", "most"), [(0, 250), (30, 250), (31, 500), (60, 500), (61, 750), (90, 750), (91, 1_000), (100, 1_000)]
)
def test_place_in_the_order_decides_what_is_left_when_others_fire(tip: int, most: int) -> None:
    """Those that tip as much or more come before it; what these used is gone, and nothing else."""
    assert verdict(record(*THREE), tip, most) is None
    assert verdict(record(*THREE), tip, most + 1) is OUTRANKED


def test_cap_prices_out_and_lowers_the_tip_when_the_lane_basefee_is_near_it() -> None:
    """Below the basefee it is out whatever it tips; 40 above it a tip of 100 is one of 40."""
    assert verdict(record(*THREE), 100, max_fee=99) is PRICED_OUT
    assert verdict(None, 100, max_fee=99) is PRICED_OUT
    assert verdict(record(*THREE), 100, 501, max_fee=140) is OUTRANKED
    assert verdict(record(*THREE), 100, 500, max_fee=140) is None


def test_timer_that_does_not_fire_takes_nothing_when_it_ranks_higher() -> None:
    """Unfunded, passed over, expired: none of them uses the lane."""
    others = (examined(0, 0, 0, "expire"), examined(1, 95, 0, "unfund"), examined(2, 92, 0, "defer"), *THREE)
    assert verdict(record(*others), 91, LANE) is None


def test_place_behind_the_last_fire_runs_nothing_when_the_cells_of_the_block_are_spent() -> None:
    """The lane: who comes before a fire would have had its cells. FIFO: the last in the order waits with the others."""
    spent = record(*THREE, stopped=Stop.CELLS_FULL)
    assert verdict(spent, 31, 500) is None
    assert verdict(spent, 30, 1) is OUTRANKED
    waits = msgspec.structs.replace(examined(4, 0, 0, "defer"), reason="cells_full")
    in_order = record(*THREE, waits, stopped=Stop.NONE_LEFT, lane_cycles_max=10**9)
    assert verdict(in_order, lane=None) is DeferralReason.CELLS_FULL


def test_block_has_room_when_it_was_idle() -> None:
    """Under either mechanism."""
    assert verdict(None) is None
    assert verdict(None, lane=None) is None


@pytest.mark.spec("L-03")
def test_newcomer_does_not_join_when_others_of_its_height_have_yet_to() -> None:
    """A flood of another height is nothing to it: those of a block's own height join first. Decision: D-51."""
    here, before = JoiningGap(7, 40, 7), JoiningGap(3, 0, 6)
    assert verdict(record(*THREE, gaps=(before, here)), 100, 1) is DeferralReason.NOT_JOINED
    assert verdict(record(*THREE, gaps=(before,)), 100, 1) is None


def test_place_behind_those_named_counts_all_fires_when_the_record_does_not_name_all() -> None:
    """The unnamed ones rank below every named one: they only matter to who ranks there too."""
    cut = record(*THREE, examined_count=10, lane_cycles_used=900)
    assert verdict(cut, 31, 500) is None
    assert verdict(cut, 30, 100) is None
    assert verdict(cut, 30, 101) is OUTRANKED


def test_place_behind_the_last_examined_runs_nothing_when_a_block_examines_no_more() -> None:
    """Runners-up are named and were not examined: to rank before one of them is not enough."""
    runner_up = examined(4, 10, 0, "defer")
    stopped = record(*THREE, runner_up, runner_up_count=1, examined_count=3, stopped=Stop.EXAMINED_MAX)
    assert verdict(stopped, 31, 1) is None
    assert verdict(stopped, 20, 1) is OUTRANKED
    full = record(*THREE, runner_up, examined_count=3)
    assert verdict(full, 20, 250) is None


def test_reserved_gas_limits_fill_the_lane_when_the_order_is_fifo() -> None:
    """A timer that was reserved and then cancelled has taken its place; one that was deferred has not."""
    timers = (examined(1, 0, 10), examined(2, 0, 0, "cancelled"), examined(3, 0, 0, "defer"))
    assert verdict(record(*timers), gas_limit=LANE - 2 * GAS, lane=None) is None
    assert verdict(record(*timers), gas_limit=LANE - 2 * GAS + 1, lane=None) is LANE_FULL
    assert verdict(record(*timers, examined_count=4), gas_limit=1, lane=None) is LANE_FULL
    assert verdict(record(*timers, stopped=Stop.EXAMINED_MAX), gas_limit=1, lane=None) is LANE_FULL


def test_chance_counts_runs_of_blocks_when_some_say_no() -> None:
    """Of five blocks, no yes no no yes: 2 of 5 at once, 3 of 4 within two, 3 of 3 within three; six are none."""
    verdicts = [OUTRANKED, None, OUTRANKED, PRICED_OUT, None]
    found = [chance_within(verdicts, within) for within in (1, 2, 3, 6)]
    assert [(each.runs, each.of) for each in found] == [(2, 5), (3, 4), (3, 3), (0, 0)]
    assert found[1].share == Fraction(3, 4)
    assert found[3].share is None
