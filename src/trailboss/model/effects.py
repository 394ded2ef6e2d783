"""What a frame asks of the chain beyond its own state, as data, applied when its transaction commits.

Spec: CIP-5 §4.3
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer


class TimerScheduled(Struct, frozen=True):
    """A timer accepted by the host call; it becomes due only in a later block.

    Attributes:
        timer: Its record.
        facts: What its event shows besides.
    """

    timer: Timer
    facts: Mapping[str, object] = MappingProxyType({})


class TimerCancelled(Struct, frozen=True):
    """A live timer cancelled by its owner, or by governance."""

    timer: Timer
    by_governance: bool


class ReservedTimerCancelled(Struct, frozen=True):
    """A due timer of this block, already pre-charged, cancelled before its turn. Decision: D-07."""

    timer: Timer
    by_governance: bool


class TimerExtended(Struct, frozen=True):
    """A timer whose last height moved. ``timer`` is the record after the change."""

    timer: Timer
    by_governance: bool


class TimerMoved(Struct, frozen=True):
    """A timer that a development chain has given another height. Decision: D-69.

    Attributes:
        timer: Its record after the change.
        from_height: Where it was due before.
    """

    timer: Timer
    from_height: int


class TimerUpdated(Struct, frozen=True):
    """A timer with another payload, gas limit or bid.

    Spec: CIP-5old §6.2

    Attributes:
        timer: Its record after the change.
        bid: Its bid then, as the state holds it.
    """

    timer: Timer
    bid: bytes


class EventEmitted(Struct, frozen=True):
    """An event of the actor's own."""

    event: EventRecord


class MessageSent(Struct, frozen=True):
    """A message to another actor, delivered at the end of the block. Decision: D-42."""

    sender: bytes
    target: bytes
    payload: bytes


class CallDeferred(Struct, frozen=True):
    """A deferred transaction of an actor to itself, run at the end of the next block. Decision: D-88.

    Attributes:
        actor: 20 bytes.
        handler: What will be called.
        size: Bytes of the payload.
        number: Its place in the line.
    """

    actor: bytes
    handler: str
    size: int
    number: int


class TimerPriorityClamped(Struct, frozen=True):
    """A timer's priority was above what its fee cap leaves over the lane basefee. Spec: CIP-1v3 §6.

    Attributes:
        timer: The timer, already scheduled with the lower one.
        stated: What its actor gave, base units per cycle.
        clamped: What it has instead, base units per cycle.
    """

    timer: Timer
    stated: int
    clamped: int


class TimerArgumentDeprecated(Struct, frozen=True):
    """A timer was scheduled with an argument that is withdrawn, and ignored for the time being. Spec: CIP-1v3 §6."""

    timer: Timer
    argument: str


class AgentSet(Struct, frozen=True):
    """An actor has chosen its gas bidding agent, 20 bytes, or none, empty. Decision: D-17."""

    actor: bytes
    agent: bytes


Effect = (
    TimerScheduled
    | TimerCancelled
    | ReservedTimerCancelled
    | TimerExtended
    | TimerMoved
    | TimerUpdated
    | EventEmitted
    | MessageSent
    | CallDeferred
    | TimerPriorityClamped
    | TimerArgumentDeprecated
    | AgentSet
)
