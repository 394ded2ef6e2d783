"""What the handler of a live timer comes to as things stand: told before its fire, and leaving no trace."""

import pytest

from trailboss.model.events import TIMER_FIRED
from trailboss.testing import CBY, LocalChain
from trailboss.views import TimerLife
from trailboss.views.mechanism.base import OutlookKind

PAYMENT = 20 * CBY
ACTOR = """
import pvm_host

def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 12, payload, gas_limit=50_000)

def handle_timer(payload):
    if payload == b"raise":
        pvm_host.set_state(b"seen", b"yes")
        raise ValueError("no more")
    if payload == b"loop":
        while True:
            pass
    if payload == b"pay":
        pvm_host.transfer_balance(b"\\x07" * 20, 20 * 10**9 - 1)
    pvm_host.set_state(b"height", str(pvm_host.block_height()).encode())
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")
"""
BOXED = """
import pvm_host

def arm(payload):
    pvm_host.set_timeout(pvm_host.self_address(), pvm_host.block_height() + 12, payload, 50_000)

def watch(payload):
    pvm_host.set_state_watch(pvm_host.self_address(), [pvm_host.self_address()], payload, 50_000)

def handle_timer(payload):
    raise ValueError("no more")
"""
AUCTIONED = """
import pvm_host

def arm(payload):
    pvm_host.set_timeout(pvm_host.block_height() + 12, payload, pvm_host.self_address(), 50_000)

def handle_timer(payload):
    raise ValueError("no more")
"""


def armed(chain: LocalChain, payload: bytes, source: str = ACTOR, call: str = "arm") -> bytes:
    """Return the id of a timer that brings a payload."""
    actor = chain.deploy(source, sender=chain.accounts[0], value=PAYMENT)
    actor.call(call, payload, sender=chain.accounts[0], check=True)
    return chain.timers(actor=actor)[-1].timer_id


def outlook(life: TimerLife) -> str:
    assert life.state == "live"
    return life.outlook


def test_outlook_names_error_and_line_when_handler_raises(chain: LocalChain) -> None:
    """A timer whose handler always raises is not announced as one that fires."""
    timer_id = armed(chain, b"raise")
    life = chain.explain(timer_id)
    assert life.outlook_kind is OutlookKind.REVERTS
    assert outlook(life).startswith("fires and reverts at height 14 as things stand: ")
    assert outlook(life).endswith(
        "; run as things stand, its handler reverts: E1210 pvm_error: ValueError: no more, line 10, in handle_timer"
    )
    assert life.failure is not None
    assert life.failure.slug == "pvm_error"


def test_outlook_names_the_handlers_when_there_is_none_of_that_name(chain: LocalChain) -> None:
    """The actor's code is enough to know."""
    timer_id = armed(chain, b"", ACTOR.replace("def handle_timer", "def handle_time"))
    assert "handler 'handle_timer' is not defined; this actor has: arm, handle_time" in outlook(chain.explain(timer_id))


def test_outlook_says_so_when_handler_exhausts_its_cycles(chain: LocalChain) -> None:
    """The gas limit of the timer counts, not that of a block."""
    assert "E1005 out_of_cycles: " in outlook(chain.explain(armed(chain, b"loop")))


def test_outlook_knows_that_the_reserve_cannot_be_spent_when_handler_pays(chain: LocalChain) -> None:
    """What a fire reserves is held back while the handler runs: the actor cannot pay all that it holds."""
    life = chain.explain(armed(chain, b"pay"))
    assert life.failure is not None
    assert "transfer" in life.failure.what or "balance" in life.failure.what or "holds" in life.failure.what


def test_outlook_says_that_it_fires_when_handler_ends_well(chain: LocalChain) -> None:
    """The handler sees the height at which the timer is due, so that it may schedule from there."""
    timer_id = armed(chain, b"")
    life = chain.explain(timer_id)
    assert outlook(life).startswith("fires at height 14 as things stand: ")
    assert (life.outlook_kind, life.failure) == (OutlookKind.RUNS, None)


def test_trial_agrees_with_the_fire_and_leaves_no_trace(chain: LocalChain) -> None:
    """State, queue and totals are as they were, and the fire then does what the trial said."""
    timer_ids = {payload: armed(chain, payload) for payload in (b"raise", b"loop", b"pay", b"")}
    root, live = chain.state_root, chain.timers()
    failures = {payload: chain.explain(timer_id).failure for payload, timer_id in timer_ids.items()}
    assert (chain.state_root, chain.timers()) == (root, live)
    chain.check_invariants()
    chain.mine(20)
    receipts = {receipt.timer_id: receipt for receipt in chain.receipts(origin="timer")}
    assert {payload: receipts[timer_id].error for payload, timer_id in timer_ids.items()} == failures
    chain.check_invariants()


@pytest.mark.parametrize(
    ("mechanism", "source", "call"),
    [
        ("lane", ACTOR, "arm"),
        ("auction", AUCTIONED, "arm"),
        ("globalbox", BOXED, "arm"),
        ("globalbox", BOXED, "watch"),
    ],
)
def test_outlook_tells_of_the_handler_under_every_mechanism(mechanism: str, source: str, call: str) -> None:
    """Whatever the timer competes or waits for, its handler is tried."""
    with LocalChain(mechanism=mechanism, preset="minimal") as chain:
        life = chain.explain(armed(chain, b"raise", source, call))
        assert "its handler reverts: E1210 pvm_error: ValueError: no more, line " in outlook(life)


def test_story_of_a_reverted_fire_has_its_line(chain: LocalChain) -> None:
    """What the receipt knows is told: handler and line."""
    timer_id = armed(chain, b"raise")
    chain.advance_to(14)
    life = chain.explain(timer_id)
    assert life.heading().endswith(": fired and reverted")
    assert "fired and reverted (E1210 pvm_error: ValueError: no more, line 10, in handle_timer)" in str(life)


def test_events_of_a_handler_have_the_timer_of_its_fire(chain: LocalChain) -> None:
    """What a handler emits in a fire belongs to that timer, in the list of events and in the receipt."""
    timer_id = armed(chain, b"", ACTOR.replace('pvm_host.set_state(b"height"', 'pvm_host.emit_event("tick"'))
    chain.advance_to(14)
    [event] = chain.events("tick")
    assert event.timer_id == timer_id
    [receipt] = [each for each in chain.receipts(origin="timer") if each.timer_id == timer_id]
    assert {each.timer_id for each in receipt.events if each.name in ("tick", TIMER_FIRED)} == {timer_id}
    assert chain.explain(event.timer_id).state == "fired"


def test_explain_says_what_it_takes_when_it_is_given_nothing(chain: LocalChain) -> None:
    """An event of a call has no timer."""
    with pytest.raises(TypeError, match="give a timer's id"):
        chain.explain(None)  # type: ignore[arg-type]
