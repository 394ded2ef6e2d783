"""Flame graphs: cycles by stack, in speedscope's file format.

A stack runs from actor and handler over the line to the host call and the frame that it ran.
Source: https://www.speedscope.app/file-format-schema.json
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from trailboss.chain.trace import BlockTrace
from trailboss.testing.costs.table import REST, CostedSource, line_text
from trailboss.vm.trace import NO_LINE, FrameTrace

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
OUTSIDE: Final = "outside its lines"
BASE: Final = "frame"


class FlameRow(Struct, frozen=True, array_like=True):
    """One place of a stack."""

    name: str
    file: str = ""
    line: int = 0  # from 1; 0 without one


Stack = tuple[FlameRow, ...]


class FlameGraph(Struct):
    """Cycles by stack; they add up to those of the receipts."""

    stacks: dict[Stack, int] = field(default_factory=dict)

    def add(self, trace: BlockTrace, sources: dict[str, CostedSource]) -> None:
        """Add the executions of a block, whose sources have names."""
        for execution in trace.executions:
            rest = execution.intrinsic_cycles
            if rest:
                _weigh(self.stacks, (FlameRow(REST[execution.receipt.origin]),), rest)
            if execution.frame is not None:
                _add_frame(self.stacks, (), execution.frame, sources)

    def merge(self, stacks: Iterable[tuple[Stack, int]]) -> None:
        """Add other stacks, as of another worker."""
        for stack, cycles in stacks:
            _weigh(self.stacks, stack, cycles)

    def document(self, name: str) -> dict[str, Any]:
        """Return a document of speedscope with one sampled profile, whose weights are cycles."""
        places: dict[FlameRow, int] = {}
        for stack in self.stacks:
            for place in stack:
                places.setdefault(place, len(places))
        weights = list(self.stacks.values())
        profile = {
            "type": "sampled",
            "name": f"{name}: cycles",
            "unit": "none",
            "startValue": 0,
            "endValue": sum(weights),
            "samples": [[places[place] for place in stack] for stack in self.stacks],
            "weights": weights,
        }
        return {
            "$schema": SCHEMA,
            "name": name,
            "exporter": "trailboss",
            "shared": {"frames": [_shown(place) for place in places]},
            "profiles": [profile],
        }


def _add_frame(found: dict[Stack, int], above: Stack, frame: FrameTrace, sources: dict[str, CostedSource]) -> None:
    source = sources[frame.frame.code_hash.hex()]
    here = (*above, FlameRow(f"{source.name} {frame.frame.handler}", source.name))
    _weigh(found, (*here, FlameRow(BASE)), frame.base)
    left = dict(frame.lines)
    for call in frame.calls:
        at = (*here, _line(source, call.line), FlameRow(call.name))
        own = call.cycles - (0 if call.frame is None else call.frame.cycles)
        # The call that exhausts a frame would have used more than its line was charged.
        own = max(0, min(own, left.get(call.line, 0)))
        if own:
            left[call.line] -= own
            _weigh(found, at, own)
        if call.frame is not None:
            _add_frame(found, at, call.frame, sources)
    for line, cycles in left.items():
        if cycles:
            _weigh(found, (*here, _line(source, line)), cycles)


def _line(source: CostedSource, line: int) -> FlameRow:
    return FlameRow(f"{line}: {line_text(source, line)}", source.name, line) if line != NO_LINE else FlameRow(OUTSIDE)


def _weigh(found: dict[Stack, int], stack: Stack, cycles: int) -> None:
    found[stack] = found.get(stack, 0) + cycles


def _shown(place: FlameRow) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": place.name}
    if place.file:
        shown["file"] = place.file
    if place.line:
        shown["line"] = place.line
    return shown
