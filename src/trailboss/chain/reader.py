"""What can be read of a chain at one height: its state, its blocks, and what follows from them."""

from trailboss.chain.history import BlockSequence
from trailboss.chain.proofs import prove
from trailboss.chain.queries import StateReader
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.mechanisms.base import Mechanism
from trailboss.mechanisms.registry import Succession
from trailboss.model.blocks import Block
from trailboss.model.decisions import DecisionRecord
from trailboss.primitives.octets import Hash32
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.subjects import Subject


class ChainReader(StateReader):
    """A chain for reading: a `Chain`, as it stands now, or a `ChainView`, as it stood after one block.

    Attributes:
        genesis: What it started from.
        blocks: Its blocks by height, a sequence for reading.
    """

    genesis: Genesis
    blocks: BlockSequence
    _mechanisms: Succession

    @property
    def height(self) -> int:
        """Height of the head."""
        return self.blocks.height

    @property
    def head(self) -> Block:
        """The last block."""
        return self.blocks.head

    def genesis_record(self) -> bytes:
        """Return the canonical encoding of what the chain started from; see `encode_genesis`."""
        return encode_genesis(self.genesis)

    @property
    def state_root(self) -> Hash32:
        """Root of the state after the head."""
        return self.store.state_root

    @property
    def mechanism(self) -> Mechanism:
        """What selects the due timers of the next block."""
        return self._mechanisms.at(self.rules().market.kind)

    def decisions(self, height: int) -> DecisionRecord | None:
        """Return how the block of a height chose among its due timers; None if it had no choice.

        Decision: D-53
        """
        return self.blocks[height].decisions

    def prove(self, subject: Subject) -> Proof:
        """Return the proof of what the state after the head holds of a subject; it verifies against ``state_root``.

        Spec: CIP-1v3 §2.3
        Decision: D-49
        """
        return prove(self.store, subject)
