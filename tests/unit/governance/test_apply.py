"""Governance instructions: what they store and tell, and every refusal with its value and rule."""

import pytest

from trailboss.codec.canonical import decode_canonical
from trailboss.governance.apply import (
    check_deployer,
    set_parameter,
    update_basefee_config,
    update_lane_multipliers,
    update_timer_config,
)
from trailboss.governance.rules import DEPLOYERS_KEY, GOVERNED, read_rules
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, TimerConfig, amount_octets
from trailboss.model.transactions import (
    SetGovParam,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
)
from trailboss.params import load_params
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

PARAMS = load_params()
DEPLOYER = Address(b"\x0d" * 20)
TIMER_DEFAULTS = (2_592_000, 550_000, 550_000, 1_024, 5_000_000)
BASEFEE_DEFAULTS = (8, 8, 10_000, 10**24, 10_000_000, 500_000, 0, 0)
LANE = b"system:cip1:lane_timer_cycles"
GC_PRICE = b"system:timers:gc_cycles_per_timer"


def number(value: int, width: int = 8) -> bytes:
    return value.to_bytes(width, "big")


@pytest.fixture
def overlay() -> Overlay:
    store = MemoryStore()
    store.commit(0, {DEPLOYERS_KEY: bytes(DEPLOYER)})
    return Overlay(store)


def in_force(overlay: Overlay):
    return read_rules(PARAMS, overlay.read)


def refusal(overlay: Overlay, function, instruction) -> Rejection:
    """Return what an instruction is refused with; nothing may have been written."""
    rules, changes = in_force(overlay), overlay.changes()
    with pytest.raises(Rejection) as caught:
        function(overlay, rules, instruction)
    assert caught.value.reason is RejectionReason.INVALID_PARAMETER
    assert overlay.changes() == changes
    return caught.value


@pytest.mark.spec("F-54", "F-55", "F-72")
def test_sender_is_refused_when_not_among_the_deployers(overlay: Overlay) -> None:
    """The refusal names instruction and sender; a deployer passes."""
    check_deployer(in_force(overlay), DEPLOYER, "CancelTimer")
    stranger = Address(b"\x0e" * 20)
    with pytest.raises(Rejection) as caught:
        check_deployer(in_force(overlay), stranger, "CancelTimer")
    assert caught.value.reason is RejectionReason.UNAUTHORIZED
    assert caught.value.what == f"CancelTimer from {stranger}, which is not among the system deployers"
    assert caught.value.context == {"instruction": "CancelTimer", "sender": str(stranger)}


@pytest.mark.spec("F-72")
def test_timer_config_is_stored_and_told_when_it_is_sound(overlay: Overlay) -> None:
    """The event has the topic of the text, the system actor as emitter, and all five values."""
    event = update_timer_config(overlay, in_force(overlay), UpdateTimerConfig(1, 10_000, 3, 4, 200))
    assert (event.name, event.emitter) == ("timer_config.updated", system_address(9))
    assert decode_canonical(event.data) == {
        "max_ttl_blocks": 1,
        "max_cycles_per_fire": 10_000,
        "max_cells_per_fire": 3,
        "max_timers_per_actor": 4,
        "gc_cycles_per_block": 200,
    }
    assert in_force(overlay).timer == TimerConfig(1, 10_000, 3, 4, 200)


@pytest.mark.spec("F-72")
@pytest.mark.parametrize(
    ("position", "edge", "beyond", "words"),
    [
        (1, 2_000_000, 2_000_001, ("2000000 ", "max_cycles_per_fire = 2000001")),
        (1, 10_000, 9_999, ("max_cycles_per_fire = 9999", "frame_base = 10000")),
        (4, 200, 199, ("gc_cycles_per_block = 199", "gc_cycles_per_timer = 200")),
    ],
)
def test_timer_config_is_refused_when_no_timer_could_ever_run_or_leave(
    overlay: Overlay, position: int, edge: int, beyond: int, words: tuple[str, str]
) -> None:
    """A fire must fit the lane and cover a frame's base, a removal must fit the clean-up budget."""
    values = list(TIMER_DEFAULTS)
    values[position] = beyond
    refused = refusal(overlay, update_timer_config, UpdateTimerConfig(*values))
    for word in words:
        assert word in refused.what
    values[position] = edge
    update_timer_config(overlay, in_force(overlay), UpdateTimerConfig(*values))


