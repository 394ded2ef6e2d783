"""What is measured, worked out by hand."""

import pytest

from trailboss.codec.canonical import encode_canonical
from trailboss.model.blocks import Block, Header, Origin, ReceiptRecord, Status
from trailboss.model.events import EventRecord
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Amount, Cells, Cycles
from trailboss.simulator.measures import Observer, Tally, jain_index, outcome_of, percentile

ANN, BOB = b"\x0a" * 20, b"\x0b" * 20


def identity(name: str) -> bytes:
    """Return the id of a timer with a name."""
    return name.encode().ljust(32)


@pytest.mark.parametrize(
    ("ascending", "percent", "expected"),
    [
        ([], 50, None),
        ([7], 1, 7),
        ([1, 2], 50, 1),
        ([1, 2, 3], 50, 2),
        (list(range(1, 101)), 95, 95),
        (list(range(1, 21)), 95, 19),
        (list(range(1, 20)), 95, 19),
        ([4, 8], 100, 8),
    ],
)
def test_percentile_is_the_least_value_that_so_many_do_not_exceed(
    ascending: list[int], percent: int, expected: int | None
) -> None:
    """Nearest rank: always one of the values."""
    assert percentile(ascending, percent) == expected


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], None),
        ([(0, 3), (0, 1)], None),
        ([(2, 4), (1, 2), (500, 1_000)], 10**9),
        ([(1, 1), (0, 1), (0, 1), (0, 1)], 250_000_000),
        ([(1, 1), (1, 2)], 900_000_000),
        ([(1, 1), (1, 2), (5, 0)], 900_000_000),
        ([(1, 3), (2, 3), (3, 3)], 857_142_857),
    ],
)
def test_jain_index_compares_shares_of_what_was_asked_for(shares: list[tuple[int, int]], expected: int | None) -> None:
    """Undefined without a fire; (1 + ½)² ÷ (2 · 1¼) = 0.9; (1 + 2 + 3)² ÷ (3 · 14) = 6/7."""
    assert jain_index(shares) == expected


def block(height: int, *receipts: ReceiptRecord, events: tuple[EventRecord, ...] = ()) -> Block:
    """Return a block of which nothing but this matters."""
    header = Header(1, 1, height, b"", 0, b"", b"", b"", b"", b"", b"", 0, 0, 0)
    return Block(header=header, hash=ZERO_HASH, receipts=receipts, events=events)


def scheduled(actor: bytes, name: str, height: int) -> EventRecord:
    """Return the event of a timer that was scheduled."""
    return EventRecord("timer.scheduled", actor, encode_canonical({"height": height}), identity(name))


def ended(how: str, name: str) -> EventRecord:
    """Return the event of a timer's end."""
    return EventRecord(how, b"", b"", identity(name))


def fire(name: str, *events: EventRecord, reverted: bool = False) -> ReceiptRecord:
    """Return the receipt of a fire that used 100 cycles, burned 1,000 and tipped 30."""
    return ReceiptRecord(
        origin=Origin.TIMER,
        origin_hash=b"",
        sender=b"",
        payer=b"",
        status=Status.REVERTED if reverted else Status.OK,
        error=None,
        cycles_used=Cycles(100),
        cells_used=Cells(0),
        reserved=Amount(0),
        fee_burned=Amount(1_000),
        tip=Amount(30),
        refund=Amount(0),
        return_value=b"",
        events=(*events, ended("timer.fired", name)),
        timer_id=identity(name),
    )


def test_outcome_is_that_of_the_story_when_it_is_told_in_blocks() -> None:
    """Ann's first timer is in time and sets a second, which comes 3 blocks late and reverts; Bob's all end unfired.

    One of Bob's waits and is due, one waits and is not.
    """
    observer = Observer(2)
    observer.follow(ANN, 0, 3)
    observer.follow(BOB, 1, 5)
    first = tuple(scheduled(BOB, name, height) for name, height in (("x", 5), ("u", 6), ("c", 7), ("w", 8), ("z", 99)))
    assert observer.observe(block(1, events=(scheduled(ANN, "a", 4), *first))) == []
    assert observer.oldest(4) == (0, 0)
    assert observer.observe(block(4, fire("a", scheduled(ANN, "b", 6)))) == [(ANN, 0)]
    assert observer.oldest(8) == (2, 3)
    endings = (ended("TimerExpired", "x"), ended("TimerCancelledInsufficientFunds", "u"), ended("timer.cancelled", "c"))
    assert observer.observe(block(9, fire("b", reverted=True), events=endings)) == [(ANN, 3)]
    assert observer.oldest(9) == (0, 1)
    observer.finish(10)

    ann, bob = (outcome_of([observer.tallies[actor]]) for actor in (ANN, BOB))
    assert (ann.asked, ann.scheduled, ann.delivered, ann.reverted, ann.delayed, ann.waiting) == (3, 2, 2, 1, 1, 0)
    assert (ann.late_p50, ann.late_p95, ann.late_max) == (0, 3, 3)
    assert (ann.paid, ann.burned, ann.tips, ann.cycles_used) == (2_060, 2_000, 60, 200)
    assert (bob.scheduled, bob.delivered, bob.expired, bob.unfunded, bob.cancelled) == (5, 0, 1, 1, 1)
    assert (bob.waiting, bob.overdue, bob.oldest, bob.late_p50, bob.jain) == (2, 1, 2, None, None)
    both = outcome_of(list(observer.tallies.values()))
    assert (both.actors, both.asked, both.scheduled, both.jain) == (2, 8, 7, 500_000_000)


def test_outcome_is_refused_when_a_fire_has_no_event() -> None:
    """A timer that ran and did not end, or ended and did not run, is a bug and no number."""
    tally = Tally(asked=1, scheduled=1, lateness=[0])
    with pytest.raises(InvariantError, match="1 fires and 0 events of fires"):
        outcome_of([tally])
