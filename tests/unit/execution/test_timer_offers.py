"""Scheduling in the timer lane: what a timer offers, how it is recorded, and what is refused.

The lane's state is written as a block would have left it, so that basefee and median tip are exactly what a case needs.
"""

import pytest

from trailboss.codec.canonical import decode_canonical
from trailboss.execution import timers
from trailboss.execution.host import ChainHost
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.paid_execution import commit_effect
from trailboss.execution.session import BlockContext, BlockSession, Envelope, Scope
from trailboss.fees import Prices
from trailboss.governance.markets import LANE_KEY
from trailboss.governance.rules import read_rules
from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.fee_lane.mechanism import build_lane
from trailboss.metering.meter import Meter
from trailboss.model.actors import Account
from trailboss.model.blocks import Origin
from trailboss.model.configs import LaneState, amount_octets, encode_record
from trailboss.model.events import EventRecord
from trailboss.model.timers import ASK_AGENT, NO_FEES, Timer, TimerRequest, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address
from trailboss.state.keys import account_key
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import StoredTimers
from trailboss.vm.engine import Frame

ACTOR, OTHER, PERSON = (Address(bytes(19) + bytes([number])) for number in (101, 102, 103))
HEIGHT = 100
BASEFEE = 1_000
MEDIAN = 300
CAP = 250_000
FRAME = 10_000
GENESIS_BASEFEE = 10_000
CODE = b"\x01" * 32


def scope(active: int = 1, *, median: int = MEDIAN, agent: bytes = b"", **overrides: int) -> Scope:
    """Return a transaction of block 100, with the lane active since height ``active``."""
    store = MemoryStore()
    overlay = Overlay(store)
    paths = {path.replace("__", "."): value for path, value in overrides.items()}
    params = load_params("mainnet", {"lane.activation_height": active, **paths})
    overlay.write(LANE_KEY, encode_record(LaneState(amount_octets(BASEFEE), amount_octets(median))))
    context = BlockContext(
        chain_id=1,
        chain_instance_id=bytes(32),
        height=HEIGHT,
        timestamp_ms=0,
        parent=bytes(32),
        proposer=PERSON,
        parent_cycles_used=7_000_000,
        rules=read_rules(params, overlay.read, HEIGHT),
        parent_state_root=bytes(32),
        mechanism="lane",
        calls=build_lane(params).policy.calls,
    )
    queue = TimerQueue(params.calendar, StoredTimers(store))
    session = BlockSession(
        context, overlay, Ledger(overlay), queue, None, Follower(), MARKETS[context.rules.market.kind]
    )
    session.ledger.put(ACTOR, Account(code_hash=CODE, agent=agent))
    session.ledger.put(OTHER, Account(code_hash=CODE))
    session.ledger.credit(PERSON, 5)
    envelope = Envelope(
        origin=Origin.TRANSACTION,
        origin_hash=bytes(32),
        sender=PERSON,
        signer=PERSON,
        payer=PERSON,
        cycles_limit=10**6,
        cells_limit=10**6,
        prices=Prices(1, 1),
    )
    return Scope(session, envelope)


def request(**given: object) -> TimerRequest:
    return TimerRequest(**{"height": HEIGHT + 5, "payload": b"x", **given})


def scheduled(running: Scope, **given: object) -> Timer:
    """Schedule a timer and return its record, read from the state."""
    identity = timers.schedule_timer(running, ACTOR, request(**given), Meter(10**6, 10**6))
    return timers.find_timer(running.session, identity)


def committed(running: Scope) -> list[EventRecord]:
    """Commit what has been asked for, and return the events."""
    return [commit_effect(running.session, effect) for effect in running.effects]


def events(running: Scope) -> list[tuple[str, dict]]:
    """Commit what has been asked for; return each event's name and data."""
    return [(event.name, decode_canonical(event.data)) for event in committed(running)]


def refusal(running: Scope, **given: object) -> Rejection:
    """Return why a request is refused, having checked that it changed nothing."""
    session = running.session
    before = (session.ledger.account(ACTOR), session.totals())
    with pytest.raises(Rejection) as caught:
        scheduled(running, **given)
    assert (session.ledger.account(ACTOR), session.totals()) == before
    assert running.effects == []
    return caught.value


