"""The auction around the deliveries: what it opens with, and what it leaves for the next block.

Spec: CIP-1v1 §3, CIP-1v1 §4
"""

from collections import Counter, defaultdict
from functools import partial
from typing import Final

import msgspec

from trailboss.execution.agents import BidCollector, BidTerms
from trailboss.execution.auction.standings import Standings
from trailboss.execution.due_admission import has_joined
from trailboss.execution.hooks import OpenMarket
from trailboss.execution.session import BlockSession, Fired
from trailboss.execution.timers import load_timer
from trailboss.mechanisms.base import Rest
from trailboss.mechanisms.context import AuctionMarket, Bid
from trailboss.model.auction import AuctionState, DelayAction
from trailboss.model.decisions import FeeSource
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import Timer, freeze_fees, terms_of
from trailboss.primitives.units import Price

TIP: Final = "tip"
"""What an agent's answer calls the tip. Spec: CIP-1v1 §3."""


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
