"""What a host call may ask for: each check refuses one thing, naming the value and the rule.

Spec: CIP-5 §4.2, CIP-5 §6.4
"""

from trailboss.execution.ledger import Ledger
from trailboss.execution.session import Scope
from trailboss.governance.rules import Rules
from trailboss.model.actors import TIMER_SCHEDULE
from trailboss.model.timers import Timer
from trailboss.primitives.errors import Fact, Rejection, RejectionReason
from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32
from trailboss.primitives.units import U64_MAX, Cycles
from trailboss.vm.engine import Frame


def invalid(what: str, **facts: Fact) -> Rejection:
    """Return a refusal with ``INVALID_INPUT``."""
    return Rejection(RejectionReason.INVALID_INPUT, what, **facts)


def no_actor(address: bytes) -> Rejection:
    """Return the refusal of an address without code."""
    shown = str(Address(address))
    return Rejection(RejectionReason.ACTOR_NOT_FOUND, f"there is no actor at {shown}", actor=shown)


def check_entitled(scope: Scope, frame: Frame, entitlement: str = TIMER_SCHEDULE) -> None:
    """Refuse an actor that may not schedule timers, or upgrade itself; where nothing is enforced, warn of the first.

    Source: cowboy-facts §2.3, §2.4. Decision: D-91, D-119
    """
    ledger, params = scope.session.ledger, scope.session.context.rules.params.timers
    has_been_warned = entitlement == TIMER_SCHEDULE and ledger.account(frame.actor).timer_nonce > 0
    # The manifest is read last: its key is a hash.
    if (has_been_warned and not params.schedule_needs_entitlement) or ledger.is_entitled(frame.actor, entitlement):
        return
    deed = "schedules a timer" if entitlement == TIMER_SCHEDULE else "upgrades itself"
    what = f"{deed} without the entitlement {entitlement}"
    if params.schedule_needs_entitlement:
        raise Rejection(
            RejectionReason.MISSING_ENTITLEMENT,
            f"{Address(frame.actor)} {what}",
            actor=str(Address(frame.actor)),
            entitlement=entitlement,
        )
    words = f"it {what}, which a public chain refuses; deploy it with that entitlement"
    scope.printing.warn(frame.actor, frame.handler, words)


def check_height(height: int, now: int) -> None:
    """Refuse a height that is not above the present one or does not fit 64 bits. Spec: CIP-5 §4.2, CIP-5 §5.3."""
    if not now < height <= U64_MAX:
        what = f"height {height} must be above the present height {now} and below 2**64"
        raise invalid(what, height=str(height), current_height=now)


def check_payload(rules: Rules, payload: bytes) -> None:
    """Refuse a payload that is too long. Spec: CIP-5 §4.2."""
    limit = rules.params.timers.payload_bytes_max
    if len(payload) > limit:
        what = f"payload has {len(payload)} bytes and the limit is {limit}"
        raise invalid(what, field="payload", size=len(payload), limit=limit)


def check_fee_payer(rules: Rules, payer: bytes, actor: bytes, signer: bytes) -> None:
    """Refuse a fee payer that has not consented: any but the actor and, unless a preset says so, the sender.

    Spec: CIP-5 §4.2. Source: cowboy-facts §4. Decision: D-25, D-28, D-114
    """
    number, band = int.from_bytes(payer, "big"), rules.params.governance.reserved_band_max
    if payer == ZERO_ADDRESS:
        rule = "the zero address pays nobody"
    elif number <= band:
        rule = f"system actors 0x01..=0x{band:02X} pay for nobody"
    elif rules.params.timers.payer_is_actor and payer != actor:
        rule = f"on this chain it must be the actor {Address(actor)}, as on a public one"
    elif payer not in (actor, signer):
        rule = f"it must be the actor {Address(actor)} or the sender of the transaction {Address(signer)}"
    else:
        return
    raise invalid(f"fee_payer {Address(payer)} is refused: {rule}", fee_payer=str(Address(payer)))


def check_gas_limit(rules: Rules, gas_limit: int | None) -> Cycles:
    """Return a gas limit within bounds, or the default for None. Spec: CIP-5 §4.2, CIP-5 §6.4."""
    least, most = gas_limit_bounds(rules)
    if gas_limit is None:
        return most
    if not least <= gas_limit <= most:
        raise out_of_range("gas_limit", gas_limit, least, most)
    return Cycles(gas_limit)


def gas_limit_bounds(rules: Rules) -> tuple[Cycles, Cycles]:
    """Return the least and the greatest gas limit of a timer scheduled in this block; the greatest is the default.

    Where a fire counts for its actor, or votes on the median tip, none costs less than a frame.
    Spec: CIP-5 §6.4, CIP-1v3 §10. Decision: D-13, D-29.
    """
    most = min(rules.timer.max_cycles_per_fire, rules.market.max_cycles_per_fire)
    return rules.market.gas_limit_min, most


def check_timer_count(rules: Rules, actor: bytes, timer_count: int) -> None:
    """Refuse an actor one live timer too many. Spec: CIP-5 §6.4."""
    limit = rules.timer.max_timers_per_actor
    if timer_count >= limit:
        what = f"{Address(actor)} holds {timer_count} live timers and the limit is {limit}"
        raise Rejection(RejectionReason.TIMER_LIMIT, what, actor=str(Address(actor)), limit=limit)


def check_agent(ledger: Ledger, agent: bytes) -> None:
    """Refuse an agent that is no actor. Spec: CIP-1v3 §7, CIP-1v1 §4.2."""
    found = ledger.find(agent)
    if found is None or not found.code_hash:
        shown = str(Address(agent))
        raise Rejection(RejectionReason.NOT_FOUND, f"there is no actor at {shown} to price timers", agent=shown)


def check_timer_id(rules: Rules, identity: bytes) -> None:
    """Refuse an id that no timer can have. Spec: CIP-5 §3.1."""
    check_size("timer_id", len(identity), rules.params.timers.timer_id_bytes_max)


def check_owner(timer: Timer, actor: bytes | None) -> None:
    """Refuse a timer to all but its owner; None is governance, which may. Spec: CIP-5 §4.2."""
    if actor is not None and timer.actor != actor:
        raise Rejection(
            RejectionReason.UNAUTHORIZED_TIMER,
            f"timer {Hash32(timer.timer_id)} belongs to {Address(timer.actor)}, not to {Address(actor)}",
            caller=str(Address(actor)),
            owner=str(Address(timer.actor)),
        )


def check_size(name: str, size: int, limit: int, least: int = 1) -> None:
    """Refuse text or bytes of a size out of bounds."""
    if not least <= size <= limit:
        raise invalid(f"{name} has {size} bytes, outside {least}..={limit}", field=name, size=size, limit=limit)


def out_of_range(name: str, value: int, minimum: int, maximum: int) -> Rejection:
    """Return the refusal of a number out of bounds."""
    return invalid(
        f"{name} is {value}, outside {minimum}..={maximum}",
        field=name,
        value=str(value),
        minimum=minimum,
        maximum=maximum,
    )
