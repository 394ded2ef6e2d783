"""How a timer ended, proven by the receipts root of the block in which it did.

A timer ends with exactly one event, in the receipt of what ended it or among the block's own. Decision: D-27, D-104.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from trailboss.crypto.digest import merkle_path, root_of_path
from trailboss.model.blocks import CommittedReceipt, ReceiptRecord, receipt_leaves
from trailboss.model.events import TIMER_ENDINGS, TIMER_FIRED, EventRecord
from trailboss.primitives.errors import ProofError, Rejection
from trailboss.primitives.octets import Hash32

_receipts: Final = msgspec.msgpack.Decoder(CommittedReceipt)
_events: Final = msgspec.msgpack.Decoder(EventRecord)
_decode_members: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class TimerEnding(Struct, frozen=True):
    """The end of a timer that a block's receipts root shows."""

    timer_id: Hash32
    event: EventRecord  # that ended it
    receipt: CommittedReceipt | None  # of the execution that the event belongs to; None for an event of the block
    receipts_root: Hash32  # the root it holds for

    def __str__(self) -> str:
        if self.event.name != TIMER_FIRED:
            return f"timer {self.timer_id} ended: {TIMER_ENDINGS[self.event.name]}"
        error = None if self.receipt is None else self.receipt.error
        return f"timer {self.timer_id} fired" + ("" if error is None else f", and reverted with E{error[0]} {error[1]}")


class EndingProof(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Shows a receipt or an event of a block that ended a timer."""

    timer_id: bytes  # 32 bytes
    leaf: bytes  # what the receipts root commits to of the receipt, or of the block's event
    path: tuple[bytes, ...]  # from there to the root, as `merkle_path` has it

    def verify(self, receipts_root: bytes) -> TimerEnding:
        """Check the proof against a trusted receipts root of 32 bytes, and return what it proves.

        Raises:
            ProofError: If it proves nothing about that root.
        """
        try:
            timer_id, root = Hash32(self.timer_id), root_of_path(self.leaf, self.path)
        except Rejection as rejection:
            raise ProofError(rejection.what) from None
        if root != receipts_root:
            raise ProofError(f"the proof leads to the receipts root {root}, not to 0x{receipts_root.hex():.80}")
        receipt, events = _read_leaf(self.leaf)
        event = _ending_of(timer_id, events)
        if event is None:
            raise ProofError(f"nothing in the receipt or event shown ends timer {timer_id}")
        return TimerEnding(timer_id, event, receipt, root)


def prove_ending(
    timer_id: bytes, receipts: tuple[ReceiptRecord, ...], events: tuple[EventRecord, ...]
) -> EndingProof | None:
    """Return the proof that a timer ended in a block with these receipts and own events; None if it did not."""
    shown = [*(receipt.events for receipt in receipts), *((event,) for event in events)]
    for index, each in enumerate(shown):
        if _ending_of(timer_id, each) is not None:
            leaves = receipt_leaves(receipts, events)
            return EndingProof(bytes(timer_id), leaves[index], merkle_path(leaves, index))
    return None


def _ending_of(timer_id: bytes, events: Sequence[EventRecord]) -> EventRecord | None:
    found = (event for event in events if event.timer_id == timer_id and event.name in TIMER_ENDINGS)
    return next(found, None)


def _read_leaf(leaf: bytes) -> tuple[CommittedReceipt | None, tuple[EventRecord, ...]]:
    """Return the receipt that a leaf is, and its events; None and the event for one of the block's own."""
    try:
        # The two are arrays of different lengths.
        if len(_decode_members(leaf)) == len(CommittedReceipt.__struct_fields__):
            receipt = _receipts.decode(leaf)
            return receipt, receipt.events
        return None, (_events.decode(leaf),)
    except (ValueError, RecursionError) as error:
        raise ProofError(f"the leaf is neither a receipt nor an event: {error}") from None
