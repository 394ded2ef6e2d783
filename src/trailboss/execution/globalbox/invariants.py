"""Whether Globalbox's records agree with one another, the slow way."""

from collections import Counter
from collections.abc import Iterable, Iterator

from trailboss.execution.globalbox.records import find_ended, read_globalbox, timers_of_target
from trailboss.execution.hooks import ReadableChain
from trailboss.model.configs import amount_of, decode_record
from trailboss.model.globalbox import EndedTimer, GlobalboxState, MailboxEntry, decode_entry
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import Timer
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.state.keys import ENDED_NUMBERS, FIRE_NUMBERS, MAILBOX, mailbox_key, mailbox_major
from trailboss.state.store import ReadableStore


def check_market(chain: ReadableChain) -> None:
    """Raise `InvariantError` unless the records of a chain's Globalbox agree with all others."""
    escrow = chain.balance(system_address(chain.params.governance.escrow_actor))
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
    numbered = list(_numbered(store, FIRE_NUMBERS, 2 * FIRE_NUMBERS))
    _check_numbers("fires in the mailbox", numbered, state.first, state.next)
    entries = [decode_entry(octets) for _, octets in numbered]
    for (number, _), entry in zip(numbered, entries, strict=True):
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
    numbered = list(_numbered(store, ENDED_NUMBERS, FIRE_NUMBERS))
    _check_numbers("ended timers", numbered, state.first_ended, state.next_ended)
    live, before = {timer.timer_id for timer in timers}, 0
    for number, octets in numbered:
        ended = decode_record(octets, EndedTimer)
        shown = Hash32(ended.timer_id)
        if find_ended(store.read, ended.timer_id) != ended:
            raise InvariantError(f"ended timer {number}, {shown}, is not found under its id")
        if ended.timer_id in live:
            raise InvariantError(f"timer {shown} is live and remembered as ended")
        if ended.ended_at < before:
            raise InvariantError(f"ended timer {number}, {shown}, lies behind one that ended later")
        before = ended.ended_at


def _numbered(store: ReadableStore, least: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of the keys of a range of numbers in the mailbox's namespace, ascending."""
    upper = mailbox_key(end) if end < 2 * FIRE_NUMBERS else None
    for key, octets in store.iterate(MAILBOX, mailbox_key(least), upper):
        yield mailbox_major(key) - least, octets


def _check_numbers(what: str, numbered: list[tuple[int, bytes]], first: int, end: int) -> None:
    if [number for number, _ in numbered] != list(range(first, end)):
        raise InvariantError(f"the {what} are not those numbered {first}..{end}")
