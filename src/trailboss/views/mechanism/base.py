"""What a mechanism shows, as plain data: the command line and the explorer draw the same columns, cells and facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.fees.settlement import Prices, max_cost
from trailboss.governance.rules import Rules
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Cycles, format_cby
from trailboss.views.explain.waits import WaitingTimer, WaitReader
from trailboss.views.forecast.chances import Quoting
from trailboss.views.records import DEFAULT_FEES, FROZEN_FEES, DecisionRow, DecisionView, Event, TimerEntry, TimerView

Value = str | int | Hash32 | Address | None
"""What a cell holds; None for nothing."""


class Kind(StrEnum):
    """How a value is drawn."""

    TEXT = "text"
    NUMBER = "number"
    """A count or a price; a text in its place is drawn as it is."""
    HEIGHT = "height"
    MONEY = "money"
    """Base units, shown in CBY."""
    TIMER = "timer"
    ADDRESS = "address"
    HASH = "hash"


RIGHT: Final = frozenset({Kind.NUMBER, Kind.HEIGHT, Kind.MONEY})


class Column(Struct, frozen=True):
    """One column of a table.

    Attributes:
        key: Its name in programs.
        title: Its heading, in lower case.
        kind: How its values are drawn.
        extra: Whether a narrow terminal leaves it out.
        least: Width in characters to which its text may be wrapped; 0 for text that is not wrapped.
    """

    key: str
    title: str
    kind: Kind = Kind.TEXT
    extra: bool = False
    least: int = 0

    @property
    def right(self) -> bool:
        """Whether it is aligned to the right, as numbers are."""
        return self.kind in RIGHT


class Fact(Struct, frozen=True):
    """A label and a value.

    Attributes:
        key: Its name in programs.
        label: What people read, in lower case.
        value: The value.
        kind: How it is drawn.
        is_warning: Whether the value needs attention.
    """

    key: str
    label: str
    value: Value
    kind: Kind = Kind.TEXT
    is_warning: bool = False


class Table(Struct, frozen=True):
    """A table of a mechanism's page.

    Attributes:
        key: Its name in programs.
        title: Its heading.
        columns: Its columns.
        rows: A value for each column; the first one that identifies the row comes first.
        empty: What to say where there are no rows.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Value, ...]]
    empty: str


class TimerState(Struct, frozen=True):
    """A state of live timers that only some mechanisms have.

    Attributes:
        label: What people read.
        holds: Whether a live timer is in it.
        is_shown: Whether lists show it in place of ``live`` or ``due``.
    """

    label: str
    holds: Callable[[TimerEntry | TimerView], bool]
    is_shown: bool = False


class StepKind(StrEnum):
    """What an event means for its timer; a page colours by it."""

    PLAIN = "plain"
    RAN = "ran"
    REVERTED = "reverted"
    UNFUNDED = "unfunded"
    EXPIRED = "expired"
    WAITS = "waits"


class Occurrence(Struct, frozen=True):
    """An event, and where it happened.

    Attributes:
        event: The event.
        block: Its block.
        receipt: Of the execution that it is part of; None for the block's own events.
    """

    event: Event
    block: Block
    receipt: ReceiptRecord | None

    @property
    def facts(self) -> dict[str, Any]:
        """The event's fields."""
        found: dict[str, Any] = self.event.data
        return found


Shown = Callable[[Any], str]
"""Draws a value in a short sentence: ids are cut where a terminal is narrow."""


class Sentence(Struct, frozen=True):
    """What an event of the protocol says.

    Attributes:
        short: In a table of events, beside its name and its timer.
        long: In the life of its timer; None for an event that is about no timer.
        kind: What it means for its timer; `StepKind.RAN` stands for a fire that reverted too.
    """

    short: Callable[[Event, Shown], str]
    long: Callable[[Occurrence], str] | None = None
    kind: StepKind = StepKind.PLAIN


def drawn(kind: Kind, value: Value) -> Value:
    """Return a value as text, ids and addresses as they are.

    >>> drawn(Kind.NUMBER, 1200), drawn(Kind.HEIGHT, 1200), drawn(Kind.NUMBER, None)
    ('1,200', '1200', None)
    """
    if value is None or isinstance(value, Hash32 | Address):
        return value
    if kind is Kind.MONEY and isinstance(value, int):
        return format_cby(value)
    return f"{value:,}" if kind is Kind.NUMBER and isinstance(value, int) else str(value)


# Columns and cells that several mechanisms share

