"""What people see of the timer lane of CIP-1 v3, also on a chain that it has yet to begin on."""

from typing import Any

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.model.configs import LaneState, MarketKind, amount_of
from trailboss.primitives.errors import Rejection, RejectionReason


class LaneStatus(Struct, frozen=True, kw_only=True):
    """The timer lane after a block. Spec: CIP-1v3 §5."""

    active: bool  # whether the next block is under its rules
    activation_height: int | None  # first block under them; None if none is set
    basefee: int | None  # lane basefee of the next block, base units per cycle; None before the activation
    previous_tip: int | None  # median tip of the last block, base units per cycle; None before the activation
    burned: int  # base units that it has burned


def lane_status(rules: Rules) -> LaneStatus:
    """Return the status of the timer lane by the rules of the next block."""
    market, active = rules.market, rules.market.kind is MarketKind.LANE
    return LaneStatus(
        active=active,
        activation_height=rules.params.lane.activation_height or None,
        basefee=market.basefee if active else None,
        previous_tip=market.previous_tip if active else None,
        burned=amount_of(market.kept(LaneState).burned) if active else 0,
    )


def lane_cap(rules: Rules) -> int:
    """Return the cycles that one fire may use in the timer lane, active or not. Spec: CIP-1v3 §10."""
    return min(rules.params.lane.max_cycles_per_fire, rules.params.timers.lane_cycles_per_block)


def lane_gas_limit(rules: Rules, gas_limit: int, schedule_block: int) -> int:
    """Return the gas limit that a timer has in the lane: governance may hold older ones to the cap. Decision: D-13."""
    is_older = schedule_block < rules.params.lane.activation_height
    return min(gas_limit, lane_cap(rules)) if is_older and rules.params.lane.clamps_gas_limit else gas_limit


def activation_status(chain: ChainReader) -> dict[str, Any]:
    """Return how far the activation of the lane is, and its present state; prices are base units per cycle.

    Raises:
        Rejection: ``NOT_FOUND`` if the lane cannot succeed the chain's mechanism.
    """
    rules = chain.rules()
    market, params, cap = rules.market, rules.params.lane, lane_cap(rules)
    if market.kind not in (MarketKind.NONE, MarketKind.LANE):
        what = f"this chain has no timer lane and will have none: its mechanism is {chain.mechanism.name}"
        raise Rejection(RejectionReason.NOT_FOUND, what)
    status = lane_status(rules)
    gas_limits = (lane_gas_limit(rules, timer.gas_limit, timer.schedule_block) for timer in chain.timers())
    return {
        "height": chain.height,
        "active": status.active and not market.is_new,
        "activation_height": status.activation_height,
        "lane_basefee": market.basefee,
        "median_tip": market.previous_tip,
        "lane_burned": status.burned,
        "lane_cycles_per_block": rules.params.timers.lane_cycles_per_block,
        "max_cycles_per_fire": cap,
        "clamps_gas_limit": bool(params.clamps_gas_limit),
        "timers": {
            "live": chain.timer_count(),
            "due": chain.due_count(),
            "over_cap": sum(gas_limit > cap for gas_limit in gas_limits),
        },
    }
