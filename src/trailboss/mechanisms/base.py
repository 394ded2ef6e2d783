"""The seam: what a mechanism is given, what it answers, and what may differ between mechanisms beyond order.

A mechanism decides about due timers from a block's prices, budgets and balances, and from nothing else. Delivery
carries the decisions out; all else that sets mechanisms apart it reads from the `DeliveryPolicy`, never from a name.
What a mechanism remembers from one block to the next is an index over the waiting timers: it can be built from them at
any time and never changes a decision.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum, StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from trailboss.fees import Prices
from trailboss.mechanisms.context import SelectionContext
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import FeeSource, Order, Stop
from trailboss.model.globalbox import CarriedHit, MailboxEntry
from trailboss.model.terms import QueuedFire
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.units import Amount, Cycles, Price


class Phase(Enum):
    """Where in a block timers are delivered. Spec: CIP-5 §5.1, CIP-1v1 §3."""

    AFTER_TRANSACTIONS = "after_transactions"
    BEFORE_TRANSACTIONS = "before_transactions"


class Charging(Enum):
    """When payers are charged, and so what gates the next timer."""

    # All are pre-charged, then all run; the timer budget is filled by gas limits. Spec: CIP-5 §5.1.
    ALL_FIRST = "all_first"
    # Each is charged, run and settled before the next is decided; the budget is filled by use. Spec: CIP-1v3 §3.
    IN_TURN = "in_turn"


class DeliveryPolicy(Struct, frozen=True, kw_only=True):
    """What differs between mechanisms beyond order."""

    phase: Phase = Phase.AFTER_TRANSACTIONS
    charging: Charging = Charging.IN_TURN
    examined_max: int  # due timers that one block examines, dead ones not counted. Decision: D-39, D-78.
    # Dead timers that one block examines and leaves once its clean-up budget is spent; beyond them it leaves out payers
    # that cannot pay. Decision: D-78.
    dead_examined_max: int = 0
    joined_max: int = 0  # due timers that join the mechanism's index in one block; 0 without an index. Decision: D-51.
    passed_over_max: int = 0  # timers that one block passes over for lack of room; 0 for no bound. Decision: D-54.
    order: Order = Order.DUE  # what it ranks due timers by
    calls: frozenset[str] = frozenset()  # host calls that its actors have, by `trailboss.model.calls`
    keeps: MarketKind = MarketKind.NONE  # what the state of a chain under it keeps for it


class Verdict(StrEnum):
    """What becomes of a due timer in this block. Spec: CIP-5 §5.4."""

    FIRE = "fire"  # it runs
    EXPIRE = "expire"  # its last height has passed: it ends without running
    UNFUND = "unfund"  # its payer cannot pay: it ends without running
    DEFER = "defer"  # it stays due; the decision says why
    DELAY = "delay"  # it is marked as late, once; another decision may follow. Spec: overview. Decision: D-19.
    CANCEL = "cancel"  # it is late: it ends without running, at a penalty. Spec: overview. Decision: D-19.
    ENQUEUE = "enqueue"  # its fire enters Globalbox, at the position in ``decision.fire``. Spec: CIP-5old §8.3.
    MATERIALIZE = "materialize"  # its queued fire moves to the mailbox. Spec: CIP-5old §9.


class Decision(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One due timer's fate in one block, and why. Amounts are base units, 0 if decided before any price."""

    timer: Timer
    verdict: Verdict
    prices: Prices  # what it is pre-charged and settled at
    gas_limit: Cycles  # cycles the fire may use
    max_cost: Amount = Amount(0)  # worst-case cost of the fire at this block's prices, which is pre-charged
    available: Amount = Amount(0)  # what the payer could spend at the timer's turn, after earlier pre-charges
    reason: DeferralReason | None = None  # why it waits; None unless deferred
    rank: int = 0  # its place in the order, from 1; 0 if it was decided before any ranking
    weight: int = 0  # W(actor) in parts of 10⁻⁹; 0 without a market
    max_fee: Price = Price(0)  # cap of lane basefee and tip together; 0 without a market
    fee_source: FeeSource = FeeSource.NONE
    agent_cycles: Cycles = Cycles(0)  # cycles its agent has used in this block; they count into the fire's gas
    fire: QueuedFire | None = None  # where its fire is in Globalbox, for ``ENQUEUE`` and ``MATERIALIZE``
    entry: MailboxEntry | None = None  # the mailbox entry that fires; None under a mechanism without a mailbox


class Rest(Struct, frozen=True, kw_only=True):
    """What was not examined, and why."""

    stopped: Stop  # why the walk ended
    joined: int = 0  # timers that the index still holds, examined or not; 0 without an index
    outranked: int = 0  # ranked timers that were not examined; 0 without an index, where all that wait are
    priced_out: int = 0  # timers not ranked because their cap is below the lane basefee
    over_cap: int = 0  # timers not ranked because their gas limit is above the lane's cap
    smallest_gas: int = 0  # smallest gas limit among the ranked timers not examined; 0 if there are none
    runners_up: tuple[Decision, ...] = ()  # the next in rank, as they would have been decided; they decide nothing
    carried: tuple[CarriedHit, ...] = ()  # keys that some watches have yet to match. Decision: D-65.