OFFERS = [
    # Neither: twice the basefee, and the median as far as there is room.
    ({}, MEDIAN, (2_000, 300)),
    ({}, 0, (2_000, 0)),
    ({}, 1_000, (2_000, 1_000)),
    ({}, 5_000, (2_000, 1_000)),
    # The cap alone: the median within it, down to no room at all.
    ({"max_fee_per_cycle": 5_000}, MEDIAN, (5_000, 300)),
    ({"max_fee_per_cycle": 1_200}, MEDIAN, (1_200, 200)),
    ({"max_fee_per_cycle": 1_000}, MEDIAN, (1_000, 0)),
    # The tip alone: under the default cap.
    ({"max_priority_fee_per_cycle": 0}, MEDIAN, (2_000, 0)),
    ({"max_priority_fee_per_cycle": 1_000}, MEDIAN, (2_000, 1_000)),
    # Both, up to the widest.
    ({"max_fee_per_cycle": 1_500, "max_priority_fee_per_cycle": 500}, MEDIAN, (1_500, 500)),
    ({"max_fee_per_cycle": 2**127 - 1, "max_priority_fee_per_cycle": 7}, MEDIAN, (2**127 - 1, 7)),
]


@pytest.mark.spec("L-14", "L-17", "L-19", "L-31")
@pytest.mark.parametrize(("given", "median", "fees"), OFFERS)
def test_fees_are_frozen_when_a_timer_is_scheduled(given: dict, median: int, fees: tuple[int, int]) -> None:
    """What is not given is the default agent's; nothing is clamped aloud, and nothing is held."""
    running = scope(median=median)
    timer = scheduled(running, **given)

    assert timer.frozen_fees() == fees
    assert running.session.ledger.balance(PERSON) == 5
    ((name, facts),) = events(running)
    assert name == "timer.scheduled"
    assert facts == {
        "timer_id": timer.timer_id,
        "height": HEIGHT + 5,
        "handler": "handle_timer",
        "fee_payer": bytes(ACTOR),
        "gas_limit": CAP,
        "expires_at": timer.expires_at,
        "max_fee_per_cycle": fees[0],
        "max_priority_fee_per_cycle": fees[1],
    }


@pytest.mark.parametrize(
    ("given", "agent", "fees"),
    [
        ({}, b"", NO_FEES),
        ({}, bytes(OTHER), ASK_AGENT),
        ({"max_fee_per_cycle": 5_000}, b"", freeze_fees(5_000, MEDIAN)),
        ({"max_priority_fee_per_cycle": 7}, b"", freeze_fees(2_000, 7)),
    ],
)
def test_only_default_fees_stay_open_when_caps_are_set_at_the_fire(given: dict, agent: bytes, fees: bytes) -> None:
    """What is stated is frozen as ever, with the default for the other fee; an agent is asked as ever."""
    assert scheduled(scope(lane__caps_at_fire=1, agent=agent), **given).fees == fees


@pytest.mark.spec("L-16")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"max_fee_per_cycle": 1_500, "max_priority_fee_per_cycle": 501}, 500),
        ({"max_fee_per_cycle": 1_000, "max_priority_fee_per_cycle": 1}, 0),
        ({"max_priority_fee_per_cycle": 2**127 - 1}, 1_000),
    ],
)
def test_stated_priority_is_clamped_when_the_cap_has_no_room_for_it(given: dict, kept: int) -> None:
    """An event of both values follows the one about the timer."""
    running = scope()
    timer = scheduled(running, **given)

    assert timer.frozen_fees() == (given.get("max_fee_per_cycle", 2_000), kept)
    assert events(running)[1:] == [
        (
            "TimerPriorityClampedAtSchedule",
            {"timer_id": timer.timer_id, "stated": given["max_priority_fee_per_cycle"], "clamped": kept},
        )
    ]


@pytest.mark.spec("L-15")
@pytest.mark.parametrize("cap", [0, 999])
def test_timer_is_refused_when_its_cap_is_below_the_lane_basefee(cap: int) -> None:
    """One unit below is too little; the refusal has both numbers, and the tip does not matter."""
    refused = refusal(scope(), max_fee_per_cycle=cap, max_priority_fee_per_cycle=0)

    assert (refused.reason.code, refused.reason.slug) == (1504, "timer_rejected_below_basefee")
    assert refused.what == f"max_fee_per_cycle is {cap}, below the lane basefee of 1000"
    assert refused.context == {"max_fee_per_cycle": str(cap), "basefee_lane_timer": "1000"}


