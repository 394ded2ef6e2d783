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
from trailboss.governance.markets import AUCTION_KEY, GLOBALBOX_KEY
from trailboss.governance.parameters import ACTIVATION, EPOCHAL, GOVERNED, RESCALE_WEIGHTS, with_param
from trailboss.governance.rules import DEPLOYERS_KEY, Rules, read_rules
from trailboss.model.auction import SCORE_UNIT, AuctionState
from trailboss.model.configs import MarketKind, TimerConfig, encode_record
from trailboss.model.globalbox import GlobalboxState
from trailboss.model.transactions import SetGovParam, UpdateBasefeeConfig, UpdateLaneFeeMultipliers, UpdateTimerConfig
from trailboss.params import load_params
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import U64_MAX
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore

PARAMS = load_params()
DEPLOYER = Address(b"\x0d" * 20)
TIMER_DEFAULTS = (2_592_000, 550_000, 550_000, 1_024, 5_000_000)
BASEFEE_DEFAULTS = (8, 8, 10_000, 10**24, 10_000_000, 500_000, 0, 0)
HEIGHT = 100
"""Of the block whose rules are read."""
LANE = b"system:cip1:lane_timer_cycles"
CAP = b"system:cip1:max_cycles_per_fire_auction_phase"
CLAMPS = b"system:cip1:activation_clamps_gas_limit"
WINDOW = b"system:cip1:fairness_window_blocks"
WEIGHT_MIN, WEIGHT_MAX = b"system:cip1:weight_min", b"system:cip1:weight_max"
ALPHA, FLOOR = b"system:cip1:lane_basefee_alpha", b"system:cip1:lane_basefee_min"
GBA, GBA_BLOCK = b"system:cip1:gba_max_cycles", b"system:cip1:gba_cycles_per_block"
AUCTION_WEIGHT_MAX, DELAY_ACTION = b"system:auction:weight_max", b"system:auction:delay_action"
CELLS = b"system:timers:lane_cells_per_block"
BID_MAX = b"system:globalbox:bid_max"
SOUND = {ACTIVATION: 10**6, CLAMPS: 1, CELLS: 550_000, AUCTION_WEIGHT_MAX: 900_000_000, DELAY_ACTION: 2, BID_MAX: 5}
"""Values of parameters that can be neither doubled nor one more than their default."""
GC_PRICE = b"system:timers:gc_cycles_per_timer"


def number(value: int, width: int = 8) -> bytes:
    return value.to_bytes(width, "big")


@pytest.fixture
def overlay() -> Overlay:
    store = MemoryStore()
    store.commit(0, {DEPLOYERS_KEY: bytes(DEPLOYER)})
    return Overlay(store)


def chain_for(overlay: Overlay, key: bytes) -> Overlay:
    """Return the state of a chain on which a governed parameter means something."""
    if GOVERNED[key][0] == "auction":
        overlay.write(AUCTION_KEY, encode_record(AuctionState()))
    return overlay


def in_force(overlay: Overlay, height: int = HEIGHT) -> Rules:
    return read_rules(PARAMS, overlay.read, height)


def govern(overlay: Overlay, key: bytes, value: int, height: int = HEIGHT) -> None:
    set_parameter(overlay, in_force(overlay, height), SetGovParam(key, number(value)))


def refusal(overlay: Overlay, function, instruction, height: int = HEIGHT) -> Rejection:
    """Return what an instruction is refused with; nothing may have been written."""
    rules, changes = in_force(overlay, height), overlay.changes()
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


