"""`trailboss.sdk` as actors use it, and what it costs them; and the same file outside of any frame."""

import sys

import pytest

import trailboss.sdk
from tests.golden.world import OWNER, World
from trailboss.codec.canonical import decode_canonical, encode_canonical

FACTS = {
    "trigger_block_height": 95,
    "current_block_height": 100,
    "basefee_cycle": 10_000,
    "basefee_cell": 20_000,
    "basefee_lane_timer": 1_000,
    "last_block_cycle_usage": 5_000_000,
    "previous_block_p50_priority_tip_per_cycle": 401,
    "owner_actor_balance": 10**24,
}
WIDEST = dict.fromkeys(FACTS, 2**127 - 1)
PREAMBLE = """
from trailboss.sdk import (
    GasBidContext, PriorityTier, default_gas_bid, gas_bid, schedule_timer, set_gas_bidding_agent, tier_tip
)
"""


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


TIERS = [("ECONOMY", 320), ("STANDARD", 401), ("FAST", 601), ("URGENT", 1_002)]


@pytest.mark.spec("L-22")
@pytest.mark.parametrize(("tier", "tip"), TIERS)
def test_hint_states_a_part_of_the_median_tip(world, tier, tip):
    """The multipliers are the chain's own, 0.8, 1, 1.5 and 2.5; 401 times 0.8 is 320.8, and parts of a unit go."""
    answer(world, f"schedule_timer(101, b'x', gas_limit=5, priority_tier_hint=PriorityTier.{tier})")

    (request,) = world.timers
    assert (request.max_fee_per_cycle, request.max_priority_fee_per_cycle) == (None, tip)
    assert request.gas_limit == 5


@pytest.mark.spec("L-22")
def test_hint_follows_the_multipliers_when_governance_has_set_others(world):
    """They are read from the chain, not from the module."""
    world.lane["priority_tier_multipliers"] = {"fast": 30_000}

    assert answer(world, "return tier_tip(PriorityTier.FAST)") == 3 * 401


@pytest.mark.spec("L-22", "L-31")
def test_hint_has_no_effect_when_the_lane_is_not_active(world):
    """There are no tips yet, and an actor has to run before and after the activation."""
    world.lane["active"] = False
    answer(world, "schedule_timer(101, b'x', priority_tier_hint=PriorityTier.FAST)")

    assert world.timers[0].max_priority_fee_per_cycle is None


def test_hint_is_refused_when_the_tip_is_stated_besides(world):
    """Two answers to one question; nothing is scheduled."""
    statement = "schedule_timer(101, b'', max_priority_fee_per_cycle=7, priority_tier_hint=PriorityTier.FAST)"

    assert fault(world, statement) == (
        "ValueError",
        "max_priority_fee_per_cycle is 7 and priority_tier_hint is PriorityTier.FAST; give one of them",
    )
    assert world.timers == []


def test_hint_is_refused_when_it_is_no_tier(world):
    """A text is not a tier, however well it is spelled."""
    assert fault(world, "schedule_timer(101, b'', priority_tier_hint='fast')") == (
        "TypeError",
        "priority_tier_hint must be a PriorityTier, got 'fast'",
    )


@pytest.mark.spec("L-14")
def test_schedule_timer_hands_every_argument_on(world):
    """By name, as the seed has them."""
    answer(
        world,
        "schedule_timer(101, b'x', fee_payer=bytes(20), gas_limit=5, expires_at=700, max_fee_per_cycle=9,"
        " max_priority_fee_per_cycle=2)",
    )

    (request,) = world.timers
    assert (request.height, request.payload, request.fee_payer) == (101, b"x", bytes(20))
    assert (request.gas_limit, request.expires_at) == (5, 700)
    assert (request.max_fee_per_cycle, request.max_priority_fee_per_cycle) == (9, 2)
    assert not request.has_bid


def test_refusal_of_the_chain_comes_through(world):
    """It is the host's own error, which an actor can catch."""
    assert fault(world, "schedule_timer(100, b'')") == ("HostError", "height 100 is not above 100")


@pytest.mark.spec("L-20")
def test_agent_is_set_and_unset(world):
    """Twenty bytes, or None for the default one."""
    answer(world, "set_gas_bidding_agent(bytes(20))\n    set_gas_bidding_agent(None)")

    assert world.agents == [bytes(20), None]


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("facts", [FACTS, WIDEST], ids=["usual", "widest"])
def test_context_has_every_fact_that_an_agent_is_told(world, facts):
    """All eight come through, however wide."""
    names = ", ".join(f"c.{name}" for name in FACTS)
    shown = answer(world, f"c = GasBidContext.decode(payload)\n    return [{names}]", encode_canonical(facts))

    assert shown == list(facts.values())


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"\xff", "CodecError"),
        (encode_canonical({"trigger_block_height": 1}), "TypeError"),
        (encode_canonical(FACTS | {"other": 1}), "TypeError"),
    ],
)
def test_context_is_refused_when_it_is_not_one(world, payload, kind):
    """No CBOR, a fact too few, a fact too many."""
    assert fault(world, "GasBidContext.decode(payload)", payload)[0] == kind


