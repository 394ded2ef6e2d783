"""Timers of the auction: who sets one names the agent that bids for it, and the timer waits for as long as it takes.

Spec: CIP-1v1 §3, CIP-1v1 §4
"""

from trailboss.execution.session import Scope
from trailboss.execution.timer_checks import (
    check_agent,
    check_gas_limit,
    check_height,
    check_payload,
    check_timer_count,
)
from trailboss.execution.timers import accept_timer
from trailboss.model.calls import AuctionRequest
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT
from trailboss.primitives.units import U64_MAX
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
