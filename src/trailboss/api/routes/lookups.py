"""Look-ups that several subjects share."""

from typing import Final

from trailboss.api.errors import malformed, missing
from trailboss.api.operations import Call
from trailboss.api.requests import BLOCK_RULE, LATEST, PATH
from trailboss.chain.view import ChainView
from trailboss.model.blocks import Block
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX

HASH_CHARACTERS_MIN: Final = 64


def find_block(call: Call, name: str) -> Block:
    """Return the block of a height, of a hash, or the latest.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain has no such block; ``BAD_REQUEST`` for a height above 64 bits.
    """
    view = call.view
    if name == LATEST:
        return view.head
    if len(name) < HASH_CHARACTERS_MIN:
        if int(name) > U64_MAX:
            raise malformed(PATH, "block", name, BLOCK_RULE)
        return block_at(view, int(name))
    tx_hash = Hash32.parse(name)
    height = call.node.index.block_height(tx_hash, view.blocks)
    if height is None:
        raise missing(f"there is no block {tx_hash}", block=str(tx_hash))
    return view.blocks[height]


def block_at(view: ChainView, height: int) -> Block:
    """Return the block of a height.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain is not that high.
    """
    if height > view.height:
        raise missing(f"there is no block {height}: the chain is at height {view.height}", height=height)
    return view.blocks[height]
