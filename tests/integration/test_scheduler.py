"""Timers without an actor of one's own: the stock actor schedules, tells when they fire, and obeys its owner alone."""

import re
from pathlib import Path
from typing import Any

import pytest

from trailboss.chain.stock_timers import FUNDS, scheduler_address
from trailboss.codec.canonical import encode_canonical
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.primitives.errors import Rejection, RejectionReason, TrailbossError
from trailboss.sdk import PriorityTier, bid, watch_key
from trailboss.testing import ActorHandle, LocalChain, RevertedError

CBY = 10**9


def stock(chain: LocalChain, account: int = 0) -> ActorHandle:
    return chain.actor(scheduler_address(chain.chain, chain.accounts[account].address))


def refusal(chain: LocalChain, height: int, **options: object) -> tuple[str, str]:
    """Return slug and words of the error with which a timer is refused."""
    with pytest.raises(RevertedError) as caught:
        chain.schedule(height, **options)
    error = caught.value.receipt.error
    assert error is not None
    return error.slug, error.what


def test_timer_fires_and_tells_its_payload_when_it_is_scheduled_without_an_actor() -> None:
    """One block deploys, funds and schedules; the next order needs no more than itself."""
    with LocalChain() as chain:
        first = chain.schedule(10, b"wake up")
        second = chain.schedule(11, b"\x00\xff", gas_limit=50_000, expires_at=20)
        actor = stock(chain)
        assert (chain.height, first.schedule_block, second.schedule_block) == (2, 1, 2)
        assert first.actor == second.actor == first.fee_payer == actor.address
        assert (first.gas_limit, second.gas_limit, second.expires_at) == (550_000, 50_000, 20)
        assert actor.balance == FUNDS
        chain.advance_to(12)
        told = [(event.block_height, event.raw) for event in chain.events("timer.payload")]
        assert told == [(10, b"wake up"), (11, b"\x00\xff")]


def test_each_sender_has_a_stock_actor_of_its_own_and_may_pay_itself() -> None:
    """The payer is whoever signs; the actor gets what it is given and no more."""
    with LocalChain() as chain:
        one, two = chain.accounts[1:3]
        timer = chain.schedule(10, sender=one, fee_payer=one, value=0)
        other = chain.schedule(10, sender=two, value=7 * CBY)
        assert (timer.fee_payer, other.fee_payer) == (one.address, stock(chain, 2).address)
        assert (stock(chain, 1).balance, stock(chain, 2).balance) == (0, 7 * CBY)
        chain.schedule(11, sender=two, value=2 * CBY)
        assert stock(chain, 2).balance == 9 * CBY
        assert refusal(chain, 12, fee_payer=one)[0] == "invalid_input"


@pytest.mark.spec("L-14", "L-22")
def test_fees_are_frozen_as_they_are_given_when_the_lane_is_active() -> None:
    """Both fees, one of them, a tier as a part of the last block's median tip, or the defaults."""
    with LocalChain(mechanism="lane", params={"lane.basefee_min": 10_000}) as chain:
        fees = chain.schedule(5, max_fee_per_cycle=25_000, max_priority_fee_per_cycle=4_000)
        assert (fees.max_fee_per_cycle, fees.max_priority_fee_per_cycle) == (25_000, 4_000)
        capped = chain.schedule(9, max_fee_per_cycle=15_000)
        assert (capped.max_fee_per_cycle, capped.max_priority_fee_per_cycle) == (15_000, 0)
        chain.advance_to(5)
        # The fire of block 5 has paid a tip of 4,000: the median, of which FAST is 1.5 times.
        fast = chain.schedule(9, priority_tier_hint=PriorityTier.FAST)
        assert (fast.max_fee_per_cycle, fast.max_priority_fee_per_cycle) == (20_000, 6_000)
        plain = chain.schedule(9)
        assert (plain.max_fee_per_cycle, plain.max_priority_fee_per_cycle) == (20_000, 0)
        assert plain.gas_limit == 250_000


