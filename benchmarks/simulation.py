"""Simulations beside what they simulate, and forecasts by the fire."""

from benchmarks.measure import Case, Report, measure, timed
from trailboss.testing import ActorHandle, LocalChain

CALLS = 100
TIMERS = 200
BLOCKS = 100
CBY = 10**9
WORKER = """
import pvm_host

def arm(payload):
    for number in range(200):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 2 + number % 5, b"%d" % number, gas_limit=100_000)

def handle_timer(payload):
    pvm_host.set_state(payload, b"x")
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 5, payload, gas_limit=100_000)

def add(payload):
    total = int(pvm_host.get_state(b"total") or b"0")
    for number in range(500):
        total += number
    pvm_host.set_state(b"total", b"%d" % total)
"""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    what = f"a call in a block of its own, and {BLOCKS} blocks of {TIMERS} timers that come again"
    report = Report(f"Simulations: {what}", "one call or fire")
    cases = []
    for mechanism in ("fifo", "auction"):
        chain = LocalChain(mechanism=mechanism)
        actor = chain.deploy(WORKER, sender=chain.accounts[0], value=10_000 * CBY)
        cases += _calls(actor, f"{mechanism}: ")
    crowded = LocalChain()
    worker = crowded.deploy(WORKER, sender=crowded.accounts[0], value=100_000 * CBY)
    worker.call("arm", sender=crowded.accounts[0], cycles_limit=9_000_000, check=True)
    fires = len(crowded.forecast(BLOCKS).timers)

    def mine() -> None:
        mark = crowded.snapshot()
        crowded.mine(BLOCKS)
        crowded.revert(mark)

    # Going back is part of it, as throwing away is of the other.
    mined = "mined, and back"
    cases += [
        Case(name=mined, sample=lambda: timed(mine, fires)),
        Case(name="forecast", sample=lambda: timed(lambda: crowded.forecast(BLOCKS), fires), beside=mined),
    ]
    measure(report, cases, rounds)
    return report


def _calls(actor: ActorHandle, prefix: str) -> list[Case]:
    chain, real = actor.chain, f"{prefix}real"

    def calls() -> None:
        for _ in range(CALLS):
            actor.call("add", sender=chain.accounts[1], check=True)

    def simulations() -> None:
        for _ in range(CALLS):
            actor.simulate("add", sender=chain.accounts[1])

    return [
        Case(name=real, sample=lambda: timed(calls, CALLS)),
        Case(name=f"{prefix}simulated", sample=lambda: timed(simulations, CALLS), beside=real, ratio_max=1.2),
    ]
