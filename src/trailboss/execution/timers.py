"""The life of a timer in state: schedule, extend, cancel, defer, remove, and its record in the overlay.

Writes go to the overlay at once and vanish with it if the frame fails. The calendar queue and the events follow from
the effects, when the transaction commits. Spec: CIP-5 §3, CIP-5 §4.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.checks import (
    check_agent,
    check_fee_payer,
    check_gas_limit,
    check_height,
    check_owner,
    check_payload,
    check_timer_count,
    check_timer_id,
    out_of_range,
)
from trailboss.execution.session import BlockSession, Scope, timer_event
from trailboss.mechanisms.base import Decision
from trailboss.metering.meter import Meter
from trailboss.model import effects
from trailboss.model.actors import Account
from trailboss.model.envelopes import route_payload
from trailboss.model.events import TIMER_ARGUMENT_DEPRECATED, TIMER_PRIORITY_CLAMPED, EventRecord
from trailboss.model.terms import Terms
from trailboss.model.timers import (
    NO_FEES,
    RECORD_VERSION,
    Timer,
    TimerEnd,
    TimerRequest,
    decode_timer,
    timer_id,
)
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, Cells, Cycles, Height, clamp
from trailboss.state.keys import TIMERS
from trailboss.state.store import ReadableStore

QueueEntry = tuple[int, int, bytes]  # Height, sequence and id, as the queue yields them.
WITHDRAWN: Final = "bid"  # Argument of earlier versions. Spec: CIP-1v3 §6, CIP-1v3 §13.2.


def schedule_timer(scope: Scope, actor: bytes, request: TimerRequest, meter: Meter) -> bytes:
    """Accept a timer of ``actor`` and return its id. A refusal changes nothing but the meter.

    Spec: CIP-5 §4.1, CIP-5 §4.2, CIP-5 §6.1, CIP-1v3 §6
    """
    session, rules = scope.session, scope.session.context.rules
    params, config = rules.params, rules.timer
    # CHECK
    height, now = request.height, session.context.height
    check_height(height, now)
    session.hooks.check_request(rules, request)
    check_payload(rules, request.payload)
    payer = actor if request.fee_payer is None else request.fee_payer
    check_fee_payer(rules, payer, actor, scope.envelope.signer)
    gas_limit = check_gas_limit(rules, request.gas_limit)
    last = min(now + config.max_ttl_blocks, U64_MAX)
    expires_at = last if request.expires_at is None else request.expires_at
    if not now < expires_at <= last:
        raise out_of_range("expires_at", expires_at, now + 1, last)
    account = session.ledger.account(actor)
    if request.gas_bidding_agent is not None:
        check_agent(session.ledger, request.gas_bidding_agent)
    fees, clamped = session.hooks.offer(rules, request, bool(account.agent))
    check_timer_count(rules, actor, account.timer_count)
    # CHARGE
    meter.charge_cells(len(request.payload) + params.costs.timer_index_cells)
    # RUN
    timer = accept_timer(
        scope,
        actor,
        account,
        request.payload,
        height=height,
        fee_payer=payer,
        gas_limit=gas_limit,
        access_limit=request.access_limit or 0,
        expires_at=expires_at,
        fees=fees,
    )
    if request.has_bid:
        data = encode_canonical({"argument": WITHDRAWN})
        scope.effects.append(EventRecord(TIMER_ARGUMENT_DEPRECATED, actor, data, timer.timer_id))
    if clamped is not None:
        facts = {"stated": clamped[0], "clamped": clamped[1]}
        scope.effects.append(timer_event(TIMER_PRIORITY_CLAMPED, timer, facts))
    return timer.timer_id


def accept_timer(
    scope: Scope,
    actor: bytes,
    account: Account,
    payload: bytes,
    *,
    height: int,
    fee_payer: bytes,
    gas_limit: int,
    expires_at: int,
    access_limit: int = 0,
    fees: bytes = NO_FEES,
    terms: Terms | None = None,
    facts: Mapping[str, object] = MappingProxyType({}),
    identity: bytes | None = None,
) -> Timer:
    """Number, count, write and announce a timer that every check has passed, and return its record.

    The account is the owner's, as it stands. The payload may be an envelope. Without an identity, the id follows from
    the owner's count of accepted timers; ``facts`` are additional fields of the event. Spec: CIP-5 §3.1, CIP-5 §3.3.
    Decision: D-01, D-04, D-64.
    """
    session = scope.session
    if identity is None:
        identity = timer_id(actor, height, payload, account.timer_nonce)
    counted = replace(account, timer_nonce=account.timer_nonce + 1, timer_count=account.timer_count + 1)
    session.ledger.put(actor, counted)
    handler, routed = route_payload(payload, session.context.rules.params.timers.handler_bytes_max)
    timer = Timer(
        version=RECORD_VERSION,
        actor=actor,
        height=Height(height),
        timer_id=identity,
        sequence=session.count("scheduled"),
        handler=handler,
        payload=routed,
        fee_payer=fee_payer,
        gas_limit=Cycles(gas_limit),
        access_limit=access_limit,
        expires_at=Height(expires_at),
        schedule_block=session.context.height,
        fees=fees,
        terms=terms,
    )
    session.write_timer(timer)
    session.heights[identity] = timer.height
    scope.effects.append(effects.TimerScheduled(timer, facts))
    return timer


def extend_timer(scope: Scope, identity: bytes, expires_at: int, actor: bytes | None) -> None:
    """Move the last height of a timer, at most to the ceiling; nothing happens if it is gone. None is governance.

    Spec: CIP-5 §4.1, CIP-5 §5.4, CIP-5 §8. Decision: D-47, D-114

    Raises:
        Rejection: ``INVALID_INPUT`` for a height not above the present one, and where a preset says so for one above
            the ceiling; ``UNAUTHORIZED_TIMER``.
    """
    session = scope.session
    # CHECK
    rules, now = session.context.rules, session.context.height
    limit = rules.timer.max_ttl_blocks
    check_timer_id(rules, identity)
    ceiling = min(now + limit, U64_MAX)
    if not now < expires_at <= (ceiling if rules.params.timers.extension_must_fit and actor is not None else U64_MAX):
        raise out_of_range("new_expires_at", expires_at, now + 1, now + limit)
    timer = find_timer(session, identity)
    if timer is None or _has_ended(session, timer):
        return
    check_owner(timer, actor)
    # RUN
    extended = replace(timer, expires_at=clamp(expires_at, now + 1, ceiling))
    session.write_timer(extended)
    scope.effects.append(effects.TimerExtended(extended, by_governance=actor is None))


def cancel_timer(scope: Scope, identity: bytes, actor: bytes | None) -> None:
    """Cancel a timer; nothing happens if it is gone. None is governance.

    A timer that this block has pre-charged does not run; its pre-charge returns when the transaction commits.
    Spec: CIP-5 §4.2, CIP-5 §4.3, CIP-5 §5.4. Decision: D-07.

    Raises:
        Rejection: ``UNAUTHORIZED_TIMER`` for a timer of another actor.
    """
    session = scope.session
    by_governance = actor is None
    # CHECK
    check_timer_id(session.context.rules, identity)
    reservation = session.reservations.get(identity)
    if reservation is not None and not scope.has_cancelled(identity):
        timer = reservation.decision.timer
        check_owner(timer, actor)
        # RUN
        session.count("cancelled")
        scope.cancelled[identity] = len(scope.effects)
        scope.effects.append(effects.ReservedTimerCancelled(timer, by_governance))
        return
    found = find_timer(session, identity)
    if found is None:
        return
    check_owner(found, actor)
    if session.hooks.is_cancellable(found):
        # RUN
        withdraw_timer(scope, found, by_governance=by_governance)


def withdraw_timer(scope: Scope, timer: Timer, *, by_governance: bool = False) -> None:
    """Cancel a live timer for an entitled canceller."""
    remove_timer(scope.session, timer, TimerEnd.CANCELLED)
    scope.session.count("cancelled")
    scope.effects.append(effects.TimerCancelled(timer, by_governance))


def end_timer(session: BlockSession, timer: Timer, end: TimerEnd, event: str, facts: Mapping[str, object]) -> None:
    """Remove a due timer that does not run, with its one event. Decision: D-27, D-35, D-38."""
    remove_timer(session, timer, end)
    session.take_out(timer)
    session.count_end(end)
    session.emit(event, timer, facts)


def find_timer(session: BlockSession, identity: bytes) -> Timer | None:
    """Return a live timer by id, one scheduled by the running transaction included, or None."""
    height = session.queue.height_of(identity)
    if height is None:
        height = session.heights.get(identity)
    # One whose scheduling has been taken back has a height there, and no record.
    return None if height is None else session.read_timer(height, identity)


def load_timer(session: BlockSession, height: int, identity: bytes) -> Timer:
    """Return the timer that the queue holds at a height; `InvariantError` if the state does not hold it."""
    timer = session.read_timer(height, identity)
    if timer is None:
        raise InvariantError(f"the queue holds timer {Hash32(identity)} at height {height}, the state does not")
    return timer


def load_timers(session: BlockSession, entries: Iterable[QueueEntry]) -> Iterator[Timer]:
    """Yield the timers of entries of the queue, read one at a time."""
    return (load_timer(session, height, identity) for height, _, identity in entries)


def expired_timers(session: BlockSession) -> Iterator[Timer]:
    """Yield the due timers that have expired, joined or not, the first to expire first. Spec: CIP-5 §6.5."""
    return load_timers(session, session.queue.expired(session.context.height))


def committed_timers(store: ReadableStore) -> Iterator[Timer]:
    """Yield all timers that the last block has left, ascending by height and id. Complexity: O(1) a timer."""
    for _, octets in store.iterate(TIMERS):
        yield decode_timer(octets)


def remove_timer(session: BlockSession, timer: Timer, end: TimerEnd, cost: int = 0) -> None:
    """Delete a timer's record and its place in every count, and take a cost from its fee payer.

    The queue follows on commit.
    """
    ledger, actor = session.ledger, timer.actor
    if timer.fee_payer != actor:
        ledger.debit(timer.fee_payer, cost)
        cost = 0
    session.hooks.on_remove(session, timer, end)
    session.delete_timer(timer)
    account = ledger.account(actor)
    ledger.put_debited(actor, replace(account, timer_count=account.timer_count - 1), cost)


def take_timer(session: BlockSession, decision: Decision) -> Cells:
    """Take the worst-case cost of a timer from its fee payer and the timer from the store. Spec: CIP-5 §6.3."""
    remove_timer(session, decision.timer, TimerEnd.FIRED, decision.max_cost)
    session.take_out(decision.timer)
    return session.context.rules.timer.max_cells_per_fire


def _has_ended(session: BlockSession, timer: Timer) -> bool:
    """Return whether the timer was found expired, this block's deliveries included, and only awaits removal."""
    found = session.context.height - (not session.has_delivered)
    return timer.height <= found and timer.expires_at < found
