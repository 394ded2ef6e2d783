"""What a frame asks of the chain beyond its own state, as data that applies when its transaction commits.

Spec: CIP-5 §4.3
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer


class TimerScheduled(Struct, frozen=True):
    """A timer accepted by the host call; it becomes due only in a later block."""

    timer: Timer  # its record
    facts: Mapping[str, object] = MappingProxyType({})  # further facts of its event


class TimerCancelled(Struct, frozen=True):
    """A live timer cancelled by its owner, or by governance."""

    timer: Timer
    by_governance: bool


class ReservedTimerCancelled(Struct, frozen=True):
    """A due timer of this block, already pre-charged, cancelled before its turn. Decision: D-07."""

    timer: Timer
    by_governance: bool


class TimerExtended(Struct, frozen=True):
    """A timer with another last height; ``timer`` is the new record."""

    timer: Timer
    by_governance: bool


class TimerMoved(Struct, frozen=True):
    """A timer that a development chain moved from another height; ``timer`` is the new record. Decision: D-69."""

    timer: Timer
    from_height: int


class TimerUpdated(Struct, frozen=True):
    """A timer with another payload, gas limit or bid; ``timer`` is the new record. Spec: CIP-5old §6.2."""

    timer: Timer
    bid: bytes


class CallDeferred(Struct, frozen=True):
    """A deferred transaction of an actor to itself, run at the end of the next block. Decision: D-88."""

    actor: bytes  # 20 bytes
    handler: str  # its handler
    size: int  # bytes of the payload
    number: int  # its place in the queue


# fmt: off
Effect = (  # anything that a frame asks for; much of it becomes an event and nothing else
    TimerScheduled | TimerCancelled | ReservedTimerCancelled | TimerExtended | TimerMoved | TimerUpdated | CallDeferred
    | EventRecord
)
# fmt: on
