"""`ActorMachine`: random histories of an actor, with everything that a chain can do to it, and what must stay true."""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from functools import cache, wraps
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Final

from hypothesis import Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import SearchStrategy

from trailboss.chain.development import ACCOUNT_COUNT, development_genesis
from trailboss.execution.genesis import check_genesis
from trailboss.primitives.errors import ConfigurationError
from trailboss.testing import strategies
from trailboss.testing.corpus import Corpus, MachineStep, features_of
from trailboss.testing.handlers import callable_handlers
from trailboss.testing.interference import WEIGHTS, Interference
from trailboss.testing.parties import ActorHandle
from trailboss.testing.reduction import can_replay, reduced
from trailboss.testing.regression import Failure, code_or_none, note_regressions
from trailboss.testing.script import ScriptedChain
from trailboss.testing.timer_book import TimerBook

CALLS_WEIGHT: Final = 16  # of all handlers together: every other step or so is a call
RESUME_WEIGHT: Final = 6
FAILURES_KEPT: Final = 32  # of a run: the last ones are the smallest
KEEP_STEP: Final = st.sampled_from((False, *(True,) * 63))  # smaller examples leave steps out


@st.composite
def _prefixes(draw: Callable[[SearchStrategy[Any]], Any]) -> list[MachineStep]:
    starts = draw(st.runner()).corpus.starts
    return [step for step in draw(st.sampled_from(starts)) if draw(KEEP_STEP)]


class _Case:
    """`ActorMachine.TestCase`: what unittest and pytest run."""

    def __get__(self, instance: object, owner: type["ActorMachine"]) -> Any:
        return _case_of(owner)


