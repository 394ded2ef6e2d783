"""What nobody may do: set an actor up twice, speak as the chain, or wake what has expired."""

import pytest

from trailboss.model.events import PROTOCOL_TOPICS
from trailboss.model.transactions import ExtendTimer, SetGovParam, UpdateTimerConfig
from trailboss.testing import CBY, LocalChain, RevertedError

FORGER = """
import pvm_host

def init(payload):
    pvm_host.set_state(b"owner", payload)

def deploy(payload):
    pvm_host.set_state(b"owner", payload)

def emit(payload):
    pvm_host.emit_event(payload.decode(), b"")

def call_init(payload):
    pvm_host.call_actor(pvm_host.self_address(), "init", b"thief", 100_000, 0)

def schedule_init(payload):
    pvm_host.schedule_timer_ex(
        pvm_host.block_height() + 1, b'{"_handler": "init", "_payload": "dGhpZWY="}', gas_limit=50_000
    )
"""

SLEEPER = """
import pvm_host

def init(payload):
    now = pvm_host.block_height()
    first, second = (pvm_host.schedule_timer_ex(now + 3, name, expires_at=now + 2) for name in (b"a", b"b"))
    pvm_host.set_state(b"ids", first + second)

def extend(payload):
    for timer_id in (pvm_host.get_state(b"ids")[:32], pvm_host.get_state(b"ids")[32:]):
        pvm_host.extend_timer(timer_id, pvm_host.block_height() + 100)

def handle_timer(payload):
    pvm_host.set_state(payload, b"fired")
"""


@pytest.fixture
def forger(chain: LocalChain):
    """An actor that tries."""
    return chain.deploy(FORGER, sender=chain.accounts[0], value=100 * CBY, init_payload=b"owner")


@pytest.mark.parametrize("handler", ["init", "deploy"])
def test_creation_handler_is_refused_when_a_transaction_calls_it(chain: LocalChain, forger, handler: str) -> None:
    """Not even the deployer can set an actor up a second time."""
    receipt = forger.call(handler, b"thief", sender=chain.accounts[0])
    assert (receipt.status, receipt.error.code) == ("reverted", 1230)
    assert receipt.error.what == f"{handler} of {forger.address} is called after its creation"
    assert forger.storage[b"owner"] == b"owner"


def test_creation_handler_is_refused_when_an_actor_calls_or_schedules_it(chain: LocalChain, forger) -> None:
    """Neither a call nor a timer is a creation."""
    nested = forger.call("call_init", sender=chain.accounts[0])
    assert "E1230 call_not_permitted" in nested.error.what
    forger.call("schedule_init", sender=chain.accounts[0], check=True)
    chain.mine(1)
    (fire,) = chain.receipts(origin="timer")
    assert (fire.status, fire.error.code, fire.cycles_used) == ("reverted", 1230, 10_000)
    assert forger.storage[b"owner"] == b"owner"


@pytest.mark.parametrize("name", sorted(PROTOCOL_TOPICS))
def test_event_is_refused_when_an_actor_speaks_as_the_chain(chain: LocalChain, forger, name: str) -> None:
    """If an actor could say timer.fired, nobody could believe it."""
    receipt = forger.call("emit", name.encode(), sender=chain.accounts[0])
    assert (receipt.status, receipt.error.code, receipt.events) == ("reverted", 1202, ())
    assert receipt.error.what == f"event name {name} is the chain's own; an actor's has another"


