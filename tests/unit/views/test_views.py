"""What people look at: bytes become words, and what cannot be read stays bytes."""

import pytest
from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.governance.rules import read_rules
from trailboss.model.configs import MarketKind
from trailboss.model.events import EventRecord
from trailboss.model.timers import ASK_AGENT, NO_FEES, RECORD_VERSION, Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.mechanism.registry import views_of
from trailboss.views.records import TimerView, event_view, refusal_view
from trailboss.views.timer_list import timer_view

ACTOR = Address(b"\x01" * 20)
TIMER = Timer(
    version=RECORD_VERSION,
    actor=bytes(ACTOR),
    height=50,
    timer_id=bytes(32),
    sequence=3,
    handler="handle_timer",
    payload=b"p",
    fee_payer=bytes(ACTOR),
    gas_limit=10,
    access_limit=0,
    expires_at=60,
    schedule_block=7,
)


def view(timer: Timer, now: int, **overrides: int) -> TimerView:
    """Return a timer in the ring as it stands after the block ``now``."""
    paths = {f"lane.{name}": value for name, value in overrides.items()}
    rules = read_rules(load_params(overrides=paths), {}.get, now + 1)
    return timer_view(timer, "ring", rules, views_of("lane" if rules.market.kind is MarketKind.LANE else "fifo"))


def test_event_shows_its_fields_when_its_data_is_canonical_and_its_bytes_when_not() -> None:
    """An actor may put anything into its own events."""
    readable = event_view(EventRecord("a", bytes(ACTOR), encode_canonical({"x": 1})), 4)
    assert (readable.data, readable.emitter, readable.timer_id, readable.block_height) == ({"x": 1}, ACTOR, None, 4)
    raw = event_view(EventRecord("b", bytes(ACTOR), b"\xff\x00", bytes(32)), 4)
    assert (raw.data, raw.timer_id) == (b"\xff\x00", Hash32(bytes(32)))


def test_refusal_reads_like_a_receipt_of_nothing() -> None:
    """No fee, no events, the reason and who was turned away."""
    view = refusal_view(Rejection(RejectionReason.NONCE_MISMATCH, "nonce 3", expected=2), ACTOR, 9)
    assert (view.status, view.ok, view.fee_paid, view.events, view.payer) == ("refused", False, 0, (), ACTOR)
    assert view.error is not None
    assert (view.error.code, view.error.what, view.error.context) == (1002, "nonce 3", {"expected": 2})


def test_timer_shows_how_it_stands_when_it_waits_or_cannot_fire() -> None:
    """Due once its height has passed; every block from then on has deferred it; doomed if it expires before."""
    assert [view(TIMER, now).tier for now in (49, 50)] == ["ring", "due"]
    waiting = view(replace(TIMER, deferred_for="lane_full"), 52)
    assert (waiting.deferrals, waiting.deferred_for) == (3, "lane_full")
    fresh = view(TIMER, 20)
    assert (fresh.deferrals, fresh.deferred_for, fresh.will_expire_unfired) == (0, None, False)
    assert view(replace(TIMER, expires_at=49), 20).will_expire_unfired
    assert not view(replace(TIMER, expires_at=50), 20).will_expire_unfired


def test_timer_shows_its_fees_when_they_are_frozen_and_where_they_come_from_when_not() -> None:
    """Numbers only of what is fixed; an agent or the default say theirs when the timer is due."""
    frozen = view(replace(TIMER, fees=freeze_fees(20_000, 7)), 20)
    assert (frozen.fees, frozen.max_fee_per_cycle, frozen.max_priority_fee_per_cycle) == ("frozen", 20_000, 7)
    asked, default = (view(replace(TIMER, fees=fees), 20) for fees in (ASK_AGENT, NO_FEES))
    assert [(each.fees, each.max_fee_per_cycle) for each in (asked, default)] == [("agent", None), ("default", None)]


@pytest.mark.spec("L-05")
@pytest.mark.parametrize(
    ("lane", "over_cap", "priced_out"),
    [
        ({}, False, False),
        ({"activation_height": 22}, False, False),
        ({"activation_height": 21}, True, True),
        ({"activation_height": 21, "clamps_gas_limit": 1}, False, True),
        ({"activation_height": 7, "clamps_gas_limit": 1}, True, True),
    ],
)
def test_timer_shows_that_it_cannot_compete_when_the_lane_is_active(
    lane: dict[str, int], over_cap: bool, priced_out: bool
) -> None:
    """Over the cap by its gas limit, unless governance holds older ones to it; priced out at a basefee of 10,000."""
    shown = view(replace(TIMER, gas_limit=250_001, fees=freeze_fees(9_999, 0)), 20, **lane)
    assert (shown.over_cap, shown.priced_out) == (over_cap, priced_out)
    fitting = view(replace(TIMER, gas_limit=250_000, fees=freeze_fees(10_000, 0)), 20, **lane)
    assert (fitting.over_cap, fitting.priced_out) == (False, False)
