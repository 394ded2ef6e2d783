"""`trailboss.sdk` for the auction and for Globalbox, as actors use it."""

from fractions import Fraction

import pytest

import trailboss.sdk
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate

FACTS = {
    "trigger_block_height": 95,
    "current_block_height": 100,
    "basefee_cycle": 10_000,
    "basefee_cell": 20_000,
    "last_block_cycle_usage": 5_000_000,
    "owner_actor_balance": 10**24,
}
WIDEST = dict.fromkeys(FACTS, 2**127 - 1)
PREAMBLE = """
from trailboss.sdk import (
    AuctionBidContext, auction_bid, bid, cancel_timer, default_auction_bid, set_state_watch, set_timeout, update_timer,
    watch_key
)
WHO = bytes([17]) * 20
"""
TARGET = b"\x11" * 20


def tried(world, statement, payload=b"", **call):
    """Run a statement in a guest; return its outcome and the meter."""
    return world.call(f"{PREAMBLE}def get_gas_bid(payload):\n    {statement}\n", "get_gas_bid", payload, **call)


def answer(world, statement, payload=b"", **call):
    outcome, _ = tried(world, statement, payload, **call)
    assert outcome.error is None, outcome.error
    return decode_canonical(outcome.return_value) if outcome.return_value else None


def fault(world, statement, payload=b""):
    context = tried(world, statement, payload)[0].error.context
    return context["exception_type"], context["exception_message"]


def test_calls_hand_every_argument_on(world):
    """By position or by name, in both forms of set_timeout."""
    answer(world, "set_timeout(101, b'x', WHO)")
    answer(world, "set_timeout(height=101, payload=b'x', gba=WHO, gas_limit=7)")
    answer(world, "set_timeout(WHO, 101, b'x', 7, bid(2), 300, b'n')")
    answer(world, "set_timeout(target=WHO, due_height=101, payload=b'x')")
    answer(world, "set_state_watch(WHO, [watch_key(WHO, b'price')], b'x', bid_fp=bid(2), client_nonce=b'n')")
    assert world.timers == [
        AuctionRequest(101, b"x", TARGET),
        AuctionRequest(101, b"x", TARGET, 7),
        GlobalboxRequest(TARGET, b"x", 101, None, 7, 2 << 96, 300, b"n"),
        GlobalboxRequest(TARGET, b"x", 101),
        GlobalboxRequest(TARGET, b"x", None, (TARGET + b"price",), bid=2 << 96, client_nonce=b"n"),
    ]


def test_changes_answer_what_the_chain_answers(world):
    """Whether there is a later fire, whether there was something to cancel, or nothing."""
    statement = "return [update_timer(WHO, b'id', bid_fp=bid(3)), cancel_timer(WHO, b'id'), cancel_timer(b'id')]"

    assert answer(world, statement) == [True, False, None]
    assert world.updates == [GlobalboxUpdate(TARGET, b"id", bid=3 << 96)]


@pytest.mark.spec("G-09")
@pytest.mark.parametrize(("whole", "numerator", "denominator"), [(0, 0, 1), (7, 1, 2), (0, 1, 3), (2**32 - 1, 2, 3)])
def test_bid_is_in_fixed_point(whole, numerator, denominator):
    """What is finer than 2⁻⁹⁶ is rounded down."""
    exact = (whole + Fraction(numerator, denominator)) * 2**96

    assert trailboss.sdk.bid(whole, numerator, denominator) == exact.__floor__()


@pytest.mark.parametrize("arguments", [(-1,), (2**32,), (2**32 - 1, 1), (0, -1)])
def test_bid_is_refused_when_it_does_not_fit(arguments):
    """Sixty-four bits of whole base units would not leave room for the fraction."""
    with pytest.raises(ValueError, match=r"a bid is from 0 to below 2\*\*32 base units per cycle"):
        trailboss.sdk.bid(*arguments)


def test_watch_key_begins_with_the_actor():
    """Without a prefix it watches every slot."""
    assert trailboss.sdk.watch_key(TARGET, b"price/") == TARGET + b"price/"
    assert trailboss.sdk.watch_key(TARGET) == TARGET
    with pytest.raises(ValueError, match="an actor's address is 20 bytes, got 2"):
        trailboss.sdk.watch_key(b"me", b"price")


@pytest.mark.spec("A-03")
@pytest.mark.parametrize("facts", [FACTS, WIDEST], ids=["usual", "widest"])
def test_auction_context_has_every_fact_that_an_agent_is_told(world, facts):
    """All six come through, however wide, and an agent stays far below what a question may cost."""
    names = ", ".join(f"c.{name}" for name in FACTS)
    shown = answer(world, f"c = AuctionBidContext.decode(payload)\n    return [{names}]", encode_canonical(facts))
    statement = "return default_auction_bid(AuctionBidContext.decode(payload))"
    _, meter = tried(world, statement, encode_canonical(facts), read_only=True)

    assert shown == list(facts.values())
    assert 2 * (meter.cycles_used + world.params.costs.frame_base) <= world.params.auction.gba_cycles_max


def test_auction_context_is_refused_when_it_is_the_lanes(world):
    """It has two facts more."""
    facts = FACTS | {"basefee_lane_timer": 1, "previous_block_p50_priority_tip_per_cycle": 1}

    assert fault(world, "AuctionBidContext.decode(payload)", encode_canonical(facts))[0] == "TypeError"


@pytest.mark.spec("A-04")
def test_auction_bid_is_refused_when_its_tip_is_above_its_cap(world):
    """The chain would take it for no bid at all; here the agent's author is told why."""
    assert answer(world, "return auction_bid(7, 7)") == {"max_fee_per_cycle": 7, "tip_per_cycle": 7}
    assert fault(world, "return auction_bid(7, 8)") == (
        "ValueError",
        "tip_per_cycle is 8, above max_fee_per_cycle, 7, which caps it",
    )


def test_default_auction_bid_leaves_room_for_the_basefee_to_double(world):
    """It is what the chain bids for a timer whose agent does not answer."""
    statement = "return default_auction_bid(AuctionBidContext.decode(payload))"

    assert answer(world, statement, encode_canonical(FACTS)) == {"max_fee_per_cycle": 20_000, "tip_per_cycle": 0}
