"""Proofs of what a chain's state holds after its head, and how to name what they are about."""

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.proofs import prover
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.statements import Slot, Statement
from trailboss.state.proofs.subjects import (
    AccountSubject,
    SlotSubject,
    StorageSubject,
    Subject,
    TimersSubject,
    TimerSubject,
)
from trailboss.state.store import ReadableStore

__all__ = ["AccountSubject", "Proof", "Slot", "SlotSubject", "Statement", "StorageSubject"]
__all__ += ["Subject", "TimerSubject", "TimersSubject", "prove", "timer_subject"]


def prove(store: ReadableStore, subject: Subject) -> Proof:
    """Return the proof of all that a store's state holds of a subject.

    Spec: CIP-1v3 §2.3
    Decision: D-49
    """
    return prover.prove(store.roots, store.read, subject)


def timer_subject(store: ReadableStore, timer_id: bytes, height: int | None = None) -> TimerSubject:
    """Return the subject that is the timer with an id. Decision: D-02 (a timer lies under its height).

    The height is that at which it is, or was to be, due; None for a timer that is live.

    Raises:
        Rejection: ``NOT_FOUND`` if no height is given and no live timer has the id, for where it is not can only be
            shown under its height; ``INVALID_DATA`` or ``OVERFLOW`` if the id has no 32 bytes or the height no 64 bits.
    """
    if height is None:
        height = store.timer_height(Hash32(timer_id))
    if height is None:
        what = f"no live timer has the id {Hash32(timer_id)}; to prove that it is gone, give the height it was due at"
        raise Rejection(RejectionReason.NOT_FOUND, what, timer_id=str(Hash32(timer_id)))
    return TimerSubject(Height(height), timer_id)
