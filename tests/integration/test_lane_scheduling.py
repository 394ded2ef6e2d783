"""Scheduling in the timer lane, from actors' own code to what their receipts and timers show."""

from typing import Any

import pytest

from trailboss.codec.canonical import decode_canonical
from trailboss.model.transactions import SetGovParam
from trailboss.testing import ActorHandle, LocalChain
from trailboss.views.records import Event, Receipt

CBY = 10**9
FUNDS = 1_000 * CBY
CAP = 250_000
LANE = pytest.mark.trailboss(mechanism="lane")

ACTOR = '''
"""Schedules as it is told, shows the lane of that block, and can price its timers itself."""

from trailboss.sdk import GasBidContext, PriorityTier, gas_bid, schedule_timer, set_gas_bidding_agent


def soon():
    return pvm_host.block_height() + 1


def shown(timer_id):
    return {"lane": pvm_host.timer_lane(), "timer": timer_id}


def plain(payload):
    return shown(pvm_host.schedule_timer(soon(), b"plain"))


def tip(payload):
    return shown(schedule_timer(soon(), b"tip", gas_limit=100_000, max_priority_fee_per_cycle=int(payload)))


def cap(payload):
    cap = pvm_host.timer_lane()["basefee_lane_timer"] + int(payload)
    return shown(schedule_timer(soon(), b"cap", max_fee_per_cycle=cap))


def hint(payload):
    return shown(schedule_timer(soon(), b"hint", priority_tier_hint=PriorityTier(payload.decode())))


def bid(payload):
    return shown(pvm_host.schedule_timer(soon(), b"bid", bid=7))


def caught(payload):
    try:
        bid(payload)
    except pvm_host.HostError as error:
        return [error.code, error.name]


def own_agent(payload):
    set_gas_bidding_agent(pvm_host.self_address())


def no_agent(payload):
    set_gas_bidding_agent(None)


def failing_agent(payload):
    own_agent(payload)
    raise ValueError("after all, not")


def handle_timer(payload):
    if payload == b"rearm":
        tip(b"7")


def rearm(payload):
    return shown(schedule_timer(soon(), b"rearm"))


def get_gas_bid(payload):
    context = GasBidContext.decode(payload)
    return gas_bid(10 * context.basefee_lane_timer, 123)
'''


def deploy(chain: LocalChain) -> ActorHandle:
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=FUNDS)


def call(actor: ActorHandle, handler: str, payload: bytes = b"") -> Receipt:
    return actor.call(handler, payload, sender=actor.chain.accounts[0])


def scheduled(
    actor: ActorHandle, handler: str, payload: bytes = b""
) -> tuple[dict[str, Any], bytes, tuple[Event, ...]]:
    """Call a handler that schedules; return the lane as it saw it, the timer's id and the events."""
    receipt = call(actor, handler, payload)
    assert receipt.ok, receipt.error
    answer = decode_canonical(receipt.return_value)
    return answer["lane"], answer["timer"], receipt.events


def fees(event: Event) -> tuple[int, int]:
    """Return the two fees that the event of a scheduled timer shows."""
    assert event.name == "timer.scheduled"
    return event.data["max_fee_per_cycle"], event.data["max_priority_fee_per_cycle"]


def activate(chain: LocalChain, ahead: int = 5) -> int:
    """Have governance activate the lane, and return the height from which it will be."""
    height = chain.height + ahead
    chain.system(SetGovParam(b"system:cip1:activation_height", height.to_bytes(8, "big")), check=True)
    return height


def assert_refused(receipt: Receipt, code: int, slug: str, words: str) -> None:
    """Assert that the handler let a refusal out, that it kept its code, and that nothing stayed but the fee."""
    assert receipt.status == "reverted"
    assert (receipt.error.code, receipt.error.slug) == (code, slug)
    assert words in receipt.error.what
    assert receipt.events == ()
    assert receipt.fee_paid > 0


