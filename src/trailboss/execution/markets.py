"""The registry of markets: what execution does under each kind of market that a chain may have.

A mechanism that needs something new of execution has its row here; its functions stand in a folder of its own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trailboss.execution.auction.invariants import check_auction
from trailboss.execution.auction.market import open_auction
from trailboss.execution.auction.timers import cancel_late, mark_late, set_timeout
from trailboss.execution.globalbox import fires, timers
from trailboss.execution.globalbox.invariants import check_market
from trailboss.execution.globalbox.market import globalbox_rests, open_globalbox
from trailboss.execution.globalbox.records import (
    box_counts,
    fires_of_box,
    first_to_collect,
    is_executing,
    leave_globalbox,
)
from trailboss.execution.hooks import MarketHooks, open_nothing
from trailboss.execution.lane.fairness import check_fairness, first_to_leave
from trailboss.execution.lane.market import open_lane
from trailboss.execution.lane.offers import check_request, offer, offer_without_lane
from trailboss.mechanisms.base import Verdict
from trailboss.model import calls
from trailboss.model.markets import MarketKind
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import terms_of

MARKETS: Final[Mapping[MarketKind, MarketHooks]] = MappingProxyType(
    {
        MarketKind.NONE: MarketHooks(
            open=open_nothing, opens_empty=False, offer=offer_without_lane, check=check_fairness
        ),
        MarketKind.LANE: MarketHooks(
            open=open_lane, check_request=check_request, offer=offer, next_event=first_to_leave, check=check_fairness
        ),
        MarketKind.AUCTION: MarketHooks(
            open=open_auction,
            offer=offer_without_lane,
            calls={calls.SET_TIMEOUT_AUCTION: set_timeout},
            no_extension="never expire",
            verdicts={Verdict.DELAY: mark_late, Verdict.CANCEL: cancel_late},
            check=check_auction,
        ),
        MarketKind.GLOBALBOX: MarketHooks(
            open=open_globalbox,
            offer=offer_without_lane,
            calls={
                calls.SET_TIMEOUT_GLOBALBOX: timers.set_timer,
                calls.SET_STATE_WATCH: timers.set_timer,
                calls.UPDATE: timers.update_timer,
                calls.CANCEL_GLOBALBOX: timers.cancel_timer,
            },
            no_extension="keep the expiry they are set with",
            verdicts={Verdict.ENQUEUE: fires.enqueue_fire, Verdict.MATERIALIZE: fires.materialize_fire},
            take=fires.take_fire,
            fire_facts=fires.delivery_facts,
            fire_events=fires.fire_receipt,
            is_last=fires.ends_with,
            keeps_fired=True,
            is_cancellable=lambda timer: not is_executing(timer),
            is_movable=lambda timer: terms_of(timer, GlobalboxTerms).kind is Trigger.HEIGHT,
            on_remove=leave_globalbox,
            examined=fires.examined_facts,
            recorded=box_counts,
            rests=globalbox_rests,
            next_event=first_to_collect,
            fire_count=fires_of_box,
            check=check_market,
        ),
    }
)
"""Kind of market to what execution does under it."""
