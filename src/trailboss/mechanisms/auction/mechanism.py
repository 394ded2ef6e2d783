"""CIP-1, first version: agents bid for timers, and the block sells its budget to the highest tips."""

from typing import Final

from trailboss.mechanisms.auction.index import AuctionIndex
from trailboss.mechanisms.auction.selection import AuctionSelection
from trailboss.mechanisms.base import DeliveryPolicy, DueTimers, IndexedMechanism, Phase
from trailboss.mechanisms.context import AuctionMarket, SelectionContext
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import Order
from trailboss.params import ChainParams

NAME: Final = "auction"


class Auction(IndexedMechanism[AuctionIndex]):
    """Before the transactions, each timer is settled before the next. Spec: CIP-1v1 §3. Decision: D-57, D-60, D-68."""

    name = NAME

    def __init__(self, policy: DeliveryPolicy) -> None:
        super().__init__(policy)
        self._era: tuple[int, int] | None = None
        self._swept = b""

    def select(self, due: DueTimers, context: SelectionContext[AuctionMarket]) -> AuctionSelection:
        """Let timers join, refresh weights, and return the block's selection among those that have joined.

        Spec: CIP-1v1 §3. Decision: D-39, D-51, D-57, D-59, D-68. Complexity: O(log n) for each timer that joins or has
        changed since the last block, and for each different bid of an actor whose weight moves; to build the index,
        where there is none, O(n log n).

        Raises:
            InvariantError: If a timer joins twice, or is another mechanism's.
        """
        market = context.market
        if self.index is None:
            index = AuctionIndex()
            index.join(due.waiting, market.weight_of)
            self.index = index
        self.index.settle(context.height, market.weight_of)
        for actor in dict.fromkeys(timer.actor for timer in due.joining):
            self.index.weigh(actor, market.refresh_weight(actor))
        self.index.join(due.joining, market.weight_of)
        self._sweep(self.index, market)
        return AuctionSelection(self.index, context, self.policy)

    def _sweep(self, index: AuctionIndex, market: AuctionMarket) -> None:
        """Refresh a bounded number of actors' weights that are behind, by address. Decision: D-59.

        No address that the sweep has passed is behind until the epoch or the rescales move on.
        """
        era = market.epoch, market.rescales
        if era != self._era:
            self._era, self._swept = era, b""
        weighed = 0
        for address in index.actors.irange(self._swept):
            if weighed == market.actors_weighed_max:
                return
            self._swept = address
            if market.is_behind(address):
                index.weigh(address, market.refresh_weight(address))
                weighed += 1

    def rewind(self) -> None:
        """Forget the index and how far the sweep has come."""
        super().rewind()
        self._era, self._swept = None, b""


def build_auction(params: ChainParams) -> Auction:
    """Return the mechanism with the chain's parameters."""
    return Auction(
        DeliveryPolicy(
            phase=Phase.BEFORE_TRANSACTIONS,
            examined_max=params.timers.due_examined_max,
            dead_examined_max=params.timers.dead_examined_max,
            joined_max=params.auction.joined_max,
            passed_over_max=params.auction.passed_over_max,
            order=Order.TIP,
            calls=frozenset({calls.SET_TIMEOUT_AUCTION, calls.CANCEL}),
            keeps=MarketKind.AUCTION,
        )
    )