RANK: Final = Column("rank", "rank", Kind.NUMBER)
TIMER: Final = Column("timer", "timer", Kind.TIMER)
ACTOR: Final = Column("actor", "actor", Kind.ADDRESS, extra=True)
TARGET: Final = Column("target", "target", Kind.ADDRESS, extra=True)
TIP: Final = Column("tip", "tip", Kind.NUMBER)
MAX_FEE: Final = Column("max_fee", "max fee", Kind.NUMBER, extra=True)
LIMITS: Final = (
    Column("gas_limit", "gas limit", Kind.NUMBER),
    Column("cycles_used", "used", Kind.NUMBER, extra=True),
    Column("outcome", "outcome", least=18),
)
FEE_COLUMNS: Final = (MAX_FEE, Column("tip", "tip", Kind.NUMBER, extra=True))


def limit_cells(row: DecisionRow) -> tuple[Value, ...]:
    """Return the cells of `LIMITS`."""
    return row.gas_limit, row.cycles_used, f"{row.outcome}: {row.reason}" if row.reason else row.outcome


def fee_cells(entry: TimerEntry) -> tuple[Value, Value]:
    """Return the cells of `FEE_COLUMNS`; of a timer without frozen fees, where its fees come from."""
    if entry.max_fee_per_cycle is None or entry.max_priority_fee_per_cycle is None:
        return entry.fees, None
    return entry.max_fee_per_cycle, entry.max_priority_fee_per_cycle


CELLS_SPENT: Final = "what was left of the block's cells for fires was less than one fire may use"


def cycles_left(record: DecisionRecord) -> int:
    """Return the cycles that no fire used; a fire that is alone in its block may use more than there are."""
    return max(0, record.lane_cycles_max - record.lane_cycles_used)


def outranked_words(record: DecisionRecord, *, place: str = "outranked", budget: str = "lane") -> str:
    """Return why a block examined no more of the timers that it ranked."""
    if record.stopped is Stop.LANE_FULL:
        left, smallest = cycles_left(record), record.smallest_gas
        return f"{place}: the {budget} had {left:,} cycles left and the smallest gas limit that waited was {smallest:,}"
    if record.stopped is Stop.CELLS_FULL:
        return f"{place}: {CELLS_SPENT}"
    if record.stopped is Stop.PASSED_OVER_MAX:
        return f"{place}: the block had passed over as many as it may that did not fit"
    if record.stopped is Stop.EXAMINED_MAX:
        return f"{place}: one block examines at most {record.examined_count:,} due timers"
    return place


class OutlookKind(StrEnum):
    """What comes next for a timer; a page colours by it."""

    RUNS = "runs"
    REVERTS = "reverts"
    WAITS = "waits"
    EXPIRES = "expires"
    UNFUNDED = "unfunded"


class Outlook(Struct, frozen=True):
    """What comes next for a timer.

    Attributes:
        kind: In one word.
        text: In a sentence.
    """

    kind: OutlookKind
    text: str


class Trial(Struct, frozen=True):
    """What the handler of a live timer came to when it was tried on the present state.

    Attributes:
        failure: What its fire would revert with; None if it would end well.
    """

    failure: ErrorObject | None


class Money(Struct, frozen=True):
    """What a fire costs at most and what its payer holds.

    Attributes:
        is_short: Whether the payer holds too little.
        words: Both amounts, in words.
    """

    is_short: bool
    words: str


def money_for(chain: ChainReader, timer: Timer, gas_limit: int, prices: Prices, and_what: str = "") -> Money:
    """Return what a fire with a gas limit costs at most at some prices, and what its payer holds."""
    cost = max_cost(Cycles(gas_limit), chain.rules().timer.max_cells_per_fire, prices)
    balance = chain.balance(timer.fee_payer)
    holds = f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    return Money(balance < cost, f"a fire costs up to {format_cby(cost)} CBY{and_what}, {holds}")


def next_block_for(chain: ChainReader, timer: Timer) -> int:
    """Return the first block in which a timer may fire by its height."""
    return max(timer.height, chain.height + 1)


def expiry_outlook(timer: Timer, when: int) -> Outlook | None:
    """Return that a timer expires before the first block in which it may fire, if it does."""
    if timer.expires_at >= when:
        return None
    text = f"expires unfired at height {when}: it may fire up to {timer.expires_at} only"
    return Outlook(OutlookKind.EXPIRES, text)


