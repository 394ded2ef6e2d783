"""`ActorMachine`: its rules and weights, what it refuses, its books, the tests and the corpus that it writes."""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import Bundle, initialize, invariant, rule

from trailboss.primitives.errors import ConfigurationError, Rejection, TrailbossError
from trailboss.testing import CBY, ActorMachine, LocalChain, RevertedError, regression
from trailboss.testing.corpus import Corpus, MachineStep
from trailboss.testing.reduction import reduced
from trailboss.testing.script import ScriptedChain

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")

COUNTER = """
import pvm_host


def init(payload):
    pvm_host.set_state(b"count", b"0")


def add(payload):
    count = int(pvm_host.get_state(b"count")) + 1
    pvm_host.set_state(b"count", b"%d" % count)
    pvm_host.emit_event("added", b"%d" % count)


def fail(payload):
    raise ValueError("no")
"""
FEW = settings(max_examples=12, stateful_step_count=12, database=None, deadline=None, print_blob=False)


class Counter(ActorMachine):
    source = COUNTER
    value = 10 * CBY


@pytest.fixture(autouse=True)
def _unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests let fail is not listed at the end of their own run."""
    monkeypatch.setattr(regression, "WRITTEN", [])


def run(machine: type[ActorMachine], chosen: settings = FEW) -> None:
    """Run a machine as its test case does."""
    case: Any = machine.TestCase
    case.settings = chosen
    case("runTest").runTest()


def rules_of(machine: type[ActorMachine]) -> list[str]:
    """Return the names of its rules, as often as they are chosen."""
    return [each.function.__name__ for each in machine.setup_state().rules]


def test_every_handler_is_a_rule_when_none_is_named() -> None:
    """All that can be called, and not the creation call."""
    assert {name for name in rules_of(Counter) if name.startswith("call_")} == {"call_add", "call_fail"}


def test_rules_are_those_chosen_when_handlers_and_weights_are_named() -> None:
    """A weight of 0 leaves a rule out; a subclass with another source calls its handlers."""

    class Chosen(Counter):
        handlers = ("add",)
        weights = {"reorganize": 0, "transfer_in": 5}

    class Other(Chosen):
        source = "def other(payload):\n    pass\n"
        handlers = None

    assert {name for name in rules_of(Chosen) if name.startswith("call_")} == {"call_add"}
    assert (rules_of(Chosen).count("reorganize"), rules_of(Chosen).count("transfer_in")) == (0, 5)
    assert {name for name in rules_of(Other) if name.startswith("call_")} == {"call_other"}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"source": "X = 1\n"}, "has no handler to call"),
        ({"source": "def f(payload):\n    import os\n"}, "is refused"),
        ({"source": "missing.py"}, "cannot read actor source missing.py"),
        ({"handlers": ("add", "sub")}, "handlers names 'sub'; there are: add, fail"),
        ({"handlers": {"sub": st.just(b"")}}, "handlers names 'sub'; there are: add, fail"),
        ({"handlers": {"add": b""}}, r"handlers\['add'\] = b'' is not a strategy"),
        ({"weights": {"nonsense": 1}}, "weights names 'nonsense'; there are: activate_lane, call_add"),
        ({"weights": {"crowd": -1}}, r"weights\['crowd'\] = -1 must be an integer of 0 or more"),
        ({"mechanism": "lottery"}, "lottery"),
    ],
)
def test_machine_is_refused_when_its_class_makes_no_sense(attributes: dict[str, Any], message: str) -> None:
    """At the class statement, before anything runs."""
    with pytest.raises(ConfigurationError, match=message):
        type("Wrong", (Counter,), attributes)


def test_machine_is_refused_when_it_has_no_source() -> None:
    """A base class may lack it, a machine that runs may not."""

    class Base(ActorMachine):
        pass

    with pytest.raises(ConfigurationError, match=r"Base\.source is not set"):
        Base()


def test_machine_is_refused_when_it_prepares_no_actor() -> None:
    """What every rule is about."""

    class Nothing(Counter):
        def prepare(self) -> None:
            self.chain.mine()

    with pytest.raises(ConfigurationError, match=r"Nothing\.prepare must set self\.actor"):
        run(Nothing)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_books_add_up_when_everything_happens(mechanism: str) -> None:
    """Under every mechanism, with crowds, reorgs and governance."""
    run(type("Any", (Counter,), {"mechanism": mechanism}))


def regression_of(machine: type[ActorMachine], folder: Path) -> tuple[str, str]:
    """Run a machine that fails; return the note and the text of the test that it writes."""
    with pytest.raises(AssertionError) as failed:
        run(type(machine.__name__, (machine,), {"regressions": folder}), settings(FEW, max_examples=400))
    [path] = folder.glob("test_regression_*.py")
    return failed.value.__notes__[-1], path.read_text(encoding="utf-8")


LIMIT = 1
"""What the machines below read of this module."""


def _limit() -> int:
    return LIMIT


class OwnInvariant(Counter):
    handlers = {"add": st.just(b"")}
    more = 1

    @property
    def count(self) -> int:
        return int(self.actor.storage[b"count"])

    @invariant()
    def count_stays_small(self) -> None:
        assert self.count <= _limit() + self.more


def test_regression_has_the_invariant_and_what_it_reads_when_one_fails(tmp_path: Path) -> None:
    """Shrunk to three calls, without Hypothesis."""
    note, text = regression_of(OwnInvariant, tmp_path)
    assert note.endswith("a test of this failure, which fails by itself until the bug is gone")
    assert "hypothesis" not in text
    assert text.count('actor.call("add", b""'.replace('"', "'")) == 3
    assert "    more = 1" in text
    assert "LIMIT = 1" in text
    ast.parse(text)


class OwnRule(Counter):
    handlers = {"add": st.just(b"")}
    weights = {"tick": 6}

    def prepare(self) -> None:
        super().prepare()
        self.seen = [0]
        self.friend = self.chain.accounts[2]

    @rule(step=st.integers(1, 3))
    def tick(self, step: int) -> None:
        with self.chain.one_block():
            self.actor.call("add", b"", sender=self.friend)
            self.chain.transfer(self.actor, step, sender=self.friend)
        self.seen.append(step)
        assert sum(self.seen) < 4, self.seen


def test_failure_that_needs_time_alone_is_one_step_of_it(tmp_path: Path) -> None:
    """Whatever let it pass; and the test finds the source from where it stands itself."""
    folder, source = tmp_path / "tests", tmp_path / "actors" / "counter.py"
    source.parent.mkdir()
    source.write_text(COUNTER, encoding="utf-8")

    class Old(Counter):
        @invariant()
        def is_young(self) -> None:
            assert self.chain.height < 12

    placed = type("Old", (Old,), {"source": source, "value": 0, "regressions": folder})
    with pytest.raises(AssertionError):
        run(placed)
    [written] = folder.iterdir()
    lines = [line.strip() for line in written.read_text(encoding="utf-8").splitlines()]
    assert "actor = chain.deploy(Path(__file__).parent / '../actors/counter.py', sender=chain.accounts[0])" in lines
    [passed] = [line for line in lines if line.startswith("chain.")]
    assert passed == "chain.mine(11)"


class Slow(Counter):
    @rule()
    def wait(self) -> None:
        for _ in range(4):
            self.actor.call("nothing", b"", sender=self.chain.accounts[0])

    @invariant()
    def is_young(self) -> None:
        assert self.chain.height < 13


def test_step_of_many_blocks_becomes_as_many_empty_ones() -> None:
    """And then as few as the failure needs."""
    machine = Slow()
    with pytest.raises(AssertionError):
        machine.replay([MachineStep("wait", {})] * 3)
    assert machine.failure is not None
    found = reduced(Slow, machine.failure)
    assert found is not None
    assert found.steps == [MachineStep("pass_blocks", {"number": 12})]


def test_regression_calls_the_rule_when_a_rule_of_ones_own_fails(tmp_path: Path) -> None:
    """What came before is calls of the chain; the attributes are as they were."""
    note, text = regression_of(OwnRule, tmp_path)
    assert note.endswith("which fails by itself until the bug is gone")
    assert "with chain.one_block():" in text
    assert "friend=chain.accounts[2]" in text
    assert "def tick(self, step: int) -> None:" in text


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_calls_that_are_written_down_build_the_same_chain(mechanism: str) -> None:
    """Of every example, with crowds, reorgs, governance, and calls that raise and are let go on."""
    roots: list[bytes] = []

    class Written(Counter):
        @rule(number=st.integers(0, 2))
        def try_in_vain(self, number: int) -> None:
            with suppress(RevertedError):
                self.actor.call("fail", b"", sender=self.account(number), check=True)

        @rule()
        def try_in_one_block(self) -> None:
            with suppress(RevertedError), self.chain.one_block():
                self.actor.call("add", b"", sender=self.account(0))
                self.actor.call("fail", b"", sender=self.account(1), check=True)

        @rule(until=st.integers(20, 40))
        def hold_the_first(self, until: int) -> None:
            for timer in self.chain.timers()[:1]:
                with suppress(RevertedError):
                    self.chain.hold(timer.timer_id, until=until)

        def teardown(self) -> None:
            super().teardown()
            script = self.chain.script
            imports = [regression.import_of(each) for each in script.imports]
            chain = LocalChain(mechanism=mechanism)
            namespace = {"chain": chain, "suppress": suppress, "TrailbossError": TrailbossError}
            exec("\n".join((*imports, *regression.statements_of(script.lines))), namespace)
            assert (chain.height, chain.state_root) == (self.chain.height, self.chain.state_root)
            roots.append(chain.state_root)

    run(type("Written", (Written,), {"mechanism": mechanism}))
    assert len(set(roots)) > 3


class Waiting(Counter):
    weights = {"wait": 30}

    def prepare(self) -> None:
        super().prepare()
        self.waits = 0

    @rule(number=st.integers(2, 5))
    def wait(self, number: int) -> None:
        self.waits += 1
        self.chain.mine(number)

    @invariant()
    def waits_are_few(self) -> None:
        assert self.waits < 4


def test_empty_blocks_in_a_row_are_one_call_when_each_step_was_needed(tmp_path: Path) -> None:
    """The written test builds them at once, and fails by itself."""
    note, text = regression_of(Waiting, tmp_path)
    assert note.endswith("which fails by itself until the bug is gone")
    assert text.count("chain.mine(") == 1
    assert "Found(waits=4).waits_are_few()" in text


def test_script_joins_empty_blocks_with_nothing_between() -> None:
    """A call that changes the chain keeps them apart, and so does a point to go back to, which has one name."""
    chain = ScriptedChain()
    chain.mine(3)
    chain.mine()
    marks = [chain.snapshot()]
    chain.mine(2)
    with suppress(Rejection):
        chain.mine(0)
    chain.mine_until(lambda: chain.height == 9)
    marks += [chain.snapshot(), chain.snapshot()]
    chain.transfer(chain.accounts[1], 5, sender=chain.accounts[0])
    chain.mine(blocks=2)
    chain.revert(marks[2])
    assert list(regression.statements_of(chain.script.lines)) == [
        "chain.mine(4)",
        "mark_1 = chain.snapshot()",
        "chain.mine(5)",
        "mark_2 = chain.snapshot()",
        "chain.transfer(chain.accounts[1], 5, sender=chain.accounts[0])",
        "chain.mine(2)",
        "chain.revert(mark_2)",
    ]


def test_script_gives_each_actor_one_name() -> None:
    """Whichever call returns its handle, also in an open block."""
    chain = ScriptedChain()
    actors = [chain.deploy(COUNTER, sender=chain.accounts[0])]
    with chain.one_block():
        chain.set_code(chain.label(actors[0], "counter"), COUNTER)
    actors.append(chain.deploy(COUNTER, sender=chain.accounts[0]))
    for actor in actors:
        actor.call("add", sender=chain.accounts[1])
    code = [line.code for line in chain.script.lines]
    starts = ["actor = chain.deploy", "with chain.one_block", "chain.label", "chain.set_code", "actor_2 = chain.deploy"]
    assert [each.partition("(")[0] for each in code[:-2]] == starts
    assert code[-2:] == [f"{name}.call('add', b'', sender=chain.accounts[1])" for name in ("actor", "actor_2")]


class Unwritable(Counter):
    handlers = {"add": st.just(b"")}

    def prepare(self) -> None:
        super().prepare()
        self.thing = object()

    @invariant()
    def never(self) -> None:
        assert self.chain.events("added") == [], self.thing


def test_regression_says_so_when_it_cannot_be_complete(tmp_path: Path) -> None:
    """The steps are there, and what has no form in code is named."""
    note, text = regression_of(Unwritable, tmp_path)
    assert "complete it by hand, for self.thing has no form in code" in note
    assert "actor.call('add'" in text


def test_run_keeps_what_reached_something_new_for_the_next_one() -> None:
    """And the next one goes on from the same sequences."""
    database = InMemoryExampleDatabase()
    chosen = settings(FEW, database=database)

    class Kept(Counter):
        weights = {"call_fail": 10}

    run(Kept, chosen)
    assert Kept.corpus.starts == []
    run(Kept, chosen)
    starts = Kept.corpus.starts
    assert any(step.rule == "call_fail" for start in starts for step in start)
    run(Kept, chosen)
    assert Kept.corpus.starts[: len(starts)] == starts


def test_example_begins_with_a_sequence_of_the_corpus_or_most_of_it() -> None:
    """Its steps are those of the sequence, in their order."""
    database = InMemoryExampleDatabase()
    start = [MachineStep("pass_blocks", {"number": number}) for number in range(1, 9)]

    class Resumed(Counter):
        weights = {"resume": 20}
        beginnings: list[list[MachineStep]] = []

        def replay(self, steps: Sequence[MachineStep]) -> None:
            super().replay(steps)
            assert self.trail == list(steps)
            self.beginnings.append(list(steps))

    Corpus(database, f"{Resumed.__module__}.{Resumed.__qualname__}").keep(start, {"a feature"})
    run(Resumed, settings(FEW, database=database, max_examples=100))
    assert all(steps == [step for step in start if step in steps] for steps in Resumed.beginnings)
    assert any(len(steps) > 2 for steps in Resumed.beginnings)


def test_corpus_is_empty_when_rules_fill_bundles() -> None:
    """What a bundle holds cannot be made again from a sequence."""
    database = InMemoryExampleDatabase()

    class WithBundle(Counter):
        things = Bundle("things")

        @initialize(target=things)
        def make(self) -> int:
            return 1

        @rule(target=things, thing=things)
        def more(self, thing: int) -> int:
            return thing + 1

    for _ in range(2):
        run(WithBundle, settings(FEW, database=database))
    assert WithBundle.corpus.starts == []


def test_names_are_imported_without_hypothesis_until_a_machine_is_asked_for() -> None:
    """The package works without it, and says what to install."""
    program = textwrap.dedent(
        """
        import sys
        sys.modules["hypothesis"] = None
        from trailboss.testing import LocalChain, Receipt
        for name in ("ActorMachine", "strategies"):
            try:
                exec(f"from trailboss.testing import {name}")
            except ModuleNotFoundError as error:
                print(error)
        """
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    needs = "ActorMachine and trailboss.testing.strategies need Hypothesis: pip install hypothesis"
    assert finished.stdout.splitlines() == [needs, needs]


PROJECT = """
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant

