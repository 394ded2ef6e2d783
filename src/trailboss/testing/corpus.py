"""Sequences of steps that have reached something new, kept in Hypothesis' database for later runs to go on from."""

from ast import literal_eval
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hypothesis.database import ExampleDatabase
from msgspec import Struct

from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.transactions import ExecuteActor
from trailboss.vm.failures import TRACEBACK

SEQUENCES_MAX: Final = 200  # sequences kept of a machine
STEPS_MAX: Final = 100  # steps of one sequence


class MachineStep(Struct, frozen=True):
    """One step of a machine.

    Attributes:
        rule: Name of its rule.
        arguments: What the rule was called with.
    """

    rule: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"{self.rule}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class Corpus:
    """What is kept of one machine.

    Attributes:
        starts: Sequences that an example can begin with. They stay as they are while a run lasts: what it adds is for
            the next one, so that an example means the same from its first run to its last.
    """

    def __init__(self, database: ExampleDatabase | None, machine: str) -> None:
        self._database = database
        self._key = f"trailboss/{machine}".encode()
        kept = sorted(filter(None, map(_decoded, () if database is None else database.fetch(self._key))))
        self.starts = [[MachineStep(*step) for step in steps] for _, steps, _ in kept]
        self._count = len(kept)
        self._seen = {feature for _, _, features in kept for feature in features}

    def note(self, features: Iterable[str]) -> set[str]:
        """Return which of some features are new to all kept sequences."""
        return {*features} - self._seen

    def keep(self, steps: list[MachineStep], features: set[str]) -> None:
        """Keep a sequence for what it reached, unless it cannot be written down or there are too many."""
        content = (self._count, [(step.rule, step.arguments) for step in steps], sorted(features))
        octets = repr(content).encode()
        if self._database is None or self._count == SEQUENCES_MAX or len(steps) > STEPS_MAX or _decoded(octets) is None:
            return
        self._database.save(self._key, octets)
        self._count += 1
        self._seen |= features


def features_of(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield what some blocks have shown: outcomes by handler and reason, lines that failed, names of events."""
    for block in blocks:
        called = iter(block.transactions)
        for receipt in block.receipts:
            by = ""
            if receipt.origin is Origin.TRANSACTION:
                instruction = next(called).instruction
                by = instruction.handler if isinstance(instruction, ExecuteActor) else instruction.name
            yield f"{receipt.origin} {by} {receipt.status}{_reason(receipt)}"
            yield from (f"event {event.name}" for event in receipt.events)
        yield from (f"event {event.name}" for event in block.events)


def _reason(receipt: ReceiptRecord) -> str:
    if receipt.error is None:
        return ""
    return f" {receipt.error.slug} {receipt.error.context.get(TRACEBACK, '')}"


def _decoded(octets: bytes) -> tuple[int, list[tuple[str, dict[str, Any]]], list[str]] | None:
    """Return the number, steps and features of a sequence that `keep` has written; None if it has not."""
    try:
        number, steps, features = literal_eval(octets.decode())
    except (ValueError, SyntaxError, TypeError):
        return None
    return number, steps, features
