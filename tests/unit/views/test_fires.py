"""The ways of fires, from events alone."""

from trailboss.primitives.octets import Address, Hash32
from trailboss.views.explain.life import FirePath, fire_paths, waits_words
from trailboss.views.records import Event


def event(name: str, height: int, **facts: object) -> Event:
    """Return an event of the one timer that these are about."""
    return Event(name, Address(bytes(20)), facts, b"", height, Hash32(bytes(32)))


def queued(number: int, height: int) -> Event:
    return event("timer.queued", height, fire_seq=number, hit_height=height)


def moved(number: int, height: int) -> Event:
    return event("timer.materialized", height, fire_seq=number, deliver_seq=40 + number)


def ran(number: int, height: int, status: str = "ok") -> Event:
    return event(
        "TimerFireReceipt", height, fire_seq=number, deliver_seq=40 + number, status=status, matched_keys=[b"k"]
    )


def test_way_is_followed_from_the_queue_to_its_end() -> None:
    """Each fire by its number; what is not there yet is None."""
    ways = fire_paths([queued(0, 5), moved(0, 7), queued(1, 8), ran(0, 9), moved(1, 9)])
    assert ways == (
        FirePath(
            fire_seq=0, hit_height=5, queued_at=5, materialized_at=7, deliver_seq=40, ended_at=9, outcome="ran",
            matched_keys=(b"k",),
        ),
        FirePath(fire_seq=1, hit_height=8, queued_at=8, materialized_at=9, deliver_seq=41, outcome="in mailbox"),
    )  # fmt: skip
    assert waits_words(ways, 9) == (
        "fire 0: 2 blocks in Globalbox and 2 blocks in the mailbox; fire 1: 1 block in Globalbox and 1 block in the "
        "mailbox"
    )


def test_fire_is_gone_with_its_timer_while_it_is_queued_and_runs_without_it_from_the_mailbox() -> None:
    """Cancelling reaches what is in Globalbox only. Spec: CIP-5old §6.2."""
    events = [queued(0, 5), moved(0, 5), queued(1, 6), event("timer.cancelled", 8, refund=0), ran(0, 9)]
    assert [(way.outcome, way.ended_at) for way in fire_paths(events)] == [("ran", 9), ("gone", 8)]
    assert waits_words(fire_paths(events), 20) == "fire 0: 4 blocks in the mailbox; fire 1: 2 blocks in Globalbox"


def test_fire_is_reverted_when_its_delivery_says_so() -> None:
    """Only the delivery of its own number counts."""
    events = [queued(0, 5), moved(0, 5), queued(1, 5), moved(1, 5), ran(1, 6, "reverted")]
    assert [way.outcome for way in fire_paths(events)] == ["in mailbox", "reverted"]


def test_nothing_is_told_when_a_fire_ran_at_once() -> None:
    """Queued, moved and delivered in one block."""
    assert waits_words(fire_paths([queued(0, 5), moved(0, 5), ran(0, 5)]), 9) == ""
    assert fire_paths([event("timer.fired", 5)]) == ()
