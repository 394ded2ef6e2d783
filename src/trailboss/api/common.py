"""Parameters that many operations have, and the look-ups that go with them."""

from typing import Final

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.kinds import ADDRESS, BLOCK, HASH, integer
from trailboss.api.operations import Call
from trailboss.api.parsing import path, query_or
from trailboss.chain.view import ChainView
from trailboss.model.blocks import Block
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 1_000
OFFSET_MAX: Final = 2**53 - 1
"""An offset is passed on to SQLite, and there are no lists that long."""

OFFSET: Final = query_or("offset", integer(OFFSET_MAX), "How many entries are passed over.", 0)
LIMIT: Final = query_or("limit", integer(LIMIT_MAX, 1), "Most entries to answer.", LIMIT_DEFAULT)
ADDRESS_OF: Final = path("address", ADDRESS, "Address of the account or actor.")
TRANSACTION_HASH: Final = path("hash", HASH, "Hash of the transaction.")
TIMER_ID: Final = path("timer_id", HASH, "Id of the timer.")
BLOCK_NAME: Final = path("block", BLOCK, "Height or hash of the block, or `latest`.")


def missing(what: str, **context: str | int) -> HttpError:
    """Return the refusal of something that is not there."""
    return HttpError(HttpReason.NOT_FOUND, what, headers=None, **context)


def find_block(call: Call, name: int | Hash32 | None) -> Block:
    """Return the block that a client names.

    Args:
        call: The request.
        name: A height, a hash, or None for the last one.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain has none such.
    """
    view = call.view
    if isinstance(name, Hash32):
        height = call.node.index.block_height(name, view.blocks)
        if height is None:
            raise missing(f"there is no block {name}", block=str(name))
        return view.blocks[height]
    return view.head if name is None else block_at(view, name)


def block_at(view: ChainView, height: int) -> Block:
    """Return the block of a height.

    Raises:
        HttpError: ``NOT_FOUND`` if the chain is not that high.
    """
    if height > min(view.height, U64_MAX):
        raise missing(f"there is no block {height}: the chain is at height {view.height}", height=height)
    return view.blocks[height]
