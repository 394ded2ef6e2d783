"""Recurring timers of `trailboss.sdk`: phase, late fires, failures, changes, pauses and ends. Decision: D-115."""

import json
from pathlib import Path

import pytest

from tests.integration.recurring import CBY, PLANNER, call, deploy_planner, record, runs
from trailboss.model.transactions import CancelTimer, UpgradeActor
from trailboss.testing import ActorHandle, LocalChain

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")


@pytest.fixture
def planner(chain: LocalChain) -> ActorHandle:
    return deploy_planner(chain)


def hold(chain: LocalChain, planner: ActorHandle, until: int) -> None:
    """Let the waiting fire come late."""
    chain.hold(planner.timers()[0].timer_id, until)


def test_grid_keeps_its_phase_and_drift_counts_from_each_fire(chain: LocalChain, planner: ActorHandle) -> None:
    """One fire is three blocks late: the grid's next is on time, that of the other three blocks later."""
    call(chain, planner, "plan", name="grid", blocks=10)
    call(chain, planner, "plan", name="drift", blocks=10, align="drift")
    grid, drift = (record(planner, name)["slot"] for name in (b"grid", b"drift"))
    for timer in planner.timers():
        chain.hold(timer.timer_id, timer.height + 3)

    chain.advance_to(40)

    found = {
        name: [each for each in chain.events("schedule.run") if each.data["name"] == name] for name in ("grid", "drift")
    }
    assert [each.data["slot"] for each in found["grid"]] == [grid, grid + 10, grid + 20]
    assert [each.data["late"] for each in found["grid"]] == [3, 0, 0]
    assert [each.block_height for each in found["drift"]] == [drift + 3, drift + 13, drift + 23]


def test_start_puts_the_grid_anywhere(chain: LocalChain, planner: ActorHandle) -> None:
    """A start in the past counts as well: multiples of 25 from 0 on."""
    assert call(chain, planner, "plan", blocks=25, start=0) == b"\x18\x19"
    assert call(chain, planner, "plan", name="later", blocks=25, start=60) == b"\x18\x3c"


@pytest.mark.parametrize(
    ("catch_up", "expected", "missed"),
    [
        ("one", [(47, 42, "ok"), (52, 52, "ok")], 3),
        ("all", [(47, 12, "ok"), (48, 22, "ok"), (49, 32, "ok"), (50, 42, "ok"), (52, 52, "ok")], 0),
        ("none", [(47, 42, "missed"), (52, 52, "ok")], 4),
    ],
)
def test_overdue_slots_are_run_once_each_or_not_at_all(
    chain: LocalChain, planner: ActorHandle, catch_up: str, expected: list[tuple[int, int, str]], missed: int
) -> None:
    """Slots 12 to 42 are overdue when the fire of 12 comes in block 47; none is lost in silence."""
    chain.advance_to(1)
    call(chain, planner, "plan", blocks=10, catch_up=catch_up)
    hold(chain, planner, 47)

    chain.advance_to(55)

    assert runs(chain) == expected
    assert record(planner)["missed"] == missed
    assert sum(each.data["missed"] for each in chain.events("schedule.run")) == missed


@pytest.mark.parametrize(
    ("overlap", "expected", "skipped"),
    [
        (
            "skip",
            [(12, 12, "retried"), (16, 12, "retried"), (24, 22, "skipped"), (24, 12, "ok"), (32, 32, "ok")],
            1,
        ),
        ("queue", [(12, 12, "retried"), (16, 12, "retried"), (24, 12, "ok"), (25, 22, "ok"), (32, 32, "ok")], 0),
    ],
)
def test_slot_that_comes_while_another_is_tried_again_is_skipped_or_queued(
    chain: LocalChain, planner: ActorHandle, overlap: str, expected: list[tuple[int, int, str]], skipped: int
) -> None:
    """Backoff of 4, then 8: the third attempt of slot 12 comes after slot 22."""
    call(chain, planner, "plan", blocks=10, attempts=3, backoff=4, overlap=overlap)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(17)
    planner.call("breaks", b"0", sender=chain.accounts[0], check=True)

    chain.advance_to(33)

    assert runs(chain) == expected
    assert record(planner)["skipped"] == skipped


def test_handler_that_fails_does_not_end_the_schedule(chain: LocalChain, planner: ActorHandle) -> None:
    """Its frame is rolled back, the fire is not; the event has the reason, and the next slot runs."""
    call(chain, planner, "plan", blocks=10)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(13)
    planner.call("breaks", b"0", sender=chain.accounts[0], check=True)
    chain.advance_to(23)

    assert runs(chain) == [(12, 12, "failed"), (22, 22, "ok")]
    assert chain.events("schedule.run")[0].data["why"] == "E1210 pvm_error: ValueError: slot 12 is broken"
    assert {receipt.status for receipt in chain.receipts(origin="timer")} == {"ok"}
    assert [record(planner)[count] for count in ("ok", "failed")] == [1, 1]


