"""What Globalbox remembers of a timer."""

import msgspec

from trailboss.mechanisms.globalbox.fires import QueuePosition, position_of
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import Timer, terms_of


class TrackedTimer(msgspec.Struct, eq=False, gc=False):
    """A timer that waits to expire, as every state watch does, or a height timer that has joined."""

    expires_at: int  # last height at which it may be hit, queued and materialized
    height: int
    sequence: int
    timer_id: bytes
    schedule_block: int
    watch_keys: tuple[bytes, ...]  # prefixes that it watches; empty for a height timer
    position: QueuePosition | None = None  # of its fire in the queue; None if it has none there
    is_delivered: bool = False  # whether the one fire of a height timer has left the queue
    # Whether its height has come, and the block has let it in; never of one that waits to expire.
    has_joined: bool = False

    @property
    def can_expire(self) -> bool:
        """Whether it ends once its expiry has passed: what is in the mailbox runs, and what is to join joins."""
        return (self.waits_to_expire or self.has_joined or self.position is not None) and not self.is_delivered

    @property
    def waits_to_expire(self) -> bool:
        """Whether its height never comes; as `Timer.waits_to_expire`."""
        return self.expires_at < self.height

    @property
    def due(self) -> tuple[int, int, bytes]:
        """Its place in due order: height, sequence and id."""
        return self.height, self.sequence, self.timer_id

    def follow(self, timer: Timer) -> None:
        """Take over where the fire of the timer's present record is."""
        terms = terms_of(timer, GlobalboxTerms)
        self.position = None if terms.fire is None else position_of(timer, terms.fire)
        self.is_delivered = terms.kind is Trigger.HEIGHT and terms.fire_seq > 0


def track(timer: Timer) -> TrackedTimer:
    """Return what is remembered of a timer's record."""
    keys = terms_of(timer, GlobalboxTerms).watch_keys
    tracked = TrackedTimer(timer.expires_at, timer.height, timer.sequence, timer.timer_id, timer.schedule_block, keys)
    tracked.follow(timer)
    return tracked