@pytest.mark.spec("L-20", "L-30")
@pytest.mark.parametrize("active", [1, 0])
def test_agent_is_asked_later_when_its_actor_states_no_fee(active: int) -> None:
    """Before the activation too; and then the event about the timer shows no fees."""
    running = scope(active, agent=OTHER)
    timer = scheduled(running)

    assert timer.fees == ASK_AGENT
    ((_, facts),) = events(running)
    assert "max_fee_per_cycle" not in facts


def test_agent_is_not_asked_when_its_actor_states_a_fee() -> None:
    """A stated fee is frozen, and what is not stated is the default agent's."""
    assert scheduled(scope(agent=OTHER), max_priority_fee_per_cycle=7).frozen_fees() == (2_000, 7)


@pytest.mark.spec("L-30")
@pytest.mark.parametrize(
    ("active", "when"),
    [(0, "no height is set from which it will be"), (HEIGHT + 1, "it is from height 101 on")],
)
@pytest.mark.parametrize("name", ["max_fee_per_cycle", "max_priority_fee_per_cycle"])
def test_fee_is_refused_when_the_lane_is_not_active(active: int, when: str, name: str) -> None:
    """There is no market to pay it in; the refusal says from when on there will be."""
    refused = refusal(scope(active), **{name: 0})

    assert refused.reason.slug == "invalid_input"
    assert refused.what == f"{name} is 0, but the timer lane is not active: {when}"
    assert refused.context == {"field": name, "value": "0", "activation_height": active}


@pytest.mark.spec("L-30")
def test_timer_has_no_fees_when_it_is_scheduled_before_the_activation() -> None:
    """One block before, and in the very block."""
    assert scheduled(scope(HEIGHT + 1)).fees == NO_FEES
    assert scheduled(scope(HEIGHT)).fees == freeze_fees(2_000, 300)


@pytest.mark.spec("L-18")
@pytest.mark.parametrize("active", [0, HEIGHT + 1])
def test_bid_is_ignored_with_a_warning_when_the_lane_is_not_active(active: int) -> None:
    """The timer is as it would be without it."""
    running = scope(active)
    timer = scheduled(running, has_bid=True)

    assert timer.fees == NO_FEES
    told, warning = committed(running)
    assert (told.name, warning.name) == ("timer.scheduled", "timer.argument_deprecated")
    assert (warning.emitter, warning.timer_id) == (ACTOR, timer.timer_id)
    assert decode_canonical(warning.data) == {"argument": "bid"}


@pytest.mark.spec("L-18")
@pytest.mark.parametrize("active", [1, HEIGHT])
def test_bid_is_refused_when_the_lane_is_active(active: int) -> None:
    """From the block of the activation on."""
    refused = refusal(scope(active), has_bid=True)

    assert (refused.reason.code, refused.reason.slug) == (1505, "timer_arg_deprecated")
    assert refused.what == f"bid is given, which is withdrawn since height {active}"
    assert refused.context == {"argument": "bid"}


GAS_LIMITS = [
    # At least a frame, once a fire has a vote. At most the least of the lane's cap, the lane itself, and TimerConfig.
    (1, {}, FRAME, CAP),
    (HEIGHT, {}, FRAME, CAP),
    (0, {}, 1, 550_000),
    (HEIGHT + 1, {}, 1, 550_000),
    (1, {"timers__max_cycles_per_fire": 200_000}, FRAME, 200_000),
    (1, {"lane__max_cycles_per_fire": 3_000_000, "timers__max_cycles_per_fire": 2_000_000}, FRAME, 2_000_000),
    (1, {"lane__max_cycles_per_fire": FRAME}, FRAME, FRAME),
    (1, {"costs__frame_base": 123}, 123, CAP),
    (1, {"costs__frame_base": 0}, 1, CAP),
]


@pytest.mark.spec("L-05", "L-19", "L-30")
@pytest.mark.parametrize(("active", "overrides", "least", "most"), GAS_LIMITS)
def test_gas_limit_is_bounded_by_frame_and_cap_when_the_lane_is_active(
    active: int, overrides: dict, least: int, most: int
) -> None:
    """The upper bound is the default, both are accepted when stated, and one cycle beyond either is refused."""
    assert scheduled(scope(active, **overrides)).gas_limit == most
    for gas_limit in (least, most):
        assert scheduled(scope(active, **overrides), gas_limit=gas_limit).gas_limit == gas_limit
    for gas_limit in (least - 1, most + 1):
        refused = refusal(scope(active, **overrides), gas_limit=gas_limit)
        assert refused.reason.slug == "invalid_input"
        assert refused.what == f"gas_limit is {gas_limit}, outside {least}..={most}"


