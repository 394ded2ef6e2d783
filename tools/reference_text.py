"""What the reference pages say beyond what the code can tell: introductions, and a line on each event and host call.

Tests compare the fields of events and the prices of calls with what a chain does.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from trailboss.model import events
from trailboss.vm.timer_calls import AUCTION_TIMEOUT

PARAMS_INTRO: Final = """
# Parameters

Every number of the protocol. `mainnet` has the specification's values. The others change only what their columns name:
`minimal`, so that tests see the calendar wrap and overflow within forty blocks; `public`, so that entitlements are
enforced and the messages of strangers make no block late. Override any of them by its dotted path:
`LocalChain(params={"timers.max_timers_per_actor": 10_000})`.
"""
ERRORS_INTRO: Final = """
# Errors

A refusal names the value and the rule, and has changed nothing. In a receipt it is an object with `code`, `slug`,
`what` (what happened, with the values), `why` (the rule), `fix` (what to do) and `context` (the facts by name). Codes
and slugs do not change; they are the public node's where it has one.

"""
ERRORS_INSIDE: Final = """
## Inside an actor

A refused host call raises `pvm_host.HostError`. Its `name` is the slug, its `code` the number in the second column: the
public host's 1 to 8 where one fits. If the exception leaves the handler, the receipt carries the refusal's own code,
with the actor's traceback in its context. Any other exception that leaves a handler is E{other.code} `{other.slug}`.
Exhaustion cannot be caught: E{cycles.code} `{cycles.slug}`, E{cells.code} `{cells.slug}`, E{memory.code}
`{memory.slug}`.
"""
CALLS_INTRO: Final = """
# Host calls

What an actor can ask of the chain, as functions of `pvm_host`: a module to import, and a global name. The
public SDK calls the same functions. Addresses are 20 bytes, heights and amounts integers. An argument of a wrong type
raises TypeError, a refusal `pvm_host.HostError`; see [errors](errors.md). The price is in cycles and is charged before
the call does anything; cells come on top where the last column says so. A call that changes something is refused in a
read-only frame.

"""
CALLS_BY_MECHANISM: Final = """
## About timers, by mechanism

A chain has the calls of the mechanism that is in force. Another one raises `HostError` with the name `unsupported`,
and names the mechanism and its calls.

"""
CALLS_MISSING: Final = """
## Not implemented

These calls of the public host exist, and raise `HostError` with the name `unsupported`: {names}.

Some of them have a handler run in a later block, as a timer does: jobs of runners and subscriptions to events. The
others belong to tokens, intents, images and forks.
"""
CALLS_IMPORTS: Final = """
## What an actor may import

`pvm_host`, the public SDK `cowboy_sdk` and its public modules, `trailboss.sdk`, and of Python's own library the modules
below, with the names of Python 3.11 that do not depend on the machine. Any other import is refused when the actor is
deployed, E1101 `non_deterministic_code`, and the refusal says what there is instead.

"""
EVENTS_INTRO: Final = """
# Events

Every change of a timer leaves one event; what becomes of its fees in the timer lane may leave another. An event of an
execution is a part of its receipt; an event of the block itself, such as a timer that ended without running, belongs to
the block. Both are under the receipts root. The data of the protocol's events is canonical CBOR; `chain.events()` shows
it as a dict.

A timer ends with exactly one of these: {endings}.

