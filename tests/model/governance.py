"""What governance may change while the model's chain runs, and which values go together. Decision: D-34."""

from typing import Any

from tests.model.scripts import Interpreter
from tests.model.world import Event, Params, Refused, World

Rules = dict[str, dict[str, int]]
SLOTS = {
    b"system:cip1:lane_timer_cycles": ("timers", "lane_cycles_per_block"),
    b"system:timers:gc_cycles_per_timer": ("timers", "gc_cycles_per_timer"),
    b"system:limits:block_cycles_max": ("limits", "block_cycles_max"),
    b"system:limits:block_cells_max": ("limits", "block_cells_max"),
    b"system:limits:messages_delivered_max": ("limits", "messages_delivered_max"),
    b"system:cip1:activation_height": ("lane", "activation_height"),
    b"system:cip1:max_cycles_per_fire_auction_phase": ("lane", "max_cycles_per_fire"),
    b"system:cip1:fairness_window_blocks": ("lane", "fairness_window_blocks"),
    b"system:cip1:weight_min": ("lane", "weight_min"),
    b"system:cip1:weight_max": ("lane", "weight_max"),
    b"system:cip1:priority_tier_multipliers.economy": ("lane", "tier_economy"),
    b"system:cip1:priority_tier_multipliers.standard": ("lane", "tier_standard"),
    b"system:cip1:priority_tier_multipliers.fast": ("lane", "tier_fast"),
    b"system:cip1:priority_tier_multipliers.urgent": ("lane", "tier_urgent"),
    b"system:cip1:activation_clamps_gas_limit": ("lane", "clamps_gas_limit"),
    b"system:cip1:lane_basefee_alpha": ("lane", "alpha"),
    b"system:cip1:lane_basefee_min": ("lane", "basefee_min"),
    b"system:cip1:gba_max_cycles": ("lane", "gba_cycles_max"),
    b"system:cip1:gba_cycles_per_block": ("lane", "gba_cycles_per_block"),
}
CLAMPS = "clamps_gas_limit"
MAY_BE_OFF = (CLAMPS, "activation_height")
NOTICE = 2
WEIGHT_LIMIT = 2**32
VALUE_WIDTH = 8
TIMER_CONFIG = (
    "max_ttl_blocks",
    "max_cycles_per_fire",
    "max_cells_per_fire",
    "max_timers_per_actor",
    "gc_cycles_per_block",
)
BASEFEE_CONFIG = ("alpha", "max_change_denominator", "min_basefee", "max_basefee", "cycles_target", "cells_target")
BASEFEE_FIELDS = (
    "alpha",
    "max_change_denom",
    "min_basefee",
    "max_basefee",
    "block_cycles_target",
    "block_cells_target",
    "block_access_target",
    "access_weight_scalar_ppm",
)
LANES = ("user", "runner", "timer", "system")


def rules_of(params: Params, world: World) -> Rules:
    """Return the parameters with what governance has set in their place."""
    rules: Rules = {"multipliers": {}, **{subject: dict(values) for subject, values in params.items()}}
    for (subject, name), value in world.governed.items():
        rules[subject][name] = value
    return rules


def govern(interpreter: Interpreter, params: Params, kind: str, args: tuple[Any, ...]) -> None:
    """Carry out a system instruction of a system deployer. Spec: CIP-5 §5.4, §6.4."""
    world = interpreter.world
    match kind, args:
        case "CancelTimer", (timer_id,):
            interpreter.cancel(timer_id, None)
        case "ExtendTimer", (timer_id, expires_at):
            interpreter.extend(timer_id, expires_at, None)
        case "UpdateTimerConfig", values:
            config = dict(zip(TIMER_CONFIG, values, strict=True))
            _check_relations(world, params, "timers", config)
            _store(world, params, "timers", config, event="timer_config.updated", fields=config)
        case "UpdateBasefeeConfig", values:
            told = dict(zip(BASEFEE_FIELDS, values, strict=True))
            config = dict(zip(BASEFEE_CONFIG, values, strict=False))
            bounds = (config["min_basefee"], config["max_basefee"], params["fees"]["max_basefee"])
            if min(config.values()) < 1 or bounds != tuple(sorted(bounds)):
                raise Refused(1601)
            _store(world, params, "fees", config, event="basefee_config.updated", fields=told)
        case "UpdateLaneFeeMultipliers", values:
            multipliers = dict(zip(LANES, values, strict=True))
            if min(values) < 1:
                raise Refused(1601)
            _store(world, params, "multipliers", multipliers, event="lane_fee_multipliers.updated", fields=multipliers)
        case "SetGovParam", (key, octets):
            if key not in SLOTS or len(octets) != VALUE_WIDTH:
                raise Refused(1601)
            value = int.from_bytes(octets, "big")
            subject, name = SLOTS[key]
            if name == "activation_height" and (interpreter.terms.active or 0 < value < interpreter.height + NOTICE):
                raise Refused(1601)
            _check_relations(world, params, subject, {name: value})
            _store(world, params, subject, {name: value}, event="parameter.set", fields={"key": key, "value": value})


def _store(
    world: World, params: Params, subject: str, values: dict[str, int], *, event: str, fields: dict[str, Any]
) -> None:
    for name, value in values.items():
        world.governed[subject, name] = value
    emitter = params["governance"]["basefee_actor"].to_bytes(20, "big")
    world.events.append(Event(event, emitter, fields))


def _check_relations(world: World, params: Params, subject: str, values: dict[str, int]) -> None:
    """Refuse values that do not go with those that are stored, changes of this block included."""
    rules = rules_of(params, world)
    rules[subject].update(values)
    timers, limits, lane, base = rules["timers"], rules["limits"], rules["lane"], rules["costs"]["frame_base"]
    fees = params["fees"]
    if (
        any(value < (name not in MAY_BE_OFF) for name, value in values.items())
        or timers["lane_cycles_per_block"] < timers["max_cycles_per_fire"]
        or timers["gc_cycles_per_block"] < timers["gc_cycles_per_timer"]
        or timers["max_cycles_per_fire"] < base
        or min(lane["max_cycles_per_fire"], lane["gba_cycles_max"]) < base
        or timers["lane_cycles_per_block"] < lane["elasticity"]
        or lane["gba_cycles_per_block"] < lane["gba_cycles_max"]
        or lane["basefee_max"] < lane["basefee_min"]
        or not lane["weight_min"] <= lane["weight_max"] <= WEIGHT_LIMIT
        or lane[CLAMPS] > 1
        or limits["block_cycles_max"] < fees["cycles_target"]
        or limits["block_cells_max"] < fees["cells_target"]
    ):
        raise Refused(1601)
