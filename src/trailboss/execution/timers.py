"""The life of a timer in state: schedule, extend, cancel, defer, remove, and its record in the overlay.

Writes go to the overlay at once and vanish with it if the frame fails. The calendar queue and the events follow from
the effects, when the transaction commits.

Spec: CIP-5 §3, CIP-5 §4
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from trailboss.execution.globalbox.records import is_executing, leave_globalbox
from trailboss.execution.session import BlockSession, Scope
from trailboss.execution.timer_checks import (
    check_agent,
    check_fee_payer,
    check_gas_limit,
    check_height,
    check_owner,
    check_payload,
    check_timer_count,
    check_timer_id,
    outside,
)
from trailboss.governance.markets import MarketTerms
from trailboss.governance.rules import Rules
from trailboss.model.effects import (
    ReservedTimerCancelled,
    TimerArgumentDeprecated,
    TimerCancelled,
    TimerExtended,
    TimerPriorityClamped,
    TimerScheduled,
)
from trailboss.model.envelopes import route_payload
from trailboss.model.markets import MarketKind
from trailboss.model.terms import AuctionTerms, GlobalboxTerms
from trailboss.model.timers import (
    ASK_AGENT,
    NO_FEES,
    RECORD_VERSION,
    Timer,
    TimerEnd,
    TimerRequest,
    decode_timer,
    encode_timer,
    freeze_fees,
    timer_id,
)
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, Cycles, Height, clamp
from trailboss.state.keys import TIMERS, timer_key, transient_key
from trailboss.state.store import Store
from trailboss.vm.meter import Meter

PENDING: Final = b"timer"
CANCELLED: Final = b"cancelled"
BID: Final = "bid"
"""Argument of earlier versions, withdrawn. Spec: CIP-1v3 §6, CIP-1v3 §13.2."""


def schedule_timer(scope: Scope, actor: bytes, request: TimerRequest, meter: Meter) -> bytes:
    """Accept a timer of ``actor`` and return its id.

    Spec: CIP-5 §4.1, CIP-5 §4.2, CIP-5 §6.1, CIP-1v3 §6

    Raises:
        Rejection: If a rule of those sections refuses it; nothing has changed but the meter.
        OutOfGas: If the payload's cells do not fit the frame.
    """
    session, rules = scope.session, scope.session.context.rules
    params, config = rules.params, rules.timer
    # CHECK
    height, now = request.height, session.context.height
    check_height(height, now)
    _check_bid(rules, request)
    check_payload(rules, request.payload)
    payer = actor if request.fee_payer is None else request.fee_payer
    check_fee_payer(payer, actor, scope.envelope.signer, params.governance.reserved_band_max)
    gas_limit = check_gas_limit(rules, request.gas_limit)
    last = min(now + config.max_ttl_blocks, U64_MAX)
    expires_at = last if request.expires_at is None else request.expires_at
    if not now < expires_at <= last:
        raise outside("expires_at", expires_at, now + 1, last)
    account = session.ledger.account(actor)
    if request.gas_bidding_agent is not None:
        check_agent(session.ledger, request.gas_bidding_agent)
    fees, clamped = _offer(rules, request, has_agent=bool(account.agent))
    check_timer_count(rules, actor, account.timer_count)
    # CHARGE
    meter.charge_cells(len(request.payload) + params.costs.timer_index_cells)
    # RUN
    timer = accept_timer(
        scope,
        actor,
        request.payload,
        height=height,
        fee_payer=payer,
        gas_limit=gas_limit,
        access_limit=request.access_limit or 0,
        expires_at=expires_at,
        fees=fees,
    )
    if request.has_bid:
        scope.effects.append(TimerArgumentDeprecated(timer, BID))
    if clamped is not None:
        scope.effects.append(TimerPriorityClamped(timer, *clamped))
    return timer.timer_id


def accept_timer(
    scope: Scope,
    actor: bytes,
    payload: bytes,
    *,
    height: int,
    fee_payer: bytes,
    gas_limit: int,
    expires_at: int,
    access_limit: int = 0,
    fees: bytes = NO_FEES,
    terms: AuctionTerms | GlobalboxTerms | None = None,
    identity: bytes | None = None,
) -> Timer:
    """Number, count, write and announce a timer that every check has passed, and return its record.

    Spec: CIP-5 §3.1, CIP-5 §3.3
    Decision: D-01, D-04, D-64

    Args:
        scope: The running transaction.
        actor: The timer's owner.
        payload: As given, an envelope still on.
        height: As `Timer` has it, like all that follow.
        fee_payer: 20 bytes.
        gas_limit: Cycles.
        expires_at: Last height at which it may fire.
        access_limit: Stored and shown.
        fees: What it offers.
        terms: What its mechanism keeps besides.
        identity: Its id; None for the one that follows from its owner's count of accepted timers.
    """
    session = scope.session
    account = session.ledger.account(actor)
    if identity is None:
        identity = timer_id(actor, height, payload, account.timer_nonce)
    account.timer_nonce += 1
    account.timer_count += 1
    session.ledger.put(actor, account)
    handler, routed = route_payload(payload, session.context.rules.params.timers.handler_bytes_max)
    timer = Timer(
        version=RECORD_VERSION,
        actor=actor,
        height=Height(height),
        timer_id=identity,
        sequence=session.count_scheduled(),
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
    write_timer(session, timer)
    session.overlay.write(transient_key(PENDING, identity), height.to_bytes(8, "big"))
    scope.effects.append(TimerScheduled(timer))
    return timer


def extend_timer(scope: Scope, identity: bytes, expires_at: int, actor: bytes | None) -> None:
    """Move the last height of a timer; nothing happens if it is gone. Above the ceiling it is held at the ceiling.

    Spec: CIP-5 §4.1, CIP-5 §5.4, CIP-5 §8
    Decision: D-47

    Args:
        scope: The running transaction.
        identity: The timer's id.
        expires_at: The new last height.
        actor: Who asks; None for governance, which may extend any timer.

    Raises:
        Rejection: ``INVALID_INPUT`` for a height not above the present one, ``UNAUTHORIZED_TIMER`` for a timer of
            another actor.
    """
    session = scope.session
    # CHECK
    now, limit = session.context.height, session.context.rules.timer.max_ttl_blocks
    check_timer_id(session.context.rules, identity)
    if not now < expires_at <= U64_MAX:
        raise outside("new_expires_at", expires_at, now + 1, now + limit)
    timer = find_timer(session, identity)
    if timer is None or _has_ended(session, timer):
        return
    check_owner(timer, actor)
    # RUN
    extended = msgspec.structs.replace(timer, expires_at=clamp(expires_at, now + 1, min(now + limit, U64_MAX)))
    write_timer(session, extended)
    scope.effects.append(TimerExtended(extended, by_governance=actor is None))


def cancel_timer(scope: Scope, identity: bytes, actor: bytes | None) -> None:
    """Cancel a timer; nothing happens if it is gone.

    A due timer that this block has pre-charged, and that has not run yet, does not run; its pre-charge returns when
    the transaction commits.

    Spec: CIP-5 §4.2, CIP-5 §4.3, CIP-5 §5.4
    Decision: D-07

    Args:
        scope: The running transaction.
        identity: The timer's id.
        actor: Who asks; None for governance, which may cancel any timer.

    Raises:
        Rejection: ``UNAUTHORIZED_TIMER`` for a timer of another actor.
    """
    session = scope.session
    by_governance = actor is None
    # CHECK
    check_timer_id(session.context.rules, identity)
    reservation = session.reservations.get(identity)
    cancelled = transient_key(CANCELLED, identity)
    if reservation is not None and session.overlay.read(cancelled) is None:
        check_owner(reservation.timer, actor)
        # RUN
        session.overlay.write(cancelled, b"\x01")
        session.count_cancelled()
        scope.effects.append(ReservedTimerCancelled(reservation.timer, by_governance))
        return
    timer = find_timer(session, identity)
    if timer is None:
        return
    check_owner(timer, actor)
    if is_executing(timer):
        return
    # RUN
    withdraw_timer(scope, timer, by_governance=by_governance)


def withdraw_timer(scope: Scope, timer: Timer, *, by_governance: bool = False) -> None:
    """Cancel a live timer whose canceller has been found entitled."""
    remove_timer(scope.session, timer, TimerEnd.CANCELLED)
    scope.session.count_cancelled()
    scope.effects.append(TimerCancelled(timer, by_governance))


def find_timer(session: BlockSession, identity: bytes) -> Timer | None:
    """Return a live timer by id, one scheduled by the running transaction included, or None."""
    height = session.queue.height_of(identity)
    if height is None:
        pending = session.overlay.read(transient_key(PENDING, identity))
        if pending is None:
            return None
        height = int.from_bytes(pending, "big")
    return find_record(session, height, identity)


def find_record(session: BlockSession, height: int, identity: bytes) -> Timer | None:
    """Return the timer that the state holds at a height, or None."""
    octets = session.overlay.read(timer_key(height, identity))
    return None if octets is None else decode_timer(octets)


def load_timer(session: BlockSession, height: int, identity: bytes) -> Timer:
    """Return the timer that the queue holds at a height.

    Raises:
        InvariantError: If the state does not hold it: queue and state have parted.
    """
    timer = find_record(session, height, identity)
    if timer is None:
        raise InvariantError(f"the queue holds timer {Hash32(identity)} at height {height}, the state does not")
    return timer


def committed_timers(store: Store) -> Iterator[Timer]:
    """Yield all timers that the last block has left, ascending by height and id. Complexity: O(1) a timer."""
    for _, octets in store.iterate(TIMERS):
        yield decode_timer(octets)


def write_timer(session: BlockSession, timer: Timer) -> None:
    """Write a timer's record; its key never changes in its life, but where a development chain moves it."""
    session.overlay.write(timer_key(timer.height, timer.timer_id), encode_timer(timer))