class LeftOut:
    """Payers whose timers a walk leaves out from now on."""

    def __init__(self) -> None:
        self.payers: set[bytes] = set()  # those that are known
        # Returns whether a payer is one of them; called once a payer, when the first of its timers comes. None while
        # the clean-up budget lasts.
        self.cannot_pay: Callable[[bytes], bool] | None = None
        self._asked: set[bytes] = set()

    def __contains__(self, payer: bytes) -> bool:
        """Return whether a payer's timers are left out."""
        if self.cannot_pay is not None and payer not in self._asked:
            self._asked.add(payer)
            if self.cannot_pay(payer):
                self.payers.add(payer)
        return payer in self.payers


class DueTimers(Struct, frozen=True):
    """The due timers of a block, older heights first, FIFO within a height.

    All are read lazily, before the first decision that removes a timer; an index that is up to date does not read
    ``waiting``.
    """

    waiting: Iterable[Timer]  # those alive that joined in earlier blocks; all, for a mechanism without an index
    joining: Sequence[Timer] = ()  # those that join in this block
    expired: Iterable[Timer] = ()  # those that have expired, joined or not, the first to expire first
    unfunded: Iterable[Timer] = ()  # those that have not joined because their payers cannot pay. Decision: D-79.
    # Payers whose timers ``waiting`` leaves out; the selection adds to it. Decision: D-78.
    out: LeftOut = field(default_factory=LeftOut)


class Selection(Protocol):
    """A block's decisions; under `Charging.IN_TURN` each is carried out before the next is asked for."""

    def __iter__(self) -> Iterator[Decision]:
        """Yield the decisions in the order in which they apply, once."""

    def rest(self) -> Rest:
        """Return what was left, after the walk."""


class Follower:
    """Follows what becomes of timers; by itself it remembers nothing."""

    def schedule(self, timer: Timer) -> None:
        """Note a timer that a committed transaction has scheduled."""

    def leave(self, timer_id: bytes) -> None:
        """Note that a timer has left, for whatever reason; it need not have joined."""

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Note, before a block, due timers that can fire no more; they leave when the block removes them."""

    def replace(self, timer: Timer) -> None:
        """Note a timer's new record: expiry, fees, what it waits for; it need not have joined."""

    def recount(self, actor: bytes, fires: int) -> None:
        """Note how many fires of an actor the window holds now."""

    def is_watched(self, key: bytes) -> bool:
        """Return whether a present timer watches a prefix of a key. Spec: CIP-5old §5.2. Decision: D-65."""
        del key
        return False


class Mechanism(Follower, ABC):
    """Decides which due timers run in a block, and in which order."""

    name: str  # the name by which genesis and the command line know it

    def __init__(self, policy: DeliveryPolicy) -> None:
        self.policy = policy  # what delivery does differently for it

    def begin(self, pending: Callable[[], Iterator[Timer]]) -> None:
        """Begin a block; ``pending`` returns all timers as the block before left them, and takes O(n) to read."""

    @abstractmethod
    def select(self, due: DueTimers, context: SelectionContext[Any]) -> Selection:
        """Decide about due timers from the arguments and the policy alone; the market is of the mechanism's kind."""

    def only_wait(self, due: int) -> bool:
        """Return whether this number of due timers are all there are, and none of them runs before one expires."""
        del due
        return False

    def next_end(self) -> int | None:
        """Return the first block that may end a timer which is not due; None if there is none, 0 if not known."""
        return None

    def rewind(self) -> None:
        """Forget what is remembered: the chain has gone back."""


KeptIndex = TypeVar("KeptIndex", bound=Follower)


def _pass_on(name: str) -> Callable[..., Any]:
    """Return a method that calls the index's of that name, or does what a follower does while there is no index."""
    without = getattr(Follower, name)

    def call(self: "IndexedMechanism[Any]", *facts: Any) -> Any:
        return without(self, *facts) if self.index is None else getattr(self.index, name)(*facts)

    return call


class IndexedMechanism(Mechanism, Generic[KeptIndex]):
    """A mechanism with an index over timers, which follows them while it exists."""

    index: KeptIndex | None = None  # the index; None before the first block and after the chain has gone back
    schedule, leave, expire = _pass_on("schedule"), _pass_on("leave"), _pass_on("expire")
    replace, recount, is_watched = _pass_on("replace"), _pass_on("recount"), _pass_on("is_watched")

    def rewind(self) -> None:
        """Forget the index; the next block builds another."""
        self.index = None
