"""How an actor sets a timer under each market: the host call, its arguments, and what an agent's answer is called."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.auction.market import TIP as AUCTION_TIP
from trailboss.execution.lane.market import TIP as LANE_TIP
from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest
from trailboss.model.configs import MarketKind
from trailboss.model.globalbox import FRACTION_BITS
from trailboss.model.timers import TimerRequest
from trailboss.simulator.ground import SLOT, Ground
from trailboss.simulator.orders import Schedule

Request = TimerRequest | AuctionRequest | GlobalboxRequest


class Asking(Struct, frozen=True):
    """How timers are asked for under one market."""

    request: Callable[[Ground, Schedule], tuple[str, Request]]  # to the host call and its arguments
    tip: str = LANE_TIP  # what an agent's answer calls the tip

    def answer(self, bid: tuple[int, int] | None) -> bytes:
        """Return the answer of a gas bidding agent, cap and tip; what is no bid for None."""
        if bid is None:
            return encode_canonical(None)
        return encode_canonical({"max_fee_per_cycle": bid[0], f"{self.tip}_per_cycle": min(bid)})


def _plain(_: Ground, order: Schedule) -> tuple[str, TimerRequest]:
    request = TimerRequest(
        height=order.height, payload=b"", gas_limit=order.gas_limit, expires_at=order.expires_at or None
    )
    return calls.SCHEDULE, request


def _lane(ground: Ground, order: Schedule) -> tuple[str, TimerRequest]:
    form, request = _plain(ground, order)
    if order.cap is None and order.tip is None and ground.agents[ground.agent_of[order.actor]].asked:
        limit = _with_question(ground, order)
        return form, replace(request, gas_limit=limit, gas_bidding_agent=ground.addresses[order.actor])
    return form, replace(request, max_fee_per_cycle=order.cap, max_priority_fee_per_cycle=order.tip)


def _auction(ground: Ground, order: Schedule) -> tuple[str, AuctionRequest]:
    request = AuctionRequest(order.height, b"", ground.addresses[order.actor], _with_question(ground, order))
    return calls.SET_TIMEOUT_AUCTION, request


def _with_question(ground: Ground, order: Schedule) -> int:
    """Return a gas limit with room for the question to the agent, which the fire pays, up to what a fire may use."""
    most = max(order.gas_limit, ground.params.timers.max_cycles_per_fire)
    return min(order.gas_limit + ground.params.costs.frame_base, most)


def _globalbox(ground: Ground, order: Schedule) -> tuple[str, GlobalboxRequest]:
    watched = None if order.watches is None else (ground.addresses[order.watches] + SLOT,)
    request = GlobalboxRequest(
        target=ground.addresses[order.called],
        payload=b"",
        due_height=order.height if watched is None else None,
        watch_keys=watched,
        gas_limit=order.gas_limit,
        bid=(order.tip or 0) << FRACTION_BITS,
        expiry_height=order.expires_at or None,
    )
    return calls.SET_TIMEOUT_GLOBALBOX if watched is None else calls.SET_STATE_WATCH, request


ASKING: Final[Mapping[MarketKind, Asking]] = MappingProxyType(
    {
        MarketKind.NONE: Asking(_plain),
        MarketKind.LANE: Asking(_lane),
        MarketKind.AUCTION: Asking(_auction, AUCTION_TIP),
        MarketKind.GLOBALBOX: Asking(_globalbox),
    }
)
"""Market to how timers are asked for."""
