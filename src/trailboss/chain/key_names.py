"""State entries in words: what a key names, and the fields of what it holds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from trailboss.crypto.digest import keccak256
from trailboss.governance.markets import AUCTION_KEY, CARRIED_HITS_KEY, GLOBALBOX_KEY
from trailboss.governance.parameters import EPOCHAL, GOVERNED, decode_change
from trailboss.governance.rules import (
    BARRED_KEY,
    BASEFEE_CONFIG,
    BASEFEES_KEY,
    DEFERRED_KEY,
    DEPLOYERS_KEY,
    ECONOMY_KEY,
    JOINING_KEY,
    LANE_MULTIPLIERS,
    MAILBOX_KEY,
    SCHEDULER_KEY,
    TIMER_CONFIG,
)
from trailboss.model.actors import Account
from trailboss.model.auction import AuctionState
from trailboss.model.configs import (
    BarredPayers,
    BasefeeConfig,
    Basefees,
    DeferredCall,
    Economy,
    JoiningGaps,
    LaneMultipliers,
    MailboxEnds,
    Message,
    SchedulerTotals,
    TimerConfig,
    amount_of,
)
from trailboss.model.globalbox import CarriedHits, EndedTimer, GlobalboxState, MailboxEntry
from trailboss.model.timers import Timer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U16_MAX
from trailboss.state.keys import (
    ACCOUNTS,
    DEFERRED_NUMBERS,
    ENDED_NUMBERS,
    FIRE_NUMBERS,
    MAILBOX,
    STORAGE,
    TIMERS,
    code_key,
    mailbox_major,
    storage_address,
    timer_height,
    timer_id,
)
from trailboss.state.slots import decode_slot

SHOWN_BYTES_MAX: Final = 40
"""A longer value is cut off; its length stands behind it."""
ABSENT: Final = "absent"

_CONFIGURATIONS: Final[Mapping[bytes, tuple[str, type[msgspec.Struct]]]] = MappingProxyType(
    {
        BASEFEES_KEY: ("basefees of the next block", Basefees),
        ECONOMY_KEY: ("supply and burn", Economy),
        SCHEDULER_KEY: ("timer totals", SchedulerTotals),
        MAILBOX_KEY: ("ends of the mailbox", MailboxEnds),
        DEFERRED_KEY: ("ends of the line of deferred transactions", MailboxEnds),
        JOINING_KEY: ("due timers that have yet to join", JoiningGaps),
        BARRED_KEY: ("due timers that have not joined because their payers cannot pay", BarredPayers),
        AUCTION_KEY: ("rescales of the auction", AuctionState),
        GLOBALBOX_KEY: ("running numbers of Globalbox", GlobalboxState),
        CARRIED_HITS_KEY: ("keys that count as modified in the next block", CarriedHits),
    }
)
_GOVERNED_RECORDS: Final[Mapping[bytes, type[msgspec.Struct]]] = MappingProxyType(
    {TIMER_CONFIG: TimerConfig, BASEFEE_CONFIG: BasefeeConfig, LANE_MULTIPLIERS: LaneMultipliers}
)
"""Slots of the system actor that governance keeps records in."""
_AMOUNTS: Final = frozenset(
    {
        "balance", "burned", "cell", "cell_basefee", "cycle", "cycle_basefee", "max_basefee", "min_basefee",
        "reserved", "supply",
    }
)  # fmt: skip
_ADDRESSES: Final = frozenset({"actor", "fee_payer", "owner", "payer", "proposer", "sender", "target", "agent"})


def key_words(key: bytes, value: bytes) -> str:
    """Return what a full state key names; a hash in it is resolved by the value under the key."""
    namespace = key[:1]
    if namespace == ACCOUNTS:
        return f"account {Address(key[1:])}"
    if namespace == STORAGE:
        name, _ = decode_slot(value)
        return f"slot {octet_words(name)} of actor {storage_address(key)}"
    if namespace == TIMERS:
        return f"timer {timer_id(key)} due at height {timer_height(key)}"
    if namespace == MAILBOX:
        return _mailbox_words(mailbox_major(key))
    if key in _CONFIGURATIONS:
        return _CONFIGURATIONS[key][0]
    if key == DEPLOYERS_KEY:
        return "system deployers"
    code_hash = keccak256(value)
    return f"code 0x{code_hash.hex()}" if key == code_key(code_hash) else f"configuration 0x{key[1:].hex()}"


def _mailbox_words(number: int) -> str:
    """Return what the number of an entry names: each kind of entries has a range of its own."""
    if number >= FIRE_NUMBERS:
        return f"delivery {number - FIRE_NUMBERS} in the mailbox of Globalbox"
    if number >= ENDED_NUMBERS:
        return f"ended timer {number - ENDED_NUMBERS}"
    if number >= DEFERRED_NUMBERS:
        return f"deferred transaction {number - DEFERRED_NUMBERS}"
    return f"message {number} of the mailbox"


def _mailbox_kind(key: bytes) -> type[msgspec.Struct]:
    number = mailbox_major(key)
    kinds = (FIRE_NUMBERS, MailboxEntry), (ENDED_NUMBERS, EndedTimer), (DEFERRED_NUMBERS, DeferredCall), (0, Message)
    return next(kind for first, kind in kinds if number >= first)


def value_words(key: bytes, left: bytes | None, right: bytes | None) -> tuple[str, str]:
    """Return what two states hold under one key: of two records the fields that differ, else all of it."""
    ours, theirs = _fields(key, left), _fields(key, right)
    if left is not None and right is not None:
        differing = [name for name in ours if ours[name] != theirs.get(name)]
        ours, theirs = ({name: fields[name] for name in differing} for fields in (ours, theirs))
    return _joined(ours), _joined(theirs)


def field_words(name: str, value: object) -> str:
    """Return the value of a record's field; its name separates amounts and addresses from other bytes."""
    if isinstance(value, msgspec.Struct):
        return f"({_joined({each: field_words(each, getattr(value, each)) for each in value.__struct_fields__})})"
    if not isinstance(value, bytes):
        return repr(str(value)) if isinstance(value, str) else str(value)
    if name in _AMOUNTS:
        return str(amount_of(value))
    if name in _ADDRESSES and value:
        return str(Address(value))
    if isinstance(value, Address):
        return str(value)
    return octet_words(value)


