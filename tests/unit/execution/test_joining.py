"""Joining: who joins in which block, worked by hand and against a plain list of who has joined."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.execution.joining import join_timers
from trailboss.governance.rules import JOINING_KEY
from trailboss.model.configs import JoiningGap, JoiningGaps, decode_record
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

Row = tuple[int, int, bytes]


class Heights:
    """The due timers of a chain, and the gaps from block to block; a timer is its own record."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: list[Row] = []
        self.gaps: tuple[JoiningGap, ...] | None = None

    def place(self, height: int, count: int = 1) -> None:
        for _ in range(count):
            sequence = len(self.rows)
            self.rows.append((height, sequence, b"%032d" % sequence))

    def cancel(self, *sequences: int) -> None:
        for sequence in sequences:
            self.rows[sequence] = (2**64, sequence, b"")

    def due(self, now: int, after: tuple[int, int] = (0, -1)) -> Iterator[Row]:
        return iter(sorted(row for row in self.rows if row[0] <= now and row[:2] > after))

    def block(self, height: int) -> tuple[list[int], list[int]]:
        """Return the sequences of those that have joined before, and of those that join in the block of a height."""
        context = SimpleNamespace(height=height, rules=SimpleNamespace(gaps=self.gaps))
        overlay = Overlay(MemoryStore())
        session: Any = SimpleNamespace(context=context, queue=self, gaps=(), overlay=overlay)
        timers = join_timers(session, self.most)
        waiting = list(timers.waiting)
        written = overlay.read(JOINING_KEY)
        assert (written is None) == (session.gaps == self.gaps)
        if written is not None:
            self.gaps = decode_record(written, JoiningGaps).gaps
        assert session.gaps == self.gaps
        return waiting, list(timers.joining)


@pytest.fixture(autouse=True)
def timers_are_their_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a timer's record be its sequence, which its id spells."""
    monkeypatch.setattr("trailboss.execution.joining.load_timer", lambda _, __, timer_id: int(timer_id))


@pytest.mark.spec("L-01")
def test_all_join_in_their_block_when_there_is_room() -> None:
    """In the order of insertion; later they have joined, and there is no gap."""
    heights = Heights(most=3)
    heights.place(5, 3)
    heights.place(6, 2)
    assert heights.block(4) == ([], [])
    assert heights.block(5) == ([], [0, 1, 2])
    assert heights.block(6) == ([0, 1, 2], [3, 4])
    assert heights.block(7) == ([0, 1, 2, 3, 4], [])
    assert heights.gaps == ()


@pytest.mark.spec("L-01")
def test_flood_of_one_height_delays_nobody_who_comes_later() -> None:
    """Those of a block's own height go first; what room they leave is for the oldest that were left out."""
    heights = Heights(most=2)
    heights.block(4)
    heights.place(5, 7)
    heights.place(6, 1)
    heights.place(7, 3)
    joined, gaps = [], []
    for height in range(5, 12):
        joined.append(heights.block(height)[1])
        gaps.append(heights.gaps)
    assert joined == [[0, 1], [7, 2], [8, 9], [3, 4], [5, 6], [10], []]
    assert gaps == [
        (JoiningGap(5, 2, 5),),
        (JoiningGap(5, 3, 5),),
        (JoiningGap(5, 3, 5), JoiningGap(7, 10, 7)),
        (JoiningGap(5, 5, 5), JoiningGap(7, 10, 7)),
        (JoiningGap(7, 10, 7),),
        (),
        (),
    ]


@pytest.mark.spec("L-30", "L-31")
def test_timers_from_before_join_like_the_rest_when_the_lane_is_activated() -> None:
    """They are one gap over all their heights: own height first, then lower heights, in order of insertion."""
    heights = Heights(most=3)
    heights.place(2, 2)
    heights.place(9, 1)
    heights.place(4, 2)
    heights.place(10, 1)
    assert heights.block(10) == ([], [5, 0, 1])
    assert heights.gaps == (JoiningGap(4, 3, 9),)
    assert heights.block(11) == ([0, 1, 5], [3, 4, 2])
    assert heights.block(12) == ([0, 1, 3, 4, 2, 5], [])
    assert heights.gaps == ()


def test_gap_closes_when_those_that_it_left_out_are_cancelled() -> None:
    """The next block with room looks, finds nobody, and forgets it; what is behind it joins at once."""
    heights = Heights(most=2)
    heights.block(4)
    heights.place(5, 4)
    heights.place(6, 4)
    heights.block(5)
    heights.block(6)
    assert heights.gaps == (JoiningGap(5, 2, 5), JoiningGap(6, 6, 6))
    heights.cancel(2, 3)
    assert heights.block(7) == ([0, 1, 4, 5], [6, 7])
    assert heights.gaps == ()


def test_gap_begins_at_the_next_that_is_left_when_its_first_are_cancelled() -> None:
    """A place is no timer: whether one lies there does not matter."""
    heights = Heights(most=1)
    heights.block(4)
    heights.place(5, 6)
    heights.block(5)
    heights.cancel(1, 2)
    assert heights.block(6) == ([0], [3])
    assert heights.gaps == (JoiningGap(5, 4, 5),)
    heights.cancel(0, 4)
    assert heights.block(7) == ([3], [5])
    assert heights.gaps == ()


STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), max_size=3),
        st.lists(st.integers(0, 60), max_size=4),
        st.integers(1, 3),
    ),
    max_size=25,
)


@pytest.mark.spec("L-01", "L-31")
@given(STEPS, STEPS, st.integers(1, 4))
def test_who_has_joined_is_what_a_plain_list_says(before: Any, after: Any, most: int) -> None:
    """Timers come and go before and after the activation; heights may be skipped, as idle blocks are."""
    heights = Heights(most)
    joined: set[int] = set()
    now = 0
    for number, (placed, cancelled, step) in enumerate([*before, *after]):
        # A block that is not idle is built at every height at which something is due.
        upcoming = [row[0] for row in heights.rows if now < row[0] < 2**64]
        now = min([now + step, *upcoming]) if number >= len(before) else now + step
        if number >= len(before):
            waiting, joining = heights.block(now)
            due = [row for row in sorted(heights.rows) if row[0] <= now]
            own = [row[1] for row in due if row[0] == now]
            older = [row[1] for row in due if row[0] < now and row[1] not in joined]
            assert waiting == [row[1] for row in due if row[1] in joined]
            assert joining == (own + older)[:most]
            joined |= set(joining)
            left_out = [row for row in due if row[1] not in joined]
            assert heights.gaps is not None
            for row in due:
                is_left_out = any(gap[:2] <= row[:2] and row[0] <= gap.last_height for gap in heights.gaps)
                assert is_left_out == (row in left_out)
            assert list(heights.gaps) == sorted(heights.gaps)
        for ahead, count in placed:
            heights.place(now + ahead, count)
        heights.cancel(*(sequence for sequence in cancelled if sequence < len(heights.rows)))
