"""Storms of dead timers: under every mechanism a live one of another actor fires in its own block."""

import pytest

from trailboss.testing import LocalChain

SOURCE = """
import pvm_host


def flood(payload):
    count, height, expires_at = (int(part) for part in payload.split(b","))
    for number in range(count):
        pvm_host.schedule_timer_ex(height, b"%d" % number, gas_limit=50_000, expires_at=expires_at or None)


def live(payload):
    pvm_host.schedule_timer_ex(int(payload), b"", gas_limit=50_000)


def handle_timer(payload):
    pvm_host.set_state(b"fired", b"%d" % pvm_host.block_height())
"""
AUCTION = """
import pvm_host


def flood(payload):
    count, height, _ = (int(part) for part in payload.split(b","))
    for number in range(count):
        pvm_host.set_timeout(height, b"%d" % number, pvm_host.self_address(), 50_000)


def live(payload):
    pvm_host.set_timeout(int(payload), b"", pvm_host.self_address(), 50_000)


def handle_timer(payload):
    pvm_host.set_state(b"fired", b"%d" % pvm_host.block_height())
"""
SMALL = {
    "timers.due_examined_max": 10,
    "timers.dead_examined_max": 3,
    "timers.gc_cycles_per_block": 1_000,
    "lane.joined_max": 10,
    "auction.joined_max": 10,
}
DEAD = 120
CBY = 10**9


@pytest.mark.spec("F-75", "L-28")
@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [("fifo", "expired"), ("fifo", "unfunded"), ("lane", "expired"), ("lane", "unfunded"), ("auction", "unfunded")],
)
def test_live_timer_fires_in_its_block_when_a_storm_of_dead_ones_is_due(mechanism: str, kind: str, apart: int) -> None:
    """Twelve times as many dead ones as a block examines or lets join, at its height or at the one before."""
    with LocalChain(mechanism=mechanism, params=SMALL) as chain:
        source = AUCTION if mechanism == "auction" else SOURCE
        storms = [chain.deploy(source, sender=chain.accounts[0]) for _ in range(3)]
        live = chain.deploy(source, sender=chain.accounts[1], value=100 * CBY)
        height = chain.height + 12
        for storm in storms:
            expires_at = height - 3 if kind == "expired" else 0
            payload = b"%d,%d,%d" % (DEAD // 3, height, expires_at)
            storm.call("flood", payload, sender=chain.accounts[0], check=True)
        live.call("live", b"%d" % (height + apart), sender=chain.accounts[1], check=True)
        chain.advance_to(height + apart)
        assert live.storage[b"fired"] == b"%d" % (height + apart)
        assert len(chain.timers()) > DEAD // 2
        ends = {"expired": "TimerExpired", "unfunded": "TimerCancelledInsufficientFunds"}[kind]
        if mechanism != "auction":  # There an unfunded timer waits for money.
            chain.advance_to(height + DEAD)
            assert (len(chain.events(ends)), chain.timers()) == (DEAD, [])


@pytest.mark.spec("F-75", "F-56")
def test_dead_timer_fires_after_all_when_it_is_extended_before_its_height() -> None:
    """It lies with the expired from the moment at which it is scheduled, and comes back."""
    extend = SOURCE + "\n\ndef extend(payload):\n    pvm_host.extend_timer(payload, pvm_host.block_height() + 50)\n"
    with LocalChain() as chain:
        actor = chain.deploy(extend, sender=chain.accounts[0], value=100 * CBY)
        height = chain.height + 9
        actor.call("flood", b"1,%d,%d" % (height, height - 2), sender=chain.accounts[0], check=True)
        [timer] = chain.timers()
        assert timer.will_expire_unfired
        chain.advance_to(height - 1)
        actor.call("extend", bytes(timer.timer_id), sender=chain.accounts[0], check=True)
        assert actor.storage[b"fired"] == b"%d" % height
