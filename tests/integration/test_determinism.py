"""The same blocks whatever the process, the hash seed or the clock of the machine."""

import random
import time

import pytest

from tests.integration.helpers import deploy_puppet, fired_ids, perform, step, totals
from trailboss.testing import LocalChain

PROGRAM = '''
from trailboss.model.transactions import UpdateTimerConfig
from trailboss.testing import LocalChain

CLOCK = """
from cowboy_sdk import actor, public, runtime, timer


@actor
class Clock:
    @public
    def init(self, payload):
        self.storage["ticks"] = 0
        self.storage["seen"] = {"alpha": 1, "beta": 2, "gamma": 3}
        timer.schedule(runtime.get_block_height() + 3, b"", handler="on_tick", gas_limit=300_000)

    @timer
    def on_tick(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1
        timer.schedule(runtime.get_block_height() + 3, b"", handler="on_tick", gas_limit=300_000)


def init(payload):
    return Clock().init(payload)


def on_tick(payload):
    return Clock().on_tick(payload)
"""

PLAIN = """
class Heartbeat:
    def deploy(self):
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"beat")

    def handle_timer(self, payload):
        names = {"one": 1, "two": 2, "three": 3}
        pvm_host.set_state(b"names", ",".join(names).encode())
        pvm_host.set_state(b"draw", pvm_host.randomness(b"domain"))
        pvm_host.emit_event("beat", payload)
        if pvm_host.block_height() % 3 == 0:
            raise ValueError("every third block: %r" % sorted(names))
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"beat")
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 3, b"beat", gas_limit=250_000)
"""

with LocalChain(preset="minimal", params={"timers.lane_cycles_per_block": 600_000}) as chain:
    for source in (CLOCK, PLAIN, CLOCK, PLAIN):
        chain.deploy(source, sender=chain.accounts[0], value=13 * 10**9)
    chain.mine(10)
    chain.system(UpdateTimerConfig(1_000, 400_000, 300_000, 8, 400))
    chain.mine(40)
    chain.check_invariants()
    for block in chain.chain.blocks:
        print(block.height, block.hash, len(block.receipts), len(block.events))
    print(chain.state_root, chain.burned, chain.chain.totals())
    print(sorted(event.name for event in chain.events()))
'''


@pytest.mark.spec("F-80")
@pytest.mark.slow
def test_blocks_are_the_same_when_the_hash_seed_differs(output_under_hash_seed) -> None:
    """SDK actors and plain ones, fires, reverts, deferrals and dry payers: every header under three hash seeds."""
    outputs = [output_under_hash_seed(PROGRAM, seed) for seed in (0, 1, 4242)]
    assert outputs[0] == outputs[1] == outputs[2]
    for name in ("timer.fired", "timer.deferred", "TimerCancelledInsufficientFunds", "beat"):
        assert name in outputs[0]


def history(chain: LocalChain) -> list[object]:
    """Return the hashes of a short history with fires, and its actor's storage."""
    actor = deploy_puppet(chain)
    perform(actor, *(step("schedule_timer", 8 + number // 2, b"%d" % number) for number in range(6)))
    chain.advance_to(14)
    return [[block.hash for block in chain.chain.blocks], dict(actor.storage), fired_ids(chain)]


@pytest.mark.spec("F-82", "F-80")
def test_blocks_are_the_same_when_the_machines_clock_and_dice_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that runs years later, with other random numbers, is the same chain."""
    with LocalChain() as chain:
        expected = history(chain)
    monkeypatch.setattr(time, "time", lambda: 4_102_444_800.0)
    monkeypatch.setattr(time, "time_ns", lambda: 4_102_444_800 * 10**9)
    random.seed(99)
    with LocalChain() as chain:
        assert history(chain) == expected


@pytest.mark.spec("F-82")
def test_timers_meet_the_same_fate_when_blocks_carry_other_timestamps() -> None:
    """Heights decide, not times: with hours between blocks, or none, the same timers fire in the same blocks."""
    fates = []
    for interval in (0, 1, 3_600_000):
        with LocalChain() as chain:
            actor, poor = deploy_puppet(chain), deploy_puppet(chain, value=0)
            for owner in (actor, poor):
                perform(
                    owner,
                    step("schedule_timer", 10, b"tick"),
                    step("schedule_timer_ex", 12, b"late", expires_at=11),
                    *(step("schedule_timer", 13, b"%d" % number) for number in range(5)),
                )
            while chain.height < 20:
                chain.chain.build(timestamp_ms=chain.block().header.timestamp_ms + interval)
            events = [(event.name, event.timer_id, event.block_height, event.data) for event in chain.events()]
            accounts = dict(chain.chain.accounts())
            fates.append((events, accounts, totals(chain)))
    assert fates[0] == fates[1] == fates[2]
    assert fates[0][2] == (14, 6, 6, 2, 0)


@pytest.mark.spec("F-82")
def test_what_an_actor_calls_random_is_the_same_on_every_replay(chain: LocalChain) -> None:
    """It differs by domain, actor and block, and repeats after going back."""
    one, two = deploy_puppet(chain), deploy_puppet(chain)
    mark = chain.snapshot()

    def draws() -> list[bytes]:
        calls = (step("randomness", b"a"), step("randomness", b"b"))
        return [perform(actor, *calls).return_value for actor in (one, two, one)]

    first = draws()
    chain.revert(mark)
    assert draws() == first
    assert len(set(first)) == 3
