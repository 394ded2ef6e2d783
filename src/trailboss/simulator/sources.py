"""The actor of a workload, in the words of each mechanism: one source, in which only the scheduling call differs."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from trailboss.model.globalbox import FRACTION_BITS
from trailboss.simulator.workload import ActorGroup

NO_LIMIT: Final = 2**63 - 1  # fee cap of a group that names none, base units per cycle
SOURCE: Final = '''"""An actor of a workload: it keeps its timers going, and each fire burns cycles."""

import pvm_host

WORK = {work}
PERIOD = {period}
PAYLOAD = b"." * {payload_bytes}


def init(payload):
    for height in payload.split():
        schedule(int(height))


def handle_timer(payload):
    pvm_host.charge_gas(WORK)
    if PERIOD:
        schedule(pvm_host.block_height() + PERIOD)


def get_gas_bid(payload):
    return {{"max_fee_per_cycle": {cap}, "tip_per_cycle": {tip}}}


def schedule(height):
    {call}
'''

CROWD: Final = '''"""What other transactions of a workload call: it burns as many cycles as it is told."""

import pvm_host


def burn(payload):
    pvm_host.charge_gas(int(payload))
'''


class Dialect(Struct, frozen=True):
    """How a mechanism's actors schedule a timer."""

    call: Callable[[ActorGroup], str]  # group to the scheduling call, in which ``height`` is the height
    offers: str  # how a workload's tip and fee cap are offered, in words


def actor_source(group: ActorGroup, mechanism: str) -> str:
    """Return the source of a group's actors under a mechanism."""
    return SOURCE.format(cap=NO_LIMIT, call=DIALECTS[mechanism].call(group), **asdict(group))


def _schedule_timer(group: ActorGroup, fees: str = "") -> str:
    expiry = f", expires_at=height + {group.expiry}" if group.expiry else ""
    return f"pvm_host.schedule_timer(height, PAYLOAD, gas_limit={group.gas_limit}{expiry}{fees})"


def _lane(group: ActorGroup) -> str:
    """Return the call of the timer lane. Spec: CIP-1v3 §6."""
    # A cap below the lane basefee is refused; the actor would rather offer that basefee than stop.
    cap = f'max({group.max_fee}, pvm_host.timer_lane()["basefee_lane_timer"])' if group.max_fee else NO_LIMIT
    return _schedule_timer(group, f", max_fee_per_cycle={cap}, max_priority_fee_per_cycle={group.tip}")


def _auction(group: ActorGroup) -> str:
    return f"pvm_host.set_timeout(height, PAYLOAD, pvm_host.self_address(), {group.gas_limit})"


def _globalbox(group: ActorGroup) -> str:
    expiry = f", expiry_height=height + {group.expiry}" if group.expiry else ""
    bid = f"{group.tip} << {FRACTION_BITS}"
    return f"pvm_host.set_timeout(pvm_host.self_address(), height, PAYLOAD, {group.gas_limit}, {bid}{expiry})"


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        "fifo": Dialect(_schedule_timer, "a timer cannot offer anything"),
        "lane": Dialect(_lane, "tip and fee cap are stated when a timer is scheduled"),
        "auction": Dialect(_auction, "the actor's agent bids the tip in each block; timers never expire"),
        "globalbox": Dialect(_globalbox, "the bid is the tip, stated when a timer is set"),
    }
)
"""Mechanism to dialect, in the order in which they are compared."""
