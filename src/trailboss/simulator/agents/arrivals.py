"""Open arrivals: timers that come whatever became of those before."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta, Struct

from trailboss.simulator.agents.base import Agent, Draws, Natural, Positive, Share
from trailboss.simulator.agents.keeper import Keeper, KeeperRow
from trailboss.simulator.agents.quantities import Quantity, drawn
from trailboss.simulator.orders import Order, View

CHUNK: Final = 256  # blocks whose arrivals are drawn at once
Rate = Annotated[float, Meta(ge=0.0, le=1e6)]
Load = Annotated[float, Meta(ge=0.0, le=1e3)]


class Bursts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="bursts", tag_field="kind"):
    """On and off in turn, from a random phase on; the rate over both is that of the agent."""

    on: Positive = 20  # blocks
    off: Positive = 80  # blocks


class Daily(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="daily", tag_field="kind"):
    """A rhythm: a sine about the rate of the agent."""

    period: Positive = 86_400  # blocks
    depth: Share = 0.5  # of the rate, by which it rises and falls


class Outage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="outage", tag_field="kind"):
    """Nothing can be scheduled for some blocks, and then everything that was missed is, at once."""

    first: Positive  # height of the first block without
    blocks: Positive
    every: Natural = 0  # blocks from an outage to the next; 0 for one alone


AnyPattern = Bursts | Daily | Outage


class Poisson(KeeperRow, frozen=True, kw_only=True, tag="poisson"):
    """Timers that arrive at random, each due some blocks after."""

    rate: Rate | None = None  # timers a block, on average
    share: Load | None = None  # in place of that, the share of what fires may use in a block that its fires ask for
    batch: Positive = 1  # timers that arrive together, with one height; the rate counts them all
    pattern: AnyPattern | None = None  # how the rate moves; None if it does not
    ahead: Quantity = 1  # blocks from an arrival to its height, at least 1
    round_to: Positive = 1  # heights are rounded up to its multiples

    def problem(self, blocks: int) -> str | None:
        """Refuse two rates, or none, and outages that overlap."""
        pattern = self.pattern
        if isinstance(pattern, Outage) and 0 < pattern.every <= pattern.blocks:
            return f"pattern.every = {pattern.every:,} must be above pattern.blocks, {pattern.blocks:,}, or 0"
        return one_of(self, "rate", "share") or super().problem(blocks)

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return Arrivals(self, name, actors, draws)


def one_of(row: KeeperRow, name: str, share: str) -> str | None:
    """Return what is wrong if not exactly one of two fields is given."""
    first, second = getattr(row, name), getattr(row, share)
    if (first is None) is (second is None):
        return f"{name} = {first} and {share} = {second}: give one of them, and only one"
    return None


def timers_of(row: KeeperRow, share: float, view: View) -> float:
    """Return the timers a block whose fires use a share of what fires may use in it."""
    return share * view.lane_cycles_max / row.mean_cycles


class Arrivals(Keeper):
    """See `Poisson`."""

    def __init__(self, row: Poisson, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._row, self._generator = row, draws("arrivals")
        self._counts: list[int] = []  # of the blocks to come, the last first
        self._aheads = drawn(row.ahead, draws, "ahead", 1)
        self._phase = 0
        if isinstance(row.pattern, Bursts):
            self._phase = int(draws("phase").integers(row.pattern.on + row.pattern.off))
        self._missed = 0

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's arrivals, after what every keeper orders."""
        yield from super().orders(view)
        row, round_to = self._row, self._row.round_to
        if not self._counts:
            self._counts = self._draw(view)
        count = self._counts.pop()
        if isinstance(row.pattern, Outage):
            count = self._after(row.pattern, count, view.height)
        for _ in range(count):
            due = -(-(view.height + next(self._aheads)) // round_to) * round_to
            for _ in range(row.batch):
                yield self.timer(self.owner(due, view), due, view)

    def _draw(self, view: View) -> list[int]:
        """Return the arrivals of the next blocks, the last first."""
        row, pattern = self._row, self._row.pattern
        rate = timers_of(row, row.share, view) if row.share is not None else row.rate or 0.0
        rates: Any = np.full(CHUNK, rate / row.batch)
        heights = np.arange(view.height, view.height + CHUNK)
        if isinstance(pattern, Daily):
            rates *= 1 + pattern.depth * np.sin(2 * np.pi * heights / pattern.period)
        elif isinstance(pattern, Bursts):
            period = pattern.on + pattern.off
            rates *= ((heights + self._phase) % period < pattern.on) * (period / pattern.on)
        counts: list[int] = self._generator.poisson(rates)[::-1].tolist()
        return counts

    def _after(self, pattern: Outage, count: int, height: int) -> int:
        """Return what arrives if nothing can within an outage."""
        self._missed += count
        since = height - pattern.first
        if since >= 0 and (since % pattern.every if pattern.every else since) < pattern.blocks:
            return 0
        count, self._missed = self._missed, 0
        return count
