"""The pytest plugin: what it takes of a run, a fresh chain, and tests whose costs are recorded."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Case, Figure, Report, measure, timed
from trailboss.testing import CBY, ChainWarning, LocalChain
from trailboss.testing.costs.recorder import CostRecorder

ACTORS = Path(__file__).resolve().parents[1] / "examples" / "actors"
BLOCKS = 60
CALLS = 10
CHAINS = 20
FIXTURE_MAX = 15e-3
COLLECTION_MAX = 150.0  # milliseconds
RATIO_MAX = 2.0

LOOP = """
def work(payload):
    total = 0
    for each in range(5_000):
        total += each % 7
        if total > 1_000:
            total -= 1_000
    return b"%d" % total
"""
NESTED = """
import pvm_host

def relay(payload):
    for each in range(20):
        pvm_host.call_actor(payload, "answer", b"%d" % each, 50_000)
        pvm_host.set_state(b"%d" % each, payload)

def answer(payload):
    return payload
"""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Tests of actors, and what their costs take", "one test, or one chain")
    cases = [Case(name="chain: a fresh one, closed", sample=_chains, seconds_max=FIXTURE_MAX)]
    for name, body in (
        ("SDK clock, 12 fires", _clock),
        ("liquidation bot, 12 fires", _bot),
        ("nested calls", _nested),
        ("a loop of 5,000 turns", _loop),
    ):
        cases.append(Case(name=name, sample=_test(body, record=False)))
        cases.append(Case(name=f"{name}, recorded", sample=_test(body, record=True), beside=name, ratio_max=RATIO_MAX))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainWarning)
        measure(report, cases, rounds)
    name = "plugin: its share of a collection"
    report.figures.append(Figure(name=name, value=_share(rounds), unit="ms", most=COLLECTION_MAX))
    report.notes += [
        f"a test: a fresh chain, a deployment, {CALLS} calls or {BLOCKS} blocks, and the chain closed;",
        "recorded: as with --trailboss-costs=lines and --trailboss-costs-speedscope.",
        "The share is the median of the differences between two runs of pytest --collect-only, one without the plugin.",
    ]
    return report


def _chains() -> float:
    def open_and_close() -> None:
        for _ in range(CHAINS):
            LocalChain().close()

    return timed(open_and_close, CHAINS)


def _test(body: Callable[[LocalChain], None], *, record: bool) -> Callable[[], float]:
    def sample() -> float:
        recorder = CostRecorder(ACTORS, with_flames=True)

        class RecordedBenchmark(LocalChain):
            chain_class = recorder.chain_class()

        def test() -> None:
            with (RecordedBenchmark if record else LocalChain)() as chain:
                body(chain)

        seconds = timed(test)
        if record:
            recorder.table.check()
        return seconds

    return sample


def _clock(chain: LocalChain) -> None:
    chain.deploy(ACTORS / "clock.py", sender=chain.accounts[0], value=100 * CBY)
    chain.mine(BLOCKS)


def _bot(chain: LocalChain) -> None:
    bot = chain.deploy(ACTORS / "liquidation_bot.py", sender=chain.accounts[0], value=1_000 * CBY)
    loan = b'{"units": 10, "debt": 1000, "reward": 100}'
    for handler, payload in (("report", b"200"), ("watch", loan)):
        bot.call(handler, payload, sender=chain.accounts[0], check=True)
    chain.mine(BLOCKS)


def _nested(chain: LocalChain) -> None:
    caller, callee = (chain.deploy(NESTED, sender=chain.accounts[0]) for _ in range(2))
    for _ in range(CALLS):
        caller.call("relay", callee.address, sender=chain.accounts[0], check=True)


def _loop(chain: LocalChain) -> None:
    worker = chain.deploy(LOOP, sender=chain.accounts[0])
    for _ in range(CALLS):
        worker.call("work", sender=chain.accounts[0], check=True)


def _share(rounds: int) -> float:
    """Return the milliseconds that the plugin adds to a collection."""
    with TemporaryDirectory() as folder:
        Path(folder, "test_nothing.py").write_text("def test_nothing(): pass\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", folder]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

        def collect(*options: str) -> float:
            return timed(lambda: subprocess.run([*command, *options], check=True, capture_output=True, env=environment))

        collect("-p", "trailboss.testing.plugin")
        return 1_000 * median(collect("-p", "trailboss.testing.plugin") - collect() for _ in range(rounds))
