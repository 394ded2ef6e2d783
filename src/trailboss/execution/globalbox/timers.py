"""The calls of Globalbox: set, update and cancel a timer. Spec: CIP-5old §6."""

from typing import Final

from msgspec.structs import replace

from trailboss.crypto.digest import keccak256
from trailboss.execution.globalbox.records import find_ended, is_executing, target_key, timers_of_target
from trailboss.execution.session import Scope, change_count
from trailboss.execution.timers import accept_timer, find_timer, withdraw_timer
from trailboss.governance.rules import Rules
from trailboss.metering.meter import Meter
from trailboss.model.calls import GlobalboxRequest, GlobalboxUpdate
from trailboss.model.effects import TimerUpdated
from trailboss.model.envelopes import route_payload
from trailboss.model.globalbox import FRACTION_BITS, bid_octets
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import Timer, terms_of
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cycles
from trailboss.vm.arguments import CLOCK_MIN

NONCE_DOMAIN: Final = b"globalbox-nonce"


def set_timer(scope: Scope, owner: bytes, request: GlobalboxRequest, meter: Meter) -> bytes:
    """Accept a timer of ``owner`` and return its id; one that its client nonce names already stays as it is.

    A refusal changes nothing but the meter. Spec: CIP-5old §6.1, CIP-5old §6.2. Decision: D-64, D-65.
    """
    rules = scope.session.context.rules
    # CHECK
    _check_at_most("client_nonce", len(request.client_nonce), rules.params.globalbox.client_nonce_bytes_max)
    identity = None
    if request.client_nonce:
        identity = named_id(owner, request.target, request.client_nonce)
        if find_timer(scope.session, identity) or find_ended(scope.session.overlay.read, identity):
            return identity
    expires_at = _check_heights(rules, request)
    gas_limit = rules.timer.max_cycles_per_fire if request.gas_limit is None else request.gas_limit
    _check_delivery(rules, request.payload, gas_limit, request.bid)
    keys = _checked_keys(rules, request)
    _check_target(scope, request.target)
    _check_quotas(scope, owner, request.target)
    # CHARGE
    indexed = sum(map(len, keys)) + len(request.client_nonce)
    meter.charge_cells(len(request.payload) + indexed + rules.params.costs.timer_index_cells * (1 + len(keys)))
    # RUN
    change_count(scope.session, target_key(request.target), 1)
    terms = GlobalboxTerms(
        kind=Trigger.STATE_WATCH if request.due_height is None else Trigger.HEIGHT,
        target=request.target,
        bid=bid_octets(request.bid),
        watch_keys=keys,
        client_nonce=request.client_nonce,
    )
    timer = accept_timer(
        scope,
        owner,
        scope.session.ledger.account(owner),
        request.payload,
        height=expires_at + 1 if request.due_height is None else request.due_height,
        fee_payer=owner,
        gas_limit=gas_limit,
        expires_at=expires_at,
        identity=identity,
        terms=terms,
        facts={"kind": terms.kind.value, "target": terms.target, "bid": terms.bid},
    )
    return timer.timer_id


def update_timer(scope: Scope, owner: bytes, update: GlobalboxUpdate, meter: Meter) -> bool:
    """Change payload, gas limit or bid of a timer, for fires that are not queued yet. Spec: CIP-5old §6.2.

    Returns:
        Whether any fire can still show it: the timer is live, and its only fire is not queued or materialized.

    Raises:
        Rejection: ``ERR_INVALID_PARAM``, or ``ERR_TIMER_NOT_FOUND`` unless it is a timer of this owner and target, live
            or remembered; nothing has changed but the meter.
    """
    rules = scope.session.context.rules
    # CHECK
    _check_timer_id(rules, update.timer_id)
    _check_delivery(rules, update.payload, update.gas_limit, update.bid)
    timer = _find(scope, owner, update.target, update.timer_id)
    if timer is None:
        return False
    terms = terms_of(timer, GlobalboxTerms)
    if is_executing(timer) or (terms.kind is Trigger.HEIGHT and terms.fire is not None):
        return False
    # CHARGE
    meter.charge_cells(len(update.payload or b""))
    # RUN
    handler, payload = timer.handler, timer.payload
    if update.payload is not None:
        handler, payload = route_payload(update.payload, rules.params.timers.handler_bytes_max)
    if update.bid is not None:
        terms = replace(terms, bid=bid_octets(update.bid))
    updated = replace(
        timer,
        handler=handler,
        payload=payload,
        gas_limit=timer.gas_limit if update.gas_limit is None else Cycles(update.gas_limit),
        terms=terms,
    )
    scope.session.write_timer(updated)
    scope.effects.append(TimerUpdated(updated, terms.bid))
    return True


def cancel_timer(scope: Scope, owner: bytes, request: tuple[bytes, bytes], meter: Meter) -> bool:
    """Cancel a timer, and the fire that it has queued. Refuses as `update_timer` does.

    Spec: CIP-5old §6.1, CIP-5old §6.2

    Returns:
        Whether it was live and no longer is; a fire in the mailbox still runs, and ends a height timer.
    """
    target, timer_id = request
    del meter
    # CHECK
    _check_timer_id(scope.session.context.rules, timer_id)
    timer = _find(scope, owner, target, timer_id)
    if timer is None or is_executing(timer):
        return False
    # RUN
    withdraw_timer(scope, timer)
    return True


