"""Why a timer waited, in words: each reason once, heights in runs, numbers as spans."""

import pytest

from trailboss.views.explain.waits import AGENT_OFFER, Wait, Waiting, waiting_words


def wait(height: int, reason: str, **facts: int | None) -> Wait:
    """Return a block's waiting, 20 offered against a basefee of 22 unless told otherwise."""
    none = ("tip", "rank", "cut_off_priority", "cut_off_tip", "cut_off_timer")
    known: dict[str, int | None] = {"max_fee": 20, "cycle_basefee": 10_000, **dict.fromkeys(none)}
    numbers = {"lane_basefee": 22, "rank_above": 0, "cut_off": 8, "max_cycles_per_fire": 250_000, **known, **facts}
    return Wait(height=height, reason=reason, **numbers)


def words(*waits: Wait) -> str:
    """Return what is told of these blocks."""
    return waiting_words(Waiting(len(waits), waits))


def test_waiting_reads_as_the_issue_has_it_when_reasons_change() -> None:
    """The sentence of the issue, to the letter."""
    assert words(wait(101, "priced_out"), wait(102, "priced_out"), wait(103, "outranked", rank=9)) == (
        "deferred 3 times: priced out at 101 and 102 (max_fee 20 < lane basefee 22), outranked at 103 (rank 9, "
        "cut-off 8)"
    )


def test_waiting_is_not_told_when_there_was_none() -> None:
    """A timer that ran at once has no such sentence."""
    assert waiting_words(Waiting(0, ())) == ""


@pytest.mark.parametrize(
    ("heights", "told"),
    [
        ([101], "at 101"),
        ([101, 102], "at 101 and 102"),
        ([101, 102, 103], "at 101 to 103"),
        ([101, 103], "at 101 and 103"),
        ([101, 103, 105], "at 101, 103 and 105"),
        ([*range(101, 141), 150], "at 101 to 140 and 150"),
        ([*range(101, 121, 2)], "at 101, … 119 (10 blocks)"),
    ],
)
def test_heights_are_told_in_runs_when_they_follow_one_another(heights: list[int], told: str) -> None:
    """Many single blocks are counted instead of listed."""
    assert f"priced out {told} (max_fee" in words(*(wait(height, "priced_out") for height in heights))


@pytest.mark.parametrize(
    ("waits", "told"),
    [
        ([wait(5, "over_cap"), wait(6, "over_cap")], "over the cap of 250,000 cycles a fire at 5 and 6"),
        ([wait(5, "not_joined")], "yet to join at 5"),
        (
            [wait(5, "lane_full", lane_basefee=None, rank=3)],
            "too large for what was left of the budget at 5 (rank 3, cut-off 8)",
        ),
        ([wait(5, "unfunded")], "its payer could not pay at 5"),
        (
            [wait(5, "priced_out", lane_basefee=None)],
            "priced out at 5 (max_fee 20 < cycle basefee 10,000)",
        ),
        (
            [wait(5, "outranked", lane_basefee=None, tip=3, cut_off_tip=7)],
            "outranked at 5 (tip 3, the last to fire tipped 7)",
        ),
        (
            [wait(5, "outranked", lane_basefee=None, tip=3, rank=9, cut_off_tip=7)],
            "outranked at 5 (rank 9, cut-off 8)",
        ),
        ([wait(5, "gc_exhausted")], "left over by the clean-up budget at 5"),
        ([wait(5, AGENT_OFFER, max_fee=None)], "its agent offered too little at 5"),
        (
            [wait(5, AGENT_OFFER, max_fee=None, lane_basefee=None)],
            "priced out or outranked at 5, by a bid that is not on record",
        ),
        (
            [wait(height, "passed_over_max", max_fee=None, lane_basefee=None) for height in range(8, 1_008)],
            "not reached at 8 to 1007, as many as a block passes over stood before it",
        ),
        (
            [wait(5, "examined_max", lane_basefee=None, rank=9)],
            "not reached at 5 (rank 9, cut-off 8), as many as a block looks at stood before it",
        ),
        ([wait(5, "lane_full", rank=3)], "too large for what was left of the lane at 5 (rank 3, cut-off 8)"),
        (
            [wait(5, "priced_out"), wait(6, "priced_out", lane_basefee=2_500)],
            "priced out at 5 and 6 (max_fee 20 < lane basefee 22 to 2,500)",
        ),
        (
            [wait(5, "outranked", rank=9), wait(6, "outranked", rank=12, cut_off=7)],
            "outranked at 5 and 6 (rank 9 to 12, cut-off 7 to 8)",
        ),
        (
            [wait(5, "outranked", tip=3, cut_off_priority=8_500_000_000)],
            "outranked at 5 (tip 3, the last to fire had a priority of 8.5)",
        ),
        (
            [
                wait(5, "outranked", tip=3, cut_off_priority=8_500_000_000),
                wait(6, "outranked", tip=4, cut_off_priority=10_000_000_000),
            ],
            "outranked at 5 and 6 (tip 3 to 4, the last to fire had a priority of 8.5 to 10)",
        ),
        (
            [wait(5, "outranked", tip=3, rank_above=24, cut_off_priority=8_500_000_000)],
            "outranked at 5 (rank above 24, cut-off 8; tip 3, the last to fire had a priority of 8.5)",
        ),
        (
            [wait(5, "outranked", rank_above=24, tip=3, cut_off_priority=1), wait(6, "outranked", rank=9)],
            "outranked at 5 and 6 (rank 9 to above 24, cut-off 8)",
        ),
        ([wait(5, "outranked")], "outranked at 5"),
    ],
)
def test_reason_is_told_with_the_numbers_behind_it_when_they_are_known(waits: list[Wait], told: str) -> None:
    """Ranks where the record has them, else what was offered against what still fired."""
    assert words(*waits).split(": ", 1)[1] == told


def test_waiting_says_so_when_only_the_last_blocks_were_gone_through() -> None:
    """The count is of all blocks, the reasons of the last ones."""
    waiting = Waiting(5_000, tuple(wait(height, "over_cap") for height in range(4_001, 5_001)))
    assert waiting_words(waiting).startswith("deferred 5,000 times, of which the last 1,000: over the cap of 250,000")
    assert waiting_words(Waiting(1, (wait(7, "over_cap"),))).startswith("deferred once: ")
