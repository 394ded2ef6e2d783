"""A decision record in words: ranks, exact decimals, and why nobody who was not examined could have run."""

import pytest
from msgspec.structs import replace

from trailboss.model.decisions import DecisionRecord, ExaminedTimer, FeeSource, Order, Stop
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.text import decimal_text

RECORD = DecisionRecord(
    mechanism="lane",
    order=Order.PRIORITY,
    cycle_basefee=10_000,
    cell_basefee=10_000,
    lane_basefee=22,
    next_lane_basefee=24,
    previous_tip=3,
    median_fires=10,
    lane_cycles_max=2_000_000,
    lane_cycles_used=1_995_000,
    max_cycles_per_fire=250_000,
    lane_burned=43_890_000,
    examined=(),
    runner_up_count=0,
    examined_count=0,
    cut_off=0,
    stopped=Stop.NONE_LEFT,
    smallest_gas=0,
    outranked=0,
    priced_out=0,
    over_cap=0,
    not_joined=0,
    gaps=(),
    agent_cycles=0,
)
FIRED = ExaminedTimer(
    timer_id=b"\x01" * 32,
    actor=b"\x0a" * 20,
    rank=1,
    outcome="fire",
    reason="",
    gas_limit=250_000,
    cycles_used=240_000,
    tip=5,
    weight=1_700_000_000,
    max_fee=40,
    fee_source=FeeSource.FROZEN,
)
EXPIRED = replace(FIRED, timer_id=b"\x02" * 32, rank=0, outcome="expire", cycles_used=0, weight=0, max_fee=0)
PASSED = replace(FIRED, timer_id=b"\x03" * 32, rank=2, outcome="defer", reason="lane_full", cycles_used=0)
NEXT = replace(FIRED, timer_id=b"\x04" * 32, rank=3, outcome="fire", cycles_used=0)


@pytest.mark.spec("L-09")
def test_rows_tell_rank_weight_and_priority_exactly_when_timers_were_ranked() -> None:
    """W = 1.7 and a tip of 5 give 8.5, not 8.500000001; who expired has no rank; a runner-up fires nowhere."""
    examined = (EXPIRED, FIRED, PASSED, NEXT)
    view = decision_view(replace(RECORD, examined=examined, runner_up_count=1, examined_count=3, cut_off=1), 103)
    expired, fired, passed = view.rows
    assert (fired.rank, fired.tip, fired.weight, fired.effective_priority, fired.max_fee) == (1, 5, "1.7", "8.5", 40)
    assert (fired.outcome, fired.reason, fired.cycles_used) == ("fired", "", 240_000)
    assert (expired.rank, expired.weight, expired.max_fee, expired.outcome) == (None, None, None, "expired")
    assert (passed.outcome, passed.reason, passed.cycles_used) == (
        "waits",
        "did not fit the rest of the lane",
        None,
    )
    (runner_up,) = view.runners_up
    assert (runner_up.rank, runner_up.outcome, runner_up.cycles_used) == (3, "waits", None)
    assert runner_up.reason == "outranked"
    assert (view.cut_off, view.examined, view.height) == (1, 3, 103)


@pytest.mark.spec("L-09")
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"outranked": 14, "stopped": Stop.LANE_FULL, "smallest_gas": 10_000},
            "14 outranked: the lane had 5,000 cycles left and the smallest gas limit that waited was 10,000",
        ),
        (
            {"outranked": 14, "stopped": Stop.EXAMINED_MAX, "examined": (FIRED,), "examined_count": 1},
            "14 outranked: one block examines at most 1 due timers",
        ),
        (
            {"outranked": 2, "stopped": Stop.CELLS_FULL},
            "2 outranked: what was left of the block's cells for fires was less than one fire may use",
        ),
        ({"priced_out": 3}, "3 priced out: their max_fee is below the lane basefee of 22"),
        ({"priced_out": 1}, "1 priced out: its max_fee is below the lane basefee of 22"),
        ({"over_cap": 2}, "2 over the cap of 250,000 cycles a fire"),
        ({"not_joined": 7}, "7 have yet to join"),
    ],
)
def test_sentence_tells_why_none_of_them_could_win_when_timers_were_not_examined(
    changes: dict[str, object], sentence: str
) -> None:
    """How many, and the rule that kept them out, with its numbers."""
    view = decision_view(replace(RECORD, **changes), 103)
    assert view.sentences == (sentence,)
    assert sum(view.not_examined.values()) == sum(
        int(changes.get(name, 0)) for name in ("outranked", "priced_out", "over_cap", "not_joined")
    )


