"""Weights of the auction's actors in the slow model: what they have done is counted block by block.

Decision: D-18, D-58, D-59.
"""

from collections import Counter
from typing import Any, NamedTuple

from tests.model.joining import JoiningBlocks

UNIT = 10**9


class Actor(NamedTuple):
    """An actor's weight, and what it has done in one epoch."""

    weight: int
    rescaled: int
    epoch: int
    fires: int = 0
    deferrals: int = 0
    quiet_since: int = 0
    longest_wait: int = 0
    highest_tip: int = 0
    cycles_used: int = 0
    takes_part: bool = False


class Sums(NamedTuple):
    """What all fires of an epoch come to."""

    highest_tip: int = 0
    cycles_used: int = 0


class WeighingBlocks(JoiningBlocks):
    """A chain whose actors have weights.

    Attributes:
        actors: Weights and statistics, of those that have had timers due.
        sums: Of each epoch.
        epoch: The present one.
        own: The auction's parameters in this block.
        waited: How many timers of each actor had joined and waited when the block began.
    """

    mechanism = "auction"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.epoch = 0
        self.own: dict[str, int] = {}
        self.waited: Counter[bytes] = Counter()
        self.actors: dict[bytes, Actor] = {}
        self.sums: dict[int, Sums] = {}

    def copy(self) -> "WeighingBlocks":
        """Return a model that goes on from here without touching this one."""
        twin = super().copy()
        twin.actors, twin.sums = dict(self.actors), dict(self.sums)
        return twin

    def waiting(self, actor: bytes) -> int:
        """Return how many timers of an actor have joined and wait."""
        return sum(timer.actor == actor for timer in self.joined_timers())

    def _is_behind(self, actor: bytes) -> bool:
        state = self.actors.get(actor)
        return state is None or state.epoch < self.epoch or state.rescaled < len(self.world.rescales)

    def _freshen_some(self, joining: set[bytes]) -> None:
        """Bring weights up to date: of those with a timer that joins, and of so many others that are behind."""
        before = {timer.actor for timer in self.joined_timers()} - joining
        behind = sorted(actor for actor in before if self._is_behind(actor))
        for actor in [*joining, *behind[: self.own["actors_weighed_max"]]]:
            self._freshen(actor)
        self.occurred += ["weight stays behind"] * len(behind[self.own["actors_weighed_max"] :])

    def _freshen(self, actor: bytes) -> None:
        state = self.actors.get(actor)
        if state is None:
            self.actors[actor] = Actor(self.own["weight_start"], len(self.world.rescales), self.epoch)
            return
        if state.epoch < self.epoch:
            # What joins in this block is no part of the epoch that is over.
            waiting = self.waited[actor]
            weight = self._scored(state, waiting)
            for _ in range(self._first_idle(state), self.epoch):
                if not waiting:
                    self.occurred.append("weight of the idle")
                    weight += self._halved(self.own["weight_start"] - weight)
            state = Actor(weight, state.rescaled, self.epoch, quiet_since=state.quiet_since)
        weight = state.weight
        for factor in self.world.rescales[state.rescaled :]:
            self.occurred.append("weight rescaled" if factor else "weight reset")
            weight = self._clamped(weight * factor // UNIT if factor else self.own["weight_start"])
        self.actors[actor] = state._replace(weight=weight, rescaled=len(self.world.rescales))

    def _first_idle(self, state: Actor) -> int:
        """Return the first epoch without a part in it: that of the state, if nothing came of it."""
        return state.epoch + state.takes_part

    def _halved(self, distance: int) -> int:
        return distance // 2 if distance >= 0 else -(-distance // 2)

    def _clamped(self, weight: int) -> int:
        return min(max(weight, self.own["weight_min"]), self.own["weight_max"])

    def _scored(self, state: Actor, waiting: int) -> int:
        """Return the weight after an epoch. Spec: CIP-1v1 §3. Decision: D-18."""
        if not state.takes_part:
            return state.weight
        score = self._score(state, waiting)
        decay = self.own["decay"]
        weight = self._clamped(((UNIT - decay) * state.weight + decay * score) // UNIT)
        if state.longest_wait >= self.own["starvation_blocks"]:
            self.occurred.append("starvation floor")
            weight = min(max(weight, self.own["starvation_floor"]), self.own["weight_max"])
        return weight

    def _score(self, state: Actor, waiting: int) -> int:
        sums = self.sums.get(state.epoch, Sums())
        lateness = state.deferrals // max(1, state.fires + waiting)
        parts = (
            self._quotient(state.highest_tip, sums.highest_tip),
            self._quotient(state.fires, state.fires + state.deferrals),
            self._quotient(lateness, lateness + self.own["lateness_scale"]),
            UNIT - self._quotient(state.cycles_used, sums.cycles_used),
        )
        return sum(parts) // len(parts)

    def _quotient(self, part: int, whole: int) -> int:
        return UNIT * part // whole if whole else 0
