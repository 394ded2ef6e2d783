"""Messages between actors: sent during a block, delivered at its end, after the timers.

Spec: CIP-5 §5.1
Decision: D-42
"""

from collections.abc import Callable
from typing import Any, Final

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.session import BlockSession, Envelope, Scope
from trailboss.fees.settlement import Prices, max_cost
from trailboss.governance.rules import MAILBOX_KEY
from trailboss.model.blocks import Origin
from trailboss.model.configs import MailboxEnds, Message, decode_record, encode_record
from trailboss.model.effects import MessageSent
from trailboss.model.events import MESSAGE_DROPPED, EventRecord
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_HASH, Address, system_address
from trailboss.primitives.units import Amount
from trailboss.state.keys import config_key, mailbox_key
from trailboss.vm.meter import Meter

MESSAGE_HANDLER: Final = "handle_message"
COUNT_WIDTH: Final = 4
JOB_DISPATCHER: Final = system_address(2)
"""Whom the SDK sends runner jobs. Source: cowboy-facts §6."""


def send_message(scope: Scope, sender: bytes, target: bytes, payload: bytes, meter: Meter) -> None:
    """Put a message into the mailbox.

    Decision: D-92

    Raises:
        Rejection: ``NO_RUNNER`` for a runner job, ``INVALID_INPUT`` for a payload over the limit, ``MAILBOX_FULL`` if
            the target has too many waiting.
        OutOfGas: If the payload's cells do not fit the frame.
    """
    session = scope.session
    limits = session.context.rules.params.limits
    # CHECK
    if target == JOB_DISPATCHER:
        raise Rejection(
            RejectionReason.NO_RUNNER,
            f"{Address(sender)} asks for {_job_words(payload)}, and this chain has no runner",
            target=str(JOB_DISPATCHER),
        )
    if len(payload) > limits.message_payload_bytes_max:
        raise Rejection(
            RejectionReason.INVALID_INPUT,
            f"message payload has {len(payload)} bytes and the limit is {limits.message_payload_bytes_max}",
            size=len(payload),
            limit=limits.message_payload_bytes_max,
        )
    waiting = _waiting(session, target)
    if waiting >= limits.messages_pending_max:
        raise Rejection(
            RejectionReason.MAILBOX_FULL,
            f"{waiting} messages wait for {Address(target)} and the limit is {limits.messages_pending_max}",
            target=str(Address(target)),
            limit=limits.messages_pending_max,
        )
    # CHARGE
    meter.charge_cells(len(payload))
    # RUN
    ends = _ends(session.overlay.read)
    message = Message(sender, target, payload, session.context.height)
    session.overlay.write(mailbox_key(ends.next), encode_record(message))
    session.overlay.write(MAILBOX_KEY, encode_record(MailboxEnds(ends.first, ends.next + 1)))
    _set_waiting(session, target, waiting + 1)
    scope.effects.append(MessageSent(sender, target, payload))


def _job_words(payload: bytes) -> str:
    """Return which job a message of the SDK asks for."""
    try:
        job: Any = decode_canonical(payload)
    except Rejection:
        job = None
    kind = job.get("job_type") if isinstance(job, dict) else None
    return f"a runner job ({kind:.64})" if isinstance(kind, str) else "a runner job"


def take_messages(session: BlockSession) -> list[Message]:
    """Remove and return the messages that this block delivers, oldest first.

    Those sent while they are delivered wait for the next block, as do those beyond the block's limit.
    """
    ends = _ends(session.overlay.read)
    last = min(ends.next, ends.first + session.context.rules.params.limits.messages_delivered_max)
    messages = []
    for sequence in range(ends.first, last):
        octets = session.overlay.read(mailbox_key(sequence))
        if octets is None:
            raise InvariantError(f"the mailbox holds no message {sequence}, of {ends.first}..{ends.next}")
        message = decode_record(octets, Message)
        session.overlay.delete(mailbox_key(sequence))
        _set_waiting(session, message.target, _waiting(session, message.target) - 1)
        messages.append(message)
    if messages:
        session.overlay.write(MAILBOX_KEY, encode_record(MailboxEnds(last, ends.next)))
    return messages


def charge_message(session: BlockSession, message: Message) -> tuple[Envelope, Amount] | None:
    """Take the cost of a delivery from its sender and return what is to run, or drop the message with an event.

    Decision: D-42 (the sending actor pays; consent is in the sending)
    """
    rules = session.context.rules
    limits = rules.params.limits
    prices = Prices(*rules.user_basefees())
    # CHECK
    cost = max_cost(limits.message_cycles, limits.message_cells, prices)
    available = session.ledger.balance(message.sender)
    if available < cost:
        facts = {"sender": message.sender, "target": message.target, "required": cost, "available": available}
        session.events.append(EventRecord(MESSAGE_DROPPED, message.sender, encode_canonical(facts)))
        return None
    # CHARGE
    session.ledger.debit(message.sender, cost)
    envelope = Envelope(
        origin=Origin.MESSAGE,
        origin_hash=ZERO_HASH,
        sender=message.sender,
        signer=message.target,
        payer=message.sender,
        cycles_limit=limits.message_cycles,
        cells_limit=limits.message_cells,
        prices=prices,
        actor=message.target,
    )
    return envelope, cost


def mailbox_is_empty(read: Callable[[bytes], bytes | None]) -> bool:
    """Return whether no message waits in the state that ``read`` reads."""
    ends = _ends(read)
    return ends.first == ends.next


def _ends(read: Callable[[bytes], bytes | None]) -> MailboxEnds:
    octets = read(MAILBOX_KEY)
    return MailboxEnds() if octets is None else decode_record(octets, MailboxEnds)


def _waiting_key(target: bytes) -> bytes:
    return config_key(b"mailbox:" + target)


def _waiting(session: BlockSession, target: bytes) -> int:
    return int.from_bytes(session.overlay.read(_waiting_key(target)) or b"", "big")


def _set_waiting(session: BlockSession, target: bytes, count: int) -> None:
    if count:
        session.overlay.write(_waiting_key(target), count.to_bytes(COUNT_WIDTH, "big"))
    else:
        session.overlay.delete(_waiting_key(target))
