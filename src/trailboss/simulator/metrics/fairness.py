"""How evenly actors and agents are served, and how long an actor waits for any fire."""

from collections import Counter
from collections.abc import Callable, Mapping

from trailboss.simulator.metrics.statistics import gini, hhi, jain
from trailboss.simulator.orders import BlockResult, PlannedTimer


class FairnessMeasure:
    """Evenness over actors, and over agents where their actors are known.

    What an actor asks for are the timers that are scheduled in the blocks seen and become due; what it gets of it are
    their fires. A state watch has no height at which it is due: it counts in shares of cycles alone. A timer counts as
    due until it fires or ends.
    """

    def __init__(self, agent_of: Mapping[int, int] | None = None) -> None:
        """Give it the agent of each actor, by number; without them it knows actors only."""
        self._agent_of = agent_of
        self._first = self._last = 0  # heights of blocks
        self._ahead: dict[int, dict[int, int]] = {}  # heights to actors to how many timers become due
        self._due = Counter[int]()  # actors to how many timers are due
        self._asked, self._served, self._cycles = Counter[int](), Counter[int](), Counter[int]()
        self._since: dict[int, int] = {}  # actors with due timers to the first block without a fire since the last
        self._starved = 0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        height = self._last = block.view.height
        self._first = self._first or height
        for actor, count in self._ahead.pop(height, {}).items():
            if count:
                self._due[actor] += count
                self._asked[actor] += count
                self._since.setdefault(actor, height)
        for plan in block.accepted:
            if plan.order.watches is None:
                ahead = self._ahead.setdefault(plan.order.height, {})
                ahead[plan.order.actor] = ahead.get(plan.order.actor, 0) + 1
        fired = dict[int, None]()
        for fire in block.fires:
            actor = fire.plan.order.actor
            self._cycles[actor] += fire.cycles_used
            fired[actor] = None
            if self._counts(fire.plan):
                self._served[actor] += 1
                self._due[actor] -= 1
        for ending in block.endings:
            if self._counts(ending.plan):
                actor, due = ending.plan.order.actor, ending.plan.order.height
                if due > height:
                    self._ahead[due][actor] -= 1
                    continue
                self._due[actor] -= 1
                if not self._due[actor]:
                    self._close(actor, height)
        for actor in fired:
            self._close(actor, height)
            if self._due[actor]:
                self._since[actor] = height + 1

    def _counts(self, plan: PlannedTimer) -> bool:
        return plan.scheduled_at >= self._first and plan.order.watches is None

    def _close(self, actor: int, height: int) -> None:
        """End an actor's stretch without fires before a height, if it has one."""
        self._starved = max(self._starved, height - self._since.pop(actor, height))

    def values(self) -> dict[str, float]:
        """Return evenness and the longest starvation."""
        open_ones = (self._last + 1 - since for since in self._since.values())
        values: dict[str, float] = {"starvation": max(self._starved, *open_ones, 0)}
        values |= self._evenness("actors", lambda actor: actor)
        if self._agent_of is not None:
            values |= self._evenness("agents", self._agent_of.__getitem__)
        return values

    def _evenness(self, level: str, owner_of: Callable[[int], int]) -> dict[str, float]:
        asked, served, cycles = (_summed(each, owner_of) for each in (self._asked, self._served, self._cycles))
        shares = [served[owner] / count for owner, count in sorted(asked.items())]
        amounts = [amount for _, amount in sorted(cycles.items())]
        return {
            f"jain_{level}": jain(shares),
            f"gini_{level}": gini(shares),
            f"hhi_{level}": hhi(amounts),
            f"largest_{level}": max(amounts, default=0) / (sum(amounts) or 1),
        }


def _summed(counts: Counter[int], owner_of: Callable[[int], int]) -> Counter[int]:
    sums = Counter[int]()
    for actor, count in counts.items():
        sums[owner_of(actor)] += count
    return sums