"""


class EventEntry(NamedTuple):
    """What the page says about one event.

    Attributes:
        place: ``receipt`` of the execution that caused it, or ``block``.
        emitter: Who speaks.
        when: When it is emitted.
        fields: Names of its data's fields.
    """

    place: str
    emitter: str
    when: str
    fields: tuple[str, ...]


_ACTOR: Final = "the timer's actor"
_GOVERNANCE: Final = "governance actor"
_BASEFEE: Final = "basefee actor"

EVENTS: Final[Mapping[str, EventEntry]] = {
    events.TIMER_SCHEDULED: EventEntry(
        "receipt",
        _ACTOR,
        "a transaction, fire or message that scheduled the timer has committed; the two fees only if they are fixed "
        "with it, `gba` only if it names its agent, `kind`, `target` and `bid` only in Globalbox",
        (
            "timer_id",
            "height",
            "handler",
            "fee_payer",
            "gas_limit",
            "expires_at",
            "max_fee_per_cycle",
            "max_priority_fee_per_cycle",
            "gba",
            "kind",
            "target",
            "bid",
        ),
    ),
    events.TIMER_FIRED: EventEntry(
        "receipt",
        _ACTOR,
        "the timer's handler ran, whether it succeeded or reverted; the timer is gone. `tip` went to the proposer, "
        "`lane_burned` is the lane basefee's part of what was burned",
        (
            "timer_id",
            "reverted",
            "cycles_used",
            "cells_used",
            "fee_payer",
            "fee_paid",
            "refund",
            "blocks_deferred",
            "tip",
            "lane_burned",
        ),
    ),
    events.TIMER_EXPIRED: EventEntry(
        "block",
        _ACTOR,
        "the timer was due after its TTL had passed; it is gone without having run",
        ("timer_id", "expires_at", "current_height"),
    ),
    events.TIMER_UNFUNDED: EventEntry(
        "block",
        _ACTOR,
        "the timer was due and its payer held less than the fire can cost; it is gone without having run",
        ("timer_id", "fee_payer", "required", "available"),
    ),
    events.TIMER_DEFERRED: EventEntry(
        "block",
        _ACTOR,
        "the timer is due and has to wait, for the first time or for another reason than before",
        ("timer_id", "reason", "gas_limit", "height"),
    ),
    events.TIMER_CANCELLED: EventEntry(
        "receipt",
        _ACTOR,
        "the actor cancelled its timer; `refund` is the pre-charge returned, if it was due in this very block",
        ("timer_id", "refund"),
    ),
    events.TIMER_EXTENDED: EventEntry("receipt", _ACTOR, "the actor moved the timer's TTL", ("timer_id", "expires_at")),
    events.TIMER_CANCELLED_BY_GOVERNANCE: EventEntry(
        "receipt", _GOVERNANCE, "a system instruction cancelled the timer", ("timer_id", "refund")
    ),
    events.TIMER_EXTENDED_BY_GOVERNANCE: EventEntry(
        "receipt", _GOVERNANCE, "a system instruction moved the timer's TTL", ("timer_id", "expires_at")
    ),
    events.TIMER_CONFIG_UPDATED: EventEntry(
        "receipt",
        _BASEFEE,
        "TimerConfig has changed, from the next block on",
        ("max_ttl_blocks", "max_cycles_per_fire", "max_cells_per_fire", "max_timers_per_actor", "gc_cycles_per_block"),
    ),
    events.BASEFEE_CONFIG_UPDATED: EventEntry(
        "receipt",
        _BASEFEE,
        "BasefeeConfig has changed, from the next block on",
        (
            "alpha",
            "max_change_denom",
            "min_basefee",
            "max_basefee",
            "block_cycles_target",
            "block_cells_target",
            "block_access_target",
            "access_weight_scalar_ppm",
        ),
    ),
    events.LANE_MULTIPLIERS_UPDATED: EventEntry(
        "receipt",
        _BASEFEE,
        "the lane fee multipliers have changed, from the next block on",
        ("user", "runner", "timer", "system"),
    ),
    events.PARAMETER_SET: EventEntry(
        "receipt",
        _BASEFEE,
        "a governed parameter has changed, from the next block on; one of Globalbox from `height` on, where the next "
        "governance epoch begins",
        ("key", "value", "height"),
    ),
    events.ACTOR_DEPLOYED: EventEntry("receipt", "the actor", "an actor was made", ("actor", "owner", "code_hash")),
    events.ACTOR_UPGRADED: EventEntry("receipt", "the actor", "an actor's code was replaced", ("actor", "code_hash")),
    events.MESSAGE_SENT: EventEntry(
        "receipt",
        "the sending actor",
        "a message waits for the end of the block, or a runner job for its reply; `job` is its number: D-113",
        ("target", "size", "job"),
    ),
    events.MESSAGE_DROPPED: EventEntry(
        "block",
        "the sending actor",
        "the sender could not pay for the delivery; the message is gone",
        ("sender", "target", "required", "available"),
    ),
    events.DEFERRED_CREATED: EventEntry(
        "receipt", "the actor", "a deferred transaction of the actor waits for the next block", ("handler", "size")
    ),
    events.DEFERRED_DROPPED: EventEntry(
        "block",
        "the actor",
        "who pays for the deferred transaction's origin could not pay for it; it is gone",
        ("handler", "payer", "required", "available"),
    ),
    events.TIMER_PRIORITY_CLAMPED: EventEntry(
        "receipt",
        _ACTOR,
        "the timer was scheduled with a tip above the room that its cap leaves over the lane basefee; it has that room "
        "instead",
        ("timer_id", "stated", "clamped"),
    ),
    events.TIMER_ARGUMENT_DEPRECATED: EventEntry(
        "receipt",
        _ACTOR,
        "the timer was scheduled with an argument that is withdrawn, and that the lane will refuse: `bid`",
        ("argument",),
    ),
    events.LANE_ACTIVATED: EventEntry(
        "block", _BASEFEE, "this is the first block under the rules of the timer lane", ("height", "basefee")
    ),
    events.AGENT_SET: EventEntry(
        "receipt", "the actor", "the actor chose its gas bidding agent; empty is none", ("agent",)
    ),
    events.AGENT_FALLBACK: EventEntry(
        "block",
        _ACTOR,
        "the timer offers the default agent's fees instead of its own agent's: from now on, or in this block only, if "
        "the reason is `budget`; in the auction until the agent is asked again",
        ("timer_id", "agent", "reason"),
    ),
    events.TIMER_DELAYED: EventEntry(
        "block",
        _ACTOR,
        "the timer is late in the auction, and this is told once; `action` says what follows: D-19",
        ("timer_id", "delay_count", "action"),
    ),
    events.TIMER_CANCELLED_BY_DELAY: EventEntry(
        "block",
        _ACTOR,
        "the timer was late in the auction and is gone without having run; `penalty` was burned: D-19",
        ("timer_id", "refund", "penalty"),
    ),
    events.TIMER_UPDATED: EventEntry(
        "receipt",
        _ACTOR,
        "the owner changed what later fires of a timer of Globalbox bring",
        ("timer_id", "payload_size", "gas_limit", "bid"),
    ),
    events.TIMER_QUEUED: EventEntry(
        "block",
        _ACTOR,
        "a fire entered Globalbox; `standing` is where it stands, and never changes: D-61",
        ("timer_id", "fire_seq", "hit_height", "standing"),
    ),
    events.TIMER_MATERIALIZED: EventEntry(
        "block",
        _ACTOR,
        "a fire moved from Globalbox to the mailbox; `reserved`, what it may cost at most, was taken from its owner",
        ("timer_id", "deliver_id", "deliver_seq", "fire_seq", "target", "reserved"),
    ),
    events.TIMER_FIRE_RECEIPT: EventEntry(
        "receipt",
        _ACTOR,
        "an entry of the mailbox ran; `due_height` is 0 for a state watch, whose timer lives on",
        (
            "timer_id",
            "deliver_id",
            "deliver_seq",
            "fire_seq",
            "target",
            "kind",
            "due_height",
            "matched_keys",
            "status",
            "cycles_used",
        ),
    ),
    events.TIMER_MOVED: EventEntry(
        "receipt",
        _GOVERNANCE,
        "the timer, which is to come, has another height; on a development chain only: D-69",
        ("timer_id", "from_height", "height"),
    ),
    events.BALANCE_SET: EventEntry(
        "receipt",
        _GOVERNANCE,
        "the account holds `after`, and the supply has moved by the difference; on a development chain only: D-69",
        ("account", "before", "after"),
    ),
    events.STORAGE_SET: EventEntry(
        "receipt",
        _GOVERNANCE,
        "a slot of the actor has another value, or is gone; on a development chain only: D-110",
        ("actor", "slot", "value"),
    ),
    events.CODE_SET: EventEntry(
        "receipt",
        _GOVERNANCE,
        "the address has this code, as an actor; on a development chain only: D-110",
        ("account", "code_hash"),
    ),
    events.MOCK_SET: EventEntry(
        "receipt",
        _GOVERNANCE,
        "calls of this handler are mocked; a `payload` or `times` of null stands for all; on a development chain only: "
        "D-110",
        ("target", "handler", "payload", "returns", "reverts", "times"),
    ),
    events.MOCKS_CLEARED: EventEntry(
        "receipt", _GOVERNANCE, "so many mocks are removed; on a development chain only: D-110", ("count",)
    ),
    events.CALL_MOCKED: EventEntry(
        "receipt",
        "the calling actor",
        "a mock answered the call, or failed it where `ok` is false; on a development chain only: D-110",
        ("target", "handler", "payload", "ok"),
    ),
}
"""Every event of the protocol. A test compares the fields with those of a chain on which each of them happens."""


class CallEntry(NamedTuple):
    """What the page says about one host call.

    Attributes:
        prices: Parameters of `costs` that make up its price.
        what: What it does and returns, and its cells.
        other: The parameters of its other form, if it has two.
        other_what: What that form does.
    """

    prices: tuple[str, ...]
    what: str
    other: tuple[str, ...] = ()
    other_what: str = ""


_OPTIONAL: Final = "arguments that are None or left out take the default"
CALLS: Final[Mapping[str, CallEntry]] = {
    "context": CallEntry(
        ("context_read",),
        "a dict of the facts of this execution: `sender`, `actor_addr`, ..; in a fire of Globalbox also `deliver_id` "
        "and `trigger_ctx`: [D-83](../decisions/0083-delivery-facts.md)",
    ),
    "current_block": CallEntry(("context_read",), "the height of the running block"),
    "block_height": CallEntry(("context_read",), "the same"),
    "runtime_config": CallEntry(("context_read",), "how the SDK compiles continuations: always `fsm`"),
    "self_address": CallEntry(("context_read",), "the running actor's address"),
    "actor_owner": CallEntry(("context_read",), "its deployer"),
    "gas_left": CallEntry(("context_read",), "the cycles that this frame may still use"),
    "charge_gas": CallEntry((), "uses up `amount` cycles"),
    "randomness": CallEntry(("randomness",), "32 bytes, known before the block: D-43"),
    "keccak256": CallEntry(("keccak_word",), "32 bytes; the price is for each 32 bytes begun"),
    "verify_signature": CallEntry(("signature_check",), "whether an Ed25519 signature is valid; `algorithm` is 2"),
    "get_state": CallEntry(("state_read",), "the value of a slot, or None"),
    "set_state": CallEntry(("state_write",), "writes a slot; a cell for each byte of key and value"),
    "delete_state": CallEntry(("state_delete",), "deletes a slot; one that is not there is no error"),
    "set_reserved_state": CallEntry(
        ("state_write",), "for the SDK's own slot `__INITIALIZED__` only; cells as `set_state`"
    ),
    "delete_reserved_state": CallEntry(("state_delete",), "the same"),
    "scan_state_prefix": CallEntry(
        ("state_scan_base", "state_scan_row"),
        "pairs of slot and value in ascending order; the second price is for each row asked for, a cell for each byte "
        "returned",
    ),
    "schedule_timer": CallEntry(
        ("timer_schedule",),
        "a timer's id; cells: its payload, and `costs.timer_index_cells`; who pays: see D-08; the two fees are for the "
        "active timer lane alone: see D-16; `gas_bidding_agent`, in their place, prices this timer: see D-86; `bid` is "
        "withdrawn: see D-55",
    ),
    "schedule_timer_ex": CallEntry(
        ("timer_schedule",), f"the same with a payer, a gas limit and a TTL; {_OPTIONAL}; six positional: see D-03"
    ),
    "set_gas_bidding_agent": CallEntry(
        ("state_write",), "has another actor, this one or nobody price the timers that it schedules from now on: D-17"
    ),
    "timer_lane": CallEntry(
        ("context_read",),
        "a dict: whether the timer lane is `active`, its basefee and the median tip, the basefees of a fire, the cap "
        "of one fire, the tier multipliers",
    ),
    "extend_timer": CallEntry(("timer_extend",), "moves the TTL of an own timer; one that is gone is no error"),
    "cancel_timer": CallEntry(
        ("timer_cancel",),
        "in Globalbox, ends an own timer and returns whether it was there to end",
        ("timer_id",),
        "ends an own timer; one that is gone is no error",
    ),
    "set_timeout": CallEntry(
        ("timer_schedule",),
        "in Globalbox, the id of a timer that runs a handler of `target`; the last four may be left out; cells: its "
        "payload, its client nonce, and `costs.timer_index_cells`",
        AUCTION_TIMEOUT,
        "in the auction, the id of a timer for which the actor `gba` bids; cells: its payload, and "
        "`costs.timer_index_cells`",
    ),
    "set_state_watch": CallEntry(
        ("timer_schedule",),
        "the id of a timer that fires whenever a key has changed that begins with one of `watch_keys`; the last four "
        "may be left out; cells: its payload, its keys, its client nonce, and `costs.timer_index_cells` for itself and "
        "for each key",
    ),
    "update_timer": CallEntry(
        ("timer_extend",),
        "changes what later fires of an own timer bring, and returns whether there will be one; what is None or left "
        "out stays as it is; a cell for each byte of a new payload",
    ),
    "emit_event": CallEntry(("event_emit",), "emits an event; a cell for each byte of name and data"),
    "send_message": CallEntry(
        ("message_send",), "a message for `handle_message`, delivered at the end of the block; a cell for each byte"
    ),
    "create_deferred_tx": CallEntry(
        ("message_send",),
        "calls a handler of this actor at the end of the next block, on the gas that this execution has left; a cell "
        "for each byte of name and payload: see D-88",
    ),
    "call_actor": CallEntry(
        ("actor_call",), "what a handler of another actor returns; its frame is charged to this one as well"
    ),
    "transfer_balance": CallEntry(("transfer_balance",), "moves money of the running actor"),
    "upgrade_self": CallEntry(
        ("deploy", "deploy_byte"),
        "replaces the running actor's code from the next frame on, and its manifest if one is given; the second price "
        "is for each byte of code; a cell for each byte of code and manifest; `routes` and `route_sponsorship` are "
        "None: see D-119",
    ),
}
"""Every host call that is implemented. A test charges each of them and compares the price."""
