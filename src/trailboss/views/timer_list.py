"""Lists of timers, those that live and those that ended, as people ask for them: by actor, height, payer and state."""

from collections import deque
from collections.abc import Iterator
from itertools import chain as chained
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical
from trailboss.governance.rules import Rules
from trailboss.model import events as names
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer, asks_agent
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.mechanism.base import MechanismViews
from trailboss.views.mechanism.registry import TIMER_STATES, views_for
from trailboss.views.records import AGENT_FEES, FROZEN_FEES, TimerEntry, TimerView, block_events
from trailboss.views.shared_fields import extended

LIVE: Final = "live"
DUE: Final = "due"
DEFERRED: Final = "deferred"
ENDED: Final = ("fired", "expired", "unfunded", "cancelled")
ALL: Final = "all"
REVERTED: Final = "reverted"
"""What people read of a timer that fired and whose handler failed; its state is ``fired``. Spec: CIP-5 §5.4."""
STATES: Final = (LIVE, DUE, DEFERRED, "over-cap", "priced-out", "late", "queued", "in-mailbox", *ENDED, ALL)
"""Everything that can be asked for."""


class TimerFilter(Struct, frozen=True, kw_only=True):
    """Which timers to list."""

    # ``live`` (due and deferred ones too), ``due``, ``deferred``, ``over-cap`` or ``priced-out`` (live ones
    # that the active timer lane keeps waiting), ``late`` (live ones that the auction marked so), ``queued``
    # (live ones with a fire in Globalbox), ``in-mailbox`` (live ones with an entry there), one of the four ways
    # to end, or ``all``.
    state: str = LIVE
    actor: Address | None = None  # whose, if only those
    target: Address | None = None  # whose handler they call, if only those
    payer: Address | None = None  # paid by whom, if only those
    first: int = 0  # lowest height at which they are, or were, due
    last: int = U64_MAX  # highest


def list_timers(chain: ChainReader, wanted: TimerFilter) -> Iterator[TimerEntry]:
    """Yield the timers that a filter lets pass: live ones by height and insertion, then ended ones, the latest first.

    Complexity: live ones O(timers within the heights), one at a time; ended ones O(events) back to where the last one
    that is asked for was scheduled.
    """
    if wanted.state not in ENDED:
        yield from list_live(chain, wanted)
    if wanted.state == ALL or wanted.state in ENDED:
        yield from (entry for entry in _ended(chain) if _passes(entry, wanted))


def match_timer(chain: ChainReader, digits: str) -> list[Hash32]:
    """Return the ids of timers that begin with digits. O(1) for all 64 of a live one, else O(events of the chain)."""
    if len(digits) == 2 * Hash32.WIDTH and chain.timer(bytes.fromhex(digits)) is not None:
        return [Hash32.parse(digits)]
    # A timer of Globalbox may have the id of one that has been forgotten.
    records = chained.from_iterable(map(block_events, chain.blocks.eventful(0)))
    scheduled = (record.timer_id for record in records if record.name == names.TIMER_SCHEDULED)
    # Blocks that are not here have scheduled others.
    live = (timer.timer_id for timer in chain.timers()) if chain.blocks.base else ()
    return [Hash32(each) for each in dict.fromkeys(chained(scheduled, live)) if each.hex().startswith(digits)]


def unknown_words(chain: ChainReader, timer: str) -> str:
    """Return that a chain does not know a timer, in words: a node that joined a network may lack its blocks."""
    base = chain.blocks.base
    if not base:
        return f"the chain never had a timer {timer}"
    return f"no timer {timer} lives, and no block above {base}, where this node joined the network, scheduled it"


def list_live(chain: ChainReader, wanted: TimerFilter) -> Iterator[TimerEntry]:
    """Yield the live timers that a filter lets pass, in due order, one at a time. O(timers within the heights)."""
    last = last_height(chain, wanted)
    if wanted.first > last:
        return
    rules, views = chain.rules(), views_for(chain)
    for timer in chain.timers(wanted.first, last):
        entry = live_entry(timer_view(timer, chain.tier(timer), rules, views))
        if _passes(entry, wanted) and waits_so(entry, wanted.state):
            yield entry


def last_height(chain: ChainReader, wanted: TimerFilter) -> int:
    """Return the highest height at which a live timer can be due that a filter lets pass."""
    return min(wanted.last, chain.height) if wanted.state in (DUE, DEFERRED) else wanted.last


def waits_so(entry: TimerEntry, state: str) -> bool:
    """Return whether a live timer is in the state asked for, as far as `last_height` has not settled that."""
    own = TIMER_STATES.get(state)
    return own.holds(entry) if own is not None else state != DEFERRED or entry.state == DEFERRED


