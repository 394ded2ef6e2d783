"""The watch index hears what a look at every watch would hear, with few watches of a key and with many."""

from random import Random

import pytest

from tests.unit.mechanisms.globalbox_worlds import watch_timer
from trailboss.mechanisms.globalbox.fires import QueuePosition
from trailboss.mechanisms.globalbox.sorted_sets import FEW_MAX
from trailboss.mechanisms.globalbox.watches import MATCHED_MAX, TrackedTimer, WatchHit, WatchIndex, track
from trailboss.model.globalbox import CarriedHit

ACTOR = b"\x05" * 20
SLOTS = tuple(bytes(slot) for length in range(4) for slot in ([ord("a") + number] * length for number in range(3)))
KEYS = tuple(sorted({ACTOR + slot for slot in SLOTS} | {ACTOR + b"b%02d" % number for number in range(20)}))
WATCHED = tuple(sorted({ACTOR + slot[:2] for slot in SLOTS}))
PLACE = QueuePosition(0, 0, 0, 0, ACTOR, bytes(32), 0, 0)


class Watches:
    """All watches in a list, beside the index."""

    def __init__(self) -> None:
        self.index = WatchIndex()
        self.all: list[TrackedTimer] = []
        self.sequence = 0

    def add(self, dice: Random, height: int) -> None:
        """Set a watch; most of them watch the same key."""
        keys = {WATCHED[1]} if dice.randrange(3) else set(dice.sample(WATCHED, dice.randint(1, 3)))
        timer = watch_timer(self.sequence, *keys, expires_at=height + dice.randint(1, 9), schedule_block=height)
        self.sequence += dice.choice([1, 1, 70_000])
        entry = track(timer)
        self.all.append(entry)
        self.index.add(entry)

    def change(self, dice: Random) -> None:
        """Queue, deliver or end a watch."""
        entry = dice.choice(self.all)
        if not dice.randrange(4):
            self.all.remove(entry)
            self.index.remove(entry)
        elif entry.position is None:
            entry.position = PLACE
            self.index.disarm(entry)
        else:
            entry.position = None
            self.index.arm(entry)

    def told(self, modified: list[CarriedHit], most: int, height: int) -> tuple[list[WatchHit], tuple[CarriedHit, ...]]:
        """Return what `WatchIndex.match` should."""
        armed = [entry for entry in self.all if entry.position is None and entry.expires_at >= height]
        found: list[tuple[TrackedTimer, list[CarriedHit]]] = []
        for entry in sorted(armed, key=lambda entry: entry.sequence):
            heard = [hit for hit in modified if hears(entry, hit)]
            if heard:
                found.append((entry, heard))
        hits = [
            WatchHit(
                entry.height,
                entry.timer_id,
                min(hit.modified_at for hit in heard),
                tuple(hit.key for hit in heard)[:MATCHED_MAX],
            )
            for entry, heard in found[:most]
        ]
        if len(found) < most:
            return hits, ()
        following = found[most - 1][0].sequence + 1
        left = [
            CarriedHit(hit.key, max(following, hit.next_sequence), hit.modified_at)
            for hit in modified
            if any(hears(entry, hit) for entry in armed if entry.sequence >= following)
        ]
        return hits, tuple(left)


def hears(entry: TrackedTimer, hit: CarriedHit) -> bool:
    """Return whether a key that counts as modified concerns a watch."""
    is_told = entry.sequence >= hit.next_sequence and entry.schedule_block < hit.modified_at
    return is_told and any(hit.key.startswith(key) for key in entry.watch_keys)


@pytest.mark.spec("G-03", "G-08")
def test_match_is_that_of_a_look_at_every_watch_when_they_come_and_go() -> None:
    """Over blocks in which what is left of one is carried to the next."""
    were_many = 0
    for seed in range(80):
        dice = Random(seed)
        watches, carried = Watches(), ()
        for height in range(1, 16):
            for _ in range(dice.choice([3, 3 * FEW_MAX])):
                watches.add(dice, height)
            for _ in range(dice.randrange(12)):
                if watches.all:
                    watches.change(dice)
            hits = {hit.key: hit for hit in carried}
            hits |= {key: CarriedHit(key, 0, height) for key in dice.sample(KEYS, dice.choice([0, 2, 12]))}
            hits |= {key: CarriedHit(key, 0, height + dice.randrange(2)) for key in dice.sample(KEYS, 2)}
            modified, most = [hits[key] for key in sorted(hits)], dice.choice([1, 5, 40])
            found = watches.index.match(modified, most, height)
            assert found == watches.told(modified, most, height)
            carried = found[1]
            were_many += len(found[0]) > FEW_MAX
            for key in KEYS:
                is_watched = any(key.startswith(own) for entry in watches.all for own in entry.watch_keys)
                assert watches.index.is_watched(key) == is_watched
    assert were_many > 50


@pytest.mark.spec("G-03")
def test_nothing_is_watched_when_all_watches_have_left() -> None:
    """Few or many, armed or queued, expired or not: the index is empty again."""
    for seed in range(20):
        dice = Random(seed)
        watches = Watches()
        for _ in range(5 * FEW_MAX):
            watches.add(dice, 1)
        for _ in range(2 * FEW_MAX):
            watches.change(dice)
        watches.index.match([CarriedHit(KEYS[0], 0, 6)], 3, 6)
        for entry in watches.all:
            watches.index.remove(entry)
        index = watches.index
        assert not any(map(index.is_watched, KEYS))
        kept = (index._prefixes, index._lengths, index._by_sequence, index._by_expiry, index._expired)
        assert not any(map(len, kept))


@pytest.mark.spec("G-08")
def test_carried_key_reaches_every_watch_once_when_more_watch_than_a_block_inserts() -> None:
    """In ascending sequence, without a watch that is set meanwhile, and with the height of the change."""
    index, key = WatchIndex(), KEYS[3]
    entries = [track(watch_timer(number, key, schedule_block=1)) for number in range(100)]
    for entry in entries:
        index.add(entry)
    reached, carried = [], (CarriedHit(key, 0, 5),)
    for height in range(5, 9):
        hits, carried = index.match(carried, 30, height)
        assert {hit.hit_height for hit in hits} == {5}
        reached += [hit.timer_id for hit in hits]
        index.add(track(watch_timer(height * 100, key, schedule_block=height)))
    assert carried == ()
    assert reached == [entry.timer_id for entry in entries]
