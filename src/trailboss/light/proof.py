"""A light proof: a signed header of the engine, our header that it commits to, and what that header commits to.

```text
signatures of more than two thirds of the power
└─ the engine's header of height H + 1 ── app hash
   └─ our header of height H ── state root ── proof of what the state holds after block H
                              └ receipts root ── how a timer ended in block H
```

Decision: D-104
"""

from collections.abc import Sequence
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from trailboss.codec.documents import to_document, to_positions
from trailboss.codec.exact import without_texts
from trailboss.light.commits import Support, verify_signed_header
from trailboss.light.endings import EndingProof, TimerEnding
from trailboss.light.engine_records import SIGNED_HEADER, SignedHeader, read_signed_header, signed_header_document
from trailboss.light.engine_values import Time
from trailboss.model.blocks import Header, header_hash
from trailboss.model.validators import Validator
from trailboss.primitives.errors import ProofError, Rejection
from trailboss.primitives.octets import Hash32
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.statements import Statement
from trailboss.state.proofs.subjects import TimerSubject

LIGHT_PROOF_VERSION: Final = 1
VERSION: Final = "version"
HEADER: Final = "header"
STATE: Final = "state"
ENDING: Final = "ending"
_NO_KINDS: Final[dict[str, type[Struct]]] = {}


class LightStatement(Struct, frozen=True):
    """What a light proof proves."""

    header: Header  # header of the block after which, or in which, it is so
    hash: Hash32  # that header's hash
    signed_at: Time  # time in the engine's header that the validators signed
    support: Support  # who signed it
    proven: Statement | TimerEnding

    def __str__(self) -> str:
        height = f"{self.header.height:,}"
        match self.proven:
            case TimerEnding() as ending:
                return f"in block {height}, {ending}"
            case Statement(subject=TimerSubject(due, timer_id), records=()):
                # The id commits to the height, and the verifier cannot see which: so both are part of the sentence.
                return f"no timer {Hash32(timer_id)} that is due at height {due:,} exists after block {height}"
            case Statement(subject=TimerSubject()) as statement:
                return f"{statement}; it is live after block {height}"
            case statement:
                return f"after block {height}, {statement}"


class LightProof(Struct, frozen=True):
    """Leads from the signatures of validators to what the chain holds."""

    signed: SignedHeader  # the engine's, one height above
    header: Header  # ours
    shown: Proof | EndingProof  # what the state root, or the receipts root, commits to

    def verify(self, validators: Sequence[Validator], chain_id: str) -> LightStatement:
        """Check the proof against a trusted set of validators, and return what it proves.

        Args:
            validators: The validators that genesis states.
            chain_id: The name under which they sign: `Genesis.engine_chain_id`.

        Raises:
            ProofError: If it proves nothing; the message names the step that failed.
        """
        support = verify_signed_header(self.signed, validators, chain_id)
        digest = header_hash(self.header)
        engine = self.signed.header
        if bytes(engine.app_hash) != digest:
            raise ProofError(f"the validators signed the header 0x{engine.app_hash.hex():.80}, the proof has {digest}")
        if engine.height != self.header.height + 1:
            what = f"the header of height {self.header.height} is signed at height {engine.height}"
            raise ProofError(f"{what}, not at the height after it")
        is_state = isinstance(self.shown, Proof)
        proven = self.shown.verify(self.header.state_root if is_state else self.header.receipts_root)
        return LightStatement(self.header, digest, engine.time, support, proven)

    def to_json(self) -> dict[str, Any]:
        """Return the proof as a JSON object: the signed header as the engine has it, the rest as `Proof.to_json`."""
        kind = STATE if isinstance(self.shown, Proof) else ENDING
        shown = self.shown.to_json() if isinstance(self.shown, Proof) else to_document(self.shown)
        signed, header = signed_header_document(self.signed), to_document(self.header)
        return {VERSION: LIGHT_PROOF_VERSION, SIGNED_HEADER: signed, HEADER: header, kind: shown}

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Read a proof from a JSON object, unverified. `ProofError` if it is no proof as `to_json` writes it."""
        found = without_texts(document)
        if not isinstance(found, dict) or found.get(VERSION) != LIGHT_PROOF_VERSION:
            version = found.get(VERSION) if isinstance(found, dict) else None
            raise ProofError(f"the light proof has version {version!r:.80}; this verifier reads {LIGHT_PROOF_VERSION}")
        signed = read_signed_header(found)
        try:
            header = _record(found.get(HEADER), Header)
            header_hash(header)  # an integer of more than 64 bits has no encoding
            ending = found.get(ENDING)
            shown = Proof.from_json(found.get(STATE)) if ending is None else _record(ending, EndingProof)
        except (ValueError, OverflowError, RecursionError, Rejection) as error:
            raise ProofError(f"the JSON is no light proof: {error}") from None
        proof = cls(signed, header, shown)
        if proof.to_json() != found:
            raise ProofError("the JSON is not the one text of the light proof that it holds")
        return proof


def _record(document: object, kind: Any) -> Any:
    return msgspec.convert(to_positions(document, kind, _NO_KINDS), type=kind, builtin_types=(bytes,))
