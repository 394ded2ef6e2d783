"""Governance instructions: who may send them, what they may set, and the state change that follows.

A change is stored at once and comes into force with the next block, because rules are read once, when a block begins.

Spec: CIP-5 §5.4, CIP-5 §6.4, CIP-5 §7
Decision: D-34
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.governance.rules import (
    ACTIVATION,
    AUCTION_KEY,
    BASEFEE_CONFIG,
    EPOCHAL,
    GOVERNED,
    LANE_MULTIPLIERS,
    RESCALE_WEIGHTS,
    TIMER_CONFIG,
    Change,
    Rules,
    encode_change,
    governed_params,
    system_slot_key,
    timer_config,
    with_param,
)
from trailboss.model.auction import SCORE_UNIT, AuctionState
from trailboss.model.configs import (
    BasefeeConfig,
    LaneMultipliers,
    TimerConfig,
    amount_octets,
    decode_record,
    encode_record,
)
from trailboss.model.events import (
    BASEFEE_CONFIG_UPDATED,
    LANE_MULTIPLIERS_UPDATED,
    PARAMETER_SET,
    TIMER_CONFIG_UPDATED,
    EventRecord,
)
from trailboss.model.transactions import (
    SetGovParam,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
)
from trailboss.params import ChainParams, parameter_bounds
from trailboss.params.records import check_relations
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import U64_MAX
from trailboss.state.overlay import Overlay
from trailboss.state.slots import encode_slot

VALUE_WIDTH: Final = 8
_OF_MECHANISM: Final = MappingProxyType({"auction": "auction", "globalbox": "Globalbox"})
"""Groups of parameters that mean nothing on a chain of another mechanism, and its name."""
RESCALE_MAX: Final = 10 * SCORE_UNIT
ACTIVATION_NOTICE: Final = 2
"""Blocks between the vote and the activation at least. Decision: D-34."""


def check_deployer(rules: Rules, sender: bytes, instruction: str, otherwise: str = "") -> None:
    """Refuse a sender that is not among the system deployers.

    Spec: CIP-5 §5.4
    Decision: D-34, D-87

    Args:
        rules: Those of the block.
        sender: Of the transaction, 20 bytes.
        instruction: Its name.
        otherwise: How somebody else comes to the same, in words.

    Raises:
        Rejection: ``UNAUTHORIZED``, naming instruction and sender.
    """
    if sender not in rules.deployers:
        raise Rejection(
            RejectionReason.UNAUTHORIZED,
            f"{instruction} from {Address(sender)}, which is not among the system deployers{otherwise}",
            instruction=instruction,
            sender=str(Address(sender)),
        )


def update_timer_config(overlay: Overlay, rules: Rules, instruction: UpdateTimerConfig) -> EventRecord:
    """Store a new TimerConfig and return its event.

    Spec: CIP-5 §6.4

    Raises:
        Rejection: ``INVALID_PARAMETER`` if a value is zero, or a fire could never fit the lane or a removal the
            clean-up budget.
    """
    # CHECK
    names = (
        "max_ttl_blocks",
        "max_cycles_per_fire",
        "max_cells_per_fire",
        "max_timers_per_actor",
        "gc_cycles_per_block",
    )
    values = {name: getattr(instruction, name) for name in names}
    _check_positive(values)
    config = TimerConfig(*values.values())
    # Now, and when what is voted already has come into force.
    for height in (rules.height, U64_MAX):
        _check_relations(governed_params(rules.params, overlay.read, height), config)
    # RUN
    return _store(overlay, rules, TIMER_CONFIG, encode_record(config), event=TIMER_CONFIG_UPDATED, facts=values)


def update_basefee_config(overlay: Overlay, rules: Rules, instruction: UpdateBasefeeConfig) -> EventRecord:
    """Store a new BasefeeConfig and return its event.

    Raises:
        Rejection: ``INVALID_PARAMETER`` if a value that divides or bounds is zero, or the floor is above the ceiling.
    """
    # CHECK
    names = ("alpha", "max_change_denom", "min_basefee", "max_basefee", "block_cycles_target", "block_cells_target")
    values = {name: getattr(instruction, name) for name in names}
    _check_positive(values)
    ceiling = rules.params.fees.max_basefee
    if instruction.max_basefee > ceiling:
        raise _refused("max_basefee", instruction.max_basefee, f"at most {ceiling}, so that no cost overflows")
    if instruction.min_basefee > instruction.max_basefee:
        raise _refused("min_basefee", instruction.min_basefee, f"at most max_basefee = {instruction.max_basefee}")
    values["block_access_target"] = instruction.block_access_target
    values["access_weight_scalar_ppm"] = instruction.access_weight_scalar_ppm
    # RUN
    config = BasefeeConfig(
        instruction.alpha,
        instruction.max_change_denom,
        amount_octets(instruction.min_basefee),
        amount_octets(instruction.max_basefee),
        instruction.block_cycles_target,
        instruction.block_cells_target,
        instruction.block_access_target,
        instruction.access_weight_scalar_ppm,
    )
    return _store(overlay, rules, BASEFEE_CONFIG, encode_record(config), event=BASEFEE_CONFIG_UPDATED, facts=values)


def update_lane_multipliers(overlay: Overlay, rules: Rules, instruction: UpdateLaneFeeMultipliers) -> EventRecord:
    """Store new lane fee multipliers and return their event.

    Decision: D-41

    Raises:
        Rejection: ``INVALID_PARAMETER`` if one is zero: execution is never free.
    """
    # CHECK
    values = {name: getattr(instruction, name) for name in ("user", "runner", "timer", "system")}
    _check_positive(values)
    # RUN
    multipliers = LaneMultipliers(*values.values())
    return _store(
        overlay, rules, LANE_MULTIPLIERS, encode_record(multipliers), event=LANE_MULTIPLIERS_UPDATED, facts=values
    )


def set_parameter(overlay: Overlay, rules: Rules, instruction: SetGovParam) -> EventRecord:
    """Store one governed parameter and return its event.

    Decision: D-34

    Raises:
        Rejection: ``INVALID_PARAMETER`` for an unknown key, a value that is not 8 bytes, or a broken relation.
    """
    # CHECK
    key = instruction.key
    if key not in GOVERNED and key not in EPOCHAL and key != RESCALE_WEIGHTS:
        known = ", ".join(name.decode() for name in (*GOVERNED, *EPOCHAL, RESCALE_WEIGHTS))
        raise Rejection(
            RejectionReason.INVALID_PARAMETER, f"unknown governed parameter {key!r:.80}; there are: {known}"
        )
    if len(instruction.value) != VALUE_WIDTH:
        raise _refused(key.decode(), len(instruction.value), f"a value of exactly {VALUE_WIDTH} bytes, big-endian")
    value = int.from_bytes(instruction.value, "big")
    if key == RESCALE_WEIGHTS:
        return _rescale_weights(overlay, rules, value)
    subject, field = (GOVERNED | EPOCHAL)[key]
    if subject in _OF_MECHANISM and getattr(rules, subject) is None:
        raise _refused(key.decode(), value, f"left alone: this chain has no {_OF_MECHANISM[subject]}")
    least, most = parameter_bounds(subject, field)
    if not least <= value <= most:
        raise _refused(key.decode(), value, f"within {least}..={most}")
    # 0 withdraws a vote that is still ahead.
    if key == ACTIVATION and (value or rules.lane is not None):
        check_activation(rules, value)
    params = with_param(governed_params(rules.params, overlay.read, U64_MAX), subject, field, value)
    _check_relations(params, timer_config(rules.params, overlay.read))
    # RUN
    facts: dict[str, object] = {"key": key, "value": value}
    octets = instruction.value
    if key in EPOCHAL:
        # What is in force now stays so to the end of the epoch, however often the vote changes before.
        now = getattr(getattr(rules.params, subject), field)
        change = Change(now, value, next_epoch(rules))
        octets, facts["height"] = encode_change(change), change.height
    return _store(overlay, rules, key, octets, event=PARAMETER_SET, facts=facts)


def next_epoch(rules: Rules) -> int:
    """Return the first block of the next governance epoch. Spec: CIP-5old §12. Decision: D-31."""
    length = rules.params.globalbox.epoch_blocks
    return (rules.height // length + 1) * length


def _rescale_weights(overlay: Overlay, rules: Rules, factor: int) -> EventRecord:
    """Multiply the weights of all actors of the auction, or reset them. Spec: CIP-1v1 §3. Decision: D-59.

    Raises:
        Rejection: ``INVALID_PARAMETER`` on a chain without an auction, or for a factor above 10.
    """
    # CHECK
    name = RESCALE_WEIGHTS.decode()
    if rules.auction is None:
        raise _refused(name, factor, "left out: this chain has no auction and so no weights")
    if factor > RESCALE_MAX:
        raise _refused(name, factor, f"within 0..={RESCALE_MAX}, in parts of {SCORE_UNIT}")
    octets = overlay.read(AUCTION_KEY)
    before = rules.auction if octets is None else decode_record(octets, AuctionState)
    # RUN
    overlay.write(AUCTION_KEY, encode_record(AuctionState((*before.rescales, factor))))
    emitter = system_address(rules.params.governance.basefee_actor)
    return EventRecord(PARAMETER_SET, emitter, encode_canonical({"key": RESCALE_WEIGHTS, "value": factor}))


def check_activation(rules: Rules, height: int) -> None:
    """Refuse a height that leaves no block to look at it, and any once the lane is active.

    Spec: CIP-1v3 §13.2
    Decision: D-34

    Args:
        rules: Of the block that holds the vote.
        height: First block under the lane's rules.

    Raises:
        Rejection: ``INVALID_PARAMETER``.
    """
    if rules.auction is not None or rules.globalbox is not None:
        mechanism = "the auction" if rules.auction is not None else "globalbox"
        raise _refused(
            ACTIVATION.decode(), height, f"left alone: the lane succeeds fifo, and this chain has {mechanism}"
        )
    if rules.lane is not None:
        begun = rules.params.lane.activation_height
        rule = f"left alone: the lane is active from height {begun} on, and this is block {rules.height}"
        raise _refused(ACTIVATION.decode(), height, rule)
    least = rules.height + ACTIVATION_NOTICE
    if height < least:
        raise _refused(
            ACTIVATION.decode(),
            height,
            f"at least {least}, {ACTIVATION_NOTICE} blocks ahead of height {rules.height}",
        )


def _store(
    overlay: Overlay, rules: Rules, name: bytes, octets: bytes, *, event: str, facts: Mapping[str, object]
) -> EventRecord:
    overlay.write(system_slot_key(rules.params, name), encode_slot(name, octets))
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
            raise _refused(name, value, "at least 1")


def _refused(name: str, value: int, rule: str) -> Rejection:
    return Rejection(
        RejectionReason.INVALID_PARAMETER, f"{name} = {value} must be {rule}", parameter=name, value=str(value)
    )
