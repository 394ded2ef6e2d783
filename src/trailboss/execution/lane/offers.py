"""The fees that a timer offers when it is scheduled: in the lane, and before the lane is active.

Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v3 §7.1
"""

from trailboss.execution.checks import invalid
from trailboss.execution.hooks import Offered
from trailboss.execution.timers import WITHDRAWN
from trailboss.governance.markets import MarketTerms
from trailboss.governance.rules import Rules
from trailboss.model.timers import ASK_AGENT, NO_FEES, TimerRequest, freeze_fees
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address


def check_request(rules: Rules, request: TimerRequest) -> None:
    """Refuse the withdrawn argument, which is ignored before the activation. Spec: CIP-1v3 §13.2."""
    if request.has_bid:
        what = f"{WITHDRAWN} is given, which is withdrawn since height {rules.params.lane.activation_height}"
        raise Rejection(RejectionReason.TIMER_ARGUMENT_DEPRECATED, what, argument=WITHDRAWN)


def offer(rules: Rules, request: TimerRequest, has_agent: bool) -> Offered:
    """Return what a timer offers in the lane; refuse a fee beside its own agent, or a cap below the basefee.

    Decision: D-16, D-86
    """
    is_priced = _is_priced(request)
    if request.gas_bidding_agent is not None:
        return _own_agent(request)
    if has_agent and not is_priced:
        return ASK_AGENT, None
    return _freeze(rules.market, request.max_fee_per_cycle, request.max_priority_fee_per_cycle)


def offer_without_lane(rules: Rules, request: TimerRequest, has_agent: bool) -> Offered:
    """Return what a timer offers while no lane is active: its agent, if it has one. Refuse fees. Decision: D-86."""
    if request.gas_bidding_agent is not None:
        return _own_agent(request)
    if not _is_priced(request):
        return ASK_AGENT if has_agent else NO_FEES, None
    name, value = _stated(request)
    begins = rules.params.lane.activation_height
    when = f"it is from height {begins} on" if begins else "no height is set from which it will be"
    raise invalid(
        f"{name} is {value}, but the timer lane is not active: {when}",
        field=name,
        value=str(value),
        activation_height=begins,
    )


def _is_priced(request: TimerRequest) -> bool:
    return request.max_fee_per_cycle is not None or request.max_priority_fee_per_cycle is not None


def _own_agent(request: TimerRequest) -> Offered:
    """Return the offer of a timer with an agent of its own, which sets all of its fees."""
    agent = request.gas_bidding_agent or b""
    if not _is_priced(request):
        return ASK_AGENT + agent, None
    name, value = _stated(request)
    shown = str(Address(agent))
    raise invalid(
        f"{name} is {value} and gas_bidding_agent is {shown}: a timer has fees of its own, or an agent that prices it",
        field=name,
        value=str(value),
        gas_bidding_agent=shown,
    )


def _freeze(terms: MarketTerms, cap: int | None, priority: int | None) -> Offered:
    """Return the fees as they are kept: a default priority is clamped silently, a stated one with an event."""
    basefee = terms.basefee
    max_fee = 2 * basefee if cap is None else cap
    if max_fee < basefee:
        raise Rejection(
            RejectionReason.TIMER_BELOW_BASEFEE,
            f"max_fee_per_cycle is {max_fee}, below the lane basefee of {basefee}",
            max_fee_per_cycle=str(max_fee),
            basefee_lane_timer=str(basefee),
        )
    stated = terms.previous_tip if priority is None else priority
    kept = min(stated, max_fee - basefee)
    return freeze_fees(max_fee, kept), None if priority is None or kept == stated else (stated, kept)


def _stated(request: TimerRequest) -> tuple[str, int]:
    """Return the name and value of the first fee that a request states; it states one."""
    name = "max_fee_per_cycle" if request.max_fee_per_cycle is not None else "max_priority_fee_per_cycle"
    return name, getattr(request, name)
