"""What the state holds of Globalbox beside the timers: running numbers, counts by target, and timers that have ended.

Spec: CIP-5old §5.1, CIP-5old §5.3, CIP-5old §14
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from trailboss.execution.session import BlockSession, ReadableChain, change_count, read_count
from trailboss.execution.timers import load_timer
from trailboss.governance.markets import GLOBALBOX_KEY, MarketTerms
from trailboss.governance.parameters import Read
from trailboss.governance.rules import Rules
from trailboss.model.configs import SchedulerTotals, amount_of, decode_record, encode_record, held
from trailboss.model.globalbox import EndedTimer, GlobalboxState, MailboxEntry, TimerStatus, decode_entry
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import Timer, TimerEnd, terms_of
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.state.keys import (
    ENDED_NUMBERS,
    FIRE_NUMBERS,
    MAILBOX,
    config_key,
    ended_key,
    fire_key,
    mailbox_key,
    mailbox_major,
)
from trailboss.state.store import ReadableStore

NUMBER_WIDTH: Final = 8
ENDED_COLLECTED_MIN: Final = 16
"""Ended timers that a block may collect whatever its clean-up budget has left. Decision: D-64."""


def read_globalbox(read: Read) -> GlobalboxState:
    """Return the running numbers; `InvariantError` if there are none, which a chain has from genesis on."""
    return held(read, GLOBALBOX_KEY, GlobalboxState, "record of Globalbox")


def write_globalbox(session: BlockSession, state: GlobalboxState) -> None:
    """Write the running numbers; they go back with the frame or transaction that has changed them."""
    session.overlay.write(GLOBALBOX_KEY, encode_record(state))


def change_globalbox(session: BlockSession, **changes: int) -> None:
    """Move some of the running numbers, each by so much."""
    state = read_globalbox(session.overlay.read)
    moved = {name: getattr(state, name) + change for name, change in changes.items()}
    write_globalbox(session, msgspec.structs.replace(state, **moved))


# The mailbox


def mailbox_entries(read: Read) -> Iterator[MailboxEntry]:
    """Yield the entries of the mailbox in the order of deliver_seq; those yielded may be taken out meanwhile."""
    state = read_globalbox(read)
    for number in range(state.first, state.next):
        octets = read(fire_key(number))
        if octets is None:
            raise InvariantError(f"the mailbox holds no fire {number}, of {state.first}..{state.next}")
        yield decode_entry(octets)


def is_executing(timer: Timer) -> bool:
    """Return whether a height timer has gone to the mailbox, from where nothing calls it back. Spec: CIP-5old §6.2."""
    terms = timer.terms
    return isinstance(terms, GlobalboxTerms) and terms.kind is Trigger.HEIGHT and terms.in_mailbox > 0


# Live timers of a target


def target_key(target: bytes) -> bytes:
    """Return the state key of a target's count; ``target`` is an address."""
    return config_key(b"globalbox:target:" + target)


def timers_of_target(read: Read, target: bytes) -> int:
    """Return how many live timers call an actor."""
    return read_count(read, target_key(target))


# Timers that have ended


def pointer_key(timer_id: bytes) -> bytes:
    """Return the state key under which the number of an ended timer lies."""
    return config_key(b"globalbox:ended:" + timer_id)


def find_ended(read: Read, timer_id: bytes) -> EndedTimer | None:
    """Return what is remembered of an ended timer, or None."""
    pointer = read(pointer_key(timer_id))
    return None if pointer is None else read_ended(read, int.from_bytes(pointer, "big"))


def read_ended(read: Read, number: int) -> EndedTimer:
    """Return the ended timer of that number, which the state holds."""
    return held(read, ended_key(number), EndedTimer, f"ended timer {number}")


def leave_globalbox(session: BlockSession, timer: Timer, end: TimerEnd) -> None:
    """Take a timer that ends out of every count, with its queued fire, and remember it.

    Spec: CIP-5old §5.1, CIP-5old §14. Decision: D-64
    """
    timer = load_timer(session, timer.height, timer.timer_id)
    terms = terms_of(timer, GlobalboxTerms)
    change_count(session, target_key(terms.target), -1)
    ended = EndedTimer(
        timer_id=timer.timer_id,
        owner=timer.actor,
        target=terms.target,
        kind=terms.kind,
        status=TimerStatus.CANCELLED if end is TimerEnd.CANCELLED else TimerStatus.COMPLETED,
        fire_seq=terms.fire_seq,
        last_fire_height=terms.last_fire_height,
        ended_at=session.context.height,
    )
    number = read_globalbox(session.overlay.read).next_ended
    session.overlay.write(ended_key(number), encode_record(ended))
    session.overlay.write(pointer_key(timer.timer_id), number.to_bytes(NUMBER_WIDTH, "big"))
    change_globalbox(session, next_ended=1, queued=0 if terms.fire is None else -1)


