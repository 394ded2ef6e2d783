"""The calendar queue against a plain table of timers that is sorted anew for every question."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from tests.model.timer_list import Row, TimerList, name, pending
from trailboss.params import CalendarParams, load_params
from trailboss.timer_queue import bucket
from trailboss.timer_queue import queue as module
from trailboss.timer_queue.bucket import Pending
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

    The model is a table of timers by id, and the clock. It knows no tiers: a timer's tier follows from the distance of
    its epoch; no frontier, which so few timers read ahead in a block often leave inside a height; and nothing of who
    expires when, but by looking at each.
    """

    read_ahead_max = module.READ_AHEAD_MAX
    crowd = bucket.CROWD

    @initialize(
        number=st.integers(0, len(CALENDARS) - 1),
        now=st.integers(0, 10_000),
        read_ahead=st.integers(1, 4),
        crowd=st.integers(1, 12),
    )
    def start(self, number: int, now: int, read_ahead: int, crowd: int) -> None:
        module.READ_AHEAD_MAX, bucket.CROWD = read_ahead, crowd
        self.calendar = CALENDARS[number]
        self.now = now
        self.source = TimerList()
        self.queue = TimerQueue(self.calendar, self.source, now)
        self.timers: dict[bytes, Pending] = {}
        self.history: list[tuple[int, dict[bytes, Pending]]] = [(now, {})]
        self.sequence = 0

    def teardown(self) -> None:
        module.READ_AHEAD_MAX, bucket.CROWD = self.read_ahead_max, self.crowd

    @rule(
        blocks=st.one_of(st.integers(1, 6), st.integers(1, 60), st.integers(1, 10_000_000)),
        count=st.integers(1, 9),
        life=st.one_of(st.integers(1, 12), st.integers(1, 80), st.just(10**9)),
        payers=st.integers(1, 3),
    )
    def place(self, blocks: int, count: int, life: int, payers: int) -> None:
        for number in range(count):
            row = (self.now + blocks, self.sequence, name(self.sequence))
            timer = pending(row, self.now + life, b"%d" % (number % payers))
            self.sequence += 1
            self.queue.place(timer)
            self.timers[timer.timer_id] = timer

    @precondition(lambda self: self.timers)
    @rule(choice=st.integers(0, 10**6))
    def cancel(self, choice: int) -> None:
        timer = self.timers.pop([*self.timers][choice % len(self.timers)])
        assert self.queue.cancel(timer.timer_id) == timer.height
        assert self.queue.cancel(timer.timer_id) is None

    @precondition(lambda self: self.timers)
    @rule(choice=st.integers(0, 10**6), life=st.one_of(st.integers(1, 12), st.integers(1, 1_000)))
    def extend(self, choice: int, life: int) -> None:
        timer_id = [*self.timers][choice % len(self.timers)]
        self.timers[timer_id] = replace(self.timers[timer_id], expires_at=self.now + life)
        self.queue.extend(timer_id, self.now + life)

    @precondition(lambda self: self.timers)
    @rule(
        blocks=st.one_of(st.integers(0, 6), st.integers(1, 60), st.integers(1, 10_000_000)),
        choice=st.integers(0, 10**6),
        count=st.integers(1, 3),
    )
    def move(self, blocks: int, choice: int, count: int) -> None:
        for number in range(count):
            timer_id = [*self.timers][(choice + number) % len(self.timers)]
            self.timers[timer_id] = replace(self.timers[timer_id], height=self.now + blocks)
            self.queue.move(self.timers[timer_id])

    @rule(count=st.integers(1, 8))
    def take_the_oldest(self, count: int) -> None:
        taken = [row for row, _ in zip(self.queue.due(self.now), range(count), strict=False)]
        assert taken == self.due()[:count]
        for _, _, timer_id in taken:
            self.queue.cancel(timer_id)
            del self.timers[timer_id]

    @rule(blocks=st.one_of(st.just(1), st.integers(1, 9), st.integers(1, 5_000)))
    def commit_and_advance(self, blocks: int) -> None:
        self.commit()
        self.now += blocks
        self.queue.advance(self.now)

    @precondition(lambda self: self.timers)
    @rule()
    def commit_and_advance_to_the_next(self) -> None:
        self.commit()
        waited = {timer.timer_id for timer in self.alive()}
        self.now = max(self.now + 1, min(timer.height for timer in self.timers.values()))
        self.queue.advance(self.now)
        assert set(self.queue.died()) == waited - {timer.timer_id for timer in self.alive()}

    @rule()
    def drop_the_block(self) -> None:
        height, timers = self.history[-1]
        self.now, self.timers = max(height, self.now - 1), dict(timers)
        self.queue.rewind(self.now)

    @rule(depth=st.integers(0, 5))
    def revert(self, depth: int) -> None:
        del self.history[max(1, len(self.history) - depth) :]
        height, timers = self.history[-1]
        self.now, self.timers = height, dict(timers)
        self.source.put(list(timers.values()))
        self.queue.rewind(height)

    @rule(payers=st.sets(st.sampled_from([b"0", b"1", b"2"])), blocks=st.integers(0, 60), sequence=st.integers(-1, 60))
    def walk_without_some_payers(self, payers: set[bytes], blocks: int, sequence: int) -> None:
        """A payer that is left out in the middle of a walk has no timer in the rest of it."""
        after = max(self.now - blocks, 0), sequence
        out: set[bytes] = set()
        expected = [row for row in self.due() if row[:2] > after]
        walked = []
        for row in self.queue.due(self.now, after, out.__contains__):
            walked.append(row)
            if self.timers[row[2]].fee_payer in payers:
                out.add(self.timers[row[2]].fee_payer)
        first: set[bytes] = set()
        for row in list(expected):
            payer = self.timers[row[2]].fee_payer
            if payer in first & payers:
                expected.remove(row)
            first.add(payer)
        assert walked == expected

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
        rows = sorted((timer.height, timer.sequence, timer.timer_id) for timer in self.timers.values())
        assert self.queue.next_due_height() == min((row[0] for row in rows), default=None)
        assert list(self.queue.due(self.now)) == self.due()
        due = [timer for timer in self.timers.values() if timer.height <= self.now]
        expired = [timer for timer in due if timer.expires_at < self.now]
        by_expiry = sorted((timer.expires_at, timer.height, timer.sequence) for timer in expired)
        assert [(height, sequence) for height, sequence, _ in self.queue.expired(self.now)] == [
            (height, sequence) for _, height, sequence in by_expiry
        ]
        assert (self.queue.due_count, self.queue.expired_count) == (len(due), len(expired))
        next_death = min((timer.expires_at for timer in due if timer not in expired), default=None)
        if next_death is not None:
            bound = self.queue.next_expiry()
            assert bound is not None
            assert self.now <= bound <= next_death
        for height, _, timer_id in rows:
            assert self.queue.height_of(timer_id) == height
            assert self.queue.tier(timer_id) == self.tier(height)
            assert self.queue.ids_at(height) == tuple(row[2] for row in rows if row[0] == height)

    def commit(self) -> None:
        self.source.put(list(self.timers.values()))
        self.queue.check_invariants()
        self.history.append((self.now, dict(self.timers)))
        statistics = self.queue.statistics()
        tiers = [self.tier(height) for height in (timer.height for timer in self.timers.values())]
        assert statistics.ring_timers == tiers.count("ring")
        assert statistics.epoch_timers == tiers.count("epoch")
        assert statistics.overflow_timers == tiers.count("overflow")

    def alive(self) -> list[Pending]:
        return [timer for timer in self.timers.values() if timer.height <= self.now <= timer.expires_at]

    def due(self) -> list[Row]:
        return sorted((timer.height, timer.sequence, timer.timer_id) for timer in self.alive())

    def tier(self, height: int) -> str:
        """Count the epochs from the present one up to the height's, one by one where that decides."""
        start = self.now - self.now % self.calendar.epoch_length
        if height < start + self.calendar.epoch_length:
            return "ring"
        reach = start + self.calendar.epoch_length * (self.calendar.epoch_count + 1)
        return "epoch" if height < reach else "overflow"


QueueHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueueHistory = pytest.mark.spec("Q-01", "Q-02", "Q-03", "Q-04", "Q-05", "F-05")(QueueHistory.TestCase)