@LANE
@pytest.mark.spec("L-14", "L-31")
def test_call_without_fees_works_unchanged_when_the_lane_is_active(chain: LocalChain) -> None:
    """It takes the default agent's fees and the lane's cap, and fires in the next block."""
    lane, timer, (event,) = scheduled(deploy(chain), "plain")

    assert event.data["gas_limit"] == CAP == lane["max_cycles_per_fire"]
    assert fees(event) == (2 * lane["basefee_lane_timer"], 0)
    chain.mine()
    (fire,) = chain.receipts(origin="timer")
    assert (fire.status, fire.timer_id, fire.tip) == ("ok", timer, 0)


@LANE
@pytest.mark.spec("L-16")
def test_stated_tip_is_clamped_with_an_event_when_there_is_no_room_for_it(chain: LocalChain) -> None:
    """Twice the basefee leaves room for once the basefee."""
    lane, timer, (event, clamped) = scheduled(deploy(chain), "tip", b"%d" % 10**9)

    basefee = lane["basefee_lane_timer"]
    assert fees(event) == (2 * basefee, basefee)
    assert (clamped.name, clamped.timer_id) == ("TimerPriorityClampedAtSchedule", timer)
    assert clamped.data == {"timer_id": timer, "stated": 10**9, "clamped": basefee}


@LANE
@pytest.mark.spec("L-15", "L-17")
def test_cap_is_refused_when_it_is_a_unit_below_the_lane_basefee(chain: LocalChain) -> None:
    """At the basefee it is accepted; and neither takes money from the payer."""
    actor = deploy(chain)
    _, _, (event,) = scheduled(actor, "cap", b"0")
    assert fees(event)[1] == 0
    chain.mine()
    before = chain.balance(actor)
    refused = call(actor, "cap", b"-1")

    assert_refused(refused, 1504, "timer_rejected_below_basefee", "below the lane basefee of")
    assert chain.timers() == []
    assert chain.balance(actor) == before


@LANE
@pytest.mark.spec("L-22")
def test_hint_multiplies_the_median_of_the_block_before(chain: LocalChain) -> None:
    """A fire that tips 100 a cycle, then urgent is 250; a block later nobody has fired, and urgent is nothing."""
    actor = deploy(chain)
    scheduled(actor, "tip", b"100")
    chain.mine()
    lane, _, (event,) = scheduled(actor, "hint", b"urgent")

    assert lane["previous_block_p50_priority_tip_per_cycle"] == 100
    assert fees(event)[1] == 250
    chain.mine(2)
    lane, _, (event,) = scheduled(actor, "hint", b"urgent")
    assert lane["previous_block_p50_priority_tip_per_cycle"] == 0
    assert fees(event)[1] == 0


@LANE
@pytest.mark.spec("L-18")
def test_bid_is_refused_when_the_lane_is_active(chain: LocalChain) -> None:
    """An actor can catch it; one that does not reverts."""
    actor = deploy(chain)

    assert_refused(call(actor, "bid"), 1505, "timer_arg_deprecated", "bid is given")
    assert decode_canonical(call(actor, "caught").return_value) == [1505, "timer_arg_deprecated"]
    assert chain.timers() == []


@pytest.mark.spec("L-18", "L-30", "L-31", "L-33")
def test_bid_and_fees_change_sides_when_the_lane_is_activated(chain: LocalChain) -> None:
    """The last block before the activation ignores a bid and refuses a fee, the first one does the reverse."""
    actor = deploy(chain)
    height = activate(chain)
    chain.advance_to(height - 2)
    with chain.one_block():
        warned, refused, hinted = (call(actor, name, b"economy") for name in ("bid", "cap", "hint"))
    assert [event.name for event in warned.events] == ["timer.scheduled", "timer.argument_deprecated"]
    assert warned.events[1].data == {"argument": "bid"}
    assert warned.events[0].data["gas_limit"] == 550_000
    assert hinted.ok
    assert refused.status == "reverted"

    with chain.one_block():
        late, accepted = call(actor, "bid"), call(actor, "cap", b"0")
    assert chain.height == height
    assert_refused(late, 1505, "timer_arg_deprecated", f"withdrawn since height {height}")
    assert accepted.ok


