"""`quote_timer`: what a timer that is scheduled now would cost, and how likely it runs soon after it is due."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.execution.checks import gas_limit_bounds
from trailboss.fees import Prices, max_cost
from trailboss.governance.rules import Rules
from trailboss.model.timers import DeferralReason, decode_timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U64_MAX, Cells, Cycles, Height, Price
from trailboss.state.keys import TIMERS, timer_range
from trailboss.timer_queue.source import StoredTimers
from trailboss.views.mechanism.base import MechanismViews
from trailboss.views.mechanism.registry import views_at, views_for, views_of
from trailboss.views.recent_blocks import (
    BLOCKS,
    BLOCKS_MAX,
    Chance,
    Offer,
    Quoting,
    chance_within,
    of_present_mechanism,
    recent_blocks,
    refused,
)

WITHIN: Final = (1, 5, 10, 50)  # numbers of blocks for which a quote gives a chance by default
QUEUED_MAX: Final = 10_000  # most timers ahead whose gas limits are read; of the others only the number is known
FULL_BLOCKS_MAX: Final = 1_000  # most full lanes through which the lane basefee is followed


class Backlog(Struct, frozen=True):
    """Timers that are ahead."""

    timers: int  # how many
    counted: int  # of how many the gas limit was read: all, or the first ``QUEUED_MAX`` by height
    over_cap: int  # of those, how many the lane will set aside for their gas limit
    gas: int  # gas limits of the rest, cycles
    full_blocks: int  # how many blocks of a full lane that is, rounded up. Fires use less than their limits.


class ExpectedRun(Struct, frozen=True, kw_only=True):
    """When a timer that is scheduled now would run if nothing else is sent. Prices are base units per cycle."""

    block: int | None  # in which it would run; None if in none of those that are looked at
    last_block: int  # the last one that is looked at
    why: DeferralReason | None  # why not in the block at its height; None if it runs there
    per_cycle: int  # what a cycle costs in the block in which it runs, all parts together; 0 without one
    max_cost: int  # what its payer must hold there; 0 without one


class Quote(Struct, frozen=True, kw_only=True):
    """An answer of `quote_timer`. Prices are base units per cycle or cell, money is base units."""

    height: int  # at which the timer would be due
    scheduled_in: int  # the block that would schedule it, the next one; prices are those of that block
    gas_limit: int  # cycles the fire may use, as given
    # Cycles it is pre-charged for: the gas limit, or the cap that governance holds it to in the lane.
    charged_cycles: int
    mechanism: str  # what chooses among due timers at ``height``: ``fifo`` or ``lane``
    cycle_basefee: int  # cycle basefee of a fire now
    # Lane basefee now, added to it; 0 under FIFO. Before the activation, what the lane would begin with at the present
    # cycle basefee.
    lane_basefee: int
    tip: int  # what it offers the proposer now; 0 under FIFO
    cell_basefee: int  # cell basefee of a fire now
    max_cells: int  # cells that every fire is pre-charged for
    max_cost: int  # what the payer must hold for it to start, at the prices of now
    # Cap of lane basefee and tip together, as the default agent freezes it; None without such a cap.
    max_fee: int | None
    # As ``max_cost``, with the lane basefee risen as far as the cap allows; None without a cap.
    max_cost_at_cap: int | None
    # How many full lanes in a row leave the lane basefee within the cap, up to ``FULL_BLOCKS_MAX``; None without a cap.
    full_blocks_covered: int | None
    weight: int  # W(actor) in parts of 10⁻⁹; 0 under FIFO
    chances: tuple[Chance, ...]  # one for each number of blocks asked for
    first_block: int  # the recent blocks judged by begin here …
    last_block: int  # … and end here; below ``first_block`` if there are none
    not_run: dict[DeferralReason, int]  # in how many of them a timer like this would not have run, by reason
    waiting: Backlog  # timers that are due and have not run
    ahead: Backlog  # timers due at or before ``height``, those included
    notes: tuple[str, ...]  # what else to know, in words
    # When it would run by a forecast of the next blocks; None for a height beyond them, or without a forecast.
    expected: ExpectedRun | None = None

    def price_parts(self) -> list[tuple[str, int]]:
        """Return label and price of each part of what a cycle costs."""
        quoting = views_of(self.mechanism).quoting
        own = () if quoting is None else quoting.price_parts
        return [("cycle basefee", self.cycle_basefee), *((label, getattr(self, name)) for label, name in own)]

    @property
    def per_cycle(self) -> int:
        """What one cycle costs now, everything counted."""
        return self.cycle_basefee + self.lane_basefee + self.tip


def quote_timer(
    chain: ChainReader,
    height: int,
    gas_limit: int,
    tip: int | None = None,
    *,
    actor: bytes | None = None,
    within: Sequence[int] = WITHIN,
    blocks: int = BLOCKS,
    future: ChainReader | None = None,
) -> Quote:
    """Return what a timer scheduled in the next block would cost, and how likely it runs soon after it is due.

    The cost follows from the rules of the next block. With ``future``, the same chain some blocks later if nothing else
    is sent, the first block is found from its height on that would run the timer. The chance is counted, not modelled:
    for each recent block under the mechanism of now, `Quoting.why_not` decides whether this timer, with these fees and
    its actor's present weight, would have run if it had been due there and able to pay. The chance of running within k
    blocks is the share of the recent blocks that begin k blocks of which at least one would have run it:
    ``docs/concepts/quote-and-runway.md``.

    Complexity: O(blocks × (timers that a record names + largest ``within``) + min(timers ahead, ``QUEUED_MAX``)).
    Spec: CIP-1v3 §3, CIP-1v3 §5, CIP-1v3 §7.1, CIP-5 §6.3. Decision: D-16, D-53.

    Without ``tip``, a max_priority_fee_per_cycle, the default agent's counts; without ``actor``, 20 bytes, one that has
    not fired. There is a chance for each number of blocks in ``within``.

    Raises:
        Rejection: ``INVALID_INPUT`` if the timer cannot be scheduled, or could never run: a height that no block of the
            future can be scheduled for, a gas limit above the cap at that height, a tip where there is no lane;
            ``INVALID_INPUT`` as well on a chain of the auction or of Globalbox, where prices are bids and nothing of
            this holds; ``ACTOR_NOT_FOUND`` for an actor that is not there.
    """
    rules, now, at = chain.rules(), views_for(chain), views_at(chain, height)
    if now.quoting is None or at.quoting is None:
        raise _no_quote(now.name)
    _check_height(rules, height)
    least, most = gas_limit_bounds(rules)
    if not least <= gas_limit <= most:
        raise refused("gas_limit", gas_limit, f"within {least}..={most}, what a timer of now may have")
    if any(each < 1 for each in within):
        raise refused("within", min(within), "at least 1 block")
    charged, priority = at.quoting.charged_cycles(rules, gas_limit), now.quoting.priority(rules, tip)
    account = None if actor is None else chain.account(Address(actor))
    if actor is not None and (account is None or not account.code_hash):
        raise Rejection(RejectionReason.ACTOR_NOT_FOUND, f"there is no actor at {Address(actor)}")
    lane_basefee, weight = Price(at.quoting.lane_basefee(rules)), now.quoting.weight(chain, account)
    max_fee = 2 * lane_basefee if now.quoting.has_cap else None
    cycle_basefee, cell_basefee = rules.timer_basefees()
    prices = Prices(cycle_basefee, cell_basefee, Price(priority), lane_basefee=lane_basefee)
    at_cap = Prices(cycle_basefee, cell_basefee, lane_basefee=Price(max_fee or 0))
    cycles, cells = Cycles(charged), Cells(rules.timer.max_cells_per_fire)
    recent = of_present_mechanism(chain, recent_blocks(chain, blocks))
    offer = Offer(gas_limit, max_fee or 0, priority, weight)
    verdicts = [now.quoting.why_not(each, offer) for each in recent]
    waiting, ahead = _backlogs(chain, at, height)
    return Quote(
        height=height,
        scheduled_in=rules.height,
        gas_limit=gas_limit,
        charged_cycles=charged,
        mechanism=at.name,
        cycle_basefee=cycle_basefee,
        lane_basefee=lane_basefee,
        tip=priority,
        cell_basefee=cell_basefee,
        max_cells=cells,
        max_cost=max_cost(cycles, cells, prices),
        max_fee=max_fee,
        max_cost_at_cap=None if max_fee is None else max_cost(cycles, cells, at_cap),
        full_blocks_covered=None if max_fee is None else _full_blocks(rules, max_fee),
        weight=weight,
        chances=tuple(chance_within(verdicts, each) for each in within),
        first_block=recent[0].block.height if recent else rules.height,
        last_block=recent[-1].block.height if recent else rules.height - 1,
        not_run={reason: verdicts.count(reason) for reason in DeferralReason if reason in verdicts},
        waiting=waiting,
        ahead=ahead,
        notes=tuple(now.quoting.notes(rules, height, tip, account)),
        expected=None if future is None else _expected(future, height, at.quoting, offer, charged),
    )


def _expected(
    future: ChainReader, height: int, quoting: Quoting, offer: Offer, charged_cycles: int
) -> ExpectedRun | None:
    """Return in which block of a forecast a timer would run; None if the forecast ends before its height."""
    if not 1 <= future.height - height + 1 <= BLOCKS_MAX:
        return None
    coming = recent_blocks(future, future.height - height + 1)
    verdicts = [quoting.why_not(each, offer) for each in coming]
    found = next((each for each, why in zip(coming, verdicts, strict=True) if why is None), None)
    if found is None:
        return ExpectedRun(block=None, last_block=future.height, why=verdicts[0], per_cycle=0, max_cost=0)
    lane_basefee = found.lane_basefee or 0
    tip = min(offer.priority, max(0, offer.max_fee - lane_basefee)) if quoting.has_cap else 0
    prices = Prices(Price(found.cycle_basefee), Price(found.cell_basefee), Price(tip), lane_basefee=Price(lane_basefee))
    cells = Cells(future.rules().timer.max_cells_per_fire)
    return ExpectedRun(
        block=found.block.height,
        last_block=future.height,
        why=verdicts[0],
        per_cycle=found.cycle_basefee + lane_basefee + tip,
        max_cost=max_cost(Cycles(charged_cycles), cells, prices),
    )


def _check_height(rules: Rules, height: int) -> None:
    now, last = rules.height, min(rules.height + rules.timer.max_ttl_blocks, U64_MAX)
    if height <= now:
        rule = f"above {now}: the next block, {now}, is the first that can schedule a timer"
        raise refused("height", height, rule)
    if height > last:
        raise refused("height", height, f"at most {last}, or the timer expires before it is due")


def _no_quote(mechanism: str) -> Rejection:
    what = (
        f"there are quotes under fifo and in the timer lane, and this chain has the mechanism {mechanism}: a fire "
        "costs what is bid for it, and the decision records of the blocks show which bids ran"
    )
    return Rejection(RejectionReason.INVALID_INPUT, what, field="mechanism", value=mechanism)


def _full_blocks(rules: Rules, max_fee: int) -> int:
    """Return after how many full lanes in a row the lane basefee is still within a cap. Spec: CIP-1v3 §5."""
    market, full, blocks = rules.market, rules.params.timers.lane_cycles_per_block, 0
    while blocks < FULL_BLOCKS_MAX and (following := market.next_basefee(full)) <= max_fee:
        market = replace(market, basefee=following)
        blocks += 1
    return blocks


def _backlogs(chain: ChainReader, at: MechanismViews, height: int) -> tuple[Backlog, Backlog]:
    """Return what is due and has not run, and what is due at or before a height."""
    rules, source = chain.rules(), StoredTimers(chain.store)
    lane_cycles = rules.params.timers.lane_cycles_per_block
    waiting, ahead = Counter[str](), Counter[str]()
    rows = chain.store.iterate(TIMERS, *timer_range(Height(0), Height(height)))
    for _, octets in islice(rows, QUEUED_MAX):
        timer = decode_timer(octets)
        over = at.is_over_cap(rules, timer)
        for each in (waiting, ahead) if timer.height <= chain.height else (ahead,):
            each["counted"] += 1
            each["over_cap"] += over
            each["gas"] += 0 if over else at.next_fire(rules, timer).gas_limit
    first, last = (
        Backlog(source.count_below(end), each["counted"], each["over_cap"], each["gas"], -(-each["gas"] // lane_cycles))
        for each, end in ((waiting, chain.height + 1), (ahead, height + 1))
    )
    return first, last
