"""Every hostile program on the native engine: the engine ends it, or `NATIVE_LIMITS` says why it cannot."""

from collections.abc import Callable, Iterable

import pytest

from tests.hostile.children import Ending, Limits, run_in_children
from tests.hostile.corpus import CLASSES, all_programs, load_corpus
from tests.hostile.harness import CELLS, CYCLES, PARAMS
from tests.hostile.native_limits import MARKED, NATIVE_ESCAPES, NATIVE_LIMITS, VARYING
from tests.hostile.program import HostileProgram
from trailboss.vm.native import NativeEngine

PROGRAMS_MIN = 320
LISTED_SECONDS = 0.5  # a listed program that ends within this has to leave the list
EXPECTED_CLASSES = """agents cpu_native cpu_python deployment determinism determinism_text exceptions finalizers
    host_arguments introspection introspection_library memory sdk_doors"""
SHOWING = ("determinism", "determinism_text", "introspection", "introspection_library", "sdk_doors")
"""The classes whose programs answer with what they found."""


def test_corpus_has_every_class_and_no_name_twice() -> None:
    """The names are sorted within a class, and each program says why it is there."""
    corpus = load_corpus()
    names = [program.name for programs in corpus.values() for program in programs]

    assert tuple(EXPECTED_CLASSES.split()) == CLASSES
    assert len(names) >= PROGRAMS_MIN
    assert len(names) == len(all_programs())
    for programs in corpus.values():
        assert [program.name for program in programs] == sorted(program.name for program in programs)
        assert all(program.reason and program.source for program in programs)


def run_natively(programs: Iterable[HostileProgram]) -> dict[str, Ending]:
    """Run programs in children that share the SDK that is loaded here."""
    engine = NativeEngine(PARAMS)
    engine.prepare()
    limits = Limits(dict.fromkeys(NATIVE_LIMITS, LISTED_SECONDS), marked=MARKED)
    return run_in_children(list(programs), lambda _params: engine, limits)


@pytest.fixture(scope="module")
def endings() -> dict[str, Ending]:
    """How each program ends."""
    return run_natively(all_programs().values())


@pytest.mark.slow
def test_every_program_ends_unless_it_is_listed(endings: dict[str, Ending]) -> None:
    """No program that is not listed reaches a limit of time or memory, breaks its process, or escapes the engine."""
    assert endings.keys() == all_programs().keys()
    assert {name: ending.limit for name, ending in endings.items() if ending.limit and name not in NATIVE_LIMITS} == {}


@pytest.mark.slow
def test_every_listed_program_still_reaches_a_limit(endings: dict[str, Ending]) -> None:
    """A program that the engine has learned to end leaves the list."""
    assert NATIVE_LIMITS.keys() <= all_programs().keys()
    assert [name for name in NATIVE_LIMITS if not endings[name].limit] == []


@pytest.mark.slow
def test_every_end_is_charged_within_the_limits(endings: dict[str, Ending]) -> None:
    """What ran used cycles; exhaustion uses all of them; nothing that caught exhaustion went on."""
    for name, ending in endings.items():
        outcome = ending.outcome
        if outcome is None or outcome.end == "refused" or outcome.slug == "handler_not_found":
            continue
        assert 0 < outcome.cycles <= CYCLES, name
        assert outcome.cells <= CELLS, name
        assert outcome.slug != "out_of_cycles" or outcome.cycles == CYCLES, name
        assert not any("survived" in call for call in outcome.calls), name


@pytest.mark.slow
def test_every_listed_escape_is_still_open(endings: dict[str, Ending]) -> None:
    """A door that the native engine has learned to close leaves the list."""
    assert {name: endings[name].outcome.end for name in NATIVE_ESCAPES} == dict.fromkeys(NATIVE_ESCAPES, "ok")


OUTCOMES = f"""
from tests.hostile.corpus import load_corpus
from tests.hostile.test_hostile_native import run_natively

classes = {SHOWING}
programs = [each for name in classes for each in load_corpus()[name] if each.name != "singledispatch-endless"]
for name, ending in sorted(run_natively(programs).items()):
    print(ascii([name, ending.outcome, ending.limit]))
"""


@pytest.mark.slow
def test_outcome_is_the_same_in_another_process(output_under_hash_seed: Callable[[str, int], str]) -> None:
    """Receipts, answers and host calls depend neither on hashes nor on addresses, but for those listed."""
    one, other = (output_under_hash_seed(OUTCOMES, seed).splitlines() for seed in (1, 2))
    different = [left for left, right in zip(one, other, strict=True) if left != right]

    assert [line.split("'")[1] for line in different] == sorted(VARYING)
