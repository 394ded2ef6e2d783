"""A soak of frames: a raw handler and a clock of the SDK, over and over in one sandbox.

Frames run in rounds of 100 that begin with the same state of the chain; a frame must use the fuel that it used in the
first round, and the process must hold at the end what it held after a tenth.

    python -m benchmarks.frames_soak --frames 1000000

The status is 1 if fuel differs, or memory grows.
"""

import gc
import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Final
from unittest.mock import patch

from benchmarks.frames import CLOCK, FRAMES, RAW, frame_sample
from benchmarks.soak import KIB, MEGABYTE, number_of
from trailboss.sandbox.cache import is_built, released_digest
from trailboss.sandbox.engine import FrameRun
from trailboss.vm.engine import FrameOutcome

SAMPLES: Final = 10
GROWTH_MAX: Final = 8 * MEGABYTE


def held() -> int:
    """Return the bytes of private memory of this process."""
    gc.collect()
    return number_of("RssAnon:", Path("/proc/self/status").read_text()) * KIB


def soak(frames: int) -> list[str]:
    """Run frames, print a table, and return what speaks against them, in words."""
    samples = [frame_sample(source, released_digest()) for source in (RAW, CLOCK)]
    outcome = FrameRun.outcome
    fuel: list[int] = []

    def noted(run: FrameRun) -> tuple[FrameOutcome, bool]:
        ended = outcome(run)
        fuel.append(run.allowed_fuel - run.machine.fuel())
        return ended

    faults: list[str] = []
    memory: list[int] = []
    rounds = max(frames // (FRAMES * len(samples)), SAMPLES)
    print("| frames | microseconds a frame | private MB |\n| ---: | ---: | ---: |")
    with patch.object(FrameRun, "outcome", noted):
        for sample in samples:
            sample()
        first = fuel[:]
        fuel.clear()
        began = perf_counter()
        for number in range(1, rounds + 1):
            for sample in samples:
                sample()
            if fuel != first:
                different = sum(one != other for one, other in zip(fuel, first, strict=True))
                faults.append(f"round {number}: the fuel of {different} frames differs")
            fuel.clear()
            if number * SAMPLES // rounds > (number - 1) * SAMPLES // rounds:
                memory.append(held())
                done = number * FRAMES * len(samples)
                each = 1e6 * (perf_counter() - began) / done
                print(f"| {done:,} | {each:.0f} | {memory[-1] / MEGABYTE:.1f} |", flush=True)
    if memory[-1] - memory[0] > GROWTH_MAX:
        faults.append(f"memory grew by {(memory[-1] - memory[0]) / MEGABYTE:.1f} MB")
    print(f"fuel of a frame: {min(first):,} to {max(first):,}")
    return faults


def main() -> int:
    """Read the command line, and soak."""
    parser = ArgumentParser(prog="python -m benchmarks.frames_soak", description="Frames, over and over.")
    parser.add_argument("--frames", type=int, default=1_000_000, help="how many (default 1,000,000)")
    given = parser.parse_args()
    if not is_built():
        print("the sandbox is not built: run make sandbox")
        return 0
    faults = soak(given.frames)
    for each in faults:
        print(each)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
