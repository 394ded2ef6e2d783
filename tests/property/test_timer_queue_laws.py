"""The calendar queue against a plain list that is sorted anew for every question."""

from operator import itemgetter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trailboss.params import CalendarParams, load_params
from trailboss.timer_queue.queue import TimerQueue

CALENDARS = (
    load_params("minimal").calendar,
    CalendarParams(ring_size=2, epoch_length=1, epoch_count=1),
    CalendarParams(ring_size=4, epoch_length=3, epoch_count=1),
    CalendarParams(ring_size=11, epoch_length=7, epoch_count=3),
    load_params("mainnet").calendar,
)


class QueueHistory(RuleBasedStateMachine):
    """Random histories of a chain's calls, in every order that a chain may make them.

    The model is a list of [height, sequence, timer id] rows and the clock. It knows no tiers: a row's tier follows
    from the distance of its epoch.
    """

    @initialize(number=st.integers(0, len(CALENDARS) - 1), now=st.integers(0, 10_000))
    def start(self, number: int, now: int) -> None:
        self.calendar = CALENDARS[number]
        self.now = now
        self.queue = TimerQueue(self.calendar, now)
        self.rows: list[tuple[int, int, bytes]] = []
        self.gone: list[tuple[int, int, bytes]] = []
        self.sequence = 0

    @rule(blocks=st.one_of(st.integers(1, 6), st.integers(1, 60), st.integers(1, 10_000_000)), count=st.integers(1, 3))
    def place(self, blocks: int, count: int) -> None:
        for _ in range(count):
            row = (self.now + blocks, self.sequence, self.sequence.to_bytes(32, "little"))
            self.sequence += 1
            self.queue.place(*row)
            self.rows.append(row)

    @precondition(lambda self: self.rows)
    @rule(choice=st.integers(0, 10**6))
    def cancel(self, choice: int) -> None:
        row = self.rows.pop(choice % len(self.rows))
        assert self.queue.cancel(row[2]) == row[0]
        assert self.queue.cancel(row[2]) is None
        self.gone.append(row)

    @precondition(lambda self: self.gone)
    @rule(choice=st.integers(0, 10**6))
    def restore(self, choice: int) -> None:
        row = self.gone.pop(choice % len(self.gone))
        self.queue.restore(*row)
        self.rows.append(row)

    @rule(count=st.integers(1, 8))
    def take_the_oldest(self, count: int) -> None:
        taken = [row for row, _ in zip(self.queue.due(self.now), range(count), strict=False)]
        assert taken == self.due()[:count]
        for row in taken:
            self.queue.cancel(row[2])
            self.rows.remove(row)

    @rule(blocks=st.one_of(st.just(1), st.integers(0, 9), st.integers(0, 5_000)))
    def advance(self, blocks: int) -> None:
        self.now += blocks
        self.queue.advance(self.now)

    @precondition(lambda self: self.rows)
    @rule()
    def advance_to_the_next(self) -> None:
        self.now = max(self.now, min(self.rows)[0])
        self.queue.advance(self.now)
        assert next(self.queue.due(self.now)) == min(self.rows)

    @rule(blocks=st.one_of(st.just(1), st.integers(0, 9), st.integers(0, 5_000)))
    def rewind(self, blocks: int) -> None:
        self.now = max(0, self.now - blocks)
        self.queue.rewind(self.now)

    @rule()
    def rebuild(self) -> None:
        self.queue.rebuild(sorted(self.rows, key=itemgetter(0, 2)), self.now)

    @invariant()
    def everything_agrees(self) -> None:
        self.queue.check_invariants()
        assert len(self.queue) == len(self.rows)
        assert self.queue.next_due_height() == min((row[0] for row in self.rows), default=None)
        assert list(self.queue.due(self.now)) == self.due()
        for height, _, timer_id in self.rows:
            assert self.queue.height_of(timer_id) == height
            assert self.queue.tier(timer_id) == self.tier(height)
            assert self.queue.ids_at(height) == tuple(row[2] for row in sorted(self.rows) if row[0] == height)

    def due(self) -> list[tuple[int, int, bytes]]:
        return sorted(row for row in self.rows if row[0] <= self.now)

    def tier(self, height: int) -> str:
        """Count the epochs from the present one up to the height's, one by one where that decides."""
        start = self.now - self.now % self.calendar.epoch_length
        if height < start + self.calendar.epoch_length:
            return "ring"
        reach = start + self.calendar.epoch_length * (self.calendar.epoch_count + 1)
        return "epoch" if height < reach else "overflow"


QueueHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueueHistory = pytest.mark.spec("Q-01", "Q-02", "Q-03", "Q-04", "Q-05", "F-05")(QueueHistory.TestCase)
