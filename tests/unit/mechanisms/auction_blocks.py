"""An auction that is driven block by block over a world of timers, and what its decisions come to."""

from collections.abc import Iterator
from dataclasses import replace

from tests.unit.mechanisms.auction_worlds import Terms, World, due
from trailboss.mechanisms.auction import build_auction
from trailboss.mechanisms.auction.selection import AuctionSelection
from trailboss.mechanisms.base import Decision
from trailboss.model.timers import Timer
from trailboss.params import load_params

ALICE, BOB, CAROL = (bytes([number]) * 20 for number in (10, 11, 12))


class Block:
    """An auction over a world of timers, selected block by block."""

    def __init__(self, timers: list[Timer], world: World | None = None, **terms: object) -> None:
        self.world = world or World()
        self.world.terms = Terms(**terms)
        overrides = {
            "timers.due_examined_max": self.world.terms.examined_max,
            "timers.dead_examined_max": self.world.terms.dead_examined_max,
            "auction.passed_over_max": self.world.terms.passed_over_max,
            "auction.joined_max": self.world.terms.joined_max,
        }
        self.auction = self.world.follower = build_auction(load_params(overrides=overrides))
        self.selection = self.open(timers)

    def open(self, joining: list[Timer]) -> AuctionSelection:
        self.selection = self.auction.select(due(self.world, joining), self.world.context())
        return self.selection

    def decisions(self) -> Iterator[Decision]:
        for decision in self.selection:
            self.world.carry_out(decision)
            yield decision

    def outcomes(self) -> list[tuple[int, str]]:
        """Return number and verdict or reason of each decision, all carried out."""
        return [(decision.timer.sequence, str(decision.reason or decision.verdict)) for decision in self.decisions()]

    def next(self, joining: list[Timer] | None = None, **terms: object) -> list[tuple[int, str]]:
        changed = {"height": self.world.terms.height + 1} | terms
        self.world.terms = replace(self.world.terms, **changed)
        self.open(joining or [])
        return self.outcomes()

    def asked(self) -> list[int]:
        """Return the numbers of the timers whose agents were asked, in order."""
        return [int(timer_id) for timer_id in self.world.asked]
