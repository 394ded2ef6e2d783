"""Recurring timers under crowds, halts, failures and pauses: phase, no slot twice, and every slot accounted for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.integration.recurring import CBY, CROWD, NARROW, call, deploy_planner, record
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Event

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("mine"), st.integers(1, 12)),
        st.tuples(st.just("crowd"), st.integers(1, 12)),
        st.tuples(st.just("outage"), st.integers(1, 30)),
        st.tuples(st.just("break"), st.booleans()),
        st.tuples(st.just("pause"), st.integers(1, 12)),
    ),
    min_size=2,
    max_size=8,
)
GRIDS = st.fixed_dictionaries(
    {
        "blocks": st.integers(1, 9),
        "overlap": st.sampled_from(["skip", "queue"]),
        "catch_up": st.sampled_from(["one", "all", "none"]),
        "attempts": st.integers(1, 3),
        "backoff": st.integers(1, 3),
    }
)
DRIFTS = st.fixed_dictionaries(
    {
        "blocks": st.integers(1, 9),
        "align": st.just("drift"),
        "attempts": st.integers(1, 2),
        "backoff": st.integers(1, 3),
    }
)


@contextmanager
def lived(
    mechanism: str, terms: dict[str, Any], steps: list[tuple[str, Any]]
) -> Iterator[tuple[LocalChain, ActorHandle, int]]:
    """Open a chain on which a planner has lived through steps, with the height at which its schedule began."""
    with LocalChain(mechanism=mechanism, params=NARROW) as chain:
        planner = deploy_planner(chain)
        crowd = chain.deploy(CROWD, sender=chain.accounts[1], value=100_000 * CBY)
        call(chain, planner, "plan", **terms)
        start = chain.height
        for step in steps:
            take(chain, planner, crowd, step)
        yield chain, planner, start
        (timer,) = planner.timers()
        assert timer.timer_id.hex() == record(planner)["timer_id"]
        chain.check_invariants()


def take(chain: LocalChain, planner: ActorHandle, crowd: ActorHandle, step: tuple[str, Any]) -> None:
    """Do one thing that may make fires late or fail."""
    kind, value = step
    if kind == "mine":
        chain.mine(value)
    elif kind == "crowd":
        crowd.call("come", b"%d" % value, sender=chain.accounts[1], check=True)
    elif kind == "break":
        planner.call("breaks", b"1" if value else b"0", sender=chain.accounts[0], check=True)
    elif kind == "pause":
        call(chain, planner, "halts")
        chain.mine(value)
        call(chain, planner, "goes_on")
    else:
        for timer in planner.timers():
            until = chain.height + 1 + value
            if chain.height + 1 < timer.height < until:
                chain.hold(timer.timer_id, until)
        chain.mine(value)


def ends(events: list[Event]) -> list[int]:
    """Return the slots that have come to an end by a run, in order."""
    return [event.data["slot"] for event in events if event.data["outcome"] in ("ok", "failed")]


@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
@settings(max_examples=25)
@example(  # a slot that comes while an earlier one is tried again, and again
    terms={"blocks": 1, "overlap": "skip", "catch_up": "one", "attempts": 3, "backoff": 1},
    steps=[("break", True), ("mine", 1)],
)
@given(terms=GRIDS, steps=STEPS)
def test_grid_keeps_its_phase_and_counts_each_slot_once(
    mechanism: str, terms: dict[str, Any], steps: list[tuple[str, Any]]
) -> None:
    """Whatever comes late or fails: a slot is run, missed, skipped, failed, or still to come."""
    with lived(mechanism, terms, steps) as (chain, planner, start):
        blocks, found = terms["blocks"], record(planner)
        events = chain.events("schedule.run")

        assert found["start"] == start
        assert all((event.data["slot"] - start) % blocks == 0 for event in events)
        assert all(event.block_height - event.data["slot"] == event.data["late"] for event in events)
        assert len({*ends(events)}) == len(ends(events))
        worked = [int(event.data) for event in chain.events("worked")]
        assert worked == sorted({*worked})
        tally = [len([event for event in events if event.data["outcome"] == each]) for each in ("ok", "failed")]
        assert [found["ok"], found["failed"]] == tally
        assert found["ok"] == len(worked)
        for count in ("missed", "skipped"):
            assert found[count] == sum(event.data.get(count, 0) for event in events)
        passed = (found["slot"] - start) // blocks - 1
        assert passed == found["ok"] + found["failed"] + found["missed"] + found["skipped"]


@pytest.mark.parametrize("mechanism", ["fifo", "lane"])
@settings(max_examples=25)
@given(terms=DRIFTS, steps=STEPS)
def test_drift_counts_from_each_run_and_runs_no_slot_twice(
    mechanism: str, terms: dict[str, Any], steps: list[tuple[str, Any]]
) -> None:
    """The next slot is a period after the block in which the last one ended, unless a pause lies between."""
    with lived(mechanism, terms, steps) as (chain, planner, _):
        found = record(planner)
        events = chain.events("schedule.run")
        ended = [event for event in events if event.data["outcome"] in ("ok", "failed")]

        assert len({*ends(events)}) == len(ends(events))
        assert found["missed"] == 0
        if not any(kind == "pause" for kind, _ in steps):
            following = [event.data["slot"] for event in ended[1:]]
            assert [event.block_height + terms["blocks"] for event in ended][: len(following)] == following
        assert found["ok"] + found["failed"] == len(ended)