@pytest.mark.spec("F-72")
@pytest.mark.parametrize("position", range(5))
def test_timer_config_is_refused_when_a_value_is_zero(overlay: Overlay, position: int) -> None:
    """Each of the five."""
    values = list(TIMER_DEFAULTS)
    values[position] = 0
    refused = refusal(overlay, update_timer_config, UpdateTimerConfig(*values))
    assert refused.what.endswith(" = 0 must be at least 1")


def test_timer_config_is_held_to_the_lane_of_its_own_block_when_that_was_changed_first(overlay: Overlay) -> None:
    """Changes of one block must go together although neither is in force yet, whichever comes first."""
    rules = in_force(overlay)
    set_parameter(overlay, rules, SetGovParam(LANE, number(600_000)))
    refused = refusal(overlay, update_timer_config, UpdateTimerConfig(1, 600_001, 3, 4, 200))
    assert "600000" in refused.what
    update_timer_config(overlay, rules, UpdateTimerConfig(1, 600_000, 3, 4, 200))
    refused = refusal(overlay, set_parameter, SetGovParam(LANE, number(599_999)))
    assert "lane_cycles_per_block = 599999" in refused.what


def test_basefee_config_is_stored_and_told_when_it_is_sound(overlay: Overlay) -> None:
    """All eight values, those without a price included."""
    event = update_basefee_config(overlay, in_force(overlay), UpdateBasefeeConfig(4, 16, 1, 5, 6, 7, 8, 9))
    assert (event.name, event.emitter) == ("basefee_config.updated", system_address(9))
    assert decode_canonical(event.data) == {
        "alpha": 4,
        "max_change_denom": 16,
        "min_basefee": 1,
        "max_basefee": 5,
        "block_cycles_target": 6,
        "block_cells_target": 7,
        "block_access_target": 8,
        "access_weight_scalar_ppm": 9,
    }
    assert in_force(overlay).basefee == BasefeeConfig(4, 16, amount_octets(1), amount_octets(5), 6, 7, 8, 9)


@pytest.mark.parametrize(
    ("position", "value", "words"),
    [
        (0, 0, "alpha = 0 must be at least 1"),
        (1, 0, "max_change_denom = 0 must be at least 1"),
        (2, 0, "min_basefee = 0 must be at least 1"),
        (3, 0, "max_basefee = 0 must be at least 1"),
        (4, 0, "block_cycles_target = 0 must be at least 1"),
        (5, 0, "block_cells_target = 0 must be at least 1"),
        (3, 10**24 + 1, f"max_basefee = {10**24 + 1} must be at most {10**24}, so that no cost overflows"),
        (3, 9_999, "min_basefee = 10000 must be at most max_basefee = 9999"),
    ],
)
def test_basefee_config_is_refused_when_a_value_cannot_be(
    overlay: Overlay, position: int, value: int, words: str
) -> None:
    """What divides or bounds is positive, the ceiling is bounded, and the floor is below it."""
    values = list(BASEFEE_DEFAULTS)
    values[position] = value
    refused = refusal(overlay, update_basefee_config, UpdateBasefeeConfig(*values))
    assert refused.what == words


def test_lane_multipliers_are_stored_and_told_when_positive(overlay: Overlay) -> None:
    """One is the smallest."""
    event = update_lane_multipliers(overlay, in_force(overlay), UpdateLaneFeeMultipliers(1, 2, 3, 4))
    assert (event.name, event.emitter) == ("lane_fee_multipliers.updated", system_address(9))
    assert decode_canonical(event.data) == {"user": 1, "runner": 2, "timer": 3, "system": 4}
    assert in_force(overlay).multipliers == LaneMultipliers(1, 2, 3, 4)