def remove_timer(session: BlockSession, timer: Timer, end: TimerEnd) -> None:
    """Delete a timer's record and its place in every count; the queue follows on commit."""
    if isinstance(timer.terms, GlobalboxTerms):
        leave_globalbox(session, load_timer(session, timer.height, timer.timer_id), end)
    session.overlay.delete(timer_key(timer.height, timer.timer_id))
    account = session.ledger.account(timer.actor)
    account.timer_count -= 1
    session.ledger.put(timer.actor, account)


def _check_bid(rules: Rules, request: TimerRequest) -> None:
    """Refuse the withdrawn argument, once the time in which it was ignored is over. Spec: CIP-1v3 §13.2."""
    if request.has_bid and rules.market.kind is MarketKind.LANE:
        what = f"{BID} is given, which is withdrawn since height {rules.params.lane.activation_height}"
        raise Rejection(RejectionReason.TIMER_ARGUMENT_DEPRECATED, what, argument=BID)


def _offer(rules: Rules, request: TimerRequest, *, has_agent: bool) -> tuple[bytes, tuple[int, int] | None]:
    """Return what `Timer.fees` will hold and, if the stated priority had to be clamped, what was stated and is kept.

    Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v3 §7.1
    Decision: D-16, D-86

    Raises:
        Rejection: ``INVALID_INPUT`` for a fee while there is no lane to pay it in, or beside an agent of the timer's
            own, ``TIMER_BELOW_BASEFEE`` for a fee cap below the lane basefee.
    """
    is_priced = request.max_fee_per_cycle is not None or request.max_priority_fee_per_cycle is not None
    if request.gas_bidding_agent is not None:
        if is_priced:
            raise _priced_twice(request)
        return ASK_AGENT + request.gas_bidding_agent, None
    if rules.market.kind is not MarketKind.LANE:
        if is_priced:
            raise _lane_inactive(rules, request)
        return ASK_AGENT if has_agent else NO_FEES, None
    if has_agent and not is_priced:
        return ASK_AGENT, None
    return _freeze(rules.market, request.max_fee_per_cycle, request.max_priority_fee_per_cycle)


