"""The records of a trace. Money is in base units; values are whole up to the bounds of `trailboss.vm.trace`."""

import json
from typing import Any

from msgspec import Struct

from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value
from trailboss.views.records import Receipt
from trailboss.views.trace.tree import TreeNode, block_tree, html_text, plain_text, rich_tree, trace_tree


class EffectView(Struct, frozen=True):
    """What a host call asked for. It holds unless a frame above fails."""

    # ``transfer``, ``slot``, ``event``, ``call_deferred``, or ``timer_`` and ``scheduled``, ``cancelled``,
    # ``extended``, ``moved`` or ``updated``.
    kind: str
    facts: dict[str, Any]  # by name


class PrintView(Struct, frozen=True):
    """What a handler printed."""

    after_calls: int  # how many calls of its frame came before it
    text: str  # the text, without the line's end


class LineView(Struct, frozen=True):
    """Cycles of one line."""

    line: int | None  # of the actor's source, from 1; None for the engine, the SDK, and an engine without lines
    cycles: int  # used by it, nested frames and the frame's base excluded
    text: str  # the line


class HostCallView(Struct, frozen=True, kw_only=True):
    """A host call."""

    name: str  # its public name
    arguments: dict[str, Any]  # by the names of its parameters; others than plain values as text
    line: int | None  # of the actor's source, from 1; None on an engine that does not count lines
    cycles: int  # used, a nested frame included
    own_cycles: int  # the same without the nested frame
    cells: int  # used, a nested frame included
    answer: Any  # what it returned
    refusal: str  # why it was refused; empty if it was not
    effects: tuple[EffectView, ...]  # what it asked for
    frame: "FrameView | None"  # the frame of another handler that it ran


class FrameView(Struct, frozen=True, kw_only=True):
    """One run of one handler."""

    actor: Address  # whose
    label: str  # the first class of its source; empty if there is none
    handler: str  # its name
    payload: Any  # its argument, decoded if it is canonical CBOR of a map, a list or text; else the bytes
    raw_payload: bytes  # the same in bytes
    sender: Address  # immediate caller
    sender_name: str  # its name, if it is a development account
    read_only: bool  # whether every change is refused
    depth: int  # frames above it
    cycles_limit: int  # cycles that it could use
    cycles: int  # used: base, own and nested cycles
    base_cycles: int  # the price of the frame itself
    own_cycles: int  # used by its lines and host calls
    nested_cycles: int  # used by the frames that its host calls ran
    cells: int  # used, nested frames included
    return_value: Any  # what it returned, decoded like the payload
    raw_return_value: bytes  # the same in bytes
    error: ErrorObject | None  # why it failed; its traceback goes on through nested frames
    calls: tuple[HostCallView, ...]  # its host calls in order, but for those that read what it knows from its start
    left_out_calls: int  # calls that are not among them, beyond what a node keeps
    printed: tuple[PrintView, ...]  # what it printed, in order
    lines: tuple[LineView, ...]  # cycles by line, ascending


class Trace(Struct, frozen=True, kw_only=True):
    """What an execution did. ``print`` shows it as a tree; so do rich, and a notebook."""

    receipt: Receipt  # what it came to
    transaction_hash: Hash32 | None  # the transaction that it is or comes of; None for neither
    instruction: str | None  # kind of the transaction's instruction; None for a fire or a message
    reserved: int  # taken from the payer before the run
    # Used outside frames: the price of the transaction, the question to a timer's agent, the base price of a frame that
    # did not begin, for want of an actor or of cycles.
    intrinsic_cycles: int
    frame: FrameView | None  # the outermost frame; None if no handler ran
    questions: tuple[FrameView, ...]  # of a fire: the frames of its gas bidding agent in this block

    def tree(self, *, calls: bool = True, lines: bool = False) -> TreeNode:
        """Return it as a tree to draw: with host calls and prints, and with the cycles of each line."""
        return trace_tree(self, calls=calls, lines=lines)

    def text(self, *, calls: bool = True, lines: bool = False) -> str:
        """Return the tree as plain text; the arguments are those of `tree`."""
        return plain_text(self.tree(calls=calls, lines=lines))

    def to_json(self) -> str:
        """Return it as a JSON document: bytes as ``0x`` text, ids in their own text form."""
        return json.dumps(to_json_value(self))

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> object:
        return rich_tree(self.tree())

    def _repr_html_(self) -> str:
        return html_text(self.tree())


class QuestionView(Struct, frozen=True):
    """A question to a gas bidding agent that led to no fire in its block."""

    timer_id: Hash32  # the timer that it was about
    frame: FrameView  # the agent's frame


class BlockTraces(Struct, frozen=True, kw_only=True):
    """What executions of a block did."""

    block_height: int  # height of the block
    traces: tuple[Trace, ...]  # of those asked for, in the order in which they ran
    questions: tuple[QuestionView, ...]  # to gas bidding agents, if the whole block is asked for
    is_whole: bool  # whether the whole block is asked for, and not one execution of it

    def tree(self, *, calls: bool = True, lines: bool = False) -> TreeNode:
        """Return it as a tree to draw; see `Trace.tree`."""
        if self.is_whole:
            return block_tree(self, calls=calls, lines=lines)
        return self.traces[0].tree(calls=calls, lines=lines)

    def __str__(self) -> str:
        return plain_text(self.tree())

    def __rich__(self) -> object:
        return rich_tree(self.tree())

    def _repr_html_(self) -> str:
        return html_text(self.tree())
