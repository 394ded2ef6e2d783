"""The lane's index and its search change no decision, whatever happens in between."""

from collections.abc import Iterator
from copy import copy
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mechanisms.lane_checks import check_index
from tests.unit.mechanisms.lane_worlds import TIMER, WHOLE, Terms, World, due
from trailboss.mechanisms import bid_tree, ranking
from trailboss.mechanisms.base import Decision, Rest
from trailboss.mechanisms.fee_lane import Lane, build_lane, index
from trailboss.model.timers import ASK_AGENT, NO_FEES, Timer, freeze_fees
from trailboss.params import load_params

ACTORS = [bytes([number]) * 20 for number in range(1, 7)]
BLOCKS = 9


@pytest.fixture(autouse=True)
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a dozen groups make a tree of several levels, and few expired timers a storm."""
    monkeypatch.setattr(index, "UNRANKED_MAX", 3)
    monkeypatch.setattr(bid_tree, "FANOUT", 4)
    monkeypatch.setattr(bid_tree, "MERGED_MAX", 2)


class History:
    """Blocks drawn from one seed: joins, prices, weights, caps, questions, recounts, changes from outside."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        self.scale = dice.choice([1, 10, 1_000, 2**100, 2**126 // 20])
        self.many_fees = dice.randrange(2)
        self.sequence = 0
        self.terms = Terms(
            basefee=10 * self.scale,
            lane=dice.choice([0, 300, 1_000, 10**6]),
            examined_max=dice.choice([3, 1_000]),
            dead_examined_max=dice.choice([1, 2, 256]),
            passed_over_max=dice.choice([1, 3, 256]),
            joined_max=dice.choice([2, 100]),
            gc=dice.choice([0, 400, 10_000]),
            clamps_before=dice.choice([0, 5]),
        )
        rules = Random(f"rules {seed}")
        self.terms.age_blocks = rules.choice([0, 0, 1, 3, 40])
        self.deployers = rules.choice([None, {actor: rules.choice(ACTORS[:3]) for actor in ACTORS}])

    def timers(self, count: int) -> list[Timer]:
        return [self.timer() for _ in range(count)]

    def timer(self) -> Timer:
        dice = self.dice
        self.sequence += 1
        return msgspec.structs.replace(
            TIMER,
            actor=dice.choice(ACTORS),
            fee_payer=dice.choice(ACTORS),
            height=self.terms.height - dice.randrange(2) - self.sequence % 5 * bool(self.terms.age_blocks),
            timer_id=dice.randbytes(32),
            sequence=self.sequence,
            gas_limit=dice.choice([50, 100, 250, 400, 1_200]),
            expires_at=self.terms.height + dice.choice([-1, 0, 1, 3, 9]),
            schedule_block=dice.randint(1, 9),
            deferred_for=dice.choice(["", "", "over_cap", "lane_full"]),
            fees=self.fees(),
        )

    def fees(self) -> bytes:
        dice = self.dice
        kind = dice.randrange(8)
        if kind < 2:
            return (NO_FEES, ASK_AGENT)[kind]
        steps = 40 if self.many_fees else 3
        max_fee = self.scale * dice.randint(8, 8 + steps)
        return freeze_fees(max_fee, self.scale * dice.randint(0, steps) // 2)

    def next_terms(self) -> Terms:
        dice, terms = self.dice, copy(self.terms)
        terms.height += 1
        terms.basefee = max(1, terms.basefee + dice.choice([-1, 0, 1]) * (terms.basefee // 8))
        terms.previous_tip = self.scale * dice.randrange(6)
        terms.median = dice.randrange(6)
        terms.questions = dice.randrange(4)
        if not dice.randrange(6):
            terms.cap = dice.choice([100, 250, 1_000])
        if not dice.randrange(6):
            terms.weight_max = dice.choice([WHOLE, WHOLE * 3 // 2, 2**64 - 1])
        return terms

    def meddle(self, worlds: list[World]) -> None:
        """Do to all worlds what transactions and the fairness window would."""
        dice = self.dice
        for actor in dice.sample(ACTORS, dice.randrange(4)):
            fires = dice.randrange(6)
            for world in worlds:
                world.fires[actor] = fires
                if world.follower is not None:
                    world.follower.recount(actor, fires)
        for timer_id in dice.sample(sorted(worlds[0].timers), min(2, len(worlds[0].timers))):
            cancels, expires_at = not dice.randrange(3), self.terms.height + dice.randint(-1, 5)
            for world in worlds:
                if cancels:
                    world.remove(timer_id)
                elif world.timers[timer_id].expires_at >= self.terms.height - 1:
                    world.write(msgspec.structs.replace(world.timers[timer_id], expires_at=expires_at))
        payer, balance = dice.choice(ACTORS), dice.choice([0, 10**4 * self.scale, 2**200])
        for world in worlds:
            world.balances[payer] = balance

    def __iter__(self) -> Iterator[Terms]:
        for _ in range(BLOCKS):
            self.terms = self.next_terms()
            yield self.terms


def play(world: World, lane: Lane, joining: list[Timer], barred: list[Timer]) -> tuple[list[Decision], Rest]:
    """Deliver a block of a world."""
    selection, decisions = lane.select(due(world, joining, barred), world.context()), []
    for decision in selection:
        decisions.append(decision)
        world.carry_out(decision)
    return decisions, selection.rest()


@pytest.mark.spec("L-03", "L-04", "L-05", "L-08", "L-09", "L-28")
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_search_of_a_kept_index_equals_a_sort_of_a_new_one_when_anything_happens(seed: int) -> None:
    """Over random timers, prices, weights, caps and answers; fires cancel, extend and shorten what waits."""
    history = History(seed)
    params = load_params(
        overrides={
            "timers.due_examined_max": history.terms.examined_max,
            "timers.dead_examined_max": history.terms.dead_examined_max,
            "lane.passed_over_max": history.terms.passed_over_max,
            "lane.joined_max": history.terms.joined_max,
        }
    )
    worlds = [World(wild=True, deployers=history.deployers) for _ in range(2)]
    kept, new = lanes = [build_lane(params) for _ in worlds]
    for world, lane in zip(worlds, lanes, strict=True):
        world.follower = lane
    for terms in history:
        for world in worlds:
            world.terms = terms
        history.meddle(worlds)
        new.rewind()
        if not history.dice.randrange(8):
            kept.rewind()
        joining, barred = history.timers(history.dice.randrange(14)), history.timers(history.dice.randrange(3))
        played = []
        for world, lane, sorted_max in zip(worlds, lanes, (0, 10**9), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ranking, "SORTED_MAX", sorted_max)
                played.append(play(world, lane, joining, barred))
        assert played[0] == played[1]
        assert worlds[0].timers == worlds[1].timers
        assert kept.index is not None
        if history.dice.randrange(2):
            check_index(kept.index, worlds[0])
