"""What a mechanism shows, as plain data: the command line and the explorer draw the same columns, cells and facts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.fees import Prices, max_cost
from trailboss.governance.rules import Rules
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.timers import Timer
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Cycles, format_cby
from trailboss.views.explain.waits import WaitingTimer, WaitReader
from trailboss.views.recent_blocks import Quoting
from trailboss.views.records import DEFAULT_FEES, FROZEN_FEES, DecisionRow, DecisionView, Event, TimerEntry, TimerView

Value = str | int | Hash32 | Address | None  # what a cell holds; None for nothing


class ValueKind(StrEnum):
    """How a value is drawn."""

    TEXT = "text"
    NUMBER = "number"  # a count or a price; a text in its place is drawn as it is
    HEIGHT = "height"
    MONEY = "money"  # base units, shown in CBY
    TIMER = "timer"
    ADDRESS = "address"
    HASH = "hash"


RIGHT: Final = frozenset({ValueKind.NUMBER, ValueKind.HEIGHT, ValueKind.MONEY})


class Column(Struct, frozen=True):
    """One column of a table."""

    key: str  # its name in programs
    title: str  # its heading, in lower case
    kind: ValueKind = ValueKind.TEXT  # how its values are drawn
    extra: bool = False  # whether a narrow terminal leaves it out
    least: int = 0  # width in characters to which its text may be wrapped; 0 for text that is not wrapped

    @property
    def right(self) -> bool:
        """Whether it is aligned to the right, as numbers are."""
        return self.kind in RIGHT


class Fact(Struct, frozen=True):
    """A label and a value."""

    key: str  # its name in programs
    label: str  # what people read, in lower case
    value: Value  # the value
    kind: ValueKind = ValueKind.TEXT  # how it is drawn
    is_warning: bool = False  # whether the value needs attention


class Table(Struct, frozen=True):
    """A table of a mechanism's page."""

    key: str  # its name in programs
    title: str  # its heading
    columns: tuple[Column, ...]  # its columns
    rows: Sequence[tuple[Value, ...]]  # A value for each column; the first one that identifies the row comes first
    empty: str  # what to say where there are no rows


class TimerState(Struct, frozen=True):
    """A state of live timers that only some mechanisms have."""

    label: str  # what people read
    holds: Callable[[TimerEntry | TimerView], bool]  # whether a live timer is in it
    is_shown: bool = False  # whether lists show it in place of ``live`` or ``due``


class StepKind(StrEnum):
    """What an event means for its timer; a page colours by it."""

    PLAIN = "plain"
    RAN = "ran"
    REVERTED = "reverted"
    UNFUNDED = "unfunded"
    EXPIRED = "expired"
    WAITS = "waits"


class Occurrence(Struct, frozen=True):
    """An event, and where it happened."""

    event: Event  # the event
    block: Block  # its block
    receipt: ReceiptRecord | None  # of the execution that it is part of; None for the block's own events

    @property
    def facts(self) -> dict[str, Any]:
        """The event's fields."""
        found: dict[str, Any] = self.event.data
        return found


Shown = Callable[[Any], str]  # draws a value in a short sentence: ids are cut where a terminal is narrow


class Sentence(Struct, frozen=True):
    """What an event of the protocol says."""

    short: Callable[[Event, Shown], str]  # in a table of events, beside its name and its timer
    long: Callable[[Occurrence], str] | None = None  # in the life of its timer; None if it is about no timer
    kind: StepKind = StepKind.PLAIN  # what it means for its timer; `StepKind.RAN` stands for a fire that reverted too


def drawn(kind: ValueKind, value: Value) -> Value:
    """Return a value as text, ids and addresses as they are.

    >>> drawn(ValueKind.NUMBER, 1200), drawn(ValueKind.HEIGHT, 1200), drawn(ValueKind.NUMBER, None)
    ('1,200', '1200', None)
    """
    if value is None or isinstance(value, Hash32 | Address):
        return value
    if kind is ValueKind.MONEY and isinstance(value, int):
        return format_cby(value)
    return f"{value:,}" if kind is ValueKind.NUMBER and isinstance(value, int) else str(value)


# Columns and cells that several mechanisms share

RANK: Final = Column("rank", "rank", ValueKind.NUMBER)
TIMER: Final = Column("timer", "timer", ValueKind.TIMER)
ACTOR: Final = Column("actor", "actor", ValueKind.ADDRESS, extra=True)
TARGET: Final = Column("target", "target", ValueKind.ADDRESS, extra=True)
TIP: Final = Column("tip", "tip", ValueKind.NUMBER)
MAX_FEE: Final = Column("max_fee", "max fee", ValueKind.NUMBER, extra=True)
LIMITS: Final = (
    Column("gas_limit", "gas limit", ValueKind.NUMBER),
    Column("cycles_used", "used", ValueKind.NUMBER, extra=True),
    Column("outcome", "outcome", least=18),
)
FEE_COLUMNS: Final = (MAX_FEE, Column("tip", "tip", ValueKind.NUMBER, extra=True))


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
    """What comes next for a timer."""

    kind: OutlookKind  # in one word
    text: str  # in a sentence


