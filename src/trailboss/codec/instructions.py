"""The records of the transaction codec: a transaction and its instructions.

Twelve instructions are the public protocol's; eight are for development chains. `trailboss.model.transactions` exports
them all. Fields are in wire order. Integers are unsigned; encoding checks the widths, which `trailboss.codec.layout`
lists. Source: docs/spec/sources.md §7, §8; bytes pinned against the public codec, version 0.6.0.
"""

from enum import Enum
from typing import Final

from msgspec import Struct

from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32

UNSIGNED: Final = bytes(65)  # the signature of an unsigned transaction


class _Instruction(Struct, frozen=True):
    @property
    def name(self) -> str:
        """Name of the instruction in the public protocol."""
        return type(self).__name__


class CreateAccount(_Instruction, frozen=True):
    """Create an account."""

    account: Address


class Transfer(_Instruction, frozen=True):
    """Transfer base units from the sender to an account."""

    to: Address
    amount: int


class FundActor(_Instruction, frozen=True):
    """Transfer base units from the sender to an actor."""

    actor: Address
    amount: int


class RouteInstall(Struct, frozen=True):
    """Gateway routes that come with a deployment: the encoded table, and the encoded sponsorship, if any."""

    table: bytes
    sponsorship: bytes | None = None


class OwnerDraw(Enum):
    """Whether an owner can draw on an actor's balance; a plain integer instead is a cap in base units."""

    DEFAULT = 0
    OFF = 1


class DeployActor(_Instruction, frozen=True):
    """Deploy an actor."""

    code: bytes  # source, UTF-8
    salt: bytes  # at most 32 bytes; part of the address
    init_handler: str | None = None  # handler of the creation call; None leaves the choice to the chain
    init_payload: bytes | None = None  # its payload
    manifest: bytes | None = None  # encoded entitlements
    shard: int | None = None  # first two bytes of the address as a number; None takes the deployer's
    routes: RouteInstall | None = None  # gateway routes
    owner_draw: OwnerDraw | int = OwnerDraw.DEFAULT  # what the owner can draw: a rule, or a cap in base units


class ExecuteActor(_Instruction, frozen=True):
    """Call a handler of an actor."""

    actor: Address
    handler: str
    payload: bytes


class UpgradeActor(_Instruction, frozen=True):
    """Replace the code of an actor: UTF-8 source, encoded entitlements, gateway routes."""

    actor: Address
    code: bytes
    manifest: bytes | None = None
    routes: RouteInstall | None = None


class UpdateBasefeeConfig(_Instruction, frozen=True):
    """Set the parameters of the base fee markets."""

    alpha: int  # smoothing divisor
    max_change_denom: int  # A block changes a base fee by at most one part in this many
    min_basefee: int  # floor, base units per unit
    max_basefee: int  # ceiling, base units per unit
    block_cycles_target: int  # cycles per block
    block_cells_target: int  # cells per block
    block_access_target: int  # accesses per block
    access_weight_scalar_ppm: int  # weight of an access, in parts per million


class CancelTimer(_Instruction, frozen=True):
    """Cancel any timer, by governance. The wire allows an id of any length; a timer's is 32 bytes."""

    timer_id: bytes


class UpdateTimerConfig(_Instruction, frozen=True):
    """Set the five governed parameters of timers. Units and limits: `trailboss.params.TimerParams`."""

    max_ttl_blocks: int
    max_cycles_per_fire: int
    max_cells_per_fire: int
    max_timers_per_actor: int
    gc_cycles_per_block: int


class ExtendTimer(_Instruction, frozen=True):
    """Move the last height of any timer, by governance."""

    timer_id: bytes
    new_expires_at: int


class UpdateLaneFeeMultipliers(_Instruction, frozen=True):
    """Set the fee multipliers of user transactions, runner results, timer fires and system work."""

    user: int
    runner: int
    timer: int
    system: int


class SetGovParam(_Instruction, frozen=True):
    """Set one governed parameter to an encoded value."""

    key: bytes
    value: bytes


