"""Timers without an actor of one's own: the stock actor schedules, tells when they fire, and obeys its owner alone."""

from pathlib import Path

import pytest

from trailboss.chain.scheduler import FUNDS, scheduler_address
from trailboss.codec.canonical import encode_canonical
from trailboss.primitives.errors import TrailbossError
from trailboss.sdk import PriorityTier
from trailboss.testing import ActorHandle, LocalChain, RevertedError

CBY = 10**9


def stock(chain: LocalChain, account: int = 0) -> ActorHandle:
    return chain.actor(scheduler_address(chain.accounts[account].address))


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


@pytest.mark.parametrize("handler", ["schedule", "cancel", "extend", "set_agent", "withdraw"])
def test_stock_actor_refuses_the_orders_of_others(handler: str) -> None:
    """Whoever is not the owner changes nothing."""
    with LocalChain() as chain:
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
