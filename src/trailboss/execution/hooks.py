"""`MarketHooks`: what execution does under one market and not under another, as one record."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct, field

from trailboss.execution.session import BlockSession, Scope
from trailboss.execution.timers import remove_timer
from trailboss.governance.markets import MarketTerms
from trailboss.governance.parameters import Read
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Decision, Rest, Verdict
from trailboss.mechanisms.context import Market
from trailboss.model.actors import Account
from trailboss.model.blocks import ReceiptRecord
from trailboss.model.configs import SchedulerTotals
from trailboss.model.decisions import AgentBid, AgentFailure
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer, TimerEnd, TimerRequest
from trailboss.params import ChainParams
from trailboss.primitives.units import U64_MAX, Cells
from trailboss.state.store import ReadableStore
from trailboss.vm.meter import Meter

Offered = tuple[bytes, tuple[int, int] | None]
"""What `Timer.fees` holds and, if a stated priority is clamped, what was stated and what is kept."""
MarketCall = Callable[[Scope, bytes, Any, Meter], bytes | bool]
"""A host call: the running transaction, the actor, the request and the meter to what the call returns."""


class CollectedBids(Struct):
    """What gas bidding agents have bid in a block, in order, and the calls that returned no bid."""

    cycles_used: int = 0
    bids: list[AgentBid] = field(default_factory=list)
    failures: list[AgentFailure] = field(default_factory=list)


class OpenMarket(Struct, frozen=True):
    """A market during the deliveries of a block.

    Attributes:
        market: What the mechanism is given.
        close: Writes what the next block finds, from what the selection has left; called when the block ends.
        collected: What gas bidding agents bid.
    """

    market: Market
    close: Callable[[Rest], None]
    collected: CollectedBids = field(default_factory=CollectedBids)


class ReadableChain(Protocol):
    """A chain whose records are checked."""

    params: ChainParams
    store: ReadableStore

    def rules(self) -> Rules:
        """Return the rules of the next block."""

    def balance(self, address: bytes) -> int:
        """Return a balance in base units."""

    def accounts(self) -> Iterator[tuple[bytes, Account]]:
        """Yield every address and account, in order of address."""

    def timers(self, first: int = 0, last: int = U64_MAX) -> Iterator[Timer]:
        """Yield the live timers due in ``first..=last``."""


def take_timer(session: BlockSession, decision: Decision) -> Cells:
    """Take the worst-case cost of a timer from its fee payer and the timer from the store. Spec: CIP-5 §6.3."""
    session.ledger.debit(decision.timer.fee_payer, decision.max_cost)
    remove_timer(session, decision.timer, TimerEnd.FIRED)
    session.take_out(decision.timer)
    return session.context.rules.timer.max_cells_per_fire


def open_nothing(session: BlockSession) -> OpenMarket:
    """Open the deliveries of a chain without a market."""
    market = Market(max_cycles_per_fire=session.context.rules.timer.max_cycles_per_fire)
    return OpenMarket(market, close=lambda _: None)


class MarketHooks(Struct, frozen=True, kw_only=True):
    """What execution does under one market; the defaults are what it does without one.

    Attributes:
        open: Opens the market before the deliveries.
        opens_empty: Whether it opens in a block without due timers as well.
        check_request: Refuses arguments that a timer may not have.
        offer: Returns what a timer offers, from its request and whether its actor has an agent.
        calls: Host calls that only some markets have, by form.
        no_extension: Why no timer is extended by governance, where none is.
        verdicts: What carries out the decisions that only this market's mechanism makes.
        take: Takes a timer that is to fire, with its payment, and returns the cells that the fire may use.
        fire_facts: Facts that a fire finds in ``context()`` besides; new values for each call.
        fire_events: Events of a fire besides its own.
        is_last: Whether a timer ends with a fire.
        keeps_fired: Whether a timer that fires stays in the store until its fire is over.
        is_cancellable: Whether a live timer can still be cancelled.
        is_movable: Whether a timer has a height that a development chain can change.
        on_remove: Takes a timer that ends out of the market's records.
        examined: Fields of an examined timer's record besides.
        recorded: Fields of the decision record besides.
        rests: Whether a block without transactions leaves the market as it is while nothing falls due.
        next_event: The first block in which the market changes by itself; None if it does not.
        fire_count: Fires so far.
        check: Checks the market's records against all others, the slow way.
    """

    open: Callable[[BlockSession], OpenMarket]
    opens_empty: bool = True
    check_request: Callable[[Rules, TimerRequest], None] = lambda *_: None
    offer: Callable[[Rules, TimerRequest, bool], Offered]
    calls: Mapping[str, MarketCall] = MappingProxyType({})
    no_extension: str = ""
    verdicts: Mapping[Verdict, Callable[[BlockSession, Decision], None]] = MappingProxyType({})
    take: Callable[[BlockSession, Decision], Cells] = take_timer
    fire_facts: Callable[[Decision], Mapping[str, object]] = lambda *_: {}
    fire_events: Callable[[Decision, ReceiptRecord], tuple[EventRecord, ...]] = lambda *_: ()
    is_last: Callable[[Decision], bool] = lambda *_: True
    keeps_fired: bool = False
    is_cancellable: Callable[[Timer], bool] = lambda *_: True
    is_movable: Callable[[Timer], bool] = lambda *_: True
    on_remove: Callable[[BlockSession, Timer, TimerEnd], None] = lambda *_: None
    examined: Callable[[Decision], Mapping[str, Any]] = lambda *_: {}
    recorded: Callable[[BlockSession], Mapping[str, Any]] = lambda *_: {}
    rests: Callable[[Rules, Read], bool] = lambda *_: True
    next_event: Callable[[Rules, Read], int | None] = lambda *_: None
    fire_count: Callable[[MarketTerms, SchedulerTotals], int] = lambda _, totals: totals.fired
    check: Callable[[ReadableChain], None] = lambda *_: None
