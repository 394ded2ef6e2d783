"""State watches by the keys that they watch.

A watch key is a prefix, so a modified key is looked up by each of its prefixes that has a length at which there is a
watch. Under each prefix are the sequences of the watches that are *armed*: those whose fire is queued are not there,
and those that have expired are left out by a subtraction of bitmaps. So a block looks at as many watches as it takes.
Spec: CIP-5old §5.2, CIP-5old §7. Decision: D-65.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Final, NamedTuple

import msgspec
from pyroaring import BitMap64
from sortedcontainers import SortedDict

from trailboss.mechanisms.globalbox.fires import QueuePosition, position_of
from trailboss.mechanisms.globalbox.sorted_sets import SequenceSet
from trailboss.model.globalbox import CarriedHit
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import Timer, terms_of

MATCHED_MAX: Final = 16  # keys that one fire names. Decision: D-65.


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
    has_joined: bool = False  # whether its height has come and a block let it in; never if it waits to expire
    is_counted: bool = False  # whether it has joined and has not expired since

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


class ModifiedKeys(NamedTuple):
    """Some modified keys that the same watches match."""

    first: int  # watches from this sequence on match
    before: int  # watches set before this block match; as of it the keys count as modified
    keys: list[bytes]  # the keys, ascending


class WatchHit(NamedTuple):
    """A state watch that a change has hit."""

    height: int  # the watch's, in the calendar
    timer_id: bytes
    hit_height: int  # the first block as of which any of its keys counts as modified
    matched_keys: tuple[bytes, ...]  # keys whose modification hit it, ascending, at most ``MATCHED_MAX``


class WatchedPrefix(msgspec.Struct, eq=False, gc=False):
    """A watch key: sequences of its armed watches, and how many others have queued fires."""

    armed: SequenceSet
    disarmed: int = 0


class WatchIndex:
    """All state watches, by what they watch."""

    def __init__(self) -> None:
        self._prefixes: dict[bytes, WatchedPrefix] = {}
        self._lengths = SortedDict()
        self._by_sequence: dict[int, TrackedTimer] = {}
        self._by_expiry = SortedDict()
        self._expired = BitMap64()

    def add(self, watch: TrackedTimer) -> None:
        """Take in a watch; it is armed unless its fire is queued. Complexity: O(1) a watch key, amortized."""
        self._by_sequence[watch.sequence] = watch
        self._by_expiry.setdefault(watch.expires_at, SequenceSet()).add(watch.sequence)
        for key in watch.watch_keys:
            prefix = self._prefixes.get(key)
            if prefix is None:
                prefix = self._prefixes[key] = WatchedPrefix(SequenceSet())
                self._lengths[len(key)] = self._lengths.get(len(key), 0) + 1
            if watch.position is None:
                prefix.armed.add(watch.sequence)
            else:
                prefix.disarmed += 1

    def remove(self, watch: TrackedTimer) -> None:
        """Take out a watch. Complexity: as `add`."""
        del self._by_sequence[watch.sequence]
        self._expired.discard(watch.sequence)
        group = self._by_expiry.get(watch.expires_at)
        if group is not None:
            group.remove(watch.sequence)
            if not group:
                del self._by_expiry[watch.expires_at]
        for key in watch.watch_keys:
            prefix = self._prefixes[key]
            if watch.position is None:
                prefix.armed.remove(watch.sequence)
            else:
                prefix.disarmed -= 1
            if not prefix.disarmed and not prefix.armed:
                del self._prefixes[key]
                self._lengths[len(key)] -= 1
                if not self._lengths[len(key)]:
                    del self._lengths[len(key)]

    def disarm(self, watch: TrackedTimer) -> None:
        """Disarm a watch, while its fire is queued. Complexity: as `add`."""
        for key in watch.watch_keys:
            prefix = self._prefixes[key]
            prefix.armed.remove(watch.sequence)
            prefix.disarmed += 1

    def arm(self, watch: TrackedTimer) -> None:
        """Arm a watch again. Complexity: as `add`."""
        for key in watch.watch_keys:
            prefix = self._prefixes[key]
            prefix.armed.add(watch.sequence)
            prefix.disarmed -= 1

    def is_watched(self, key: bytes) -> bool:
        """Return whether a watch watches a prefix of a key. Complexity: O(1) for each length of a watch key."""
        return any(key[:length] in self._prefixes for length in self._lengths)

    def match(
        self, modified: Sequence[CarriedHit], most: int, height: int
    ) -> tuple[list[WatchHit], tuple[CarriedHit, ...]]:
        """Return the watches that the modified keys hit, and the keys that other watches have yet to match.

        The keys ascend, each once; watches of the lowest sequences are hit, ``most`` at most. Spec: CIP-5old §7.
        Decision: D-65. Complexity: O(1) a key for each length of a watch key, and O(log m) a hit, for m keys; none for
        watches that are not armed, and none for those beyond the most.
        """
        # A height costs O(log n), and each watch that has expired before this one a few instructions.
        while self._by_expiry and self._by_expiry.peekitem(0)[0] < height:
            self._by_expiry.popitem(0)[1].add_to(self._expired)
        by_prefix = self._group(modified)
        found = [sequence for sequence, _ in islice(groupby(self._hit_by(by_prefix)), most + 1)]
        taken = found[:most]
        carried = tuple(self._left(modified, by_prefix, taken[-1] + 1)) if len(found) > most else ()
        return [_hit(self._by_sequence[sequence], by_prefix) for sequence in taken], carried

    def _group(self, modified: Iterable[CarriedHit]) -> dict[bytes, list[ModifiedKeys]]:
        hits_of: dict[bytes, list[CarriedHit]] = {}
        prefixes, lengths = self._prefixes, tuple(self._lengths)
        for hit in modified:
            for length in lengths:
                prefix = hit.key[:length]
                if prefix in prefixes and len(prefix) == length:
                    hits_of.setdefault(prefix, []).append(hit)
        return {prefix: _by_terms(hits) for prefix, hits in hits_of.items()}

    def _hit_by(self, by_prefix: dict[bytes, list[ModifiedKeys]]) -> Iterator[int]:
        """Return the sequences of all that are hit, ascending, some more than once; of many, only those asked for."""
        gathered: list[int] = []
        streams = []
        for prefix, each in by_prefix.items():
            armed = self._prefixes[prefix].armed
            for first, before, _ in each:
                matching = self._matching(armed, first, before)
                if armed.are_few:
                    gathered += matching
                else:
                    streams.append(matching)
        gathered.sort()
        return merge(gathered, *streams)

    def _matching(self, armed: SequenceSet, first: int, before: int) -> Iterator[int]:
        """Yield those of some sequences, ascending, from the first on, that were set before a block."""
        for sequence in armed.since(first, self._expired):
            # A watch that was set later has a higher sequence.
            if self._by_sequence[sequence].schedule_block >= before:
                return
            yield sequence

    def _left(
        self, modified: Iterable[CarriedHit], by_prefix: dict[bytes, list[ModifiedKeys]], following: int
    ) -> Iterator[CarriedHit]:
        """Yield the keys that watches from a sequence on have yet to match."""
        left: set[bytes] = set()
        for prefix, each in by_prefix.items():
            armed = self._prefixes[prefix].armed
            for first, before, keys in each:
                if any(True for _ in self._matching(armed, max(first, following), before)):
                    left.update(keys)
        for key, first, before in modified:
            if key in left:
                yield CarriedHit(key, max(first, following), before)


def _by_terms(hits: list[CarriedHit]) -> list[ModifiedKeys]:
    """Return the keys of some hits by which watches match them."""
    by_terms: dict[tuple[int, int], list[bytes]] = {}
    for key, first, before in hits:
        by_terms.setdefault((first, before), []).append(key)
    return [ModifiedKeys(*terms, keys) for terms, keys in by_terms.items()]


def _hit(watch: TrackedTimer, by_prefix: dict[bytes, list[ModifiedKeys]]) -> WatchHit:
    """Return a hit with the keys that its watch matches."""
    sources = [
        each
        for prefix in watch.watch_keys
        for each in by_prefix.get(prefix, ())
        if each.first <= watch.sequence and watch.schedule_block < each.before
    ]
    if len(sources) == 1:
        [(_, hit_height, keys)] = sources
        return WatchHit(watch.height, watch.timer_id, hit_height, tuple(keys[:MATCHED_MAX]))
    # One of its prefixes may lie within another.
    matched = (key for key, _ in groupby(merge(*(each.keys for each in sources))))
    hit_height = min(each.before for each in sources)
    return WatchHit(watch.height, watch.timer_id, hit_height, tuple(islice(matched, MATCHED_MAX)))
