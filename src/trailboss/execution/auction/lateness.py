"""Timers that wait for longer than ``MAX_ALLOWED_DELAYS``. Spec: overview. Decision: D-19."""

import msgspec

from trailboss.execution.session import BlockSession
from trailboss.execution.timers import end_timer, write_timer
from trailboss.mechanisms.base import Decision
from trailboss.model.auction import DelayAction
from trailboss.model.events import TIMER_CANCELLED_BY_DELAY, TIMER_DELAYED
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import Timer, TimerEnd, terms_of
from trailboss.primitives.units import Amount


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
