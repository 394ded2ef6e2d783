"""The paths of a timer's fires through Globalbox and its mailbox, from its events.

Spec: CIP-5old §8, CIP-5old §9, CIP-5old §10
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from trailboss.model import events as names
from trailboss.views.records import Event
from trailboss.views.text import counted


class FirePath(Struct, frozen=True, kw_only=True):
    """One fire's path. Heights are those of blocks; None for what has not happened, or not yet."""

    fire_seq: int  # which fire of the timer, from 0
    hit_height: int  # height from which its age counts: the due height, or that of the block whose change hit it
    queued_at: int  # block that put it into Globalbox
    materialized_at: int | None = None  # block that moved it to the mailbox
    deliver_seq: int | None = None  # its number there
    ended_at: int | None = None  # block in which it ran, or its timer ended
    outcome: str = "queued"  # ``queued``, ``in mailbox``, ``ran``, ``reverted``, or ``gone``: its timer ended first
    matched_keys: tuple[bytes, ...] = ()  # watched keys that were modified, as far as its delivery has reported them


def fire_paths(events: Iterable[Event]) -> tuple[FirePath, ...]:
    """Return the path of each fire, in the order in which they were queued.

    Args:
        events: All of one timer, in order.
    """
    paths: list[FirePath] = []
    for event in events:
        if event.name == names.TIMER_QUEUED:
            facts = event.data
            paths.append(
                FirePath(fire_seq=facts["fire_seq"], hit_height=facts["hit_height"], queued_at=event.block_height)
            )
        else:
            paths = [_after(path, event) for path in paths]
    return tuple(paths)


def waits_words(paths: Sequence[FirePath], height: int) -> str:
    """Return how long fires have waited by a block, in words; empty if none did."""
    waits = []
    for path in paths:
        # A fire that has not ended waits in the last block too.
        end = height + 1 if path.ended_at is None else path.ended_at
        moved = end if path.materialized_at is None else path.materialized_at
        counts = ((moved - path.queued_at, "Globalbox"), (end - moved, "the mailbox"))
        parts = [f"{counted(count, 'block')} in {where}" for count, where in counts if count]
        if parts:
            waits.append(f"fire {path.fire_seq}: {' and '.join(parts)}")
    return "; ".join(waits)


def _after(path: FirePath, event: Event) -> FirePath:
    """Return a path after an event of its timer."""
    facts, height = event.data, event.block_height
    if event.name in names.TIMER_ENDINGS:
        # What is in the mailbox runs without its timer.
        return replace(path, outcome="gone", ended_at=height) if path.outcome == "queued" else path
    if event.name == names.TIMER_MATERIALIZED and path.outcome == "queued" and path.fire_seq == facts["fire_seq"]:
        return replace(path, materialized_at=height, deliver_seq=facts["deliver_seq"], outcome="in mailbox")
    if path.deliver_seq is None or path.deliver_seq != facts.get("deliver_seq") or path.ended_at is not None:
        return path
    if event.name == names.TIMER_FIRE_RECEIPT:
        outcome = "ran" if facts["status"] == "ok" else facts["status"]
        return replace(path, ended_at=height, outcome=outcome, matched_keys=tuple(facts["matched_keys"]))
    return path
