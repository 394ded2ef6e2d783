"""What the mempool holds and what it says, as records."""

from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct, field

from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32

MEBIBYTE: Final = 2**20


class MempoolLimits(Struct, frozen=True, kw_only=True):
    """How much waits, and for how long. Decision: D-71."""

    transactions_max: int = 10_000  # transactions in all
    bytes_max: int = 64 * MEBIBYTE  # wire bytes in all
    transaction_bytes_max: int = 131_072  # wire bytes of one transaction
    sender_transactions_max: int = 64  # transactions of one sender
    nonces_ahead_max: int = 64  # how far a nonce may be ahead of its sender's
    replacement_percent: int = 10  # by how much a transaction must raise what another with its sender and nonce offers
    expiry_blocks: int = 3_600  # blocks that a transaction waits for
    remembered_max: int = 10_000  # transactions that have ended of which the reason is kept
    passed_over_max: int = 64  # transactions that do not fit what a block has left and are passed over in one `take`


class Pooled(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """A transaction that waits."""

    transaction: Transaction
    hash: Hash32  # SHA-256 of its wire bytes
    raw: bytes
    arrival: int  # how many had come before it; the lower of two was here first
    cost: int  # base units that it can cost its sender at most
    cycles: int  # cycles that it uses at least
    cells: int  # cells that it uses at least
    admitted_height: int  # height of the chain when it came


class End(Enum):
    """How the wait of a transaction ended."""

    INCLUDED = "included"  # a block holds it
    REPLACED = "replaced"  # another with its sender and nonce took its place
    EVICTED = "evicted"  # it made room for one that offers more
    EXPIRED = "expired"  # no block took it for too long
    INVALIDATED = "invalidated"  # the chain went on, or back, and it cannot run any more
    REFUSED = "refused"  # a block was offered it and refused it for good


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The one end of the wait of a transaction that was admitted; without a rejection it is in a block."""

    hash: Hash32
    end: End
    rejection: Rejection | None = None


class AdmissionStatus(Enum):
    """What became of a transaction that was brought."""

    ACCEPTED = "accepted"  # it waits
    REPLACED = "replaced"  # it waits, in the place of another
    KNOWN = "known"  # it waits already
    REFUSED = "refused"  # it does not wait


class AdmissionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The mempool's answer to a transaction."""

    hash: Hash32
    status: AdmissionStatus
    rejection: Rejection | None = None  # why it was refused, or ``ALREADY_KNOWN``; None if it was taken
    endings: tuple[Ending, ...] = ()  # of others that it took the place of

    @property
    def is_waiting(self) -> bool:
        """Whether the transaction waits now."""
        return self.status is not AdmissionStatus.REFUSED


class Recovery(Struct, frozen=True, kw_only=True):
    """What a journal held when the node started."""

    admitted: int = 0  # transactions that wait again
    # Of those that do not, such as those that the chain's last block held already.
    endings: list[Ending] = field(default_factory=list)
    damage: str | None = None  # what was wrong with the end of the journal and has been cut off; None if nothing was


class Statistics(Struct, frozen=True, kw_only=True):
    """How much waits."""

    transactions: int  # in all
    executable: int  # of these, those with no nonce missing before them
    senders: int  # accounts that have any
    bytes: int  # wire bytes in all
    journal_bytes: int  # size of the journal's file; 0 without one


def already_known(name: Hash32) -> Rejection:
    """Return what is said of a transaction that waits already."""
    return Rejection(RejectionReason.ALREADY_KNOWN, f"{name} waits already", hash=str(name))


def evicted(leaving: Pooled, newcomer: Pooled) -> Rejection:
    """Return why a transaction made room for another."""
    what = f"the mempool was full, and {leaving.hash} made room for {newcomer.hash}"
    return Rejection(RejectionReason.MEMPOOL_FULL, what, hash=str(leaving.hash), newcomer=str(newcomer.hash))


def replaced_by(present: Pooled, newcomer: Pooled) -> Rejection:
    """Return why a transaction lost its place to another of its sender and nonce."""
    old = present.transaction
    what = f"{newcomer.hash} took the place of {present.hash} at nonce {old.nonce} of {old.sender}"
    return Rejection(RejectionReason.REPLACED, what, hash=str(present.hash), newcomer=str(newcomer.hash))


def expired(pooled: Pooled, height: int) -> Rejection:
    """Return why a transaction waits no longer at a height."""
    what = f"{pooled.hash} has waited since block {pooled.admitted_height}, and this is block {height}"
    return Rejection(RejectionReason.EXPIRED, what, hash=str(pooled.hash), since=pooled.admitted_height, height=height)
