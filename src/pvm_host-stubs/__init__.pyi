"""What an actor can ask of the chain. Written by `python -m tools.reference`; do not edit."""

from collections.abc import Sequence
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, overload

Octets: TypeAlias = bytes | bytearray | memoryview

class Context(TypedDict):
    """The facts of this execution."""

    chain_id: int
    chain_instance_id: bytes
    pvm_version: str
    sender: bytes
    actor_addr: bytes
    tx_hash: bytes
    block_height: int
    timestamp_ms: int
    hire_id: int | None
    deliver_id: NotRequired[bytes]
    trigger_ctx: NotRequired[dict[str, Any]]

class TimerLane(TypedDict):
    """The timer lane's prices and limits in this block."""

    active: bool
    basefee_lane_timer: int
    basefee_cycle: int
    basefee_cell: int
    previous_block_p50_priority_tip_per_cycle: int
    last_block_cycle_usage: int
    max_cycles_per_fire: int
    priority_tier_multipliers: dict[str, int]
    priority_tier_unit: int

class HostError(RuntimeError):
    """A refused call."""

    code: Final[int]
    name: Final[str]
    def __init__(self, message: str = ..., code: int = ..., name: str = ...) -> None: ...

def context() -> Context:
    """A dict of the facts of this execution: sender, actor_addr, ..; in a fire of Globalbox also deliver_id and trigger_ctx: D-83."""
def current_block() -> int:
    """The height of the running block."""
def block_height() -> int:
    """As current_block."""
def runtime_config() -> dict[str, str]:
    """How the SDK compiles continuations: always fsm."""
def self_address() -> bytes:
    """The running actor's address."""
def actor_owner() -> bytes:
    """Its deployer."""
def gas_left() -> int:
    """The cycles that this frame may still use."""
def charge_gas(amount: int) -> None:
    """Uses up amount cycles."""
def randomness(domain: Octets) -> bytes:
    """32 bytes, known before the block: D-43."""
def keccak256(data: Octets) -> bytes:
    """32 bytes; the price is for each 32 bytes begun."""
def verify_signature(algorithm: int, public_key: Octets, message: Octets, signature: Octets) -> bool:
    """Whether an Ed25519 signature is valid; algorithm is 2."""
def get_state(key: Octets) -> bytes | Any:
    """The value of a slot, or None."""
def set_state(key: Octets, value: Octets) -> None:
    """Writes a slot; a cell for each byte of key and value."""
def delete_state(key: Octets) -> None:
    """Deletes a slot; one that is not there is no error."""
def set_reserved_state(key: Octets, value: Octets) -> None:
    """For the SDK's own slot __INITIALIZED__ only; cells as set_state."""
def delete_reserved_state(key: Octets) -> None:
    """As set_reserved_state."""
def scan_state_prefix(prefix: Octets, limit: int) -> list[tuple[bytes, bytes]]:
    """Pairs of slot and value in ascending order; the second price is for each row asked for, a cell for each byte returned."""
def schedule_timer(height: int, payload: Octets, fee_payer: Octets | None = ..., gas_limit: int | None = ..., expires_at: int | None = ..., max_fee_per_cycle: int | None = ..., max_priority_fee_per_cycle: int | None = ..., *, gas_bidding_agent: Octets | None = ..., bid: Any = ...) -> bytes:
    """A timer's id; cells: its payload, and costs.timer_index_cells; who pays: see D-08; the two fees are for the active timer lane alone: see D-16; gas_bidding_agent, in their place, prices this timer: see D-86; bid is withdrawn: see D-55."""
def schedule_timer_ex(height: int, payload: Octets, fee_payer: Octets | None = ..., gas_limit: int | None = ..., expires_at: int | None = ..., access_limit: int | None = ..., *, max_fee_per_cycle: int | None = ..., max_priority_fee_per_cycle: int | None = ..., gas_bidding_agent: Octets | None = ..., bid: Any = ...) -> bytes:
    """As schedule_timer with a payer, a gas limit and a TTL; arguments that are None or left out take the default; six positional: see D-03."""
def set_gas_bidding_agent(agent: Octets | None) -> None:
    """Has another actor, this one or nobody price the timers that it schedules from now on: D-17."""
def timer_lane() -> TimerLane:
    """A dict: whether the timer lane is active, its basefee and the median tip, the basefees of a fire, the cap of one fire, the tier multipliers."""
def extend_timer(timer_id: Octets, new_expires_at: int) -> None:
    """Moves the TTL of an own timer; one that is gone is no error."""
