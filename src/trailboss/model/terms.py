"""What a mechanism keeps with a timer beyond the fields of all timers."""

from enum import StrEnum

import msgspec

from trailboss.primitives.units import Cycles, Height


class MechanismTerms(msgspec.Struct, frozen=True, array_like=True):
    """What a timer asks its mechanism's part for, whichever it is; the answers here are those of most."""

    @property
    def own_agent(self) -> bytes:
        """The gas bidding agent of this timer alone, 20 bytes; empty if it has none."""
        return b""

    @property
    def is_watch(self) -> bool:
        """Whether a change of the state fires it, again and again, and no height."""
        return False

    @property
    def ends_apart(self) -> bool:
        """Whether it may expire before its height."""
        return False

    def target_of(self, owner: bytes) -> bytes:
        """Return the actor whose handler it calls, 20 bytes."""
        return owner


class AuctionTerms(MechanismTerms, frozen=True, array_like=True, tag="auction", gc=False):
    """A timer of the auction, whose bid is `Timer.fees`. Spec: CIP-1v1 §3, CIP-1v1 §4.2. Decision: D-57, D-60."""

    agent: bytes  # its gas bidding agent, 20 bytes
    asked_at: int = 0  # block of the agent's last query; 0 for none
    is_late: bool = False  # whether an event has reported that it is later than ``MAX_ALLOWED_DELAYS``

    @property
    def own_agent(self) -> bytes:
        """Its agent."""
        return self.agent


class Trigger(StrEnum):
    """What fires a timer of Globalbox. Spec: CIP-5old §5.1."""

    HEIGHT = "HEIGHT"  # A height. It fires once.
    STATE_WATCH = "STATE_WATCH"  # A change of a watched key. It fires until it is cancelled or expires.


class QueuedFire(msgspec.Struct, frozen=True, array_like=True):
    """A queued fire: its rank and what it uses. Spec: CIP-5old §5.3, CIP-5old §8.2. Decision: D-20, D-61, D-62."""

    # Score at the insertion less the age clock of that block: 32 bytes, big-endian, two's complement, in units of
    # 2⁻⁹⁶. The greater comes first.
    standing: bytes
    bucket: int  # priority bucket; the greater comes first
    cursor: int  # round-robin place among its target's candidates of that block, from 0; the lesser comes first
    hit_height: Height  # height from which its age counts: the due height, or the block of the change that hit it
    queued_at: Height  # block of the insertion
    matched_keys: tuple[bytes, ...]  # watched keys that were modified, ascending; empty for a height
    handler: str  # handler of the delivery; as the next three
    payload: bytes
    gas_limit: Cycles
    bid: bytes  # Q32.96 as 16 bytes


class GlobalboxTerms(MechanismTerms, frozen=True, array_like=True, tag="globalbox"):
    """A timer of Globalbox: with `Timer` itself the draft's TimerMeta. The owner is `Timer.actor`.

    `Timer.height` is the due height of a height timer. A state watch is in the calendar one block after its expiry,
    where it is collected. `Timer.expires_at` is the expiry height of both. Spec: CIP-5old §5.1.
    """

    kind: Trigger  # what fires it
    target: bytes  # actor whose handler runs, 20 bytes
    bid: bytes  # Q32.96 as 16 bytes, big-endian: its whole part is the tip per cycle, base units. Decision: D-63.
    watch_keys: tuple[bytes, ...] = ()  # prefixes of the keys it watches, ascending; empty for a height
    client_nonce: bytes = b""  # its owner's name for it; empty for none. Decision: D-64.
    fire_seq: int = 0  # fires materialized so far
    last_fire_height: int = 0  # block of the last of them; 0 for none
    in_mailbox: int = 0  # of those, the entries that still wait in the mailbox
    fire: QueuedFire | None = None  # the one that waits in Globalbox, if any

    @property
    def is_watch(self) -> bool:
        """Whether it is a state watch."""
        return self.kind is Trigger.STATE_WATCH

    @property
    def ends_apart(self) -> bool:
        """It may: the calendar then holds only its end. Decision: D-84."""
        return True

    def target_of(self, owner: bytes) -> bytes:
        """Return its target, which may be its owner."""
        del owner
        return self.target


Terms = AuctionTerms | GlobalboxTerms  # a mechanism's own part of a timer
