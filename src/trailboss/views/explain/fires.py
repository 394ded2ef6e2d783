"""The ways of a timer's fires through Globalbox and its mailbox, from the events that tell of them.

Spec: CIP-5old §8, CIP-5old §9, CIP-5old §10
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from trailboss.model import events as names
from trailboss.views.records import Event


class FireWay(Struct, frozen=True, kw_only=True):
    """One fire's way. Heights are those of blocks; None for what has not happened, or not yet.

    Attributes:
        fire_seq: Which fire of the timer, from 0.
        hit_height: Height from which its age counts: the due height, or that of the block whose change hit it.
        queued_at: Block that put it into Globalbox.
        materialized_at: Block that moved it to the mailbox.
        deliver_seq: Its number there.
        ended_at: Block in which it ran, or its timer ended.
        outcome: ``queued``, ``in mailbox``, ``ran``, ``reverted``, or ``gone``: its timer ended first.
        matched_keys: Watched keys that were modified, as far as its delivery has told.
    """

    fire_seq: int
    hit_height: int
    queued_at: int
    materialized_at: int | None = None
    deliver_seq: int | None = None
    ended_at: int | None = None
    outcome: str = "queued"
    matched_keys: tuple[bytes, ...] = ()


def fire_ways(events: Iterable[Event]) -> tuple[FireWay, ...]:
    """Return the way of each fire, in the order in which they were queued.

    Args:
        events: All of one timer, in order.
    """
    ways: list[FireWay] = []
    for event in events:
        if event.name == names.TIMER_QUEUED:
            facts = event.data
            ways.append(
                FireWay(fire_seq=facts["fire_seq"], hit_height=facts["hit_height"], queued_at=event.block_height)
            )
        else:
            ways = [_after(way, event) for way in ways]
    return tuple(ways)


def waits_words(ways: Sequence[FireWay], height: int) -> str:
    """Return how long fires have waited by a block, in words; empty if none did."""
    told = []
    for way in ways:
        last = height if way.ended_at is None else way.ended_at
        queued = (last + (way.ended_at is None) if way.materialized_at is None else way.materialized_at) - way.queued_at
        mailed = 0 if way.materialized_at is None else last + (way.ended_at is None) - way.materialized_at
        parts = [f"{_blocks(count)} in {where}" for count, where in ((queued, "Globalbox"), (mailed, "the mailbox"))]
        shown = [part for part, count in zip(parts, (queued, mailed), strict=True) if count]
        if shown:
            told.append(f"fire {way.fire_seq}: {' and '.join(shown)}")
    return "; ".join(told)


def _after(way: FireWay, event: Event) -> FireWay:
    """Return a way after an event of its timer."""
    facts, height = event.data, event.block_height
    if event.name in names.TIMER_ENDINGS:
        # What is in the mailbox runs without its timer.
        return replace(way, outcome="gone", ended_at=height) if way.outcome == "queued" else way
    if event.name == names.TIMER_MATERIALIZED and way.outcome == "queued" and way.fire_seq == facts["fire_seq"]:
        return replace(way, materialized_at=height, deliver_seq=facts["deliver_seq"], outcome="in mailbox")
    if way.deliver_seq is None or way.deliver_seq != facts.get("deliver_seq") or way.ended_at is not None:
        return way
    if event.name == names.TIMER_FIRE_RECEIPT:
        outcome = "ran" if facts["status"] == "ok" else facts["status"]
        return replace(way, ended_at=height, outcome=outcome, matched_keys=tuple(facts["matched_keys"]))
    return way


def _blocks(count: int) -> str:
    return f"{count:,} block{'' if count == 1 else 's'}"
