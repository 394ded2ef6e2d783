"""Every hostile program on the native engine: the engine ends it, or `NATIVE_LIMITS` says why it cannot."""

import pytest

from tests.hostile.children import Ending, run_in_children
from tests.hostile.corpus import CLASSES, all_programs, load_corpus
from tests.hostile.harness import CELLS, CYCLES, PARAMS
from tests.hostile.native_limits import NATIVE_LIMITS
from trailboss.vm.native import NativeEngine

PROGRAMS_MIN = 320
LISTED_SECONDS = 0.5  # a listed program that ends within this has to leave the list
EXPECTED_CLASSES = """agents cpu_native cpu_python deployment determinism determinism_text exceptions finalizers
    host_arguments introspection introspection_library memory sdk_doors"""


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


@pytest.fixture(scope="module")
def endings() -> dict[str, Ending]:
    """How each program ends, run in children that share the SDK that is loaded here."""
    engine = NativeEngine(PARAMS)
    engine.prepare()
    programs = list(all_programs().values())
    limits = dict.fromkeys(NATIVE_LIMITS, LISTED_SECONDS)
    return run_in_children(programs, lambda _params: engine, seconds=limits)


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
