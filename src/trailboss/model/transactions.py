"""Transactions: the codec's records, and their hashes and signatures.

Source: docs/spec/sources.md §3, §8. Decision: D-33, D-36
"""

from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from trailboss.codec.instructions import (
    UNSIGNED,
    AccessEntry,
    CancelTimer,
    ClearMocks,
    CreateAccount,
    DeployActor,
    ExecuteActor,
    ExtendTimer,
    FundActor,
    Instruction,
    MoveTimer,
    OwnerDraw,
    ReplyJob,
    RouteInstall,
    SetBalance,
    SetCode,
    SetGovParam,
    SetMock,
    SetRunner,
    SetStorage,
    Signer,
    Transaction,
    Transfer,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
    UpgradeActor,
)
from trailboss.codec.layout import SALT_MAX
from trailboss.codec.wire import encode_transaction, signing_hash
from trailboss.crypto.digest import keccak256
from trailboss.crypto.signatures import address_of, recover, sign
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U16_MAX, check_range

__all__ = [
    "UNSIGNED", "AccessEntry", "CancelTimer", "ClearMocks", "CreateAccount", "DeployActor", "ExecuteActor",
    "ExtendTimer", "FundActor", "Instruction", "MoveTimer", "OwnerDraw", "ReplyJob", "RouteInstall", "SetBalance",
    "SetCode", "SetGovParam", "SetMock", "SetRunner", "SetStorage", "Signer", "Transaction", "Transfer",
    "UpdateBasefeeConfig", "UpdateLaneFeeMultipliers", "UpdateTimerConfig", "UpgradeActor", "check_signature",
    "derive_actor_address", "sign_transaction", "signing_hash", "transaction_hash",
]  # fmt: skip

_HASH: Final = "hash"  # what the hash of a transaction is kept as
GROUP_WIDTH: Final = 2  # leading bytes of an address that name its group of accounts


def transaction_hash(transaction: Transaction) -> Hash32:
    """Return the SHA-256 digest of the wire bytes, signatures included: the name of a signed transaction. It keeps it.

    The public protocol does not publish its hash; this is the chain's own choice.

    Raises:
        Rejection: ``OVERFLOW`` or ``INVALID_DATA`` if a field does not fit its width on the wire.
    """
    kept = transaction.__dict__
    known: Hash32 | None = kept.get(_HASH)
    if known is None:
        known = kept[_HASH] = Hash32(sha256(encode_transaction(transaction)).digest())
    return known


def sign_transaction(transaction: Transaction, private_key: bytes) -> Transaction:
    """Return the transaction sent and signed by ``private_key``.

    Signatures of additional signers cover the sender, so they stay valid only if the sender was already right.

    Raises:
        Rejection: ``INVALID_DATA`` for an invalid key; ``OVERFLOW`` or ``INVALID_DATA`` if a field does not fit its
            width on the wire.
    """
    unsigned = replace(transaction, sender=address_of(private_key))
    return replace(unsigned, signature=sign(signing_hash(unsigned), private_key))


def check_signature(transaction: Transaction) -> None:
    """Refuse a transaction that its sender, or an additional signer, has not signed.

    Raises:
        Rejection: ``INVALID_SIGNATURE`` naming the claimed and the recovered address, or the fault of the signature;
            ``OVERFLOW`` or ``INVALID_DATA`` if a field does not fit its width on the wire.
    """
    digest = signing_hash(transaction)
    signers = [("from", transaction.sender, transaction.signature)]
    for index, signer in enumerate(transaction.additional_signers):
        signers.append((f"additional_signers[{index}]", *signer))
    for field, claimed, signature in signers:
        try:
            recovered = recover(digest, signature)
        except Rejection as refusal:
            what = f"the signature of {field} {claimed} is invalid: {refusal.what}"
            raise Rejection(RejectionReason.INVALID_SIGNATURE, what, field=field, claimed=str(claimed)) from None
        if recovered != claimed:
            raise Rejection(
                RejectionReason.INVALID_SIGNATURE,
                f"{field} is {claimed}, but the signature is one of {recovered}",
                field=field,
                claimed=str(claimed),
                recovered=str(recovered),
            )


def derive_actor_address(deployer: Address, salt: bytes, code_hash: bytes, shard: int | None = None) -> Address:
    """Return the address of a deployed actor.

    The salt has at most 32 bytes; the shard is the address's first two bytes as a number, None the deployer's.

    Raises:
        Rejection: ``INVALID_DATA`` for a longer salt, another width of hash or a shard that is not an integer;
            ``OVERFLOW`` for a shard outside 16 bits.

    Source: docs/spec/sources.md §3 (the public SDK's derivation). Decision: D-36
    """
    if len(salt) > SALT_MAX:
        raise Rejection(RejectionReason.INVALID_DATA, f"salt has {len(salt)} bytes, above {SALT_MAX}", field="salt")
    if len(code_hash) != Hash32.WIDTH:
        what = f"code_hash must be {Hash32.WIDTH} bytes, got {len(code_hash)}"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="code_hash")
    if shard is None:
        group = deployer[:GROUP_WIDTH]
    else:
        group = check_range("shard", shard, U16_MAX).to_bytes(GROUP_WIDTH, "big")
    digest = keccak256(b"\xff" + deployer + keccak256(salt) + code_hash)
    return Address(group + digest[GROUP_WIDTH - Address.WIDTH :])
