"""Why a wait ends, as far as the mempool decides it."""

from trailboss.mempool.records import Pooled
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32


def already_known(name: Hash32) -> Rejection:
    """Return what is said of a transaction that waits already."""
    return Rejection(RejectionReason.ALREADY_KNOWN, f"{name} waits already", hash=str(name))


def evicted(leaving: Pooled, newcomer: Pooled) -> Rejection:
    """Return why a transaction made room for another."""
    return Rejection(
        RejectionReason.MEMPOOL_FULL,
        f"the mempool was full, and {leaving.hash} made room for {newcomer.hash}",
        hash=str(leaving.hash),
        newcomer=str(newcomer.hash),
    )


def replaced_by(present: Pooled, newcomer: Pooled) -> Rejection:
    """Return why a transaction lost its place to another of its sender and nonce."""
    return Rejection(
        RejectionReason.REPLACED,
        f"{newcomer.hash} took the place of {present.hash} at nonce {present.transaction.nonce} of "
        f"{present.transaction.sender}",
        hash=str(present.hash),
        newcomer=str(newcomer.hash),
    )


def expired(pooled: Pooled, height: int) -> Rejection:
    """Return why a transaction waits no longer at a height."""
    return Rejection(
        RejectionReason.EXPIRED,
        f"{pooled.hash} has waited since block {pooled.admitted_height}, and this is block {height}",
        hash=str(pooled.hash),
        since=pooled.admitted_height,
        height=height,
    )