def test_timer_config_is_held_to_the_cells_of_a_block_when_they_are_bounded(overlay: Overlay) -> None:
    """A fire that may use more cells than a block has for all of them would wait for ever."""
    govern(overlay, CELLS, 550_000)
    refused = refusal(overlay, update_timer_config, UpdateTimerConfig(1, 600_000, 550_001, 4, 200))
    assert "lane_cells_per_block = 550000 is too small" in refused.what
    govern(overlay, CELLS, 0)
    update_timer_config(overlay, in_force(overlay), UpdateTimerConfig(1, 600_000, 550_001, 4, 200))
    refused = refusal(overlay, set_parameter, SetGovParam(CELLS, number(550_000)))
    assert "it must be at least timers.max_cells_per_fire = 550001" in refused.what


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


@pytest.mark.parametrize("position", range(4))
def test_lane_multipliers_are_refused_when_one_is_zero(overlay: Overlay, position: int) -> None:
    """Execution is never free."""
    values = [10_000] * 4
    values[position] = 0
    lane = ("user", "runner", "timer", "system")[position]
    refused = refusal(overlay, update_lane_multipliers, UpdateLaneFeeMultipliers(*values))
    assert refused.what == f"{lane} = 0 must be at least 1"
    assert refused.context == {"parameter": lane, "value": "0"}


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


@pytest.mark.spec("L-27")
@pytest.mark.parametrize(
    ("key", "edge", "most"), [(CLAMPS, 1, 1), (WEIGHT_MAX, 2**32, 2**32), (GBA_BLOCK, U64_MAX, U64_MAX)]
)
def test_parameter_is_refused_when_it_is_above_its_greatest_value(
    overlay: Overlay, key: bytes, edge: int, most: int
) -> None:
    """A switch is 0 or 1, a weight leaves room for the product with a price, others are what 8 bytes hold."""
    if edge < U64_MAX:
        refused = refusal(overlay, set_parameter, SetGovParam(key, number(edge + 1)))
        assert refused.what == f"{key.decode()} = {edge + 1} must be within {0 if key == CLAMPS else 1}..={most}"
    govern(overlay, key, edge)
    subject, field = GOVERNED[key]
    assert getattr(getattr(in_force(overlay).params, subject), field) == edge


@pytest.mark.spec("L-27")
@pytest.mark.parametrize("key", sorted(GOVERNED))
def test_parameter_changes_nothing_else_when_it_is_set(overlay: Overlay, key: bytes) -> None:
    """Each key has a parameter of its own, and the parameter follows from the key's value alone."""
    overlay = chain_for(overlay, key)
    subject, field = GOVERNED[key]
    before = in_force(overlay).params
    value = SOUND.get(key) or getattr(getattr(before, subject), field) + 1
    govern(overlay, key, value)
    assert in_force(overlay).params == with_param(before, subject, field, value)
    assert in_force(overlay).params != before


@pytest.mark.spec("L-27")
@pytest.mark.parametrize(
    ("key", "edge", "beyond", "words"),
    [
        (CAP, 10_000, 9_999, "lane.max_cycles_per_fire = 9999 is too small"),
        (WEIGHT_MIN, 2 * 10**9, 2 * 10**9 + 1, "lane.weight_max = 2000000000 is too small"),
        (WEIGHT_MAX, 10**9, 10**9 - 1, "lane.weight_max = 999999999 is too small"),
        (GBA, 10_000, 9_999, "lane.gba_cycles_max = 9999 is too small"),
        (GBA, 1_000_000, 1_000_001, "lane.gba_cycles_per_block = 1000000 is too small"),
        (GBA_BLOCK, 50_000, 49_999, "lane.gba_cycles_per_block = 49999 is too small"),
        (FLOOR, 10**18, None, ""),
    ],
)
def test_lanes_parameter_is_refused_when_it_does_not_go_with_the_others(
    overlay: Overlay, key: bytes, edge: int, beyond: int | None, words: str
) -> None:
    """At the edge it is stored, one unit beyond a relation breaks and the refusal names it."""
    if beyond is not None:
        refused = refusal(overlay, set_parameter, SetGovParam(key, number(beyond)))
        assert refused.what.startswith(words)
    govern(overlay, key, edge)


