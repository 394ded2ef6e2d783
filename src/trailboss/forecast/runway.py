"""`runway_of`: how many fires a balance still pays for, and in which block it runs out."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Charging
from trailboss.model.blocks import ReceiptRecord
from trailboss.model.timers import Timer, decode_timer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX
from trailboss.state.keys import TIMERS
from trailboss.views.mechanism.base import MechanismViews
from trailboss.views.mechanism.registry import views_at, views_for
from trailboss.views.recent_blocks import BLOCKS, RecentBlock, of_present_mechanism, recent_blocks
from trailboss.views.shared_fields import extended

TIMERS_MAX: Final = 10_000  # most timers of a payer that are looked at, the lowest heights first
PERCENTILE: Final = 95
PRESENT: Final = "present"
TWICE: Final = "twice"
HIGH: Final = f"p{PERCENTILE}"
REACHES: Final = 3


class PaidActor(Struct, frozen=True, kw_only=True):
    """An actor whose timers the payer pays for."""

    actor: Address  # the actor
    timers: int  # its live timers that this payer pays for, those that cannot fire left out
    fires: int  # fires that the payer has paid for in the recent blocks
    span: int  # blocks from the first of those fires to the next due timer; 0 if there was none or is none
    cycles_used: int  # cycles of those fires together
    cells_used: int  # cells of those fires together

    @property
    def interval(self) -> Fraction | None:
        """Blocks a fire, in the mean; None without a fire to go by, or without a timer that goes on."""
        return Fraction(self.span, self.fires) if self.span else None

    @property
    def is_worst_case(self) -> bool:
        """Whether a fire is counted at its gas limit and all its cells, because none has been seen."""
        return self.timers > 0 and not self.fires


class Reach(Struct, frozen=True, kw_only=True):
    """How far a balance reaches at one price. Prices are base units per cycle or cell, money is base units."""

    name: str  # ``present``, ``twice`` or ``p95``
    cycle_basefee: int  # cycle basefee of a fire
    lane_basefee: int  # lane basefee, added to it; 0 where there is none
    cell_basefee: int  # cell basefee of a fire
    fires: int  # fires that it pays for; if it never runs dry, all that are scheduled
    spent: int  # what those fires cost
    dry_at: int | None  # block in which the first timer finds too little; None if none does
    required: int  # what that timer needs to start; 0 if there is none
    available: int  # what it finds
    # Timers whose cap is below the lane basefee at this price, in the auction below the cycle basefee: they wait, and
    # cost nothing.
    priced_out: int


class Runway(Struct, frozen=True, kw_only=True):
    """An answer of `runway_of`. Money is base units."""

    payer: Address  # whose balance
    height: int  # the last block
    balance: int  # what the payer holds after it
    timers: int  # live timers that it has yet to pay for, at most ``TIMERS_MAX``
    has_more: bool  # whether there are more, which are left out
    # Of ``timers``, those that cannot fire as things stand: they expire before they are due, the lane sets them aside,
    # or they are state watches of Globalbox that nothing has hit.
    stuck: int
    first_block: int  # the recent blocks looked at begin here …
    last_block: int  # … and end here; below ``first_block`` on a chain without a block
    actors: tuple[PaidActor, ...]  # whose timers it pays for, and whose fires it has paid for, ascending by address
    # At the present basefees, at twice these, and at the 95th percentile of the recent blocks.
    reaches: tuple[Reach, ...]
    notes: tuple[str, ...]  # what else to know, in words


def runway_of(
    chain: ChainReader,
    payer: bytes,
    *,
    blocks: int = BLOCKS,
    most: int = TIMERS_MAX,
    timers: Iterable[bytes] | None = None,
    recent: Sequence[RecentBlock] | None = None,
    reaches: int = REACHES,
) -> Runway:
    """Return how many fires a payer's balance still pays for if everything goes on as it has, and when it runs out.

    The payer's live timers are the first fires. Beyond them, each actor keeps its mean rate: its fires for this payer
    in the recent blocks, over the span from the first of them to its next due timer. A fire costs what the actor's
    recent fires used on average, rounded up to a base unit and at most its pre-charge; without any, its whole
    pre-charge. It needs that whole pre-charge, gas limit and all cells, to start; the balance runs out in the first
    block in which a timer finds less. A state watch counts if a fire of it is queued; what waits in the mailbox has
    been paid for. What the estimate leaves out stands in ``docs/concepts/quote-and-runway.md``.

    Complexity: O(live timers) unless ``timers`` are given, as the state has no index by payer: a few seconds at
    1,000,000. Then O(recent fires + 64 × timers of the payer), and O(log timers) for each fire that the last
    pre-charges alone would pay for. Spec: CIP-5 §6.3, CIP-1v3 §3. Decision: D-14, D-16.

    A payer, 20 bytes, without an account holds nothing. ``timers`` are the ids of the live timers that it pays for, by
    height and insertion, and ``recent`` what `recent_blocks` gives, if they are known. At most ``most`` timers,
    ``TIMERS_MAX`` at most, are looked at, the lowest heights first. One reach is that at the present basefees.

    Raises:
        Rejection: ``INVALID_DATA`` for an address of another width, ``INVALID_INPUT`` for a number of blocks outside
            ``1..=BLOCKS_MAX``.
    """
    payer, rules, balance = Address(payer), chain.rules(), chain.balance(Address(payer))
    recent = recent_blocks(chain, blocks) if recent is None else recent
    known = _walked(chain, payer) if timers is None else filter(None, map(chain.timer, timers))
    found, has_more = _live_timers(views_for(chain), payer, known, min(most, TIMERS_MAX))
    ready = [fire for fire in (_next_fire(chain, timer) for timer in found) if fire is not None]
    actors = _paid_actors(payer, recent, ready)
    by_address: dict[bytes, PaidActor] = {actor.actor: actor for actor in actors}
    steps = _steps(ready, by_address)
    going = [(fire, step, by_address[fire.timer.actor]) for fire, step in zip(ready, steps, strict=True)]
    cases = islice(_cases(rules, of_present_mechanism(chain, recent)), reaches)
    return Runway(
        payer=payer,
        height=chain.height,
        balance=balance,
        timers=len(found),
        has_more=has_more,
        stuck=len(found) - len(ready),
        first_block=recent[0].block.height if recent else rules.height,
        last_block=chain.height,
        actors=tuple(actors),
        reaches=tuple(_reach(chain, balance, going, case) for case in cases),
        notes=tuple(_notes(chain, found, actors, has_more=has_more)),
    )


def _live_timers(views: MechanismViews, payer: Address, timers: Iterable[Timer], most: int) -> tuple[list[Timer], bool]:
    """Return those of some timers that the payer has yet to pay for, and whether there are more than are looked at."""
    paid = (timer for timer in timers if timer.fee_payer == payer and not views.is_paid(timer))
    found = list(islice(paid, most))
    has_more = next(paid, None) is not None
    return sorted(found, key=lambda timer: (timer.height, timer.sequence)), has_more


def _walked(chain: ChainReader, payer: Address) -> Iterator[Timer]:
    octets_of_payer = bytes(payer)
    for _, octets in chain.store.iterate(TIMERS):
        # To search the bytes takes a tenth of the time that decoding them takes.
        if octets_of_payer in octets:
            yield decode_timer(octets)


class _Fire(Struct, frozen=True):
    """The next fire of a live timer: the timer as it will run, and the first block in which it may."""

    timer: Timer
    first: int


def _next_fire(chain: ChainReader, timer: Timer) -> _Fire | None:
    """Return the next fire of a timer; None if it cannot fire as things stand. Decision: D-13."""
    rules = chain.rules()
    first = rules.height if views_for(chain).is_watch(timer) else max(timer.height, rules.height)
    views = views_at(chain, first)
    if timer.expires_at < first or views.is_over_cap(rules, timer) or not views.can_fire(timer):
        return None
    return _Fire(views.next_fire(rules, timer), first)


def _paid_actors(payer: Address, recent: Sequence[RecentBlock], fires: Sequence[_Fire]) -> list[PaidActor]:
    due: dict[bytes, list[int]] = {}
    for fire in fires:
        due.setdefault(fire.timer.actor, []).append(fire.first)
    first: dict[bytes, int] = {}
    seen: dict[bytes, list[ReceiptRecord]] = {}
    for each in recent:
        for receipt in each.fires.get(payer, ()):
            first.setdefault(receipt.sender, each.block.height)
            seen.setdefault(receipt.sender, []).append(receipt)
    return [
        PaidActor(
            actor=Address(actor),
            timers=len(due.get(actor, ())),
            fires=len(seen.get(actor, ())),
            span=min(due[actor]) - first[actor] if actor in first and actor in due else 0,
            cycles_used=sum(receipt.cycles_used for receipt in seen.get(actor, ())),
            cells_used=sum(receipt.cells_used for receipt in seen.get(actor, ())),
        )
        for actor in sorted(due.keys() | seen.keys())
    ]


def _steps(fires: Sequence[_Fire], actors: dict[bytes, PaidActor]) -> list[Fraction | None]:
    """Return after how many blocks each timer is followed by one like it; None for one that fires once.

    Those due within another span of their actor go on, as many blocks later as keep its rate: span × such timers ÷
    fires. Timers further ahead fire once, and so do those of an actor that has not fired for this payer.
    """
    ends: dict[bytes, int] = {}
    going: dict[bytes, int] = {}
    for fire in fires:
        actor = fire.timer.actor
        # Timers come in order of height: the first of an actor shows where its next span ends.
        if fire.first < ends.setdefault(actor, fire.first + actors[actor].span):
            going[actor] = going.get(actor, 0) + 1
    return [
        Fraction(actors[fire.timer.actor].span * going[fire.timer.actor], actors[fire.timer.actor].fires)
        if fire.first < ends[fire.timer.actor]
        else None
        for fire in fires
    ]


_Going = tuple[_Fire, Fraction | None, PaidActor]  # a fire, after how many blocks one like it follows, and its actor


class _Case(Struct, frozen=True):
    """The basefees of one reach."""

    name: str
    cycle_basefee: int
    lane_basefee: int
    cell_basefee: int


def _cases(rules: Rules, recent: Sequence[RecentBlock]) -> Iterator[_Case]:
    """Yield the basefees of each reach: of the next block, twice these, and those of the 95th percentile.

    That is by cycle and lane basefee together, of the recent blocks under the mechanism of now, by nearest rank.
    """
    cycle, cell = rules.timer_basefees()
    lane = rules.market.surcharge
    yield _Case(PRESENT, cycle, lane, cell)
    yield _Case(TWICE, 2 * cycle, 2 * lane, 2 * cell)
    blocks = [_Case(HIGH, each.cycle_basefee, each.lane_basefee or 0, each.cell_basefee) for each in recent]
    blocks.sort(key=lambda case: (case.cycle_basefee + case.lane_basefee, case.cell_basefee))
    yield blocks[-(-PERCENTILE * len(blocks) // 100) - 1] if blocks else _Case(HIGH, cycle, lane, cell)


def _reach(chain: ChainReader, balance: int, going: Sequence[_Going], case: _Case) -> Reach:
    rules, views, loops = chain.rules(), views_for(chain), []
    for fire, step, actor in going:
        tip = views.tip_at(rules, fire.timer, case.cycle_basefee, case.lane_basefee)
        if tip is not None:
            cycle_price = case.cycle_basefee + case.lane_basefee + tip
            reserve = fire.timer.gas_limit * cycle_price + rules.timer.max_cells_per_fire * case.cell_basefee
            used = actor.cycles_used * cycle_price + actor.cells_used * case.cell_basefee
            cost = min(-(-used // actor.fires), reserve) if actor.fires else reserve
            loops.append(Loop(fire.first, step, reserve, cost))
    walk = walk_balance(loops, balance, in_turn=chain.mechanism.policy.charging is Charging.IN_TURN)
    prices = {name: getattr(case, name) for name in _Case.__struct_fields__}
    return extended(Reach, walk, priced_out=len(going) - len(loops), **prices)


def _notes(
    chain: ChainReader, timers: Sequence[Timer], actors: Sequence[PaidActor], *, has_more: bool
) -> Iterator[str]:
    """Yield what the numbers do not say."""
    rules, views = chain.rules(), views_for(chain)
    begins = rules.params.lane.activation_height
    if views.gives_way and begins:
        yield f"the timer lane begins at height {begins}: its prices are not in these numbers"
    if has_more:
        yield f"it pays for more than {len(timers)} timers: those of the lowest heights are counted"
    unseen = sum(actor.is_worst_case for actor in actors)
    if unseen:
        yield f"no fire of {unseen} of its actors was seen: their timers are counted once, at all that they may use"
    yield from views.runway_notes(rules, timers)


class Loop(Struct, frozen=True):
    """Fires that follow one another."""

    first: int  # height of the first
    step: Fraction | None  # blocks from one to the next, above 0; None for one fire alone
    reserve: int  # what the balance must hold for one to start, base units
    cost: int  # what one costs in the end, base units, at most the reserve

    def height_of(self, number: int) -> int:
        """Return the height of a fire, counted from 0."""
        return self.first if self.step is None else self.first + number * self.step.numerator // self.step.denominator

    def fires_through(self, height: int) -> int:
        """Return how many fires there are up to a height."""
        if height < self.first:
            return 0
        if self.step is None:
            return 1
        return -(-(height - self.first + 1) * self.step.denominator // self.step.numerator)

    def has(self, number: int) -> bool:
        """Return whether there is a fire of that number, counted from 0."""
        return self.step is not None or number == 0

    def most_at_once(self) -> int:
        """Return how many of its fires one block may hold."""
        return 1 if self.step is None else -(-self.step.denominator // self.step.numerator)


class BalanceWalk(Struct, frozen=True):
    """How far a balance reaches."""

    fires: int  # fires that it pays for
    spent: int  # what these cost, base units
    # Height of the first that finds less than its reserve; None if none does up to height 2⁶⁴ - 1.
    dry_at: int | None = None
    required: int = 0  # that reserve; 0 if there is none
    available: int = 0  # what that fire finds


def walk_balance(loops: Sequence[Loop], balance: int, *, in_turn: bool) -> BalanceWalk:
    """Pay for fires in order of height until one finds less than its reserve.

    While the balance also holds all reserves of a block, every fire starts: up to the last such height, fires are
    counted and not walked.

    Complexity: O(loops) for each of 64 steps of a bisection, then O(log loops) for each fire that these reserves pay.

    Args:
        loops: Within one height fires come in this order.
        balance: What the payer holds, base units.
        in_turn: Whether each fire is settled before the next is reserved; otherwise all of a block are reserved first.
    """
    reserves = [loop.reserve * loop.most_at_once() for loop in loops]
    margin = max((loop.reserve for loop in loops), default=0) if in_turn else sum(reserves)
    sure = _last_height(loops, balance - margin)
    counts = [loop.fires_through(sure) for loop in loops]
    fires, left = sum(counts), balance - _spent(loops, sure)
    coming = [
        (loop.height_of(count), index, count)
        for index, (loop, count) in enumerate(zip(loops, counts, strict=True))
        if sure < U64_MAX and loop.has(count)
    ]
    heapify(coming)
    block, held = -1, 0
    while coming:
        height, index, number = heappop(coming)
        loop = loops[index]
        if height != block:
            block, held = height, 0
        if left - held < loop.reserve:
            return BalanceWalk(fires, balance - left, height, loop.reserve, left - held)
        fires += 1
        left -= loop.cost
        if not in_turn:
            held += loop.reserve - loop.cost
        if loop.has(number + 1):
            heappush(coming, (loop.height_of(number + 1), index, number + 1))
    return BalanceWalk(fires, balance - left)


def _last_height(loops: Sequence[Loop], amount: int) -> int:
    """Return the last height up to which all fires together cost at most an amount; -1 if that is below 0."""
    low, high = -1, U64_MAX
    if amount < 0:
        return low
    while low < high:
        middle = (low + high + 1) // 2
        if _spent(loops, middle) <= amount:
            low = middle
        else:
            high = middle - 1
    return low


def _spent(loops: Sequence[Loop], height: int) -> int:
    return sum(loop.cost * loop.fires_through(height) for loop in loops)
