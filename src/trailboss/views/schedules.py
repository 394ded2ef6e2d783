"""Recurring timers of actors, from the slots that `trailboss.sdk` keeps, and their runs, from its events. D-115.

Slots and events are an actor's own. What is not of their form is not a schedule; what is can still be untrue.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.model.timers import Timer
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.recurrence import SCHEDULE_SLOT, RecurringTimer
from trailboss.state.keys import storage_key
from trailboss.state.slots import decode_slot
from trailboss.views.records import Event

WAITING: Final = "waiting"
PAUSED: Final = "paused"
LOST: Final = "lost"
"""State of a schedule whose timer the chain has removed; the same call of ``every`` brings it back."""


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A recurring timer of an actor. Heights, and spans in blocks."""

    actor: Address
    name: str
    state: str  # ``waiting``, ``paused``, or ``lost``: the chain has removed its timer
    handler: str
    blocks: int  # from one slot to the next
    align: str  # ``grid`` or ``drift``
    overlap: str  # ``skip`` or ``queue``
    catch_up: str  # ``one``, ``all`` or ``none``
    attempts: int  # how often a slot is tried
    backoff: int  # to the second attempt
    gas_limit: int | None  # cycles of a fire; None for the most that is allowed
    slot: int  # slot that comes next, or is tried again
    due: int | None  # height of the timer that waits; None without one
    timer_id: Hash32 | None  # the timer that waits
    attempt: int  # number of the attempt that waits
    last: int | None  # slot that ran last; None before the first
    ok: int  # slots whose run ended well
    failed: int  # slots whose last attempt failed
    missed: int  # slots that were overdue and not run
    skipped: int  # slots that came while an earlier one was tried again, in a pause, or before other terms


class RunView(Struct, frozen=True, kw_only=True):
    """A run of a schedule, slots that did not run, or the schedule's end, as the actor's event says."""

    block_height: int
    name: str  # of the schedule
    slot: int
    outcome: str  # ``ok``, ``retried``, ``failed``, ``missed``, ``skipped`` or ``stopped``
    late: int = 0  # blocks since the slot's height
    attempt: int = 1
    missed: int = 0  # overdue slots that this fire counted and did not run
    skipped: int = 0  # slots that ended without a run
    why: str = ""  # why it failed, was skipped or stopped


def schedules_of(chain: ChainReader, actor: Address) -> Iterator[ScheduleView]:
    """Yield an actor's recurring timers, by name. Complexity: O(log slots), and O(1) for each of them."""
    names = chain.store.slot_names(actor)
    for place in range(bisect_left(names, SCHEDULE_SLOT), len(names)):
        if not names[place].startswith(SCHEDULE_SLOT):
            break
        record = chain.store.read(storage_key(actor, names[place]))
        view = None if record is None else _schedule(chain, actor, decode_slot(record)[1])
        if view is not None:
            yield view


def all_schedules(chain: ChainReader) -> Iterator[ScheduleView]:
    """Yield the recurring timers of all actors, in order of address. Complexity: O(accounts)."""
    for address, account in chain.accounts():
        if account.code_hash:
            yield from schedules_of(chain, Address(address))


def runs_of(events: Iterable[Event]) -> Iterator[RunView]:
    """Yield the runs that events named `RUN_EVENT` are about, in their order."""
    for event in events:
        try:
            yield msgspec.convert({**event.data, "block_height": event.block_height}, RunView)
        except (msgspec.ValidationError, TypeError):
            continue


def _schedule(chain: ChainReader, actor: Address, content: bytes) -> ScheduleView | None:
    try:
        record = msgspec.json.decode(content, type=RecurringTimer)
    except msgspec.DecodeError:
        return None
    timer = _timer(chain, actor, record.timer_id)
    fields: dict[str, Any] = {**vars(record), "actor": actor, "due": None, "timer_id": None}
    if timer is not None:
        fields |= {"due": timer.height, "timer_id": Hash32(timer.timer_id)}
    state = PAUSED if record.is_paused else LOST if timer is None else WAITING
    return ScheduleView(
        state=state, **{name: fields[name] for name in ScheduleView.__struct_fields__ if name != "state"}
    )


def _timer(chain: ChainReader, actor: Address, digits: str) -> Timer | None:
    """Return the actor's live timer of an id, or None."""
    try:
        timer = chain.timer(Hash32.parse(digits))
    except Rejection:
        return None
    return timer if timer is not None and timer.actor == actor else None
