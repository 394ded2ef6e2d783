"""The live queue, block by block, as it runs if nothing more is sent: a fork builds the blocks. Decision: D-116."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.chain.chain import Chain
from trailboss.chain.reader import ChainReader
from trailboss.chain.view import ChainView
from trailboss.governance.markets import is_active
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.rehearsal.run import ENDS, EXPIRED, UNFUNDED, Payment, endings, fork_of, payment_of
from trailboss.rehearsal.simulate import CYCLES_MAX
from trailboss.views.explain.decision_view import REASONS
from trailboss.views.explain.life import outlook
from trailboss.views.mechanism.base import Outlook, OutlookKind, next_block_for
from trailboss.views.records import block_events
from trailboss.views.shared_fields import extended
from trailboss.views.text import counted, failure_words
from trailboss.vm.engine import Engine

FORECAST_BLOCKS: Final = 100  # blocks that a forecast builds, by default
FORECAST_BLOCKS_MAX: Final = 10_000  # most blocks that it builds
NEAR_BLOCKS: Final = 20  # blocks that are looked at for an explanation, or for a page that shows what comes next
QUOTED_BLOCKS: Final = 150  # blocks that are looked at for a quote of a timer due within ``FORECAST_BLOCKS``
TIMERS_MAX: Final = 10_000  # most ends of timers that it lists, and most waiting timers
FIRES: Final = "fires"
REVERTS: Final = "reverts"
WAITS: Final = "waits"


class ForecastTimer(Struct, frozen=True, kw_only=True):
    """What a forecast has of a timer: one fire of it, its end, or that it waits. Money is base units."""

    timer_id: Hash32  # its id
    actor: Address  # its owner
    handler: str  # what it calls
    height: int  # at which it is due
    fee_payer: Address  # who pays
    gas_limit: int  # cycles a fire may use
    expires_at: int  # last height at which it may fire
    scheduled_at: int | None  # block of the forecast that schedules it; None for a timer that is live already
    outcome: str  # ``fires``, ``reverts``, ``expired``, ``unfunded``, ``cancelled``; or ``waits``, if it still does
    block: int | None  # in which that happens; None if it still waits
    delay: int = 0  # blocks that it waits from its height on
    price_per_cycle: int | None = None  # of the fire, all parts together; None without one
    paid: int | None = None  # for the fire, cells included; None without one
    missing: int = 0  # what its payer lacks; 0 unless it ends unfunded
    error: ErrorObject | None = None  # why the fire reverts; None unless it does
    why: str = ""  # why it waits, as far as the blocks record it; empty if it does not


class QueueForecast(Struct, frozen=True, kw_only=True):
    """What becomes of the live timers of a chain in its next blocks, if nothing is sent."""

    from_height: int  # the last block that there is
    last_height: int  # the last block of the forecast; an earlier one than asked for if fires use too many cycles
    timers: tuple[ForecastTimer, ...]  # by block, those that still wait at the end
    has_more: bool  # whether there are more than ``TIMERS_MAX``, which are left out
    later: int  # live timers that are due after the last block

    def of(self, timer_id: bytes) -> tuple[ForecastTimer, ...]:
        """Return what it has of a timer: several fires of one that fires again; nothing if it is due later."""
        return tuple(each for each in self.timers if each.timer_id == timer_id)


class Ahead(Struct, frozen=True):
    """A forecast, and the fork that has built its blocks; close the fork."""

    fork: Chain
    view: ChainView  # the fork at its last block, which any thread may read
    forecast: QueueForecast


def forecast_queue(chain: ChainReader, blocks: int = FORECAST_BLOCKS, *, engine: Engine | None = None) -> QueueForecast:
    """Return what becomes of the live timers in the next blocks, if nothing is sent until then.

    What they do by themselves is exact: fires run, schedule, cancel and pay. The chain stays as it is. Complexity: what
    the blocks cost; it ends early once their fires have used ``CYCLES_MAX`` cycles.

    Args:
        chain: Stays as it is.
        blocks: How many blocks, 1 up to ``FORECAST_BLOCKS_MAX``.
        engine: What runs the fires, as in `fork_of`.

    Raises:
        Rejection: ``INVALID_DATA`` for another number of blocks.
    """
    ahead = look_ahead(chain, blocks, engine=engine)
    with closing(ahead.fork):
        return ahead.forecast


def look_ahead(
    chain: ChainReader, blocks: int = FORECAST_BLOCKS, *, engine: Engine | None = None, until: bytes | None = None
) -> Ahead:
    """Return a forecast together with its fork, which the caller closes; otherwise as `forecast_queue`.

    With ``until``, the id of a timer, it ends with the block in which that one fires or ends.
    """
    if not 1 <= blocks <= FORECAST_BLOCKS_MAX:
        what = f"a forecast of {blocks} blocks: it can be of 1..={FORECAST_BLOCKS_MAX}"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="blocks", value=str(blocks))
    fork = fork_of(chain, engine=engine)
    try:
        watch = _Watch(fork, min(chain.height + blocks, U64_MAX - 1))
        for block in fork.advance_to(watch.last):
            watch.follow(block)
            if watch.cycles_used > CYCLES_MAX or watch.is_full or watch.has_ended(until):
                break
        return Ahead(fork, fork.publish(), watch.forecast(chain.height))
    except BaseException:
        fork.close()
        raise


def is_near(chain: ChainReader, height: int) -> bool:
    """Return whether a timer that is due at a height is quoted by a forecast."""
    return chain.height < height <= chain.height + FORECAST_BLOCKS


@contextmanager
def ahead_of(chain: ChainReader, height: int, *, engine: Engine | None = None) -> Iterator[ChainView | None]:
    """Yield a view of the chain in ``QUOTED_BLOCKS``; None if a height is not near."""
    if not is_near(chain, height):
        yield None
        return
    ahead = look_ahead(chain, QUOTED_BLOCKS, engine=engine)
    with closing(ahead.fork):
        yield ahead.view


def forecast_timer(chain: ChainReader, timer: Timer, *, engine: Engine | None = None) -> ForecastTimer | None:
    """Return what becomes of a live timer in the next ``NEAR_BLOCKS``; None if it is due later."""
    if timer.height > chain.height + NEAR_BLOCKS:
        return None
    ahead = look_ahead(chain, NEAR_BLOCKS, engine=engine, until=timer.timer_id)
    with closing(ahead.fork):
        return next(iter(ahead.forecast.of(timer.timer_id)), None)


def forecast_beside(chain: ChainReader, timer: Timer, found: ForecastTimer | None, told: Outlook) -> str:
    """Return what a forecast has of a timer, in words, if that is more than its outlook says; else empty."""
    if found is None:
        return ""
    kinds = {FIRES: OutlookKind.RUNS, REVERTS: OutlookKind.REVERTS, WAITS: OutlookKind.WAITS}
    kinds |= {EXPIRED: OutlookKind.EXPIRES, UNFUNDED: OutlookKind.UNFUNDED}
    is_alike = kinds.get(found.outcome) is told.kind and found.block in (None, next_block_for(chain, timer))
    return "" if is_alike else f"{forecast_words(found)}, if nothing is sent until then"


def forecast_words(found: ForecastTimer) -> str:
    """Return what a forecast has of a timer, in words.

    As: ``fires in block 120, 3 blocks late (outranked), at 24 base units a cycle: 0.0006 CBY``.
    """
    late = f", {counted(found.delay, 'block')} late" if found.delay else ""
    if late and found.why:
        late += f" ({found.why})"
    if found.block is None:
        return f"still waits: {found.why}"
    if found.outcome not in (FIRES, REVERTS):
        lacks = f": its payer lacks {format_cby(found.missing)} CBY" if found.missing else ""
        return f"{ENDS[found.outcome]} in block {found.block}{late}{lacks}"
    price = f"at {found.price_per_cycle:,} base units a cycle: {format_cby(found.paid or 0)} CBY"
    reverts = "" if found.error is None else f"; it reverts: {failure_words(found.error)}"
    return f"fires in block {found.block}{late}, {price}{reverts}"


class _Watch:
    """A fork on its way: what its blocks do to timers."""

    def __init__(self, fork: Chain, last: int) -> None:
        self.last = last
        self.cycles_used = 0
        self._fork = fork
        known = list(islice(fork.timers(0, last), TIMERS_MAX + 1))
        self._has_more = len(known) > TIMERS_MAX
        self._timers: dict[bytes, tuple[Timer, int | None]] = {
            timer.timer_id: (timer, None) for timer in known[:TIMERS_MAX]
        }
        self._reasons: dict[bytes, str] = {}
        self._rows: list[ForecastTimer] = []

    @property
    def is_full(self) -> bool:
        """Whether as many ends have been seen as are listed."""
        return len(self._rows) >= TIMERS_MAX

    def has_ended(self, timer_id: bytes | None) -> bool:
        """Return whether a timer has fired or ended."""
        return timer_id is not None and any(row.timer_id == timer_id for row in reversed(self._rows))

    def follow(self, block: Block) -> None:
        """Take in the next block."""
        if block.decisions is not None:
            for item in block.decisions.decided:
                if item.reason:
                    self._reasons[item.timer_id] = REASONS[DeferralReason(item.reason)]
            for item in block.decisions.runners_up:
                self._reasons[item.timer_id] = REASONS[DeferralReason.OUTRANKED]
        # What a fire schedules can be ended by a later one of the same block.
        for event in block_events(block):
            if event.name == TIMER_SCHEDULED:
                timer = self._fork.timer(event.timer_id)
                if timer is not None:
                    self._timers[timer.timer_id] = timer, block.height
        for receipt in block.receipts:
            if receipt.origin is Origin.TIMER:
                self.cycles_used += receipt.cycles_used
                self._add_fire(block, receipt)
        for timer_id, outcome, missing in endings(block):
            if timer_id in self._timers:
                self._add(timer_id, block.height, outcome, missing=missing)

    def forecast(self, from_height: int) -> QueueForecast:
        """Return what has been seen."""
        fork, waiting = self._fork, []
        for timer_id in self._timers:
            timer = fork.timer(timer_id)
            if timer is not None and timer.height <= fork.height:
                waiting.append(self._row(timer_id, None, WAITS, timer, why=outlook(fork, timer, None).text))
        return QueueForecast(
            from_height=from_height,
            last_height=fork.height,
            timers=(*self._rows, *waiting)[:TIMERS_MAX],
            has_more=self._has_more or len(self._rows) + len(waiting) > TIMERS_MAX,
            later=fork.timer_counts([fork.height + 1, U64_MAX + 1])[0],
        )

    def _add_fire(self, block: Block, receipt: ReceiptRecord) -> None:
        if receipt.timer_id not in self._timers:
            return
        payment: Payment | None = None
        if block.decisions is not None:
            in_lane = is_active(self._fork.rules().params, block.height)
            payment = payment_of(receipt, block.decisions, in_lane=in_lane)
        self._add(
            receipt.timer_id,
            block.height,
            FIRES if receipt.error is None else REVERTS,
            price_per_cycle=None if payment is None else payment.price_per_cycle,
            paid=receipt.fee_paid,
            error=receipt.error,
        )

    def _add(self, timer_id: bytes, height: int, outcome: str, **facts: object) -> None:
        timer, _ = self._timers[timer_id]
        why = self._reasons.pop(timer_id, "") if height > timer.height else ""
        self._rows.append(self._row(timer_id, height, outcome, timer, why=why, **facts))

    def _row(self, timer_id: bytes, height: int | None, outcome: str, timer: Timer, **facts: object) -> ForecastTimer:
        end = self._fork.height + 1 if height is None else height
        return extended(
            ForecastTimer,
            timer,
            timer_id=Hash32(timer_id),
            actor=Address(timer.actor),
            fee_payer=Address(timer.fee_payer),
            scheduled_at=self._timers[timer_id][1],
            outcome=outcome,
            block=height,
            delay=max(0, end - timer.height),
            **facts,
        )
