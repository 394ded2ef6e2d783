"""Governance instructions: who may send them, what they may set, and the state change that follows.

A change is stored at once and comes into force with the next block, because rules are read once, when a block begins.

Spec: CIP-5 §5.4, CIP-5 §6.4, CIP-5 §7
Decision: D-34
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.governance import parameters
from trailboss.governance.rules import BASEFEE_CONFIG, LANE_MULTIPLIERS, TIMER_CONFIG, Rules, timer_config
from trailboss.governance.votes import ACTS, check_subject, check_vote, refused
from trailboss.model import events
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, TimerConfig, amount_octets, encode_record
from trailboss.model.events import EventRecord
from trailboss.model.transactions import SetGovParam, UpdateBasefeeConfig, UpdateLaneFeeMultipliers, UpdateTimerConfig
from trailboss.params import ChainParams, parameter_bounds
from trailboss.params.records import check_relations
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import U64_MAX
from trailboss.state.overlay import Overlay
from trailboss.state.slots import encode_slot

VALUE_WIDTH: Final = 8


def check_deployer(rules: Rules, sender: bytes, instruction: str, otherwise: str = "") -> None:
    """Refuse a sender that is not among the system deployers, and say how else it could be done.

    Spec: CIP-5 §5.4. Decision: D-34, D-87
    """
    if sender not in rules.deployers:
        raise Rejection(
            RejectionReason.UNAUTHORIZED,
            f"{instruction} from {Address(sender)}, which is not among the system deployers{otherwise}",
            instruction=instruction,
            sender=str(Address(sender)),
        )


def update_timer_config(overlay: Overlay, rules: Rules, instruction: UpdateTimerConfig) -> EventRecord:
    """Store a new TimerConfig and return its event; a fire must fit the lane, and a removal the clean-up budget.

    Spec: CIP-5 §6.4
    """
    # CHECK
    values = {name: getattr(instruction, name) for name in TimerConfig.__struct_fields__}
    _check_positive(values)
    config = TimerConfig(*values.values())
    # Now, and when what is voted already has come into force.
    for height in (rules.height, U64_MAX):
        _check_relations(parameters.governed_params(rules.params, overlay.read, height), config)
    # RUN
    return _store(overlay, rules, TIMER_CONFIG, encode_record(config), event=events.TIMER_CONFIG_UPDATED, facts=values)


def update_basefee_config(overlay: Overlay, rules: Rules, instruction: UpdateBasefeeConfig) -> EventRecord:
    """Store a new BasefeeConfig and return its event."""
    # CHECK
    names = ("alpha", "max_change_denom", "min_basefee", "max_basefee", "block_cycles_target", "block_cells_target")
    values = {name: getattr(instruction, name) for name in names}
    _check_positive(values)
    ceiling = rules.params.fees.max_basefee
    if instruction.max_basefee > ceiling:
        raise refused("max_basefee", instruction.max_basefee, f"at most {ceiling}, so that no cost overflows")
    if instruction.min_basefee > instruction.max_basefee:
        raise refused("min_basefee", instruction.min_basefee, f"at most max_basefee = {instruction.max_basefee}")
    values["block_access_target"] = instruction.block_access_target
    values["access_weight_scalar_ppm"] = instruction.access_weight_scalar_ppm
    # RUN
    money = {name: amount_octets(values[name]) for name in ("min_basefee", "max_basefee")}
    config = BasefeeConfig(*(values | money).values())
    return _store(
        overlay, rules, BASEFEE_CONFIG, encode_record(config), event=events.BASEFEE_CONFIG_UPDATED, facts=values
    )


def update_lane_multipliers(overlay: Overlay, rules: Rules, instruction: UpdateLaneFeeMultipliers) -> EventRecord:
    """Store new lane fee multipliers and return their event; execution is never free. Decision: D-41."""
    # CHECK
    values = {name: getattr(instruction, name) for name in ("user", "runner", "timer", "system")}
    _check_positive(values)
    # RUN
    multipliers = LaneMultipliers(*values.values())
    return _store(
        overlay,
        rules,
        LANE_MULTIPLIERS,
        encode_record(multipliers),
        event=events.LANE_MULTIPLIERS_UPDATED,
        facts=values,
    )


def set_parameter(overlay: Overlay, rules: Rules, instruction: SetGovParam) -> EventRecord:
    """Store one governed parameter and return its event; ``INVALID_PARAMETER`` refuses all others. Decision: D-34."""
    # CHECK
    key = instruction.key
    if key not in parameters.GOVERNED and key not in parameters.EPOCHAL and key not in ACTS:
        known = ", ".join(name.decode() for name in (*parameters.GOVERNED, *parameters.EPOCHAL, *ACTS))
        raise Rejection(
            RejectionReason.INVALID_PARAMETER, f"unknown governed parameter {key!r:.80}; there are: {known}"
        )
    if len(instruction.value) != VALUE_WIDTH:
        raise refused(key.decode(), len(instruction.value), f"a value of exactly {VALUE_WIDTH} bytes, big-endian")
    value = int.from_bytes(instruction.value, "big")
    if key in ACTS:
        return ACTS[key](overlay, rules, value)
    subject, field = (parameters.GOVERNED | parameters.EPOCHAL)[key]
    check_subject(rules, key, value, subject)
    least, most = parameter_bounds(subject, field)
    if not least <= value <= most:
        raise refused(key.decode(), value, f"within {least}..={most}")
    check_vote(rules, key, value)
    params = parameters.with_param(
        parameters.governed_params(rules.params, overlay.read, U64_MAX), subject, field, value
    )
    _check_relations(params, timer_config(rules.params, overlay.read))
    # RUN
    facts: dict[str, object] = {"key": key, "value": value}
    octets = instruction.value
    if key in parameters.EPOCHAL:
        # What is in force now stays so to the end of the epoch, however often the vote changes before.
        now = getattr(getattr(rules.params, subject), field)
        change = parameters.Change(now, value, parameters.next_epoch(rules.params, rules.height))
        octets, facts["height"] = parameters.encode_change(change), change.height
    return _store(overlay, rules, key, octets, event=events.PARAMETER_SET, facts=facts)


def _store(
    overlay: Overlay, rules: Rules, name: bytes, octets: bytes, *, event: str, facts: Mapping[str, object]
) -> EventRecord:
    overlay.write(parameters.system_slot_key(rules.params, name), encode_slot(name, octets))
    emitter = system_address(rules.params.governance.basefee_actor)
    return EventRecord(event, emitter, encode_canonical(facts))


def _check_relations(params: ChainParams, config: TimerConfig) -> None:
    """Refuse governed values that do not go together, so that no timer can wait for ever for want of room."""
    values = {name: getattr(config, name) for name in TimerConfig.__struct_fields__}
    try:
        check_relations(replace(params, timers=replace(params.timers, **values)))
    except ConfigurationError as error:
        raise Rejection(RejectionReason.INVALID_PARAMETER, str(error)) from None


def _check_positive(values: dict[str, int]) -> None:
    for name, value in values.items():
        if value < 1:
            raise refused(name, value, "at least 1")
