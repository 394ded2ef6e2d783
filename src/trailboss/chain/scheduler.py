"""Timers for people who have no actor: a stock actor, one an owner, schedules for them."""

from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Final

from trailboss.chain.chain import Chain
from trailboss.chain.drafting import draft_deployment
from trailboss.codec.canonical import encode_canonical
from trailboss.model.transactions import ExecuteActor, FundActor, Instruction
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

FUNDS: Final = 100 * BASE_UNITS_PER_CBY
"""Base units that a scheduler starts with: some twenty fires, and every one of them with all the gas it may have."""
_SALT: Final = b"trailboss-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerOrder:
    """A timer that somebody wants. None takes the protocol's default.

    Attributes:
        height: Block height at which it fires.
        payload: What its event tells.
        fee_payer: Who pays for the fire: whoever gives the order, or None for the scheduler.
        gas_limit: Cycles that the fire may use.
        expires_at: Last height at which it may fire.
        max_fee_per_cycle: Cap of lane basefee and tip together, base units.
        max_priority_fee_per_cycle: Tip, base units.
        priority_tier_hint: Tip as a `trailboss.sdk.PriorityTier`, by its value.
    """

    height: int
    payload: bytes = b""
    fee_payer: Address | None = None
    gas_limit: int | None = None
    expires_at: int | None = None
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None
    priority_tier_hint: str | None = None


def scheduler_address(owner: Address) -> Address:
    """Return the address of an owner's scheduler, deployed or not."""
    return draft_deployment(owner, _source(), _SALT)[1]


def draft_schedule(chain: Chain, owner: Address, order: TimerOrder, value: int | None = None) -> list[Instruction]:
    """Return the owner's instructions that schedule a timer, the last one the order itself, for one block.

    Before it stand the deployment of the owner's scheduler, if it is needed, and its funding, if there is any.

    Args:
        chain: On which.
        owner: Who gives the order, signs and pays for the transactions.
        order: The timer.
        value: Base units that the scheduler gets; None for ``FUNDS`` when it is deployed, and then none.

    Raises:
        Rejection: ``OVERFLOW`` or ``INVALID_DATA`` for an order that has no encoding.
    """
    deployment, address = draft_deployment(owner, _source(), _SALT)
    account = chain.account(address)
    is_deployed = account is not None and bool(account.code_hash)
    amount = (0 if is_deployed else FUNDS) if value is None else value
    given = {field.name: getattr(order, field.name) for field in fields(order)}
    call = ExecuteActor(
        address, "schedule", encode_canonical({name: item for name, item in given.items() if item is not None})
    )
    return [*([] if is_deployed else [deployment]), *([FundActor(address, amount)] if amount else []), call]


@cache
def _source() -> bytes:
    return resources.files("trailboss.chain").joinpath("stock_actors", "scheduler.py").read_bytes()
