"""Lists of timers agree with the chain's own counts, whatever became of the timers."""

from itertools import islice

import pytest

from trailboss.chain.history import History
from trailboss.model.events import TIMER_ENDINGS
from trailboss.testing import ActorHandle, CancelTimer, LocalChain
from trailboss.views.explain.life import events_since, latest_events
from trailboss.views.records import TimerEntry
from trailboss.views.timer_list import TimerFilter, list_timers, match_timer

CBY = 10**9
BUSY = """
import pvm_host

def schedule(payload):
    now = pvm_host.block_height()
    for distance in (1, 2, 2, 40):
        pvm_host.schedule_timer_ex(now + distance, b"", gas_limit=50_000)
    pvm_host.schedule_timer_ex(now + 3, b"", gas_limit=50_000, expires_at=now + 1)
    pvm_host.cancel_timer(pvm_host.schedule_timer(now + 3, b""))

def handle_timer(payload):
    pass
"""


@pytest.fixture
def busy() -> ActorHandle:
    """Return an actor whose timers have ended in three ways, one of several still live."""
    chain = LocalChain()
    busy = chain.deploy(BUSY, sender=chain.accounts[0], value=100 * CBY)
    busy.call("schedule", sender=chain.accounts[0], check=True)
    chain.mine(5)
    return busy


def listed(busy: ActorHandle, **wanted: object) -> list[TimerEntry]:
    """Return the timers that a filter lets pass."""
    return list(list_timers(busy.chain.chain, TimerFilter(**wanted)))


def test_list_agrees_with_the_chain_when_timers_ended_in_every_way(busy: ActorHandle) -> None:
    """Each timer ever scheduled is in the list of all once, one cancelled where it was scheduled included."""
    totals = busy.chain.chain.totals()
    everything = listed(busy, state="all")
    assert len({entry.timer_id for entry in everything}) == len(everything) == totals.scheduled == 6
    for state in sorted(set(TIMER_ENDINGS.values())):
        assert len(listed(busy, state=state)) == getattr(totals, state), state
    assert [entry.state for entry in everything] == ["live", "expired", "fired", "fired", "fired", "cancelled"]
    assert everything[0].tier == "ring"
    assert all((entry.ended_at is None) == (entry.state == "live") for entry in everything)


def test_list_is_filtered_by_height_actor_and_payer(busy: ActorHandle) -> None:
    """Filters go together."""
    entry = listed(busy)[0]
    assert listed(busy, first=entry.height, last=entry.height, actor=busy.address, payer=busy.address) == [entry]
    assert listed(busy, first=entry.height + 1) == listed(busy, last=entry.height - 1) == []
    assert listed(busy, state="all", actor=busy.chain.accounts[0].address) == []
    assert listed(busy, state="due", first=100) == []
    assert [found.height for found in listed(busy, state="fired", first=4)] == [4, 4]


def test_timer_cancelled_by_governance_is_listed_as_its_actors(busy: ActorHandle) -> None:
    """The event is the governance actor's, the timer is not."""
    timer_id = listed(busy)[0].timer_id
    busy.chain.system(CancelTimer(timer_id), check=True)
    entry = listed(busy, state="cancelled")[0]
    assert (entry.timer_id, entry.actor, entry.ended_at) == (timer_id, busy.address, busy.chain.height)


def test_timer_is_found_by_its_first_digits_when_live_or_ended(busy: ActorHandle) -> None:
    """All digits find one; no digits find all."""
    chain = busy.chain.chain
    for entry in listed(busy, state="all"):
        assert match_timer(chain, entry.timer_id.hex()) == [entry.timer_id]
        assert entry.timer_id in match_timer(chain, entry.timer_id.hex()[:2])
    assert len(match_timer(chain, "")) == 6
    assert match_timer(chain, "00" * 32) == []


def test_ended_timers_and_events_are_read_backwards_as_far_as_is_asked(busy: ActorHandle) -> None:
    """However long the chain is: what lies before the last ones is not looked at."""
    for _ in range(20):
        busy.call("schedule", sender=busy.chain.accounts[0], check=True)
        busy.chain.mine(5)
    chain, read = busy.chain.chain, []
    looked_up = chain.blocks.record_at
    everything = listed(busy, state="fired"), list(events_since(chain))[::-1]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(History, "record_at", lambda _, height: read.append(height) or looked_up(height))
        assert list(islice(list_timers(chain, TimerFilter(state="fired")), 3)) == everything[0][:3]
        assert list(islice(latest_events(chain), 3)) == everything[1][:3]
    assert len(read) <= 50 < chain.height  # a timer fires up to 40 blocks after the one that schedules it
    assert list(latest_events(chain)) == everything[1]


def test_reverted_fires_are_told_apart(chain: LocalChain) -> None:
    """A timer whose handler failed has fired, and the list says that the fire reverted."""
    source = BUSY.replace("    pass", "    raise ValueError")
    actor = chain.deploy(source, sender=chain.accounts[0], value=100 * CBY)
    actor.call("schedule", sender=chain.accounts[0], check=True)
    chain.mine(5)
    fired = list(list_timers(chain.chain, TimerFilter(state="fired")))
    assert [entry.reverted for entry in fired] == [True] * 3
    assert not any(entry.reverted for entry in list_timers(chain.chain, TimerFilter(state="expired")))