@pytest.mark.spec("F-76", "F-56")
@pytest.mark.trailboss(params={"timers.gc_cycles_per_block": 200})
@pytest.mark.parametrize("by_governance", [False, True])
def test_expired_timer_stays_expired_when_extended_before_it_is_cleared(chain: LocalChain, by_governance: bool) -> None:
    """One of two is cleared a block; the other cannot be woken meanwhile, by its actor or by governance."""
    sleeper = chain.deploy(SLEEPER, sender=chain.accounts[0], value=100 * CBY)
    chain.mine(3)
    (waiting,) = sleeper.timers()
    assert (waiting.deferred_for, len(chain.events("TimerExpired"))) == ("gc_exhausted", 1)
    with chain.one_block():
        if by_governance:
            chain.system(ExtendTimer(waiting.timer_id, chain.height + 50), check=True)
        else:
            sleeper.call("extend", sender=chain.accounts[0], check=True)
    assert [event.timer_id for event in chain.events("TimerExpired")][1:] == [waiting.timer_id]
    assert sleeper.timers() == []
    assert chain.events("timer.fired") == []


RENEWER = """
import pvm_host

def plan(payload):
    height = int(payload)
    for name in (b"removed", b"old"):
        pvm_host.set_state(b"id", pvm_host.schedule_timer_ex(height, name, gas_limit=50_000, expires_at=height - 2))
    pvm_host.schedule_timer_ex(height, b"extend", gas_limit=50_000)

def handle_timer(payload):
    pvm_host.set_state(payload, b"fired")
    if payload == b"extend":
        pvm_host.extend_timer(pvm_host.get_state(b"id"), pvm_host.block_height() + 50)
"""


@pytest.mark.spec("F-76", "F-56", "L-28")
@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
def test_expired_timer_stays_expired_when_a_fire_of_the_same_block_extends_it(mechanism: str) -> None:
    """The budget is for one removal a block: the other waits for the next one, and is no more alive than the first."""
    with LocalChain(mechanism=mechanism, params={"timers.gc_cycles_per_block": 200}) as chain:
        actor = chain.deploy(RENEWER, sender=chain.accounts[0], value=100 * CBY)
        height = chain.height + 6
        actor.call("plan", b"%d" % height, sender=chain.accounts[0], check=True)
        chain.advance_to(height + 10)
        assert actor.storage[b"extend"] == b"fired"
        assert (b"old" in actor.storage, chain.events("timer.extended"), chain.timers()) == (False, [], [])
        assert len(chain.events("TimerExpired")) == 2


def test_expired_timer_is_renewed_when_it_has_not_come_due(chain: LocalChain) -> None:
    """Nothing has classified it yet, so its actor may still renew it in the block in which it comes due."""
    sleeper = chain.deploy(SLEEPER, sender=chain.accounts[0], value=100 * CBY)
    chain.mine(2)
    assert all(timer.will_expire_unfired for timer in sleeper.timers())
    sleeper.call("extend", sender=chain.accounts[0], check=True)
    assert (sleeper.storage[b"a"], sleeper.storage[b"b"]) == (b"fired", b"fired")


@pytest.mark.spec("F-72", "F-74")
def test_lane_cannot_be_lowered_when_the_stored_config_would_not_fit(chain: LocalChain) -> None:
    """The relation holds between what is stored, whichever side moves."""
    chain.system(UpdateTimerConfig(1_000, 1_500_000, 550_000, 10, 5_000_000), check=True)
    lane = SetGovParam(b"system:cip1:lane_timer_cycles", (1_499_999).to_bytes(8, "big"))
    receipt = chain.system(lane)
    assert (receipt.status, receipt.error.code) == ("reverted", 1601)
    assert receipt.error.what == (
        "timers.lane_cycles_per_block = 1499999 is too small: it must be at least timers.max_cycles_per_fire = 1500000"
    )
    assert chain.system(SetGovParam(lane.key, (1_500_000).to_bytes(8, "big"))).ok


def test_block_raises_when_it_closes_over_a_checked_failure(chain: LocalChain, forger) -> None:
    """Within one block ``check`` waits for the block; the block itself stands."""
    with pytest.raises(RevertedError, match="E1223"), chain.one_block():
        forger.call("missing", sender=chain.accounts[0], check=True)
    assert chain.receipts()[-1].status == "reverted"
