"""Runs one hostile program on any engine: as at deployment, then one frame at the default limits of a fire.

A test gives `run_program` the engine, or `run_in_children` (`tests.hostile.children`) a function that makes
one. The host is the world of the golden tests, with the chain's limit of nested calls; it records every call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from tests.golden.world import ACTOR, World, WorldHost
from tests.hostile.program import HostileProgram
from trailboss.metering.meter import Meter
from trailboss.params import ChainParams, load_params
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.primitives.keccak import keccak256
from trailboss.vm.engine import Engine

PARAMS: Final[ChainParams] = load_params("mainnet")
CYCLES: Final = PARAMS.timers.max_cycles_per_fire
CELLS: Final = PARAMS.timers.max_cells_per_fire
SHOWN: Final = 120  # characters of a host call's arguments and answer that are kept as they are

MakeEngine = Callable[[ChainParams], Engine]


class Outcome(Struct, frozen=True):
    """How a program ended, for comparisons: equal on every engine unless a decision says otherwise.

    Attributes:
        end: ``refused`` at deployment, ``failed`` or ``ok``.
        code: Public code of the refusal or the error; 0 if ok.
        slug: The same in a word.
        exception: Type of the exception that left the handler, if one did.
        what: Sentence of the refusal or the error; its words can depend on the version of Python.
        cycles: Cycles to pay for.
        cells: Cells to pay for.
        returned: Encoded return value.
        calls: Host calls of all frames in order, as text: name, arguments, answer or refusal.
    """

    end: str
    code: int = 0
    slug: str = ""
    exception: str = ""
    what: str = ""
    cycles: int = 0
    cells: int = 0
    returned: bytes = b""
    calls: tuple[str, ...] = ()


def run_program(engine: Engine, program: HostileProgram) -> Outcome:
    """Deploy a program, and run one frame of it if it is not refused."""
    try:
        for source in (program.source, *program.others):
            code_hash = keccak256(source.encode(errors="surrogatepass"))
            engine.check_source(source, code_hash)
            engine.handlers(source, code_hash)
    except Rejection as refusal:
        return _failed("refused", refusal.error())
    world = HostileWorld(params=PARAMS, engine=engine)
    world.sources |= {ACTOR: program.source}
    world.sources |= {bytes([place]) * 20: source for place, source in enumerate(program.others, 1)}
    meter = Meter(CYCLES, CELLS)
    outcome = world.run(program.source, program.handler, program.payload, meter=meter, read_only=program.read_only)
    spent = {"cycles": meter.charged()[0], "cells": meter.charged()[1], "calls": tuple(world.log)}
    if outcome.error is not None:
        return _failed("failed", outcome.error, **spent)
    return Outcome("ok", returned=outcome.return_value, **spent)


def _failed(end: str, error: ErrorObject, **spent: Any) -> Outcome:
    exception = str(error.context.get("exception_type", ""))
    return Outcome(end, error.code, error.slug, exception, error.what, **spent)


@dataclass
class HostileWorld(World):
    """A world that records the host calls of all its frames in ``log``."""

    log: list[str] = field(default_factory=list)

    def host(self, *frame: Any) -> Any:
        return RecordingHost(WorldHost(self, *frame), self.log)


class RecordingHost:
    """Stands before a host, and records what is asked and answered, but for what a frame knows from its start."""

    def __init__(self, inner: WorldHost, log: list[str]) -> None:
        self._inner = inner
        self._log = log

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def recorded(*arguments: Any, **named: Any) -> Any:
            asked = _shown((*arguments, *sorted(named.items())))
            try:
                answer = call(*arguments, **named)
            except BaseException as error:
                self._log.append(f"{name}{asked} refused: {type(error).__name__}")
                raise
            self._log.append(f"{name}{asked} = {_shown(answer)}")
            return answer

        return call if name in ("context", "height") else recorded


def _shown(value: Sequence[Any] | object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... {sha256(text.encode()).hexdigest()}"
