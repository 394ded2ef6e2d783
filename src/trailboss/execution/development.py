"""What development chains allow in addition: unsigned transactions, balances that are set, timers that move.

Decision: D-69
"""

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.checks import check_timer_id, invalid
from trailboss.execution.ledger import read_economy
from trailboss.execution.session import Scope
from trailboss.execution.timers import find_timer
from trailboss.governance.rules import ECONOMY_KEY, Rules
from trailboss.model.configs import Economy, amount_octets, amount_of, encode_record
from trailboss.model.effects import TimerMoved
from trailboss.model.events import BALANCE_SET, EventRecord
from trailboss.model.transactions import UNSIGNED, MoveTimer, SetBalance, Transaction, check_signature
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.primitives.units import U128_MAX, Height


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
    if is_system_actor(rules, address):
        raise invalid(f"the balance of system actor {address} is not set: the chain keeps it", account=str(address))
    if address == scope.envelope.sender:
        what = f"{address} sets its own balance, and its fees are still to be settled: have another account send it"
        raise invalid(what, account=str(address))
    economy, account = read_economy(session.overlay.read), session.ledger.account(address)
    before = amount_of(account.balance)
    supply = amount_of(economy.supply) - before + after
    if supply > U128_MAX:
        raise Rejection(RejectionReason.OVERFLOW, f"a balance of {after} makes the supply {supply}, more than 128 bits")
    # RUN
    account.balance = amount_octets(after)
    session.ledger.put(address, account)
    session.overlay.write(ECONOMY_KEY, encode_record(Economy(amount_octets(supply), economy.burned)))
    facts = {"account": bytes(address), "before": before, "after": after}
    emitter = system_address(rules.params.governance.governance_actor)
    return EventRecord(BALANCE_SET, emitter, encode_canonical(facts))


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


def is_system_actor(rules: Rules, address: Address) -> bool:
    """Return whether an address is that of a system actor, or the zero address."""
    return int.from_bytes(address, "big") <= rules.params.governance.reserved_band_max
