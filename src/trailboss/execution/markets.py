"""What the deliveries of a block open with and leave behind, for whichever of the three the chain's state has.

Rules say what is there; nothing here or in the deliveries asks which mechanism it is.
"""

from typing import NamedTuple

from trailboss.execution.agents import AgentDesk
from trailboss.execution.auction.market import close_auction, open_auction
from trailboss.execution.globalbox.market import close_globalbox, open_globalbox
from trailboss.execution.lane import close_market, open_market
from trailboss.execution.session import BlockSession
from trailboss.mechanisms.context import AuctionMarket, GlobalboxMarket, LaneMarket


class Markets(NamedTuple):
    """What a block's deliveries find; None for what the chain does not have.

    Attributes:
        lane: The timer lane.
        auction: The GBA auction.
        globalbox: Globalbox.
        desk: Where gas bidding agents are asked.
    """

    lane: LaneMarket | None = None
    auction: AuctionMarket | None = None
    globalbox: GlobalboxMarket | None = None
    desk: AgentDesk | None = None


def open_markets(session: BlockSession) -> Markets:
    """Open what the chain has, before the deliveries."""
    rules = session.context.rules
    if rules.lane is not None:
        lane, desk = open_market(session, rules.lane)
        return Markets(lane=lane, desk=desk)
    if rules.auction is not None:
        auction, desk = open_auction(session, rules.auction)
        return Markets(auction=auction, desk=desk)
    if rules.globalbox is not None:
        return Markets(globalbox=open_globalbox(session))
    return Markets()


def close_markets(session: BlockSession) -> None:
    """Write what the next block finds, after everything else."""
    rules = session.context.rules
    if rules.lane is not None:
        close_market(session, rules.lane)
    if rules.auction is not None:
        close_auction(session, rules.auction)
    if rules.globalbox is not None:
        close_globalbox(session)
