"""Events: what happened, by name, with canonical data; and what actors print, outside consensus."""

from typing import Final

import msgspec

TIMER_SCHEDULED: Final = "timer.scheduled"
TIMER_FIRED: Final = "timer.fired"
TIMER_DEFERRED: Final = "timer.deferred"
TIMER_EXTENDED: Final = "timer.extended"
TIMER_CANCELLED: Final = "timer.cancelled"
TIMER_EXPIRED: Final = "TimerExpired"
TIMER_UNFUNDED: Final = "TimerCancelledInsufficientFunds"
TIMER_CANCELLED_BY_GOVERNANCE: Final = "timer.cancelled_by_governance"
TIMER_EXTENDED_BY_GOVERNANCE: Final = "timer.extended_by_governance"
TIMER_CONFIG_UPDATED: Final = "timer_config.updated"
BASEFEE_CONFIG_UPDATED: Final = "basefee_config.updated"
LANE_MULTIPLIERS_UPDATED: Final = "lane_fee_multipliers.updated"
PARAMETER_SET: Final = "parameter.set"
ACTOR_DEPLOYED: Final = "actor.deployed"
ACTOR_UPGRADED: Final = "actor.upgraded"
MESSAGE_SENT: Final = "message.sent"
MESSAGE_DROPPED: Final = "message.dropped"
DEFERRED_CREATED: Final = "deferred.created"
DEFERRED_DROPPED: Final = "deferred.dropped"
TIMER_PRIORITY_CLAMPED: Final = "TimerPriorityClampedAtSchedule"
TIMER_ARGUMENT_DEPRECATED: Final = "timer.argument_deprecated"
LANE_ACTIVATED: Final = "lane.activated"
AGENT_SET: Final = "gba.set"
AGENT_FALLBACK: Final = "gba.fallback"
TIMER_DELAYED: Final = "timer.delayed"
TIMER_CANCELLED_BY_DELAY: Final = "timer.cancelled_by_delay"
TIMER_UPDATED: Final = "timer.updated"
TIMER_QUEUED: Final = "timer.queued"
TIMER_MATERIALIZED: Final = "timer.materialized"
TIMER_FIRE_RECEIPT: Final = "TimerFireReceipt"
TIMER_MOVED: Final = "timer.moved"
BALANCE_SET: Final = "development.balance_set"
STORAGE_SET: Final = "development.storage_set"
CODE_SET: Final = "development.code_set"
MOCK_SET: Final = "development.mock_set"
MOCKS_CLEARED: Final = "development.mocks_cleared"
CALL_MOCKED: Final = "development.call_mocked"

PROTOCOL_TOPICS: Final = frozenset(value for name, value in globals().items() if name.isupper())
"""Every topic above. Actors cannot emit them, so protocol events are authentic."""

TIMER_ENDINGS: Final = {
    TIMER_FIRED: "fired",
    TIMER_UNFUNDED: "unfunded",
    TIMER_EXPIRED: "expired",
    TIMER_CANCELLED: "cancelled",
    TIMER_CANCELLED_BY_GOVERNANCE: "cancelled",
    TIMER_CANCELLED_BY_DELAY: "cancelled",
}
"""The event that ends a timer, and how it ended; every timer gets exactly one. Decision: D-27, D-35."""


class EventRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event as the receipts root commits to it. Decision: D-27."""

    name: str  # topic
    emitter: bytes  # 20 bytes: the actor, or the system actor that emits the protocol's events
    data: bytes  # canonical CBOR of the clause's fields for protocol events; the actor's own bytes for its events
    timer_id: bytes = b""  # the timer it is about, or empty


CHARACTERS_MAX: Final = 8_192  # characters of one execution, and of one ``print``, that are kept


class PrintedLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line that an actor printed, or a warning about what it did."""

    actor: bytes  # actor whose handler ran, 20 bytes
    handler: str
    text: str  # the line, without control characters
    is_warning: bool = False  # whether the chain emits it, not the actor
