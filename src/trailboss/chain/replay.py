"""Building a chain again from its own blocks: to verify it, to see it at any height, to find where two of them part.

Decision: D-50
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from operator import attrgetter

from msgspec import Struct

from trailboss.chain.block_archive import LastRecord
from trailboss.chain.chain import Chain
from trailboss.chain.differences import (
    Difference,
    Parting,
    block_differences,
    genesis_difference,
    header_differences,
    state_difference,
)
from trailboss.chain.history import CHECKPOINT_BLOCKS, follows_idly
from trailboss.chain.reader import ChainReader
from trailboss.chain.signature_workers import checked_ahead
from trailboss.model.blocks import Block, Origin
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.state.commitment import EMPTY_ROOTS, Roots
from trailboss.state.keys import ACCOUNTS
from trailboss.vm.engine import Engine

OnBlock = Callable[[Block], object]  # called with every block above genesis once it has been built again

Refused = Sequence[tuple[Transaction, Rejection]]  # transactions of a block that its replay refuses


class VerifyReport(Struct, frozen=True):
    """What verifying a chain came to."""

    blocks: int  # blocks above genesis that were built again and are right
    transactions: int  # in them
    fires: int  # timers that fired in them
    failure: Parting | None  # what is wrong after it, or None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.failure is None

    def __str__(self) -> str:
        blocks, transactions, fires = (
            f"{count:,} {word}{'' if count == 1 else 's'}"
            for count, word in ((self.blocks, "block"), (self.transactions, "transaction"), (self.fires, "fire"))
        )
        counted = f"{blocks} with {transactions} and {fires} built again from genesis"
        if self.failure is None:
            return f"{counted}: every hash, every root and every sum is right"
        return f"{counted}, all right; then {self.failure}"


def replay_to(
    chain: ChainReader, height: int, on_block: OnBlock | None = None, *, engine: Engine | None = None
) -> Chain:
    """Build a chain again, in memory, from its genesis up to a height; the chain stays as it is.

    Raises:
        Rejection: ``INVALID_DATA`` if the chain has no block of that height; ``NOT_FOUND`` if it does not have its
            blocks from genesis.
        InvariantError: If a block comes out otherwise than the chain has it; `verify_chain` says how.
    """
    _check_height(height, chain.height)
    replica = Chain(chain.genesis, engine)
    with closing(_rebuilt(chain, replica, height)) as rebuilt:
        for recorded, built, _ in rebuilt:
            if built.hash != recorded.hash:
                raise InvariantError(f"block {recorded.height} is {recorded.hash}, and a replay gives {built.hash}")
            if on_block is not None and built.height:
                on_block(built)
    return replica


def verify_chain(chain: ChainReader, on_block: OnBlock | None = None, *, engine: Engine | None = None) -> VerifyReport:
    """Build a chain again from its genesis and compare every block, its receipts and the state after the head.

    After every block the replay's money and timers must add up, at a cost of what the block changed; at the end the
    chain itself, which stays as it is, is checked the slow way. ``on_block`` gets every block that is right.

    Returns:
        A report. Its failure, if it has one, calls the chain ``recorded`` and what was built again ``replayed``, and
        names the first differing state key if the head is the block that differs: no other state of a chain is kept.

    Raises:
        Rejection: ``NOT_FOUND`` if the chain does not have its blocks from genesis.
        InvariantError: If money or timers do not add up, or the chain's own indexes contradict its state.
    """
    replica = Chain(chain.genesis, engine, archive=LastRecord())  # or it takes 1.5 KB more for each transfer
    sums = _Sums()
    failure: Parting | None = None
    right = transactions = fires = 0
    with closing(_rebuilt(chain, replica, chain.height)) as rebuilt:
        for recorded, built, refused in rebuilt:
            differences = list(_faults(recorded, built, refused))
            if recorded.height == chain.height:
                differences.extend(state_difference(chain.store, replica.store))
            if recorded.header != built.header:
                differences.extend(header_differences(recorded.header, built.header))
            if differences:
                failure = Parting(recorded.height, tuple(differences), ("recorded", "replayed"))
                break
            sums.check(replica)
            right = recorded.height
            transactions += len(recorded.transactions)
            fires += sum(receipt.origin is Origin.TIMER for receipt in recorded.receipts)
            if on_block is not None and right:
                on_block(recorded)
    if failure is None:
        chain.check_invariants()
    return VerifyReport(right, transactions, fires, failure)


def compare_chains(
    left: ChainReader,
    right: ChainReader,
    to: int | None = None,
    on_block: OnBlock | None = None,
    *,
    names: tuple[str, str] = ("this chain", "the other"),
    engine: Engine | None = None,
) -> Parting | None:
    """Find where two chains part: the first height, and there the first transaction, receipt and state key.

    Chains are compared up to the height ``to``, by default all of them; None means that they are equal up to there. The
    state key is found only where both have their blocks from genesis, or end at that height.
    ``on_block`` gets the blocks that are built again to compare states.

    Raises:
        Rejection: ``INVALID_DATA`` if neither chain has a block of height ``to``; ``NOT_FOUND`` if they part below the
            first block that both have.
    """
    if to is not None:
        _check_height(to, max(left.height, right.height))
    difference = genesis_difference(left.genesis, right.genesis)
    if difference is not None:
        return Parting(0, (difference,), names)
    shared = min(left.height, right.height)
    last = shared if to is None else min(shared, to)
    if left.blocks[last].hash == right.blocks[last].hash:
        if left.height == right.height or to == last:
            return None
        sides = (f"{'ends at' if chain.height == shared else 'goes on to'} {chain.height}" for chain in (left, right))
        return Parting(shared + 1, (Difference("length", "length", *sides),), names)
    # A hash commits to all blocks before, so the hashes are equal up to a height and differ from there on.
    base = max(left.blocks.base, right.blocks.base)
    height = bisect_left(range(last), True, base, key=lambda at: left.blocks[at].hash != right.blocks[at].hash)
    if height == base > 0:
        for chain in (left, right):
            chain.blocks.check_there(base - 1)
    ours, theirs = left.blocks[height], right.blocks[height]
    differences = list(block_differences(ours, theirs))
    has_states = all(chain.blocks.base == 0 or chain.height == height for chain in (left, right))
    if ours.header.state_root != theirs.header.state_root and has_states:
        states = [_chain_at(chain, height, on_block, engine) for chain in (left, right)]
        differences.extend(_difference_of(states, (ours, theirs)))
    differences.extend(header_differences(ours.header, theirs.header))
    return Parting(height, tuple(differences), names)


class _Sums:
    """Whether money and timers add up after each block of a chain, by what the block has changed.

    Spec: CIP-5 §5.4
    Decision: D-35
    """

    def __init__(self) -> None:
        self._balances: dict[bytes, int] = {}
        self._circulating = 0
        self._roots: Roots = EMPTY_ROOTS

    def check(self, chain: Chain) -> None:
        """Check the state after a chain's head; the call before was for the block before."""
        before, self._roots = self._roots, chain.store.roots
        if self._roots is before:
            return
        for key in chain.store.changes_at(chain.height):
            if key.startswith(ACCOUNTS):
                balance = chain.balance(key[len(ACCOUNTS) :])
                self._circulating += balance - self._balances.get(key, 0)
                self._balances[key] = balance
        try:
            chain.check_sums(self._circulating)
        except InvariantError as error:
            raise InvariantError(f"after block {chain.height}, {error}") from None