class ActorMachine(Interference):
    """A state machine of Hypothesis over a local chain with an actor; subclass it, and give `source` at least.

    Every handler becomes a rule ``call_NAME`` with a payload and the number of the sender's account. The other rules
    are those of `trailboss.testing.interference`, and your own. After every step money, receipts and timers must add
    up, and your own invariants hold. ``TestName = Machine.TestCase`` is the test; a failure is written as a test of
    its own, with plain calls of the chain. Decision: D-111.

    Attributes:
        source: Path ending in ``.py``, or text, as for `LocalChain.deploy`.
        mechanism: As of `LocalChain`.
        preset: As of `LocalChain`.
        params: As of `LocalChain`.
        accounts: As of `LocalChain`. Account 0 deploys, the last ones are the strangers of crowds.
        vm: As of `LocalChain`.
        value: As of `LocalChain.deploy`.
        init_payload: As of `LocalChain.deploy`.
        init_handler: As of `LocalChain.deploy`.
        entitlements: As of `LocalChain.deploy`.
        handlers: Names of those to call, or a strategy of payloads for each; None for all, with any payloads.
        callers: How many accounts call, the owner among them.
        weights: How often a rule is chosen, by its name, in proportion to the others; 0 for never.
        regressions: Folder for tests of failures; None for that of the machine's own file.
        campaign_seconds: How long a test goes on; 0 for one run. The option ``--trailboss-campaign`` sets it.
    """

    source: ClassVar[str | Path | None] = None
    mechanism: ClassVar[str] = "fifo"
    preset: ClassVar[str] = "mainnet"
    params: ClassVar[Mapping[str, int]] = {}
    accounts: ClassVar[int] = ACCOUNT_COUNT
    vm: ClassVar[str | None] = None
    value: ClassVar[int] = 0
    init_payload: ClassVar[bytes] = b""
    init_handler: ClassVar[str | None] = None
    entitlements: ClassVar[Sequence[str]] = ()
    handlers: ClassVar[Sequence[str] | Mapping[str, SearchStrategy[bytes]] | None] = None
    callers: ClassVar[int] = strategies.CALLERS
    weights: ClassVar[Mapping[str, int]] = {}
    regressions: ClassVar[str | Path | None] = None
    campaign_seconds: ClassVar[float] = 0

    corpus: ClassVar[Corpus] = Corpus(None, "")
    failures: ClassVar[list[Failure]] = []
    TestCase = _Case()
    _setup: ClassVar[Any] = None
    _calls: ClassVar[tuple[str, ...]] = ()
    _chain: ClassVar[ScriptedChain | None] = None
    _prepared: ClassVar[dict[str, Any] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Make the rules of a machine that has a source.

        Raises:
            ConfigurationError: For a source without handlers, names of handlers or rules that are not there, and what
                `LocalChain` refuses.
        """
        super().__init_subclass__(**options)
        cls._setup, cls._chain, cls._prepared, cls.failures = None, None, None, []
        if cls.source is None:
            return
        check_genesis(
            development_genesis(preset=cls.preset, mechanism=cls.mechanism, overrides=cls.params, accounts=cls.accounts)
        )
        known = callable_handlers(cls.source)
        payloads = _payloads(cls.handlers, known)
        rules = {
            f"call_{name}": _call_rule(name, each, min(cls.callers, cls.accounts)) for name, each in payloads.items()
        }
        # A handler of the base class's source may not be one of this source's.
        made = {**dict.fromkeys(cls._calls), **{name: each for name, each in rules.items() if name not in vars(cls)}}
        for name, each in made.items():
            setattr(cls, name, each)
        cls._calls = tuple(name for name, each in made.items() if each is not None)
        known = tuple(sorted({each.function.__name__ for each in super().setup_state().rules}))
        strategies.check_names("weights", cls.weights, known)
        for name, weight in cls.weights.items():
            if type(weight) is not int or weight < 0:
                raise ConfigurationError(f"weights[{name!r}] = {weight!r} must be an integer of 0 or more")

    def __init__(self) -> None:
        if self.source is None:
            raise ConfigurationError(f"{type(self).__name__}.source is not set: the actor's path, or its text")
        super().__init__()
        owner = type(self)
        if owner._chain is None:
            owner._chain = ScriptedChain(**self._chain_options())
        self.chain = owner._chain
        self.chain.restart()
        self.marks = []
        self.trail: list[MachineStep] = []
        self.heights: list[int] = []
        self.failure: Failure | None = None
        self._features: set[str] = set()
        self._useful = 0
        self._prepare_once()
        self.floor = self.chain.height
        self._book = TimerBook(self.chain.chain)
        self._inner = frozenset(vars(self)) - frozenset(owner._prepared or ()) | {"_inner"}

    def prepare(self) -> None:
        """Deploy the actor with account 0; override it to arrange more, and set ``self.actor``.

        It runs once: each example begins at the block where it ended, with a copy of the attributes that it has set.
        """
        if self.source is not None:
            options = self._changed("value", "init_payload", "init_handler", "entitlements")
            self.actor = self.chain.deploy(self.source, sender=self.chain.accounts[0], **options)

    def _prepare_once(self) -> None:
        owner, chain = type(self), self.chain
        if owner._prepared is None:
            before = {**vars(self)}
            self.prepare()
            if not isinstance(vars(self).get("actor"), ActorHandle):
                raise ConfigurationError(f"{owner.__name__}.prepare must set self.actor to what chain.deploy returns")
            changed = {name: value for name, value in vars(self).items() if before.get(name) is not value}
            owner._prepared = changed
            chain.begin_here()
        vars(self).update(deepcopy(owner._prepared, {id(chain): chain}))

    @invariant(check_during_init=True)
    def books_add_up(self) -> None:
        """Money, receipts and timers add up, and no timer is lost."""
        blocks = self._book.check()
        new = self.corpus.note(features_of(blocks)) - self._features
        if new:
            self._features |= new
            self._useful = len(self.trail)

    @precondition(lambda self: self.corpus.starts and not self.trail)
    @rule(steps=_prefixes())
    def resume(self, steps: list[MachineStep]) -> None:
        """Go to a state that an earlier run has found worth keeping."""
        self.replay(steps)

    def replay(self, steps: Sequence[MachineStep]) -> None:
        """Take some steps, but those whose conditions do not hold, and check the invariants after each."""
        __tracebackhide__ = True
        known = {each.function.__name__: each for each in self.rules}
        for step in steps:
            found = known.get(step.rule)
            if found is not None and all(condition(self) for condition in found.preconditions):
                found.function(self, **step.arguments)
                for each in self.invariants:
                    if all(condition(self) for condition in each.preconditions):
                        each.function(self)

    def teardown(self) -> None:
        """Check the whole chain, and keep the steps if they reached something new; call it if you override it."""
        if self.failure is not None:
            return
        try:
            self._book.check_all()
        except Exception as error:
            self._note_failure(Failure(error=error, function=type(self).books_add_up))
            raise
        if self._useful and not any(each.targets for each in self.rules):
            self.corpus.keep(self.trail[: self._useful], self._features)

    @classmethod
    def setup_state(cls) -> Any:
        """Return rules, by their weights, and invariants, each of which notes what it does."""
        if cls._setup is None:
            found = super().setup_state()
            calls = dict.fromkeys(cls._calls, max(1, CALLS_WEIGHT // max(1, len(cls._calls))))
            weights = {"resume": RESUME_WEIGHT, **WEIGHTS, **calls, **cls.weights}
            noted = [(_noted_rule(each), weights.get(each.function.__name__, 1)) for each in found.rules]
            cls._setup = dataclasses.replace(
                found,
                rules=[each for each, weight in noted for _ in range(weight)],
                initializers=[_noted_rule(each) for each in found.initializers],
                invariants=[_noted_invariant(each) for each in found.invariants],
            )
        return cls._setup

    @classmethod
    def _chain_options(cls) -> dict[str, Any]:
        """Return the mechanism, and the other options of `LocalChain` that are not its defaults."""
        return {"mechanism": cls.mechanism, **cls._changed("preset", "params", "accounts", "vm")}

    @classmethod
    def _changed(cls, *names: str) -> dict[str, Any]:
        """Return the attributes of some names that the machine has otherwise than `ActorMachine`."""
        return {name: getattr(cls, name) for name in names if getattr(cls, name) != getattr(ActorMachine, name)}

    def own_attributes(self) -> dict[str, Any]:
        """Return the attributes that the machine of a user has, as they are now."""
        own = ((name, value) for name, value in vars(self).items() if name not in self._inner or name == "actor")
        return {name: copy(value) if isinstance(value, list | dict | set) else value for name, value in own}

    def _note_failure(self, failure: Failure) -> None:
        """Keep what has failed, with the calls up to here, for the test that is written of it."""
        script, before = self.chain.script, failure.attributes or self.own_attributes()
        failure.attributes = {name: code_or_none(script, value) for name, value in before.items()}
        failure.options = {name: code_or_none(script, value) for name, value in self._chain_options().items()}
        failure.arguments = {name: code_or_none(script, value) for name, value in failure.arguments.items()}
        failure.lines, failure.imports, failure.steps = list(script.lines), set(script.imports), list(self.trail)
        failure.heights = [*self.heights, self.chain.height]
        self.failure = failure
        self.failures[:] = [*self.failures, failure][-FAILURES_KEPT:]


def _payloads(
    given: Sequence[str] | Mapping[str, SearchStrategy[bytes]] | None, known: tuple[str, ...]
) -> Mapping[str, SearchStrategy[bytes]]:
    chosen = known if given is None else given
    payloads = chosen if isinstance(chosen, Mapping) else dict.fromkeys(chosen, strategies.payloads())
    strategies.check_names("handlers", payloads, known)
    for name, strategy in payloads.items():
        if not isinstance(strategy, SearchStrategy):
            raise ConfigurationError(f"handlers[{name!r}] = {strategy!r} is not a strategy")
    return payloads


def _call_rule(handler: str, payloads: SearchStrategy[bytes], callers: int) -> Any:
    def call(self: ActorMachine, payload: bytes, sender: int) -> None:
        self.actor.call(handler, payload, sender=self.account(sender))

    call.__name__, call.__qualname__ = f"call_{handler}", f"ActorMachine.call_{handler}"
    return rule(payload=payloads, sender=strategies.accounts(callers))(call)


def _noted_rule(found: Any) -> Any:
    """Return a rule that notes its steps, and what makes it fail."""
    function = found.function
    is_own = function.__module__ not in (__name__, Interference.__module__)

    @wraps(function)
    def step(self: ActorMachine, **arguments: Any) -> Any:
        __tracebackhide__ = True  # pytest shows the user's own lines
        if function.__name__ == "resume":
            return function(self, **arguments)
        self.trail.append(MachineStep(function.__name__, arguments))
        self.heights.append(self.chain.height)
        first, before = len(self.chain.script.lines), self.own_attributes() if is_own else {}
        try:
            return function(self, **arguments)
        except Exception as error:
            failure = Failure(error=error)
            if is_own:
                failure = Failure(
                    error=error, function=function, attributes=before, arguments=arguments, first_line=first
                )
            self._note_failure(failure)
            raise

    return dataclasses.replace(found, function=step)


def _noted_invariant(found: Any) -> Any:
    """Return an invariant that notes what makes it fail."""
    function = found.function

    @wraps(function)
    def check(self: ActorMachine) -> Any:
        __tracebackhide__ = True
        try:
            return function(self)
        except Exception as error:
            self._note_failure(Failure(error=error, function=function))
            raise

    return dataclasses.replace(found, function=check)


@cache
def _case_of(machine: type[ActorMachine]) -> Any:
    plain: Any = vars(RuleBasedStateMachine)["TestCase"].__get__(None, machine)

    class MachineCase(plain):  # type: ignore[misc]  # its class is made by Hypothesis
        @wraps(plain.runTest)
        def runTest(self) -> None:  # noqa: N802  # unittest's name
            __tracebackhide__ = True
            until = monotonic() + machine.campaign_seconds
            _run(machine, self.settings)
            while monotonic() < until:
                # Under one seed every round would do the same.
                seed(random.getrandbits(64))(machine)
                _run(machine, self.settings)

    MachineCase.__name__, MachineCase.__qualname__ = plain.__name__, plain.__qualname__
    return MachineCase


def _run(machine: type[ActorMachine], chosen: settings) -> None:
    """Run a machine once; what fails is made small, written as a test, and raised."""
    __tracebackhide__ = True
    machine.failures.clear()
    machine.corpus = Corpus(chosen.database, f"{machine.__module__}.{machine.__qualname__}")
    # Without what only Hypothesis knows, steps are left out faster here than by its own shrinker.
    is_ours = can_replay(machine)
    phases = [phase for phase in chosen.phases if not (is_ours and phase in (Phase.shrink, Phase.explain))]
    try:
        run_state_machine_as_test(machine, settings=settings(chosen, phases=phases))
    except Exception as error:
        found = [failure for failure in machine.failures if failure.error is error]
        smaller = reduced(machine, found[0]) if found and is_ours else None
        if smaller is None:
            note_regressions(machine, machine.failures, error)
            raise
        smaller.error.add_note("\n".join(("Steps:", *(f"    {step}" for step in smaller.steps))))
        note_regressions(machine, [smaller], smaller.error)
        raise smaller.error from None
    finally:
        if machine._chain is not None:
            machine._chain.close()
        machine._chain = machine._prepared = None
