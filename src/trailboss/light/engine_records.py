"""The consensus engine's header and commit, as its RPC states them, and the bytes that it hashes and signs.

Source: CometBFT 0.38, the JSON of ``/commit`` and the data structures of its specification.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from trailboss.crypto.digest import merkle_root
from trailboss.light.engine_values import Number, Octets, Signature, Time
from trailboss.light.protobuf import delimited, fixed_field, message_field, number_field, octets_field
from trailboss.primitives.errors import ProofError

SIGNED_HEADER: Final = "signed_header"
ABSENT, FOR_BLOCK, FOR_NOTHING = 1, 2, 3
"""What the vote of a validator was: not seen, for the block, or for no block."""
I64_MAX: Final = 2**63 - 1
I32_MAX: Final = 2**31 - 1
U32_MAX: Final = 2**32 - 1
_PRECOMMIT: Final = 2
_TYPE, _HEIGHT, _ROUND, _BLOCK_ID, _TIMESTAMP, _CHAIN_ID = range(1, 7)
"""Fields of a vote's signed bytes."""


class _Record(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Version(_Record, frozen=True):
    """Versions of the protocols of a block."""

    block: Number
    app: Number


class PartSet(_Record, frozen=True):
    """The parts in which a block is sent."""

    total: Annotated[int, Meta(ge=0, le=U32_MAX)]
    hash: Octets


class BlockId(_Record, frozen=True):
    """What votes are for: a header's hash, and the parts of its block. Both are empty before the first block."""

    hash: Octets
    parts: PartSet

    def message(self) -> bytes:
        """Return it as the engine hashes and signs it."""
        parts = number_field(1, self.parts.total) + octets_field(2, self.parts.hash)
        return octets_field(1, self.hash) + message_field(2, parts)


class EngineHeader(_Record, frozen=True):
    """The engine's header of a block; ``app_hash`` is what the block before it left."""

    version: Version
    chain_id: str
    height: Number
    time: Time
    last_block_id: BlockId
    last_commit_hash: Octets
    data_hash: Octets
    validators_hash: Octets
    next_validators_hash: Octets
    consensus_hash: Octets
    app_hash: Octets
    last_results_hash: Octets
    evidence_hash: Octets
    proposer_address: Octets

    def digest(self) -> bytes:
        """Return the hash that validators sign: the Merkle root of the fields, 32 bytes."""
        octets = (
            self.last_commit_hash,
            self.data_hash,
            self.validators_hash,
            self.next_validators_hash,
            self.consensus_hash,
            self.app_hash,
            self.last_results_hash,
            self.evidence_hash,
            self.proposer_address,
        )
        fields = [
            number_field(1, self.version.block) + number_field(2, self.version.app),
            octets_field(1, self.chain_id.encode()),
            number_field(1, self.height),
            self.time.message(),
            self.last_block_id.message(),
            *(octets_field(1, each) for each in octets),
        ]
        return merkle_root(fields)


class CommitSignature(_Record, frozen=True):
    """The vote of one validator, in a commit."""

    block_id_flag: Annotated[int, Meta(ge=ABSENT, le=FOR_NOTHING)]
    validator_address: Octets  # empty for a vote that was not seen
    timestamp: Time
    signature: Signature | None


class Commit(_Record, frozen=True):
    """The votes on a block of one round, in the order of the validators."""

    height: Number
    round: Annotated[int, Meta(ge=0, le=I32_MAX)]
    block_id: BlockId
    signatures: tuple[CommitSignature, ...]

    def signed_octets(self, vote: CommitSignature, chain_id: str) -> bytes:
        """Return the bytes that a vote of this commit signs."""
        is_for_block = vote.block_id_flag == FOR_BLOCK
        return delimited(
            number_field(_TYPE, _PRECOMMIT)
            + fixed_field(_HEIGHT, self.height)
            + fixed_field(_ROUND, self.round)
            + (message_field(_BLOCK_ID, self.block_id.message()) if is_for_block else b"")
            + message_field(_TIMESTAMP, vote.timestamp.message())
            + octets_field(_CHAIN_ID, chain_id.encode())
        )


class SignedHeader(_Record, frozen=True):
    """A header of the engine with the commit for it."""

    header: EngineHeader
    commit: Commit


def read_signed_header(document: object) -> SignedHeader:
    """Return the signed header in the result of the engine's ``/commit``; its other members are ignored.

    Raises:
        ProofError: If there is none in the engine's one text; the message names the member.
    """
    found = document.get(SIGNED_HEADER) if isinstance(document, dict) else None
    try:
        signed: SignedHeader = msgspec.convert(found, SignedHeader, dec_hook=_parse)
        if max(signed.header.height, signed.commit.height) > I64_MAX:
            raise ValueError(f"a height has 63 bits, and {signed.header.height} has more")
        signed.header.chain_id.encode()
        is_exact = signed_header_document(signed) == found
    except (ValueError, RecursionError) as error:
        raise ProofError(f"the signed header is none of the engine's: {error}") from None
    if not is_exact:
        raise ProofError("the JSON of the signed header is not the one text of what it holds")
    return signed


def signed_header_document(signed: SignedHeader) -> dict[str, Any]:
    """Return a signed header as the engine's JSON states it."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(signed, enc_hook=lambda value: value.text()))
    return document


def _parse(kind: Any, text: object) -> Any:
    if not isinstance(text, str):
        raise ValueError(f"expected a text, got {text!r:.80}")
    return kind.parse(text)