class Trial(Struct, frozen=True):
    """What the handler of a live timer came to when it was tried on the present state."""

    failure: ErrorObject | None  # what its fire would revert with; None if it would end well


class Money(Struct, frozen=True):
    """What a fire costs at most and what its payer holds."""

    is_short: bool  # whether the payer holds too little
    words: str  # both amounts, in words


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
    """All that people see differently under one mechanism."""

    name: str  # the mechanism's
    title: str  # what its page is called
    has_targets: bool = False  # whether a timer may call another actor than its owner
    has_mailbox: bool = False  # whether fires wait in a mailbox
    gives_way: bool = False  # whether the timer lane can follow it
    timer_columns: tuple[Column, ...] = ()  # columns of a list of timers beyond those of every mechanism
    timer_cells: Callable[[TimerEntry], tuple[Value, ...]] = lambda _: ()  # the cells of these columns
    timer_states: Mapping[str, TimerState] = {}  # states of live timers that only it has, by the name in a filter
    timer_facts: Callable[[TimerView], Iterable[Fact]] = lambda _: ()  # what a live timer's page says beyond that
    decision_columns: tuple[Column, ...]  # columns of a block's due timers
    decision_cells: Callable[[DecisionRow], tuple[Value, ...]]  # the cells of these columns
    # What a decision record says beyond cycles and basefees.
    decision_facts: Callable[[DecisionView], Iterable[Fact]] = lambda _: ()
    # Fields of `DecisionView` that only this mechanism fills.
    decision_fields: Callable[[DecisionRecord], Mapping[str, Any]] = lambda _: {}
    # Why timers were not examined, beyond the reasons of every mechanism.
    decision_sentences: Callable[[DecisionRecord], Iterable[str]] = lambda _: ()
    outranked: Callable[[DecisionRecord], str] = outranked_words  # why ranked timers were not examined
    # What a max_fee must reach.
    floor_words: Callable[[DecisionRecord], str] = lambda record: f"lane basefee of {record.lane_basefee:,}"
    ranks_by_priority: bool = False  # whether tip × W ranks timers
    frozen_fees: str = FROZEN_FEES  # what fees are called that come from the timer itself
    default_fees: str = DEFAULT_FEES  # what fees are called that neither the timer nor an agent states
    fee_floor: Callable[[Rules], int] = lambda _: 0  # least max_fee_per_cycle that is ranked; 0 for any
    # Whether the mechanism sets a timer aside for its gas limit.
    is_over_cap: Callable[[Rules, Timer], bool] = lambda _rules, _timer: False
    # Fields of `TimerView` that only this mechanism fills, after a block.
    timer_details: Callable[[Timer, int], Mapping[str, Any]] = lambda _timer, _now: {}
    is_watch: Callable[[Timer], bool] = lambda _: False  # whether a timer waits for a change of state, not for a height
    is_paid: Callable[[Timer], bool] = lambda _: False  # whether the next fire of a timer has been paid for
    # A timer with the handler, payload and gas limit of its next fire.
    next_fire: Callable[[Rules, Timer], Timer] = lambda _, timer: timer
    outlook: Callable[[ChainReader, Timer, Trial | None], Outlook]  # what comes next for a live timer
    # First height at which blocks record that a timer waits, by the height at which it is due; None if they do
    # not.
    waits_from: Callable[[Rules, int], int | None] = lambda _rules, _due: None
    wait_reader: Callable[[Rules, WaitingTimer], WaitReader] | None = None  # reads a timer's waits, block by block
    asks_agents: bool = False  # whether each block asks the agents of due timers
    # Whether a live timer fires at its height if it has not expired and can be paid for.
    can_fire: Callable[[Timer], bool] = lambda _: True
    # What a timer tips per cycle at a cycle basefee and a lane basefee; None if it is priced out.
    tip_at: Callable[[Rules, Timer, int, int], int | None] = lambda *_: 0
    runway_notes: Callable[[Rules, Sequence[Timer]], Iterable[str]] = lambda *_: ()  # what a runway leaves unsaid
    quoting: Quoting | None = None  # what a quote asks; None where a fire costs what is bid for it
    status_field: str  # field of `ChainStatus` and `MechanismView` that holds its status
    status_facts: Callable[[Any], Iterable[Fact]]  # what that status says
    # Most cycles that one fire may use.
    cycles_per_fire: Callable[[Rules], int] = lambda rules: rules.timer.max_cycles_per_fire
    tables: Callable[[ChainReader], tuple[Table, ...]] = lambda _: ()  # tables of its page
    sentences: Mapping[str, Sentence] = {}  # what the events say that only it has, by name
