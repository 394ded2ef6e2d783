"""What the index must answer, found by reading all blocks from the first one on, and a comparison of everything."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import asdict

from trailboss.codec.canonical import decode_canonical
from trailboss.index import EventFilter, Index
from trailboss.index.records import (
    BlockSpan,
    BlockTally,
    Cause,
    DaySpend,
    EventPlace,
    IndexedReceipt,
    IndexedTimer,
    IndexedTransaction,
    Spend,
    UnfundedPayer,
)
from trailboss.model import events as names
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.decisions import Order
from trailboss.model.events import EventRecord
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import receipt_events
from trailboss.views.timer_list import TimerFilter

MOST = 10_000
TARGETS = ("to", "account", "actor")
"""Fields of an instruction that name whom it is about."""
ENDED = ("fired", "expired", "unfunded", "cancelled")
Found = tuple[ReceiptRecord, int, int | None]
"""A receipt, its place in the block, and the place of its transaction, if it is one's."""


@dataclass(slots=True)
class Life:
    """One timer, as its events tell of it."""

    timer_id: bytes
    facts: dict[str, Any]
    actor: bytes
    cause: Cause
    sequence: int
    order: tuple[int, int]
    height: int
    parent: "Life | None" = None
    state: str = "live"
    ended: tuple[int, int] | None = None
    reverted: bool = False

    @property
    def generation(self) -> int:
        """How many ancestors it has."""
        return 0 if self.parent is None else self.parent.generation + 1

    @property
    def root(self) -> "Life":
        """The first of its line."""
        return self if self.parent is None else self.parent.root

    @property
    def target(self) -> bytes:
        """Whose handler it calls."""
        return bytes(self.facts.get("target", self.actor))

    def indexed(self) -> IndexedTimer:
        """Return what the index tells of it."""
        facts = self.facts
        return IndexedTimer(
            timer_id=Hash32(self.timer_id),
            actor=Address(self.actor),
            target=Address(self.target),
            payer=Address(facts["fee_payer"]),
            handler=facts["handler"],
            height=self.height,
            gas_limit=facts["gas_limit"],
            expires_at=facts["expires_at"],
            max_fee_per_cycle=facts.get("max_fee_per_cycle"),
            max_priority_fee_per_cycle=facts.get("max_priority_fee_per_cycle"),
            state=self.state,
            ended_at=None if self.ended is None else self.ended[0],
            reverted=self.reverted,
            cause=self.cause,
            sequence=self.sequence,
            generation=self.generation,
        )

    def passes(self, wanted: TimerFilter) -> bool:
        """Return whether a filter lets it pass, its state aside."""
        return (
            wanted.actor in (None, self.actor)
            and wanted.target in (None, self.target)
            and wanted.payer in (None, self.facts["fee_payer"])
            and wanted.first <= self.height <= wanted.last
        )


