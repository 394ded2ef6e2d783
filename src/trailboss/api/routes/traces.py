"""Traces: what transactions, fires and whole blocks did, frame by frame."""

from typing import Final

from trailboss.api.errors import HttpReason, malformed
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import PATH, TRACE_RULE, TraceName
from trailboss.api.routes.chain import block_at
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.trace.records import BlockTraces
from trailboss.views.trace.tree import TreeNode

routes: Final = Routes("reading")
HASH_CHARACTERS_MIN: Final = 2 * Hash32.WIDTH
REFUSES: Final = (HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE)


@routes.get("/trace/{subject}", refuses=REFUSES)
def trace(
    call: Call,
    *,
    subject: TraceName,  # height of a block, hash of a transaction, or id of a timer: its latest fire is traced
) -> BlockTraces:
    """Show what a block, a transaction or a timer's fire did: frames, host calls, cycles, and what they asked for.

    The node builds the blocks up to it again, at most 10,000 with content and for at most 30 seconds; it makes one
    trace at a time, of at most 5,000 host calls, and cuts values after 1,024 bytes.
    """
    return call.node.traces.trace(call.view, _subject(call, subject))


@routes.get("/trace/{subject}/tree", refuses=REFUSES)
def trace_tree(
    call: Call,
    *,
    subject: TraceName,  # as of `/trace/{subject}`
    calls: bool = True,  # whether host calls and printed lines are shown
    lines: bool = False,  # whether the cycles of each line are shown; the sandbox counts none
) -> TreeNode:
    """Show the same as a tree to draw: `trailboss trace` draws it."""
    return call.node.traces.trace(call.view, _subject(call, subject)).tree(calls=calls, lines=lines)


def _subject(call: Call, name: str) -> int | Hash32:
    if len(name) >= HASH_CHARACTERS_MIN:
        return Hash32.parse(name)
    if int(name) > U64_MAX:
        raise malformed(PATH, "subject", name, TRACE_RULE)
    return block_at(call.view, int(name)).height
