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
    """A market during the deliveries of a block."""

    market: Market  # what the mechanism is given
    # Writes what the next block finds, from what the selection has left; called when the block ends.
    close: Callable[[Rest], None]
    collected: CollectedBids = field(default_factory=CollectedBids)  # what gas bidding agents bid


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
    """What execution does under one market; the defaults are what it does without one."""

    open: Callable[[BlockSession], OpenMarket]  # opens the market before the deliveries
    opens_empty: bool = True  # whether it opens in a block without due timers as well
    # Refuses arguments that a timer may not have.
    check_request: Callable[[Rules, TimerRequest], None] = lambda *_: None
    # Returns what a timer offers, from its request and whether its actor has an agent.
    offer: Callable[[Rules, TimerRequest, bool], Offered]
    calls: Mapping[str, MarketCall] = MappingProxyType({})  # host calls that only some markets have, by form
    no_extension: str = ""  # why no timer is extended by governance, where none is
    # What carries out the decisions that only this market's mechanism makes.
    verdicts: Mapping[Verdict, Callable[[BlockSession, Decision], None]] = MappingProxyType({})
    # Takes a timer that is to fire, with its payment, and returns the cells that the fire may use.
    take: Callable[[BlockSession, Decision], Cells] = take_timer
    # Facts that a fire finds in ``context()`` besides; new values for each call.
    fire_facts: Callable[[Decision], Mapping[str, object]] = lambda *_: {}
    # Events of a fire besides its own.
    fire_events: Callable[[Decision, ReceiptRecord], tuple[EventRecord, ...]] = lambda *_: ()
    is_last: Callable[[Decision], bool] = lambda *_: True  # whether a timer ends with a fire
    keeps_fired: bool = False  # whether a timer that fires stays in the store until its fire is over
    is_cancellable: Callable[[Timer], bool] = lambda *_: True  # whether a live timer can still be cancelled
    # Whether a timer has a height that a development chain can change.
    is_movable: Callable[[Timer], bool] = lambda *_: True
    # Takes a timer that ends out of the market's records.
    on_remove: Callable[[BlockSession, Timer, TimerEnd], None] = lambda *_: None
    examined: Callable[[Decision], Mapping[str, Any]] = lambda *_: {}  # fields of an examined timer's record besides
    recorded: Callable[[BlockSession], Mapping[str, Any]] = lambda *_: {}  # fields of the decision record besides
    # Whether a block without transactions leaves the market as it is while nothing falls due.
    rests: Callable[[Rules, Read], bool] = lambda *_: True
    # The first block in which the market changes by itself; None if it does not.
    next_event: Callable[[Rules, Read], int | None] = lambda *_: None
    fire_count: Callable[[MarketTerms, SchedulerTotals], int] = lambda _, totals: totals.fired  # fires so far
    # Checks the market's records against all others, the slow way.
    check: Callable[[ReadableChain], None] = lambda *_: None
