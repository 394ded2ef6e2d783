"""The application of a network: what the consensus engine asks, in terms of the chain.

The engine decides which transactions stand in a block, when, and who proposes it; the chain decides what the block
does. Synchronous: whatever changes or reads the chain runs on the one thread that has the builder. Decision: D-103.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from trailboss.chain.opening import encode_genesis
from trailboss.chain.view import ChainView
from trailboss.codec.wire import decode_transaction
from trailboss.crypto.digest import sha256
from trailboss.mempool import AdmissionOutcome, AdmissionStatus, Mempool, verify
from trailboss.model.blocks import Origin, Status
from trailboss.model.transactions import Transaction
from trailboss.network.engine_files import FIRST_HEIGHT
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.participation import Participation
from trailboss.network.proposals import check_proposal
from trailboss.node.block_builder import Builder
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32

NANOSECONDS_PER_MS: Final = 1_000_000
OK: Final = 0
REVERTED: Final = 1
REFUSED: Final = 2
GAS_MAX: Final = 2**63 - 1  # of the engine's signed fields; a transaction's limits are of 64 bits without a sign


class Result(Struct, frozen=True):
    """What became of one transaction of an engine's block. All but ``words`` is part of consensus."""

    code: int  # `OK`, `REVERTED`, or `REFUSED`: then our block does not hold it
    cycles_limit: int = 0
    cycles_used: int = 0
    words: str = ""  # why it failed


class Committee(Struct, frozen=True):
    """What an engine's block states about its validators."""

    proposer: bytes  # identity of the one that proposed it, 20 bytes
    signers: Sequence[bytes] = ()  # identities of those that signed the block before
    absent: Sequence[bytes] = ()  # identities of those that did not


class Application:
    """The chain of one node as its engine sees it.

    `check_transaction` may run on another thread than the rest, which runs where the builder does.
    """

    def __init__(
        self, builder: Builder, mempool: Mempool, admitted: Callable[[AdmissionOutcome], object] = lambda _: None
    ) -> None:
        """Answer for a builder's chain; ``admitted`` is called with each verdict on a transaction that is new."""
        self._builder = builder
        self._mempool = mempool
        self._admitted = admitted
        self._genesis = builder.chain.genesis
        self._fee_accounts = {each.identity: each.fee_account for each in self._genesis.validators}
        self.participation = Participation([each.identity for each in self._genesis.validators])

    # From any thread

    @property
    def view(self) -> ChainView:
        """The chain after the last committed block."""
        return self._builder.view

    def standing(self) -> tuple[int, Hash32]:
        """Return height and app hash of the last committed block; 0 where the engine has to begin the chain."""
        head = self.view.head
        return head.height, head.hash

    def check_transaction(self, raw: bytes) -> AdmissionOutcome:
        """Take a transaction that a client or another node sends into the mempool, or refuse it."""
        outcome = self._mempool.admit(self.view, raw)
        if outcome.status is not AdmissionStatus.KNOWN:
            self._admitted(outcome)
        return outcome

    def still_waits(self, raw: bytes) -> bool:
        """Return whether a transaction that the engine holds still waits for a block."""
        return self._mempool.find(sha256(raw)) is not None

    # On the thread that has the chain

    def begin(
        self, chain_id: str, time_ms: int, validators: Sequence[tuple[bytes, int]], genesis: bytes, first_height: int
    ) -> Hash32:
        """Begin the chain as the engine's genesis states it, and return the app hash before block 1.

        Raises:
            NetworkHaltError: If that is not what our genesis states.
        """
        own = self._genesis
        asked = {
            "chain_id": (chain_id, own.engine_chain_id()),
            "genesis_time, in ms since 1970": (time_ms, own.params().governance.genesis_timestamp_ms),
            "validators": (sorted(validators), sorted((each.public_key, each.power) for each in own.validators)),
            "app_state": (genesis.hex(), encode_genesis(own).hex()),
            "initial_height": (first_height, FIRST_HEIGHT),
        }
        for name, (found, expected) in asked.items():
            if found != expected:
                what = f"the engine's genesis states {name} = {found!r:.200}, ours {expected!r:.200}"
                raise NetworkHaltError(Halt.OTHER_GENESIS, what)
        return self.view.blocks[0].hash

    def propose(self, octets_max: int) -> list[bytes]:
        """Return the transactions that this node proposes for the next block, in order: the best of its mempool."""
        return self._builder.propose(octets_max)

    def check_proposal(self, proposal: Sequence[bytes]) -> Rejection | None:
        """Return why this node votes against a proposal for the next block; None if it does not."""
        try:
            check_proposal(self.view, self._mempool, proposal)
        except Rejection as rejection:
            return rejection
        return None

    def finalize(
        self, height: int, time_ns: int, transactions: Sequence[bytes], committee: Committee
    ) -> tuple[list[Result], Hash32]:
        """Apply a block that the network has agreed on, in memory, and return a result for each transaction.

        The hash is the app hash after it. The same height may be asked for again.

        Raises:
            NetworkHaltError: If it is not the block after the last committed one, or its proposer is no validator.
        """
        committed = self._builder.view.height
        if height != committed + 1:
            what = f"the engine finalizes block {height}, and the chain has committed block {committed}"
            raise NetworkHaltError(Halt.HEIGHT_GAP, what)
        proposer = self._fee_accounts.get(committee.proposer)
        if proposer is None:
            what = f"block {height} is proposed by {committee.proposer.hex()}, which genesis does not state"
            raise NetworkHaltError(Halt.OTHER_GENESIS, what)
        results, decoded = self._decode(transactions)
        applied = self._builder.stage([each for _, each in decoded], time_ns // NANOSECONDS_PER_MS, proposer)
        refused = {id(transaction): why for transaction, why in applied.refused}
        receipts = iter([each for each in applied.block.receipts if each.origin is Origin.TRANSACTION])
        for place, transaction in decoded:
            why = refused.get(id(transaction))
            if why is not None:
                results[place] = Result(REFUSED, words=why.what)
                continue
            receipt = next(receipts)
            code = OK if receipt.status is Status.OK else REVERTED
            words = "" if receipt.error is None else receipt.error.what
            limit = min(transaction.cycles_limit, GAS_MAX)
            results[place] = Result(code, limit, receipt.cycles_used, words)
        self.participation.note(height, committee.proposer, committee.signers, committee.absent)
        return results, applied.block.hash

    def commit(self) -> None:
        """Make the finalized block durable, and publish it.

        Raises:
            InvariantError: If none is finalized.
            StorageError: If the disk fails.
        """
        self._builder.seal()

    def forget(self) -> None:
        """Take back a finalized block that is not committed: its engine is gone, and asks again when it is back."""
        self._builder.forget()

    def _decode(self, transactions: Sequence[bytes]) -> tuple[list[Result], list[tuple[int, Transaction]]]:
        """Return a result for each transaction, and those that can run with their places.

        A block that more than two thirds of the validators voted for holds no other, unless those are not honest; then
        every honest node must still come to one state.
        """
        results = [Result(OK)] * len(transactions)
        decoded: dict[int, Transaction] = {}
        for place, raw in enumerate(transactions):
            try:
                decoded[place] = decode_transaction(raw)
            except Rejection as rejection:
                results[place] = Result(REFUSED, words=rejection.what)
        unknown = [place for place in decoded if not self.still_waits(transactions[place])]
        refusals = verify(self.view, [decoded[place] for place in unknown])
        for place, why in zip(unknown, refusals, strict=True):
            if why is not None:
                results[place] = Result(REFUSED, words=why.what)
                del decoded[place]
        return results, list(decoded.items())
