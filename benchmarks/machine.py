"""`ActorMachine`: steps a second, and where their time goes."""

from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, run_state_machine_as_test

from benchmarks.measure import Case, Report, measure, repeated, timed
from trailboss.testing import CBY, ActorMachine, LocalChain
from trailboss.testing.script import ScriptedChain

EXAMPLES: Final = 10
STEPS: Final = 50
EXAMPLES_LARGE: Final = 100
RATE_MIN: Final = 200  # steps a second
START_MAX: Final = 0.015  # seconds
ACTOR: Final = "examples/actors/heartbeat.py"
CALLS: Final = 100


class HeartbeatMachine(ActorMachine):
    """Calls, time, reorgs, crowds and governance for an actor with a loop."""

    source = ACTOR
    value = 1_000 * CBY
    handlers = {"handle_timer": st.just(b"")}  # noqa: RUF012  # as a user writes it
    steps: int = 0

    @invariant()
    def one_beat_waits_at_most(self) -> None:
        """Only the actor's own timer schedules the next one."""
        assert len(self.actor.timers()) <= 1

    def teardown(self) -> None:
        """Count the steps."""
        HeartbeatMachine.steps += len(self.trail)
        super().teardown()


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size has ten times as many examples."""
    report = Report("Random histories of an actor", "one start, call, or step")
    report.notes += [
        f"examples of {STEPS} steps, every step with all built-in invariants and one of the machine's own."
    ]
    chain = ScriptedChain()
    actor = chain.deploy(ACTOR, sender=chain.accounts[0], value=1_000 * CBY)
    chain.begin_here()

    def back() -> None:
        chain.mine()
        chain.restart()

    cases = [
        Case(name="LocalChain()", sample=lambda: timed(LocalChain), seconds_max=START_MAX),
        Case(name="one block, and back to the start of an example", sample=repeated(back, CALLS)),
        Case(
            name="a call that reverts, alone",
            sample=repeated(lambda: actor.call("handle_timer", sender=chain.accounts[1]), CALLS),
        ),
        Case(
            name="a step of ActorMachine",
            sample=lambda: _steps(EXAMPLES_LARGE if large else EXAMPLES),
            beside="a call that reverts, alone",
            rate_min=RATE_MIN,
        ),
    ]
    measure(report, cases, rounds)
    return report


def _steps(examples: int) -> float:
    """Return the seconds of a step."""
    chosen = settings(max_examples=examples, stateful_step_count=STEPS, database=None, deadline=None, derandomize=True)
    HeartbeatMachine.steps = 0
    seconds = timed(lambda: run_state_machine_as_test(HeartbeatMachine, settings=chosen))
    return seconds / HeartbeatMachine.steps
