"""The registry of markets: what execution does under each kind of market that a chain may have.

A mechanism that needs something new of execution has its row here; its functions stand in a folder of its own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trailboss.execution.auction.market import cancel_late, mark_late, open_auction, set_timeout
from trailboss.execution.auction.standings import check_auction
from trailboss.execution.globalbox import market, records, timers
from trailboss.execution.lane.fairness import check_fairness, first_to_leave, median_rests
from trailboss.execution.lane.market import check_request, offer, offer_without_lane, open_lane
from trailboss.execution.session import MarketHooks, open_nothing
from trailboss.execution.timers import take_timer
from trailboss.mechanisms.base import Verdict
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import terms_of

MARKETS: Final[Mapping[MarketKind, MarketHooks]] = MappingProxyType(
    {
        MarketKind.NONE: MarketHooks(
            open=open_nothing, opens_empty=False, offer=offer_without_lane, take=take_timer, check=check_fairness
        ),
        MarketKind.LANE: MarketHooks(
            open=open_lane,
            check_request=check_request,
            offer=offer,
            take=take_timer,
            rests=median_rests,
            next_event=first_to_leave,
            check=check_fairness,
        ),
        MarketKind.AUCTION: MarketHooks(
            open=open_auction,
            offer=offer_without_lane,
            calls={calls.SET_TIMEOUT_AUCTION: set_timeout},
            no_extension="never expire",
            verdicts={Verdict.DELAY: mark_late, Verdict.CANCEL: cancel_late},
            take=take_timer,
            check=check_auction,
        ),
        MarketKind.GLOBALBOX: MarketHooks(
            open=market.open_globalbox,
            offer=offer_without_lane,
            calls={
                calls.SET_TIMEOUT_GLOBALBOX: timers.set_timer,
                calls.SET_STATE_WATCH: timers.set_timer,
                calls.UPDATE: timers.update_timer,
                calls.CANCEL_GLOBALBOX: timers.cancel_timer,
            },
            no_extension="keep the expiry they are set with",
            verdicts={Verdict.ENQUEUE: market.enqueue_fire, Verdict.MATERIALIZE: market.materialize_fire},
            take=market.take_fire,
            fire_facts=market.delivery_facts,
            fire_events=market.fire_receipt,
            is_last=market.ends_with,
            keeps_fired=True,
            is_cancellable=lambda timer: not records.is_executing(timer),
            is_movable=lambda timer: terms_of(timer, GlobalboxTerms).kind is Trigger.HEIGHT,
            on_remove=records.leave_globalbox,
            examined=market.examined_facts,
            recorded=records.box_counts,
            rests=market.globalbox_rests,
            next_event=records.first_to_collect,
            fire_count=records.fires_of_box,
            check=records.check_market,
        ),
    }
)
"""Kind of market to what execution does under it."""
