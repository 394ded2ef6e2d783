"""Every hostile program in the sandbox, in this process: it ends within its fuel, and as it ends natively."""

import gc
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.hostile import sandbox
from tests.hostile.children import Ending
from tests.hostile.corpus import all_programs
from tests.hostile.harness import CELLS, CYCLES, Outcome
from tests.hostile.native_limits import NATIVE_ESCAPES, NATIVE_LIMITS, VARYING
from tests.hostile.test_hostile_native import run_natively
from trailboss.sandbox import cache
from trailboss.sandbox.runtime import ACTORS_KEPT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cache.is_built(), reason="the sandbox is not built: run make sandbox"),
]

MIB: Final = 2**20
KEPT_ACTOR_BYTES: Final = 4 * MIB
RETURNED_BYTES: Final = 320 * MIB
"""What remains when no actor and no machine is kept: the stack of 64 MiB of each thread that a program filled, the code
that ran, and holes of the heap."""
FILES_MAX: Final = 64  # beside one for each actor and each machine that is kept
SAMPLE: Final = 60
_GROUPS: Final = {
    "fuel decides: this work in C is more than its price": "constants-colliding print-forever",
    "a guest's memory and stack are smaller than the machine's": "argument-huge-bytes",
    "a request to the chain has bounds of its own": "argument-huge-int argument-many call-keyword-subclass",
    "sizes and not-a-numbers are those of a processor of 32 bits": """
        decimal-limits decimal-scale float-nan-bits memoryview-native random-shuffle-own struct-native struct-pad
    """,
    "the guest's library is Python 3.14's": """
        builtin-doc encoding-new-letters enum-contains enum-functional init-subclass-hook json-codec-deep
        metaclass-prepare methods-of-types model-field-dunder re-error-name typing-repr unicode-casefold unicode-name
        unicode-printable
    """,
}
ENGINE_DIFFERENCES: Final = {name: reason for reason, names in _GROUPS.items() for name in names.split()}
"""Why a program ends in the sandbox in another way than natively, by its name."""


def resident() -> int:
    """Return the bytes of this process that lie in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def native() -> dict[str, Ending]:
    """How each program ends natively that ends there, and as in any other process. Its processes come first."""
    unfit = NATIVE_LIMITS.keys() | NATIVE_ESCAPES.keys() | VARYING
    return run_natively(program for name, program in all_programs().items() if name not in unfit)


@pytest.fixture(scope="module")
def lives(native):
    """The runtime of all runs, the runs by name, and the memory at the start and after them."""
    runtime = sandbox.new_runtime()
    before = resident()
    return runtime, sandbox.run_all(runtime, all_programs().values()), before, resident()


@pytest.fixture(scope="module")
def runs(lives):
    return lives[1]


def test_every_program_ends_within_its_fuel(runs):
    """The fuel bounds the time, whatever the machine; ``-rA`` shows the worst time of this one."""
    assert runs.keys() == all_programs().keys()
    assert sandbox.too_much_fuel(runs) == []
    print(Counter(f"{run.outcome.end} {run.outcome.slug}".strip() for run in runs.values()))
    for name in sorted(runs, key=lambda name: -runs[name].seconds)[:10]:
        print(f"{runs[name].seconds:.3f} s of CPU: {name}, fuel {runs[name].asked}")


def test_every_end_is_charged_within_the_limits(runs):
    """What ran used cycles; exhaustion uses all of them; nothing that caught exhaustion went on."""
    for name, run in runs.items():
        outcome = run.outcome
        if outcome.end == "refused" or outcome.slug == "handler_not_found":
            continue
        assert 0 < outcome.cycles <= CYCLES, name
        assert outcome.cells <= CELLS, name
        assert outcome.slug != "out_of_cycles" or outcome.cycles == CYCLES, name
        assert not any("survived" in call for call in outcome.calls), name


def compared(outcome: Outcome) -> tuple:
    """Return what must be equal: all but the sentence, whose words are Python's."""
    return outcome.end, outcome.code, outcome.slug, outcome.cycles, outcome.cells, outcome.returned, outcome.calls


@pytest.fixture(scope="module")
def different(runs, native) -> set[str]:
    """The programs that end natively in another way."""
    return {name for name, ending in native.items() if compared(ending.outcome) != compared(runs[name].outcome)}


def test_program_ends_as_it_ends_natively_unless_it_is_listed(different):
    """Cycles, cells, error, answer and host calls are equal."""
    assert different - ENGINE_DIFFERENCES.keys() == set()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the table compares Python 3.14 with 3.11")
def test_every_listed_difference_is_still_one(different):
    assert ENGINE_DIFFERENCES.keys() - different == set()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say what a process holds")
def test_memory_returns(lives):
    """Kept actors are bounded, and nothing else remains: neither memory nor open files."""
    runtime, _, before, after = lives
    print(f"{before / MIB:.0f} MiB before, {after / MIB:.0f} MiB after, {len(runtime._actors)} actors kept")
    assert after - before < ACTORS_KEPT * KEPT_ACTOR_BYTES
    files = len(os.listdir("/proc/self/fd"))
    kept = len(runtime._actors) + len(runtime._idle)
    print(f"{files} open files")
    assert files < kept + FILES_MAX
    for _, restorer in runtime._idle:
        restorer.close()
    runtime._idle.clear()
    runtime._actors.clear()
    print(f"{resident() / MIB:.0f} MiB without them")
    assert resident() - before < RETURNED_BYTES


def test_fuel_is_the_same_under_two_settings_of_the_code_generator():
    """Every tenth program; ``make crash`` runs all, and the third setting."""
    programs = list(all_programs().values())
    sample = [program for program in programs[:: len(programs) // SAMPLE] if not program.name.endswith("-many")]
    assert sandbox.differences(sample[:SAMPLE], ("none", "speed")) == []
