"""Traces as trees to draw: as plain text, for a terminal, and as HTML without a script or a style sheet.

Actors choose most of what stands in them: it is cut, and what a terminal or a browser would obey is written as an
escape. HTML is escaped here and nowhere else.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views.records import content_of
from trailboss.views.text import SHORT_DIGITS, TEXT_MAX, clipped, counted, failure_words, value_words, visible

if TYPE_CHECKING:
    from rich.tree import Tree

    from trailboss.views.trace.records import BlockTraces, EffectView, FrameView, HostCallView, Trace

STEPS_MAX: Final = 200  # host calls of one frame that a tree shows
NODES_MAX: Final = 2_000  # host calls of all frames that a tree shows
FAILURE_MAX: Final = 300  # characters of a reason for a failure
READ: Final = "get_state"  # the call that answers None for what is not there
NARROW: Final = 0  # columns for which ids are shortened
NAME, GOOD, BAD, DIM, PLAIN = "name", "good", "bad", "dim", ""
_RICH: Final = {NAME: "bold", GOOD: "green", BAD: "red", DIM: "dim", PLAIN: ""}
_CSS: Final = {NAME: "font-weight:600", GOOD: "color:#1a7f37", BAD: "color:#c62828", DIM: "opacity:.65"}
_FONT: Final = "font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace"


class TreePiece(Struct, frozen=True):
    """Words in one style."""

    text: str  # the words
    style: str  # ``name``, ``good``, ``bad``, ``dim``, or empty


class TreeNode(Struct, frozen=True):
    """A line of a tree, and what lies below it."""

    pieces: tuple[TreePiece, ...]  # the line
    children: tuple["TreeNode", ...]  # in order


def trace_tree(trace: "Trace", *, calls: bool, lines: bool) -> TreeNode:
    """Return a trace as a tree."""
    return _Drawing(calls=calls, lines=lines).trace(trace)


def block_tree(traces: "BlockTraces", *, calls: bool, lines: bool) -> TreeNode:
    """Return the traces of a block as a tree."""
    drawing = _Drawing(calls=calls, lines=lines)
    children = list(map(drawing.trace, traces.traces))
    for each in traces.questions:
        children.append(_led(f"question about timer {_short(each.timer_id)}: ", NAME, drawing.frame(each.frame)))
    what = counted(len(traces.traces), "execution") if children else "nothing ran"
    return _tree([(f"block {traces.block_height}", NAME), (f": {what}", PLAIN)], children)


class _Drawing:
    """A tree while it is made: what it shows, and how many more frames and calls it has room for."""

    def __init__(self, *, calls: bool, lines: bool) -> None:
        self._calls = calls
        self._lines = lines
        self._room = NODES_MAX

    def trace(self, trace: "Trace") -> TreeNode:
        receipt = trace.receipt
        what = f"{receipt.origin} {_short(trace.transaction_hash)}".strip()
        if receipt.timer_id is not None:
            what = f"fire of timer {_short(receipt.timer_id)}"
        kind = f" ({trace.instruction})" if trace.instruction else ""
        error = receipt.error if trace.frame is None else _innermost(trace.frame) or receipt.error
        status = (
            (receipt.status, GOOD) if receipt.ok or error is None else (f"{receipt.status}: {_failure(error)}", BAD)
        )
        children = []
        if trace.intrinsic_cycles:
            why = "the question to its agent" if trace.questions else "the base price of a frame that did not begin"
            why = "the price of the transaction" if trace.instruction else why
            children.append(_node(f"{trace.intrinsic_cycles:,} cycles before any handler: {why}", DIM))
        children += [_led("asked its agent: ", DIM, self.frame(question)) for question in trace.questions]
        if trace.frame is not None:
            children.append(self.frame(trace.frame))
        children.append(_settlement(trace))
        return _tree(((what, NAME), (f"{kind} in block {receipt.block_height}: ", PLAIN), status), tuple(children))

    def frame(self, frame: "FrameView") -> TreeNode:
        label = f" ({frame.label})" if frame.label else ""
        sender = frame.sender_name or _short(frame.sender)
        split = [f"base {frame.base_cycles:,}", f"own {frame.own_cycles:,}"]
        if frame.nested_cycles:
            split.append(f"nested {frame.nested_cycles:,}")
        payload = _value(frame.payload) if frame.raw_payload else ""
        pieces = [
            (f"{_said(frame.handler)}({payload})", NAME),
            (f" of {_short(frame.actor)}{label} from {sender}{', read-only' if frame.read_only else ''}", PLAIN),
            (f": {_used(frame.cycles, frame.cells)} ({', '.join(split)})", DIM),
        ]
        if frame.raw_return_value:
            pieces.append((f" → {_value(frame.return_value)}", GOOD))
        if frame.error is not None:
            pieces.append((f" ✗ {_failure(frame.error, is_outer=_innermost(frame) is not frame.error)}", BAD))
        children = list(self._steps(frame))
        if self._lines and any(each.line is not None for each in frame.lines):
            children.append(_cycles_by_line(frame))
        return _tree(pieces, children)

    def _steps(self, frame: "FrameView") -> Iterator[TreeNode]:
        shown = 0
        prints = list(frame.printed) if self._calls else []
        for place, call in enumerate(frame.calls):
            while prints and prints[0].after_calls <= place:
                yield _print(prints.pop(0).text)
            is_wanted = call.frame is not None or (self._calls and shown < STEPS_MAX)
            if is_wanted and self._room > 0:
                self._room -= 1
                shown += 1
                yield self._call(call)
        yield from (_print(each.text) for each in prints)
        rest = len(frame.calls) - shown + frame.left_out_calls
        if self._calls and rest:
            yield _node(f"… {counted(rest, 'more host call')}", DIM)

    def _call(self, call: "HostCallView") -> TreeNode:
        arguments = ", ".join(f"{_said(name)} {_value(value)}" for name, value in call.arguments.items())
        pieces = [
            ("" if call.line is None else f"line {call.line}: ", DIM),
            (call.name, NAME),
            (f"({arguments})", PLAIN),
            (f": {_used(call.cycles, call.cells)}", DIM),
        ]
        children = [_node(_effect(each), PLAIN) for each in call.effects]
        if call.frame is not None:
            children.append(self.frame(call.frame))
        elif call.refusal:
            pieces.append((f" ✗ {_said(call.refusal, FAILURE_MAX)}", BAD))
        elif (call.answer is not None or call.name == READ) and not call.effects:
            pieces.append((f" → {_slot(call.answer)}", GOOD))
        return _tree(pieces, children)


def _innermost(frame: "FrameView") -> ErrorObject | None:
    """Return the error of the frame in which a failure began: of the nested one that has failed the frame, if any."""
    error = frame.error
    if error is not None and "callee_code" in error.context:
        failed = [call.frame for call in frame.calls if call.frame is not None and call.frame.error is not None]
        return _innermost(failed[-1]) if failed else error
    return error


def _effect(effect: "EffectView") -> str:
    facts = effect.facts
    if effect.kind == "transfer":
        return f"moves {format_cby(facts['amount'])} CBY to {_short(facts['to'])}"
    if effect.kind == "slot":
        return f"slot {_value(facts['key'])}: {_slot(facts['before'])} → {_slot(facts['after'])}"
    if effect.kind == "event":
        words = _value(facts["data"]) if facts["raw"] else ""
        return f"event {_said(facts['name'])}{': ' if words else ''}{words}"
    kind = effect.kind.replace("_", " ")
    if effect.kind == "call_deferred":
        return f"{kind}: {_said(facts['handler'])} in block {facts['height']}"
    timer = f"{kind}: {_short(facts['timer_id'])} for height {facts['height']}"
    if "handler" not in facts:
        return timer
    return f"{timer}, calls {_said(facts['handler'])} with at most {facts['gas_limit']:,} cycles"


def _slot(value: Any) -> str:
    return "none" if value is None else _value(value)


def _cycles_by_line(frame: "FrameView") -> TreeNode:
    width = max(len(f"{each.cycles:,}") for each in frame.lines)
    children = []
    for each in frame.lines:
        place = "engine and SDK" if each.line is None else f"line {each.line}"
        cycles = f"{each.cycles:,}".rjust(width)
        children.append(_tree(((f"{cycles}  ", PLAIN), (place, DIM), (f"  {_said(each.text)}".rstrip(), PLAIN))))
    return _tree((("cycles by line", DIM),), tuple(children))


def _settlement(trace: "Trace") -> TreeNode:
    receipt = trace.receipt
    amounts = (trace.reserved, receipt.fee_burned, receipt.tip, receipt.refund)
    reserved, burned, tip, refund = map(format_cby, amounts)
    words = f"reserved {reserved} CBY: {burned} burned, {tip} tip, {refund} back to {_short(receipt.payer)}"
    return _node(f"{_used(receipt.cycles_used, receipt.cells_used)}; {words}", DIM)


def _used(cycles: int, cells: int) -> str:
    return f"{counted(cycles, 'cycle')}, {counted(cells, 'cell')}" if cells else counted(cycles, "cycle")


def _failure(error: ErrorObject, *, is_outer: bool = False) -> str:
    """Return why a frame failed and in which line; of an outer frame only which of its calls did."""
    if is_outer:
        return f"its call of {_said(str(error.context.get('handler')))} failed"
    lines = str(error.context.get("traceback") or "").splitlines()
    text = lines[-1].partition(": ")[2] if lines else ""
    return _said(f"{failure_words(error)}{': ' if text else ''}{text}", FAILURE_MAX)


def _print(text: str) -> TreeNode:
    return _tree((("print: ", DIM), (_said(text, FAILURE_MAX), PLAIN)))


def _node(text: str, style: str) -> TreeNode:
    return _tree([(text, style)])


def _tree(pairs: Iterable[tuple[str, str]], children: Iterable[TreeNode] = ()) -> TreeNode:
    return TreeNode(tuple(TreePiece(text, style) for text, style in pairs if text), tuple(children))


def _led(words: str, style: str, node: TreeNode) -> TreeNode:
    return TreeNode((TreePiece(words, style), *node.pieces), node.children)


def _short(identity: bytes | None) -> str:
    if identity is None:
        return ""
    text = str(Address(identity)) if len(identity) == Address.WIDTH else f"0x{identity.hex()}"
    return f"{text[: 2 + SHORT_DIGITS]}…"


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        if not value:
            return "nothing"
        value = content_of(value)
    if type(value) is int:
        return f"{value:,}"
    return _said(value_words(value, NARROW))


def _said(words: str, limit: int = TEXT_MAX) -> str:
    """Return words of an actor in one line, cut, without anything that a terminal would obey."""
    return visible(clipped(words, limit)).replace("\n", "\\n")


# Drawing


def plain_text(node: TreeNode) -> str:
    """Return a tree as text, a line a node."""
    return "\n".join(_text_lines(node, "", ""))


def _text_lines(node: TreeNode, first: str, rest: str) -> Iterator[str]:
    yield f"{first}{''.join(each.text for each in node.pieces)}"
    for child in node.children[:-1]:
        yield from _text_lines(child, f"{rest}├─ ", f"{rest}│  ")
    for child in node.children[-1:]:
        yield from _text_lines(child, f"{rest}└─ ", f"{rest}   ")


def rich_tree(node: TreeNode) -> "Tree":
    """Return a tree for a terminal."""
    from rich.text import Text  # noqa: PLC0415  # only what prints pays for it
    from rich.tree import Tree  # noqa: PLC0415

    tree = Tree(Text.assemble(*((each.text, _RICH[each.style]) for each in node.pieces)), guide_style="dim")
    tree.children.extend(map(rich_tree, node.children))
    return tree


def html_text(node: TreeNode) -> str:
    """Return a tree as HTML that needs nothing else: nodes fold and unfold."""
    return f'<div style="{_FONT}">{_html(node, is_open=True)}</div>'


def _html(node: TreeNode, *, is_open: bool) -> str:
    line = "".join(map(_html_piece, node.pieces))
    if not node.children:
        return f"<div>{line}</div>"
    below = "".join(_html(child, is_open=False) for child in node.children)
    return (
        f"<details{' open' if is_open else ''}><summary>{line}</summary>"
        f'<div style="margin-left:1.5em">{below}</div></details>'
    )


def _html_piece(piece: TreePiece) -> str:
    from html import escape  # noqa: PLC0415  # only a notebook's

    words = escape(piece.text)
    return f'<span style="{_CSS[piece.style]}">{words}</span>' if piece.style else words
