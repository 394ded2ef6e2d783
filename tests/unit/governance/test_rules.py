"""The rules in force: defaults while nothing is stored, what is stored once it is."""

import pytest
from msgspec.structs import replace

from trailboss.governance.markets import LANE_KEY, is_active
from trailboss.governance.parameters import ACTIVATION, GOVERNED, governed_params, system_slot_key
from trailboss.governance.rules import (
    BASEFEE_CONFIG,
    BASEFEES_KEY,
    DEPLOYERS_KEY,
    JOINING_KEY,
    LANE_MULTIPLIERS,
    TIMER_CONFIG,
    Rules,
    read_rules,
)
from trailboss.model.configs import (
    BasefeeConfig,
    Basefees,
    JoiningGap,
    JoiningGaps,
    LaneMultipliers,
    LaneState,
    MarketKind,
    TimerConfig,
    amount_octets,
    encode_record,
)
from trailboss.params import load_params
from trailboss.primitives.octets import Address
from trailboss.state.keys import STORAGE
from trailboss.state.slots import encode_slot

PARAMS = load_params()
HEIGHT = 100
"""Of the block that the rules are for."""


def rules(state: dict[bytes, bytes] | None = None) -> Rules:
    """Return the rules that a state puts in force."""
    return read_rules(PARAMS, (state or {}).get, HEIGHT)


@pytest.mark.spec("F-70")
def test_rules_are_the_defaults_when_state_holds_nothing() -> None:
    """TimerConfig, BasefeeConfig, multipliers of 1.0, genesis basefees, nobody who may govern."""
    in_force = rules()
    assert in_force.timer == TimerConfig(2_592_000, 550_000, 550_000, 1_024, 5_000_000)
    assert in_force.basefee == BasefeeConfig(
        8, 8, amount_octets(10_000), amount_octets(10**24), 10_000_000, 500_000, 0, 0
    )
    assert in_force.multipliers == LaneMultipliers(10_000, 10_000, 10_000, 10_000)
    assert (in_force.cycle_basefee, in_force.cell_basefee) == (10_000, 10_000)
    assert in_force.deployers == frozenset()
    assert in_force.params == PARAMS
    assert (in_force.height, in_force.market.kind) == (HEIGHT, MarketKind.NONE)


@pytest.mark.spec("F-71")
def test_timer_config_lies_in_a_slot_of_the_basefee_actor() -> None:
    """The key is that of actor 0x09 and its slot's name, and what lies there is in force."""
    key = system_slot_key(PARAMS, TIMER_CONFIG)
    assert TIMER_CONFIG == b"system:timer_config"
    assert key.startswith(STORAGE + bytes(19) + b"\x09")
    config = TimerConfig(1, 2, 3, 4, 5)
    assert rules({key: encode_slot(TIMER_CONFIG, encode_record(config))}).timer == config


def test_stored_configurations_are_in_force_when_they_are_there() -> None:
    """Basefees, their config, multipliers and deployers, each from its own key."""
    config = BasefeeConfig(4, 16, amount_octets(5), amount_octets(900), 70, 80, 1, 2)
    multipliers = LaneMultipliers(11_000, 1, 25_000, 2)
    one, two = Address(b"\x01" * 20), Address(b"\x02" * 20)
    in_force = rules(
        {
            system_slot_key(PARAMS, BASEFEE_CONFIG): encode_slot(BASEFEE_CONFIG, encode_record(config)),
            system_slot_key(PARAMS, LANE_MULTIPLIERS): encode_slot(LANE_MULTIPLIERS, encode_record(multipliers)),
            BASEFEES_KEY: encode_record(Basefees(amount_octets(101), amount_octets(203))),
            DEPLOYERS_KEY: one + two,
        }
    )
    assert in_force.basefee == config
    assert (in_force.cycle_basefee, in_force.cell_basefee) == (101, 203)
    assert in_force.deployers == {one, two}
    # 1.1 and 2.5, rounded down.
    assert in_force.user_basefees() == (111, 223)
    assert in_force.timer_basefees() == (252, 507)