def test_timer_is_refused_with_the_chain_s_reason() -> None:
    """Nothing is scheduled, and the reason is the one that an actor's own call has."""
    with LocalChain() as chain:
        assert refusal(chain, 1)[0] == "invalid_input"
        assert refusal(chain, 10, max_fee_per_cycle=20_000)[0] == "invalid_input"
        assert refusal(chain, 10, gas_limit=550_001)[0] == "invalid_input"
        assert "4097 bytes" in refusal(chain, 10, payload=bytes(4_097))[1]
        assert chain.timers() == []
        with pytest.raises(TrailbossError, match="cannot schedule a timer while a block is open"), chain.one_block():
            chain.schedule(10)
    with LocalChain(mechanism="lane") as chain:
        assert refusal(chain, 10, max_fee_per_cycle=9_999)[0] == "timer_rejected_below_basefee"
        both = {"max_priority_fee_per_cycle": 1, "priority_tier_hint": PriorityTier.URGENT}
        assert "give one of them" in refusal(chain, 10, **both)[1]


def test_owner_cancels_extends_sets_the_agent_and_takes_money_back() -> None:
    """By the handlers of the stock actor."""
    with LocalChain() as chain:
        owner = chain.accounts[0]
        gone, kept = chain.schedule(10), chain.schedule(11, expires_at=20)
        actor = stock(chain)
        actor.call("cancel", gone.timer_id, sender=owner, check=True)
        order = encode_canonical({"timer_id": bytes(kept.timer_id), "expires_at": 30})
        actor.call("extend", order, sender=owner, check=True)
        [timer] = chain.timers()
        assert (timer.timer_id, timer.expires_at) == (kept.timer_id, 30)
        actor.call("set_agent", bytes(actor.address), sender=owner, check=True)
        assert chain.schedule(12).fees == "agent"
        actor.call("set_agent", b"", sender=owner, check=True)
        assert chain.schedule(12).fees == "default"
        actor.call("withdraw", b"40000000000", sender=owner, check=True)
        assert actor.balance == FUNDS - 40 * CBY


HANDLERS = [
    *(("fifo", handler) for handler in ("schedule", "cancel", "extend", "set_agent", "withdraw")),
    *(("auction", handler) for handler in ("schedule", "cancel", "withdraw")),
    *(("globalbox", handler) for handler in ("schedule", "watch", "update", "cancel", "withdraw")),
]


@pytest.mark.parametrize(("mechanism", "handler"), HANDLERS)
def test_stock_actor_refuses_the_orders_of_others(mechanism: str, handler: str) -> None:
    """Whoever is not the owner changes nothing."""
    with LocalChain(mechanism=mechanism) as chain:
        chain.schedule(10)
        receipt = stock(chain).call(handler, b"", sender=chain.accounts[1])
        assert receipt.error is not None
        assert receipt.error.what == "PermissionError: only the owner may give orders"


def test_stock_actor_is_found_again_when_the_chain_is_opened_again(tmp_path: Path) -> None:
    """Its address follows from the owner's."""
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        first = chain.schedule(10)
    with LocalChain(data_dir=tmp_path / "chain") as chain:
        assert chain.schedule(11).actor == first.actor
        assert chain.height == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_is_scheduled_and_cancelled_under_every_mechanism(mechanism: str) -> None:
    """The same words everywhere, and the same event."""
    with LocalChain(mechanism=mechanism) as chain:
        told, gone = chain.schedule(10, b"wake up", gas_limit=60_000), chain.schedule(10, b"never")
        assert (told.height, told.gas_limit, told.actor) == (10, 60_000, stock(chain).address)
        assert chain.cancel(gone.timer_id)
        with pytest.raises(Rejection, match="there is no live timer"):
            chain.cancel(gone.timer_id)
        chain.advance_to(12)
        assert [(event.block_height, event.raw) for event in chain.events("timer.payload")] == [(10, b"wake up")]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_of_another_sender_is_not_cancelled(mechanism: str) -> None:
    """Each has a stock actor of its own, which owns its timers."""
    with LocalChain(mechanism=mechanism) as chain:
        timer = chain.schedule(10)
        chain.schedule(11, sender=chain.accounts[1])
        with pytest.raises(RevertedError):
            chain.cancel(timer.timer_id, sender=chain.accounts[1])
        assert len(chain.timers()) == 2