def _freeze(lane: MarketTerms, cap: int | None, priority: int | None) -> tuple[bytes, tuple[int, int] | None]:
    basefee = lane.basefee
    max_fee = 2 * basefee if cap is None else cap
    if max_fee < basefee:
        raise Rejection(
            RejectionReason.TIMER_BELOW_BASEFEE,
            f"max_fee_per_cycle is {max_fee}, below the lane basefee of {basefee}",
            max_fee_per_cycle=str(max_fee),
            basefee_lane_timer=str(basefee),
        )
    room = max_fee - basefee
    stated = lane.previous_tip if priority is None else priority
    kept = min(stated, room)
    # What nobody has stated is lowered without a word.
    return freeze_fees(max_fee, kept), None if priority is None or kept == stated else (stated, kept)


def _stated(request: TimerRequest) -> tuple[str, int]:
    """Return the name and value of the first fee that a request states; it states one."""
    name = "max_fee_per_cycle" if request.max_fee_per_cycle is not None else "max_priority_fee_per_cycle"
    return name, getattr(request, name)


def _priced_twice(request: TimerRequest) -> Rejection:
    name, value = _stated(request)
    agent = str(Address(request.gas_bidding_agent or b""))
    return Rejection(
        RejectionReason.INVALID_INPUT,
        f"{name} is {value} and gas_bidding_agent is {agent}: a timer has fees of its own, or an agent that prices it",
        field=name,
        value=str(value),
        gas_bidding_agent=agent,
    )


def _lane_inactive(rules: Rules, request: TimerRequest) -> Rejection:
    name, value = _stated(request)
    begins = rules.params.lane.activation_height
    when = f"it is from height {begins} on" if begins else "no height is set from which it will be"
    return Rejection(
        RejectionReason.INVALID_INPUT,
        f"{name} is {value}, but the timer lane is not active: {when}",
        field=name,
        value=str(value),
        activation_height=begins,
    )


def _has_ended(session: BlockSession, timer: Timer) -> bool:
    """Return whether a block, this one perhaps, found the timer expired and only wanted for budget to remove it."""
    found = session.context.height - (not session.has_delivered)
    return timer.height <= found and timer.expires_at < found
