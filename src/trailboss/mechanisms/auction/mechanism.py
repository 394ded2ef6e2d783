"""CIP-1, first version: agents bid for those that wait, and the block sells its budget to the highest tips."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from trailboss.mechanisms.auction.index import AuctionIndex
from trailboss.mechanisms.auction.selection import AuctionSelection
from trailboss.mechanisms.base import Charging, DeliveryPolicy, DueTimers, Phase
from trailboss.mechanisms.context import AuctionMarket, SelectionContext
from trailboss.model import calls
from trailboss.model.decisions import Order
from trailboss.model.markets import MarketKind
from trailboss.model.timers import Timer
from trailboss.params import ChainParams

NAME: Final = "auction"


class Auction:
    """The mechanism of the first CIP-1. Spec: CIP-1v1 §3. Decision: D-57, D-60, D-68.

    Attributes:
        policy: Before the transactions; each is settled before the next is decided.
        name: Always ``auction``.
    """

    __slots__ = ("_era", "_index", "_swept", "policy")

    name = NAME

    def __init__(self, policy: DeliveryPolicy) -> None:
        self.policy = policy
        self._index: AuctionIndex | None = None
        self._era: tuple[int, int] | None = None
        self._swept = b""

    def begin(self, pending: Callable[[], Iterator[Timer]]) -> None:
        """Nothing to remember: those that wait are read when they join."""

    def select(self, due: DueTimers, context: SelectionContext[AuctionMarket]) -> AuctionSelection:
        """Let timers join, freshen weights, and return the block's selection among those that have joined.

        Spec: CIP-1v1 §3
        Decision: D-39, D-51, D-57, D-59, D-68
        Complexity: O(log n) for each that joins and for what was heard since the last block, and for each different bid
            of an actor whose weight moves; the first time, and after the chain has gone back, that of an index over all
            n.

        Args:
            due: The due timers; ``waiting`` is read only where there is no index yet.
            context: The block's prices, budget and balances, and the auction.

        Raises:
            InvariantError: If a timer joins twice, or is another mechanism's.
        """
        market = context.market
        if self._index is None:
            index = AuctionIndex()
            index.join(due.waiting, market.weight_of)
            self._index = index
        self._index.settle(context.height, market.weight_of)
        for actor in dict.fromkeys(timer.actor for timer in due.joining):
            self._index.weigh(actor, market.freshen(actor))
        self._index.join(due.joining, market.weight_of)
        self._sweep(self._index, market)
        return AuctionSelection(self._index, context, self.policy)

    def _sweep(self, index: AuctionIndex, market: AuctionMarket) -> None:
        """Freshen a bounded number of actors whose weights are behind, by address. Decision: D-59.

        None is behind whose address the sweep has passed, for as long as neither epoch nor rescales move on.
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
                index.weigh(address, market.freshen(address))
                weighed += 1

    def schedule(self, timer: Timer) -> None:
        """Nothing to remember: it is not due."""

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left. Complexity: O(log n), and again in the next block."""
        if self._index is not None:
            self._index.leave(timer_id)

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Nothing to forget: its timers do not expire."""

    def replace(self, timer: Timer) -> None:
        """Hear that a timer's record has changed. Complexity: O(1), and O(log n) when it counts."""
        if self._index is not None:
            self._index.replace(timer)

    def recount(self, actor: bytes, fires: int) -> None:
        """Nothing to remember: weights are told by the market."""

    def is_watched(self, key: bytes) -> bool:
        """Nobody watches."""
        del key
        return False

    def only_wait(self, due: int) -> bool:
        """Any of them may run in the next block."""
        del due
        return False

    def next_end(self) -> None:
        """Only due timers end."""

    def rewind(self) -> None:
        """Forget the index; the next selection makes it anew."""
        self._index = self._era = None
        self._swept = b""


def build_auction(params: ChainParams) -> Auction:
    """Return the mechanism with the chain's parameters."""
    return Auction(
        DeliveryPolicy(
            phase=Phase.BEFORE_TRANSACTIONS,
            charging=Charging.IN_TURN,
            examined_max=params.timers.due_examined_max,
            dead_examined_max=params.timers.dead_examined_max,
            joined_max=params.auction.joined_max,
            passed_over_max=params.auction.passed_over_max,
            order=Order.TIP,
            calls=frozenset({calls.SET_TIMEOUT_AUCTION, calls.CANCEL}),
            keeps=MarketKind.AUCTION,
        )
    )
