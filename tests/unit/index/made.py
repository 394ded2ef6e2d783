"""Blocks made by hand: chains of any length and crowd without running one."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.genesis import Genesis
from trailboss.model import events as names
from trailboss.model.blocks import Block, Header, Origin, ReceiptRecord, Status, header_hash
from trailboss.model.configs import amount_octets
from trailboss.model.decisions import DecisionRecord, Order, Stop
from trailboss.model.events import EventRecord
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Amount, Cells, Cycles

GENESIS = Genesis(chain_id=1, proposer=Address(b"\xaa" * 20), accounts={Address(b"\xbb" * 20): 1})
INTERVAL_MS = 1_000


def address(number: int) -> Address:
    """Return the address of a number."""
    return Address(sha256(b"address %d" % number).digest()[:20])


def timer_id(number: int) -> Hash32:
    """Return the id of a number."""
    return Hash32(sha256(b"timer %d" % number).digest())


class Blocks(list[Block]):
    """Blocks by height, as a chain has them."""

    base = 0

    def since(self, height: int) -> Iterator[Block]:
        """Yield the blocks from a height on."""
        return iter(self[height:])


class MadeChain:
    """What the index reads of a chain.

    Attributes:
        genesis: What it starts from.
        blocks: So far.
    """

    def __init__(self, genesis: Genesis = GENESIS) -> None:
        self.genesis = genesis
        self.blocks = Blocks()
        self.salt = b""
        self._count = 0
        self.add()

    @property
    def height(self) -> int:
        """Height of the head."""
        return len(self.blocks) - 1

    def add(self, **content: Any) -> Block:
        """Add a block."""
        parent = self.blocks[-1] if self.blocks else None
        receipts = content.get("receipts", ())
        header = Header(
            version=1,
            chain_id=1,
            height=len(self.blocks),
            parent=bytes(32) if parent is None else bytes(parent.hash),
            timestamp_ms=INTERVAL_MS * len(self.blocks),
            proposer=GENESIS.proposer,
            transactions_root=bytes(32),
            receipts_root=sha256(self.salt + repr(content).encode()).digest() if content else bytes(32),
            state_root=bytes(32),
            cycle_basefee=amount_octets(content.pop("cycle_basefee", 7)),
            cell_basefee=amount_octets(7),
            cycles_used=sum(receipt.cycles_used for receipt in receipts),
            cells_used=0,
            timer_cycles_used=sum(receipt.cycles_used for receipt in receipts if receipt.origin is Origin.TIMER),
        )
        block = Block(header=header, hash=header_hash(header), **content)
        self.blocks.append(block)
        return block

    def idle(self, count: int) -> None:
        """Add blocks in which nothing happens."""
        for _ in range(count):
            self.add()

    def branch(self, height: int, salt: bytes) -> "MadeChain":
        """Return a chain with the same blocks up to a height, that will go on with others."""
        other = MadeChain(self.genesis)
        other.blocks[:] = self.blocks[: height + 1]
        other.salt, other._count = salt, self._count
        return other

    def transfer(self, pairs: Iterable[tuple[int, int]]) -> Block:
        """Add a block of transfers."""
        return self.send((address(sender), address(receiver), ()) for sender, receiver in pairs)

    def call(self, sender: Address, *events: EventRecord, **content: Any) -> Block:
        """Add a block of one transaction with some events."""
        return self.send([(sender, sender, events)], **content)

    def send(self, sent: Iterable[tuple[Address, Address, tuple[EventRecord, ...]]], **content: Any) -> Block:
        """Add a block of transactions: sender, whom it is about, and events."""
        transactions, receipts = [], []
        for sender, target, events in sent:
            self._count += 1
            tx_hash = sha256(self.salt + b"transaction %d" % self._count).digest()
            transactions.append(made_transaction(sender, target))
            receipts.append(made_receipt(Origin.TRANSACTION, sender, origin_hash=tx_hash, events=events))
        fires = content.pop("receipts", ())
        return self.add(transactions=tuple(transactions), receipts=(*receipts, *fires), **content)

    def fire(self, fired: Iterable[int], scheduled: Iterable[int] = (), actors: int = 10) -> Block:
        """Add a block in which timers fire, and another one is scheduled by each of them, or by a transaction."""
        receipts = []
        following = iter(scheduled)
        for number in fired:
            actor, new = address(number % actors), next(following, None)
            events = () if new is None else (scheduling(new, actor, self.height + 2),)
            receipts.append(made_fire(number, actor, *events))
        sent = [
            (address(number % actors), address(number % actors), (scheduling(number, address(number % actors), 1),))
            for number in following
        ]
        return self.send(sent, receipts=tuple(receipts))


def made_transaction(sender: Address, target: Address) -> Transaction:
    """Return a transaction."""
    return Transaction(
        chain_id=1,
        nonce=0,
        instruction=Transfer(target, 1),
        cycles_limit=1,
        cells_limit=1,
        max_fee_per_cycle=1,
        max_fee_per_cell=1,
        sender=sender,
    )


def made_fire(number: int, actor: Address, *events: EventRecord, **content: Any) -> ReceiptRecord:
    """Return the receipt of a fire."""
    all_events = (*events, firing(number, actor))
    identity = bytes(timer_id(number))
    return made_receipt(Origin.TIMER, actor, timer_id=identity, actor=bytes(actor), events=all_events, **content)


def made_receipt(origin: Origin, payer: Address, **content: Any) -> ReceiptRecord:
    """Return a receipt."""
    values: dict[str, Any] = {
        "origin": origin,
        "origin_hash": bytes(32),
        "sender": bytes(payer),
        "payer": bytes(payer),
        "status": Status.OK,
        "error": None,
        "cycles_used": Cycles(1_000),
        "cells_used": Cells(10),
        "reserved": Amount(20_000),
        "fee_burned": Amount(10_000),
        "tip": Amount(5),
        "refund": Amount(9_995),
        "return_value": b"",
        "events": (),
    }
    return ReceiptRecord(**values | content)


def scheduling(number: int, actor: Address, height: int, **more: Any) -> EventRecord:
    """Return the event that schedules a timer."""
    facts = {
        "timer_id": timer_id(number),
        "height": height,
        "handler": "tick",
        "fee_payer": actor,
        "gas_limit": 50_000,
        "expires_at": height + 1_000,
    }
    return EventRecord(names.TIMER_SCHEDULED, bytes(actor), encode_canonical(facts | more), bytes(timer_id(number)))


def firing(number: int, actor: Address) -> EventRecord:
    """Return the event of a fire."""
    facts = {
        "timer_id": timer_id(number),
        "reverted": False,
        "cycles_used": 1_000,
        "cells_used": 10,
        "fee_payer": actor,
        "fee_paid": 10_005,
        "refund": 9_995,
        "blocks_deferred": 0,
        "tip": 5,
        "lane_burned": 0,
    }
    return EventRecord(names.TIMER_FIRED, bytes(actor), encode_canonical(facts), bytes(timer_id(number)))


def ending(name: str, number: int, actor: Address, **facts: Any) -> EventRecord:
    """Return an event that ends a timer without a fire."""
    return EventRecord(
        name, bytes(actor), encode_canonical({"timer_id": timer_id(number), **facts}), bytes(timer_id(number))
    )


def moving(number: int, actor: Address, before: int, height: int) -> EventRecord:
    """Return the event that moves a timer."""
    return ending(names.TIMER_MOVED, number, actor, from_height=before, height=height)


def lane_decisions(basefee: int, next_basefee: int) -> DecisionRecord:
    """Return a decision record of the timer lane."""
    zeros = dict.fromkeys(DecisionRecord.__struct_fields__, 0)
    values: dict[str, Any] = zeros | {
        "mechanism": "lane",
        "order": Order.PRIORITY,
        "lane_basefee": basefee,
        "next_lane_basefee": next_basefee,
        "examined": (),
        "gaps": (),
        "stopped": Stop.NONE_LEFT,
    }
    return DecisionRecord(**values)