@pytest.mark.spec("L-27")
def test_window_may_be_a_single_block(overlay: Overlay) -> None:
    """One is the least; how long it takes to shrink is not a matter of what may be voted."""
    govern(overlay, WINDOW, 1)
    assert in_force(overlay).params.lane.fairness_window_blocks == 1
    assert in_force(overlay).params.lane.window_blocks_left_max == PARAMS.lane.window_blocks_left_max


@pytest.mark.spec("L-30", "L-33")
@pytest.mark.parametrize("height", [1, HEIGHT, 2**63])
def test_activation_is_voted_at_least_two_blocks_ahead(overlay: Overlay, height: int) -> None:
    """The block after the vote still knows nothing of the lane, and everybody can see it come."""
    for early in {1, height - 1, height, height + 1} - {0}:
        refused = refusal(overlay, set_parameter, SetGovParam(ACTIVATION, number(early)), height)
        assert refused.what == (
            f"{ACTIVATION.decode()} = {early} must be at least {height + 2}, 2 blocks ahead of height {height}"
        )
    govern(overlay, ACTIVATION, height + 2, height)
    assert in_force(overlay, height + 1).params.lane.activation_height == height + 2
    assert in_force(overlay, height + 1).market.kind is not MarketKind.LANE
    assert in_force(overlay, height + 2).market.kind is MarketKind.LANE


@pytest.mark.spec("L-30", "L-33")
def test_activation_can_be_moved_while_it_lies_ahead(overlay: Overlay) -> None:
    """Later or nearer, as long as two blocks remain; what was voted last is in force."""
    for height in (500, 900, 102, 103):
        govern(overlay, ACTIVATION, height)
        assert in_force(overlay).params.lane.activation_height == height
    # In the last block before it, it can still be put off.
    govern(overlay, ACTIVATION, 104, 102)
    assert in_force(overlay, 103).market.kind is not MarketKind.LANE
    assert in_force(overlay, 104).market.kind is MarketKind.LANE


@pytest.mark.spec("L-30", "L-33")
@pytest.mark.parametrize("height", [HEIGHT, 108, 109])
def test_activation_is_withdrawn_by_zero_while_it_lies_ahead(overlay: Overlay, height: int) -> None:
    """Up to the last block before it. No height is left, and another can be voted."""
    govern(overlay, ACTIVATION, 110)
    event = set_parameter(overlay, in_force(overlay, height), SetGovParam(ACTIVATION, number(0)))
    assert decode_canonical(event.data) == {"key": ACTIVATION, "value": 0}
    for later in (height + 1, 110, 111, 10**6):
        rules = in_force(overlay, later)
        assert (rules.params.lane.activation_height, rules.market.kind) == (0, MarketKind.NONE)
    govern(overlay, ACTIVATION, 0, height)
    govern(overlay, ACTIVATION, 120, 118)
    assert in_force(overlay, 119).market.kind is not MarketKind.LANE
    assert in_force(overlay, 120).market.kind is MarketKind.LANE


@pytest.mark.spec("L-30", "L-33")
@pytest.mark.parametrize("value", [0, 1, 110, 111, 10**6])
def test_activation_is_refused_when_the_lane_is_active(overlay: Overlay, value: int) -> None:
    """Nothing undoes or repeats it, from the very block of the activation on."""
    govern(overlay, ACTIVATION, 110)
    for height in (110, 111, 10**6):
        refused = refusal(overlay, set_parameter, SetGovParam(ACTIVATION, number(value)), height)
        assert refused.what == (
            f"{ACTIVATION.decode()} = {value} must be left alone: the lane is active from height 110 on, "
            f"and this is block {height}"
        )


