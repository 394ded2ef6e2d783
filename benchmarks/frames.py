"""Actor programs on both engines: a frame alone, and a fire with everything around it."""

from collections.abc import Callable
from time import process_time
from typing import Any

from cowboy_sdk import timer
from cowboy_sdk.testing import SimulatedChain

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import World
from trailboss.execution.block import Applied
from trailboss.execution.host import run_handler
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockSession, Envelope, Scope
from trailboss.fees import Prices
from trailboss.mechanisms.base import Follower
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Origin
from trailboss.model.configs import MarketKind
from trailboss.params import load_params
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Cells, Cycles, Price
from trailboss.sandbox.cache import is_built, released_digest
from trailboss.sandbox.engines import new_engine
from trailboss.state.overlay import Overlay

ACTORS = 100
FIRES = 200
FRAMES = 100
CYCLES, CELLS = 200_000, 100_000
HANDLER = "on_tick"
PERIOD = 5

RAW = """
import pvm_host

def on_tick(payload):
    ticks = int.from_bytes(pvm_host.get_state(b"ticks") or b"", "big")
    pvm_host.set_state(b"ticks", (ticks + 1).to_bytes(8, "big"))
    pvm_host.schedule_timer(pvm_host.block_height() + 5, payload)
"""

CLASS = """
class Heartbeat:
    def on_tick(self, payload):
        ticks = int.from_bytes(pvm_host.get_state(b"ticks") or b"", "big")
        pvm_host.set_state(b"ticks", (ticks + 1).to_bytes(8, "big"))
        pvm_host.schedule_timer(pvm_host.block_height() + 5, payload)
"""

CLOCK = """
from cowboy_sdk import actor, runtime, timer

@actor
class Clock:
    @timer
    def on_tick(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1
        timer.schedule(runtime.get_block_height() + 5, b"", handler="on_tick")
"""
"""All three read a slot, write it and schedule a timer."""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Programs: read a slot, write it, schedule a timer", "one frame, or one fire")
    cases = [
        Case(name="frame, functions", sample=frame_sample(RAW), seconds_max=150e-6),
        Case(name="frame, class", sample=frame_sample(CLASS)),
        Case(name="frame, SDK Clock", sample=frame_sample(CLOCK)),
        Case(name="fire, functions", sample=fire_sample(RAW)),
        Case(name="fire, class", sample=fire_sample(CLASS)),
        Case(name="fire, SDK Clock", sample=fire_sample(CLOCK)),
        Case(name="SimulatedChain, fire, SDK Clock", sample=_peer(), beside="fire, SDK Clock"),
    ]
    if is_built():
        image = released_digest()
        cases += [
            Case(
                name="sandbox: frame, functions",
                sample=frame_sample(RAW, image),
                beside="frame, functions",
                seconds_max=200e-6,
            ),
            Case(
                name="sandbox: frame, SDK Clock",
                sample=frame_sample(CLOCK, image),
                beside="frame, SDK Clock",
                seconds_max=400e-6,
            ),
            Case(name="sandbox: fire, functions", sample=fire_sample(RAW, image), beside="fire, functions"),
            Case(name="sandbox: fire, SDK Clock", sample=fire_sample(CLOCK, image), beside="fire, SDK Clock"),
        ]
    measure(report, cases, rounds)
    report.notes += [] if is_built() else ["The sandbox is not built: run make sandbox."]
    report.notes += [
        f"fire: a block with {FIRES} due timers of {ACTORS} actors, all of it. Modules are kept: they are constant.",
        "SimulatedChain keeps one actor object alive; no fees, no metering, no events, no root, no revert.",
    ]
    return report


def _world(source: str, image: bytes) -> World:
    return World(senders=1, actors=ACTORS, engine=new_engine(load_params("mainnet", {}), image), source=source)


def frame_sample(source: str, image: bytes = b"", each: Callable[[float], None] | None = None) -> Callable[[], float]:
    """Return a sample of `FRAMES` frames on the native engine, or in a sandbox's image.

    ``each`` gets the seconds of CPU of every frame. Each sample begins with the same state.
    """
    world = _world(source, image)
    world.plant([])
    chain, actor = world.chain, world.actors[0]
    envelope = Envelope(
        origin=Origin.TIMER,
        origin_hash=ZERO_HASH,
        sender=actor,
        signer=actor,
        payer=actor,
        cycles_limit=Cycles(CYCLES),
        cells_limit=Cells(CELLS),
        prices=Prices(Price(1), Price(1)),
    )

    def sample() -> float:
        overlay = Overlay(chain.store)
        session = BlockSession(
            chain.next_context(),
            overlay,
            Ledger(overlay),
            chain.queue,
            chain.engine,
            Follower(),
            MARKETS[MarketKind.NONE],
        )

        def frames() -> None:
            for _ in range(FRAMES):
                meter = Meter(CYCLES, CELLS)
                began = process_time()
                outcome = run_handler(Scope(session, envelope), actor, HANDLER, b"", sender=actor, meter=meter)
                if outcome.error is not None:
                    raise AssertionError(f"a frame was to succeed: {outcome.error}")
                if each is not None:
                    each(process_time() - began)

        return timed(lambda: chain.engine.perform(frames), FRAMES)

    return sample


def fire_sample(source: str, image: bytes = b"") -> Callable[[], float]:
    """Return a sample of a block of `FIRES` fires, on the native engine or in a sandbox's image."""
    world = _world(source, image)
    chain = world.chain
    world.plant([chain.height + 2] * FIRES, HANDLER, CYCLES)

    def sample() -> float:
        before = chain.snapshot()
        seconds = timed(lambda: _check(chain.build()), FIRES)
        chain.revert(before)
        return seconds

    return sample


def _check(applied: Applied) -> None:
    """Refuse to time a block in which a fire failed."""
    for receipt in applied.block.receipts:
        if receipt.error is not None:
            raise AssertionError(f"a fire was to succeed: {receipt.error}")


def _peer() -> Callable[[], float]:
    # Making a chain is what lets an actor's module be imported outside of a chain.
    SimulatedChain()
    namespace: dict[str, Any] = {"__name__": "clock"}
    exec(compile(CLOCK, "clock.py", "exec"), namespace)
    clock = namespace["Clock"]()

    def sample() -> float:
        chain = SimulatedChain(clock)
        for _ in range(FIRES):
            timer.schedule(chain.block_height + 1, b"", handler=HANDLER)
        return timed(chain.advance_block, FIRES)

    return sample
