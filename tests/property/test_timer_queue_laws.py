"""The calendar queue against a plain table of timers that is sorted anew for every question."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.model.timer_list import Row, TimerList, name
from trailboss.params import CalendarParams, load_params
from trailboss.timer_queue import queue as module
from trailboss.timer_queue.queue import TimerQueue

CALENDARS = (
    load_params("minimal").calendar,
    CalendarParams(ring_size=2, epoch_length=1, epoch_count=1),
    CalendarParams(ring_size=4, epoch_length=3, epoch_count=1),
    CalendarParams(ring_size=11, epoch_length=7, epoch_count=3),
    load_params("mainnet").calendar,
)


class QueueHistory(RuleBasedStateMachine):
    """Random histories of a chain's calls: blocks that are committed, dropped and reverted.

    The model is a table of (height, sequence, timer id) rows by id, and the clock. It knows no tiers: a row's tier
    follows from the distance of its epoch; and no frontier, which so few timers read ahead in a block often leave
    inside a height.
    """

    read_ahead_max = module.READ_AHEAD_MAX

    @initialize(number=st.integers(0, len(CALENDARS) - 1), now=st.integers(0, 10_000), read_ahead=st.integers(1, 4))
    def start(self, number: int, now: int, read_ahead: int) -> None:
        module.READ_AHEAD_MAX = read_ahead
        self.calendar = CALENDARS[number]
        self.now = now
        self.source = TimerList()
        self.queue = TimerQueue(self.calendar, self.source, now)
        self.rows: dict[bytes, Row] = {}
        self.history: list[tuple[int, dict[bytes, Row]]] = [(now, {})]
        self.sequence = 0

    def teardown(self) -> None:
        module.READ_AHEAD_MAX = self.read_ahead_max

    @rule(blocks=st.one_of(st.integers(1, 6), st.integers(1, 60), st.integers(1, 10_000_000)), count=st.integers(1, 9))
    def place(self, blocks: int, count: int) -> None:
        for _ in range(count):
            row = (self.now + blocks, self.sequence, name(self.sequence))
            self.sequence += 1
            self.queue.place(*row)
            self.rows[row[2]] = row

    @precondition(lambda self: self.rows)
    @rule(choice=st.integers(0, 10**6))
    def cancel(self, choice: int) -> None:
        height, _, timer_id = self.rows.pop([*self.rows][choice % len(self.rows)])
        assert self.queue.cancel(timer_id) == height
        assert self.queue.cancel(timer_id) is None

    @precondition(lambda self: self.rows)
    @rule(
        blocks=st.one_of(st.integers(0, 6), st.integers(1, 60), st.integers(1, 10_000_000)),
        choice=st.integers(0, 10**6),
        count=st.integers(1, 3),
    )
    def move(self, blocks: int, choice: int, count: int) -> None:
        for number in range(count):
            _, sequence, timer_id = self.rows[[*self.rows][(choice + number) % len(self.rows)]]
            self.rows[timer_id] = (self.now + blocks, sequence, timer_id)
            self.queue.move(*self.rows[timer_id])

    @rule(count=st.integers(1, 8))
    def take_the_oldest(self, count: int) -> None:
        taken = [row for row, _ in zip(self.queue.due(self.now), range(count), strict=False)]
        assert taken == self.due()[:count]
        for _, _, timer_id in taken:
            self.queue.cancel(timer_id)
            del self.rows[timer_id]

    @rule(blocks=st.one_of(st.just(1), st.integers(1, 9), st.integers(1, 5_000)))
    def commit_and_advance(self, blocks: int) -> None:
        self.commit()
        self.now += blocks
        self.queue.advance(self.now)

    @precondition(lambda self: self.rows)
    @rule()
    def commit_and_advance_to_the_next(self) -> None:
        self.commit()
        self.now = max(self.now + 1, min(self.rows.values())[0])
        self.queue.advance(self.now)
        assert next(self.queue.due(self.now)) == min(self.rows.values())

    @rule()
    def drop_the_block(self) -> None:
        height, rows = self.history[-1]
        self.now, self.rows = max(height, self.now - 1), dict(rows)
        self.queue.rewind(self.now)

    @rule(depth=st.integers(0, 5))
    def revert(self, depth: int) -> None:
        del self.history[max(1, len(self.history) - depth) :]
        height, rows = self.history[-1]
        self.now, self.rows = height, dict(rows)
        self.source.put(list(rows.values()))
        self.queue.rewind(height)

    @rule()
    def commit_and_open_anew(self) -> None:
        self.commit()
        self.queue = TimerQueue(self.calendar, self.source, self.now)

    @rule(blocks=st.integers(-60, 9), choice=st.integers(0, 10**6), step=st.integers(-1, 1))
    def walk_from_a_place(self, blocks: int, choice: int, step: int) -> None:
        """Begin behind a timer, one beside it, or a place where there may be none."""
        places = [(self.now + blocks, self.sequence // 2), *(row[:2] for row in self.due())]
        height, sequence = places[choice % len(places)]
        after = (max(height, 0), sequence + step)
        assert list(self.queue.due(self.now, after)) == [row for row in self.due() if row[:2] > after]

    @invariant()
    def everything_agrees(self) -> None:
        assert self.queue.next_due_height() == min((row[0] for row in self.rows.values()), default=None)
        assert list(self.queue.due(self.now)) == self.due()
        assert self.queue.due_count == len(self.due())
        rows = sorted(self.rows.values())
        for height, _, timer_id in rows:
            assert self.queue.height_of(timer_id) == height
            assert self.queue.tier(timer_id) == self.tier(height)
            assert self.queue.ids_at(height) == tuple(row[2] for row in rows if row[0] == height)

    def commit(self) -> None:
        self.source.put(list(self.rows.values()))
        self.queue.check_invariants()
        self.history.append((self.now, dict(self.rows)))
        statistics = self.queue.statistics()
        tiers = [self.tier(height) for height, _, _ in self.rows.values()]
        assert statistics.ring_timers == tiers.count("ring")
        assert statistics.epoch_timers == tiers.count("epoch")
        assert statistics.overflow_timers == tiers.count("overflow")

    def due(self) -> list[Row]:
        return sorted(row for row in self.rows.values() if row[0] <= self.now)

    def tier(self, height: int) -> str:
        """Count the epochs from the present one up to the height's, one by one where that decides."""
        start = self.now - self.now % self.calendar.epoch_length
        if height < start + self.calendar.epoch_length:
            return "ring"
        reach = start + self.calendar.epoch_length * (self.calendar.epoch_count + 1)
        return "epoch" if height < reach else "overflow"


QueueHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueueHistory = pytest.mark.spec("Q-01", "Q-02", "Q-03", "Q-04", "Q-05", "F-05")(QueueHistory.TestCase)