class SetBalance(_Instruction, frozen=True):
    """Set a balance, base units, and the supply with it, on a development chain; makes the account. Decision: D-69."""

    account: Address
    amount: int


class MoveTimer(_Instruction, frozen=True):
    """Make any timer due at another height, on a development chain. Decision: D-69."""

    timer_id: bytes
    height: int


class SetRunner(_Instruction, frozen=True):
    """Have so many runner jobs wait for replies at most, on a development chain; 0 for no runner. Decision: D-113."""

    jobs_max: int


class ReplyJob(_Instruction, frozen=True):
    """Reply to a runner job, from the account of the actor that waits, on a development chain. Decision: D-113."""

    job: int  # its number
    reply: bytes  # argument of the handler that the job names


class SetStorage(_Instruction, frozen=True):
    """Set a slot of an actor, or delete it with None, on a development chain. Decision: D-110."""

    actor: Address
    slot: bytes
    value: bytes | None


class SetCode(_Instruction, frozen=True):
    """Give an address code, as `UpgradeActor`; makes the actor if need be, on a development chain. Decision: D-110."""

    account: Address
    code: bytes
    manifest: bytes | None = None


class SetMock(_Instruction, frozen=True):
    """Answer calls of a handler without running it, on a development chain. Decision: D-110."""

    target: Address  # whose handler is called; there need be no actor
    handler: str
    payload: bytes | None = None  # which calls are answered: those with this payload; None for all
    returns: bytes = b""  # what they return
    reverts: str | None = None  # what they fail with instead; None for an answer
    times: int | None = None  # how many calls it answers; None for all until it is replaced or cleared


class ClearMocks(_Instruction, frozen=True):
    """Remove all mocks, on a development chain. Decision: D-110."""


# fmt: off
Instruction = (  # any instruction that this chain executes
    CreateAccount | Transfer | FundActor | DeployActor | ExecuteActor | UpgradeActor | UpdateBasefeeConfig | CancelTimer
    | UpdateTimerConfig | ExtendTimer | UpdateLaneFeeMultipliers | SetGovParam | SetBalance | MoveTimer | SetStorage
    | SetCode | SetMock | ClearMocks | SetRunner | ReplyJob
)
# fmt: on
AccessEntry = tuple[Address, tuple[Hash32, ...]]
"""An address and its storage slots that a transaction announces to access."""

Signer = tuple[Address, bytes]  # an additional signer of a transaction: its address and its 65-byte signature


class Transaction(Struct, frozen=True, dict=True):
    """A transaction in the public protocol's shape. Build it with keywords: required fields stand first."""

    chain_id: int  # the chain it is signed for
    nonce: int  # the sender's transaction count before it
    instruction: Instruction  # what it does
    cycles_limit: int  # most cycles it can use; likewise for cells and accesses
    cells_limit: int
    max_fee_per_cycle: int  # most base units per cycle; likewise per cell and per access
    max_fee_per_cell: int
    access_limit: int = 0
    max_fee_per_access: int = 0
    max_priority_fee_per_cycle: int = 0  # tip per cycle, base units; likewise per cell and per access
    max_priority_fee_per_cell: int = 0
    max_priority_fee_per_access: int = 0
    sender: Address = ZERO_ADDRESS  # who pays and signs; ``from`` in JSON
    access_list: tuple[AccessEntry, ...] | None = None  # announced accesses; None differs from an empty list
    metadata: bytes = b""  # free bytes
    origin_tx_hash: Hash32 | None = None  # of a deferred transaction: the transaction that created it
    origin_remaining_cycles: int | None = None  # cycles that the origin left; likewise cells and accesses
    origin_remaining_cells: int | None = None
    origin_remaining_access: int | None = None
    signature: bytes = UNSIGNED  # 65 bytes ``r ‖ s ‖ v`` over the signing hash
    additional_signers: tuple[Signer, ...] = ()  # further signers of the same hash
