"""The records that the transaction codec reads and writes: a transaction and its instructions.

Twelve are the public protocol's, and two are for development chains alone. They stand here because a codec builds them;
everyone above imports them from `trailboss.model.transactions`. Field order is wire order for instructions. Widths are
those of the public codec and are checked when a record is encoded.

Source: docs/spec/sources.md §7, §8; bytes pinned against the public codec, version 0.6.0.
"""

from enum import Enum
from typing import ClassVar, Final

from msgspec import Struct

from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32

UNSIGNED: Final = bytes(65)
"""The signature of a transaction that nobody has signed yet."""


class CreateAccount(Struct, frozen=True):
    """Create an account.

    Attributes:
        account: Its address.
    """

    name: ClassVar[str] = "CreateAccount"
    account: Address


class Transfer(Struct, frozen=True):
    """Move money from the sender.

    Attributes:
        to: Who receives it.
        amount: Base units; unsigned, 64 bits on the wire.
    """

    name: ClassVar[str] = "Transfer"
    to: Address
    amount: int


class FundActor(Struct, frozen=True):
    """Move money from the sender to an actor.

    Attributes:
        actor: Who receives it.
        amount: Base units; unsigned, 64 bits on the wire.
    """

    name: ClassVar[str] = "FundActor"
    actor: Address
    amount: int


class RouteInstall(Struct, frozen=True):
    """A table of gateway routes that comes with a deployment.

    Attributes:
        table: The encoded table.
        sponsorship: The encoded sponsorship, if any.
    """

    table: bytes
    sponsorship: bytes | None = None


class OwnerDraw(Enum):
    """Whether an owner may draw on an actor's balance; a cap in base units stands as a plain integer instead."""

    DEFAULT = 0
    OFF = 1


class DeployActor(Struct, frozen=True):
    """Deploy an actor.

    Attributes:
        code: Source, UTF-8.
        salt: At most 32 bytes; part of the address.
        init_handler: Handler of the creation call; None leaves the choice to the chain.
        init_payload: Its payload.
        manifest: Encoded entitlements.
        shard: First two bytes of the address as an unsigned 16-bit number; None takes the deployer's.
        routes: Gateway routes.
        owner_draw: What the owner may draw: a rule, or a cap in base units (unsigned, 64 bits).
    """

    name: ClassVar[str] = "DeployActor"
    code: bytes
    salt: bytes
    init_handler: str | None = None
    init_payload: bytes | None = None
    manifest: bytes | None = None
    shard: int | None = None
    routes: RouteInstall | None = None
    owner_draw: OwnerDraw | int = OwnerDraw.DEFAULT


class ExecuteActor(Struct, frozen=True):
    """Call a handler of an actor.

    Attributes:
        actor: The actor.
        handler: Name of the handler.
        payload: Its argument, as bytes.
    """

    name: ClassVar[str] = "ExecuteActor"
    actor: Address
    handler: str
    payload: bytes


class UpgradeActor(Struct, frozen=True):
    """Replace the code of an actor.

    Attributes:
        actor: The actor.
        code: Source, UTF-8.
        manifest: Encoded entitlements.
        routes: Gateway routes.
    """

    name: ClassVar[str] = "UpgradeActor"
    actor: Address
    code: bytes
    manifest: bytes | None = None
    routes: RouteInstall | None = None


class UpdateBasefeeConfig(Struct, frozen=True):
    """Set the parameters of the base fee markets.

    Attributes:
        alpha: Smoothing divisor; unsigned, 128 bits, as are the next three.
        max_change_denom: A block changes a base fee by at most one part in this many.
        min_basefee: Floor, base units a unit.
        max_basefee: Ceiling, base units a unit.
        block_cycles_target: Cycles a block; unsigned, 64 bits, as are the next three.
        block_cells_target: Cells a block.
        block_access_target: Accesses a block.
        access_weight_scalar_ppm: Weight of an access, in parts per million.
    """

    name: ClassVar[str] = "UpdateBasefeeConfig"
    alpha: int
    max_change_denom: int
    min_basefee: int
    max_basefee: int
    block_cycles_target: int
    block_cells_target: int
    block_access_target: int
    access_weight_scalar_ppm: int


class CancelTimer(Struct, frozen=True):
    """Cancel anybody's timer, by governance.

    Attributes:
        timer_id: Its id. The wire allows any length; a timer's is 32 bytes.
    """

    name: ClassVar[str] = "CancelTimer"
    timer_id: bytes


class UpdateTimerConfig(Struct, frozen=True):
    """Set the five parameters of timers.

    Attributes:
        max_ttl_blocks: Longest life, in blocks; unsigned, 64 bits.
        max_cycles_per_fire: Most cycles a fire may use; unsigned, 64 bits.
        max_cells_per_fire: Most cells a fire may use; unsigned, 64 bits.
        max_timers_per_actor: Most live timers of an actor; unsigned, 32 bits.
        gc_cycles_per_block: Cycles for removing expired timers; unsigned, 64 bits.
    """

    name: ClassVar[str] = "UpdateTimerConfig"
    max_ttl_blocks: int
    max_cycles_per_fire: int
    max_cells_per_fire: int
    max_timers_per_actor: int
    gc_cycles_per_block: int


