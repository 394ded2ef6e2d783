"""Governance instructions: who may send them, what they may set, and the state change that follows.

A change is stored at once and comes into force with the next block, because rules are read once, when a block begins.
Spec: CIP-5 §5.4, CIP-5 §6.4, CIP-5 §7. Decision: D-34
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.governance import parameters
from trailboss.governance.markets import AUCTION_KEY, SUBJECTS
from trailboss.governance.parameters import ACTIVATION, RESCALE_WEIGHTS
from trailboss.governance.rules import BASEFEE_CONFIG, LANE_MULTIPLIERS, TIMER_CONFIG, Rules, timer_config
from trailboss.model import configs, events
from trailboss.model.auction import SCORE_UNIT, AuctionState
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, MarketKind, TimerConfig, encode_record
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
RESCALE_MAX: Final = 10 * SCORE_UNIT
ACTIVATION_NOTICE: Final = 2  # blocks between the vote and the activation at least. Decision: D-34.
_NOT_SUCCEEDED: Final = {MarketKind.AUCTION: "the auction", MarketKind.GLOBALBOX: "globalbox"}
"""What the lane does not succeed, and its name in messages."""
UPDATED: Final = {
    TIMER_CONFIG: events.TIMER_CONFIG_UPDATED,
    BASEFEE_CONFIG: events.BASEFEE_CONFIG_UPDATED,
    LANE_MULTIPLIERS: events.LANE_MULTIPLIERS_UPDATED,
}
"""Event for the record of a slot; a parameter's is `PARAMETER_SET`."""


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
    """Store a TimerConfig with which a fire fits the lane, and a removal the clean-up budget. Spec: CIP-5 §6.4."""
    # CHECK
    values = {name: getattr(instruction, name) for name in TimerConfig.__struct_fields__}
    _check_positive(values)
    config = TimerConfig(*values.values())
    # Now, and when what is voted already has come into force.
    for height in (rules.height, U64_MAX):
        _check_relations(parameters.governed_params(rules.params, overlay.read, height), config)
    # RUN
    return _store(overlay, rules, TIMER_CONFIG, encode_record(config), values)


def update_basefee_config(overlay: Overlay, rules: Rules, instruction: UpdateBasefeeConfig) -> EventRecord:
    """Store a BasefeeConfig, and return its event."""
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
    money = {name: configs.amount_octets(values[name]) for name in ("min_basefee", "max_basefee")}
    config = BasefeeConfig(*(values | money).values())
    return _store(overlay, rules, BASEFEE_CONFIG, encode_record(config), values)


def update_lane_multipliers(overlay: Overlay, rules: Rules, instruction: UpdateLaneFeeMultipliers) -> EventRecord:
    """Store new lane fee multipliers and return their event; execution is never free. Decision: D-41."""
    # CHECK
    values = {name: getattr(instruction, name) for name in ("user", "runner", "timer", "system")}
    _check_positive(values)
    # RUN
    return _store(overlay, rules, LANE_MULTIPLIERS, encode_record(LaneMultipliers(*values.values())), values)