def test_handler_that_uses_up_the_cells_of_its_fire_is_counted_by_the_next_one(
    chain: LocalChain, planner: ActorHandle
) -> None:
    """Nothing can be written in such a fire; the schedule goes on all the same."""
    call(chain, planner, "plan", blocks=10, handler="hoard", attempts=3)

    chain.advance_to(33)

    assert [(event.data["slot"], event.data["why"]) for event in chain.events("schedule.run")] == [
        (12, "used up the cells of its fire"),
        (22, "used up the cells of its fire"),
    ]
    # The third is in the record when its successor fires.
    assert [record(planner)[count] for count in ("ok", "failed", "slot")] == [1, 2, 42]


def test_slots_that_came_before_a_second_attempt_are_skipped_once_however_it_ends(
    chain: LocalChain, planner: ActorHandle
) -> None:
    """Slot 12 ends in block 27, after slot 22: it fails again, is tried a third time, or uses up its cells."""
    call(chain, planner, "plan", blocks=10, handler="hoard", attempts=3, backoff=15)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(30)
    assert runs(chain) == [(12, 12, "retried"), (27, 12, "retried")]
    assert record(planner)["skipped"] == 0

    planner.call("breaks", b"0", sender=chain.accounts[0], check=True)
    chain.advance_to(60)
    call(chain, planner, "plan", blocks=10, handler="hoard", attempts=3, backoff=15)

    assert runs(chain)[2:] == [(61, 12, "failed"), (61, 52, "skipped")]
    assert [record(planner)[count] for count in ("ok", "failed", "skipped", "slot")] == [0, 1, 4, 62]


def test_same_call_changes_nothing_and_another_one_changes_the_schedule(
    chain: LocalChain, planner: ActorHandle
) -> None:
    """The same terms write nothing; another handler keeps the phase; another period counts from now on."""
    call(chain, planner, "plan", blocks=10)
    (first,) = planner.timers()

    same = planner.call("plan", json.dumps({"blocks": 10}).encode(), sender=chain.accounts[0], check=True)
    assert same.events == ()
    assert planner.timers() == [first]

    call(chain, planner, "plan", blocks=10, gas_limit=100_000)
    (second,) = planner.timers()
    assert (second.height, second.gas_limit) == (first.height, 100_000)

    call(chain, planner, "plan", blocks=7)
    (third,) = planner.timers()
    assert third.height == chain.height + 7


def test_slots_that_came_in_a_pause_are_skipped_and_counted(chain: LocalChain, planner: ActorHandle) -> None:
    """The grid keeps its phase."""
    call(chain, planner, "plan", blocks=10)
    call(chain, planner, "halts")
    assert planner.timers() == []
    chain.advance_to(35)
    call(chain, planner, "goes_on")
    chain.advance_to(43)

    assert runs(chain) == [(36, 32, "skipped"), (42, 42, "ok")]
    assert chain.events("schedule.run")[0].data["why"] == "the schedule was paused"
    assert record(planner)["skipped"] == 3


def test_stop_ends_a_schedule_from_outside_and_from_its_own_run(chain: LocalChain, planner: ActorHandle) -> None:
    """Nothing of it stays, and its name is free."""
    before = planner.storage
    call(chain, planner, "plan", blocks=10)
    chain.advance_to(15)
    assert call(chain, planner, "ends") == b"\x01"
    assert (planner.timers(), planner.storage) == ([], before)
    assert call(chain, planner, "ends") == b""

    call(chain, planner, "plan", blocks=5, handler="ends_itself")
    chain.advance_to(40)
    assert (planner.timers(), planner.storage) == ([], before)
    assert runs(chain) == [(12, 12, "ok"), (16, 22, "stopped"), (23, 28, "stopped"), (23, 23, "ok")]


@pytest.mark.parametrize(
    ("handler", "fields", "why", "outcomes"),
    [
        ("plan", {"blocks": 7}, "every() has set other terms", [(12, "failed"), (22, "skipped")]),
        ("ends", {}, "stop() has ended the schedule", [(12, "failed"), (22, "skipped"), (32, "stopped")]),
    ],
)
def test_other_terms_and_an_end_leave_an_event_of_each_slot_that_they_end(
    planner: ActorHandle, handler: str, fields: dict[str, int], why: str, outcomes: list[tuple[int, str]]
) -> None:
    """Slot 12 is tried again until 27, and slot 22 comes meanwhile: the one fails, the other is skipped."""
    chain = planner.chain
    call(chain, planner, "plan", blocks=10, attempts=2, backoff=15)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(25)

    call(chain, planner, handler, **fields)

    events = [event.data for event in chain.events("schedule.run")[1:]]
    assert [(each["slot"], each["outcome"]) for each in events] == outcomes
    assert {each["why"] for each in events} == {why}
    assert events[1]["skipped"] == 1