from trailboss.testing import ActorMachine


class CounterMachine(ActorMachine):
    source = "counter.py"
    handlers = {"add": st.just(b"")}

    @invariant()
    def count_stays_small(self):
        assert len(self.chain.events("added")) < LIMIT


TestCounter = CounterMachine.TestCase
TestCounter.settings = settings(max_examples=EXAMPLES, stateful_step_count=8, database=None, deadline=None)
"""


@pytest.mark.slow
def test_run_of_pytest_ends_with_the_path_of_the_test_that_was_written(pytester: pytest.Pytester) -> None:
    """The test stands beside the machine's, fails with the next run, and passes when the bug is gone."""
    pytester.makepyfile(counter=COUNTER, test_counter=PROJECT.replace("LIMIT", "2").replace("EXAMPLES", "100"))
    first = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--hypothesis-seed=1")
    first.assert_outcomes(failed=1)
    [path] = pytester.path.glob("test_regression_counter_machine_*.py")
    first.stdout.fnmatch_lines(
        ["*= tests of failures =*", f"*{path.name}: a test of this failure, which fails by itself*"]
    )
    pytester.runpytest_subprocess(path.name, "-p", "no:cacheprovider").assert_outcomes(failed=1)
    pytester.makepyfile(counter=COUNTER.replace('pvm_host.emit_event("added", b"%d" % count)', "pass"))
    pytester.runpytest_subprocess(path.name, "-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.slow
def test_campaign_goes_on_in_rounds_until_its_time_is_over(pytester: pytest.Pytester) -> None:
    """Each round has another seed, so it does something else."""
    counted = "\n\ndef test_rounds():\n    assert len(ROUNDS) > 8, ROUNDS\n"
    prepare = "    def teardown(self):\n        ROUNDS.append(1)\n        super().teardown()\n\n    @invariant()"
    project = (
        PROJECT.replace("LIMIT", "1_000").replace("EXAMPLES", "4").replace("    @invariant()", prepare)
        + "\n\nROUNDS = []\n"
        + counted
    )
    pytester.makepyfile(counter=COUNTER, test_counter=project)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "--trailboss-campaign", "3").assert_outcomes(passed=2)
    refused = pytester.runpytest_subprocess("--trailboss-campaign", "-1")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--trailboss-campaign -1.0: at least 0 seconds*"])