ORDER = [
    ({"height": HEIGHT}, "height 100 must be above"),
    ({"has_bid": True}, "bid is given"),
    ({"payload": b"xx"}, "payload has 2 bytes"),
    ({"fee_payer": OTHER}, "fee_payer"),
    ({"gas_limit": 0}, "gas_limit is 0"),
    ({"expires_at": HEIGHT}, "expires_at is 100"),
    ({"max_fee_per_cycle": 1}, "max_fee_per_cycle is 1"),
    ({}, "holds 1 live timers and the limit is 1"),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_first_fault_is_told_when_there_are_several(first: int) -> None:
    """The order in which a request is checked is part of the protocol: receipts hold the refusal."""
    running = scope(timers__max_timers_per_actor=1, timers__payload_bytes_max=1)
    scheduled(running)
    running.effects.clear()
    given = {name: value for fault, _ in reversed(ORDER[first:]) for name, value in fault.items()}

    assert ORDER[first][1] in refusal(running, **given).what


def host(running: Scope, *, read_only: bool = False) -> ChainHost:
    """Return what a frame of the actor asks."""
    frame = Frame("", CODE, ACTOR, PERSON, "handler", b"", read_only)
    return ChainHost(scope=running, frame=frame, sender=PERSON, meter=Meter(10**6, 10**6))


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("active", [0, 1])
@pytest.mark.parametrize("agent", [OTHER, ACTOR, None])
def test_agent_is_set_at_any_time(active: int, agent: bytes | None) -> None:
    """Another actor, the actor itself, or nobody; timers from before keep what they have."""
    running = scope(active, agent=bytes(OTHER) if agent is None else b"")
    before = scheduled(running)
    host(running).set_agent(agent)
    after = scheduled(running)

    expected = b"" if agent is None else bytes(agent)
    assert running.session.ledger.account(ACTOR).agent == expected
    plain = freeze_fees(2_000, 300) if active else NO_FEES
    assert (before.fees, after.fees) == ((ASK_AGENT, plain) if agent is None else (plain, ASK_AGENT))
    assert timers.find_timer(running.session, before.timer_id) == before
    _, told, _ = committed(running)
    assert (told.name, told.emitter, decode_canonical(told.data)) == ("gba.set", ACTOR, {"agent": expected})


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("agent", [PERSON, Address(bytes(20))])
def test_agent_is_refused_when_it_holds_no_code(agent: bytes) -> None:
    """A person answers no questions, nor does an address without an account."""
    running = scope()
    with pytest.raises(Rejection) as caught:
        host(running).set_agent(agent)

    assert caught.value.reason.slug == "not_found"
    assert caught.value.what == f"there is no actor at {agent} to price timers"
    assert running.effects == []
    assert running.session.ledger.account(ACTOR).agent == b""


@pytest.mark.spec("L-21")
@pytest.mark.parametrize("agent", [OTHER, None])
def test_agent_is_refused_when_the_frame_is_read_only(agent: bytes | None) -> None:
    """A question changes nothing, not even who is asked next."""
    running = scope()
    before = running.session.overlay.read(account_key(ACTOR))
    with pytest.raises(Rejection) as caught:
        host(running, read_only=True).set_agent(agent)

    assert caught.value.reason.slug == "forbidden"
    assert running.session.overlay.read(account_key(ACTOR)) == before
    assert running.effects == []


TIERS = {"economy": 8_000, "standard": 10_000, "fast": 15_000, "urgent": 25_000}


@pytest.mark.spec("L-20", "L-22", "L-30")
@pytest.mark.parametrize(
    ("active", "basefee", "median", "most"), [(1, BASEFEE, MEDIAN, CAP), (0, GENESIS_BASEFEE, 0, 550_000)]
)
def test_lane_is_shown_to_frames(active: int, basefee: int, median: int, most: int) -> None:
    """Before the activation the lane basefee is the cycle basefee and nobody has tipped; a read-only frame may ask."""
    assert host(scope(active), read_only=True).timer_lane() == {
        "active": active == 1,
        "basefee_lane_timer": basefee,
        "basefee_cycle": GENESIS_BASEFEE,
        "basefee_cell": GENESIS_BASEFEE,
        "previous_block_p50_priority_tip_per_cycle": median,
        "last_block_cycle_usage": 7_000_000,
        "max_cycles_per_fire": most,
        "priority_tier_multipliers": TIERS,
        "priority_tier_unit": 10_000,
    }
