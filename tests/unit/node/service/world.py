"""What the tests of the chain thread share: a small chain, an index that only takes notes, clocks held in the hand."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trailboss.chain import Chain
from trailboss.chain.development import DEPLOYER, account_name, development_account
from trailboss.chain.drafts import Terms, draft_transaction
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.index.records import IndexedTransaction
from trailboss.mempool import AdmissionOutcome, Mempool
from trailboss.model.blocks import Block
from trailboss.model.transactions import Instruction, Transaction, Transfer
from trailboss.node.block_builder import Builder, Clocks, Published
from trailboss.node.options import BLOCK_TIME_MAX_MS, MANUAL, NodeOptions, Pace, Rhythm
from trailboss.node.service import included
from trailboss.primitives.octets import Address, Hash32

MILLISECOND = 1_000_000
PATIENCE = 30
"""Seconds after which a test that waits gives up: only a fault lets it come to that."""
AT_ONCE = Pace(Rhythm.AUTO, BLOCK_TIME_MAX_MS)
"""A block for each transaction, and none besides: what timers need comes in an hour."""
TIGHT = Terms(cycles_limit=10_000, cells_limit=500)
"""What a transfer uses, and no more."""


def person(index: int) -> Address:
    """Return the address of a development account."""
    return development_account(account_name(index)).address


def deployer() -> Address:
    """Return the address of the deployer."""
    return development_account(DEPLOYER).address


class Notes:
    """An index that remembers what it was told, in order, and the height that follows from it."""

    def __init__(self, height: int = 0) -> None:
        self.height = height
        self.told: list[tuple[str, object]] = []
        self.places: dict[bytes, IndexedTransaction] = {}
        self.is_closed = False

    def apply(self, blocks: Sequence[Block]) -> None:
        """Take note of blocks."""
        for block in blocks:
            assert block.height == self.height + 1
            self.height = block.height
            self.places |= {each.hash: each.place for each in included(block) if each.place is not None}
        self.told.append(("apply", [block.height for block in blocks]))

    def revert(self, height: int) -> None:
        """Take note of a way back."""
        assert height <= self.height
        self.height = height
        self.told.append(("revert", height))

    def transaction(self, name: bytes, upto: int) -> IndexedTransaction | None:
        """Return where a transaction is."""
        found = self.places.get(name)
        return None if found is None or found.height > min(upto, self.height) else found

    def close(self) -> None:
        """Take note of the end."""
        self.is_closed = True


@dataclass
class World:
    """A builder, what it works on, and what it has announced.

    Attributes:
        now: The clock that never goes back, nanoseconds.
        wall: Time since 1970, nanoseconds.
        is_stopping: Whether long work is to be given up.
    """

    chain: Chain
    mempool: Mempool
    index: Notes
    builder: Builder
    announced: list[Published] = field(default_factory=list)
    now: int = 0
    wall: int = 0
    is_stopping: bool = False

    def send(self, instruction: Instruction, sender: int = 0, *, terms: Terms = TIGHT, ahead: int = 0) -> Hash32:
        """Have the mempool take a signed transaction, and return its hash."""
        return self.add(self.draft(instruction, sender, terms=terms, ahead=ahead)).hash

    def draft(self, instruction: Instruction, sender: int = 0, *, terms: Terms = TIGHT, ahead: int = 0) -> Transaction:
        """Return a signed transaction, its nonce behind those that wait, and so many more."""
        account = development_account(account_name(sender))
        view = self.builder.view
        found = view.account(account.address)
        waiting = self.mempool.next_nonce(view, account.address) - (found.nonce if found else 0) + ahead
        return draft_transaction(view, instruction, account.private_key, terms=terms, waiting=waiting)

    def add(self, transaction: Transaction) -> AdmissionOutcome:
        """Have the mempool take a transaction."""
        raw = encode_transaction(transaction)
        verdict = self.mempool.add(self.builder.view, transaction, raw, Hash32(sha256(raw)))
        assert verdict.rejection is None, verdict.rejection
        return verdict

    def balance(self, index: int) -> int:
        """Return what an account holds by the latest view."""
        return self.builder.view.balance(person(index))


def make_world(
    options: NodeOptions | None = None, announce: Callable[[Published], None] | None = None, **genesis: object
) -> World:
    """Return a world with a new chain in memory."""
    chain = Chain(new_genesis(GenesisOptions(**genesis)))
    mempool, index = Mempool(), Notes()
    world: World

    def take_note(published: Published) -> None:
        assert index.height == published.view.height == world.builder.view.height
        world.announced.append(published)
        if announce is not None:
            announce(published)

    clocks = Clocks(lambda: world.now, lambda: world.wall)
    options = options or NodeOptions(pace=MANUAL)
    builder = Builder(chain, mempool, index, options, clocks, announce=take_note, is_stopping=lambda: world.is_stopping)
    world = World(chain, mempool, index, builder)
    return world


def gift(to: int = 1, amount: int = 7) -> Transfer:
    """Return a small transfer."""
    return Transfer(person(to), amount)


class Timed(Protocol):
    """What has a chain, and a clock held in the hand, nanoseconds."""

    chain: Chain
    now: int


def take_time(stage: Timed, each: int, *, before: int = 0) -> None:
    """Have every block take so many milliseconds for each of its transactions, and so many before them."""
    build = stage.chain.build

    def passing(transactions: Iterable[Transaction]) -> Iterator[Transaction]:
        stage.now += before * MILLISECOND
        for transaction in transactions:
            yield transaction
            stage.now += each * MILLISECOND

    stage.chain.build = lambda transactions, *rest, **named: build(passing(transactions), *rest, **named)
