"""Costs of timers, and how long balances last."""

from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, LIMIT_MAX, U64, Limit, Offset, Positive, integer
from trailboss.forecast.quote import Quote, quote_timer
from trailboss.forecast.runway import Runway, runway_of
from trailboss.forecast.watchtower import PAYERS_SHOWN, Watch
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import FORECAST_BLOCKS, QUOTED_BLOCKS, ForecastTimer, is_near
from trailboss.views.recent_blocks import BLOCKS, BLOCKS_MAX
from trailboss.views.shared_fields import extended

routes: Final = Routes("forecasts")
FORECAST_BLOCKS_SERVED: Final = 1_000  # most blocks that a node looks ahead
Recent = Annotated[int, integer(BLOCKS_MAX, 1)]


class QuoteAnswer(Quote, frozen=True, kw_only=True):
    """What a timer that is scheduled now would cost, and how likely it runs soon after it is due."""

    per_cycle: int  # what one cycle costs now, in total


@routes.get("/quote", refuses=(HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE))
def quote(
    call: Call,
    *,
    height: U64,  # height at which the timer would be due
    gas_limit: Positive,  # cycles that the fire may use
    tip: U64 | None = None,  # `max_priority_fee_per_cycle`, base units; the default agent's if left out
    actor: Address | None = None,  # owner of the timer; an actor that has not fired if left out
    blocks: Recent = BLOCKS,  # number of recent blocks to use
) -> QuoteAnswer:
    """Return what a timer scheduled now would cost, and how often a timer like it would have run lately."""
    view = call.view
    future = call.node.workbench.ahead(view, QUOTED_BLOCKS).view if is_near(view, height) else None
    found = quote_timer(view, height, gas_limit, tip, actor=actor, blocks=blocks, future=future)
    return extended(QuoteAnswer, found, per_cycle=found.per_cycle)


class ForecastPage(Struct, frozen=True, kw_only=True):
    """What becomes of the live timers in the next blocks, if nothing is sent."""

    from_height: int  # the last block that there is
    last_height: int  # the last block of the forecast; an earlier one than asked for if fires use too many cycles
    total_count: int
    timers: tuple[ForecastTimer, ...]  # by block, those that still wait at the end, from ``offset`` on
    has_more: bool  # whether there are more than 10,000, which are left out
    later: int  # live timers that are due after the last block


@routes.get("/forecast", refuses=(HttpReason.INVALID_VALUE,))
def forecast(
    call: Call,
    *,
    blocks: Annotated[int, integer(FORECAST_BLOCKS_SERVED, 1)] = FORECAST_BLOCKS,  # number of blocks to look ahead
    timer_id: Hash32 | None = None,  # only this timer
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
) -> ForecastPage:
    """Return what becomes of each live timer in the next blocks: when, at what price, who pays, why it waits."""
    found = call.node.workbench.ahead(call.view, blocks).forecast
    timers = found.timers if timer_id is None else found.of(timer_id)
    return extended(ForecastPage, found, total_count=len(timers), timers=timers[offset : offset + limit])


@routes.get("/runway/{payer}")
def runway(
    call: Call,
    *,
    payer: Address,
    blocks: Recent = BLOCKS,  # number of recent blocks to use
) -> Runway:
    """Return how many fires a balance still pays for, and the block in which it is used up."""
    return runway_of(call.view, payer, blocks=blocks)


@routes.get("/watchtower")
def watchtower(call: Call, *, limit: Annotated[int, integer(LIMIT_MAX, 1)] = PAYERS_SHOWN) -> Watch:
    """List payers whose balances end first, actors whose timers failed lately, and the cost of fires.

    A node examines some payers at once, with 2,000 of their timers: those with the shortest runway, those whose fires
    have just run, those whose timers come next, and the others in turn. An actor whose timers failed in the last 100
    blocks is listed even if it has no live timer left.
    """
    return call.node.watchtower.look(call.view, limit)