def timer_view(timer: Timer, tier: str, rules: Rules, views: MechanismViews) -> TimerView:
    """Return one live timer as people see it."""
    now, fees = rules.height - 1, timer.frozen_fees()
    max_fee, max_priority_fee = fees or (None, None)
    source = views.frozen_fees if fees else AGENT_FEES if asks_agent(timer.fees) else views.default_fees
    cell_fees = timer.cell_fees()
    is_short = cell_fees is not None and cell_fees[0] < rules.timer_basefees()[1]
    return extended(
        TimerView,
        timer,
        timer_id=Hash32(timer.timer_id),
        actor=Address(timer.actor),
        fee_payer=Address(timer.fee_payer),
        tier=DUE if timer.height <= now else tier,
        deferrals=max(0, now - timer.height + 1),
        deferred_for=timer.deferred_for or None,
        # A state watch stands in the calendar one block after its expiry.
        will_expire_unfired=timer.expires_at < timer.height and not views.is_watch(timer),
        fees=source,
        max_fee_per_cycle=max_fee,
        max_priority_fee_per_cycle=max_priority_fee,
        gas_bidding_agent=Address(timer.own_agent) if timer.own_agent else None,
        over_cap=views.is_over_cap(rules, timer),
        priced_out=is_short or (max_fee is not None and max_fee < views.fee_floor(rules)),
        **views.timer_details(timer, now),
    )


def live_entry(view: TimerView) -> TimerEntry:
    """Return a live timer as a list shows it."""
    target = view.actor if view.globalbox is None else view.globalbox.target
    tier = None if view.tier == DUE else view.tier
    return extended(TimerEntry, view, state=live_state(view), target=target, tier=tier)


def live_state(view: TimerView) -> str:
    """Return in which state a live timer is: what it waits for, if there is a word for that, else ``live``."""
    if view.deferred_for:
        return DEFERRED
    shown = (name for name, state in TIMER_STATES.items() if state.is_shown and state.holds(view))
    return next(shown, DUE if view.tier == DUE else LIVE)


class _Ending(Struct):
    """The end of a timer, until the search backwards comes to where the timer was scheduled."""

    state: str
    height: int
    reverted: bool
    moved: bytes | None = None
    entry: TimerEntry | None = None


def _ended(chain: ChainReader) -> Iterator[TimerEntry]:
    """Yield every timer that ended, the last one first: blocks are read backwards, on demand."""
    endings: deque[_Ending] = deque()
    unscheduled: dict[bytes, _Ending] = {}
    for block in chain.blocks.latest_eventful():
        for record in reversed(list(block_events(block))):
            if record.name in names.TIMER_ENDINGS:
                facts: Any = decode_canonical(record.data)
                reverted = facts.get("reverted", False)
                ending = _Ending(names.TIMER_ENDINGS[record.name], block.height, reverted=reverted)
                unscheduled[record.timer_id] = ending
                endings.append(ending)
            elif record.timer_id in unscheduled:
                _look_back(unscheduled, record)
        while endings and (entry := endings[0].entry) is not None:
            endings.popleft()
            yield entry


def _look_back(unscheduled: dict[bytes, _Ending], record: EventRecord) -> None:
    ending = unscheduled[record.timer_id]
    if record.name == names.TIMER_MOVED:
        ending.moved = ending.moved or record.data
    elif record.name == names.TIMER_SCHEDULED:
        del unscheduled[record.timer_id]
        last = decode_canonical(ending.moved or record.data)
        facts = decode_canonical(record.data)
        ending.entry = _ended_entry(record.emitter, facts, last, ending.state, ending.height, reverted=ending.reverted)


def _ended_entry(actor: bytes, facts: Any, last: Any, state: str, height: int, *, reverted: bool) -> TimerEntry:
    return TimerEntry(
        timer_id=Hash32(facts["timer_id"]),
        height=last["height"],
        state=state,
        actor=Address(actor),
        target=Address(facts.get("target", actor)),
        fee_payer=Address(facts["fee_payer"]),
        **{name: facts[name] for name in ("handler", "gas_limit", "expires_at")},
        ended_at=height,
        reverted=reverted,
        fees=FROZEN_FEES if "max_fee_per_cycle" in facts else None,
        max_fee_per_cycle=facts.get("max_fee_per_cycle"),
        max_priority_fee_per_cycle=facts.get("max_priority_fee_per_cycle"),
    )


def _passes(entry: TimerEntry, wanted: TimerFilter) -> bool:
    return (
        wanted.actor in (None, entry.actor)
        and wanted.target in (None, entry.target)
        and wanted.payer in (None, entry.fee_payer)
        and wanted.first <= entry.height <= wanted.last
        and (entry.ended_at is None or wanted.state in (ALL, entry.state))
    )
