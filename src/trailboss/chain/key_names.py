"""State entries in words: what a key names, and the fields of what it holds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from trailboss.crypto.digest import keccak256
from trailboss.governance import rules
from trailboss.governance.markets import AUCTION_KEY, CARRIED_HITS_KEY, GLOBALBOX_KEY
from trailboss.governance.parameters import EPOCHAL, GOVERNED, decode_change
from trailboss.model import configs
from trailboss.model.actors import Account
from trailboss.model.auction import AuctionState
from trailboss.model.globalbox import CarriedHits, EndedTimer, GlobalboxState, MailboxEntry
from trailboss.model.timers import Timer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U16_MAX
from trailboss.state import keys
from trailboss.state.slots import decode_slot

SHOWN_BYTES_MAX: Final = 40  # a longer value is cut off; its length stands behind it
ABSENT: Final = "absent"

_CONFIGURATIONS: Final[Mapping[bytes, tuple[str, type[msgspec.Struct]]]] = MappingProxyType(
    {
        rules.BASEFEES_KEY: ("basefees of the next block", configs.Basefees),
        rules.ECONOMY_KEY: ("supply and burn", configs.Economy),
        rules.SCHEDULER_KEY: ("timer totals", configs.SchedulerTotals),
        rules.MAILBOX_KEY: ("ends of the mailbox", configs.MailboxEnds),
        rules.DEFERRED_KEY: ("ends of the line of deferred transactions", configs.MailboxEnds),
        rules.JOINING_KEY: ("due timers that have yet to join", configs.JoiningGaps),
        rules.BARRED_KEY: ("due timers that have not joined because their payers cannot pay", configs.BarredPayers),
        rules.RUNNER_KEY: ("runner of the development chain", configs.Runner),
        rules.MOCKS_KEY: ("mocked calls", configs.CallMocks),
        AUCTION_KEY: ("rescales of the auction", AuctionState),
        GLOBALBOX_KEY: ("running numbers of Globalbox", GlobalboxState),
        CARRIED_HITS_KEY: ("keys that count as modified in the next block", CarriedHits),
    }
)
_GOVERNED_RECORDS: Final[Mapping[bytes, type[msgspec.Struct]]] = MappingProxyType(
    {
        rules.TIMER_CONFIG: configs.TimerConfig,
        rules.BASEFEE_CONFIG: configs.BasefeeConfig,
        rules.LANE_MULTIPLIERS: configs.LaneMultipliers,
    }
)
"""Slots of the system actor that governance keeps records in."""
_MAILBOX_KINDS: Final[tuple[tuple[int, type[msgspec.Struct], str], ...]] = (
    (keys.FIRE_NUMBERS, MailboxEntry, "delivery {} in the mailbox of Globalbox"),
    (keys.ENDED_NUMBERS, EndedTimer, "ended timer {}"),
    (keys.DEFERRED_NUMBERS, configs.DeferredCall, "deferred transaction {}"),
    (0, configs.Message, "message {} of the mailbox"),
)
"""The kinds of the mailbox's entries, each by the first number of its range, and what an entry is called."""
_AMOUNTS: Final = frozenset((
    "balance", "burned", "cell", "cell_basefee", "cycle", "cycle_basefee", "max_basefee", "min_basefee", "reserved",
    "supply",
))  # fmt: skip
_ADDRESSES: Final = frozenset({"actor", "fee_payer", "owner", "payer", "proposer", "sender", "target", "agent"})


def key_words(key: bytes, value: bytes) -> str:
    """Return what a full state key names; a hash in it is resolved by the value under the key."""
    namespace = key[:1]
    if namespace == keys.ACCOUNTS:
        return f"account {Address(key[1:])}"
    if namespace == keys.STORAGE:
        name, _ = decode_slot(value)
        return f"slot {octet_words(name)} of actor {keys.storage_address(key)}"
    if namespace == keys.TIMERS:
        return f"timer {keys.timer_id(key)} due at height {keys.timer_height(key)}"
    if namespace == keys.MAILBOX:
        number = keys.mailbox_major(key)
        first, _, words = _mailbox_kind(number)
        return words.format(number - first)
    if key in _CONFIGURATIONS:
        return _CONFIGURATIONS[key][0]
    if key == rules.DEPLOYERS_KEY:
        return "system deployers"
    code_hash = keccak256(value)
    return f"code 0x{code_hash.hex()}" if key == keys.code_key(code_hash) else f"configuration 0x{key[1:].hex()}"


def _mailbox_kind(number: int) -> tuple[int, type[msgspec.Struct], str]:
    return next(kind for kind in _MAILBOX_KINDS if number >= kind[0])


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
        return str(configs.amount_of(value))
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
    if namespace == keys.STORAGE:
        return _slot_fields(keys.storage_address(key), *decode_slot(value))
    if key == rules.DEPLOYERS_KEY:
        addresses = [value[at : at + Address.WIDTH] for at in range(0, len(value), Address.WIDTH)]
        return {"": " ".join(str(Address(address)) for address in addresses)}
    kinds: dict[bytes, type[msgspec.Struct]] = {keys.ACCOUNTS: Account, keys.TIMERS: Timer}
    kind = _mailbox_kind(keys.mailbox_major(key))[1] if namespace == keys.MAILBOX else kinds.get(namespace)
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
