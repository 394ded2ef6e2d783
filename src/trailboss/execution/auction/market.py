"""The auction around the deliveries: what it opens with, what it leaves for the next block, and its timers.

Who sets one names the agent that bids for it, and the timer waits for as long as it takes.
Spec: CIP-1v1 §3, CIP-1v1 §4.
"""

from collections import Counter, defaultdict
from functools import partial
from typing import Final

import msgspec

from trailboss.execution.agents import BidCollector, BidTerms
from trailboss.execution.auction.standings import Standings
from trailboss.execution.checks import check_agent, check_gas_limit, check_height, check_payload, check_timer_count
from trailboss.execution.due_admission import has_joined
from trailboss.execution.session import BlockSession, Fired, OpenMarket, Scope
from trailboss.execution.timers import accept_timer, end_timer, load_timer
from trailboss.mechanisms.base import Decision, Rest
from trailboss.mechanisms.context import AuctionMarket, Bid
from trailboss.metering.meter import Meter
from trailboss.model.auction import AuctionState, DelayAction
from trailboss.model.calls import AuctionRequest
from trailboss.model.decisions import FeeSource
from trailboss.model.events import TIMER_CANCELLED_BY_DELAY, TIMER_DELAYED
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, Timer, TimerEnd, freeze_fees, terms_of
from trailboss.primitives.units import U64_MAX, Amount, Price

TIP: Final = "tip"  # What an agent's answer calls the tip. Spec: CIP-1v1 §3.


def open_auction(session: BlockSession) -> OpenMarket:
    """Open the auction; only what the mechanism asks for writes. Spec: CIP-1v1 §3, CIP-1v1 §4.2. Decision: D-57."""
    rules, auction = session.context.rules, session.context.rules.params.auction
    state = rules.market.kept(AuctionState)
    default_fees = Price(2 * rules.timer_basefees()[0]), Price(0)
    standings = Standings(session, state)
    bid_terms = BidTerms(
        cycles_max=auction.gba_cycles_max,
        cycles_per_block=auction.gba_cycles_per_block,
        facts={},
        tip=TIP,
        default_fees=default_fees,
        answered=partial(_answered, session.context.height),
    )
    collector = BidCollector(session, bid_terms)
    market = AuctionMarket(
        max_cycles_per_fire=rules.timer.max_cycles_per_fire,
        epoch=standings.epoch,
        rescales=len(state.rescales),
        actors_weighed_max=auction.actors_weighed_max,
        delays_max=auction.delays_max,
        delay_action=DelayAction(auction.delay_action),
        default_bid=Bid(*default_fees, FeeSource.FALLBACK),
        weight_of=standings.weight_of,
        is_behind=standings.is_behind,
        refresh_weight=standings.refresh_weight,
        ask=collector.collect,
        timer_of=partial(load_timer, session),
    )
    return OpenMarket(market, partial(close_auction, session), collector.collected)


def close_auction(session: BlockSession, _: Rest) -> None:
    """Count what the block's timers have done, by actor. Spec: CIP-1v1 §3. Decision: D-58.

    Complexity: O(1) for each that has joined, fired or left; those that only wait cost nothing.
    """
    joined = Counter(timer.actor for timer in session.admission.joining)
    left = Counter(timer.actor for timer in session.departed if has_joined(session, timer))
    fires: defaultdict[bytes, list[Fired]] = defaultdict(list)
    for fire in session.fired:
        fires[fire.actor].append(fire)
    standings = Standings(session, session.context.rules.market.kept(AuctionState))
    for actor in sorted(joined.keys() | left.keys()):
        standings.count(actor, joined=joined[actor], fires=fires[actor], left=left[actor])


def _answered(height: int, timer: Timer, bid: Bid) -> Timer:
    """Return the record that a call leaves: its bid stands until the next. Decision: D-57."""
    terms = msgspec.structs.replace(terms_of(timer, AuctionTerms), asked_at=height)
    fees = freeze_fees(bid.max_fee, bid.max_priority_fee, bid.cell_fees)
    return msgspec.structs.replace(timer, fees=fees, terms=terms)


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
    account = session.ledger.account(actor)
    check_timer_count(rules, actor, account.timer_count)
    # CHARGE
    meter.charge_cells(len(request.payload) + rules.params.costs.timer_index_cells)
    # RUN
    timer = accept_timer(
        scope,
        actor,
        account,
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
    session.write_timer(late)
    session.follower.replace(late)
    action = DelayAction(session.context.rules.params.auction.delay_action)
    facts = {"delay_count": session.context.height - timer.height, "action": action.name.lower()}
    session.emit(TIMER_DELAYED, timer, facts)


def cancel_late(session: BlockSession, decision: Decision) -> None:
    """End a late timer at its owner's expense: the penalty, up to what it holds, is burned."""
    rules, ledger, timer = session.context.rules, session.ledger, decision.timer
    price = rules.params.auction.delay_penalty_cycles * rules.timer_basefees()[0]
    # CHARGE
    penalty = Amount(min(price, ledger.balance(timer.actor)))
    ledger.debit(timer.actor, penalty)
    # SETTLE
    ledger.burned += penalty
    end_timer(session, timer, TimerEnd.CANCELLED, TIMER_CANCELLED_BY_DELAY, {"refund": 0, "penalty": penalty})