@pytest.mark.spec("L-30", "L-33")
def test_fifo_goes_on_past_the_height_when_the_vote_is_withdrawn(chain: LocalChain) -> None:
    """In the last block before it, by 0: no event, no lane basefee, a bid is ignored; and another vote can come."""
    actor = deploy(chain)
    height = activate(chain)
    chain.advance_to(height - 2)
    chain.system(SetGovParam(b"system:cip1:activation_height", bytes(8)), check=True)
    assert chain.height == height - 1
    assert call(actor, "bid").ok
    words = "the timer lane is not active: no height is set from which it will be"
    assert_refused(call(actor, "cap", b"0"), 1202, "invalid_input", words)
    chain.mine(5)
    [fire] = chain.events("timer.fired")
    assert (fire.block_height > height, fire.data["lane_burned"]) == (True, 0)
    assert {record.mechanism for record in map(chain.decisions, range(1, chain.height + 1)) if record} == {"fifo"}
    assert chain.events("lane.activated") == []

    later = activate(chain)
    chain.advance_to(later)
    assert [event.block_height for event in chain.events("lane.activated")] == [later]
    refused = chain.system(SetGovParam(b"system:cip1:activation_height", bytes(8)))
    words = f"the lane is active from height {later} on, and this is block {later + 1}"
    assert_refused(refused, 1601, "invalid_parameter", words)


@LANE
@pytest.mark.spec("L-20")
def test_agent_is_asked_when_the_timer_is_due(chain: LocalChain) -> None:
    """The timer shows no fees when it is scheduled, and its fire pays the tip that the agent named."""
    actor = deploy(chain)
    receipt = call(actor, "own_agent")
    assert [(event.name, event.data) for event in receipt.events] == [("gba.set", {"agent": bytes(actor.address)})]
    _, _, (event,) = scheduled(actor, "plain")
    assert "max_fee_per_cycle" not in event.data
    chain.mine()
    (fire,) = chain.receipts(origin="timer")

    assert fire.tip == 123 * fire.cycles_used


@LANE
@pytest.mark.spec("L-20")
def test_default_agent_prices_again_when_an_agent_is_taken_away(chain: LocalChain) -> None:
    """The event shows nobody, and the next timer has its fees at once."""
    actor = deploy(chain)
    call(actor, "own_agent")
    receipt = call(actor, "no_agent")

    assert receipt.events[0].data == {"agent": b""}
    lane, _, (event,) = scheduled(actor, "plain")
    assert fees(event) == (2 * lane["basefee_lane_timer"], 0)


@LANE
def test_agent_is_not_kept_when_its_transaction_reverts(chain: LocalChain) -> None:
    """It is a change like any other."""
    actor = deploy(chain)
    receipt = call(actor, "failing_agent")
    assert (receipt.status, receipt.events) == ("reverted", ())

    _, _, (event,) = scheduled(actor, "plain")
    assert "max_fee_per_cycle" in event.data


@LANE
@pytest.mark.spec("L-10", "L-14")
def test_fire_schedules_under_the_same_rules(chain: LocalChain) -> None:
    """A handler that fires states a tip, and its timer is due in a later block."""
    actor = deploy(chain)
    scheduled(actor, "rearm")
    chain.mine()
    (fire,) = chain.receipts(origin="timer")
    (event,) = [event for event in fire.events if event.name == "timer.scheduled"]

    assert event.data["height"] == fire.block_height + 1
    assert fees(event)[1] == 7
    chain.mine()
    assert len(chain.receipts(origin="timer")) == 2
