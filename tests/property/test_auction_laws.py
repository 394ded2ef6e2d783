"""The auction's index and its search change no decision, whatever happens in between."""

from collections.abc import Iterator
from copy import copy
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mechanisms.auction_checks import check_index
from tests.unit.mechanisms.auction_worlds import AGENT, TIMER, Terms, World, due
from trailboss.mechanisms import bid_tree, ranking
from trailboss.mechanisms.auction import Auction, build_auction
from trailboss.mechanisms.base import Decision, Rest
from trailboss.model.auction import DelayAction
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, Timer, freeze_fees
from trailboss.params import load_params

ACTORS = [bytes([number]) * 20 for number in range(1, 9)]
BLOCKS = 9


@pytest.fixture(autouse=True)
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a dozen bids make a tree of several levels."""
    monkeypatch.setattr(bid_tree, "FANOUT", 4)
    monkeypatch.setattr(bid_tree, "MERGED_MAX", 2)


class History:
    """Blocks drawn from one seed: joins, prices, budgets, weights, questions, late timers, changes from outside."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = Random(seed)
        self.scale = dice.choice([1, 10, 1_000, 2**100])
        self.many_bids = dice.randrange(2)
        self.sequence = 0
        self.terms = Terms(
            basefee=10 * self.scale,
            budget=dice.choice([30, 300, 1_000, 3_000, 10**6]),
            examined_max=dice.choice([3, 8, 1_000]),
            dead_examined_max=dice.choice([1, 2, 256]),
            passed_over_max=dice.choice([1, 3, 256]),
            joined_max=dice.choice([2, 100]),
            actors_weighed_max=dice.choice([1, 2, 100]),
            delays_max=dice.choice([0, 2, 5]),
            delay_action=dice.choice(list(DelayAction)),
        )

    def timers(self, count: int) -> list[Timer]:
        return [self.timer() for _ in range(count)]

    def timer(self) -> Timer:
        dice = self.dice
        self.sequence += 1
        asked_at = dice.choice([0, 0, self.terms.height - 1, self.terms.height - 4])
        actor = dice.choice(ACTORS[: dice.choice([2, 8])])
        return msgspec.structs.replace(
            TIMER,
            actor=actor,
            fee_payer=actor,
            height=self.terms.height - dice.choice([0, 0, 1, 7]),
            timer_id=dice.randbytes(32),
            sequence=self.sequence,
            gas_limit=dice.choice([50, 100, 250, 400]),
            deferred_for=dice.choice(["", "", "unfunded", "lane_full"]),
            fees=self.bid() if asked_at else ASK_AGENT,
            terms=AuctionTerms(AGENT, asked_at, not dice.randrange(4)),
        )

    def bid(self) -> bytes:
        steps = 40 if self.many_bids else 3
        max_fee = self.scale * self.dice.randint(8, 8 + steps)
        return freeze_fees(max_fee, min(max_fee, self.scale * self.dice.randint(0, steps) // 2))

    def next_terms(self) -> Terms:
        dice, terms = self.dice, copy(self.terms)
        terms.height += 1
        terms.basefee = max(1, terms.basefee + dice.choice([-1, 0, 1]) * (terms.basefee // 8))
        terms.questions = dice.choice([0, 1, 3, 100])
        terms.epoch += not dice.randrange(3)
        terms.rescales += not dice.randrange(6)
        if not dice.randrange(4):
            terms.budget = dice.choice([120, 300, 1_000, 3_000])
        terms.spent = dice.choice([0, 0, 0, 0, 1, terms.budget])
        if not dice.randrange(4):
            terms.delay_action = dice.choice(list(DelayAction))
        if not dice.randrange(6):
            terms.delays_max = dice.choice([0, 3, 9])
        return terms

    def meddle(self, worlds: list[World]) -> None:
        """Do to all worlds what transactions would."""
        dice = self.dice
        for timer_id in dice.sample(sorted(worlds[0].timers), min(dice.randrange(3), len(worlds[0].timers))):
            for world in worlds:
                world.remove(timer_id)
        payer, balance = dice.choice(ACTORS), dice.choice([0, 3 * 10**3 * self.scale, 2**200])
        for world in worlds:
            world.balances[payer] = balance

    def __iter__(self) -> Iterator[Terms]:
        for _ in range(BLOCKS):
            self.terms = self.next_terms()
            yield self.terms


def play(world: World, auction: Auction, joining: list[Timer]) -> tuple[list[Decision], Rest]:
    """Deliver a block of a world."""
    selection, decisions = auction.select(due(world, joining), world.context()), []
    for decision in selection:
        decisions.append(decision)
        world.carry_out(decision)
    return decisions, selection.rest()


@pytest.mark.spec("A-03", "A-04", "A-05", "A-06", "A-08", "A-11", "A-13")
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_search_of_a_kept_index_equals_a_sort_when_anything_happens(seed: int) -> None:
    """Over random timers, prices, weights, budgets and answers; fires cancel what waits and move money."""
    history = History(seed)
    params = load_params(
        overrides={
            "timers.due_examined_max": history.terms.examined_max,
            "timers.dead_examined_max": history.terms.dead_examined_max,
            "auction.passed_over_max": history.terms.passed_over_max,
            "auction.joined_max": history.terms.joined_max,
        }
    )
    worlds = [World(wild=True, drawn=True), World(wild=True, drawn=True)]
    auctions = [build_auction(params) for _ in worlds]
    for world, auction in zip(worlds, auctions, strict=True):
        world.follower = auction
    for terms in history:
        for world in worlds:
            world.terms = terms
        history.meddle(worlds)
        if not history.dice.randrange(8):
            for auction in auctions:
                auction.rewind()
        joining, played = history.timers(history.dice.randrange(14)), []
        for world, auction, sorted_max in zip(worlds, auctions, (0, 10**9), strict=True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ranking, "SORTED_MAX", sorted_max)
                played.append((*play(world, auction, joining), world.asked, world.refreshed))
        assert played[0] == played[1]
        assert worlds[0].timers == worlds[1].timers
        index = auctions[0].index
        assert index is not None
        check_index(index, worlds[0])
