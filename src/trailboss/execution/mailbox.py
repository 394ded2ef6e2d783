"""What waits for the end of a block, after the timers: deferred transactions, and messages between actors.

A message is paid by the actor that sent it. A deferred transaction is paid out of the gas that the execution that
created it has left: its *gas pool*. Spec: CIP-5 §5.1, CIP-5 §5.2. Decision: D-42, D-88.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.checks import check_size, invalid
from trailboss.execution.runner import JOB_DISPATCHER, add_job, check_job
from trailboss.execution.session import BlockSession, Envelope, Scope, change_count, read_count
from trailboss.fees import Prices, max_cost
from trailboss.governance.parameters import Read
from trailboss.governance.rules import DEFERRED_KEY, MAILBOX_KEY
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Origin
from trailboss.model.configs import (
    DeferredCall,
    GasPool,
    MailboxEnds,
    Message,
    Record,
    amount_octets,
    amount_of,
    encode_record,
    held,
    stored,
)
from trailboss.model.effects import CallDeferred
from trailboss.model.events import DEFERRED_DROPPED, MESSAGE_DROPPED, MESSAGE_SENT, EventRecord
from trailboss.params import LimitParams
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_HASH, Address
from trailboss.primitives.units import Amount, Cells, Cycles, Price
from trailboss.state.keys import config_key, deferred_key, mailbox_key

MESSAGE_HANDLER: Final = "handle_message"


class Line(NamedTuple):
    """A line in the state, first in, first out."""

    what: str  # its name in messages
    ends: bytes  # state key of its ends
    entry: Callable[[int], bytes]  # number of an entry to its state key
    prefix: bytes  # of the names of its counts, one for each actor
    most: Callable[[LimitParams], int]  # how many may wait for an actor

    def waiting(self, actor: bytes) -> bytes:
        """Return the state key of how many entries wait for an actor."""
        return config_key(self.prefix + actor)


MESSAGES: Final = Line("messages", MAILBOX_KEY, mailbox_key, b"mailbox:", lambda limits: limits.messages_pending_max)
DEFERRED: Final = Line(
    *("deferred transactions", DEFERRED_KEY, deferred_key, b"deferred:"),
    most=lambda limits: limits.deferred_pending_max or limits.messages_pending_max,
)


def send_message(scope: Scope, sender: bytes, target: bytes, payload: bytes, meter: Meter) -> None:
    """Put a message into the mailbox, or have a job wait for a reply. Decision: D-92, D-113.

    Raises:
        Rejection: ``INVALID_INPUT`` for a payload over the limit, ``MAILBOX_FULL`` if too many wait for the target; as
            `check_job` for a runner job.
        OutOfGas: If the payload's cells do not fit the frame.
    """
    session = scope.session
    # CHECK
    job = check_job(scope, sender, payload) if target == JOB_DISPATCHER else None
    _check_payload(session, "message", payload)
    if job is None:
        _check_waiting(session, MESSAGES, target)
    # CHARGE
    meter.charge_cells(len(payload))
    # RUN
    facts: dict[str, object] = {"target": target, "size": len(payload)}
    if job is None:
        _append(session, MESSAGES, target, Message(sender, target, payload, session.context.height))
    else:
        facts["job"] = add_job(session, job)
    scope.effects.append(EventRecord(MESSAGE_SENT, sender, encode_canonical(facts)))


def defer_call(scope: Scope, actor: bytes, handler: str, payload: bytes, meter: Meter) -> None:
    """Put a deferred transaction of an actor to itself into line; it runs at the end of the next block.

    Source: cowboy-facts §2.3. Decision: D-88

    Raises:
        Rejection: ``INVALID_INPUT`` for a name or a payload over the limit, ``MAILBOX_FULL`` if too many wait,
            ``INVALID_DEFERRED`` if what is left would not start it.
        OutOfGas: If the cells of name and payload do not fit the frame.
    """
    session, params = scope.session, scope.session.context.rules.params
    name, least = handler.encode(), params.costs.frame_base
    # CHECK
    check_size("handler", len(name), params.timers.handler_bytes_max)
    _check_payload(session, "deferred transaction", payload)
    _check_waiting(session, DEFERRED, actor)
    if meter.cycles_left < least:
        what = f"{meter.cycles_left} cycles are left for a deferred transaction, and starting one uses {least}"
        raise Rejection(RejectionReason.INVALID_DEFERRED, what, available=meter.cycles_left, required=least)
    # CHARGE
    meter.charge_cells(len(name) + len(payload))
    # RUN
    number = _ends(session.overlay.read, DEFERRED).next
    origin_hash, height = scope.envelope.origin_hash, session.context.height
    pool = next(iter(_created(scope)), number) if scope.envelope.pool is None else scope.envelope.pool
    _append(session, DEFERRED, actor, DeferredCall(actor, handler, payload, height, origin_hash, pool))
    scope.effects.append(CallDeferred(actor, handler, len(payload), number))


def keep_gas(scope: Scope, cycles: Cycles, cells: Cells) -> None:
    """Keep what an execution has left of its limits for the deferred transactions that it has created, if any.

    A deferred transaction leaves the rest of its own pool to them. Spec: CIP-5 §5.2. Decision: D-88.
    """
    created, envelope = _created(scope), scope.envelope
    if envelope.pool is not None:
        _draw(scope.session, envelope.pool, cycles, cells, more=len(created))
    elif created:
        prices = envelope.prices
        pool = GasPool(
            payer=envelope.payer,
            cycles=envelope.cycles_limit - cycles,
            cells=envelope.cells_limit - cells,
            cycle_basefee=amount_octets(prices.cycle_basefee),
            cell_basefee=amount_octets(prices.cell_basefee),
            cycle_tip=amount_octets(prices.cycle_tip),
            cell_tip=amount_octets(prices.cell_tip),
            waiting=len(created),
        )
        scope.session.overlay.write(_pool_key(created[0]), encode_record(pool))


def take_waiting(session: BlockSession) -> list[DeferredCall | Message]:
    """Remove and return what this block runs: deferred transactions of earlier blocks, then messages, oldest first."""
    now = session.context.height
    calls = _take(session, DEFERRED, DeferredCall, lambda call: call.actor, lambda call: call.created_at < now)
    return [*calls, *_take(session, MESSAGES, Message, lambda message: message.target, lambda _: True)]


def charge_delivery(session: BlockSession, waiting: DeferredCall | Message) -> tuple[Envelope, Amount, str] | None:
    """Take the cost of what waited from its payer, or drop it with an event.

    Decision: D-42 (the sending actor pays; consent is in the sending), D-88 (a pool's payer pays, at its prices)

    Returns:
        Limits and payer, the base units taken, and the handler that is to run; None if it is dropped.
    """
    limits = session.context.rules.params.limits
    if isinstance(waiting, Message):
        actor, sender, payer, pool = waiting.target, waiting.sender, waiting.sender, None
        handler, origin_hash = MESSAGE_HANDLER, bytes(ZERO_HASH)
        cycles, cells = limits.message_cycles, limits.message_cells
        prices = Prices(*session.context.rules.user_basefees())
        facts: dict[str, object] = {"sender": sender, "target": actor}
    else:
        found = _pool(session, waiting.pool)
        actor, sender, payer, pool = waiting.actor, waiting.actor, found.payer, waiting.pool
        handler, origin_hash = waiting.handler, waiting.origin_hash
        cycles, cells = min(limits.message_cycles, Cycles(found.cycles)), min(limits.message_cells, Cells(found.cells))
        octets = (found.cycle_basefee, found.cell_basefee, found.cycle_tip, found.cell_tip)
        prices = Prices(*(Price(amount_of(each)) for each in octets))
        facts = {"handler": handler, "payer": payer}
    # CHECK
    cost = max_cost(cycles, cells, prices)
    available = session.ledger.balance(payer)
    if available < cost:
        name = MESSAGE_DROPPED if pool is None else DEFERRED_DROPPED
        if pool is not None:
            _draw(session, pool, Cycles(0), Cells(0))
        data = encode_canonical({**facts, "required": cost, "available": available})
        session.events.append(EventRecord(name, sender, data))
        return None
    # CHARGE
    session.ledger.debit(payer, cost)
    envelope = Envelope(
        origin=Origin.MESSAGE,
        origin_hash=origin_hash,
        sender=sender,
        signer=actor,
        payer=payer,
        cycles_limit=cycles,
        cells_limit=cells,
        prices=prices,
        actor=actor,
        pool=pool,
    )
    return envelope, cost, handler


def nothing_waits(read: Read) -> bool:
    """Return whether no message and no deferred transaction waits in the state that ``read`` reads."""
    ends = (stored(read, line.ends, MailboxEnds) for line in (MESSAGES, DEFERRED))
    return all(each is None or each.first == each.next for each in ends)


def _check_payload(session: BlockSession, what: str, payload: bytes) -> None:
    limit = session.context.rules.params.limits.message_payload_bytes_max
    if len(payload) > limit:
        raise invalid(
            f"{what} payload has {len(payload)} bytes and the limit is {limit}", size=len(payload), limit=limit
        )


def _check_waiting(session: BlockSession, line: Line, actor: bytes) -> None:
    waiting = read_count(session.overlay.read, line.waiting(actor))
    limit = line.most(session.context.rules.params.limits)
    if waiting >= limit:
        what = f"{waiting} {line.what} wait for {Address(actor)} and the limit is {limit}"
        raise Rejection(RejectionReason.MAILBOX_FULL, what, target=str(Address(actor)), limit=limit)


def _append(session: BlockSession, line: Line, actor: bytes, record: msgspec.Struct) -> None:
    ends = _ends(session.overlay.read, line)
    session.overlay.write(line.entry(ends.next), encode_record(record))
    session.overlay.write(line.ends, encode_record(MailboxEnds(ends.first, ends.next + 1)))
    change_count(session, line.waiting(actor), 1)


def _take(
    session: BlockSession,
    line: Line,
    kind: type[Record],
    owner_of: Callable[[Record], bytes],
    is_due: Callable[[Record], bool],
) -> list[Record]:
    """Remove and return the entries at the head of a line that are due, as many as a block delivers."""
    ends = _ends(session.overlay.read, line)
    last = min(ends.next, ends.first + session.context.rules.params.limits.messages_delivered_max)
    taken: list[Record] = []
    for number in range(ends.first, last):
        record = held(session.overlay.read, line.entry(number), kind, f"number {number} of the waiting {line.what}")
        if not is_due(record):
            break
        session.overlay.delete(line.entry(number))
        change_count(session, line.waiting(owner_of(record)), -1)
        taken.append(record)
    if taken:
        session.overlay.write(line.ends, encode_record(MailboxEnds(ends.first + len(taken), ends.next)))
    return taken


def _ends(read: Read, line: Line) -> MailboxEnds:
    return stored(read, line.ends, MailboxEnds) or MailboxEnds()


# Gas pools


def _created(scope: Scope) -> list[int]:
    """Return the numbers of the deferred transactions that an execution has created and that stand so far."""
    return [effect.number for effect in scope.effects if isinstance(effect, CallDeferred)]


def _pool_key(number: int) -> bytes:
    return config_key(b"deferred:pool:" + number.to_bytes(8, "big"))


def _pool(session: BlockSession, number: int) -> GasPool:
    return held(session.overlay.read, _pool_key(number), GasPool, f"gas pool {number} of deferred transactions")


def _draw(session: BlockSession, number: int, cycles: Cycles, cells: Cells, *, more: int = 0) -> None:
    """Take what a deferred transaction used from its pool; the pool ends with the last that draws on it."""
    pool = _pool(session, number)
    waiting = pool.waiting - 1 + more
    if waiting:
        left = msgspec.structs.replace(pool, cycles=pool.cycles - cycles, cells=pool.cells - cells, waiting=waiting)
        session.overlay.write(_pool_key(number), encode_record(left))
    else:
        session.overlay.delete(_pool_key(number))
