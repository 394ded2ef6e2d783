"""The rules in force: defaults while nothing is stored, what is stored once it is."""

from dataclasses import replace

import pytest

from trailboss.governance.rules import (
    BASEFEE_CONFIG,
    BASEFEES_KEY,
    DEPLOYERS_KEY,
    GOVERNED,
    LANE_MULTIPLIERS,
    TIMER_CONFIG,
    Rules,
    governed_params,
    read_rules,
    system_slot_key,
)
from trailboss.model.configs import (
    BasefeeConfig,
    Basefees,
    LaneMultipliers,
    TimerConfig,
    amount_octets,
    encode_record,
)
from trailboss.params import load_params
from trailboss.primitives.octets import Address
from trailboss.state.keys import STORAGE
from trailboss.state.slots import encode_slot

PARAMS = load_params()


def rules(state: dict[bytes, bytes] | None = None) -> Rules:
    """Return the rules that a state puts in force."""
    return read_rules(PARAMS, (state or {}).get)


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
    changed = governed_params(PARAMS, state.get)
    assert getattr(getattr(changed, subject), field) == 12_345
    assert replace(changed, **{subject: getattr(PARAMS, subject)}) == PARAMS
