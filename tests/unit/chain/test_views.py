"""What people look at: bytes become words, and what cannot be read stays bytes."""

from msgspec.structs import replace

from trailboss.chain.views import event_view, refusal_view, timer_view
from trailboss.codec.canonical import encode_canonical
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32

ACTOR = Address(b"\x01" * 20)
TIMER = Timer(
    version=1,
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
    """Due once its height has passed; deferrals follow from when the first one was; doomed if it expires before."""
    assert (timer_view(TIMER, "ring", 49).tier, timer_view(TIMER, "ring", 50).tier) == ("ring", "due")
    waiting = timer_view(replace(TIMER, deferred_since=50, deferred_for="lane_full"), "ring", 52)
    assert (waiting.deferrals, waiting.deferred_for) == (3, "lane_full")
    fresh = timer_view(TIMER, "ring", 20)
    assert (fresh.deferrals, fresh.deferred_for, fresh.will_expire_unfired) == (0, None, False)
    assert timer_view(replace(TIMER, expires_at=49), "ring", 20).will_expire_unfired
    assert not timer_view(replace(TIMER, expires_at=50), "ring", 20).will_expire_unfired