@pytest.mark.spec("E-03")
def test_next_basefees_follow_their_own_targets_when_a_block_was_used() -> None:
    """Cycles at twice their target rise by an eighth, cells at none of theirs fall by one; the floor holds."""
    in_force = replace(rules(), cycle_basefee=80_000, cell_basefee=80_000)
    assert in_force.next_basefees(20_000_000, 0) == (90_000, 70_000)
    assert in_force.next_basefees(10_000_000, 500_000) == (80_000, 80_000)
    assert not in_force.basefees_rest()
    assert rules().next_basefees(0, 0) == (10_000, 10_000)
    assert rules().basefees_rest()


@pytest.mark.parametrize("name", sorted(GOVERNED))
def test_parameter_has_its_stored_value_when_governance_has_set_it(name: bytes) -> None:
    """Each key sets exactly its parameter."""
    subject, field = GOVERNED[name]
    state = {system_slot_key(PARAMS, name): encode_slot(name, (12_345).to_bytes(8, "big"))}
    changed = governed_params(PARAMS, state.get, HEIGHT)
    assert getattr(getattr(changed, subject), field) == 12_345
    assert replace(changed, **{subject: getattr(PARAMS, subject)}) == PARAMS


def voted(height: int) -> dict[bytes, bytes]:
    """Return a state in which governance has voted the activation for a height."""
    return {system_slot_key(PARAMS, ACTIVATION): encode_slot(ACTIVATION, height.to_bytes(8, "big"))}


def basefees(cycle: int) -> dict[bytes, bytes]:
    return {BASEFEES_KEY: encode_record(Basefees(amount_octets(cycle), amount_octets(10_000)))}


@pytest.mark.spec("L-30")
def test_lane_is_active_from_its_height_on_and_never_without_one() -> None:
    """Zero is never; one is from the first block on."""
    for activation, active in ((0, []), (1, [1, 2, 3, 4]), (3, [3, 4]), (9, [])):
        params = load_params(overrides={"lane.activation_height": activation})
        assert [height for height in range(1, 5) if is_active(params, height)] == active


@pytest.mark.spec("L-30")
@pytest.mark.parametrize(
    ("cycle_basefee", "start"), [(10_000, 10_000), (123_456, 123_456), (999, 1_000), (10**24 + 5, 10**24)]
)
def test_lane_starts_at_the_cycle_basefee_when_it_is_activated(cycle_basefee: int, start: int) -> None:
    """Within its own floor and ceiling, no multiplier, no tips yet; before that there is no lane at all."""
    multipliers = {
        system_slot_key(PARAMS, LANE_MULTIPLIERS): encode_slot(
            LANE_MULTIPLIERS, encode_record(LaneMultipliers(10_000, 10_000, 30_000, 10_000))
        )
    }
    state = voted(HEIGHT) | basefees(cycle_basefee) | multipliers
    lane = rules(state).market
    assert lane.kind is MarketKind.LANE
    assert (lane.basefee, lane.previous_tip, lane.is_new) == (start, 0, True)
    assert lane.record == LaneState(amount_octets(start))
    assert rules(state).market.basefee == start
    before = read_rules(PARAMS, state.get, HEIGHT - 1)
    assert before.market.kind is MarketKind.NONE
    assert before.market.basefee == cycle_basefee


@pytest.mark.spec("L-11", "L-19")
def test_lane_has_what_the_block_before_left_when_it_is_active() -> None:
    """Basefee and median tip of its record, whatever the cycle basefee is meanwhile."""
    left = LaneState(amount_octets(4_321), amount_octets(2**127 - 1), amount_octets(55))
    state = voted(HEIGHT - 1) | basefees(77_777) | {LANE_KEY: encode_record(left)}
    lane = rules(state).market
    assert lane.kind is MarketKind.LANE
    assert (lane.basefee, lane.previous_tip, lane.is_new, lane.record) == (4_321, 2**127 - 1, False, left)
    assert rules(state).market.basefee == 4_321