class Oracle:
    """The blocks of a chain up to a height, and what follows from them."""

    def __init__(self, blocks: Sequence[Block], accounts: Iterable[bytes]) -> None:
        self.blocks = list(blocks)
        self.height = len(self.blocks) - 1
        self.addresses = set(map(bytes, accounts))
        self.lives: list[Life] = []
        self.events: list[tuple[EventPlace, EventRecord]] = []
        self.transactions: list[IndexedTransaction] = []
        self.receipts: dict[bytes, list[IndexedReceipt]] = defaultdict(list)
        self.spend: dict[bytes, dict[tuple[int, Origin], list[int]]] = defaultdict(lambda: defaultdict(lambda: [0] * 4))
        self.tallies: list[BlockTally] = []
        self.prices: list[tuple[int, int, int | None]] = []
        self._latest: dict[bytes, Life] = {}
        self._lane: int | None = None
        for block in self.blocks:
            self._read(block)

    # Reading

    def _read(self, block: Block) -> None:
        counts: dict[str, int] = defaultdict(int)
        index = 0
        first_transaction = len(self.transactions)
        for place, receipt in enumerate(block.receipts):
            position = len(self.transactions) - first_transaction if receipt.origin is Origin.TRANSACTION else None
            if position is not None:
                tx_hash = Hash32(receipt.origin_hash)
                self.transactions.append(
                    IndexedTransaction(hash=tx_hash, height=block.height, position=position, receipt=place)
                )
            self._read_receipt(block, place, position)
            counts[{"transaction": "transactions", "timer": "fires", "message": "messages"}[receipt.origin]] += 1
            counts["burned"] += receipt.fee_burned
            counts["tips"] += receipt.tip
            for record in receipt_events(receipt):
                self._read_event(block, record, index, counts, (receipt, place, position))
                index += 1
        for record in block.events:
            self._read_event(block, record, index, counts, None)
            index += 1
        header = block.header
        counts |= {"cycles": header.cycles_used, "cells": header.cells_used, "timer_cycles": header.timer_cycles_used}
        self.tallies.append(BlockTally(**counts, events=index))
        lane = self._lane
        if block.decisions is not None:
            is_lane = block.decisions.order is Order.PRIORITY
            lane, self._lane = (
                (block.decisions.lane_basefee, block.decisions.next_lane_basefee) if is_lane else (None, None)
            )
        self.prices.append((amount_of(header.cycle_basefee), amount_of(header.cell_basefee), lane))

    def _read_receipt(self, block: Block, place: int, position: int | None) -> None:
        receipt = block.receipts[place]
        instruction = None if position is None else block.transactions[position].instruction
        target = next((getattr(instruction, name) for name in TARGETS if hasattr(instruction, name)), None)
        for address in {receipt.sender, receipt.payer, receipt.actor, target} - {b"", None}:
            self.addresses.add(bytes(address))
            self.receipts[bytes(address)].append(
                IndexedReceipt(
                    height=block.height,
                    receipt=place,
                    origin=receipt.origin,
                    position=position,
                    is_sender=receipt.sender == address,
                    is_payer=receipt.payer == address,
                    is_target=target == address,
                    is_actor=receipt.actor == address,
                )
            )
        self._spend(block, receipt.payer, receipt.origin, (1, receipt.fee_burned, receipt.tip, receipt.refund))

    def _spend(self, block: Block, payer: bytes, origin: Origin, added: tuple[int, int, int, int]) -> None:
        spent = self.spend[bytes(payer)][block.header.timestamp_ms // 86_400_000, origin]
        spent[:] = [now + more for now, more in zip(spent, added, strict=True)]

    def _read_event(
        self, block: Block, record: EventRecord, index: int, counts: dict[str, int], found: Found | None
    ) -> None:
        self.events.append((EventPlace(block.height, index), record))
        self.addresses |= named(record) | {bytes(record.emitter)}
        facts: Any = decode_canonical(record.data) if record.name in names.PROTOCOL_TOPICS else {}
        if record.name == names.TIMER_SCHEDULED and found is not None:
            self._schedule(record, facts, (block.height, index), found)
            counts["scheduled"] += 1
        elif record.name in names.TIMER_ENDINGS:
            life = self._latest[record.timer_id]
            assert life.ended is None
            life.state, life.ended = names.TIMER_ENDINGS[record.name], (block.height, index)
            life.reverted = facts.get("reverted", False)
            counts[life.state] += 1
        elif record.name == names.TIMER_MOVED:
            self._latest[record.timer_id].height = facts["height"]
        if record.name == names.TIMER_CANCELLED_BY_DELAY and facts["penalty"]:
            counts["burned"] += facts["penalty"]
            self._spend(block, record.emitter, Origin.TIMER, (0, facts["penalty"], 0, 0))

    def _schedule(self, record: EventRecord, facts: dict[str, Any], order: tuple[int, int], found: Found) -> None:
        receipt, place, position = found
        cause = Cause(
            origin=receipt.origin,
            timer_id=Hash32(receipt.timer_id) if receipt.timer_id else None,
            transaction=None if position is None else Hash32(receipt.origin_hash),
            height=order[0],
            receipt=place,
        )
        life = Life(
            timer_id=record.timer_id,
            facts=facts,
            actor=bytes(record.emitter),
            cause=cause,
            sequence=len(self.lives),
            order=order,
            height=facts["height"],
            parent=self._latest[receipt.timer_id] if receipt.timer_id else None,
        )
        self.lives.append(life)
        self._latest[record.timer_id] = life

    # Answers

    def timer(self, timer_id: bytes) -> Life:
        """Return the last timer of an id."""
        return self._latest[timer_id]

    def ended(self, wanted: TimerFilter) -> list[IndexedTimer]:
        """Return ended timers, the last one first."""
        states = ENDED if wanted.state == "all" else (wanted.state,)
        found = [life for life in self.lives if life.state in states and life.passes(wanted)]
        return [life.indexed() for life in sorted(found, key=lambda life: life.ended or (), reverse=True)]

    def live(self, wanted: TimerFilter) -> list[bytes]:
        """Return the ids of live timers, by height and insertion."""
        found = [life for life in self.lives if life.state == "live" and life.passes(wanted)]
        return [life.timer_id for life in sorted(found, key=lambda life: (life.height, life.sequence))]

    def family(self, life: Life) -> list[Life]:
        """Return a timer's whole line."""
        return [other for other in self.lives if other.root is life.root]

    def ancestors(self, life: Life) -> Iterator[Life]:
        """Yield a timer's parent, and so on."""
        while life.parent is not None:
            life = life.parent
            yield life

    def event_places(self, wanted: EventFilter) -> list[EventPlace]:
        """Return where the events are that a filter lets pass, oldest first."""
        since = EventPlace(wanted.since, wanted.since_index)
        return [
            place
            for place, record in self.events
            if place >= since
            and wanted.name in (None, record.name)
            and wanted.emitter in (None, record.emitter)
            and wanted.timer_id in (None, record.timer_id)
            and (wanted.address is None or wanted.address in named(record) | {record.emitter})
        ]

    def days(self, payer: bytes) -> tuple[DaySpend, ...]:
        """Return what a payer spent by day."""
        of_days: dict[int, list[Spend]] = defaultdict(list)
        spent: Mapping[tuple[int, Origin], list[int]] = self.spend.get(payer, {})
        for (day, origin), (runs, burned, tips, refunds) in sorted(spent.items(), key=lambda row: _key(row[0])):
            of_days[day].append(Spend(origin=origin, runs=runs, burned=burned, tips=tips, refunds=refunds))
        return tuple(DaySpend(day=day, spend=tuple(spend)) for day, spend in sorted(of_days.items()))

    def payers(self) -> dict[bytes, int]:
        """Return what each payer has spent on timers, if anything."""
        fees = {
            payer: sum(spent[1] + spent[2] for (_, origin), spent in days.items() if origin is Origin.TIMER)
            for payer, days in self.spend.items()
        }
        return {payer: spent for payer, spent in fees.items() if spent}

    def unfunded(self, since: int) -> list[UnfundedPayer]:
        """Return who could not pay since a block, the latest first."""
        found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for life in self.lives:
            if life.state == "unfunded" and life.ended is not None and life.ended[0] >= since:
                found[life.facts["fee_payer"]].append(life.ended)
        ranked = sorted(found.items(), key=lambda row: max(row[1]), reverse=True)
        return [
            UnfundedPayer(payer=Address(payer), timers=len(ends), last_height=max(ends)[0]) for payer, ends in ranked
        ]

    def total(self, first: int, last: int) -> BlockTally:
        """Return the sums over a range of blocks."""
        rows = [asdict(tally) for tally in self.tallies[first : last + 1]]
        return BlockTally(**{name: sum(row[name] for row in rows) for name in asdict(BlockTally())})

    def span(self, first: int, last: int) -> BlockSpan:
        """Return what a range of blocks comes to."""
        tallies, prices = self.tallies[first : last + 1], self.prices[first : last + 1]
        return BlockSpan(
            first=first,
            last=last,
            tally=self.total(first, last),
            cycles_max=max(tally.cycles for tally in tallies),
            cells_max=max(tally.cells for tally in tallies),
            timer_cycles_max=max(tally.timer_cycles for tally in tallies),
            cycle_basefee_max=max(price[0] for price in prices),
            cell_basefee_max=max(price[1] for price in prices),
            lane_basefee_max=max((price[2] for price in prices if price[2] is not None), default=None),
            cycle_basefee=prices[-1][0],
            cell_basefee=prices[-1][1],
            lane_basefee=prices[-1][2],
        )


def named(record: EventRecord) -> set[bytes]:
    """Return the addresses in the fields of an event of the chain itself."""
    if record.name not in names.PROTOCOL_TOPICS:
        return set()
    facts: Any = decode_canonical(record.data)
    return {value for value in facts.values() if isinstance(value, bytes) and len(value) == Address.WIDTH}


def _key(day_and_origin: tuple[int, Origin]) -> tuple[int, int]:
    day, origin = day_and_origin
    return day, list(Origin).index(origin)


# Comparing


def compare(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check every answer of an index, at the oracle's height, against what the blocks say."""
    for check in (compare_places, compare_timers, compare_lineages, compare_events, compare_sums, compare_search):
        check(index, oracle, dice)


def paged(ask: Any, dice: Random) -> tuple[list[Any], int]:
    """Return all items of an answer, asked for in pages, and the number that each of them gives for all."""
    step, items, totals = dice.choice((1, 3, MOST)), [], set()
    while page := ask(offset=len(items), limit=step):
        totals.add(page.total)
        if not page.items:
            break
        items += page.items
    assert len(totals) == 1
    return items, totals.pop()


def check_pages(ask: Any, expected: Sequence[Any], dice: Random) -> None:
    """Check that the pages of an answer are an expected sequence."""
    items, total = paged(ask, dice)
    assert items == list(expected)
    assert total == len(expected)


def compare_places(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check blocks, transactions and receipts."""
    upto = oracle.height
    for block in dice.sample(oracle.blocks, min(10, len(oracle.blocks))):
        assert index.block_height(block.hash, oracle.blocks) == block.height
    assert index.block_height(Hash32(dice.randbytes(32)), oracle.blocks) is None
    for transaction in oracle.transactions:
        assert index.transaction(transaction.hash, upto) == transaction
    check_pages(lambda **part: index.transactions(upto, **part), oracle.transactions[::-1], dice)
    for address in oracle.addresses:
        receipts = oracle.receipts.get(address, [])[::-1]
        check_pages(lambda address=address, **part: index.receipts(address, upto, **part), receipts, dice)
        origins = dice.sample(list(Origin), 2)
        some = [receipt for receipt in receipts if receipt.origin in origins]
        check_pages(
            lambda address=address, origins=origins, **part: index.receipts(address, upto, origins, **part), some, dice
        )


def filters(oracle: Oracle, dice: Random) -> Iterator[Mapping[str, Any]]:
    """Yield conditions on timers."""
    people = [None, *sorted(map(Address, oracle.addresses))]
    heights = sorted(life.height for life in oracle.lives) or [0]
    yield {}
    for _ in range(6):
        bounds = sorted((dice.choice(heights), dice.choice(heights)))
        limits = {"first": bounds[0], "last": bounds[1]} if dice.random() < 0.5 else {}
        who = dice.choice(people)
        yield limits | {dice.choice(("actor", "target", "payer")): who}
        yield limits | {name: dice.choice((who, dice.choice(people), None)) for name in ("actor", "target", "payer")}
    yield {"first": 1, "last": 0, "actor": people[-1]}


def compare_timers(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check timers by id, and lists of them."""
    upto = oracle.height
    for life in oracle.lives:
        latest = oracle.timer(life.timer_id)
        assert index.timer(life.timer_id, upto) == latest.indexed()
        heights = sorted({place.height for place, record in oracle.events if record.timer_id == life.timer_id})
        assert index.timer_heights(life.timer_id, upto) == tuple(heights)
    assert index.timer(dice.randbytes(32), upto) is None
    for conditions in filters(oracle, dice):
        for state in (*ENDED, "all"):
            wanted = TimerFilter(state=state, **conditions)
            check_pages(
                lambda wanted=wanted, **part: index.ended_timers(wanted, upto, **part), oracle.ended(wanted), dice
            )
        wanted = TimerFilter(**conditions)
        if any(address is not None for address in (wanted.actor, wanted.target, wanted.payer)):
            check_pages(
                lambda wanted=wanted, **part: index.live_timers(wanted, upto, **part), oracle.live(wanted), dice
            )


def compare_lineages(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check which timers scheduled which."""
    upto = oracle.height
    lives = [life for life in oracle.lives if oracle.timer(life.timer_id) is life]
    for life in dice.sample(lives, min(8, len(lives))):
        family = oracle.family(life)
        children = [other for other in oracle.lives if other.parent is life]
        found = index.lineage(life.timer_id, upto)
        assert found is not None
        assert (found.root, found.family_size) == (life.root.timer_id, len(family))
        assert (found.place, found.children) == (family.index(life), len(children))
        for ask, expected in (
            (index.family, family),
            (index.children, children),
            (index.ancestors, list(oracle.ancestors(life))),
        ):
            check_pages(
                lambda ask=ask, life=life, **part: ask(life.timer_id, upto, **part),
                [other.indexed() for other in expected],
                dice,
            )


def compare_events(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check events by name, emitter, address, timer and height."""
    upto = oracle.height
    people = [None, *sorted(map(Address, oracle.addresses))]
    topics = [None, *sorted({record.name for _, record in oracle.events})]
    ids = [None, None, *(Hash32(life.timer_id) for life in oracle.lives)]
    since = [EventPlace(0, 0), EventPlace(U64_MAX, 0), *(place for place, _ in oracle.events)]
    wanted = [EventFilter(), *(EventFilter(name=name) for name in topics)]
    wanted.append(EventFilter(since=dice.randint(0, upto), since_index=MOST))
    for _ in range(12):
        begin = dice.choice(since) if dice.random() < 0.5 else EventPlace(0, 0)
        wanted.append(
            EventFilter(
                name=dice.choice((None, dice.choice(topics))),
                emitter=dice.choice((None, dice.choice(people))),
                address=dice.choice((None, dice.choice(people))),
                timer_id=dice.choice((None, dice.choice(ids))),
                since=begin.height,
                since_index=begin.index,
            )
        )
    for each in wanted:
        expected = oracle.event_places(each)
        check_pages(lambda each=each, **part: index.events(each, upto, **part), expected, dice)
        check_pages(lambda each=each, **part: index.events(each, upto, newest_first=True, **part), expected[::-1], dice)


def compare_sums(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check spending, statistics and totals."""
    upto = oracle.height
    for address in oracle.addresses:
        days = oracle.days(address)
        assert index.spend(address, upto) == days
        assert index.spend(address, upto, 1, 0) == ()
        if days:
            assert index.spend(address, upto, days[-1].day, days[-1].day) == days[-1:]
    payers, ranked = oracle.payers(), index.payers(upto, 0, MOST)
    assert {payer.payer: payer.fees for payer in ranked} == payers
    assert [payer.fees for payer in ranked] == sorted(payers.values(), reverse=True)
    assert [*index.payers(upto, 0, 1), *index.payers(upto, 1, MOST)] == list(ranked)
    for since in (0, dice.randint(0, upto)):
        assert list(index.unfunded_payers(since, upto)) == oracle.unfunded(since)
    assert index.totals(upto) == oracle.total(0, upto)
    for _ in range(3):
        first, last = sorted((dice.randint(0, upto), dice.randint(0, upto + 3)))
        points = dice.choice((1, 2, 7, 500))
        spans = index.statistics(first, last, points, upto)
        assert len(spans) <= points
        assert [span for span in spans if span != oracle.span(span.first, span.last)] == []
        covered = [height for span in spans for height in range(span.first, span.last + 1)]
        assert covered == list(range(first, min(last, upto) + 1))


def compare_search(index: Index, oracle: Oracle, dice: Random) -> None:
    """Check what begins with some digits."""
    known: list[tuple[str, bytes | int]] = [
        *((transaction.hash.hex(), transaction.hash) for transaction in oracle.transactions),
        *((life.timer_id.hex(), life.timer_id) for life in oracle.lives),
        *((address.hex(), address) for address in oracle.addresses),
    ]
    heights = {block.hash.hex(): block.height for block in oracle.blocks}
    texts = [text for text, _ in known] + list(heights)
    for text in dice.sample(texts, min(6, len(texts))):
        digits = text[: dice.choice((1, 3, 8, 16, 17, 39, 40, 64, 64))]
        found = index.search(digits, oracle.blocks, MOST)
        named_ids = {*found.timers, *found.addresses, *(each.hash for each in found.transactions)}
        assert named_ids == {item for name, item in known if name.startswith(digits)}
        blocks = {height for name, height in heights.items() if name.startswith(digits)}
        # Quiet blocks are found by 16 digits or more.
        assert set(found.blocks) <= blocks
        assert len(digits) < 16 or set(found.blocks) == blocks
    assert index.search("0" * 65, oracle.blocks).blocks == ()