def test_view_has_no_prices_of_a_lane_when_the_mechanism_has_none() -> None:
    """Before the activation nothing is paid besides the cycle basefee, and nobody has a weight."""
    item = replace(FIRED, tip=0, weight=0, max_fee=0, fee_source=FeeSource.NONE)
    record = replace(
        RECORD, mechanism="fifo", order=Order.DUE, examined=(item,), examined_count=1, cut_off=1, outranked=2
    )
    view = decision_view(replace(record, stopped=Stop.EXAMINED_MAX), 9)
    assert (view.lane_basefee, view.next_lane_basefee, view.previous_tip, view.median_fires) == (None,) * 4
    assert [(row.rank, row.weight, row.effective_priority, row.max_fee) for row in view.rows] == [(1, None, None, None)]
    assert view.sentences == ("2 further back in the order: one block examines at most 1 due timers",)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (0, "0"),
        (1, "0.000000001"),
        (10**9, "1"),
        (1_700_000_000, "1.7"),
        (892_800_000_000, "892.8"),
        (10**27, "1" + "0" * 18),
    ],
)
def test_decimal_is_exact_when_it_is_told(parts: int, text: str) -> None:
    """No digit is lost and none is invented."""
    assert decimal_text(parts) == text


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"mechanism": "auction", "priced_out": 2},
            ("2 priced out: their max_fee is below the cycle basefee of 10,000",),
        ),
        (
            {"mechanism": "auction", "outranked": 3, "stopped": Stop.PASSED_OVER_MAX},
            ("3 outranked: the block had passed over as many as it may that did not fit",),
        ),
        (
            {
                "mechanism": "auction",
                "order": Order.TIP,
                "outranked": 1,
                "stopped": Stop.LANE_FULL,
                "lane_cycles_max": 1,
                "smallest_gas": 9,
            },
            ("1 outranked: the budget had 0 cycles left and the smallest gas limit that waited was 9",),
        ),
        (
            {
                "mechanism": "globalbox",
                "order": Order.STANDING,
                "in_mailbox": 2,
                "stopped": Stop.LANE_FULL,
                "smallest_gas": 7_000,
            },
            ("2 entries wait in the mailbox: the block had 5,000 cycles left, and the first of them may use 7,000",),
        ),
        (
            {"mechanism": "globalbox", "in_mailbox": 1, "stopped": Stop.CELLS_FULL},
            (
                "1 entry waits in the mailbox: what was left of the block's cells for fires was less than one fire may "
                "use",
            ),
        ),
        (
            {
                "mechanism": "globalbox",
                "order": Order.STANDING,
                "in_mailbox": 1,
                "stopped": Stop.EXAMINED_MAX,
                "carried": 1,
            },
            (
                "1 entry waits in the mailbox: one block runs no more of them",
                "1 modified key was carried over: they hit more watches than one block queues",
            ),
        ),
    ],
)
def test_sentences_are_those_of_the_mechanism(changes: dict[str, object], sentences: tuple[str, ...]) -> None:
    assert decision_view(replace(RECORD, **changes), 7).sentences == sentences


@pytest.mark.parametrize(
    ("mechanism", "fees", "has_priority"),
    [("lane", "frozen", True), ("auction", "standing", False), ("globalbox", "bid", False)],
)
def test_fees_are_called_what_they_are_under_each_mechanism(mechanism: str, fees: str, has_priority: bool) -> None:
    """Only the timer lane ranks by tip times W."""
    (row,) = decision_view(replace(RECORD, mechanism=mechanism, examined=(FIRED,), examined_count=1), 7).rows
    assert (row.fees, row.effective_priority is not None) == (fees, has_priority)
    assert row.target == row.actor
