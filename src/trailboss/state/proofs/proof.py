"""Proofs: what the state of one root holds, for anyone who has only the root.

A proof shows all of its subject: an account, a storage slot, all slots of an actor, a timer, all timers of a range of
heights; or that there is none. Its bytes are the positional msgpack array

```text
[version, subject, digest of every other namespace's tree, shown nodes, values of the entries within the range]
```

and a subject and a state have exactly one; other bytes do not decode, or do not verify. This module and its imports
need no store and no chain. Spec: CIP-1v3 §2.3. Decision: D-49.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Self, get_args

import msgspec

from trailboss.codec.canonical import pack
from trailboss.codec.documents import to_document, to_positions
from trailboss.codec.exact import without_texts
from trailboss.primitives.errors import ProofError, Rejection
from trailboss.primitives.octets import Hash32
from trailboss.state.digests import DIGEST_WIDTH, STATE_ROOT_TAG
from trailboss.state.keys import KEY_WIDTHS
from trailboss.state.proofs.nodes import LeafEntry, ShownNode, fold_nodes
from trailboss.state.proofs.statements import Statement, decode_records
from trailboss.state.proofs.subjects import Subject, subject_range

PROOF_VERSION: Final = 1

_KINDS: Final = {kind.__struct_config__.tag: kind for kind in (*get_args(Subject), *get_args(ShownNode))}
"""Nested records by what a document names as their kind."""


class Proof(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Shows all that the state of one root holds of a subject."""

    version: int  # version of this format
    subject: Subject  # what it is about
    # Digest of the tree of each namespace but the subject's, 32 bytes each, in the state root's order.
    other_digests: tuple[bytes, ...]
    # The shown part of the subject's tree, parents first; see `trailboss.state.proofs.nodes`.
    nodes: tuple[ShownNode, ...]
    values: tuple[bytes, ...]  # value of each entry within the subject's range, ascending by key

    def verify(self, state_root: bytes) -> Statement:
        """Check the proof against a trusted state root of 32 bytes, and return what it proves.

        Spec: CIP-1v3 §2.3, CIP-5 §3.2. Complexity: O(size of the proof).

        Raises:
            ProofError: If it proves nothing about that root; the message names the step that failed.
        """
        if self.version != PROOF_VERSION:
            raise ProofError(f"the proof has version {self.version}; this verifier reads version {PROOF_VERSION}")
        keys = subject_range(self.subject)
        digest, entries = fold_nodes(self.nodes, keys)
        root = _combine(keys.namespace, digest, self.other_digests)
        if root != state_root:
            raise ProofError(f"the proof leads to the state root 0x{root.hex()}, not to 0x{state_root.hex():.80}")
        _check_values(entries, self.values)
        full_keys = (keys.namespace + key for key, _ in entries)
        records = decode_records(self.subject, list(zip(full_keys, self.values, strict=True)))
        return Statement(self.subject, Hash32(root), records)

    def to_bytes(self) -> bytes:
        """Return the proof's bytes."""
        return pack(self)

    @classmethod
    def from_bytes(cls, octets: bytes) -> Self:
        """Read a proof without verifying it. `ProofError` if the bytes are not the one encoding of a proof."""
        try:
            proof = msgspec.msgpack.decode(octets, type=cls)
        except (ValueError, Rejection) as error:
            raise ProofError(f"the bytes are no proof: {_reason(error)}") from None
        if proof.to_bytes() != octets:
            raise ProofError("the bytes are not the one encoding of the proof that they hold")
        return proof

    def to_json(self) -> dict[str, Any]:
        """Return the proof as a JSON object: fields by name, records with their ``kind``, bytes as ``0x`` text."""
        return to_document(self)

    @classmethod
    def from_json(cls, document: object) -> Self:
        """Read a proof from a JSON object, unverified. `ProofError` if it is no proof as `to_json` writes it."""
        try:
            proof = msgspec.convert(to_positions(document, cls, _KINDS), type=cls, builtin_types=(bytes,))
            # An integer of more than 64 bits has no encoding.
            proof.to_bytes()
        except (ValueError, OverflowError, RecursionError, Rejection) as error:
            raise ProofError(f"the JSON is no proof: {_reason(error)}") from None
        if proof.to_json() != without_texts(document):
            raise ProofError("the JSON is not the one text of the proof that it holds")
        return proof


def _reason(error: Exception) -> str:
    return error.what if isinstance(error, Rejection) else str(error)


def _combine(namespace: bytes, digest: bytes, other_digests: Sequence[bytes]) -> bytes:
    """Return the state root over the digest of one namespace's tree and those of all others."""
    expected = len(KEY_WIDTHS) - 1
    if len(other_digests) != expected or any(len(each) != DIGEST_WIDTH for each in other_digests):
        raise ProofError(f"the other namespaces need {expected} digests of {DIGEST_WIDTH} bytes each")
    others = iter(other_digests)
    parts = [each + (digest if each == namespace else next(others)) for each in KEY_WIDTHS]
    return sha256(STATE_ROOT_TAG + b"".join(parts)).digest()


def _check_values(entries: Sequence[LeafEntry], values: Sequence[bytes]) -> None:
    """Check that the entries commit to the values."""
    if len(entries) != len(values):
        raise ProofError(f"the tree has {len(entries)} entries within the range, the proof {len(values)} values")
    for (key, value_digest), value in zip(entries, values, strict=True):
        if sha256(value).digest() != value_digest:
            raise ProofError(f"the value under the key {key.hex()} is not the one that the tree commits to")
