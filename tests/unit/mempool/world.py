"""What the tests of the mempool share: a development chain, transactions that nobody signs, and a mempool for them."""

from dataclasses import dataclass, field

from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.chain.view import ChainView
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.mempool import AdmissionOutcome, Ending, Journal, Mempool, MempoolLimits
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.octets import Address, Hash32

BASEFEE = 10_000
CYCLES, CELLS = 10_000, 500
"""What a transfer uses."""
ROOM = 20_000_000, 1_000_000, 1_000
"""What a block has room for."""


def person(index: int) -> Address:
    """Return the address of a development account."""
    return development_account(account_name(index)).address


def transfer(sender: int = 0, nonce: int = 0, **changes: object) -> Transaction:
    """Return an unsigned transfer that offers one base unit a cycle."""
    terms: dict[str, object] = {
        "chain_id": 1,
        "instruction": Transfer(person(9), 1),
        "cycles_limit": CYCLES,
        "cells_limit": CELLS,
        "max_fee_per_cycle": 2 * BASEFEE,
        "max_fee_per_cell": 2 * BASEFEE,
        "max_priority_fee_per_cycle": 1,
        "max_priority_fee_per_cell": 0,
    }
    return Transaction(nonce=nonce, sender=person(sender), **(terms | changes))


def name_of(transaction: Transaction) -> Hash32:
    """Return the hash of a transaction."""
    return Hash32(sha256(encode_transaction(transaction)))


@dataclass
class World:
    """A chain and its mempool.

    Attributes:
        chain: The chain.
        mempool: The mempool.
        view: The chain as it was published last.
    """

    mempool: Mempool = field(default_factory=Mempool)
    chain: Chain = field(default_factory=lambda: Chain(development_genesis()))

    def __post_init__(self) -> None:
        self.view: ChainView = self.chain.publish()

    def add(self, transaction: Transaction) -> AdmissionOutcome:
        """Bring a transaction."""
        raw = encode_transaction(transaction)
        return self.mempool.add(self.view, transaction, raw, Hash32(sha256(raw)))

    def waiting(self) -> list[Hash32]:
        """Return the hashes of all that wait, by arrival."""
        return [pooled.hash for pooled in self.mempool.pooled()]

    def take(self) -> list[Transaction]:
        """Take for a block."""
        return [pooled.transaction for pooled in self.mempool.take(self.view, *ROOM)]

    def build(self, *others: Transaction) -> list[Ending]:
        """Build a block of what is taken, behind others, and tell the mempool."""
        offered = self.take()
        applied = self.chain.build([*others, *offered])
        refused = {name_of(transaction): rejection for transaction, rejection in applied.refused}
        self.view = self.chain.publish()
        included = [name for name in map(name_of, offered) if name not in refused]
        return self.mempool.settle(self.view, included, refused)

    def go_on(self, blocks: int) -> list[Ending]:
        """Build empty blocks, and tell the mempool."""
        list(self.chain.advance_to(self.chain.height + blocks))
        self.view = self.chain.publish()
        return self.mempool.settle(self.view, (), {})


def small(journal: Journal | None = None, **limits: int) -> World:
    """Return a world whose mempool has other limits, or a journal."""
    return World(Mempool(MempoolLimits(**limits), journal))


def restless(mempool: Mempool | None = None) -> World:
    """Return a world whose basefees rise by an eighth after a block of two transfers."""
    busy = {"fees.cycles_target": CYCLES, "fees.cells_target": CELLS}
    return World(Mempool() if mempool is None else mempool, Chain(development_genesis(overrides=busy)))
