"""What a frame asks of the chain beyond its own state, as data, applied when its transaction commits.

Spec: CIP-5 §4.3
"""

from dataclasses import dataclass

from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer


@dataclass(frozen=True, slots=True)
class TimerScheduled:
    """A timer accepted by the host call; it becomes due only in a later block."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class TimerCancelled:
    """A live timer cancelled by its owner, or by governance."""

    timer: Timer
    by_governance: bool


@dataclass(frozen=True, slots=True)
class ReservedTimerCancelled:
    """A due timer of this block, already pre-charged, cancelled before its turn. Decision: D-07."""

    timer: Timer
    by_governance: bool


@dataclass(frozen=True, slots=True)
class TimerExtended:
    """A timer whose last height moved. ``timer`` is the record after the change."""

    timer: Timer
    by_governance: bool


@dataclass(frozen=True, slots=True)
class EventEmitted:
    """An event of the actor's own."""

    event: EventRecord


@dataclass(frozen=True, slots=True)
class MessageSent:
    """A message to another actor, delivered at the end of the block. Decision: D-42."""

    sender: bytes
    target: bytes
    payload: bytes


Effect = TimerScheduled | TimerCancelled | ReservedTimerCancelled | TimerExtended | EventEmitted | MessageSent
