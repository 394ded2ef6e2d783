"""What executions of a local chain did, frame by frame."""

from typing import Final

from trailboss.chain.trace import TraceBounds
from trailboss.model.blocks import Status
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import PendingReceipt
from trailboss.views import Receipt
from trailboss.views.records import receipt_view
from trailboss.views.trace.executions import trace_execution, trace_height, trace_receipt
from trailboss.views.trace.records import BlockTraces, Trace

SHOWN_AFTER_FAILURE: Final = TraceBounds(blocks=2_000)
"""A failing test does not wait for more: these take some seconds."""


class Traces(BaseChain):
    """Traces, for which the chain builds its blocks again beside itself."""

    def trace(self, what: Receipt | bytes) -> Trace:
        """Return what an execution did: of a receipt, of a transaction by its hash, or of a timer's latest fire by id.

        Raises:
            TypeError: If it is none of these.
            Rejection: ``NOT_FOUND`` for an id that the chain does not know, a timer that has not fired, a refusal, and
                a receipt of a block that is gone.
        """
        if isinstance(what, PendingReceipt):
            what = what.receipt
        if isinstance(what, Receipt):
            return trace_receipt(self.chain, what)
        if not isinstance(what, bytes):
            raise TypeError(f"trace({what!r}): give a receipt, the hash of a transaction, or the id of a timer")
        return trace_execution(self.chain, what)

    def trace_block(self, height: int) -> BlockTraces:
        """Return what the executions of a block did, in order, and the questions to gas bidding agents.

        Raises:
            Rejection: ``INVALID_DATA`` if the chain has no such block above genesis.
        """
        return trace_height(self.chain, height)


def last_reverted(chain: BaseChain) -> str:
    """Return the trace of the last execution that reverted, as text; empty if none has; raises as `trace_receipt`."""
    for block in chain.chain.blocks.latest_eventful():
        for record in reversed(block.receipts):
            if record.status is Status.REVERTED:
                return str(trace_receipt(chain.chain, receipt_view(record, block.height), SHOWN_AFTER_FAILURE))
    return ""