class MechanismViews(Struct, frozen=True, kw_only=True):
    """All that people see differently under one mechanism.

    Attributes:
        name: The mechanism's.
        title: What its page is called.
        has_targets: Whether a timer may call another actor than its owner.
        has_mailbox: Whether fires wait in a mailbox.
        gives_way: Whether the timer lane can follow it. Spec: CIP-1v3 §13.2.
        timer_columns: Columns of a list of timers beyond those of every mechanism.
        timer_cells: The cells of these columns.
        timer_states: States of live timers beyond those of every mechanism, by the name in a filter.
        timer_facts: What a live timer's page says beyond that.
        decision_columns: Columns of a block's due timers.
        decision_cells: The cells of these columns.
        decision_facts: What a decision record says beyond cycles and basefees.
        decision_fields: Fields of `DecisionView` that only this mechanism fills.
        decision_sentences: Why timers were not examined, beyond the reasons of every mechanism.
        outranked: Why ranked timers were not examined.
        floor_words: What a max_fee must reach.
        ranks_by_priority: Whether tip × W ranks timers.
        status_field: Field of `ChainStatus` and `MechanismView` that holds its status.
        status_facts: What that status says.
        frozen_fees: What fees are called that come from the timer itself.
        default_fees: What fees are called that neither the timer nor an agent states.
        fee_floor: What a timer's max_fee_per_cycle must reach for the timer to be ranked; 0 where none is priced out.
        is_over_cap: Whether the mechanism sets a timer aside for its gas limit.
        timer_details: Fields of `TimerView` that only this mechanism fills, after a block.
        is_watch: Whether a timer waits for a change of state and not for a height.
        is_paid: Whether the next fire of a timer has been paid for.
        next_fire: A timer with the handler, payload and gas limit of its next fire.
        outlook: What comes next for a live timer.
        waits_from: First height at which blocks record that a timer waits, by the height at which it is due; None if
            they do not.
        wait_reader: Returns what reads how a timer waited in one block after the other.
        asks_agents: Whether each block asks the agents of due timers.
        can_fire: Whether a live timer fires at its height if it has not expired and can be paid for.
        tip_at: What a timer tips per cycle at a cycle basefee and a lane basefee; None if it is priced out.
        runway_notes: What a runway over some timers does not say.
        quoting: What a quote asks; None where a fire costs what is bid for it.
        cycles_per_fire: Most cycles that one fire may use.
        tables: Tables of its page.
        sentences: What the events say that only it has, by name.
    """

    name: str
    title: str
    has_targets: bool = False
    has_mailbox: bool = False
    gives_way: bool = False
    timer_columns: tuple[Column, ...] = ()
    timer_cells: Callable[[TimerEntry], tuple[Value, ...]] = lambda _: ()
    timer_states: Mapping[str, TimerState] = {}
    timer_facts: Callable[[TimerView], Iterable[Fact]] = lambda _: ()
    decision_columns: tuple[Column, ...]
    decision_cells: Callable[[DecisionRow], tuple[Value, ...]]
    decision_facts: Callable[[DecisionView], Iterable[Fact]] = lambda _: ()
    decision_fields: Callable[[DecisionRecord], Mapping[str, Any]] = lambda _: {}
    decision_sentences: Callable[[DecisionRecord], Iterable[str]] = lambda _: ()
    outranked: Callable[[DecisionRecord], str] = outranked_words
    floor_words: Callable[[DecisionRecord], str] = lambda record: f"lane basefee of {record.lane_basefee:,}"
    ranks_by_priority: bool = False
    frozen_fees: str = FROZEN_FEES
    default_fees: str = DEFAULT_FEES
    fee_floor: Callable[[Rules], int] = lambda _: 0
    is_over_cap: Callable[[Rules, Timer], bool] = lambda _rules, _timer: False
    timer_details: Callable[[Timer, int], Mapping[str, Any]] = lambda _timer, _now: {}
    is_watch: Callable[[Timer], bool] = lambda _: False
    is_paid: Callable[[Timer], bool] = lambda _: False
    next_fire: Callable[[Rules, Timer], Timer] = lambda _, timer: timer
    outlook: Callable[[ChainReader, Timer, Trial | None], Outlook]
    waits_from: Callable[[Rules, int], int | None] = lambda _rules, _due: None
    wait_reader: Callable[[Rules, WaitingTimer], WaitReader] | None = None
    asks_agents: bool = False
    can_fire: Callable[[Timer], bool] = lambda _: True
    tip_at: Callable[[Rules, Timer, int, int], int | None] = lambda *_: 0
    runway_notes: Callable[[Rules, Sequence[Timer]], Iterable[str]] = lambda *_: ()
    quoting: Quoting | None = None
    status_field: str
    status_facts: Callable[[Any], Iterable[Fact]]
    cycles_per_fire: Callable[[Rules], int] = lambda rules: rules.timer.max_cycles_per_fire
    tables: Callable[[ChainReader], tuple[Table, ...]] = lambda _: ()
    sentences: Mapping[str, Sentence] = {}
