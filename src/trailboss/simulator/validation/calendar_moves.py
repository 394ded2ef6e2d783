"""How often a waiting timer moves, and how often it is read: the calendar queue as a hierarchical wheel."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from trailboss.params import CalendarParams
from trailboss.primitives.units import U64_MAX
from trailboss.simulator.alone import FarTimers
from trailboss.simulator.streams import stream
from trailboss.simulator.validation.laws import Law, Reproduction, equal
from trailboss.timer_queue.bucket import Pending
from trailboss.timer_queue.placement import Tier
from trailboss.timer_queue.queue import TimerQueue

CALENDAR: Final = CalendarParams(ring_size=64, epoch_length=16, epoch_count=8)
LEVELS: Final = list(reversed(Tier))  # a timer moves towards the end of these, from overflow to ring
TIMERS: Final = 1_000
PLACED_UNTIL: Final = 400  # last height at which timers are placed
FARTHEST: Final = 400  # blocks ahead, so that all tiers are used
REWINDS: Final = 5
REWOUND: Final = 7  # blocks of each rewind
ID_WIDTH: Final = 4


class CountedTimers(FarTimers):
    """The timers of a source, with how often each was looked at, and how often a walk went on behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.scans = 0
        self.looked_at, self.taken = Counter[bytes](), Counter[bytes]()

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield timers as the source does."""
        self.scans += 1
        for timer in super().scan(height, timer_id):
            self.looked_at[timer.timer_id] += 1
            yield timer
            # A walk that ends at a timer has not taken it.
            self.taken[timer.timer_id] += 1


class Drive(Struct, frozen=True):
    """What a run of the queue came to."""

    source: CountedTimers
    moves: Counter[bytes]  # how often each timer has come into another tier
    back: int  # how many of these moves led away from the ring
    writes: int  # changes that the queue has asked for in blocks in which no timer was placed


def drive(rewinds: int) -> Drive:
    """Place timers at all distances and let the clock run until all are due, going back a few times on the way."""
    draws, source = stream(1, "calendar"), CountedTimers()
    queue, tiers = TimerQueue(CALENDAR, source), dict[bytes, Tier]()
    moves, back, writes = Counter[bytes](), 0, 0
    rewound_at = range(PLACED_UNTIL + REWOUND, PLACED_UNTIL + FARTHEST, FARTHEST // REWINDS)[:rewinds]
    for now in range(1, PLACED_UNTIL + FARTHEST + 1):
        queue.advance(now)
        if now in rewound_at:
            queue.rewind(now - REWOUND)
            queue.advance(now)
        placed: dict[bytes, Pending | None] = {}
        for number in range(len(tiers), TIMERS * min(now, PLACED_UNTIL) // PLACED_UNTIL):
            timer_id = number.to_bytes(ID_WIDTH, "big")
            timer = Pending(U64_MAX, number, timer_id, b"payer", now + int(draws.integers(1, FARTHEST + 1)))
            queue.place(timer)
            placed[timer_id] = timer
        source.commit(placed)
        writes += 0 if placed else len(queue.uncommitted())
        for timer_id, before in tiers.items():
            after = queue.tier(timer_id) or before
            moves[timer_id] += after is not before
            back += LEVELS.index(after) < LEVELS.index(before)
            tiers[timer_id] = after
        tiers |= {timer_id: queue.tier(timer_id) or Tier.RING for timer_id in placed}
    return Drive(source, moves, back, writes)


def migration() -> Law:
    """Return the bound of the moves, and the reads that they cost."""
    smooth, rewound = drive(0), drive(REWINDS)
    source = smooth.source
    looks, taken = source.looked_at.total(), source.taken.total()
    return Law(
        name="Moves between tiers",
        source='Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987',
        known=MIGRATION,
        readings=(
            equal(f"most moves of one of {TIMERS:,} timers", len(LEVELS) - 1, max(smooth.moves.values())),
            Reproduction("moves of a timer on average", 0, len(LEVELS) - 1, smooth.moves.total() / TIMERS),
            equal("moves away from the ring", 0, smooth.back),
            equal("writes that moves ask for", 0, smooth.writes),
            Reproduction("timers read into memory; the others were placed there", TIMERS // 2, TIMERS, taken),
            equal("most reads of one timer into memory", 1, max(source.taken.values())),
            Reproduction(
                "looks that took no timer, beside the scans, each of which ends at one", 0, source.scans, looks - taken
            ),
            Reproduction("scans, beside the timers read", 0, taken + 1, source.scans),
            equal(f"most reads of one timer with {REWINDS} rewinds", 1 + REWINDS, max(rewound.source.taken.values())),
        ),
    )


MIGRATION: Final = f"""
A hierarchical wheel of L levels moves a timer from level to level as its time comes near: L − 1 times at most, so that
a timer costs O(L) in all. The calendar queue has three tiers (overflow, epoch, ring), so two moves at most, and only
towards the ring. Its tiers are views of one sorted state: a move writes nothing, and a timer is read into memory once,
and once more after each rewind. Each scan of the state ends at one timer that it leaves. Here {TIMERS:,} timers are up
to {FARTHEST} blocks ahead, with a ring of {CALENDAR.ring_size}, epochs of {CALENDAR.epoch_length} blocks and
{CALENDAR.epoch_count} of them.
"""
