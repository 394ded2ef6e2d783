"""Presets, overrides and the relations between parameters."""

import pytest
from msgspec.structs import fields

from trailboss.params import load_params, parameter_bounds
from trailboss.params.loader import HIGHEST, MAY_BE_ZERO, PRICE_MAX, SUBJECTS
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import U64_MAX


@pytest.mark.spec("F-70", "L-28")
def test_mainnet_holds_the_defaults_of_the_text_when_loaded() -> None:
    """TimerConfig's defaults and the two lane budgets are those of the seeds."""
    timers = load_params().timers
    assert (timers.max_ttl_blocks, timers.max_cycles_per_fire, timers.max_cells_per_fire) == (
        2_592_000,
        550_000,
        550_000,
    )
    assert (timers.max_timers_per_actor, timers.gc_cycles_per_block) == (1_024, 5_000_000)
    assert timers.lane_cycles_per_block == 2_000_000


def test_minimal_differs_in_its_calendar_alone_when_loaded() -> None:
    """Tests on the small preset still prove the defaults."""
    small, large = load_params("minimal"), load_params("mainnet")
    assert (small.calendar.ring_size, small.calendar.epoch_length) == (8, 4)
    assert (small.timers, small.fees, small.costs, small.limits, small.lane) == (
        large.timers,
        large.fees,
        large.costs,
        large.limits,
        large.lane,
    )


