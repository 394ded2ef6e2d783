"""A chain in the process of a test, beside the public SDK's `SimulatedChain` and eth-tester."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from cowboy_sdk.testing import SimulatedChain

from benchmarks.measure import Case, Report, measure, timed
from trailboss.testing import LocalChain

PYTHON: Final = Path(".peers/python/bin/python")  # where `make bench-peers` installs eth-tester
WORKER: Final = Path(__file__).with_name("eth_tester_worker.py")
NEW: Final = 20
TRANSFERS: Final = 100
EMPTY_BLOCKS: Final = 400


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("A chain in the process of a test, beside others", "one chain, transfer or block")
    chain, simulated = LocalChain(), SimulatedChain()
    ours = [
        Case(name="new chain", sample=lambda: timed(lambda: [LocalChain() for _ in range(NEW)], NEW)),
        Case(name="transfer, mined", sample=partial(_transfers, chain)),
        Case(name="empty block", sample=partial(_blocks, chain.mine)),
    ]
    simple = [
        Case(name="SimulatedChain, new chain", sample=lambda: timed(_simulated, NEW), beside="new chain"),
        Case(
            name="SimulatedChain, empty block", sample=partial(_blocks, simulated.advance_block), beside="empty block"
        ),
    ]
    report.notes.append("SimulatedChain has no accounts to transfer between, and no fees, roots, receipts or revert.")
    if not PYTHON.exists():
        report.notes.append("eth-tester is not here: make bench-peers installs it.")
        measure(report, ours + simple, rounds)
        return report
    report.notes.append("eth-tester runs py-evm, in a process of its own; both sign each transfer and check it.")
    with subprocess.Popen((PYTHON, "-P", WORKER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        pairs = (("new", "new chain"), ("transfer", "transfer, mined"), ("empty", "empty block"))
        theirs = [
            Case(name=f"eth-tester, {what}", sample=partial(_ask, worker, name), beside=what) for name, what in pairs
        ]
        measure(report, ours + simple + theirs, rounds)
        worker.communicate()
    return report


def _simulated() -> None:
    for _ in range(NEW):
        SimulatedChain()


def _transfers(chain: LocalChain) -> float:
    sender, receiver = chain.accounts[:2]

    def send() -> None:
        for _ in range(TRANSFERS):
            chain.transfer(receiver, 1, sender=sender)

    return timed(send, TRANSFERS)


def _blocks(build: Callable[[], object]) -> float:
    def blocks() -> None:
        for _ in range(EMPTY_BLOCKS):
            build()

    return timed(blocks, EMPTY_BLOCKS)


def _ask(worker: "subprocess.Popen[str]", name: str) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(name + "\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())