def collect_ended(session: BlockSession) -> None:
    """Forget the oldest ended timers whose time is over, within the clean-up budget. Complexity: O(1) a timer.

    Spec: CIP-5old §14. Decision: D-64
    """
    rules = session.context.rules
    price = rules.params.timers.gc_cycles_per_timer
    removed = session.ends.expired + session.ends.unfunded
    most = max(ENDED_COLLECTED_MIN, rules.timer.gc_cycles_per_block // price - removed)
    state = read_globalbox(session.overlay.read)
    number = state.first_ended
    while number < min(state.next_ended, state.first_ended + most):
        ended = read_ended(session.overlay.read, number)
        if session.context.height < collected_at(ended, rules.params.globalbox.ended_kept_blocks):
            break
        session.overlay.delete(ended_key(number))
        session.overlay.delete(pointer_key(ended.timer_id))
        number += 1
    if number != state.first_ended:
        write_globalbox(session, msgspec.structs.replace(state, first_ended=number))


def collected_at(ended: EndedTimer, kept_blocks: int) -> int:
    """Return the first block in which an ended timer may be collected. Decision: D-64."""
    return ended.ended_at + kept_blocks + 1


def box_counts(session: BlockSession) -> Mapping[str, int]:
    """Return how many fires are queued after the deliveries, and how many entries wait in the mailbox."""
    state = read_globalbox(session.overlay.read)
    return {"queued": state.queued, "in_mailbox": state.next - state.first}


def fires_of_box(terms: MarketTerms, totals: SchedulerTotals) -> int:
    """Return how many fires have run, those of state watches included, which end no timer."""
    del totals
    return terms.kept(GlobalboxState).first


def first_to_collect(rules: Rules, read: Read) -> int | None:
    """Return the first block in which the oldest ended timer may be collected; None if none is remembered."""
    state = read_globalbox(read)
    if state.first_ended == state.next_ended:
        return None
    return collected_at(read_ended(read, state.first_ended), rules.params.globalbox.ended_kept_blocks)


def check_market(chain: ReadableChain) -> None:
    """Raise `InvariantError` unless the records of a chain's Globalbox agree with all others."""
    escrow = chain.balance(system_address(chain.rules().params.governance.escrow_actor))
    check_globalbox(chain.store, chain.timers(), (address for address, _ in chain.accounts()), escrow)


def check_globalbox(store: ReadableStore, timers: Iterable[Timer], addresses: Iterable[bytes], escrow: int) -> None:
    """Raise `InvariantError` unless running numbers, counts by target, mailbox and ended timers fit all records.

    Every target is an account. ``escrow`` is the balance that keeps what waiting entries have been paid.
    """
    live = list(timers)
    state = read_globalbox(store.read)
    entries = _check_entries(store, state)
    reserved = sum(amount_of(entry.reserved) for entry in entries)
    if reserved > escrow:
        raise InvariantError(f"entries in the mailbox have been paid {reserved} base units, and {escrow} are there")
    _check_timers(live, entries, state)
    _check_targets(store, live, addresses)
    _check_ended(store, live, state)


def _check_entries(store: ReadableStore, state: GlobalboxState) -> list[MailboxEntry]:
    """Check that the mailbox holds exactly ``first..next``, and no delivery twice; return what it holds."""
    found = _numbered(store, "fires in the mailbox", FIRE_NUMBERS, state.first, state.next)
    entries = [decode_entry(octets) for octets in found]
    for number, entry in enumerate(entries, state.first):
        if entry.deliver_seq != number:
            raise InvariantError(f"fire {entry.deliver_seq} lies in the mailbox as number {number}")
    if len({entry.deliver_id for entry in entries}) != len(entries):
        raise InvariantError("the mailbox holds two fires with one deliver_id")
    return entries


def _check_timers(timers: list[Timer], entries: list[MailboxEntry], state: GlobalboxState) -> None:
    waiting = Counter((entry.timer.timer_id, entry.timer.sequence) for entry in entries)
    queued = 0
    for timer in timers:
        terms, shown = timer.terms, Hash32(timer.timer_id)
        if not isinstance(terms, GlobalboxTerms):
            raise InvariantError(f"timer {shown} is no timer of Globalbox")
        found = waiting[timer.timer_id, timer.sequence]
        if terms.in_mailbox != found:
            raise InvariantError(f"timer {shown} counts {terms.in_mailbox} fires in the mailbox and has {found}")
        queued += terms.fire is not None
        if terms.kind is Trigger.HEIGHT and terms.fire_seq + (terms.fire is not None) > 1:
            raise InvariantError(f"height timer {shown} has more than one fire")
    if queued != state.queued:
        raise InvariantError(f"Globalbox counts {state.queued} fires and {queued} timers have one there")


def _check_targets(store: ReadableStore, timers: list[Timer], addresses: Iterable[bytes]) -> None:
    counts = Counter(timer.target for timer in timers)
    for address in addresses:
        counted = timers_of_target(store.read, address)
        if counted != counts.pop(address, 0):
            raise InvariantError(f"target {Address(address)} counts {counted} timers and has another number of them")
    if counts:
        raise InvariantError(f"target {Address(min(counts))} has timers and no account")


def _check_ended(store: ReadableStore, timers: list[Timer], state: GlobalboxState) -> None:
    found = _numbered(store, "ended timers", ENDED_NUMBERS, state.first_ended, state.next_ended)
    live, before = {timer.timer_id for timer in timers}, 0
    for number, octets in enumerate(found, state.first_ended):
        ended = decode_record(octets, EndedTimer)
        shown = Hash32(ended.timer_id)
        if find_ended(store.read, ended.timer_id) != ended:
            raise InvariantError(f"ended timer {number}, {shown}, is not found under its id")
        if ended.timer_id in live:
            raise InvariantError(f"timer {shown} is live and remembered as ended")
        if ended.ended_at < before:
            raise InvariantError(f"ended timer {number}, {shown}, lies behind one that ended later")
        before = ended.ended_at


def _numbered(store: ReadableStore, what: str, least: int, first: int, end: int) -> list[bytes]:
    """Return what the mailbox's namespace holds from a number on; it must be ``first..end``, counted from there."""
    upper = mailbox_key(2 * least) if least < FIRE_NUMBERS else None
    found = list(store.iterate(MAILBOX, mailbox_key(least), upper))
    if [mailbox_major(key) - least for key, _ in found] != list(range(first, end)):
        raise InvariantError(f"the {what} are not those numbered {first}..{end}")
    return [octets for _, octets in found]