@pytest.mark.spec("A-01", "A-04")
def test_agent_bids_what_is_offered_when_the_chain_has_an_auction() -> None:
    """One agent an offer; the higher tip goes first, and a cap alone is bid without a tip."""
    with LocalChain(mechanism="auction") as chain:
        plain = chain.schedule(10, b"plain")
        tipped = chain.schedule(10, b"tipped", max_priority_fee_per_cycle=500)
        capped = chain.schedule(10, b"capped", max_fee_per_cycle=11_000, max_priority_fee_per_cycle=700)
        again = chain.schedule(11, b"again", max_priority_fee_per_cycle=500)
        agents = [timer.auction.agent for timer in (plain, tipped, capped, again)]
        assert agents[1] == agents[3]
        assert len(set(agents)) == 3

        chain.advance_to(12)

        assert [event.raw for event in chain.events("timer.payload")] == [b"capped", b"tipped", b"plain", b"again"]
        tips = [receipt.tip // receipt.cycles_used for receipt in chain.receipts(origin="timer")]
        assert tips == [700, 500, 0, 500]
        assert chain.events("gba.fallback") == []


@pytest.mark.spec("A-08")
def test_timer_waits_when_its_cap_is_below_the_basefee_of_an_auction() -> None:
    """It is priced out, and still there."""
    with LocalChain(mechanism="auction", params={"fees.genesis_cycle_basefee": 20_000}) as chain:
        timer = chain.schedule(3, max_fee_per_cycle=10_000)
        chain.advance_to(4)
        assert [live.timer_id for live in chain.timers()] == [timer.timer_id]


def test_offer_is_refused_when_its_tip_is_above_its_cap() -> None:
    """It would be no bid, in every block anew; nothing is deployed."""
    with LocalChain(mechanism="auction") as chain:
        with pytest.raises(Rejection, match="the tip is 10005, above max_fee_per_cycle, 10003, which caps it"):
            chain.schedule(10, max_fee_per_cycle=10_003, max_priority_fee_per_cycle=10_005)
        assert chain.height == 0


@pytest.mark.parametrize(
    ("offer", "what"),
    [
        ({"max_fee_per_cycle": 9_999}, "is 9999, and the cycle basefee of timers does not fall below 10000"),
        ({"max_fee_per_cycle": 2**127}, f"max_fee_per_cycle is {2**127}, outside 0..="),
        ({"max_priority_fee_per_cycle": -6}, "max_priority_fee_per_cycle is -6, outside 0..="),
        ({"max_priority_fee_per_cycle": 6.5}, "max_priority_fee_per_cycle must be an integer, got 6.5"),
    ],
)
def test_offer_is_refused_when_it_could_never_be_a_bid(offer: dict[str, Any], what: str) -> None:
    """The timer would fire at the default bid or never; nothing is deployed."""
    with LocalChain(mechanism="auction") as chain:
        with pytest.raises(Rejection, match=re.escape(what)):
            chain.schedule(10, **offer)
        assert chain.height == 0


def test_argument_of_another_kind_is_refused_before_anything_is_sent() -> None:
    """One key alone is no list of keys, and text is no id."""
    with LocalChain(mechanism="globalbox") as chain:
        with pytest.raises(Rejection, match="watch_keys must be a list, got b'"):
            chain.watch(watch_key(chain.accounts[1].address))
        with pytest.raises(Rejection, match="timer_id must be bytes, got 'x'"):
            chain.cancel("x")  # type: ignore[arg-type]
        assert chain.height == 0


@pytest.mark.spec("G-05", "G-06", "G-09")
def test_order_has_a_target_a_bid_and_a_name_when_the_chain_has_globalbox() -> None:
    """The target hears from the stock actor; the same name gives the same timer; an update reaches the fire to come."""
    listener = "def handle_timer(payload):\n    pvm_host.set_state(pvm_host.context()['sender'], payload)\n"
    with LocalChain(mechanism="globalbox") as chain:
        target = chain.deploy(listener, sender=chain.accounts[2])
        timer = chain.schedule(10, b"hello", target=target, bid=bid(3), client_nonce=b"a", expires_at=50)
        assert chain.schedule(10, b"other", target=target, client_nonce=b"a").timer_id == timer.timer_id
        assert len(chain.timers()) == 1
        assert chain.update_timer(timer.timer_id, payload=b"hello again", gas_limit=70_000, bid=bid(4, 1, 2))

        chain.advance_to(10)

        assert dict(target.storage) == {bytes(stock(chain).address): b"hello again"}
        (fire,) = chain.receipts(origin="timer")
        assert fire.tip == 4 * fire.cycles_used
        with pytest.raises(
            Rejection,
            match=r"has the client nonce and has ended: it .* in block .*, and the nonce is taken until block",
        ):
            chain.schedule(20, b"late", target=target, client_nonce=b"a")


@pytest.mark.spec("G-01")
def test_watch_tells_its_payload_when_a_slot_changes() -> None:
    """Every time, until it is cancelled."""
    feed = "def report(payload):\n    pvm_host.set_state(b'price', payload)\n"
    with LocalChain(mechanism="globalbox") as chain:
        actor = chain.deploy(feed, sender=chain.accounts[0])
        watch = chain.watch([watch_key(actor.address, b"pri")], b"seen", bid=bid(1), expires_at=100)
        heights = []
        for price in (b"1", b"1", b"2"):
            heights.append(actor.call("report", price, sender=chain.accounts[0], check=True).block_height)
        assert chain.cancel(watch.timer_id)
        actor.call("report", b"3", sender=chain.accounts[0], check=True)
        told = [event.block_height for event in chain.events("timer.payload")]
        assert told == [heights[0], heights[2]]


OPTIONS = [
    ("fifo", {"bid": 1}, "bid"),
    ("lane", {"client_nonce": b"n"}, "client_nonce"),
    ("auction", {"expires_at": 20}, "expires_at"),
    ("auction", {"fee_payer": bytes(20)}, "fee_payer"),
    ("globalbox", {"max_fee_per_cycle": 1}, "max_fee_per_cycle"),
    ("globalbox", {"priority_tier_hint": PriorityTier.FAST}, "priority_tier_hint"),
]


@pytest.mark.parametrize(("mechanism", "options", "name"), OPTIONS)
def test_order_is_refused_when_the_mechanism_lacks_an_option(
    mechanism: str, options: dict[str, object], name: str
) -> None:
    """It is named, as are the mechanism and the options that it has; nothing is deployed."""
    with LocalChain(mechanism=mechanism) as chain:
        what = f"{name} is no option of a timer under mechanism {mechanism}, whose options are: height, payload"
        with pytest.raises(Rejection, match=what):
            chain.schedule(10, **options)
        assert chain.height == 0


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction"])
def test_watch_and_update_are_refused_when_the_mechanism_has_none(mechanism: str) -> None:
    """In the words that an actor would hear."""
    with LocalChain(mechanism=mechanism) as chain:
        timer = chain.schedule(10)
        for order in (lambda: chain.watch([bytes(20)]), lambda: chain.update_timer(timer.timer_id, bid=1)):
            with pytest.raises(Rejection, match=f"is not a call of mechanism {mechanism}") as refused:
                order()
            assert refused.value.reason is RejectionReason.UNSUPPORTED