def test_run_that_used_up_its_cells_is_counted_when_the_schedule_ends(chain: LocalChain, planner: ActorHandle) -> None:
    """No other fire comes that could do it."""
    call(chain, planner, "plan", blocks=10, handler="hoard")
    chain.advance_to(13)

    assert call(chain, planner, "ends") == b"\x00"
    assert runs(chain) == [(14, 12, "failed"), (14, 22, "stopped")]


def test_failure_that_mentions_a_code_is_tried_again(chain: LocalChain) -> None:
    """Only the chain's own words about cells mean that the fire can write no more."""
    source = PLANNER.replace("is broken", "is like E1006")
    planner = chain.deploy(source, sender=chain.accounts[0], value=100_000 * CBY)
    call(chain, planner, "plan", blocks=10, attempts=2)
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    chain.advance_to(13)

    assert runs(chain) == [(12, 12, "retried"), (13, 12, "failed")]


def test_fire_whose_record_is_gone_says_so(chain: LocalChain, planner: ActorHandle) -> None:
    """An actor can delete its slots by itself."""
    call(chain, planner, "plan", blocks=10)
    chain.set_storage(planner, b"__schedule:job", None)
    chain.advance_to(13)

    (event,) = chain.events("schedule.run")
    assert (event.data["outcome"], event.data["why"]) == ("stopped", "the slot with its record is gone")
    assert planner.timers() == []


def test_schedule_whose_timer_the_chain_has_removed_comes_back_by_the_same_call(
    chain: LocalChain, planner: ActorHandle
) -> None:
    """Once a whole period is over; what came meanwhile is caught up."""
    call(chain, planner, "plan", blocks=10)
    chain.system(CancelTimer(planner.timers()[0].timer_id), check=True)
    chain.advance_to(20)
    call(chain, planner, "plan", blocks=10)
    assert planner.timers() == []
    chain.advance_to(34)
    call(chain, planner, "plan", blocks=10)
    chain.advance_to(43)

    assert runs(chain) == [(36, 32, "ok"), (42, 42, "ok")]
    assert record(planner)["missed"] == 2


def test_live_timer_and_counts_stay_when_the_code_is_replaced(chain: LocalChain, planner: ActorHandle) -> None:
    """A handler that the new code lacks fails and is recorded; the schedule goes on."""
    call(chain, planner, "plan", blocks=10)
    chain.advance_to(13)
    chain.system(UpgradeActor(planner.address, PLANNER.replace("def work(", "def labour(").encode()), check=True)
    chain.advance_to(23)
    call(chain, planner, "plan", blocks=10, handler="labour")
    chain.advance_to(33)

    assert runs(chain) == [(12, 12, "ok"), (22, 22, "failed"), (32, 32, "ok")]
    assert "handler 'work' is not defined" in chain.events("schedule.run")[1].data["why"]


def test_retry_runs_once_more_until_it_ends_well(chain: LocalChain, planner: ActorHandle) -> None:
    """Attempts 1, 3 and 7 blocks after the call."""
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    call(chain, planner, "retries", handler="once", attempts=3, backoff=2)
    began = chain.height
    chain.advance_to(began + 5)
    planner.call("breaks", b"0", sender=chain.accounts[0], check=True)
    chain.advance_to(began + 12)

    found = [(event.block_height - began, event.data["outcome"]) for event in chain.events("retry.run")]
    assert found == [(1, "retried"), (3, "retried"), (7, "ok")]
    assert [event.data for event in chain.events("done")] == [b"parcel"]


def test_retry_gives_up_after_its_last_attempt(chain: LocalChain, planner: ActorHandle) -> None:
    """With the reason in each event."""
    planner.call("breaks", b"1", sender=chain.accounts[0], check=True)
    call(chain, planner, "retries", handler="once", attempts=2)
    chain.mine(9)

    found = [(event.data["attempt"], event.data["outcome"]) for event in chain.events("retry.run")]
    assert found == [(1, "retried"), (2, "failed")]
    assert planner.timers() == []


def test_reschedule_moves_a_timer_and_gives_it_another_id(chain: LocalChain, planner: ActorHandle) -> None:
    """`handle_timer` gets what is neither a schedule's nor a retry's."""
    call(chain, planner, "moves")
    (timer,) = planner.timers()
    assert (timer.height, timer.gas_limit) == (chain.height + 9, 50_000)
    chain.mine(10)
    assert [event.data for event in chain.events("other")] == [b"plain"]


