"""Timers of the auction: who sets one names the agent that bids for it, and the timer waits for as long as it takes.

Spec: CIP-1v1 §3, CIP-1v1 §4
"""

import msgspec

from trailboss.execution.checks import check_agent, check_gas_limit, check_height, check_payload, check_timer_count
from trailboss.execution.session import BlockSession, Scope
from trailboss.execution.timers import accept_timer, end_timer, write_timer
from trailboss.mechanisms.base import Decision
from trailboss.model.auction import DelayAction
from trailboss.model.calls import AuctionRequest
from trailboss.model.events import TIMER_CANCELLED_BY_DELAY, TIMER_DELAYED
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, Timer, TimerEnd, terms_of
from trailboss.primitives.units import U64_MAX, Amount
from trailboss.vm.meter import Meter


def set_timeout(scope: Scope, actor: bytes, request: AuctionRequest, meter: Meter) -> bytes:
    """Accept a timer of ``actor``, which pays when it fires, and return its id. A refusal changes only the meter.

    Spec: CIP-1v1 §3, CIP-1v1 §4.1, CIP-1v1 §4.2
    """
    session, rules = scope.session, scope.session.context.rules
    # CHECK
    check_height(request.height, session.context.height)
    check_payload(rules, request.payload)
    check_agent(session.ledger, request.agent)
    gas_limit = check_gas_limit(rules, request.gas_limit)
    check_timer_count(rules, actor, session.ledger.account(actor).timer_count)
    # CHARGE
    meter.charge_cells(len(request.payload) + rules.params.costs.timer_index_cells)
    # RUN
    timer = accept_timer(
        scope,
        actor,
        request.payload,
        height=request.height,
        fee_payer=actor,
        gas_limit=gas_limit,
        expires_at=U64_MAX,
        fees=ASK_AGENT,
        terms=AuctionTerms(request.agent),
    )
    return timer.timer_id


# Timers that wait for longer than ``MAX_ALLOWED_DELAYS``. Spec: overview. Decision: D-19.


def mark_late(session: BlockSession, decision: Decision) -> None:
    """Mark a timer as late and emit it once. Its delay is the number of blocks since it fell due."""
    timer = decision.timer
    late = msgspec.structs.replace(timer, terms=msgspec.structs.replace(terms_of(timer, AuctionTerms), is_late=True))
    write_timer(session, late)
    session.follower.replace(late)
    action = DelayAction(session.context.rules.params.auction.delay_action)
    facts = {"delay_count": session.context.height - timer.height, "action": action.name.lower()}
    session.emit(TIMER_DELAYED, timer, facts)


def cancel_late(session: BlockSession, decision: Decision) -> None:
    """End a late timer at its owner's expense."""
    facts = {"refund": 0, "penalty": _charge_penalty(session, decision.timer)}
    end_timer(session, decision.timer, TimerEnd.CANCELLED, TIMER_CANCELLED_BY_DELAY, facts)


def _charge_penalty(session: BlockSession, timer: Timer) -> Amount:
    """Burn what the cancelling of a late timer costs its owner, up to what it holds, and return it."""
    rules, ledger = session.context.rules, session.ledger
    cycle_basefee, _ = rules.timer_basefees()
    price = rules.params.auction.delay_penalty_cycles * cycle_basefee
    # CHARGE
    penalty = Amount(min(price, ledger.balance(timer.actor)))
    ledger.debit(timer.actor, penalty)
    # SETTLE
    ledger.burned += penalty
    return penalty