def set_parameter(overlay: Overlay, rules: Rules, instruction: SetGovParam) -> EventRecord:
    """Store one governed parameter and return its event; ``INVALID_PARAMETER`` refuses all others. Decision: D-34."""
    # CHECK
    key, governed = instruction.key, parameters.GOVERNED | parameters.EPOCHAL
    if key not in governed and key not in ACTS:
        known = ", ".join(name.decode() for name in (*governed, *ACTS))
        what = f"unknown governed parameter {key!r:.80}; there are: {known}"
        raise Rejection(RejectionReason.INVALID_PARAMETER, what)
    if len(instruction.value) != VALUE_WIDTH:
        raise refused(key.decode(), len(instruction.value), f"a value of exactly {VALUE_WIDTH} bytes, big-endian")
    value = int.from_bytes(instruction.value, "big")
    if key in ACTS:
        return ACTS[key](overlay, rules, value)
    subject, field = governed[key]
    kind, market = SUBJECTS.get(subject, (rules.market.kind, ""))
    if rules.market.kind is not kind:
        raise refused(key.decode(), value, f"left alone: this chain has no {market}")
    least, most = parameter_bounds(subject, field)
    if not least <= value <= most:
        raise refused(key.decode(), value, f"within {least}..={most}")
    if key == ACTIVATION and (value or rules.market.kind is MarketKind.LANE):  # 0 withdraws a vote that is ahead
        check_activation(rules, value)
    voted = parameters.governed_params(rules.params, overlay.read, U64_MAX)
    _check_relations(parameters.with_param(voted, subject, field, value), timer_config(rules.params, overlay.read))
    # RUN
    facts: dict[str, object] = {"key": key, "value": value}
    octets = instruction.value
    if key in parameters.EPOCHAL:
        # What is in force now stays so to the end of the epoch, however often the vote changes before.
        now = getattr(getattr(rules.params, subject), field)
        change = parameters.Change(now, value, parameters.next_epoch(rules.params, rules.height))
        octets, facts["height"] = parameters.encode_change(change), change.height
    return _store(overlay, rules, key, octets, facts)


def check_activation(rules: Rules, height: int) -> None:
    """Refuse a height with too short a notice, and any on a chain whose lane is active or never will be.

    Spec: CIP-1v3 §13.2. Decision: D-34
    """
    other = _NOT_SUCCEEDED.get(rules.market.kind)
    if other is not None:
        raise refused(ACTIVATION.decode(), height, f"left alone: the lane succeeds fifo, and this chain has {other}")
    if rules.market.kind is MarketKind.LANE:
        begun = rules.params.lane.activation_height
        rule = f"left alone: the lane is active from height {begun} on, and this is block {rules.height}"
        raise refused(ACTIVATION.decode(), height, rule)
    least = rules.height + ACTIVATION_NOTICE
    if height < least:
        rule = f"at least {least}, {ACTIVATION_NOTICE} blocks ahead of height {rules.height}"
        raise refused(ACTIVATION.decode(), height, rule)


def rescale_weights(overlay: Overlay, rules: Rules, factor: int) -> EventRecord:
    """Multiply the weights of the auction's actors by at most 10, or reset them. Spec: CIP-1v1 §3. Decision: D-59."""
    # CHECK
    name = RESCALE_WEIGHTS.decode()
    if rules.market.kind is not MarketKind.AUCTION:
        raise refused(name, factor, "left out: this chain has no auction and so no weights")
    if factor > RESCALE_MAX:
        raise refused(name, factor, f"within 0..={RESCALE_MAX}, in parts of {SCORE_UNIT}")
    octets = overlay.read(AUCTION_KEY)
    before = rules.market.kept(AuctionState) if octets is None else configs.decode_record(octets, AuctionState)
    # RUN
    overlay.write(AUCTION_KEY, encode_record(AuctionState((*before.rescales, factor))))
    emitter = system_address(rules.params.governance.basefee_actor)
    return EventRecord(events.PARAMETER_SET, emitter, encode_canonical({"key": RESCALE_WEIGHTS, "value": factor}))


def refused(name: str, value: int, rule: str) -> Rejection:
    """Return the refusal of a governed value."""
    what = f"{name} = {value} must be {rule}"
    return Rejection(RejectionReason.INVALID_PARAMETER, what, parameter=name, value=str(value))


def _store(overlay: Overlay, rules: Rules, name: bytes, octets: bytes, facts: Mapping[str, object]) -> EventRecord:
    overlay.write(parameters.system_slot_key(rules.params, name), encode_slot(name, octets))
    emitter = system_address(rules.params.governance.basefee_actor)
    return EventRecord(UPDATED.get(name, events.PARAMETER_SET), emitter, encode_canonical(facts))


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


ACTS: Final[Mapping[bytes, Callable[[Overlay, Rules, int], EventRecord]]] = {RESCALE_WEIGHTS: rescale_weights}
"""Keys of SetGovParam that set no parameter, and what a vote on them does."""