@overload
def cancel_timer(target: Octets, timer_id: Octets) -> bool:
    """In Globalbox, ends an own timer and returns whether it was there to end."""
@overload
def cancel_timer(timer_id: Octets) -> None:
    """Ends an own timer; one that is gone is no error."""
@overload
def set_timeout(target: Octets, due_height: int, payload: Octets, gas_limit: int | None = ..., bid_fp: int | None = ..., expiry_height: int | None = ..., client_nonce: Octets | None = ...) -> bytes:
    """In Globalbox, the id of a timer that runs a handler of target; the last four may be left out; cells: its payload, its client nonce, and costs.timer_index_cells."""
@overload
def set_timeout(height: int, payload: Octets, gba: Octets, gas_limit: int | None = ...) -> bytes:
    """In the auction, the id of a timer for which the actor gba bids; cells: its payload, and costs.timer_index_cells."""
def set_state_watch(target: Octets, watch_keys: Sequence[Octets], payload: Octets, gas_limit: int | None = ..., bid_fp: int | None = ..., expiry_height: int | None = ..., client_nonce: Octets | None = ...) -> bytes:
    """The id of a timer that fires whenever a key has changed that begins with one of watch_keys; the last four may be left out; cells: its payload, its keys, its client nonce, and costs.timer_index_cells for itself and for each key."""
def update_timer(target: Octets, timer_id: Octets, payload: Octets | None = ..., gas_limit: int | None = ..., bid_fp: int | None = ...) -> bool:
    """Changes what later fires of an own timer bring, and returns whether there will be one; what is None or left out stays as it is; a cell for each byte of a new payload."""
def emit_event(name: str, data: Octets, schema: Octets | None = ...) -> dict[str, Any]:
    """Emits an event; a cell for each byte of name and data."""
def send_message(target: Octets, payload: Octets) -> None:
    """A message for handle_message, delivered at the end of the block; a cell for each byte."""
def create_deferred_tx(handler: str, payload: Octets) -> None:
    """Calls a handler of this actor at the end of the next block, on the gas that this execution has left; a cell for each byte of name and payload: see D-88."""
def call_actor(target: Octets, method: str, payload: Octets, cycles_limit: int, access_limit: int | None = ...) -> bytes | Any:
    """What a handler of another actor returns; its frame is charged to this one as well."""
def transfer_balance(to: Octets, amount: int) -> None:
    """Moves money of the running actor."""
def upgrade_self(code: Octets, manifest: Octets | None = ..., routes: None = ..., route_sponsorship: None = ...) -> None:
    """Replaces the running actor's code from the next frame on, and its manifest if one is given; the second price is for each byte of code; a cell for each byte of code and manifest; routes and route_sponsorship are None: see D-119."""

# These exist, and raise HostError with the name `unsupported`.
def fork_actor(*arguments: Any, **named: Any) -> Any: ...
def force_unsubscribe_event(*arguments: Any, **named: Any) -> Any: ...
def intent_broadcast(*arguments: Any, **named: Any) -> Any: ...
def intent_broadcast_ex(*arguments: Any, **named: Any) -> Any: ...
def intent_deposit(*arguments: Any, **named: Any) -> Any: ...
def intent_withdraw(*arguments: Any, **named: Any) -> Any: ...
def offchain_image_initialize(*arguments: Any, **named: Any) -> Any: ...
def offchain_image_update(*arguments: Any, **named: Any) -> Any: ...
def submit_job(*arguments: Any, **named: Any) -> Any: ...
def subscribe_event(*arguments: Any, **named: Any) -> Any: ...
def token_allowance(*arguments: Any, **named: Any) -> Any: ...
def token_approve(*arguments: Any, **named: Any) -> Any: ...
def token_balance_of(*arguments: Any, **named: Any) -> Any: ...
def token_burn(*arguments: Any, **named: Any) -> Any: ...
def token_create(*arguments: Any, **named: Any) -> Any: ...
def token_mint(*arguments: Any, **named: Any) -> Any: ...
def token_total_supply(*arguments: Any, **named: Any) -> Any: ...
def token_transfer(*arguments: Any, **named: Any) -> Any: ...
def token_transfer_from(*arguments: Any, **named: Any) -> Any: ...
def topup_subscription(*arguments: Any, **named: Any) -> Any: ...
def unsubscribe_event(*arguments: Any, **named: Any) -> Any: ...
def update_bid(*arguments: Any, **named: Any) -> Any: ...
