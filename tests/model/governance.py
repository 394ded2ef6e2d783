"""What governance may change while the model's chain runs, and which values go together. Decision: D-34."""

from typing import Any

from tests.model.scripts import Interpreter
from tests.model.world import Event, Params, Refused, World

Rules = dict[str, dict[str, int]]
SLOTS = {
    b"system:cip1:lane_timer_cycles": ("timers", "lane_cycles_per_block"),
    b"system:timers:gc_cycles_per_timer": ("timers", "gc_cycles_per_timer"),
    b"system:timers:lane_cells_per_block": ("timers", "lane_cells_per_block"),
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
    b"system:auction:budget_cycles": ("auction", "budget_cycles"),
    b"system:auction:gba_max_cycles": ("auction", "gba_cycles_max"),
    b"system:auction:gba_cycles_per_block": ("auction", "gba_cycles_per_block"),
    b"system:auction:decay": ("auction", "decay"),
    b"system:auction:weight_min": ("auction", "weight_min"),
    b"system:auction:weight_max": ("auction", "weight_max"),
    b"system:auction:starvation_blocks": ("auction", "starvation_blocks"),
    b"system:auction:starvation_floor": ("auction", "starvation_floor"),
    b"system:auction:delays_max": ("auction", "delays_max"),
    b"system:auction:delay_action": ("auction", "delay_action"),
    b"system:auction:delay_penalty_cycles": ("auction", "delay_penalty_cycles"),
}
EPOCHAL = (
    "max_fires_per_block",
    "max_fires_per_target",
    "age_weight",
    "bid_weight",
    "min_gas_limit",
    "payload_bytes_max",
    "max_timers_per_owner",
    "max_timers_per_target",
    "bid_min",
    "bid_max",
    "watch_keys_max",
)
"""Parameters of Globalbox that change with an epoch. Spec: CIP-5old §12."""
EPOCHAL_PREFIX = b"system:globalbox:"
RESCALE = b"system:auction:rescale_weights"
RESCALE_MAX = 10 * 10**9
CLAMPS = "clamps_gas_limit"
MAY_BE_OFF = (
    *("lane_cells_per_block", CLAMPS, "activation_height", "decay"),
    *("delay_action", "delay_penalty_cycles", "bid_weight", "bid_min"),
)
HIGHEST = {
    ("auction", "decay"): 10**9,
    ("auction", "weight_max"): 10**9,
    ("auction", "delay_action"): 2,
    ("globalbox", "age_weight"): 2**63,
    ("globalbox", "bid_weight"): 2**32,
    ("globalbox", "bid_min"): 2**32 - 1,
    ("globalbox", "bid_max"): 2**32 - 1,
    ("globalbox", "watch_keys_max"): 64,
}
ADDRESS_WIDTH = 20
FOR_EVER = 2**64
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


def rules_of(params: Params, world: World, height: int) -> Rules:
    """Return the parameters with what governance has set in their place, in the block of a height."""
    rules: Rules = {"multipliers": {}, **{subject: dict(values) for subject, values in params.items()}}
    for (subject, name), value in world.governed.items():
        rules[subject][name] = value
    for (subject, name), (before, after, begins) in world.votes.items():
        rules[subject][name] = after if height >= begins else before
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
            _check_relations(world, params, "timers", config, interpreter.height)
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
            if len(octets) != VALUE_WIDTH:
                raise Refused(1601)
            _set(interpreter, params, key, int.from_bytes(octets, "big"))


def _set(interpreter: Interpreter, params: Params, key: bytes, value: int) -> None:
    """Set one governed parameter. Decision: D-34."""
    world, facts = interpreter.world, {"key": key, "value": value}
    if key == RESCALE:
        if not interpreter.has_weights or value > RESCALE_MAX:
            raise Refused(1601)
        world.rescales.append(value)
        _tell(world, params, "parameter.set", facts)
        return
    epochal = key.removeprefix(EPOCHAL_PREFIX).decode()
    if key not in SLOTS and not (key.startswith(EPOCHAL_PREFIX) and epochal in EPOCHAL):
        raise Refused(1601)
    subject, name = SLOTS.get(key, ("globalbox", epochal))
    if name == "activation_height":
        cannot = value and not interpreter.is_succeeded_by_lane
        if cannot or interpreter.terms.active or 0 < value < interpreter.height + NOTICE:
            raise Refused(1601)
    _check_relations(world, params, subject, {name: value})
    if key in SLOTS:
        _store(world, params, subject, {name: value}, event="parameter.set", fields=facts)
        return
    # Spec: CIP-5old §12. Decision: D-66.
    length = params["globalbox"]["epoch_blocks"]
    begins = (interpreter.height // length + 1) * length
    world.votes[subject, name] = interpreter.rules[subject][name], value, begins
    _tell(world, params, "parameter.set", {**facts, "height": begins})


def _store(
    world: World, params: Params, subject: str, values: dict[str, int], *, event: str, fields: dict[str, Any]
) -> None:
    for name, value in values.items():
        world.governed[subject, name] = value
    _tell(world, params, event, fields)


def _tell(world: World, params: Params, event: str, fields: dict[str, Any]) -> None:
    emitter = params["governance"]["basefee_actor"].to_bytes(20, "big")
    world.events.append(Event(event, emitter, fields))


def _check_relations(
    world: World, params: Params, subject: str, values: dict[str, int], height: int = FOR_EVER
) -> None:
    """Refuse values that do not go with those that are stored, changes of this block included."""
    rules = rules_of(params, world, height)
    rules[subject].update(values)
    timers, limits, lane, base = rules["timers"], rules["limits"], rules["lane"], rules["costs"]["frame_base"]
    fees, auction, box = params["fees"], rules["auction"], rules["globalbox"]
    if (
        any(value < (name not in MAY_BE_OFF) for name, value in values.items())
        or any(value > HIGHEST.get((subject, name), FOR_EVER) for name, value in values.items())
        or timers["lane_cycles_per_block"] < timers["max_cycles_per_fire"]
        or 0 < timers["lane_cells_per_block"] < timers["max_cells_per_fire"]
        or timers["gc_cycles_per_block"] < timers["gc_cycles_per_timer"]
        or timers["max_cycles_per_fire"] < base
        or min(lane["max_cycles_per_fire"], lane["gba_cycles_max"]) < base
        or timers["lane_cycles_per_block"] < lane["elasticity"]
        or lane["gba_cycles_per_block"] < lane["gba_cycles_max"]
        or lane["basefee_max"] < lane["basefee_min"]
        or not lane["weight_min"] <= lane["weight_max"] <= WEIGHT_LIMIT
        or lane[CLAMPS] > 1
        or auction["budget_cycles"] < timers["max_cycles_per_fire"]
        or not base <= auction["gba_cycles_max"] <= auction["gba_cycles_per_block"]
        or not auction["weight_min"] <= auction["weight_start"] <= auction["weight_max"]
        or auction["weight_max"] < auction["starvation_floor"]
        or box["max_fires_per_block"] < box["max_fires_per_target"]
        or not base <= box["min_gas_limit"] <= timers["max_cycles_per_fire"]
        or box["bid_max"] < box["bid_min"]
        or box["watch_key_bytes_max"] < ADDRESS_WIDTH
        or box["hits_max"] < box["max_fires_per_block"] + 1
        or limits["block_cycles_max"] < fees["cycles_target"]
        or limits["block_cells_max"] < fees["cells_target"]
    ):
        raise Refused(1601)
