"""`ActorMachine`: its rules and weights, what it refuses, its books, the tests and the corpus that it writes."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import Bundle, initialize, invariant, rule

from trailboss.primitives.errors import ConfigurationError
from trailboss.testing import CBY, ActorMachine, strategies

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
        ({"weights": {"nonsense": 1}}, "weights names 'nonsense'; there are: activate_lane, books"),
        ({"weights": {"crowd": -1}}, r"weights\['crowd'\] = -1 must be an integer of 0 or more"),
        ({"mechanism": "lottery"}, "lottery"),
    ],
)
def test_machine_is_refused_when_its_class_makes_no_sense(attributes: dict[str, Any], message: str) -> None:
    """At the class statement, before anything runs."""
    with pytest.raises(ConfigurationError, match=message.replace("books", "call_add")):
        type("Wrong", (Counter,), attributes)


def test_machine_is_refused_when_it_has_no_source() -> None:
    """A base class may lack it, a machine that runs may not."""

    class Base(ActorMachine):
        pass

    with pytest.raises(ConfigurationError, match="Base.source is not set"):
        Base()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_books_add_up_when_everything_happens(mechanism: str) -> None:
    """Under every mechanism, with crowds, reorgs and governance."""
    run(type("Any", (Counter,), {"mechanism": mechanism}))


def regression_of(machine: type[ActorMachine], folder: Path) -> tuple[str, str]:
    """Run a machine that fails; return the note and the text of the test that it writes."""
    with pytest.raises(Exception, match="") as failed:
        run(type(machine.__name__, (machine,), {"regressions": folder}), settings(FEW, max_examples=60))
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


def test_regression_calls_the_rule_when_a_rule_of_ones_own_fails(tmp_path: Path) -> None:
    """What came before is calls of the chain; the attributes are as they were."""
    note, text = regression_of(OwnRule, tmp_path)
    assert note.endswith("which fails by itself until the bug is gone")
    assert "with chain.one_block():" in text
    assert "friend=chain.accounts[2]" in text
    assert "def tick(self, step: int) -> None:" in text


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


def test_next_run_goes_on_from_what_the_last_one_has_reached() -> None:
    """Each sequence of the corpus reached something new, and an example can begin with it."""
    database = InMemoryExampleDatabase()
    chosen = settings(FEW, database=database)

    class Resumed(Counter):
        begun: list[str] = []

        @invariant()
        def note(self) -> None:
            if len(self.trail) > 1:
                self.begun.append("resumed" if len(self.chain.script.lines) > 0 else "")

    run(Resumed, chosen)
    assert Resumed.corpus.starts == []
    run(Resumed, chosen)
    starts = Resumed.corpus.starts
    assert starts
    assert any(step.rule == "call_fail" for steps in starts for step in steps)
    kept = len(starts)
    run(Resumed, chosen)
    assert Resumed.corpus.starts[:kept] == starts


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
        try:
            from trailboss.testing import ActorMachine
        except ModuleNotFoundError as error:
            print(error)
        """
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "trailboss.testing.strategies and ActorMachine need Hypothesis: pip install hypothesis\n"
