"""Validators that sign our headers as the engine's do, without an engine."""

from collections.abc import Collection, Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from trailboss.crypto.digest import sha256
from trailboss.light.commits import in_engine_order, validators_hash
from trailboss.light.engine_records import (
    ABSENT,
    FOR_BLOCK,
    FOR_NOTHING,
    BlockId,
    Commit,
    CommitSignature,
    EngineHeader,
    PartSet,
    SignedHeader,
    Version,
)
from trailboss.light.engine_values import NO_TIME, Number, Octets, Signature, Time
from trailboss.model.blocks import Header, header_hash
from trailboss.model.validators import Validator
from trailboss.primitives.octets import Address

CHAIN_ID = "trailboss-7-0123456789ab"
NOW = Time.parse("2026-08-04T10:00:00.000000007Z")


class Committee:
    """Validators whose keys are known."""

    def __init__(self, powers: Sequence[int], chain_id: str = CHAIN_ID, seed: str = "validator") -> None:
        self.chain_id = chain_id
        self._keys = {}
        validators = []
        for number, power in enumerate(powers):
            key = Ed25519PrivateKey.from_private_bytes(sha256(f"{seed} {number}".encode()))
            public = key.public_key().public_bytes_raw()
            self._keys[public] = key
            validators.append(Validator(public, power, Address(sha256(public)[:20])))
        self.validators = tuple(validators)

    @property
    def ordered(self) -> list[Validator]:
        """The validators in the engine's order."""
        return in_engine_order(self.validators)

    def header(self, ours: Header) -> EngineHeader:
        """Return the engine's header that states one of ours."""
        empty = Octets(sha256(b""))
        above = ours.height + 1
        last = (
            BlockId(Octets(sha256(b"last")), PartSet(1, empty))
            if above > 1
            else BlockId(Octets(), PartSet(0, Octets()))
        )
        trusted = Octets(validators_hash(self.validators))
        return EngineHeader(
            version=Version(Number(11), Number(1)),
            chain_id=self.chain_id,
            height=Number(above),
            time=NOW,
            last_block_id=last,
            last_commit_hash=empty,
            data_hash=empty,
            validators_hash=trusted,
            next_validators_hash=trusted,
            consensus_hash=empty,
            app_hash=Octets(header_hash(ours)),
            last_results_hash=empty,
            evidence_hash=empty,
            proposer_address=Octets(self.ordered[0].identity),
        )

    def commit(
        self,
        header: EngineHeader,
        *,
        round_number: int = 0,
        absent: Collection[int] = (),
        against: Collection[int] = (),
    ) -> SignedHeader:
        """Sign a header; the validators at some places are absent, or vote for no block."""
        block_id = BlockId(Octets(header.digest()), PartSet(1, Octets(sha256(b"parts"))))
        commit = Commit(header.height, round_number, block_id, ())
        votes = []
        for place, validator in enumerate(self.ordered):
            if place in absent:
                votes.append(CommitSignature(ABSENT, Octets(), NO_TIME, None))
            else:
                flag = FOR_NOTHING if place in against else FOR_BLOCK
                vote = CommitSignature(flag, Octets(validator.identity), Time(NOW + 10**9 + place), None)
                votes.append(self.signed(commit, vote, validator))
        return SignedHeader(header, replace(commit, signatures=tuple(votes)))

    def signed(self, commit: Commit, vote: CommitSignature, validator: Validator) -> CommitSignature:
        """Return a vote with its signature."""
        octets = commit.signed_octets(vote, self.chain_id)
        return replace(vote, signature=Signature(self._keys[validator.public_key].sign(octets)))

    def sign(self, ours: Header, **votes: object) -> SignedHeader:
        """Return what the engine states of one of our headers."""
        return self.commit(self.header(ours), **votes)
