"""A chain proves its state after the head, and names the timer that an id stands for."""

from collections.abc import Iterator

import pytest

from trailboss.chain.proofs import (
    AccountSubject,
    SlotSubject,
    StorageSubject,
    TimersSubject,
    TimerSubject,
    prove,
    timer_subject,
)
from trailboss.primitives.errors import ProofError, Rejection
from trailboss.state.store import Store
from trailboss.testing import LocalChain

SOURCE = """
import pvm_host

def start(payload):
    pvm_host.set_state(b"name", payload)
    return pvm_host.schedule_timer(9, b"")

def handle_timer(payload):
    pass
"""


@pytest.fixture
def local() -> Iterator[LocalChain]:
    with LocalChain(preset="minimal") as chain:
        yield chain


@pytest.mark.spec("Q-09", "F-04")
def test_chain_proves_what_it_shows_when_an_actor_stores_and_schedules(local: LocalChain) -> None:
    """Balance, slot, timer and the timers of some heights, before the fire and after it."""
    actor = local.deploy(SOURCE, sender=local.accounts[0], value=10**11)
    actor.call("start", b"x", sender=local.accounts[0], check=True)
    store: Store = local.chain.store
    (view,) = local.timers()
    before = local.state_root

    account = prove(store, AccountSubject(actor.address)).verify(before)
    assert account.records == (local.chain.account(actor.address),)
    assert prove(store, StorageSubject(actor.address)).verify(before).records[0].value == b"x"
    assert prove(store, SlotSubject(actor.address, b"name")).verify(before).is_present
    timers = prove(store, TimersSubject(0, 9)).verify(before)
    assert timers.records == (local.chain.timer(view.timer_id),)
    subject = timer_subject(store, view.timer_id)
    assert subject == TimerSubject(9, view.timer_id)
    proof = prove(store, subject)
    assert proof.verify(before).is_present

    local.advance_to(9)
    with pytest.raises(ProofError):
        proof.verify(local.state_root)
    gone = prove(store, timer_subject(store, view.timer_id, 9)).verify(local.state_root)
    assert str(gone) == f"no timer {view.timer_id} is due at height 9"


def test_timer_is_refused_when_its_height_is_not_known(local: LocalChain) -> None:
    """The id of a timer that is gone does not tell under which height to look."""
    with pytest.raises(Rejection, match="no live timer has the id 0x0000") as refused:
        timer_subject(local.chain.store, bytes(32))
    assert refused.value.reason.slug == "not_found"
    with pytest.raises(Rejection, match="Hash32 must be 32 bytes"):
        timer_subject(local.chain.store, b"short")
