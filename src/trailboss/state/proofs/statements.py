"""The meaning of a verified proof: the records themselves, and one plain sentence."""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from trailboss.codec.canonical import pack
from trailboss.model.actors import RECORD_VERSION as ACCOUNT_VERSION
from trailboss.model.actors import Account
from trailboss.model.configs import amount_of
from trailboss.model.timers import RECORD_VERSION as TIMER_VERSION
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ProofError
from trailboss.primitives.octets import Address, Hash32
from trailboss.state.keys import storage_key, timer_key
from trailboss.state.proofs import subjects
from trailboss.state.proofs.subjects import Subject


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """One storage slot: its name as the actor uses it, and its value."""

    name: bytes
    value: bytes


Record = Account | Slot | Timer
RecordType = TypeVar("RecordType", Account, Slot, Timer)

_accounts: Final = msgspec.msgpack.Decoder(Account)
_slots: Final = msgspec.msgpack.Decoder(Slot)
_timers: Final = msgspec.msgpack.Decoder(Timer)


class Statement(Struct, frozen=True):
    """All that the state of one root holds of a subject."""

    subject: Subject  # what it is about
    state_root: Hash32  # the root it holds for
    # All records of the subject; none if there are none. Timers are ordered by height and insertion, slots by the
    # hashes of their names.
    records: tuple[Record, ...]

    @property
    def is_present(self) -> bool:
        """Whether the state holds anything of the subject."""
        return bool(self.records)

    def __str__(self) -> str:
        match self.subject:
            case subjects.AccountSubject(address):
                return _account_sentence(address, self.records)
            case subjects.SlotSubject(address, name):
                return _slot_sentence(address, name, self.records)
            case subjects.StorageSubject(address):
                return f"actor {Address(address)} has {_complete(len(self.records), 'slot')}"
            case subjects.TimerSubject(height, timer_id):
                return _timer_sentence(height, timer_id, self.records)
            case subjects.TimersSubject(first, last):
                return _timers_sentence(first, last, self.records)


def decode_records(subject: Subject, entries: Sequence[tuple[bytes, bytes]]) -> tuple[Record, ...]:
    """Return a subject's records, from full keys and values in ascending order.

    Raises:
        ProofError: If a value is not such a record in its one encoding, or does not belong under its key.
    """
    match subject:
        case subjects.AccountSubject():
            return tuple(_account(*entry) for entry in entries)
        case subjects.SlotSubject() | subjects.StorageSubject():
            return tuple(_slot(*entry) for entry in entries)
        case subjects.TimerSubject() | subjects.TimersSubject():
            timers = (_timer(*entry) for entry in entries)
            return tuple(sorted(timers, key=lambda timer: (timer.height, timer.sequence)))


def _account(key: bytes, value: bytes) -> Account:
    account = _decode(_accounts, key, value)
    if account.version != ACCOUNT_VERSION:
        raise ProofError(f"account record {key.hex()} has version {account.version}, not {ACCOUNT_VERSION}")
    return account


def _slot(key: bytes, value: bytes) -> Slot:
    slot = _decode(_slots, key, value)
    if key != storage_key(key[1 : 1 + Address.WIDTH], slot.name):
        raise ProofError(f"the slot named {slot.name.hex():.80} does not belong under the key {key.hex()}")
    return slot


def _timer(key: bytes, value: bytes) -> Timer:
    timer = _decode(_timers, key, value)
    if timer.version != TIMER_VERSION:
        raise ProofError(f"timer record {key.hex()} has version {timer.version}, not {TIMER_VERSION}")
    if timer.height < 0 or key != timer_key(timer.height, timer.timer_id):
        raise ProofError(f"the timer {timer.timer_id.hex():.80} does not belong under the key {key.hex()}")
    return timer


def _decode(decoder: msgspec.msgpack.Decoder[RecordType], key: bytes, value: bytes) -> RecordType:
    try:
        record = decoder.decode(value)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"the value under the key {key.hex()} is no record: {error}") from None
    if pack(record) != value:
        raise ProofError(f"the record under the key {key.hex()} is not in its one encoding")
    return record


def _account_sentence(address: bytes, records: Sequence[Record]) -> str:
    match records:
        case (Account() as account,):
            kind = "actor" if account.code_hash else "account"
            timers = f" and {_number(account.timer_count, 'live timer')}" if account.code_hash else ""
            holds = _number(amount_of(account.balance), "base unit")
            return f"{kind} {Address(address)} has {holds}, nonce {account.nonce:,}{timers}"
    return f"no account {Address(address)} exists"


def _slot_sentence(address: bytes, name: bytes, records: Sequence[Record]) -> str:
    match records:
        case (Slot() as slot,):
            return f"slot 0x{name.hex()} of actor {Address(address)} holds 0x{slot.value.hex()}"
    return f"actor {Address(address)} has no slot 0x{name.hex()}"


def _timer_sentence(height: int, timer_id: bytes, records: Sequence[Record]) -> str:
    match records:
        case (Timer() as timer,) if _is_watch(timer):
            until = f"up to height {timer.expires_at:,}"
            return f"timer {Hash32(timer_id)} of actor {Address(timer.actor)} watches the state {until}"
        case (Timer() as timer,):
            return f"timer {Hash32(timer_id)} of actor {Address(timer.actor)} is due at height {height:,}"
    return f"no timer {Hash32(timer_id)} is due at height {height:,}"


def _timers_sentence(first: int, last: int, records: Sequence[Record]) -> str:
    where = f"at height {first:,}" if first == last else f"in {first:,}..={last:,}"
    watches = sum(isinstance(record, Timer) and _is_watch(record) for record in records)
    # A state watch is in the calendar one block after its expiry, where it is collected.
    ends = f"{_number(watches, 'state watch')} end{'s' if watches == 1 else ''}" if watches else ""
    count = len(records) - watches
    if count == 0:
        return f"no timer is due {where}" + (f", {ends} there, and no others" if ends else "")
    due = "1 timer is due" if count == 1 else f"{count:,} timers are due"
    others = "other" if count + watches == 1 else "others"
    return f"{due} {where}{f', {ends} there' if ends else ''}, and no {others}"


def _is_watch(timer: Timer) -> bool:
    return timer.terms is not None and timer.terms.is_watch


def _complete(count: int, noun: str) -> str:
    if count == 0:
        return f"no {noun}s"
    return f"{_number(count, noun)}, and no other{'' if count == 1 else 's'}"


def _number(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
