"""Globalbox equals the draft as it is told, whatever happens to timers, weights and quotas, and what is forgotten."""

from collections import Counter
from functools import partial
from random import Random

import pytest

from tests.unit.mechanisms.globalbox_worlds import (
    ACTORS,
    KEYS,
    ONE,
    Terms,
    World,
    deliver,
    height_timer,
    make_mechanism,
    terms_of,
)
from trailboss.mechanisms.base import Decision, Rest, Verdict
from trailboss.mechanisms.globalbox.candidates import Candidate, RankedFire, Scoring, order_candidates
from trailboss.mechanisms.globalbox.fires import FireQueue, QueuePosition
from trailboss.mechanisms.globalbox.sorted_sets import SHORT_MAX
from trailboss.model.decisions import Stop
from trailboss.model.globalbox import CarriedHit

HISTORIES = 60
WATCH_HISTORIES = 10
BLOCKS = 24
PASSED_OVER_MAX = 2


def govern(world: World, dice: Random) -> None:
    """Change what is governed, once in a while."""
    terms = world.terms
    if not dice.randrange(4):
        terms.age_weight = dice.choice([0, ONE // 7, ONE, 9 * ONE])
        terms.bid_weight = dice.choice([0, 1, 3])
    if not dice.randrange(3):
        terms.max_fires, terms.share = dice.randint(1, 4), dice.randint(1, 2)
        terms.hits_max, terms.joined_max = dice.randint(1, 5), dice.randint(1, 5)
        terms.lane, terms.gc = dice.choice([40, 200, 2_000]), dice.choice([0, 200, 1_000])


class Player:
    """A world, and what decides in it.

    Attributes:
        world: The world.
        mechanism: What decides.
        forgets: One in how many blocks begins with nothing remembered.
    """

    def __init__(self, seed: int, *, shards: int = 1, forgets: int = 0) -> None:
        self.world = World(wild=True, height=0, terms=Terms(passed_over_max=PASSED_OVER_MAX))
        self.mechanism = make_mechanism(self.world, shards=shards)
        self.forgets = forgets
        self.seed = seed

    def play(self, modified: tuple[bytes, ...], carried: tuple[CarriedHit, ...]) -> tuple[list[Decision], Rest]:
        """Play one block: governance, transactions, deliveries."""
        world, mechanism = self.world, self.mechanism
        dice = Random(self.seed * 1_000 + world.height)
        govern(world, dice)
        if self.forgets and not (self.seed + world.height) % self.forgets:
            mechanism.rewind()
        mechanism.begin(partial(iter, list(world.timers.values())))
        world.begin(modified, carried)
        for _ in range(dice.randrange(10)):
            world.act(dice)
        return deliver(world, mechanism)


def next_carried(world: World, rest: Rest, dice: Random) -> tuple[CarriedHit, ...]:
    """Return what the next block counts as modified: what was left over, and what handlers modify."""
    hits = {hit.key: hit for hit in rest.carried}
    hits |= {key: CarriedHit(key, 0, world.height + 1) for key in dice.sample(KEYS, dice.randrange(3))}
    return tuple(hits[key] for key in sorted(hits))


@pytest.mark.spec("G-01", "G-03", "G-08", "G-09", "G-10", "G-11", "G-12", "G-20", "G-24")
def test_index_changes_no_decision_when_histories_are_random() -> None:
    """An index that is kept, one made anew in every block, and one that is sharded and sometimes forgotten."""
    seen: Counter[object] = Counter()
    for seed in range(HISTORIES):
        first, *others = [Player(seed), Player(seed, forgets=1), Player(seed, shards=7, forgets=5)]
        carried: tuple[CarriedHit, ...] = ()
        for number in range(BLOCKS):
            dice = Random(seed * 1_000 + number)
            modified = tuple(dice.sample(KEYS, dice.randrange(4)))
            decisions, rest = first.play(modified, carried)
            for other in others:
                assert other.play(modified, carried) == (decisions, rest)
                assert other.world == first.world
            carried = next_carried(first.world, rest, dice)
            seen.update([decision.verdict for decision in decisions])
            seen.update([rest.stopped, "carried" if rest.carried else "", "queued" if rest.outranked else ""])
    verdicts = (Verdict.EXPIRE, Verdict.ENQUEUE, Verdict.MATERIALIZE, Verdict.FIRE, Verdict.UNFUND)
    stops = (Stop.NONE_LEFT, Stop.LANE_FULL)
    assert min(seen[each] for each in (*verdicts, *stops, "carried", "queued")) > HISTORIES, seen


@pytest.mark.spec("G-01")
def test_watched_keys_are_those_of_the_watches_that_are_there() -> None:
    """Queued or armed, expired or not: what counts is that the watch has not ended."""
    for seed in range(WATCH_HISTORIES):
        player = Player(seed)
        world = player.world
        for number in range(BLOCKS):
            dice = Random(seed * 1_000 + number)
            player.play(tuple(dice.sample(KEYS, dice.randrange(4))), ())
            watched = [prefix for timer in world.timers.values() for prefix in terms_of(timer).watch_keys]
            for key in KEYS:
                assert player.mechanism.is_watched(key) == any(key.startswith(prefix) for prefix in watched)


def make_candidates(dice: Random, count: int) -> list[Candidate]:
    """Return candidates of few targets, bids and heights, so that many are equal in most of what orders them."""
    return [
        Candidate(
            height_timer(number, target=dice.choice(ACTORS), bid=dice.choice([0, ONE, ONE + 1, 3 * ONE])),
            dice.randint(90, 100),
        )
        for number in range(count)
    ]


@pytest.mark.spec("G-24")
def test_order_of_candidates_is_the_same_for_every_number_of_shards() -> None:
    """From 1 to 64, and whatever order they come in."""
    for seed in range(20):
        dice = Random(seed)
        candidates = make_candidates(dice, 60)
        scoring = Scoring(100, dice.choice([0, ONE, ONE // 9]), dice.choice([0, 1, 5]), dice.randrange(2**140))
        whole = order_candidates(candidates, scoring, 1)
        for shards in range(1, 65):
            dice.shuffle(candidates)
            assert order_candidates(candidates, scoring, shards) == whole
        assert whole == sorted(whole)
        for target in ACTORS:
            cursors = [placed.fire.cursor for placed in whole if placed.timer.target == target]
            assert cursors == list(range(len(cursors)))


def check_leads(fires: list[RankedFire]) -> None:
    """Check that of two fires with the same bid the one that was hit earlier comes first."""
    for earlier in fires:
        for later in fires:
            if earlier.fire.bid == later.fire.bid and earlier.fire.hit_height < later.fire.hit_height:
                assert earlier.position < later.position


@pytest.mark.spec("G-25", "G-09")
def test_fire_keeps_its_lead_when_later_ones_bid_the_same() -> None:
    """Whatever W_age becomes in between, if each is inserted in the block of its hit."""
    for seed in range(200):
        dice = Random(seed)
        clock, bid_weight, fires = 0, dice.choice([0, 1, 7]), []
        for height in range(1, 25):
            age_weight = dice.choice([1, ONE // 3, ONE, 50 * ONE])
            clock += age_weight
            candidates = [Candidate(candidate.timer, height) for candidate in make_candidates(dice, dice.randrange(4))]
            fires += order_candidates(candidates, Scoring(height, age_weight, bid_weight, clock), 3)
        check_leads(fires)


@pytest.mark.spec("G-25")
def test_fire_comes_before_later_hits_when_it_is_inserted_late() -> None:
    """At an unchanged W_age a timer that joins late, or that a carried key hits, stands where it would have stood."""
    for seed in range(200):
        dice = Random(seed)
        age_weight, bid_weight, fires = dice.choice([1, ONE]), dice.choice([0, 1, 7]), []
        for height in range(101, 125):
            scoring = Scoring(height, age_weight, bid_weight, height * age_weight)
            fires += order_candidates(make_candidates(dice, dice.randrange(4)), scoring, 3)
        check_leads(fires)


@pytest.mark.spec("G-11", "G-12")
def test_queue_is_a_sorted_list_when_fires_come_and_go() -> None:
    """Short lines and long ones; a walk over all of them tells what is consumed, and what stands where it stood."""
    for seed in range(25):
        dice = Random(seed)
        places = {drawn_place(dice, number) for number in range(dice.choice([0, 10, 3 * SHORT_MAX]))}
        queue, number = FireQueue(places), 100_000
        for turn in range(30):
            for _ in range(dice.randrange(40)):
                number += 1
                place = drawn_place(dice, number)
                places.add(place)
                queue.add(place)
            for place in dice.sample(sorted(places), min(len(places), dice.randrange(10))):
                places.discard(place)
                queue.discard(place)
                queue.discard(place)
            most, share, height = dice.randint(1, 30), dice.randint(1, 8), turn // 5
            alive = [place for place in sorted(places) if place.expires_at >= height]
            assert queue.first(most, height) == alive[:most]
            bound = dice.choice([0, 3, 1_000])
            told, kept = told_walk(alive, most, share, bound)
            assert walk(queue, (most, share, height), bound) == told
            places -= set(told) - set(kept)
            if dice.randrange(2):
                # What has expired counts no more, however the queue deals with it.
                for place in [place for place in places if place.expires_at < height]:
                    places.discard(place)
                    queue.discard(place)


def is_poor(place: QueuePosition) -> bool:
    """Return whether nobody pays for a fire, which one in five is."""
    return place.timer_id[-1] % 5 == 0


def is_kept(place: QueuePosition) -> bool:
    """Return whether such a fire stays all the same, which every other one does."""
    return place.timer_id[-1] % 2 == 0


def told_walk(
    alive: list[QueuePosition], most: int, share: int, bound: int
) -> tuple[list[QueuePosition], list[QueuePosition]]:
    """Return which fires a walk meets and which of those it leaves, of all that have not expired, in order."""
    met: list[QueuePosition] = []
    kept: list[QueuePosition] = []
    shares: Counter[bytes] = Counter()
    for place in alive:
        if shares.total() == most or (kept and len(kept) >= bound):
            break
        if shares[place.target] == share:
            continue
        met.append(place)
        if not is_poor(place):
            shares[place.target] += 1
        elif is_kept(place):
            kept.append(place)
    return met, kept


def walk(queue: FireQueue, quotas: tuple[int, int, int], bound: int) -> list[QueuePosition]:
    """Walk a queue as materialization does, and return what it met."""
    consumption, met, kept = queue.consume(*quotas), [], 0
    for place in consumption:
        met.append(place)
        if not is_poor(place):
            consumption.take(place)
        elif is_kept(place):
            consumption.keep(place)
            kept += 1
            if kept >= bound:
                consumption.stop()
        # Records follow while the walk goes on: what it has met is heard of as gone.
        queue.discard(place)
    return met


def drawn_place(dice: Random, number: int) -> QueuePosition:
    """Return a place that differs from others in its id at least."""
    target = bytes([min(dice.randrange(40), 3)]) * 20
    return QueuePosition(
        -dice.randrange(50), -dice.randrange(3), dice.randrange(3), 5, target, b"%032d" % number, 20, dice.randint(2, 9)
    )
