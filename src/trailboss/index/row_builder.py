"""The rows that blocks add to the tables, gathered for several blocks and written together. Decision: D-75."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import add
from sqlite3 import Connection
from typing import Any, Final

import cbor2
from msgspec import Struct

from trailboss.index.records import BlockTally
from trailboss.index.schema import ENDING_NUMBERS, ENDINGS, ORIGINS, PARTS, PLACE_MAX, place_at, stored
from trailboss.model import events as topics
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.timers import Timer
from trailboss.model.transactions import Instruction
from trailboss.primitives.bounded import BoundedDict
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address
from trailboss.views.records import receipt_events

DAY_MS: Final = 86_400_000
REMEMBERED_MAX: Final = 1 << 17  # most addresses, or names, that are kept
ASKED_MAX: Final = 400  # timers of one query; SQLite took no more than 999 values until 3.32
TRANSACTIONS, TIMERS, MESSAGES = (
    ORIGINS.index(origin) for origin in (Origin.TRANSACTION, Origin.TIMER, Origin.MESSAGE)
)
RUNS: Final = {TRANSACTIONS: "transactions", TIMERS: "fires", MESSAGES: "messages"}
"""The sum that counts executions, by their origin."""
TARGETS: Final = ("actor", "to", "account")  # fields of instructions that name an account or an actor
SENDER, PAYER, TARGET, ACTOR = (1 << bit for bit in range(len(PARTS)))
Row = tuple[object, ...]


class Lookups:
    """Numbers of addresses and names, and timers by id."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.addresses: BoundedDict[bytes, int] = BoundedDict(REMEMBERED_MAX)
        self._names: BoundedDict[str, int] = BoundedDict(REMEMBERED_MAX)

    def forget(self) -> None:
        """Forget everything: rows have been taken back."""
        self.addresses.clear()
        self._names.clear()

    def address(self, address: bytes, height: int) -> int:
        """Return the number of an address; a new one has first been named at a height."""
        number = self.addresses.get(address)
        if number is None:
            octets = bytes(address)
            row = self._row("SELECT number FROM addresses WHERE address = ?", octets)
            number = row[0] if row else self._insert("addresses (address, first) VALUES (?, ?)", octets, height)
            self.addresses[octets] = number
        return number

    def name(self, name: str) -> int:
        """Return the number of an event's or a handler's name."""
        number = self._names.get(name)
        if number is None:
            row = self._row("SELECT number FROM names WHERE name = ?", name)
            number = row[0] if row else self._insert("names (name) VALUES (?)", name)
            self._names[name] = number
        return number

    def timers(self, ids: Iterable[bytes]) -> Iterator[Any]:
        """Yield id, at, height, root and generation of timers that have rows; of one id the last one comes last."""
        rest = iter(ids)
        while asked := list(islice(rest, ASKED_MAX)):
            places = ",".join("?" * len(asked))
            query = f"SELECT id, at, height, root, generation FROM timers WHERE id IN ({places}) ORDER BY at"
            yield from self._connection.execute(query, asked)

    def descendants(self, root: int) -> int:
        """Return how many timers descend from the first one of a line."""
        row = self._row("SELECT place FROM timers WHERE root = ? ORDER BY place DESC LIMIT 1", root)
        return row[0] if row else 0

    def _row(self, query: str, value: object) -> Any:
        return self._connection.execute(query, (value,)).fetchone()

    def _insert(self, into: str, *values: object) -> int:
        return self._connection.execute(f"INSERT INTO {into}", values).lastrowid or 0


class TimerRow(Struct):
    """A timer of the batch, or one that has a row and that a block of the batch is about."""

    at: int  # place of the event that scheduled it
    height: int | bytes  # at which it is due, as it is stored
    root: int | None  # the first timer of its line; None for itself
    generation: int
    columns: tuple[Row, Row, Row] | None = None  # of a new one: id to handler, gas_limit to parent, place and sequence
    ended: int | None = None
    ending: int | None = None
    reverted: bool | None = None

    def row(self) -> Row:
        """Return the row of a new one."""
        first, second, third = self.columns or ((), (), ())
        lineage = self.root, self.generation
        return (self.at, *first, self.height, *second, *lineage, *third, self.ended, self.ending, self.reverted)


