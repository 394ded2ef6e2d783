"""What a watchtower sees: the payers whose balances run out first, and the actors whose timers came to nothing.

Spec: CIP-1v3 §5, CIP-1v3 §13.1
Decision: D-98
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.forecast.runway import runway_of
from trailboss.model.blocks import Block, Origin, Status
from trailboss.model.events import TIMER_ENDINGS, TIMER_EXPIRED, TIMER_UNFUNDED
from trailboss.primitives.octets import Address
from trailboss.views.mechanism.lane_records import lane_status
from trailboss.views.mechanism.registry import views_for
from trailboss.views.recent_blocks import BLOCKS, RecentBlock, recent_blocks
from trailboss.views.records import block_events
from trailboss.views.shared_fields import extended

PAID_TIMERS_MAX: Final = 256
"""Timers of a payer that are looked at, the lowest heights first: enough to see 255 fires ahead."""
WITHIN_MAX: Final = PAID_TIMERS_MAX - 1  # most fires that a watchtower looks ahead
PAYERS_SHOWN: Final = 20
UNFUNDED: Final = TIMER_ENDINGS[TIMER_UNFUNDED]
EXPIRED: Final = TIMER_ENDINGS[TIMER_EXPIRED]
REVERTED: Final = Status.REVERTED.value
FAILURES: Final = (UNFUNDED, EXPIRED, REVERTED)
"""How a timer can fail: every end but a fire that ends well and a cancellation."""


class WatchedPayer(Struct, frozen=True, kw_only=True):
    """A payer, or an actor whose timers came to nothing lately. Money is base units."""

    payer: Address  # who
    balance: int  # what it holds after the last block
    timers: int  # live timers that it has yet to pay for, at most 256, those that cannot fire left out
    has_more: bool  # whether it has more than that
    # Fires that it still pays for at the present basefees before one finds too little; None if none does as things
    # stand.
    fires_left: int | None
    blocks_left: int | None  # blocks until then; None likewise
    dry_at: int | None  # block in which a timer finds too little; None likewise
    required: int  # what that timer needs to start; 0 if there is none
    available: int  # what it finds
    unfunded: int  # its own timers that ended unfunded in the recent blocks
    expired: int  # its own timers that expired in them
    reverted: int  # fires of its own timers that were reverted in them

    @property
    def nearness(self) -> tuple[float, float, int, bytes]:
        """What payers are sorted by: the shortest runway first, in fires and then in blocks; then by failures."""
        fires, blocks = self.fires_left, self.blocks_left
        failures = self.unfunded + self.expired + self.reverted
        return inf if fires is None else fires, inf if blocks is None else blocks, -failures, self.payer

    def with_failures(self, counts: Mapping[str, int]) -> Self:
        """Return it with what `count_failures` gives for it."""
        own = {name: counts.get(name, 0) for name in FAILURES}
        return self if all(getattr(self, name) == own[name] for name in FAILURES) else replace(self, **own)

    def is_near(self, within: int) -> bool:
        """Return whether it pays for at most ``within`` more fires."""
        return self.fires_left is not None and self.fires_left <= within


class Watch(Struct, frozen=True, kw_only=True):
    """What there is to see after one block. Money is base units."""

    height: int  # the last block
    first_block: int  # the recent blocks looked at begin here …
    last_block: int  # … and end here; below ``first_block`` on a chain without a block
    cycle_basefee: int  # cycle basefee of a fire in the next block
    cell_basefee: int  # cell basefee of a fire
    lane_basefee: int | None  # lane basefee, added to it; None unless the timer lane is active
    burned: int  # what fires burned in the last block
    burned_recently: int  # what they burned in the recent blocks
    known: int  # how many payers with live timers have been looked at
    # Those with the shortest runway first; then those that never run dry as things stand.
    payers: tuple[WatchedPayer, ...]


def look(chain: ChainReader, *, limit: int = PAYERS_SHOWN, blocks: int = BLOCKS) -> Watch:
    """Look at all payers of a chain, and return the first of them.

    Complexity: O(live timers), and what `runway_of` takes for each payer.

    Raises:
        Rejection: ``INVALID_INPUT`` for a number of blocks that `recent_blocks` refuses.
    """
    recent = recent_blocks(chain, blocks)
    timers: dict[bytes, list[bytes]] = {}
    is_paid = views_for(chain).is_paid
    for timer in chain.timers():
        ids = timers.setdefault(timer.fee_payer, [])
        # One more, so that it is known whether there are more.
        if len(ids) <= PAID_TIMERS_MAX and not is_paid(timer):
            ids.append(timer.timer_id)
    failures = count_failures(each.block for each in recent)
    payers = [look_at(chain, payer, ids, recent, failures) for payer, ids in timers.items()]
    payers += [look_at(chain, actor, (), recent, failures) for actor in failures if actor not in timers]
    return watch_of(chain, payers, recent, limit)


def look_at(
    chain: ChainReader,
    payer: bytes,
    timers: Iterable[bytes],
    recent: Sequence[RecentBlock],
    failures: Mapping[bytes, Mapping[str, int]],
) -> WatchedPayer:
    """Look at one payer: at the first live timers that it pays for, by height and insertion, and at its failures."""
    runway = runway_of(chain, payer, most=PAID_TIMERS_MAX, timers=timers, recent=recent, reaches=1)
    [reach] = runway.reaches
    counts = failures.get(payer, {})
    return extended(
        WatchedPayer,
        reach,
        payer=runway.payer,
        balance=runway.balance,
        timers=runway.timers - runway.stuck,
        has_more=runway.has_more,
        fires_left=None if reach.dry_at is None else reach.fires,
        blocks_left=None if reach.dry_at is None else reach.dry_at - runway.height,
        **{name: counts.get(name, 0) for name in FAILURES},
    )


def watch_of(chain: ChainReader, payers: Iterable[WatchedPayer], recent: Sequence[RecentBlock], limit: int) -> Watch:
    """Return what there is to see of a chain whose payers have been looked at."""
    rules = chain.rules()
    cycle, cell = rules.timer_basefees()
    found = sorted(payers, key=lambda each: each.nearness)
    return Watch(
        height=chain.height,
        first_block=recent[0].block.height if recent else rules.height,
        last_block=chain.height,
        cycle_basefee=cycle,
        cell_basefee=cell,
        lane_basefee=lane_status(rules).basefee,
        burned=burned_by_fires(chain.head),
        burned_recently=sum(burned_by_fires(each.block) for each in recent),
        known=sum(each.timers > 0 for each in found),
        payers=tuple(islice(found, limit)),
    )


def burned_by_fires(block: Block) -> int:
    """Return what the fires of a block burned, base units."""
    return sum(receipt.fee_burned for receipt in block.receipts if receipt.origin is Origin.TIMER)


def count_failures(blocks: Iterable[Block]) -> dict[bytes, Counter[str]]:
    """Return by actor how many of its timers failed in some blocks, by `FAILURES`. Complexity: O(receipts + events)."""
    found: dict[bytes, Counter[str]] = {}
    for block in blocks:
        for event in block_events(block):
            if event.name in (TIMER_UNFUNDED, TIMER_EXPIRED):
                found.setdefault(event.emitter, Counter())[TIMER_ENDINGS[event.name]] += 1
        for receipt in block.receipts:
            if receipt.origin is Origin.TIMER and receipt.status is Status.REVERTED:
                found.setdefault(receipt.sender, Counter())[REVERTED] += 1
    return found
