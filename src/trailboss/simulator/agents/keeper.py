"""What agents with timers share: what a fire uses and is worth, who owns it, what it offers, and when it gives up."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from trailboss.model.timers import TimerEnd, timer_id
from trailboss.simulator.agents.base import Agent, AgentRow, Draws, Natural, Positive, Share
from trailboss.simulator.agents.offers import AnyOffer, DefaultOffer, Fees
from trailboss.simulator.agents.quantities import Quantity, Uniform, drawn, mean_of
from trailboss.simulator.orders import Cancel, Fire, Fund, Order, PlannedTimer, Schedule, UnfiredTimer, View

FRAME: Final = 10_000  # cycles of a fire at least: costs.frame_base
GAS_MAX: Final = 100_000_000


class Impatience(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When an agent cancels a timer that is late, and comes again in the next block with a higher offer."""

    after: Positive  # blocks by which it is late
    percent: Natural = 50  # by which the tip rises each time
    step: Natural = 100  # base units a cycle by which it rises on top
    times: Annotated[int, Meta(ge=1, le=1_000)] = 3  # that it comes again at most


class Funding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Money for each actor, before the first block: what some fires cost at the prices of that block.

    A fire fires only if its payer also holds what it may use at most; ``funds`` must cover that.
    """

    fires: Positive
    every: Natural = 0  # blocks after which the same comes again; 0 for never


class KeeperRow(AgentRow, frozen=True, kw_only=True):
    """An agent with timers. Cycles and prices are those of `Schedule`; each timer draws its own."""

    cycles: Quantity = 50_000  # that a fire uses, at least a frame's 10,000 and at most gas_limit_max
    slack: Natural = 0  # cycles by which a gas limit is above that, up to gas_limit_max
    gas_limit_max: Annotated[int, Meta(ge=FRAME, le=GAS_MAX)] = 250_000
    cells: Natural = 0  # that a fire uses
    fails: Share = 0.0  # share of the fires that revert
    value: Quantity = 0  # what a fire is worth if it is not late, base units a cycle
    decay: Quantity = 0  # what it is worth less for each block by which it is late, base units a cycle
    patience: Quantity = 0  # blocks by which a timer may be late before it expires; 0 for as long as it can
    offer: AnyOffer = DefaultOffer()
    asked: bool = (
        False  # whether a gas bidding agent makes the offer in each block, where the lane freezes it otherwise
    )
    # Who owns a timer: a random actor, each in turn, each a block in turn, or that whose next timer has the least id.
    owners: Literal["random", "turn", "blocks", "least_id"] = "random"
    calls: Literal["owner", "first", "next"] = "owner"  # actor that a fire calls, in Globalbox
    impatience: Impatience | None = None
    funding: Funding | None = None

    @property
    def mean_cycles(self) -> float:
        """Mean of what a fire uses."""
        return mean_of(self.cycles, FRAME, self.gas_limit_max)

    def problem(self, blocks: int) -> str | None:
        """Refuse an offer that follows from no value."""
        del blocks
        if self.offer.needs_value and self.value == 0:
            kind = self.offer.__struct_config__.tag
            return f"value = 0 must be above 0 for the offer {kind!r}, which follows from it"
        return None


class Keeper(Agent):
    """See `KeeperRow`. A timer's tag counts how often it has come again."""

    def __init__(self, row: KeeperRow, name: str, actors: range, draws: Draws) -> None:
        """Draw each of its quantities from a stream of its own, so that one does not move another."""
        super().__init__(name, actors)
        self.asked = row.asked
        self._keeps = row
        self._strategy = row.offer.strategy()
        self._cycles = drawn(row.cycles, draws, "cycles", FRAME, row.gas_limit_max)
        self._values = drawn(row.value, draws, "value")
        self._decays = drawn(row.decay, draws, "decay")
        self._patiences = drawn(row.patience, draws, "patience")
        self._fails = drawn(Uniform(least=1, most=10**9), draws, "fails") if row.fails else None
        self._owners: Iterator[int] = cycle(actors)
        if row.owners == "random" and len(actors) > 1:
            self._owners = drawn(Uniform(least=actors.start, most=actors.stop - 1), draws, "owners")
        self._accepted = Counter[int]()  # timers of each actor so far
        self._ordered = Counter[int]()  # those of the block that is to come
        self._late: defaultdict[int, list[PlannedTimer]] = defaultdict(list)  # by the height at which it gives them up
        self._live: set[bytes] = set()  # ids of those
        self._returns: list[PlannedTimer] = []  # given up, and to come again

    # Timers

    def timer(self, owner: int, height: int, view: View, watches: int | None = None) -> Schedule:
        """Return a timer that is due at a height, or that waits for an actor's slot."""
        row, cycles, value, patience = self._keeps, next(self._cycles), next(self._values), next(self._patiences)
        cap = tip = None
        if not self.asked:
            cap, tip = self._strategy.fees(view, max(value - view.timer_basefee, 0))
        return Schedule(
            actor=owner,
            height=height,
            gas_limit=min(cycles + row.slack, row.gas_limit_max),
            cycles=cycles,
            cells=row.cells,
            fails=self._fails is not None and next(self._fails) <= row.fails * 10**9,
            cap=cap,
            tip=tip,
            expires_at=height + patience if patience else 0,
            target=self._target(owner) if view.has_mailbox and row.calls != "owner" else None,
            watches=watches,
            value=value * cycles,
            decay=next(self._decays) * cycles,
        )

    def owner(self, height: int, view: View) -> int:
        """Return the number of the actor that owns the next timer of a height."""
        match self._keeps.owners:
            case "blocks":
                return self.actors[height % len(self.actors)]
            case "least_id":
                owner = min(self.actors, key=lambda actor: self._next_id(actor, height, view))
                self._ordered[owner] += 1
                return owner
            case _:
                return next(self._owners)

    def _next_id(self, actor: int, height: int, view: View) -> bytes:
        return timer_id(view.addresses[actor], height, b"", self._accepted[actor] + self._ordered[actor])

    def _target(self, owner: int) -> int:
        at = 0 if self._keeps.calls == "first" else owner - self.actors.start + 1
        return self.actors[at % len(self.actors)]

    # Offers

    def bid(self, plan: PlannedTimer, view: View) -> tuple[int, int] | None:
        """Return what its strategy offers now, for what the fire is worth now."""
        order = plan.order
        worth = (order.value - order.decay * max(view.height - order.height, 0)) // order.cycles
        cap, tip = self._raised(self._strategy.fees(view, max(worth - view.timer_basefee, 0)), order, view)
        if cap is None or tip is None:
            cap, tip = default_fees(Fees(cap, tip), view)
        return (cap if view.lane_basefee else cap + view.timer_basefee), tip

    def _raised(self, fees: Fees, order: Schedule, view: View) -> Fees:
        """Return fees, raised for each time that a timer has come again; its value bounds them if it has one."""
        if not order.tag or self._keeps.impatience is None:
            return fees
        cap, tip = default_fees(fees, view)
        more = tip * self._keeps.impatience.percent * order.tag // 100 + self._keeps.impatience.step * order.tag
        raised = cap + more
        if order.value:
            raised = max(cap, min(raised, order.value // order.cycles - view.timer_basefee))
        return Fees(raised, min(tip + more, raised))

    # Blocks

    def orders(self, view: View) -> Iterable[Order]:
        """Return money for its actors, timers that it gives up, and timers that come again."""
        self._strategy.see_block(view)
        self._ordered.clear()
        yield from self._money(view)
        for plan in self._late.pop(view.height, ()):
            if plan.timer_id in self._live:
                yield Cancel(plan)
        returns, self._returns = self._returns, []
        for plan in sorted(returns, key=lambda plan: plan.timer_id):
            yield self._return(plan.order, view)

    def _money(self, view: View) -> Iterable[Fund]:
        row, funding = self._keeps, self._keeps.funding
        if funding is None:
            return
        since = view.height - 1
        if since == 0 or (funding.every and since % funding.every == 0):
            price = view.timer_basefee + view.lane_basefee + view.previous_tip
            amount = funding.fires * (round(row.mean_cycles) * price + row.cells * view.cell_basefee)
            for actor in self.actors:
                yield Fund(actor, amount)

    def _return(self, order: Schedule, view: View) -> Schedule:
        height = view.height + 1
        late = height - order.height
        again = replace(order, height=height, value=max(order.value - order.decay * late, 0), tag=order.tag + 1)
        if self.asked:
            return again
        surplus = max(again.value // again.cycles - view.timer_basefee, 0)
        fees = self._raised(self._strategy.fees(view, surplus), again, view)
        return replace(again, cap=fees.cap, tip=fees.tip)

    def returns(self, plan: PlannedTimer) -> bool:
        """Return whether a timer that lives comes again once it is cancelled."""
        return plan.timer_id in self._live

    def saw_plan(self, plan: PlannedTimer, view: View) -> None:
        """Note a timer of its own, and when it gives it up."""
        del view
        order, impatience = plan.order, self._keeps.impatience
        self._accepted[order.actor] += 1
        if impatience is None or order.watches is not None or order.tag >= impatience.times:
            return
        height = order.height + impatience.after
        # One that expires before it could come again is left to expire.
        if not order.expires_at or height + 2 <= order.expires_at:
            self._late[height].append(plan)
            self._live.add(plan.timer_id)

    def saw_fire(self, fire: Fire, view: View) -> None:
        """Note a fire of its own."""
        del view
        self._live.discard(fire.plan.timer_id)
        self._strategy.see_end(fire.late)

    def saw_ending(self, ending: UnfiredTimer, view: View) -> None:
        """Note the end of a timer of its own; one that it has cancelled comes again."""
        del view
        if ending.end is TimerEnd.EXPIRED:
            self._strategy.see_end(None)
        if ending.plan.timer_id in self._live:
            self._live.remove(ending.plan.timer_id)
            if ending.end is TimerEnd.CANCELLED:
                self._returns.append(ending.plan)


def default_fees(fees: Fees, view: View) -> tuple[int, int]:
    """Return fees with what the protocol puts where none is stated."""
    basefee = view.lane_basefee or view.timer_basefee
    # Outside the lane the cap is of the cycle basefee, too, and this is what the default leaves above it.
    cap = (2 * basefee if view.lane_basefee else basefee) if fees.cap is None else fees.cap
    return cap, view.previous_tip if fees.tip is None else fees.tip
