"""Finding executions in blocks, and building their blocks again to see what they did."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.chain.replay import OnBlock
from trailboss.chain.trace import UNBOUNDED, BlockTrace, ExecutionTrace, TraceBounds, trace_block
from trailboss.model import effects
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.events import EventRecord
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.accounts import known_names, label_of
from trailboss.views.mechanism.registry import views_for
from trailboss.views.records import Receipt, content_of, receipt_view
from trailboss.views.text import parser_lines
from trailboss.views.timer_list import unknown_words
from trailboss.views.trace.records import (
    BlockTraces,
    EffectView,
    FrameView,
    HostCallView,
    LineView,
    PrintView,
    QuestionView,
    Trace,
)
from trailboss.vm.call_parameters import named_arguments
from trailboss.vm.trace import NO_LINE, SLOT_CALLS, FrameTrace, HostCallTrace

_TIMER_EFFECTS: Final = {
    effects.TimerScheduled: "timer_scheduled",
    effects.TimerCancelled: "timer_cancelled",
    effects.ReservedTimerCancelled: "timer_cancelled",
    effects.TimerExtended: "timer_extended",
    effects.TimerMoved: "timer_moved",
    effects.TimerUpdated: "timer_updated",
}


class Place(Struct, frozen=True):
    """Where an execution is."""

    height: int  # of its block
    index: int  # of its receipt in the block


def trace_execution(chain: ChainReader, identity: bytes) -> Trace:
    """Return what a transaction, by its hash, or a timer's latest fire, by its id, did; the chain stays as it is.

    Raises:
        Rejection: ``NOT_FOUND`` for an id that the chain does not know, a timer that has not fired, and a chain that
            lacks its first blocks.
    """
    return _trace_at(chain, find_execution(chain, identity), UNBOUNDED)


def trace_receipt(chain: ChainReader, receipt: Receipt, bounds: TraceBounds = UNBOUNDED) -> Trace:
    """Return what the execution of a receipt did, by building the blocks up to it again.

    Raises:
        Rejection: ``NOT_FOUND`` for a refusal, which no block holds, and for a receipt of a block that is gone;
            ``INVALID_DATA`` beyond the bounds.
    """
    height = receipt.block_height
    if receipt.status == "refused":
        raise Rejection(RejectionReason.NOT_FOUND, "a refused transaction is in no block: nothing of it ran")
    records = chain.blocks[height].receipts if height <= chain.height else ()
    for index, record in enumerate(records):
        if receipt_view(record, height) == receipt:
            return _trace_at(chain, Place(height, index), bounds)
    what = f"block {height} of this chain does not hold the receipt: the chain has gone back since"
    raise Rejection(RejectionReason.NOT_FOUND, what, "send the transaction again", height=height)


def traceable(chain: ChainReader, receipt: Receipt) -> Receipt:
    """Return a receipt of a chain, whose `Receipt.trace` is made when it is read."""
    vars(receipt)["make_trace"] = partial(trace_receipt, chain)
    return receipt


def trace_height(
    chain: ChainReader, height: int, on_block: OnBlock | None = None, bounds: TraceBounds = UNBOUNDED
) -> BlockTraces:
    """Return what all executions of a block did, by building the blocks up to it again; raises as `trace_block`."""
    return _BlockViews(chain, trace_block(chain, height, on_block, bounds)).whole()


def one_of(traces: BlockTraces, place: Place) -> BlockTraces:
    """Return the trace of one execution out of those of its whole block."""
    return BlockTraces(block_height=place.height, traces=(traces.traces[place.index],), questions=(), is_whole=False)


def find_execution(chain: ChainReader, identity: bytes, heights: Iterable[int] | None = None) -> Place:
    """Return where a transaction is, or the latest fire of a timer.

    Complexity: O(blocks that hold something), the last one first, or O(heights) if they are given.

    Raises:
        Rejection: ``NOT_FOUND`` if no block that the chain has holds it; with what else is known of a timer.
    """
    blocks = chain.blocks.latest_eventful() if heights is None else (chain.blocks[height] for height in heights)
    scheduled = False
    for block in blocks:
        for index in reversed(range(len(block.receipts))):
            if _is_of(block.receipts[index], identity):
                return Place(block.height, index)
            scheduled = scheduled or any(event.timer_id == identity for event in block.receipts[index].events)
    raise _unknown(chain, identity, was_scheduled=scheduled)


def match_transactions(chain: ChainReader, digits: str, most: int) -> list[Hash32]:
    """Return the hashes of transactions that begin with hexadecimal digits, at most so many, the latest first.

    Complexity: O(transactions).
    """
    found: list[Hash32] = []
    for block in chain.blocks.latest_eventful():
        for record in block.receipts:
            if record.origin is Origin.TRANSACTION and record.origin_hash.hex().startswith(digits):
                found.append(Hash32(record.origin_hash))
                if len(found) == most:
                    return found
    return found


def _is_of(record: ReceiptRecord, identity: bytes) -> bool:
    is_sent = record.origin is Origin.TRANSACTION and record.origin_hash == identity
    return is_sent or record.timer_id == identity


def _unknown(chain: ChainReader, identity: bytes, *, was_scheduled: bool) -> Rejection:
    timer, shown = chain.timer(identity), Hash32(identity)
    if timer is not None:
        is_watch = views_for(chain).is_watch(timer)
        why = "it waits for a change of what it watches" if is_watch else f"it is due at {timer.height}"
        what, fix = f"timer {shown} has not fired: {why}", "trace it after its fire"
    elif was_scheduled:
        what, fix = f"timer {shown} ended without a fire", f"see why with `trailboss timer explain {shown}`"
    else:
        what = f"no block holds a transaction {shown}, and {unknown_words(chain, str(shown))}"
        fix = "give the hash of a transaction in a block, the id of a timer that has fired, or a block's height"
    return Rejection(RejectionReason.NOT_FOUND, what, fix)


def _trace_at(chain: ChainReader, place: Place, bounds: TraceBounds) -> Trace:
    return _BlockViews(chain, trace_block(chain, place.height, None, bounds)).trace(place.index)


class _BlockViews:
    """What people see of the traces of one block."""

    def __init__(self, chain: ChainReader, traced: BlockTrace) -> None:
        self._traced = traced
        self._names = known_names(chain.genesis)
        sent: Iterator[Transaction] = iter(traced.block.transactions)
        self._instructions = {transaction_hash(each): each.instruction.name for each in sent}
        self._labels: dict[bytes, str] = {}

    def whole(self) -> BlockTraces:
        """Return all of them."""
        traces = tuple(map(self.trace, range(len(self._traced.executions))))
        fired = {trace.receipt.timer_id for trace in traces}
        questions = tuple(
            QuestionView(Hash32(timer_id), self._frame(frame))
            for timer_id, frame in self._traced.agents
            if timer_id not in fired
        )
        return BlockTraces(block_height=self._height, traces=traces, questions=questions, is_whole=True)

    def trace(self, index: int) -> Trace:
        """Return one execution."""
        execution: ExecutionTrace = self._traced.executions[index]
        record, frame = execution.receipt, execution.frame
        is_sent = record.origin is Origin.TRANSACTION
        about = Hash32(record.origin_hash) if any(record.origin_hash) else None
        asked = (each for timer_id, each in self._traced.agents if timer_id == record.timer_id)
        return Trace(
            receipt=receipt_view(record, self._height),
            transaction_hash=about,
            instruction=self._instructions[Hash32(record.origin_hash)] if is_sent else None,
            reserved=record.reserved,
            intrinsic_cycles=execution.intrinsic_cycles,
            frame=None if frame is None else self._frame(frame),
            questions=tuple(map(self._frame, asked)),
        )

    @property
    def _height(self) -> int:
        return self._traced.block.height

    def _frame(self, trace: FrameTrace) -> FrameView:
        frame, source = trace.frame, parser_lines(trace.frame.source)
        nested = sum(each.cycles for each in trace.nested)
        return FrameView(
            actor=Address(frame.actor),
            label=self._label(trace),
            handler=frame.handler,
            payload=content_of(frame.payload),
            raw_payload=frame.payload,
            sender=Address(trace.sender),
            sender_name=self._names.get(trace.sender, ""),
            read_only=frame.read_only,
            depth=frame.depth,
            cycles_limit=trace.cycles_limit,
            cycles=trace.cycles,
            base_cycles=trace.base,
            own_cycles=trace.own_cycles,
            nested_cycles=nested,
            cells=trace.cells,
            return_value=content_of(trace.return_value),
            raw_return_value=trace.return_value,
            error=trace.error,
            calls=tuple(self._call(trace, call) for call in trace.calls),
            left_out_calls=trace.left_out,
            printed=tuple(PrintView(place, text.removesuffix("\n")) for place, text in trace.printed),
            lines=tuple(_line(line, cycles, source) for line, cycles in sorted(trace.lines.items())),
        )

    def _label(self, trace: FrameTrace) -> str:
        code_hash = trace.frame.code_hash
        if code_hash not in self._labels:
            self._labels[code_hash] = label_of(trace.frame.source.encode())
        return self._labels[code_hash]

    def _call(self, caller: FrameTrace, call: HostCallTrace) -> HostCallView:
        frame = None if call.frame is None else self._frame(call.frame)
        arguments = named_arguments(call.name, call.arguments, call.named)
        return HostCallView(
            name=call.name,
            arguments=arguments,
            line=call.line if call.line != NO_LINE else None,
            cycles=call.cycles,
            own_cycles=call.cycles - (0 if frame is None else frame.cycles),
            cells=call.cells,
            answer=call.answer,
            refusal=call.refusal,
            effects=tuple(self._effects(caller, call, arguments)),
            frame=frame,
        )

    def _effects(self, caller: FrameTrace, call: HostCallTrace, arguments: Mapping[str, Any]) -> Iterator[EffectView]:
        """Yield what a call asked for: what the chain was given to do, and what it did at once."""
        if call.refusal:
            return
        if call.name in SLOT_CALLS:
            after = arguments.get("value")
            yield EffectView("slot", {"key": arguments["key"], "before": call.before, "after": after})
        elif call.name == "transfer_balance":
            yield EffectView("transfer", {"from": Address(caller.frame.actor), **arguments})
        yield from map(partial(_effect_view, self._height), call.effects)


def _line(line: int, cycles: int, source: list[str]) -> LineView:
    if line == NO_LINE:
        return LineView(None, cycles, "")
    return LineView(line, cycles, source[line - 1].strip() if line <= len(source) else "")


def _effect_view(height: int, effect: effects.Effect) -> EffectView:
    match effect:
        case EventRecord(name, _, data):
            return EffectView("event", {"name": name, "data": content_of(data), "raw": data})
        case effects.CallDeferred(_, handler, size):
            return EffectView("call_deferred", {"handler": handler, "size": size, "height": height + 1})
    kind, timer = _TIMER_EFFECTS.get(type(effect)), getattr(effect, "timer", None)
    if kind is None or timer is None:
        raise InvariantError(f"a host call asked for a {type(effect).__name__}")
    facts: dict[str, Any] = {"timer_id": Hash32(timer.timer_id), "height": timer.height}
    if kind != "timer_cancelled":
        facts |= {"handler": timer.handler, "gas_limit": timer.gas_limit, "expires_at": timer.expires_at}
        facts |= {"fee_payer": Address(timer.fee_payer), "target": Address(timer.target)}
    return EffectView(kind, facts)
