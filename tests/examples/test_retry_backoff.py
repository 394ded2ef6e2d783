"""Retry with backoff: an actor that calls another one until it answers, or gives up."""

import json

import pytest

CBY = 10**9

# Answers from block 10 on.
SLEEPER = """
import pvm_host

def take(payload):
    if pvm_host.block_height() < 10:
        raise ValueError("come back later")
    pvm_host.set_state(b"taken", payload)
"""

ENDLESS = """
def take(payload):
    while True:
        pass
"""


@pytest.fixture
def courier(chain):
    """A courier of the first account."""
    return chain.deploy("examples/actors/retry_backoff.py", sender=chain.accounts[0], value=100 * CBY)


def deliver(chain, courier, target):
    """Send a parcel; the block in which it was sent."""
    job = {"target": str(target.address), "handler": "take", "payload": "parcel"}
    return courier.call("deliver", json.dumps(job).encode(), sender=chain.accounts[0], check=True).block_height


def told(chain):
    """Return what the courier told: (blocks since ``since``, name, attempt)."""
    return [
        (event.block_height, event.name, json.loads(event.data)["attempt"])
        for event in chain.events()
        if event.name.startswith("delivery.")
    ]


def test_courier_waits_twice_as_long_when_an_attempt_fails(chain, courier):
    """Attempts 1, 3 and 7 blocks after the order; the third one finds the target awake."""
    sleeper = chain.deploy(SLEEPER, sender=chain.accounts[1])
    sent = deliver(chain, courier, sleeper)

    chain.mine(30)

    assert told(chain) == [
        (sent + 1, "delivery.delayed", 1),
        (sent + 3, "delivery.delayed", 2),
        (sent + 7, "delivery.done", 3),
    ]
    assert sleeper.storage[b"taken"] == b"parcel"
    assert courier.timers() == []


def test_courier_gives_up_when_the_last_attempt_fails(chain, courier):
    """Nobody is at that address, and there is nobody after four attempts either."""
    nobody = chain.accounts[7]
    sent = deliver(chain, courier, nobody)

    chain.mine(30)

    assert [step[2] for step in told(chain)] == [1, 2, 3, 4]
    assert told(chain)[-1] == (sent + 15, "delivery.failed", 4)
    assert courier.timers() == []


def test_courier_survives_when_the_target_never_returns(chain, courier):
    """The call has a limit of its own, and what is left of the fire suffices to go on."""
    endless = chain.deploy(ENDLESS, sender=chain.accounts[1])
    deliver(chain, courier, endless)

    chain.mine(1)

    assert [step[1] for step in told(chain)] == ["delivery.delayed"]
    assert len(courier.timers()) == 1


def test_courier_stays_when_a_stranger_sends_it(chain, courier):
    """The courier pays for its attempts, so its deployer decides what they are for."""
    receipt = courier.call("deliver", b"{}", sender=chain.accounts[5])

    assert receipt.error.context["exception_message"] == "only the deployer may send this courier"
    assert courier.timers() == []
