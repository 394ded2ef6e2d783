"""Timers that wait for longer than ``MAX_ALLOWED_DELAYS``. Spec: overview. Decision: D-19."""

import msgspec

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.session import BlockSession
from trailboss.execution.timers import write_timer
from trailboss.model.auction import DelayAction
from trailboss.model.events import TIMER_DELAYED, EventRecord
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import Timer, terms_of
from trailboss.primitives.units import Amount


def tell_late(session: BlockSession, timer: Timer) -> None:
    """Mark a timer as late, and say so once. Its delay is the number of blocks since it fell due."""
    late = msgspec.structs.replace(timer, terms=msgspec.structs.replace(terms_of(timer, AuctionTerms), is_late=True))
    write_timer(session, late)
    session.follower.replace(late)
    action = DelayAction(session.context.rules.params.auction.delay_action)
    facts = {
        "timer_id": timer.timer_id,
        "delay_count": session.context.height - timer.height,
        "action": action.name.lower(),
    }
    session.events.append(EventRecord(TIMER_DELAYED, timer.actor, encode_canonical(facts), timer.timer_id))


def charge_penalty(session: BlockSession, timer: Timer) -> Amount:
    """Burn what the cancelling of a late timer costs its owner, up to what it holds, and return it."""
    rules, ledger = session.context.rules, session.ledger
    cycle_basefee, _ = rules.timer_basefees()
    price = rules.params.auction.delay_penalty_cycles * cycle_basefee
    # CHARGE
    penalty = Amount(min(price, ledger.balance(timer.actor)))
    ledger.debit(timer.actor, penalty)
    # SETTLE
    ledger.burn(penalty)
    return penalty
