"""Read-only calls: everything may be read, nothing may be changed."""

import pytest

from trailboss.testing import CBY, LocalChain

ACTOR = """
import pvm_host

def init(payload):
    pvm_host.set_state(b"slot", b"kept")
    pvm_host.set_state(b"timer", pvm_host.schedule_timer(pvm_host.block_height() + 50, b""))

def read(payload):
    return pvm_host.get_state(b"slot") + b"%d" % pvm_host.block_height()

def who(payload):
    return pvm_host.context()["sender"]

def nested(payload):
    return pvm_host.call_actor(pvm_host.self_address(), "write", b"", 100_000, 0)

def write(payload):
    pvm_host.set_state(b"slot", b"changed")

def delete(payload):
    pvm_host.delete_state(b"slot")

def schedule(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")

def extend(payload):
    pvm_host.extend_timer(pvm_host.get_state(b"timer"), pvm_host.block_height() + 60)

def cancel(payload):
    pvm_host.cancel_timer(pvm_host.get_state(b"timer"))

def emit(payload):
    pvm_host.emit_event("said", b"")

def send(payload):
    pvm_host.send_message(pvm_host.self_address(), b"")

def pay(payload):
    pvm_host.transfer_balance(b"\\x07" * 20, 1)

def spin(payload):
    while True:
        pass
"""

CHANGES = {
    "write": "set_state",
    "delete": "delete_state",
    "schedule": "schedule_timer",
    "extend": "extend_timer",
    "cancel": "cancel_timer",
    "emit": "emit_event",
    "send": "send_message",
    "pay": "transfer_balance",
}


@pytest.fixture
def actor(chain: LocalChain):
    """An actor with a slot, a timer and money."""
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=100 * CBY)


def test_view_sees_the_next_block_when_it_reads(chain: LocalChain, actor) -> None:
    """It runs as the next block would, and costs what the same frame costs there."""
    answer = actor.view("read")
    assert (answer.return_value, answer.error) == (b"kept2", None)
    receipt = actor.call("read", sender=chain.accounts[0])
    assert receipt.return_value == answer.return_value
    assert receipt.cycles_used == answer.cycles_used + 5_000


def test_view_runs_for_the_account_that_asks_when_one_is_named(chain: LocalChain, actor) -> None:
    """The handler sees the caller; nobody signs and nobody pays."""
    before = chain.balance(chain.accounts[3])
    assert actor.view("who", sender=chain.accounts[3]).return_value == chain.accounts[3].address
    assert chain.balance(chain.accounts[3]) == before


@pytest.mark.parametrize(("handler", "call"), CHANGES.items())
def test_view_is_refused_when_it_would_change_something(chain: LocalChain, actor, handler: str, call: str) -> None:
    """Every call that writes, sends, schedules, says or pays is refused by name, and nothing has changed."""
    before = (chain.state_root, chain.height, chain.chain.timer_count())
    answer = actor.view(handler)
    assert (answer.error.code, answer.error.what) == (1205, f"{call} in a read-only frame of {actor.address}")
    assert (chain.state_root, chain.height, chain.chain.timer_count()) == before
    chain.check_invariants()


def test_view_stays_read_only_when_it_calls_another_frame(actor) -> None:
    """A nested frame inherits it."""
    assert "set_state in a read-only frame" in actor.view("nested").error.what
