"""What the deliveries of a block open with and leave behind, for whichever of the three the chain's state has.

Rules say what is there; nothing here or in the deliveries asks which mechanism it is.
"""

from typing import NamedTuple

from trailboss.execution.agents import AgentDesk
from trailboss.execution.auction.market import close_auction, open_auction
from trailboss.execution.globalbox.market import close_globalbox, open_globalbox
from trailboss.execution.lane import close_market, open_market
from trailboss.execution.session import BlockSession
from trailboss.mechanisms.context import Market
from trailboss.model.auction import AuctionState
from trailboss.model.markets import MarketKind


class OpenMarket(NamedTuple):
    """What a block's deliveries find.

    Attributes:
        market: The market of the mechanism in force.
        desk: Where gas bidding agents are asked; None where they are not.
    """

    market: Market
    desk: AgentDesk | None = None


def open_markets(session: BlockSession) -> OpenMarket:
    """Open what the chain has, before the deliveries."""
    rules = session.context.rules
    if rules.market.kind is MarketKind.LANE:
        return OpenMarket(*open_market(session, rules.market))
    if rules.market.kind is MarketKind.AUCTION:
        return OpenMarket(*open_auction(session, rules.market.kept(AuctionState)))
    if rules.market.kind is MarketKind.GLOBALBOX:
        return OpenMarket(open_globalbox(session))
    return OpenMarket(Market(max_cycles_per_fire=rules.timer.max_cycles_per_fire))


def close_markets(session: BlockSession) -> None:
    """Write what the next block finds, after everything else."""
    rules = session.context.rules
    if rules.market.kind is MarketKind.LANE:
        close_market(session, rules.market)
    if rules.market.kind is MarketKind.AUCTION:
        close_auction(session, rules.market.kept(AuctionState))
    if rules.market.kind is MarketKind.GLOBALBOX:
        close_globalbox(session)