@pytest.mark.spec("L-05")
def test_cap_of_a_fire_is_within_what_the_lane_offers() -> None:
    """250,000 cycles, or the whole lane if that is less."""
    for overrides, cap in (
        ({}, 250_000),
        ({"lane.max_cycles_per_fire": 3_000_000}, 2_000_000),
        ({"lane.max_cycles_per_fire": 600_000, "timers.lane_cycles_per_block": 600_000}, 600_000),
        ({"lane.max_cycles_per_fire": 600_001, "timers.lane_cycles_per_block": 600_000}, 600_000),
    ):
        lane = read_rules(load_params(overrides={"lane.activation_height": 1} | overrides), {}.get, 1).market
        assert lane.kind is MarketKind.LANE
        assert lane.max_cycles_per_fire == cap


@pytest.mark.spec("L-11", "L-12")
@pytest.mark.parametrize(
    ("alpha", "used", "following"),
    [
        (1, 0, 70_000),
        (1, 875_000, 70_000),
        (1, 950_000, 76_000),
        (1, 1_000_000, 80_000),
        (1, 1_050_000, 84_000),
        (1, 1_125_000, 90_000),
        (1, 2_000_000, 90_000),
        (8, 0, 70_000),
        (8, 875_000, 78_750),
        (8, 950_000, 79_500),
        (8, 1_000_000, 80_000),
        (8, 1_050_000, 80_500),
        (8, 1_125_000, 81_250),
        (8, 2_000_000, 90_000),
    ],
)
def test_lane_basefee_follows_the_use_of_the_lane_under_either_rule(alpha: int, used: int, following: int) -> None:
    """The target is half of the lane. Clipped, an eighth is reached 12.5 % off; scaled, at an empty or full lane."""
    params = load_params(overrides={"lane.activation_height": 1, "lane.alpha": alpha})
    state = {LANE_KEY: encode_record(LaneState(amount_octets(80_000)))}
    assert read_rules(params, state.get, 5).market.next_basefee(used) == following


@pytest.mark.spec("L-11")
def test_lane_basefee_keeps_its_own_bounds_and_always_rises_when_busy() -> None:
    """Its floor and ceiling are not those of the cycle basefee; below 8 an eighth is nothing, and it rises by one."""
    overrides = {"lane.activation_height": 1, "lane.basefee_min": 2, "lane.basefee_max": 100}
    params = load_params(overrides=overrides)

    def following(basefee: int, used: int) -> int:
        return read_rules(
            params, {LANE_KEY: encode_record(LaneState(amount_octets(basefee)))}.get, 5
        ).market.next_basefee(used)

    assert (following(2, 0), following(2, 2_000_000), following(2, 1_000_001)) == (2, 3, 3)
    assert (following(99, 2_000_000), following(100, 2_000_000)) == (100, 100)


def test_basefees_do_not_rest_while_the_lane_has_something_to_write() -> None:
    """Not in the block of the activation, while its basefee falls, after fires with tips, or while a gap is open."""
    floor = PARAMS.lane.basefee_min

    def rest(lane: LaneState | None, extra: dict[bytes, bytes] | None = None) -> bool:
        record = {} if lane is None else {LANE_KEY: encode_record(lane)}
        return rules(voted(HEIGHT) | record | (extra or {})).basefees_rest()

    assert not rest(None)
    at_its_floor = load_params(overrides={"lane.activation_height": HEIGHT, "lane.basefee_min": 10_000})
    assert not read_rules(at_its_floor, {}.get, HEIGHT).basefees_rest()
    assert read_rules(at_its_floor, {}.get, HEIGHT - 1).basefees_rest()
    assert not rest(LaneState(amount_octets(floor + 1)))
    assert not rest(LaneState(amount_octets(floor), amount_octets(1)))
    assert not rest(LaneState(amount_octets(floor)), {JOINING_KEY: encode_record(JoiningGaps((JoiningGap(7, 3, 7),)))})
    assert rest(LaneState(amount_octets(floor)), {JOINING_KEY: encode_record(JoiningGaps())})
    assert rest(LaneState(amount_octets(floor), burned=amount_octets(10**30)))
    assert not rest(LaneState(amount_octets(floor)), basefees(10_001))
