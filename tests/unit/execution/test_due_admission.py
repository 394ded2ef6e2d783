"""Joining: who joins in which block, worked by hand and against a plain list of who has joined."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.execution.due_admission import admit_timers, has_joined
from trailboss.execution.session import Admission
from trailboss.governance.rules import BARRED_KEY, JOINING_KEY
from trailboss.model.configs import BarredPayer, BarredPayers, JoiningGap, JoiningGaps, decode_record, encode_record
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

Row = tuple[int, int, bytes]
RICH, POOR, BROKE = b"rich", b"poor", b"broke"


class FakeTimer(NamedTuple):
    """What joining looks at; each costs 1."""

    height: int
    sequence: int
    fee_payer: bytes


class Heights:
    """The due timers of a chain, and what has not joined from block to block."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: list[Row] = []
        self.payers: list[bytes] = []
        self.balances = {RICH: 1}
        self.gaps: tuple[JoiningGap, ...] | None = None
        self.barred: tuple[BarredPayer, ...] = ()

    def place(self, height: int, count: int = 1, payer: bytes = RICH) -> None:
        for _ in range(count):
            sequence = len(self.rows)
            self.rows.append((height, sequence, b"%032d" % sequence))
            self.payers.append(payer)

    def cancel(self, *sequences: int) -> None:
        for sequence in sequences:
            self.rows[sequence] = (2**64, sequence, b"")

    def timer(self, sequence: int) -> Any:
        return FakeTimer(*self.rows[sequence][:2], self.payers[sequence])

    # As the queue and the ledger

    def due(
        self, now: int, after: tuple[int, int] = (0, -1), is_out: Callable[[bytes], bool] = lambda _: False
    ) -> Iterator[Row]:
        due = sorted(row for row in self.rows if row[0] <= now and row[:2] > after)
        return (row for row in due if not is_out(self.payers[row[1]]))

    def expired(self, _: int) -> Iterator[Row]:
        return iter(())

    def fee_payer_of(self, timer_id: bytes) -> bytes:
        return self.payers[int(timer_id)]

    def balance(self, payer: bytes) -> int:
        return self.balances.get(payer, 0)

    def block(self, height: int) -> tuple[list[int], list[int]]:
        """Return the sequences of those that have joined before, and of those that join in the block of a height."""
        context = SimpleNamespace(height=height, rules=SimpleNamespace(gaps=self.gaps, barred=self.barred))
        overlay = Overlay(MemoryStore())
        session: Any = SimpleNamespace(context=context, queue=self, ledger=self, admission=Admission(), overlay=overlay)
        timers = admit_timers(session, self.most, lambda _: 1)
        waiting = [timer.sequence for timer in timers.waiting]
        for key, kind, before in ((JOINING_KEY, JoiningGaps, self.gaps), (BARRED_KEY, BarredPayers, self.barred)):
            written = overlay.read(key)
            left = session.admission.gaps if key == JOINING_KEY else session.admission.barred
            assert (written is None) == (left == before)
            if written is not None:
                assert encode_record(decode_record(written, kind)) == written
        self.gaps, self.barred = session.admission.gaps, session.admission.barred
        self.unfunded = [timer.sequence for timer in timers.unfunded]
        self.joined = {row[1] for row in self.rows if row[0] <= height and has_joined(session, self.timer(row[1]))}
        return waiting, [timer.sequence for timer in timers.joining]


@pytest.fixture(autouse=True)
def timers_are_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a timer's record be what the queue says of it."""

    def load(session: Any, _: int, timer_id: bytes) -> Any:
        return session.queue.timer(int(timer_id))

    for module in ("due_admission", "timers"):
        monkeypatch.setattr(f"trailboss.execution.{module}.load_timer", load)


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


@pytest.mark.spec("F-75")
def test_dead_timers_take_no_places_when_more_wait_than_may_join() -> None:
    """Two hundred that nobody can pay, and one that is paid for and was scheduled last: it joins in its own block."""
    heights = Heights(most=3)
    heights.block(4)
    heights.place(5, 100, POOR)
    heights.place(5, 100, BROKE)
    heights.place(5, 1, RICH)
    assert heights.block(5) == ([], [200])
    assert heights.barred == (BarredPayer(BROKE, (5, 100), (6, 0)), BarredPayer(POOR, (5, 0), (6, 0)))
    assert heights.unfunded == [*range(200)]
    assert heights.joined == {200}


def test_barred_timers_join_in_due_order_when_their_payer_can_pay() -> None:
    """As many as there is room for, behind those of the block's own height; the others stay barred."""
    heights = Heights(most=3)
    heights.block(4)
    heights.place(5, 5, POOR)
    heights.block(5)
    assert heights.barred == (BarredPayer(POOR, (5, 0), (6, 0)),)
    heights.balances[POOR] = 1
    heights.place(6, 1, RICH)
    assert heights.block(6) == ([], [5, 0, 1])
    assert heights.barred == (BarredPayer(POOR, (5, 2), (6, 0)),)
    heights.cancel(2)
    assert heights.block(7) == ([0, 1, 5], [3, 4])
    assert heights.barred == ()


def test_payer_stays_barred_in_the_rest_of_a_gap_when_only_a_part_has_joined() -> None:
    """Its timers behind the place at which the room ended are barred with those before it, and looked at together."""
    heights = Heights(most=2)
    heights.block(4)
    heights.place(5, 1, POOR)
    heights.place(5, 3, RICH)
    heights.place(5, 1, POOR)
    assert heights.block(5) == ([], [1, 2])
    assert (heights.gaps, heights.barred) == ((JoiningGap(5, 3, 5),), (BarredPayer(POOR, (5, 0), (5, 3)),))
    assert heights.block(6) == ([1, 2], [3])
    assert (heights.gaps, heights.barred) == ((), (BarredPayer(POOR, (5, 0), (6, 0)),))
    heights.balances[POOR] = 1
    assert heights.block(7) == ([1, 2, 3], [0, 4])


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from((RICH, POOR, BROKE))), max_size=4),
            st.lists(st.integers(0, 60), max_size=3),
            st.sets(st.sampled_from((POOR, BROKE))),
        ),
        max_size=25,
    ),
    st.integers(1, 4),
)
def test_every_due_timer_joins_once_or_is_said_to_be_outside(steps: Any, most: int) -> None:
    """Whoever can pay or not from block to block: who has joined is who was let in, and no other."""
    heights = Heights(most)
    joined: set[int] = set()
    for now, (placed, cancelled, solvent) in enumerate(steps, start=1):
        heights.balances = dict.fromkeys((RICH, *solvent), 1)
        waiting, joining = heights.block(now)
        due = [row[1] for row in sorted(heights.rows) if row[0] <= now]
        assert waiting == [sequence for sequence in due if sequence in joined]
        assert len(joining) == len(set(joining)) <= most
        assert joined.isdisjoint(joining)
        joined |= set(joining)
        assert heights.joined == joined & set(due)
        outside = [sequence for sequence in due if sequence not in joined]
        if len(joining) < most:
            # There was room: what is outside has a payer at whose first timer the block has stopped.
            assert all(heights.payers[sequence] not in heights.balances for sequence in outside)
        for ahead, count, payer in placed:
            heights.place(now + ahead, count, payer)
        heights.cancel(*(sequence for sequence in cancelled if sequence < len(heights.rows)))
