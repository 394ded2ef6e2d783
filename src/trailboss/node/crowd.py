"""A crowd on a development node: what its agents ask for waits in the mempool before each block."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trailboss.chain.crowd import Draft
from trailboss.chain.development import development_account
from trailboss.chain.drafts import draft_unsigned
from trailboss.chain.view import ChainView
from trailboss.mempool import AdmissionOutcome, Mempool
from trailboss.model.transactions import Transaction
from trailboss.node.block_builder import Published

if TYPE_CHECKING:
    from trailboss.simulator.live import LiveCrowd


class NodeCrowd:
    """Sends what a crowd asks for after each step of the chain."""

    def __init__(
        self, crowd: "LiveCrowd", mempool: Mempool, admit: Callable[[Sequence[Transaction]], list[AdmissionOutcome]]
    ) -> None:
        """Take the parts of a node: ``admit`` looks at no signatures."""
        self._crowd, self._mempool, self._admit = crowd, mempool, admit

    def record(self, published: Published) -> None:
        """Show the blocks of a step to the agents, and send what they ask for next."""
        view = published.view
        for block in published.blocks:
            self._crowd.record(view, block)
        for tx_hash in published.refused:
            self._crowd.drop(tx_hash)
        if published.blocks:
            for draft in self._crowd.preparation(view):
                self._send(view, draft)
            for draft, number, order in self._crowd.orders(view):
                verdict = self._send(view, draft)
                if verdict.rejection is None:
                    self._crowd.sent(verdict.hash, number, order)
                else:
                    self._crowd.refuse(number, order)

    def _send(self, view: ChainView, draft: Draft) -> AdmissionOutcome:
        sender = development_account(draft.sender).address
        waiting = self._mempool.waiting(view, sender)
        [verdict] = self._admit([draft_unsigned(view, draft.instruction, sender, terms=draft.terms, waiting=waiting)])
        return verdict
