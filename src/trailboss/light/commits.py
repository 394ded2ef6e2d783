"""Whether a commit's signatures are those of more than two thirds of a set of validators.

Source: CometBFT 0.38: the order of validators, their hash, and the rule of a commit.
"""

from collections.abc import Sequence

from msgspec import Struct

from trailboss.crypto.digest import merkle_root
from trailboss.crypto.signatures import ED25519_SIGNATURE_WIDTH, verify_ed25519
from trailboss.light.engine_records import ABSENT, FOR_BLOCK, CommitSignature, SignedHeader
from trailboss.light.engine_values import NO_TIME
from trailboss.light.protobuf import message_field, number_field, octets_field
from trailboss.model.validators import Validator
from trailboss.primitives.errors import ProofError, Rejection


class Support(Struct, frozen=True):
    """Who signed a block."""

    signers: int  # validators that voted for it
    validators: int  # validators in all
    power: int  # power of the signers
    total_power: int  # power of all

    @property
    def is_enough(self) -> bool:
        """Whether the signers have more than two thirds of the power."""
        return 3 * self.power > 2 * self.total_power

    def __str__(self) -> str:
        power = f"{self.power:,} of {self.total_power:,}"
        return f"{self.signers} of {self.validators} validators, with a power of {power}"


def in_engine_order(validators: Sequence[Validator]) -> list[Validator]:
    """Return validators as the engine orders them: the most power first, then by identity."""
    return sorted(validators, key=lambda validator: (-validator.power, validator.identity))


def validators_hash(validators: Sequence[Validator]) -> bytes:
    """Return the hash of a set of validators that the engine's headers state: 32 bytes."""
    keys = [(message_field(1, octets_field(1, each.public_key)), each.power) for each in in_engine_order(validators)]
    return merkle_root([key + number_field(2, power) for key, power in keys])


def verify_signed_header(signed: SignedHeader, validators: Sequence[Validator], chain_id: str) -> Support:
    """Check that a header of the engine is one that a trusted set of validators has committed; return who signed it.

    Every vote must be right, also one that does not count. Each stands at its validator's place, so none counts twice.

    Args:
        signed: The header and the commit for it.
        validators: The trusted set, in any order.
        chain_id: Name of the chain that votes are signed for, of at most 50 characters.

    Raises:
        ProofError: If a rule is broken; the message names it and the value.
    """
    header, commit = signed.header, signed.commit
    if header.chain_id != chain_id:
        raise ProofError(f"the signed header is of the chain {header.chain_id!r:.80}, not of {chain_id!r}")
    trusted = validators_hash(validators)
    if header.validators_hash != trusted:
        what = f"the signed header states the validators 0x{header.validators_hash.hex():.80}, trusted are those of"
        raise ProofError(f"{what} 0x{trusted.hex()}")
    if commit.height != header.height:
        raise ProofError(f"the commit is for height {commit.height}, the header of height {header.height}")
    digest = header.digest()
    if commit.block_id.hash != digest:
        raise ProofError(
            f"the commit is for the block 0x{commit.block_id.hash.hex():.80}, the header has 0x{digest.hex()}"
        )
    votes = commit.signatures
    if len(votes) != len(validators):
        raise ProofError(f"the commit has {len(votes)} votes, and there are {len(validators)} validators")
    ordered = in_engine_order(validators)
    for place, (vote, validator) in enumerate(zip(votes, ordered, strict=True)):
        _check_vote(signed, place, vote, validator)
    signers = [each for vote, each in zip(votes, ordered, strict=True) if vote.block_id_flag == FOR_BLOCK]
    power, total = sum(each.power for each in signers), sum(each.power for each in validators)
    support = Support(len(signers), len(validators), power, total)
    if not support.is_enough:
        raise ProofError(f"a block needs more than two thirds of the power, and this one has {support}")
    return support


def _check_vote(signed: SignedHeader, place: int, vote: CommitSignature, validator: Validator) -> None:
    signature = vote.signature
    if vote.block_id_flag == ABSENT:
        if signature is not None or vote.validator_address or vote.timestamp != NO_TIME:
            raise ProofError(f"vote {place} was not seen by its flag, and yet states signature, validator or time")
        return
    if vote.validator_address != validator.identity:
        what = f"vote {place} is of 0x{vote.validator_address.hex():.80}; the validator of that place is"
        raise ProofError(f"{what} 0x{validator.identity.hex()}")
    if signature is None or len(signature) != ED25519_SIGNATURE_WIDTH:
        width = 0 if signature is None else len(signature)
        raise ProofError(f"the signature of vote {place} has {width} bytes, not {ED25519_SIGNATURE_WIDTH}")
    try:
        octets = signed.commit.signed_octets(vote, signed.header.chain_id)
        is_signed = verify_ed25519(validator.public_key, octets, signature)
    except Rejection as rejection:
        raise ProofError(f"vote {place}: {rejection.what}") from None
    if not is_signed:
        raise ProofError(f"the signature of vote {place} is not that of validator 0x{validator.identity.hex()}")