@pytest.mark.spec("L-05", "L-12", "L-22", "L-23", "L-30")
def test_mainnet_holds_the_lanes_numbers_of_the_text_when_loaded() -> None:
    """Cap, target, step, window, bounds of W and tiers; the lane is not active."""
    lane, unit = load_params().lane, load_params().fees.lane_multiplier_unit
    assert (lane.max_cycles_per_fire, lane.fairness_window_blocks) == (250_000, 1_000)
    assert (lane.elasticity, lane.max_change_denominator, lane.alpha) == (2, 8, 1)
    assert (lane.weight_min, lane.weight_max) == (10**9, 2 * 10**9)
    tiers = (lane.tier_economy, lane.tier_standard, lane.tier_fast, lane.tier_urgent)
    assert [tier * 10 // unit for tier in tiers] == [8, 10, 15, 25]
    assert (lane.activation_height, lane.clamps_gas_limit) == (0, 0)


def test_bounds_are_those_that_loading_holds_a_parameter_to() -> None:
    """For each parameter: at its least and greatest value no bound refuses it, one beyond it does."""
    for subject, record in SUBJECTS.items():
        for field in fields(record):
            path = f"{subject}.{field.name}"
            least, most = parameter_bounds(subject, field.name)
            assert least == (0 if MAY_BE_ZERO & {subject, path} else 1), path
            assert most == HIGHEST.get(path, most), path
            assert path in HIGHEST or most in (U64_MAX, PRICE_MAX), path
            for value, words in ((least - 1, f"must be an integer of at least {least}"), (most + 1, f"at most {most}")):
                with pytest.raises(ConfigurationError, match=words) as refusal:
                    load_params(overrides={path: value})
                assert str(refusal.value).startswith(f"{path} = {value} must be")


def test_override_replaces_one_value_when_the_path_exists() -> None:
    """Overrides take dotted paths."""
    assert load_params("mainnet", {"timers.max_timers_per_actor": 7}).timers.max_timers_per_actor == 7


@pytest.mark.parametrize(
    ("preset", "overrides", "message"),
    [
        ("testnet", {}, "unknown preset 'testnet'; there are: mainnet, minimal"),
        ("mainnet", {"timer.x": 1}, "unknown parameter 'timer.x'; a path is subject.name, with subject one of: "),
        (
            "mainnet",
            {"calendar.ring": 1},
            "unknown parameter 'calendar.ring'; calendar has: epoch_count, epoch_length, ring_size",
        ),
        ("mainnet", {"calendar.ring_size": 0}, "calendar.ring_size = 0 must be an integer of at least 1"),
        ("mainnet", {"calendar.ring_size": 2**20 + 1}, "calendar.ring_size = 1048577 must be at most 1048576"),
        (
            "mainnet",
            {"timers.lane_cycles_per_block": 2**64},
            "timers.lane_cycles_per_block = 18446744073709551616 must be at most 18446744073709551615",
        ),
        ("mainnet", {"fees.max_basefee": 2**127}, f"fees.max_basefee = {2**127} must be at most {2**127 - 1}"),
        ("mainnet", {"calendar.ring_size": 2.5}, "calendar.ring_size = 2.5 must be an integer of at least 1"),
        ("mainnet", {"costs.frame_base": -1}, "costs.frame_base = -1 must be an integer of at least 0"),
    ],
)
def test_load_refuses_when_a_name_or_value_is_wrong(preset: str, overrides: dict, message: str) -> None:
    """Every refusal names the path, the value and what there is."""
    with pytest.raises(ConfigurationError) as refusal:
        load_params(preset, overrides)
    assert str(refusal.value).startswith(message)


@pytest.mark.spec("Q-06")
def test_load_refuses_when_the_ring_is_shorter_than_promotion_needs() -> None:
    """A promoted epoch needs a slot for each of its heights, and one for the block that promotes it."""
    with pytest.raises(ConfigurationError) as refusal:
        load_params("minimal", {"calendar.ring_size": 4})
    assert (
        str(refusal.value) == "calendar.ring_size = 4 is too small: it must be at least calendar.epoch_length + 1 = 5"
    )
    assert load_params("minimal", {"calendar.ring_size": 5}).calendar.ring_size == 5


def test_load_refuses_when_a_fire_could_never_fit_the_lane() -> None:
    """A timer with the default gas limit must fit an empty lane."""
    with pytest.raises(ConfigurationError, match="lane_cycles_per_block = 1 is too small"):
        load_params("mainnet", {"timers.lane_cycles_per_block": 1})


def test_load_refuses_when_a_fire_could_never_fit_the_cells_of_a_block() -> None:
    """The bound is off, or holds what one fire may use."""
    rule = r"timers.lane_cells_per_block = 549999 is too small: it must be at least timers.max_cells_per_fire = 550000"
    with pytest.raises(ConfigurationError, match=rule):
        load_params("mainnet", {"timers.lane_cells_per_block": 549_999})
    for sound in (0, 550_000):
        assert load_params("mainnet", {"timers.lane_cells_per_block": sound}).timers.lane_cells_per_block == sound


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"lane.weight_min": 2 * 10**9 + 1}, "lane.weight_max = 2000000000 is too small"),
        ({"lane.basefee_min": 10**24 + 1}, f"lane.basefee_max = {10**24} is too small"),
        ({"lane.gba_cycles_max": 9_999}, "lane.gba_cycles_max = 9999 is too small"),
        ({"lane.gba_cycles_per_block": 49_999}, "lane.gba_cycles_per_block = 49999 is too small"),
        ({"lane.max_cycles_per_fire": 9_999}, "lane.max_cycles_per_fire = 9999 is too small"),
        (
            {
                "costs.frame_base": 1,
                "timers.max_cycles_per_fire": 9,
                "timers.lane_cycles_per_block": 9,
                "lane.elasticity": 10,
            },
            "timers.lane_cycles_per_block = 9 is too small: it must be at least lane.elasticity = 10",
        ),
    ],
)
def test_load_refuses_when_the_lanes_numbers_do_not_go_together(overrides: dict[str, int], message: str) -> None:
    """A question or a fire that could not even begin, bounds that cross, a target of nothing."""
    with pytest.raises(ConfigurationError) as refusal:
        load_params(overrides=overrides)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"governance.escrow_actor": 16}, "governance.reserved_band_max = 15 is too small"),
        (
            {"governance.escrow_actor": 9},
            "system actors must differ: governance.basefee_actor = 9, governance.governance_actor = 10, "
            "governance.escrow_actor = 9",
        ),
        ({"auction.budget_cycles": 549_999}, "auction.budget_cycles = 549999 is too small"),
        ({"auction.weight_start": 99_999_999}, "auction.weight_start = 99999999 is too small"),
        ({"auction.starvation_floor": 10**9 + 1}, f"auction.weight_max = {10**9} is too small"),
        ({"globalbox.max_fires_per_target": 33}, "globalbox.max_fires_per_block = 32 is too small"),
        ({"globalbox.min_gas_limit": 9_999}, "globalbox.min_gas_limit = 9999 is too small"),
        ({"globalbox.watch_key_bytes_max": 19}, "globalbox.watch_key_bytes_max = 19 is too small"),
        ({"globalbox.hits_max": 32}, "globalbox.hits_max = 32 is too small"),
    ],
)
def test_load_refuses_when_numbers_of_the_auction_or_globalbox_do_not_go_together(
    overrides: dict[str, int], message: str
) -> None:
    """A fire that could never run, bounds that cross, a fan-out that never gets further, accounts that are one."""
    with pytest.raises(ConfigurationError) as refusal:
        load_params(overrides=overrides)
    assert str(refusal.value).startswith(message)