def named_id(owner: bytes, target: bytes, client_nonce: bytes) -> bytes:
    """Return the id of a timer that its owner has named, 32 bytes. Decision: D-64."""
    return keccak256(NONCE_DOMAIN + owner + target + client_nonce)


def _find(scope: Scope, owner: bytes, target: bytes, timer_id: bytes) -> Timer | None:
    """Return a live timer of an owner and target, None if it is remembered as ended; else ``ERR_TIMER_NOT_FOUND``."""
    timer = find_timer(scope.session, timer_id)
    ended = find_ended(scope.session.overlay.read, timer_id) if timer is None else None
    found = (timer.actor, timer.target) if timer is not None else ended and (ended.owner, ended.target)
    if found != (owner, target):
        what = f"{Address(owner)} has no timer {timer_id.hex()} of target {Address(target)}"
        raise Rejection(RejectionReason.ERR_TIMER_NOT_FOUND, what, timer_id=timer_id.hex(), target=str(Address(target)))
    return timer


def _check_heights(rules: Rules, request: GlobalboxRequest) -> int:
    """Check due height and expiry; return the last height at which the timer may fire. Decision: D-82."""
    # From CLOCK_MIN on a number reads as a time, and the call is refused for that.
    now, ttl = rules.height, rules.timer.max_ttl_blocks
    last = min(now + ttl, CLOCK_MIN - 1)
    due = request.due_height
    if due is not None and due > last:
        raise Rejection(
            RejectionReason.ERR_UNSUPPORTED_TIMER_TYPE,
            f"due_height is {due}, {due - now} blocks ahead, and a timer set in block {now} ends after height {last}, "
            f"max_ttl_blocks = {ttl} ahead: heights count blocks, not seconds",
            field="due_height",
            value=str(due),
            maximum=last,
        )
    for name, height in (("due_height", due), ("expiry_height", request.expiry_height)):
        if height is not None:
            _check_within(name, height, now + 1, last)
    return last if request.expiry_height is None else request.expiry_height


def _check_delivery(rules: Rules, payload: bytes | None, gas_limit: int | None, bid: int | None) -> None:
    """Check what fires are delivered with; None is not given."""
    params = rules.params.globalbox
    if payload is not None:
        _check_at_most("payload", len(payload), params.payload_bytes_max)
    if gas_limit is not None:
        _check_within("gas_limit", gas_limit, params.min_gas_limit, rules.timer.max_cycles_per_fire)
    if bid is not None:
        _check_within("the whole part of bid_fp", bid >> FRACTION_BITS, params.bid_min, params.bid_max)


def _checked_keys(rules: Rules, request: GlobalboxRequest) -> tuple[bytes, ...]:
    """Return the watch keys, ascending; none for a height timer. Decision: D-65."""
    if request.watch_keys is None:
        return ()
    params, keys = rules.params.globalbox, request.watch_keys
    _check_within("the number of watch_keys", len(keys), 1, params.watch_keys_max)
    for number, key in enumerate(keys):
        name = f"the size in bytes of watch_keys[{number}]"
        _check_within(name, len(key), Address.WIDTH, params.watch_key_bytes_max)
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise _invalid("watch_keys", repeated[0].hex(), f"watch_keys has {repeated[0].hex()} more than once")
    return tuple(sorted(keys))


def _check_target(scope: Scope, target: bytes) -> None:
    account = scope.session.ledger.find(target)
    if account is None or not account.code_hash:
        shown = str(Address(target))
        raise Rejection(RejectionReason.ERR_TARGET_NOT_FOUND, f"there is no actor at {shown}", target=shown)


def _check_quotas(scope: Scope, owner: bytes, target: bytes) -> None:
    """Refuse one timer too many. A target's share bounds others' timers, not its own. Spec: CIP-5old §12."""
    session, params = scope.session, scope.session.context.rules.params.globalbox
    for role, address, count, limit in (
        ("owner", owner, session.ledger.account(owner).timer_count, params.max_timers_per_owner),
        ("target", target, timers_of_target(session.overlay.read, target), params.max_timers_per_target),
    ):
        if count >= limit and (role, target) != ("target", owner):
            raise Rejection(
                RejectionReason.ERR_QUOTA_EXCEEDED,
                f"{Address(address)} is the {role} of {count} live timers and the limit is {limit}",
                role=role,
                address=str(Address(address)),
                limit=limit,
            )


def _check_timer_id(rules: Rules, timer_id: bytes) -> None:
    _check_within("the size of timer_id", len(timer_id), 1, rules.params.timers.timer_id_bytes_max)


def _check_at_most(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise _invalid(name, size, f"{name} has {size} bytes and the limit is {limit}")


def _check_within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise _invalid(name, value, f"{name} is {value}, outside {least}..={most}")


def _invalid(name: str, value: int | str, what: str) -> Rejection:
    return Rejection(RejectionReason.ERR_INVALID_PARAM, what, field=name, value=str(value))