def _rebuilt(chain: ChainReader, replica: Chain, last: int) -> Generator[tuple[Block, Block, Refused], None, None]:
    """Build the blocks of a chain up to a height on a replica that stands at its genesis.

    Yields every block, block 0 included, with the one built again and the transactions that it refused. The state is
    that of the block just yielded.
    """
    chain.blocks.check_there(0)
    blocks = islice(chain.blocks, last + 1)
    parent = next(blocks)
    yield parent, replica.head, ()
    idle: list[Block] = []
    with closing(checked_ahead(blocks, attrgetter("transactions"))) as checked:
        for block, signatures_checked in checked:
            if follows_idly(parent, block, chain.params.governance.block_interval_ms):
                idle.append(block)
            else:
                yield from _advanced(idle, replica)
                idle = []
                # A block before its parent's time cannot be built at all; this one differs in its timestamp then.
                timestamp = max(block.header.timestamp_ms, replica.head.header.timestamp_ms)
                proposer = replica.genesis.proposer_of(block.header.proposer)
                applied = replica.stage(
                    block.transactions, timestamp, proposer=proposer, signatures_checked=signatures_checked
                )
                replica.seal(applied)
                yield block, applied.block, applied.refused
            if len(idle) == CHECKPOINT_BLOCKS:
                yield from _advanced(idle, replica)
                idle = []
            parent = block
    yield from _advanced(idle, replica)


def _advanced(idle: list[Block], replica: Chain) -> Iterator[tuple[Block, Block, Refused]]:
    if idle:
        for block, built in zip(idle, replica.advance_to(idle[-1].height), strict=True):
            yield block, built, ()


def _faults(recorded: Block, built: Block, refused: Refused) -> Iterator[Difference]:
    for transaction, refusal in refused:
        what = f"transaction {transaction_hash(transaction)}"
        yield Difference("transaction", what, "in the block", f"refused: {refusal.what}")
    # Blocks that are not wholly equal may still differ in nothing but an error's words.
    if recorded != built:
        yield from block_differences(recorded, built)


def _chain_at(chain: ChainReader, height: int, on_block: OnBlock | None, engine: Engine | None) -> ChainReader | None:
    """Return a chain whose head is a given block of ``chain``; None if that block does not come out again."""
    if chain.height == height:
        return chain
    try:
        return replay_to(chain, height, on_block, engine=engine)
    except InvariantError:
        return None


def _difference_of(states: list[ChainReader | None], blocks: tuple[Block, Block]) -> list[Difference]:
    ours, theirs = states
    if ours is not None and theirs is not None:
        return state_difference(ours.store, theirs.store)
    sides = (
        f"root 0x{block.header.state_root.hex()}{', which a replay does not give' if state is None else ''}"
        for state, block in zip(states, blocks, strict=True)
    )
    return [Difference("state", "state after the block", *sides)]


def _check_height(height: int, highest: int) -> None:
    if not 0 <= height <= highest:
        what = f"there is no block {height}: the last one is block {highest}"
        raise Rejection(RejectionReason.INVALID_DATA, what, height=height, current_height=highest)
