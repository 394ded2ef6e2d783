"""The decision record: what each block keeps of its choice, and that what is told of a timer agrees with it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.helpers import answers, deploy_puppet, perform, schedule, step
from trailboss.mechanisms.fee_lane import selection
from trailboss.model.decisions import Stop
from trailboss.testing import LocalChain
from trailboss.views.explain.decision_view import decision_view

NARROW = {
    "timers.lane_cycles_per_block": 100_000,
    "timers.max_cycles_per_fire": 100_000,
    "lane.max_cycles_per_fire": 60_000,
    "lane.joined_max": 20,
}
"""A lane for six fires of a puppet, which use some 10,700 cycles each; the seventh finds less than 40,000 left."""
FIRES = 6


def narrow_lane(data_dir: Path | None = None) -> LocalChain:
    """Return a chain with the narrow lane from its first block."""
    return LocalChain(mechanism="lane", params=NARROW, data_dir=data_dir)


def crowd(chain: LocalChain, count: int = 30, room: int = 1_500) -> tuple[int, list[bytes]]:
    """Have one actor schedule timers for one height, each with a higher tip; return height and ids, lowest tip first.

    ``room`` is what their max_fee leaves above the present lane basefee.
    """
    actor = deploy_puppet(chain, sender=chain.accounts[1])
    height, max_fee = chain.height + 6, chain.lane_basefee + room
    steps = (
        step(
            "schedule_timer",
            height,
            b"%d" % number,
            gas_limit=40_000,
            max_fee_per_cycle=max_fee,
            max_priority_fee_per_cycle=10 * number,
        )
        for number in range(1, count + 1)
    )
    return height, answers(perform(actor, *steps))


def test_block_has_no_record_when_it_had_no_choice(chain: LocalChain) -> None:
    """Neither genesis nor an idle block, nor one with a transaction and no due timer."""
    deploy_puppet(chain)
    chain.mine(2)
    assert [chain.decisions(height) for height in range(chain.height + 1)] == [None] * 4


def test_record_has_the_order_of_insertion_when_the_chain_is_fifo(chain: LocalChain) -> None:
    """Rank is the place in the line; there is no weight, and no price besides the basefees."""
    actor = deploy_puppet(chain)
    ids = answers(perform(actor, *(step("schedule_timer", 10, b"%d" % number) for number in range(4))))
    chain.advance_to(10)
    record = chain.decisions(10)
    assert record is not None
    assert [(item.timer_id, item.rank, item.outcome, item.reason) for item in record.examined] == [
        (ids[0], 1, "fire", ""),
        (ids[1], 2, "fire", ""),
        (ids[2], 3, "fire", ""),
        (ids[3], 4, "defer", "lane_full"),
    ]
    assert (record.mechanism, record.cut_off, record.stopped, record.lane_burned) == ("fifo", 3, Stop.NONE_LEFT, 0)
    assert all(item.weight == item.tip == item.max_fee == 0 for item in record.examined)


@pytest.mark.spec("L-09")
def test_record_tells_ranks_cut_off_and_why_the_others_could_not_win_when_the_lane_is_full() -> None:
    """Thirty compete, six fire; the next sixteen are named, the others counted, and the lane's rest is below 40,000."""
    with narrow_lane() as chain:
        height, ids = crowd(chain, 20)
        low = schedule(deploy_puppet(chain), height, gas_limit=40_000, max_fee_per_cycle=chain.lane_basefee)
        chain.advance_to(height)
        record = chain.decisions(height)
        assert record is not None
        assert [item.timer_id for item in record.examined] == [*reversed(ids[-20:])][:20]
        assert [item.rank for item in record.examined] == [*range(1, 21)]
        assert all(item.weight == 2 * 10**9 for item in record.examined)
        assert (record.examined_count, record.cut_off, record.stopped) == (FIRES, FIRES, Stop.LANE_FULL)
        assert (record.outranked, record.not_joined, record.smallest_gas) == (14, 1, 40_000)
        left = record.lane_cycles_max - record.lane_cycles_used
        assert decision_view(record, height).sentences == (
            f"14 outranked: the lane had {left:,} cycles left and the smallest gas limit that waited was 40,000",
            "1 has yet to join",
        )
        assert low not in {item.timer_id for item in record.examined}


def test_record_is_the_same_when_the_chain_is_opened_again_and_gone_when_its_block_is_dropped(tmp_path: Path) -> None:
    """It lies with the block; a block built again makes it again, to the letter."""
    with narrow_lane(tmp_path) as chain:
        height, _ = crowd(chain)
        chain.advance_to(height + 2)
        records = [chain.decisions(each) for each in range(height, height + 3)]
        assert None not in records
    with narrow_lane(tmp_path) as chain:
        assert [chain.decisions(each) for each in range(height, height + 3)] == records
        chain.reorg(3)
        chain.mine(3)
        assert [chain.decisions(each) for each in range(height, height + 3)] == records


@pytest.mark.spec("L-09")
@pytest.mark.parametrize("runners_up", [0, 3, 1_000])
def test_reasons_of_all_that_waited_add_up_to_the_record_when_it_names_few(
    runners_up: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every block, what explain derives for each waiting timer is exactly what the lane has counted.

    However few timers a record names: the reasons follow from its prices and from the timers' own fees.
    """
    monkeypatch.setattr(selection, "RUNNERS_UP_MAX", runners_up)
    with LocalChain(params=NARROW) as chain:
        old = deploy_puppet(chain)
        ids = [schedule(old, 30), schedule(old, 25, gas_limit=50_000)]
        chain.activate_lane()
        chain.advance_to(18)
        height, crowded = crowd(chain, 40, room=1_000)
        ids += crowded
        ids.append(schedule(old, height + 2, gas_limit=60_000, max_fee_per_cycle=chain.lane_basefee + 40))
        ids.append(schedule(old, height + 1, gas_limit=20_000))
        chain.advance_to(height + 14)
        told = {timer_id: chain.explain(timer_id) for timer_id in ids}
        found = Counter((wait.height, wait.reason) for life in told.values() for wait in life.waits)
        for block in range(chain.height + 1):
            record = chain.decisions(block)
            if record is not None and record.mechanism == "lane":
                counted = (record.outranked, record.priced_out, record.over_cap, record.not_joined)
                reasons = ("outranked", "priced_out", "over_cap", "not_joined")
                assert tuple(found[block, reason] for reason in reasons) == counted, block
        assert {reason for _, reason in found} >= {"outranked", "priced_out", "over_cap", "not_joined"}
        states = Counter(life.state for life in told.values())
        assert states == {"fired": len(ids) - 1, "live": 1}
