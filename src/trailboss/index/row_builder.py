"""What one block adds to the tables.

Decision: D-75
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import add
from typing import Any, Final

import cbor2
from msgspec import Struct, field

from trailboss.index.lookup_cache import Book, TimerFacts
from trailboss.index.records import Tally
from trailboss.index.schema import (
    ENDING_NUMBERS,
    ENDINGS,
    ORIGINS,
    PART_BITS,
    Facet,
    Part,
    coordinate,
    ended_list,
    list_of,
    live_list,
    receipts_list,
    stored,
)
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.decisions import Order
from trailboss.model.events import (
    PROTOCOL_TOPICS,
    TIMER_CANCELLED_BY_DELAY,
    TIMER_DEFERRED,
    TIMER_FIRED,
    TIMER_MOVED,
    TIMER_SCHEDULED,
    EventRecord,
)
from trailboss.model.transactions import (
    CreateAccount,
    ExecuteActor,
    FundActor,
    Instruction,
    SetBalance,
    Transfer,
    UpgradeActor,
)
from trailboss.primitives.octets import Address
from trailboss.views.records import receipt_events

DAY_MS: Final = 86_400_000
TRANSACTIONS, TIMERS, MESSAGES = (
    ORIGINS.index(origin) for origin in (Origin.TRANSACTION, Origin.TIMER, Origin.MESSAGE)
)
RUNS: Final = {TRANSACTIONS: "transactions", TIMERS: "fires", MESSAGES: "messages"}
"""What an execution counts as, by what it came from."""
NAME, EMITTER, MENTION = int(Facet.NAME), int(Facet.EMITTER), int(Facet.MENTION)


Posting = tuple[int, int | None, int | bytes | None]
"""Item, about and due."""


class BlockRows(Struct):
    """What one block adds to the tables.

    Attributes:
        height: Of the block.
        day: Days of chain time since 1970.
        transactions: Hash, and place of the receipt, in order.
        timers: The timers that it scheduled, each with its id, the number of its handler, and the columns from
            gas_limit to position.
        parents: Of those that a fire scheduled the timer that fired, by coordinate.
        lists: Items, what they are about, and when that is due, by list; ascending.
        live: Rows of live timers, and whether they are to be there.
        ended: Coordinate of the event, how, whether by a fire that reverted, and coordinate of the timer, of those that
            have a row already.
        moved: Timers that have a row already, by coordinate, and the height that they had.
        moves: Where they are due now.
        spend: Runs, burned, tips and refunds by payer and origin.
        counts: What it adds to a `Tally` beside what follows from the others.
        lane: Lane basefee in force and of the next block; None if the block does not say.
    """

    height: int
    day: int
    transactions: list[tuple[bytes, int]] = field(default_factory=list)
    timers: list[tuple[TimerFacts, bytes, int, tuple[object, ...]]] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    lists: defaultdict[int, list[Posting]] = field(default_factory=lambda: defaultdict(list))
    live: dict[tuple[int, int | bytes, int], bool] = field(default_factory=dict)
    ended: list[tuple[int, int, bool, int]] = field(default_factory=list)
    moved: dict[int, int | bytes] = field(default_factory=dict)
    moves: dict[int, int | bytes] = field(default_factory=dict)
    spend: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    lane: tuple[int, int] | None = None

    def tally(self) -> Tally:
        """Return what it adds to the sums."""
        counts = dict(self.counts)
        for (_, origin), (runs, burned, tips, _) in self.spend.items():
            for name, value in ((RUNS[origin], runs), ("burned", burned), ("tips", tips)):
                counts[name] = counts.get(name, 0) + value
        return Tally(scheduled=len(self.timers), **counts)


def gather(block: Block, book: Book) -> BlockRows:
    """Return what a block adds to the tables that the book looks things up in."""
    return _Gatherer(block, book).rows


def mentions(record: EventRecord) -> tuple[bytes, ...]:
    """Return the addresses that an event of the chain itself names in its fields; none for an event of an actor."""
    if record.name not in PROTOCOL_TOPICS:
        return ()
    return tuple(_addresses(cbor2.loads(record.data)))


def _addresses(facts: dict[str, Any]) -> dict[bytes, None]:
    """Return the addresses among the fields of an event, each once and in their order."""
    return {value: None for value in facts.values() if type(value) is bytes and len(value) == Address.WIDTH}


class _Gatherer:
    """One block on its way into rows.

    Attributes:
        rows: What there is so far.
    """

    def __init__(self, block: Block, book: Book) -> None:
        header, decisions = block.header, block.decisions
        self.rows = rows = BlockRows(block.height, header.timestamp_ms // DAY_MS)
        self._book = book
        self._item = coordinate(block.height)
        self._known = book.timers(_timer_ids(block))
        if decisions is not None and decisions.order is Order.PRIORITY:
            rows.lane = decisions.lane_basefee, decisions.next_lane_basefee
        transactions = iter(block.transactions)
        for place, receipt in enumerate(block.receipts):
            target = None if receipt.origin is not Origin.TRANSACTION else target_of(next(transactions).instruction)
            self._add_receipt(receipt, place, target)
        for record in block.events:
            self._add_event(record, None, 0)
        rows.counts["events"] = self._item - coordinate(block.height)
        rows.counts["cycles"] = header.cycles_used
        rows.counts["cells"] = header.cells_used
        rows.counts["timer_cycles"] = header.timer_cycles_used

    def _number(self, address: bytes) -> int:
        # Looked up some ten times for each receipt.
        number = self._book.addresses.get(address)
        return self._book.address(address, self.rows.height) if number is None else number

    # Receipts

    def _add_receipt(self, receipt: ReceiptRecord, place: int, target: Address | None) -> None:
        rows, payer = self.rows, self._number(receipt.payer)
        origin = _number_of(receipt.origin)
        parts = {payer: int(Part.PAYER)}
        for part, address in ((Part.SENDER, receipt.sender), (Part.TARGET, target), (Part.ACTOR, receipt.actor)):
            if address:
                number = self._number(address)
                parts[number] = parts.get(number, 0) | part
        if origin == TRANSACTIONS:
            rows.transactions.append((receipt.origin_hash, place))
        item, marks = coordinate(rows.height, place), origin << PART_BITS
        for number, sum_of_parts in parts.items():
            rows.lists[receipts_list(number, origin)].append((item, marks | sum_of_parts, None))
        self._spend(payer, origin, (1, receipt.fee_burned, receipt.tip, receipt.refund))
        for record in receipt_events(receipt):
            self._add_event(record, receipt, place)

    def _spend(self, payer: int, origin: int, added: tuple[int, int, int, int]) -> None:
        """Count what an execution cost: runs, burned, tips, refunds."""
        spent = self.rows.spend.get((payer, origin))
        if spent is None:
            self.rows.spend[payer, origin] = list(added)
        else:
            spent[:] = map(add, spent, added)

    # Events

    def _add_event(self, record: EventRecord, receipt: ReceiptRecord | None, place: int) -> None:
        """Put an event into its lists, and follow what it says of a timer.

        Args:
            record: The event.
            receipt: That holds it; None for the block's own.
            place: Of the receipt.
        """
        name, item, emitter = record.name, self._item, self._number(record.emitter)
        self._item = item + 1
        facts: dict[str, Any] = {}
        if name == TIMER_FIRED and receipt is not None:
            # The many of them need not be read: the payer is the one address that they name.
            mentioned: Iterable[bytes] = (receipt.payer,)
        elif name == TIMER_DEFERRED or name not in PROTOCOL_TOPICS:
            mentioned = ()
        else:
            facts = cbor2.loads(record.data)
            mentioned = _addresses(facts)
        if name == TIMER_SCHEDULED and receipt is not None:
            self._known[record.timer_id] = self._schedule(record, facts, receipt, place)
        timer = self._known.get(record.timer_id)
        name_number = self._book.name(name)
        posting = item, name_number, None
        lists = self.rows.lists
        lists[list_of(NAME, name_number)].append((item, None if timer is None else timer.coordinate, None))
        lists[list_of(EMITTER, emitter)].append(posting)
        for address in mentioned:
            number = self._number(address)
            if number != emitter:
                lists[list_of(MENTION, number)].append(posting)
        ending = ENDING_NUMBERS.get(name)
        if timer is not None and ending is not None:
            self._end(timer, item, ending, reverted=receipt is not None and receipt.status is Status.REVERTED)
        elif timer is not None and name != TIMER_SCHEDULED:
            lists[list_of(Facet.TIMER, timer.coordinate)].append(posting)
            if name == TIMER_MOVED:
                self._move(timer, stored(facts["height"]))
        if name == TIMER_CANCELLED_BY_DELAY and facts["penalty"]:
            self._spend(emitter, TIMERS, (0, facts["penalty"], 0, 0))

    def _schedule(self, record: EventRecord, facts: dict[str, Any], receipt: ReceiptRecord, place: int) -> TimerFacts:
        rows, found = self.rows, self._item - 1
        parent = self._known.get(receipt.timer_id)
        actor = target = self._number(record.emitter)
        if "target" in facts:
            target = self._number(facts["target"])
        payer, height = self._number(facts["fee_payer"]), stored(facts["height"])
        root, generation = None, 0
        if parent is not None:
            root, generation = parent.root or parent.coordinate, parent.generation + 1
            rows.parents[found] = parent.coordinate
            rows.lists[list_of(Facet.KIN, root)].append((found, parent.coordinate, None))
        timer = TimerFacts(found, actor, target, payer, height, root, generation, is_new=True)
        is_priced = "max_fee_per_cycle" in facts
        columns = (
            stored(facts["gas_limit"]),
            stored(facts["expires_at"]),
            stored(facts["max_fee_per_cycle"]) if is_priced else None,
            stored(facts["max_priority_fee_per_cycle"]) if is_priced else None,
            place,
            len(rows.transactions) - 1 if receipt.origin is Origin.TRANSACTION else None,
        )
        rows.timers.append((timer, record.timer_id, self._book.name(facts["handler"]), columns))
        for address, roles in timer.parties():
            rows.live[live_list(address, roles), height, found] = True
        return timer

    def _end(self, timer: TimerFacts, item: int, ending: int, *, reverted: bool) -> None:
        rows = self.rows
        timer.ended, timer.ending, timer.reverted = item, ending, reverted
        if not timer.is_new:
            rows.ended.append((item, ending, reverted, timer.coordinate))
        for address, roles in timer.parties():
            rows.lists[ended_list(address, roles, ending)].append((item, timer.coordinate, timer.height))
            rows.live[live_list(address, roles), timer.height, timer.coordinate] = False
        rows.counts[ENDINGS[ending]] += 1

    def _move(self, timer: TimerFacts, height: int | bytes) -> None:
        rows = self.rows
        if not timer.is_new:
            rows.moved.setdefault(timer.coordinate, timer.height)
            rows.moves[timer.coordinate] = height
        for address, roles in timer.parties():
            rows.live[live_list(address, roles), timer.height, timer.coordinate] = False
            rows.live[live_list(address, roles), height, timer.coordinate] = True
        timer.height = height


def _number_of(origin: Origin) -> int:
    """Return the place of an origin in `ORIGINS`. Enumerations are slow as keys."""
    if origin is Origin.TRANSACTION:
        return TRANSACTIONS
    return TIMERS if origin is Origin.TIMER else MESSAGES


def target_of(instruction: Instruction) -> Address | None:
    """Return the account or actor that an instruction is about, if it names one."""
    match instruction:
        case Transfer(to=address):
            return address
        case CreateAccount(account=address) | SetBalance(account=address):
            return address
        case FundActor(actor=address) | ExecuteActor(actor=address) | UpgradeActor(actor=address):
            return address
        case _:
            return None


def _timer_ids(block: Block) -> set[bytes]:
    """Return the ids of the timers that a block tells of and that may have rows already."""
    ids = {receipt.timer_id for receipt in block.receipts}
    for receipt in block.receipts:
        ids.update(record.timer_id for record in receipt.events if record.name != TIMER_SCHEDULED)
    ids.update(record.timer_id for record in block.events)
    ids.discard(b"")
    return ids
