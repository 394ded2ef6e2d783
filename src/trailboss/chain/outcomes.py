"""What one block came to: the block, and what it changed in the state; to find where two nodes differ, from far away.

Nothing is replayed, so a node whose own program is at fault can compare itself with another. Decision: D-103
"""

from typing import Any

from msgspec import Struct

from trailboss.chain.block_records import decode_block, encode_block
from trailboss.chain.chain import Chain
from trailboss.chain.differences import Parting, block_differences, changes_difference, header_differences
from trailboss.model.blocks import Block
from trailboss.primitives.errors import Rejection, RejectionReason


class StateChange(Struct, frozen=True):
    """One entry of the state that a block has changed."""

    key: bytes  # full key
    value: bytes | None  # after the block; None for none


class BlockOutcome(Struct, frozen=True):
    """What one block came to."""

    height: int
    block: bytes  # its record
    changes: list[StateChange]  # ascending by key


def outcome_of(chain: Chain, height: int) -> BlockOutcome:
    """Return what a block of a chain came to. Complexity: O(keys changed since).

    Raises:
        Rejection: ``NOT_FOUND`` if the chain has no block of that height, or can no longer go back to it.
    """
    if not max(chain.floor, 1) <= height <= chain.height:
        what = f"block {height} is not among those that the chain can say all of: {chain.floor + 1} to {chain.height}"
        raise Rejection(RejectionReason.NOT_FOUND, what, height=height)
    changes = [StateChange(*each) for each in sorted(chain.store.changes_at(height).items())]
    return BlockOutcome(height, encode_block(chain.blocks[height]), changes)


def outcome_from_json(document: Any) -> BlockOutcome:
    """Return an outcome from a node's answer; `Rejection` ``INVALID_DATA`` if it is none."""
    try:
        changes = [
            StateChange(_octets(each["key"]), None if each["value"] is None else _octets(each["value"]))
            for each in document["changes"]
        ]
        return BlockOutcome(int(document["height"]), _octets(document["block"]), changes)
    except (KeyError, TypeError, ValueError) as error:
        raise Rejection(RejectionReason.INVALID_DATA, f"the answer is no outcome of a block: {error!r:.200}") from None


def read_outcome(outcome: BlockOutcome) -> Block:
    """Return the block of an outcome that came from elsewhere.

    Raises:
        Rejection: ``INVALID_DATA`` if it is no record of a block of its height.
    """
    block = decode_block(outcome.block)
    if block.height != outcome.height:
        what = f"the record of block {outcome.height} holds block {block.height}"
        raise Rejection(RejectionReason.INVALID_DATA, what)
    return block


def compare_outcomes(left: BlockOutcome, right: BlockOutcome, names: tuple[str, str]) -> Parting | None:
    """Return where two outcomes of one height differ, the first of each kind; None if their blocks are the same.

    Raises:
        Rejection: As `read_outcome`.
    """
    ours, theirs = read_outcome(left), read_outcome(right)
    if ours.hash == theirs.hash:
        return None
    changed = [{each.key: each.value for each in outcome.changes} for outcome in (left, right)]
    differences = [
        *block_differences(ours, theirs),
        *changes_difference(*changed),
        *header_differences(ours.header, theirs.header),
    ]
    return Parting(left.height, tuple(differences), names)


def _octets(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