def test_context_cannot_be_changed(world):
    """It is a record of what was told."""
    statement = "GasBidContext.decode(payload).basefee_cell = 1"

    assert fault(world, statement, encode_canonical(FACTS))[0] == "FrozenInstanceError"


@pytest.mark.spec("L-19")
@pytest.mark.parametrize(("median", "tip"), [(401, 401), (0, 0), (1_000, 1_000), (9_999, 1_000)])
def test_default_bid_doubles_the_basefee_and_tips_the_median(world, median, tip):
    """As far as the doubled basefee leaves room for the tip."""
    facts = FACTS | {"previous_block_p50_priority_tip_per_cycle": median}
    bid = answer(world, "return default_gas_bid(GasBidContext.decode(payload))", encode_canonical(facts))

    assert bid == {"max_fee_per_cycle": 2_000, "max_priority_fee_per_cycle": tip}


def test_bid_is_refused_when_its_tip_is_above_its_cap(world):
    """The chain would take it for no bid at all; here the agent's author is told why."""
    assert answer(world, "return gas_bid(7, 7)") == {"max_fee_per_cycle": 7, "max_priority_fee_per_cycle": 7}
    assert fault(world, "return gas_bid(7, 8)") == (
        "ValueError",
        "max_priority_fee_per_cycle is 8, above max_fee_per_cycle, 7, which caps it",
    )


@pytest.mark.spec("L-20")
@pytest.mark.parametrize("facts", [FACTS, WIDEST], ids=["usual", "widest"])
def test_agent_stays_far_below_what_a_question_may_cost(world, facts):
    """Decoding the context and answering takes half of it at most, the base of the frame included."""
    statement = "return default_gas_bid(GasBidContext.decode(payload))"
    _, meter = tried(world, statement, encode_canonical(facts), read_only=True)

    used = meter.cycles_used + world.params.costs.frame_base
    assert 2 * used <= world.params.lane.gba_cycles_max


@pytest.mark.spec("L-20")
def test_agent_can_be_a_class_of_the_public_sdk(world):
    """The handler is public, because its caller is the actor that it prices; raw, to get the bytes."""
    source = """
from cowboy_sdk import actor, public
from trailboss.sdk import GasBidContext, default_gas_bid

@actor
class Agent:
    @public(decode="raw")
    def get_gas_bid(self, payload):
        return default_gas_bid(GasBidContext.decode(payload))
"""
    outcome, meter = world.call(source, "get_gas_bid", encode_canonical(FACTS), sender=OWNER, read_only=True)

    assert outcome.error is None
    assert decode_canonical(outcome.return_value) == {"max_fee_per_cycle": 2_000, "max_priority_fee_per_cycle": 401}
    assert meter.cycles_used + world.params.costs.frame_base <= world.params.lane.gba_cycles_max


def test_frame_costs_the_same_when_it_is_the_first_and_the_last():
    """Loading the module is nobody's cost."""
    fresh = World()
    call = ("return default_gas_bid(GasBidContext.decode(payload))", encode_canonical(FACTS))
    costs = [tried(World(engine=fresh.engine), *call)[1].cycles_used for _ in range(3)]

    assert costs == [costs[0]] * 3


SPELLINGS = [
    "import trailboss.sdk\n    return trailboss.sdk.PriorityTier.FAST.value",
    "import trailboss.sdk as lane\n    return lane.PriorityTier.FAST.value",
    "from trailboss.sdk import PriorityTier as Tier\n    return Tier('fast').value",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_module_is_found_however_it_is_imported(world, spelling):
    """All that Python's import statement allows."""
    outcome, _ = world.call(f"def go(p):\n    {spelling}\n", "go")

    assert outcome.return_value == b"fast"


def test_package_around_the_module_is_empty(world):
    """What this process has by that name is not the actors'."""
    outcome, _ = world.call("import trailboss.sdk\ndef go(p):\n    return trailboss.__version__\n", "go")

    assert outcome.error.context["exception_type"] == "AttributeError"


def test_module_can_be_imported_without_a_frame(monkeypatch):
    """Editors, type checks and tests of an agent's arithmetic need no chain."""
    context = trailboss.sdk.GasBidContext.decode(encode_canonical(FACTS))

    assert context == trailboss.sdk.GasBidContext(**FACTS)
    assert trailboss.sdk.default_gas_bid(context)["max_fee_per_cycle"] == 2_000
    # The public SDK's own mock of a host may be there from another test.
    monkeypatch.setitem(sys.modules, "pvm_host", None)
    with pytest.raises(ModuleNotFoundError, match="pvm_host"):
        trailboss.sdk.schedule_timer(101, b"")
