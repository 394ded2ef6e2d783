"""The actors of a workload are the same under every mechanism, but for the call that schedules."""

import pytest

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.simulator.sources import DIALECTS, actor_source
from trailboss.simulator.workload import ActorGroup

GROUP = ActorGroup(name="x", funds=0, gas_limit=70_000, work=5, period=9, payload_bytes=3, tip=12, max_fee=40, expiry=6)
TIMEOUT = "pvm_host.set_timeout(pvm_host.self_address(), height, PAYLOAD, 70000, 12 << 96"


def test_every_mechanism_has_a_dialect() -> None:
    """A new mechanism can be compared, or this fails."""
    assert set(DIALECTS) == set(MECHANISMS)


@pytest.mark.parametrize(
    ("mechanism", "call"),
    [
        ("fifo", "pvm_host.schedule_timer(height, PAYLOAD, gas_limit=70000, expires_at=height + 6)"),
        (
            "lane",
            "pvm_host.schedule_timer(height, PAYLOAD, gas_limit=70000, expires_at=height + 6, max_fee_per_cycle="
            'max(40, pvm_host.timer_lane()["basefee_lane_timer"]), max_priority_fee_per_cycle=12)',
        ),
        ("auction", "pvm_host.set_timeout(height, PAYLOAD, pvm_host.self_address(), 70000)"),
        ("globalbox", f"{TIMEOUT}, expiry_height=height + 6)"),
    ],
)
def test_source_differs_in_the_scheduling_call_alone(mechanism: str, call: str) -> None:
    """One line of it is the mechanism's own."""
    lines, others = (actor_source(GROUP, name).splitlines() for name in (mechanism, "fifo"))
    assert lines[-1] == f"    {call}"
    assert lines[:-1] == others[:-1]


def test_source_says_nothing_of_what_a_group_leaves_out() -> None:
    """No expiry is the farthest one, no fee cap is none."""
    group = ActorGroup(name="x", funds=0, gas_limit=70_000)
    calls = {name: actor_source(group, name).splitlines()[-1].strip() for name in DIALECTS}
    assert calls["fifo"] == "pvm_host.schedule_timer(height, PAYLOAD, gas_limit=70000)"
    assert f"max_fee_per_cycle={2**63 - 1}, max_priority_fee_per_cycle=0" in calls["lane"]
    assert "expiry" not in calls["globalbox"]
