"""What development chains allow in addition: unsigned transactions, state that is set, timers that move, mocked calls.

Decision: D-69, D-110
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import asdict, astuple, replace

from trailboss.codec.canonical import encode_canonical
from trailboss.crypto.digest import keccak256
from trailboss.execution.checks import check_size, check_timer_id, invalid, no_actor, out_of_range
from trailboss.execution.ledger import read_economy
from trailboss.execution.session import Scope
from trailboss.execution.timers import find_timer
from trailboss.governance.parameters import Read
from trailboss.governance.rules import ECONOMY_KEY, MOCKS_KEY, Rules
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.model import events as topics
from trailboss.model.configs import CallMock, CallMocks, Economy, amount_octets, amount_of, encode_record, stored
from trailboss.model.effects import TimerMoved
from trailboss.model.events import EventRecord
from trailboss.model.transactions import (
    UNSIGNED,
    ClearMocks,
    MoveTimer,
    SetBalance,
    SetCode,
    SetMock,
    SetRunner,
    SetStorage,
    Transaction,
    check_signature,
)
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.primitives.units import U32_MAX, U128_MAX, Height
from trailboss.state.keys import storage_key
from trailboss.state.overlay import Overlay
from trailboss.state.slots import encode_slot
from trailboss.vm.engine import FrameOutcome
from trailboss.vm.failures import exhaustion

INSTRUCTIONS: Final = (SetBalance, MoveTimer, SetStorage, SetCode, SetMock, ClearMocks, SetRunner)
"""What development chains alone execute."""
MOCKS_MAX: Final = 256  # mocks of a chain: every nested call looks through them


def check_sender(transaction: Transaction, rules: Rules, *, is_development: bool) -> None:
    """Refuse a transaction that its sender has not signed; a development chain takes unsigned ones.

    Raises:
        Rejection: ``INVALID_SIGNATURE``; unsigned also with additional signers, or from a system actor.
    """
    if transaction.signature != UNSIGNED:
        check_signature(transaction)
    elif not is_development:
        raise _unsigned(transaction.sender, "only a development chain takes unsigned transactions")
    else:
        check_unsigned(transaction, rules)


def check_unsigned(transaction: Transaction, rules: Rules) -> None:
    """Refuse an unsigned transaction that no chain takes, with ``INVALID_SIGNATURE``."""
    sender = transaction.sender
    if transaction.additional_signers:
        rule = "one with additional signers must be signed, by its sender too"
    elif is_system_actor(rules, sender):
        rule = "nobody acts for a system actor"
    else:
        return
    raise _unsigned(sender, rule)


def _unsigned(sender: Address, rule: str) -> Rejection:
    what = f"the transaction of {sender} is not signed: {rule}"
    return Rejection(RejectionReason.INVALID_SIGNATURE, what, field="from", claimed=str(sender))


def set_balance(scope: Scope, instruction: SetBalance) -> EventRecord:
    """Set a balance, make the account if there is none, move the supply by the difference, and return the event.

    Raises:
        Rejection: ``INVALID_INPUT`` for a system actor, and for the sender, whose fees are still to be settled;
            ``OVERFLOW`` if the supply would not fit 128 bits.
    """
    session, address, after = scope.session, instruction.account, instruction.amount
    # CHECK
    rules = session.context.rules
    _check_ordinary(rules, address, "balance")
    if address == scope.envelope.sender:
        what = f"{address} sets its own balance, and its fees are still to be settled: have another account send it"
        raise invalid(what, account=str(address))
    economy, account = read_economy(session.overlay.read), session.ledger.account(address)
    before = amount_of(account.balance)
    supply = amount_of(economy.supply) - before + after
    if supply > U128_MAX:
        raise Rejection(RejectionReason.OVERFLOW, f"a balance of {after} makes the supply {supply}, more than 128 bits")
    # RUN
    session.ledger.put(address, replace(account, balance=amount_octets(after)))
    session.overlay.write(ECONOMY_KEY, encode_record(Economy(amount_octets(supply), economy.burned)))
    return _event(rules, topics.BALANCE_SET, {"account": bytes(address), "before": before, "after": after})


def set_storage(scope: Scope, instruction: SetStorage) -> EventRecord:
    """Set or delete a slot of an actor, and return the event.

    Raises:
        Rejection: ``INVALID_INPUT`` for a system actor, and for a name or value that a slot cannot have;
            ``ACTOR_NOT_FOUND`` without such an actor.
    """
    session, actor = scope.session, instruction.actor
    # CHECK
    rules, value = session.context.rules, instruction.value
    _check_ordinary(rules, actor, "storage")
    account = session.ledger.find(actor)
    if account is None or not account.code_hash:
        raise no_actor(actor)
    check_size("slot name", len(instruction.slot), rules.params.limits.slot_bytes_max)
    check_size("slot value", len(value or b""), rules.params.limits.slot_value_bytes_max, least=0)
    # RUN
    key = storage_key(actor, instruction.slot)
    if value is None:
        session.overlay.delete(key)
    else:
        session.overlay.write(key, encode_slot(instruction.slot, value))
    return _event(rules, topics.STORAGE_SET, {"actor": bytes(actor), "slot": instruction.slot, "value": value})


def set_code(scope: Scope, instruction: SetCode) -> EventRecord:
    """Give an address code that has been checked, and return the event; its money and storage stay.

    A new actor belongs to the sender; no creation call runs.

    Raises:
        Rejection: ``INVALID_INPUT`` for a system actor.
    """
    session, address = scope.session, instruction.account
    # CHECK
    _check_ordinary(session.context.rules, address, "code")
    # RUN
    account, code_hash = session.ledger.account(address), keccak256(instruction.code)
    owner = account.owner or bytes(scope.envelope.sender)
    session.ledger.put(address, replace(account, code_hash=code_hash, owner=owner))
    session.ledger.store_code(code_hash, instruction.code)
    if instruction.manifest is not None:
        session.ledger.store_manifest(address, instruction.manifest)
    facts = {"account": bytes(address), "code_hash": code_hash}
    return _event(session.context.rules, topics.CODE_SET, facts)


def set_mock(scope: Scope, instruction: SetMock) -> EventRecord:
    """Add a mock behind the others of its calls, and return the event; one without a number of times ends before it.

    Raises:
        Rejection: ``INVALID_INPUT`` for an empty handler, for both an answer and a failure, for no times at all, and
            for one mock too many.
    """
    overlay, mock = scope.session.overlay, CallMock(bytes(instruction.target), *astuple(instruction)[1:])
    # CHECK
    if not mock.handler:
        raise invalid("a mock is for a handler, and its name is empty", field="handler")
    if mock.returns and mock.reverts is not None:
        raise invalid(f"a mock of {mock.handler} either returns or reverts, not both", field="reverts")
    if mock.times is not None and mock.times < 1:
        raise out_of_range("times", mock.times, 1, U32_MAX)
    calls = (mock.target, mock.handler, mock.payload)
    kept = [
        each
        for each in mocks_in(overlay.read)
        if each.times is not None or (each.target, each.handler, each.payload) != calls
    ]
    if len(kept) == MOCKS_MAX:
        raise invalid(f"there are {MOCKS_MAX} mocks, the most that there can be: clear them first", limit=MOCKS_MAX)
    # RUN
    _write_mocks(overlay, sorted([*kept, mock], key=lambda each: each.payload is None))
    return _event(scope.session.context.rules, topics.MOCK_SET, asdict(mock))


def clear_mocks(scope: Scope) -> EventRecord:
    """Remove all mocks, and return the event."""
    count = len(mocks_in(scope.session.overlay.read))
    _write_mocks(scope.session.overlay, [])
    return _event(scope.session.context.rules, topics.MOCKS_CLEARED, {"count": count})


def mocks_in(read: Read) -> tuple[CallMock, ...]:
    """Return the mocks of a state, in the order in which they answer."""
    found = stored(read, MOCKS_KEY, CallMocks)
    return () if found is None else found.mocks


def mocked_outcome(
    scope: Scope, target: bytes, handler: str, payload: bytes, *, caller: bytes, meter: Meter
) -> FrameOutcome | None:
    """Return how a mocked call ends; None if no mock answers it.

    It costs a frame's base. What one of many times has answered counts even if the caller's frame fails.
    """
    session = scope.session
    if not session.context.is_development:
        return None
    for number, mock in enumerate(mocks_in(session.overlay.read)):
        is_left = mock.times is None or scope.mocked.count(number) < mock.times
        if is_left and mock.answers(target, handler, payload):
            break
    else:
        return None
    # CHARGE
    try:
        meter.charge_cycles(session.context.rules.params.costs.frame_base)
    except OutOfGas:
        return FrameOutcome(b"", exhaustion(meter))
    # RUN
    scope.mocked.append(number)
    facts = {"target": target, "handler": handler, "payload": payload, "ok": mock.reverts is None}
    timer_id = scope.envelope.timer_id
    scope.effects.append(EventRecord(topics.CALL_MOCKED, caller, encode_canonical(facts), timer_id))
    if mock.reverts is None:
        return FrameOutcome(mock.returns, None)
    return FrameOutcome(b"", Rejection(RejectionReason.PVM_ERROR, f"{mock.reverts} (mocked)").error())


def count_mocked(scope: Scope) -> None:
    """Write how often mocks can still answer, after an execution that has called them."""
    counted = []
    for number, mock in enumerate(mocks_in(scope.session.overlay.read)):
        times = None if mock.times is None else mock.times - scope.mocked.count(number)
        if times != 0:
            counted.append(replace(mock, times=times))
    _write_mocks(scope.session.overlay, counted)


def _write_mocks(overlay: Overlay, mocks: Sequence[CallMock]) -> None:
    if mocks:
        overlay.write(MOCKS_KEY, encode_record(CallMocks(tuple(mocks))))
    else:
        overlay.delete(MOCKS_KEY)


def move_timer(scope: Scope, instruction: MoveTimer) -> None:
    """Move a timer that is to come to another height; its place within that height follows from its sequence.

    A timer is to come until the deliveries of its height begin. Where they follow the transactions, it can still leave
    or enter the present block, unless that block has created it.

    Raises:
        Rejection: ``NOT_FOUND`` if there is no such timer; ``INVALID_INPUT`` for a state watch, for a timer that is due
            already, and for a height that is past or beyond the last one at which it may fire.
    """
    session, height = scope.session, instruction.height
    # CHECK
    check_timer_id(session.context.rules, instruction.timer_id)
    timer = find_timer(session, instruction.timer_id)
    if timer is None:
        shown = instruction.timer_id.hex()
        raise Rejection(RejectionReason.NOT_FOUND, f"there is no live timer 0x{shown}", timer_id=shown)
    still_open = session.context.height + session.has_delivered
    if not session.hooks.is_movable(timer):
        raise invalid(f"timer {Hash32(timer.timer_id)} is a state watch: it has no height to be moved from")
    least, shown = max(still_open, timer.schedule_block + 1), f"timer {Hash32(timer.timer_id)}"
    if timer.height < least:
        rule = f"since height {timer.height}: only a timer that is to come can be moved"
        raise invalid(f"{shown} is due already, {rule}", due_height=timer.height)
    if height < least:
        rule = f"{least} is the first at which it can fire now"
        raise invalid(f"{shown} is moved to height {height}, and {rule}", height=str(height), minimum=least)
    if height > timer.expires_at:
        what = f"{shown} is moved to height {height}, and {timer.expires_at} is the last at which it may fire"
        raise invalid(what, height=str(height), expires_at=timer.expires_at)
    # RUN
    session.delete_timer(timer)
    moved = replace(timer, height=Height(height))
    session.write_timer(moved)
    scope.effects.append(TimerMoved(moved, timer.height))


def _event(rules: Rules, topic: str, facts: Mapping[str, object]) -> EventRecord:
    emitter = system_address(rules.params.governance.governance_actor)
    return EventRecord(topic, emitter, encode_canonical(facts))


def _check_ordinary(rules: Rules, address: Address, what: str) -> None:
    if is_system_actor(rules, address):
        raise invalid(f"the {what} of system actor {address} is not set: the chain keeps it", account=str(address))


def is_system_actor(rules: Rules, address: Address) -> bool:
    """Return whether an address is that of a system actor, or the zero address."""
    return int.from_bytes(address, "big") <= rules.params.governance.reserved_band_max