def earlier_row(timer: Timer, lookups: Lookups) -> Row:
    """Return the row of a live timer of which the block that scheduled it is not here.

    Its sequence, which is less than any place in a block that is here, stands for the place of that event.
    """
    caps = timer.frozen_fees() if timer.terms is None else None
    parties = (
        lookups.address(address, timer.schedule_block) for address in (timer.actor, timer.target, timer.fee_payer)
    )
    columns = (
        (timer.timer_id, *parties, lookups.name(timer.handler)),
        (stored(timer.gas_limit), stored(timer.expires_at), *map(stored, caps or ()), *(None,) * (3 if caps else 5)),
        (0, timer.sequence),
    )
    return TimerRow(timer.sequence, stored(timer.height), None, 0, columns).row()


class Batch:
    """The rows of some blocks, by table."""

    def __init__(self, lookups: Lookups) -> None:
        self.tables: defaultdict[str, list[Row]] = defaultdict(list)  # rows to insert
        self.endings: list[Row] = []  # of timers that have a row: ended, ending, reverted and at
        self.heights: dict[int, int | bytes] = {}  # of timers that have a row and have been moved, by at
        # Runs, burned, tips and refunds by payer, origin and day.
        self.days: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0] * 4)
        self.spent: defaultdict[int, int] = defaultdict(int)  # fees of timers by payer
        self._lookups = lookups
        self._known: dict[bytes, TimerRow] = {}
        self._new: list[TimerRow] = []
        self._places: dict[int, int] = {}
        self._height = self._next = 0
        self._spending: dict[tuple[int, int], list[int]] = {}
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._scheduled = 0

    def timers(self) -> list[Row]:
        """Return the rows of new timers."""
        return [timer.row() for timer in self._new]

    def add(self, block: Block, scheduled: int) -> BlockTally:
        """Add the rows of a block, and return what it adds to the sums; so many timers were scheduled before it."""
        header, height = block.header, block.height
        self._height, self._next, self._scheduled = height, place_at(height), scheduled
        self._counts, self._spending = defaultdict(int), {}
        self._look_up(block)
        transactions = iter(block.transactions)
        position = -1
        for place, receipt in enumerate(block.receipts):
            target, of_transaction = None, None
            if receipt.origin is Origin.TRANSACTION:
                position, target = position + 1, target_of(next(transactions).instruction)
                of_transaction = position
                self.tables["transactions"].append((place_at(height, position), receipt.origin_hash, place))
            self._add_receipt(receipt, place, target, of_transaction)
        for record in block.events:
            self._add_event(record, None, 0, None)
        events = self._next - place_at(height)
        if max(events - 1, len(block.receipts)) > PLACE_MAX:
            raise InvariantError(f"block {height} holds more than {PLACE_MAX} events or receipts")
        day = header.timestamp_ms // DAY_MS
        counts = self._counts
        for (payer, origin), sums in self._spending.items():
            runs, burned, tips, _ = sums
            self.tables["spending"].append((height, payer, origin, day, *map(stored, sums)))
            self.days[payer, origin, day][:] = map(add, self.days[payer, origin, day], sums)
            if origin == TIMERS:
                self.spent[payer] += burned + tips
            counts[RUNS[origin]] += runs
            counts["burned"] += burned
            counts["tips"] += tips
        counts |= {"events": events, "scheduled": self._scheduled - scheduled, "cycles": header.cycles_used}
        return BlockTally(**counts, cells=header.cells_used, timer_cycles=header.timer_cycles_used)

    def _look_up(self, block: Block) -> None:
        """Read the timers that a block is about and that have rows already."""
        ids = {receipt.timer_id for receipt in block.receipts}
        for receipt in block.receipts:
            ids.update(record.timer_id for record in receipt.events if record.name != topics.TIMER_SCHEDULED)
        ids.update(record.timer_id for record in block.events)
        ids.discard(b"")
        for identity, *columns in self._lookups.timers(ids - self._known.keys()):
            self._known[identity] = TimerRow(*columns)

    def _number(self, address: bytes) -> int:
        # Looked up some ten times for each receipt.
        number = self._lookups.addresses.get(address)
        return self._lookups.address(address, self._height) if number is None else number

    def _add_receipt(self, receipt: ReceiptRecord, place: int, target: Address | None, position: int | None) -> None:
        payer, origin = self._number(receipt.payer), _number_of(receipt.origin)
        parts = {payer: PAYER}
        for part, address in ((SENDER, receipt.sender), (TARGET, target), (ACTOR, receipt.actor)):
            if address:
                number = self._number(address)
                parts[number] = parts.get(number, 0) | part
        at = place_at(self._height, place)
        self.tables["receipts"].extend((at, number, origin, sum_of_parts) for number, sum_of_parts in parts.items())
        self._spend(payer, origin, (1, receipt.fee_burned, receipt.tip, receipt.refund))
        for record in receipt_events(receipt):
            self._add_event(record, receipt, place, position)

    def _spend(self, payer: int, origin: int, added: tuple[int, int, int, int]) -> None:
        """Count what an execution cost: runs, burned, tips, refunds."""
        spent = self._spending.get((payer, origin))
        if spent is None:
            self._spending[payer, origin] = list(added)
        else:
            spent[:] = map(add, spent, added)

    def _add_event(
        self, record: topics.EventRecord, receipt: ReceiptRecord | None, place: int, position: int | None
    ) -> None:
        """Add an event of a receipt, or of the block itself, and follow what it says of a timer."""
        name, at, emitter = record.name, self._next, self._number(record.emitter)
        self._next = at + 1
        facts: dict[str, Any] = {}
        if name == topics.TIMER_FIRED and receipt is not None:
            # The most frequent event need not be read: the payer is the one address that it names.
            mentioned: Iterable[bytes] = (receipt.payer,)
        elif name == topics.TIMER_DEFERRED or name not in topics.PROTOCOL_TOPICS:
            mentioned = ()
        else:
            facts = cbor2.loads(record.data)
            mentioned = _addresses(facts)
        if name == topics.TIMER_SCHEDULED and receipt is not None:
            self._schedule(record, facts, receipt, (place, position))
        timer = self._known.get(record.timer_id)
        row = at, self._lookups.name(name), emitter, None if timer is None else timer.at
        self.tables["events"].append(row)
        numbers = map(self._number, mentioned)
        self.tables["mentions"].extend((at, number) for number in numbers if number != emitter)
        ending = ENDING_NUMBERS.get(name)
        if timer is not None and ending is not None:
            timer.ended, timer.ending = at, ending
            timer.reverted = receipt is not None and receipt.status is Status.REVERTED
            if timer.columns is None:
                self.endings.append((at, ending, timer.reverted, timer.at))
            self._counts[ENDINGS[ending]] += 1
        elif timer is not None and name == topics.TIMER_MOVED:
            self.tables["moves"].append((at, timer.at, timer.height))
            timer.height = stored(facts["height"])
            if timer.columns is None:
                self.heights[timer.at] = timer.height
        if name == topics.TIMER_CANCELLED_BY_DELAY and facts["penalty"]:
            self._spend(emitter, TIMERS, (0, facts["penalty"], 0, 0))

    def _schedule(
        self, record: topics.EventRecord, facts: dict[str, Any], receipt: ReceiptRecord, cause: tuple[int, int | None]
    ) -> None:
        """Add a timer; its cause is the place of the receipt, and the position of its transaction."""
        at, parent = self._next - 1, self._known.get(receipt.timer_id)
        actor = target = self._number(record.emitter)
        if "target" in facts:
            target = self._number(facts["target"])
        root, generation, place = None, 0, 0
        if parent is not None:
            root, generation = parent.root or parent.at, parent.generation + 1
            place = self._places[root] = (self._places.get(root) or self._lookups.descendants(root)) + 1
        caps = ("max_fee_per_cycle", "max_priority_fee_per_cycle")
        fees = (stored(facts[name]) if name in facts else None for name in caps)
        payer, handler = self._number(facts["fee_payer"]), self._lookups.name(facts["handler"])
        columns = (
            (record.timer_id, actor, target, payer, handler),
            (stored(facts["gas_limit"]), stored(facts["expires_at"]), *fees, *cause, parent and parent.at),
            (place, self._scheduled),
        )
        timer = TimerRow(at, stored(facts["height"]), root, generation, columns)
        self._scheduled += 1
        self._new.append(timer)
        self._known[record.timer_id] = timer


def mentions(record: topics.EventRecord) -> tuple[bytes, ...]:
    """Return the addresses that an event of the chain itself names in its fields; none for an event of an actor."""
    if record.name not in topics.PROTOCOL_TOPICS:
        return ()
    return tuple(_addresses(cbor2.loads(record.data)))


def _addresses(facts: dict[str, Any]) -> dict[bytes, None]:
    """Return the addresses among the fields of an event, each once and in their order."""
    return {value: None for value in facts.values() if type(value) is bytes and len(value) == Address.WIDTH}


def _number_of(origin: Origin) -> int:
    """Return the place of an origin in `ORIGINS`. Enumerations are slow as keys."""
    if origin is Origin.TRANSACTION:
        return TRANSACTIONS
    return TIMERS if origin is Origin.TIMER else MESSAGES


def target_of(instruction: Instruction) -> Address | None:
    """Return the account or actor that an instruction is about, if it names one."""
    return next((getattr(instruction, name) for name in TARGETS if hasattr(instruction, name)), None)