def test_dispatch_is_refused_to_strangers(chain: LocalChain, planner: ActorHandle) -> None:
    """Anyone can call a handler by name, and a timer's payload is public."""
    call(chain, planner, "plan", blocks=10)
    before = planner.storage

    receipt = planner.call("handle_timer", b"\x00EVRYjob", sender=chain.accounts[1])

    assert receipt.error is not None
    assert receipt.error.context["exception_message"] == "only the actor's own timer runs what is scheduled"
    assert planner.storage == before


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"blocks": 0}, "blocks is 0, outside 1..=2592000: a timer lives no longer"),
        ({"blocks": 2_592_001}, "blocks is 2592001, outside 1..=2592000: a timer lives no longer"),
        ({"blocks": 5, "name": ""}, "name '' has 0 bytes, outside 1..=64"),
        ({"blocks": 5, "start": 2_592_003}, "start is 2592003, above 2592002: a timer lives no longer"),
        ({"blocks": 5, "align": "cron"}, "align is 'cron'; it is one of grid, drift"),
        ({"blocks": 5, "overlap": "both"}, "overlap is 'both'; it is one of skip, queue"),
        ({"blocks": 5, "catch_up": "some"}, "catch_up is 'some'; it is one of one, all, none"),
        ({"blocks": 5, "attempts": 17}, "attempts is 17, outside 1..=16"),
        (
            {"blocks": 5, "backoff": 0},
            "backoff is 0, outside 1..=2592000 with attempts=1: a timer lives no longer",
        ),
        (
            {"blocks": 5, "attempts": 16, "backoff": 159},
            "backoff is 159, outside 1..=158 with attempts=16: a timer lives no longer",
        ),
        (
            {"blocks": 5, "gas_limit": 9_000},
            "gas_limit is 9000; a fire needs 20000 cycles at least to record a failure",
        ),
        (
            {"blocks": 5, "align": "drift", "catch_up": "all"},
            "catch_up is 'all', and a schedule that drifts misses no slot; leave it out",
        ),
    ],
)
def test_terms_that_make_no_sense_are_refused(
    chain: LocalChain, planner: ActorHandle, terms: dict[str, object], words: str
) -> None:
    """By name and value; nothing is scheduled."""
    receipt = planner.call("plan", json.dumps(terms).encode(), sender=chain.accounts[0])

    assert receipt.error is not None
    assert receipt.error.context["exception_message"] == words
    assert planner.timers() == []


def test_schedule_of_an_actor_without_money_ends_and_is_revived(chain: LocalChain) -> None:
    """The chain removes the timer of a payer that cannot pay; the call after money has come in starts it again."""
    planner = chain.deploy(PLANNER, sender=chain.accounts[0], value=0)
    call(chain, planner, "plan", blocks=10)
    chain.advance_to(15)
    assert planner.timers() == []
    chain.transfer(planner, 1_000 * CBY, sender=chain.accounts[0], check=True)
    chain.advance_to(24)
    call(chain, planner, "plan", blocks=10)
    chain.mine(1)

    assert [outcome for _, _, outcome in runs(chain)] == ["ok"]


COUNTER = """
import pvm_host
{imports}


class Counter:
    def init(self):
        {start}

    def handle_timer(self, payload):
        {fire}

    def count(self, payload):
        number = int(pvm_host.get_state(b"n") or b"0")
        pvm_host.set_state(b"n", b"%d" % (number + 1))
"""
WAYS = {
    "schedule_timer": ("", "self.again()", "self.count(payload); self.again()"),
    "set_interval": (
        "from cowboy_sdk import runtime",
        "runtime.set_interval(10, 'count')",
        "runtime.dispatch_interval(payload, {'count': self.count})",
    ),
    "every": ("from trailboss.sdk import dispatch, every", "every('count', 10)", "dispatch(payload)"),
}
AGAIN = "\n    def again(self):\n        pvm_host.schedule_timer(pvm_host.block_height() + 10, b'')\n"


@pytest.mark.parametrize("way", WAYS)
def test_page_has_what_a_run_costs(chain: LocalChain, way: str) -> None:
    """The table of docs/how-to/recurring-timers.md, to the hundred cycles."""
    imports, start, fire = WAYS[way]
    source = COUNTER.replace("{imports}", imports).replace("{start}", start).replace("{fire}", fire) + AGAIN
    actor = chain.deploy(source, sender=chain.accounts[0], value=1_000 * CBY)
    chain.advance_to(12)
    (receipt,) = chain.receipts(origin="timer")
    page = (Path(__file__).parents[2] / "docs/how-to/recurring-timers.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `" + way))
    cycles, cells = (int(cell.replace(",", "")) for cell in row.split(" | ")[1:3])

    assert actor.storage[b"n"] == b"1"
    assert abs(receipt.cycles_used - cycles) <= 100
    assert abs(receipt.cells_used - cells) <= 10