def test_lane_that_is_active_from_genesis_cannot_be_voted_away(overlay: Overlay) -> None:
    """A chain that starts with it has it from block 1."""
    params = load_params(overrides={"lane.activation_height": 1})
    rules = read_rules(params, overlay.read, 1)
    assert rules.market.kind is MarketKind.LANE
    with pytest.raises(Rejection, match="the lane is active from height 1 on, and this is block 1 "):
        set_parameter(overlay, rules, SetGovParam(ACTIVATION, number(0)))


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


QUOTA = b"system:globalbox:max_fires_per_block"


@pytest.mark.spec("G-19")
@pytest.mark.parametrize("key", sorted(EPOCHAL))
def test_parameter_of_globalbox_changes_with_the_next_governance_epoch(overlay: Overlay, key: bytes) -> None:
    """It stays as it is to the last block of the epoch; the event says from when on it is another."""
    overlay.write(GLOBALBOX_KEY, encode_record(GlobalboxState()))
    subject, field = EPOCHAL[key]
    before = getattr(getattr(PARAMS, subject), field)
    begins = (HEIGHT // PARAMS.globalbox.epoch_blocks + 1) * PARAMS.globalbox.epoch_blocks
    event = set_parameter(overlay, in_force(overlay), SetGovParam(key, number(SOUND.get(key, before + 1))))
    assert decode_canonical(event.data) == {"key": key, "value": SOUND.get(key, before + 1), "height": begins}
    for height, value in ((HEIGHT + 1, before), (begins - 1, before), (begins, SOUND.get(key, before + 1))):
        assert getattr(getattr(in_force(overlay, height).params, subject), field) == value


@pytest.mark.spec("G-19")
def test_last_vote_of_a_governance_epoch_counts(overlay: Overlay) -> None:
    """What is in force until the epoch ends does not change with how often the vote does."""
    overlay.write(GLOBALBOX_KEY, encode_record(GlobalboxState()))
    before, length = PARAMS.globalbox.max_fires_per_block, PARAMS.globalbox.epoch_blocks
    for value in (before + 5, before + 9):
        govern(overlay, QUOTA, value)
        assert in_force(overlay).params.globalbox.max_fires_per_block == before
    assert in_force(overlay, length).params.globalbox.max_fires_per_block == before + 9
    # A vote of the next epoch stands on what that one has brought.
    govern(overlay, QUOTA, before + 2, length + 1)
    assert in_force(overlay, length + 2).params.globalbox.max_fires_per_block == before + 9
    assert in_force(overlay, 2 * length).params.globalbox.max_fires_per_block == before + 2


@pytest.mark.parametrize("key", [AUCTION_WEIGHT_MAX, BID_MAX])
def test_parameter_is_refused_on_a_chain_of_another_mechanism(overlay: Overlay, key: bytes) -> None:
    """It would be stored and never mean anything."""
    name = "auction" if key == AUCTION_WEIGHT_MAX else "Globalbox"
    refused = refusal(overlay, set_parameter, SetGovParam(key, number(5)))
    assert refused.what == f"{key.decode()} = 5 must be left alone: this chain has no {name}"


@pytest.mark.spec("A-12")
def test_weights_are_rescaled_in_order_only_where_there_are_weights(overlay: Overlay) -> None:
    """Every factor is kept, 0 too, which resets; one above ten, or on a chain without an auction, is refused."""
    assert "this chain has no auction" in refusal(overlay, set_parameter, SetGovParam(RESCALE_WEIGHTS, number(1))).what
    overlay.write(AUCTION_KEY, encode_record(AuctionState()))
    govern(overlay, RESCALE_WEIGHTS, 10 * SCORE_UNIT)
    govern(overlay, RESCALE_WEIGHTS, 0)
    beyond = SetGovParam(RESCALE_WEIGHTS, number(10 * SCORE_UNIT + 1))
    assert f"within 0..={10 * SCORE_UNIT}" in refusal(overlay, set_parameter, beyond).what
    auction = in_force(overlay).market.record
    assert isinstance(auction, AuctionState)
    assert auction.rescales == (10 * SCORE_UNIT, 0)