@pytest.mark.parametrize("position", range(4))
def test_lane_multipliers_are_refused_when_one_is_zero(overlay: Overlay, position: int) -> None:
    """Execution is never free."""
    values = [10_000] * 4
    values[position] = 0
    lane = ("user", "runner", "timer", "system")[position]
    refused = refusal(overlay, update_lane_multipliers, UpdateLaneFeeMultipliers(*values))
    assert refused.what == f"{lane} = 0 must be at least 1"
    assert refused.context == {"parameter": lane, "value": "0"}


@pytest.mark.parametrize("key", sorted(GOVERNED))
def test_parameter_is_stored_and_told_when_it_is_sound(overlay: Overlay, key: bytes) -> None:
    """Twice the default goes with everything else."""
    subject, field = GOVERNED[key]
    value = 2 * getattr(getattr(PARAMS, subject), field)
    event = set_parameter(overlay, in_force(overlay), SetGovParam(key, number(value)))
    assert (event.name, event.emitter) == ("parameter.set", system_address(9))
    assert decode_canonical(event.data) == {"key": key, "value": value}
    assert getattr(getattr(in_force(overlay).params, subject), field) == value


def test_parameter_is_refused_when_its_key_is_unknown(overlay: Overlay) -> None:
    """The refusal lists the keys that there are."""
    refused = refusal(overlay, set_parameter, SetGovParam(b"system:gravity", number(1)))
    assert refused.what.startswith("unknown governed parameter b'system:gravity'; there are: system:")
    for key in GOVERNED:
        assert key.decode() in refused.what


@pytest.mark.parametrize("width", [0, 1, 7, 9, 16])
def test_parameter_is_refused_when_its_value_is_not_eight_bytes(overlay: Overlay, width: int) -> None:
    """One exact form."""
    refused = refusal(overlay, set_parameter, SetGovParam(LANE, bytes(width)))
    assert refused.what == f"{LANE.decode()} = {width} must be a value of exactly 8 bytes, big-endian"


@pytest.mark.parametrize("key", sorted(GOVERNED))
def test_parameter_is_refused_when_its_value_is_zero(overlay: Overlay, key: bytes) -> None:
    """None of them can be nothing."""
    refused = refusal(overlay, set_parameter, SetGovParam(key, number(0)))
    assert refused.what == f"{key.decode()} = 0 must be at least 1"


@pytest.mark.spec("F-74", "F-75")
@pytest.mark.parametrize(
    ("key", "edge", "beyond"),
    [
        (LANE, 550_000, 549_999),
        (GC_PRICE, 5_000_000, 5_000_001),
        (b"system:limits:block_cycles_max", 10_000_000, 9_999_999),
        (b"system:limits:block_cells_max", 500_000, 499_999),
    ],
)
def test_parameter_is_refused_when_it_does_not_go_with_the_others(
    overlay: Overlay, key: bytes, edge: int, beyond: int
) -> None:
    """At the edge it is stored, one unit beyond a relation breaks and the refusal names it."""
    refused = refusal(overlay, set_parameter, SetGovParam(key, number(beyond)))
    assert "is too small: it must be at least" in refused.what
    set_parameter(overlay, in_force(overlay), SetGovParam(key, number(edge)))


@pytest.mark.spec("F-74")
def test_lane_is_held_to_the_stored_timer_config_when_there_is_one(overlay: Overlay) -> None:
    """The relation is with what is in force, not with the default: no timer may be stranded, none held too large."""
    update_timer_config(overlay, in_force(overlay), UpdateTimerConfig(1, 1_500_000, 3, 4, 200))
    refused = refusal(overlay, set_parameter, SetGovParam(LANE, number(1_499_999)))
    assert "1500000" in refused.what
    refused = refusal(overlay, set_parameter, SetGovParam(GC_PRICE, number(201)))
    assert "gc_cycles_per_block = 200" in refused.what
    update_timer_config(overlay, in_force(overlay), UpdateTimerConfig(1, 20_000, 3, 4, 200))
    set_parameter(overlay, in_force(overlay), SetGovParam(LANE, number(20_000)))