class ExtendTimer(Struct, frozen=True):
    """Extend anybody's timer, by governance.

    Attributes:
        timer_id: Its id. The wire allows any length; a timer's is 32 bytes.
        new_expires_at: Height of its new expiry; unsigned, 64 bits.
    """

    name: ClassVar[str] = "ExtendTimer"
    timer_id: bytes
    new_expires_at: int


class UpdateLaneFeeMultipliers(Struct, frozen=True):
    """Set the fee multiplier of each lane; every one unsigned, 32 bits.

    Attributes:
        user: Of transactions.
        runner: Of runner results.
        timer: Of timer fires.
        system: Of system work.
    """

    name: ClassVar[str] = "UpdateLaneFeeMultipliers"
    user: int
    runner: int
    timer: int
    system: int


class SetGovParam(Struct, frozen=True):
    """Set one governed parameter.

    Attributes:
        key: Its key.
        value: Its encoded value.
    """

    name: ClassVar[str] = "SetGovParam"
    key: bytes
    value: bytes


class SetBalance(Struct, frozen=True):
    """Set the balance of an account, and the supply with it; on a development chain. Decision: D-69.

    Attributes:
        account: Whose; the account is made if it is not there.
        amount: What it holds afterwards, base units; unsigned, 128 bits.
    """

    name: ClassVar[str] = "SetBalance"
    account: Address
    amount: int


class MoveTimer(Struct, frozen=True):
    """Give anybody's timer another height; on a development chain. Decision: D-69.

    Attributes:
        timer_id: Its id. The wire allows any length; a timer's is 32 bytes.
        height: Where it is due afterwards; unsigned, 64 bits.
    """

    name: ClassVar[str] = "MoveTimer"
    timer_id: bytes
    height: int


Instruction = (
    CreateAccount
    | Transfer
    | FundActor
    | DeployActor
    | ExecuteActor
    | UpgradeActor
    | UpdateBasefeeConfig
    | CancelTimer
    | UpdateTimerConfig
    | ExtendTimer
    | UpdateLaneFeeMultipliers
    | SetGovParam
    | SetBalance
    | MoveTimer
)
"""Any instruction that this chain executes."""

AccessEntry = tuple[Address, tuple[Hash32, ...]]
"""An address and the storage slots of it that a transaction announces to touch."""

Signer = tuple[Address, bytes]
"""Another account that signs the same transaction: its address and its 65-byte signature."""


class Transaction(Struct, frozen=True):
    """A transaction in the public protocol's shape. Integers are unsigned, 64 bits, unless said otherwise.

    Build it with keywords: the fields without a default stand first, not in wire order.

    Attributes:
        chain_id: The chain it is signed for.
        nonce: The sender's transaction count before it.
        instruction: What it does.
        cycles_limit: Most cycles it may use.
        cells_limit: Most cells it may use.
        max_fee_per_cycle: Most base units a cycle may cost.
        max_fee_per_cell: Most base units a cell may cost.
        access_limit: Most accesses it may use.
        max_fee_per_access: Most base units an access may cost; 128 bits.
        max_priority_fee_per_cycle: Tip a cycle, base units.
        max_priority_fee_per_cell: Tip a cell, base units.
        max_priority_fee_per_access: Tip an access, base units; 128 bits.
        sender: Who pays and signs; ``from`` in JSON.
        access_list: Announced accesses; None is not the same as an empty list.
        metadata: Free bytes.
        origin_tx_hash: Of a deferred transaction: the transaction it stems from.
        origin_remaining_cycles: What that one left of its cycles.
        origin_remaining_cells: What that one left of its cells.
        origin_remaining_access: What that one left of its accesses.
        signature: 65 bytes ``r ‖ s ‖ v`` over the signing hash.
        additional_signers: Further signers of the same hash.
    """

    chain_id: int
    nonce: int
    instruction: Instruction
    cycles_limit: int
    cells_limit: int
    max_fee_per_cycle: int
    max_fee_per_cell: int
    access_limit: int = 0
    max_fee_per_access: int = 0
    max_priority_fee_per_cycle: int = 0
    max_priority_fee_per_cell: int = 0
    max_priority_fee_per_access: int = 0
    sender: Address = ZERO_ADDRESS
    access_list: tuple[AccessEntry, ...] | None = None
    metadata: bytes = b""
    origin_tx_hash: Hash32 | None = None
    origin_remaining_cycles: int | None = None
    origin_remaining_cells: int | None = None
    origin_remaining_access: int | None = None
    signature: bytes = UNSIGNED
    additional_signers: tuple[Signer, ...] = ()
