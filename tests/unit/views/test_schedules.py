"""Recurring timers as people look at them: from an actor's slots and events, which can hold anything."""

import json
from typing import Any

import pytest

from tests.integration.recurring import call, deploy_planner
from trailboss.model.transactions import CancelTimer
from trailboss.primitives.octets import Address
from trailboss.testing import LocalChain
from trailboss.views.records import Event
from trailboss.views.schedules import RunView, all_schedules, runs_of, schedules_of

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")
FORGER = """
import pvm_host


def forge(payload):
    pvm_host.set_state(b"__schedule:" + payload[:4], payload[4:])
"""


def test_schedules_are_listed_by_name_with_what_waits(chain: LocalChain) -> None:
    """One waits, one is paused, one has lost its timer; the height is the waiting timer's own."""
    planner = deploy_planner(chain)
    call(chain, planner, "plan", name="b", blocks=10)
    chain.system(CancelTimer(planner.timers()[0].timer_id), check=True)
    call(chain, planner, "plan", name="c", blocks=20, start=0)
    call(chain, planner, "plan", blocks=5)
    call(chain, planner, "halts")
    chain.hold(planner.timers()[0].timer_id, 33)

    found = list(schedules_of(chain.chain, planner.address))

    assert [(each.name, each.state, each.slot, each.due) for each in found] == [
        ("b", "lost", 12, None),
        ("c", "waiting", 20, 33),
        ("job", "paused", 10, None),
    ]
    assert found == list(all_schedules(chain.chain))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"name": 7}', b"\xff", b'{"name": "' + b"9" * 2_000])
def test_slot_of_another_form_is_no_schedule(chain: LocalChain, content: bytes) -> None:
    """An actor can write what it likes under the prefix."""
    forger = chain.deploy(FORGER, sender=chain.accounts[0])
    forger.call("forge", b"some" + content, sender=chain.accounts[0], check=True)

    assert list(schedules_of(chain.chain, forger.address)) == []


def test_timer_of_another_actor_is_not_taken_for_its_own(chain: LocalChain) -> None:
    """A copied record names a timer that the forger does not own."""
    planner, forger = deploy_planner(chain), chain.deploy(FORGER, sender=chain.accounts[0])
    call(chain, planner, "plan", blocks=10)
    forger.call("forge", b"some" + planner.storage[b"__schedule:job"], sender=chain.accounts[0], check=True)

    (found,) = schedules_of(chain.chain, forger.address)

    assert (found.state, found.due, found.timer_id) == ("lost", None, None)


@pytest.mark.parametrize("data", [b"bytes", "text", ["list"], {}, {"name": "a", "slot": "x", "outcome": "ok"}])
def test_event_of_another_form_is_no_run(data: Any) -> None:
    """Events are an actor's own too."""
    true = {"name": "a", "slot": 7, "outcome": "ok", "late": 2}
    events = [Event("schedule.run", Address(bytes(20)), each, b"", 9, None) for each in (data, true)]

    assert list(runs_of(events)) == [RunView(block_height=9, name="a", slot=7, outcome="ok", late=2)]


def test_record_is_json_that_anyone_can_read(chain: LocalChain) -> None:
    """The slot is documented, so that other tools need nothing of ours."""
    planner = deploy_planner(chain)
    call(chain, planner, "plan", blocks=10)

    content = json.loads(planner.storage[b"__schedule:job"])

    assert content["blocks"] == 10
    assert content["timer_id"] == planner.timers()[0].timer_id.hex()