def octet_words(octets: bytes) -> str:
    """Return bytes as quoted text if they are printable, else as hexadecimal digits; a long value is cut off."""
    shown = octets[:SHOWN_BYTES_MAX]
    rest = f"… ({len(octets)} bytes)" if len(octets) > SHOWN_BYTES_MAX else ""
    text = shown.decode(errors="replace")
    return (repr(text) if text and text.isprintable() and "\ufffd" not in text else f"0x{shown.hex()}") + rest


def _joined(fields: dict[str, str]) -> str:
    return ", ".join(f"{name} {words}".strip() for name, words in fields.items()) or ABSENT


def _fields(key: bytes, value: bytes | None) -> dict[str, str]:
    if value is None:
        return {}
    namespace = key[:1]
    if namespace == STORAGE:
        return _slot_fields(storage_address(key), *decode_slot(value))
    if key == DEPLOYERS_KEY:
        addresses = [value[at : at + Address.WIDTH] for at in range(0, len(value), Address.WIDTH)]
        return {"": " ".join(str(Address(address)) for address in addresses)}
    kinds: dict[bytes, type[msgspec.Struct]] = {ACCOUNTS: Account, TIMERS: Timer}
    kind = _mailbox_kind(key) if namespace == MAILBOX else kinds.get(namespace)
    if key in _CONFIGURATIONS:
        kind = _CONFIGURATIONS[key][1]
    if kind is None:
        return {"": octet_words(value)}
    return _record_fields(value, kind)


def _slot_fields(actor: Address, name: bytes, value: bytes) -> dict[str, str]:
    # System addresses are numbers of two bytes; no other actor can have one, whatever it calls its slots.
    if int.from_bytes(actor, "big") <= U16_MAX:
        if name in _GOVERNED_RECORDS:
            return _record_fields(value, _GOVERNED_RECORDS[name])
        if name in GOVERNED:
            return {"": str(int.from_bytes(value, "big"))}
        if name in EPOCHAL:
            return {field: str(number) for field, number in decode_change(value)._asdict().items()}
    return {"": octet_words(value)}


def _record_fields(octets: bytes, kind: type[msgspec.Struct]) -> dict[str, str]:
    record = msgspec.msgpack.decode(octets, type=kind)
    return {name: field_words(name, getattr(record, name)) for name in record.__struct_fields__}
