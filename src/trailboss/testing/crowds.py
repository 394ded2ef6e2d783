"""A crowd beside the actor under test."""

from typing import Any

from trailboss.chain.crowd import BLOCKS, LOAD, STORM_BLOCKS, Draft, Storm, congestion, draft_crowd, storm
from trailboss.primitives.octets import Hash32
from trailboss.testing.base_chain import BaseChain


class Crowds(BaseChain):
    """Calls that let strangers compete with the actor under test, with timers that use what they may.

    Each is one block, whose transactions are the deployer's. They raise `Rejection` with ``INVALID_INPUT`` for what
    makes no crowd, and `TrailbossError` if a block is open. A crowd's offer has the fields of `schedule` that the
    chain's mechanism has: ``max_priority_fee_per_cycle``, ``max_fee_per_cycle``, ``bid``.
    """

    def congest(
        self, blocks: int = BLOCKS, load: float = LOAD, *, start: int | None = None, **offer: Any
    ) -> list[Hash32]:
        """Have timers of strangers ask for ``load`` times the cycles of fires in each of some blocks; return their ids.

        From a load of 1 on they leave no room for others of their price, and beyond it the rest is carried on. In the
        auction every actor has a slice of its own, which they do not take.
        ``start`` is the first of these blocks, by default the one after the block that this builds.
        """
        return self._crowd(draft_crowd(self.chain, congestion(self.chain, blocks, load, start), offer))

    def storm(self, kind: str, blocks: int = STORM_BLOCKS, *, height: int | None = None, **offer: Any) -> list[Hash32]:
        """Have timers of strangers fall due at one height, by default in the block after the one that this builds.

        They ask for the cycles of fires in so many blocks; returns their ids. The kinds are ``expiry``: what the block
        cannot run expires after it; ``unfunded``: nothing is left to pay for them, so they end or, in the auction,
        wait; ``same_height``: many small ones; ``outage``: what several blocks should have run.
        """
        waves = storm(self.chain, kind, blocks, height)
        return self._crowd(draft_crowd(self.chain, waves, offer, funded=kind != Storm.UNFUNDED))

    def _crowd(self, drafts: list[Draft]) -> list[Hash32]:
        self._outbox.check_closed("gather a crowd")
        with self.one_block():
            sent = [
                (draft, self._outbox.send(draft.instruction, self.deployer, draft.terms, check=True))
                for draft in drafts
            ]
        returned = b"".join(receipt.return_value for draft, receipt in sent if draft.books)
        return [Hash32(returned[at : at + Hash32.WIDTH]) for at in range(0, len(returned), Hash32.WIDTH)]
