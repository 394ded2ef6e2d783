"""What people look at under Globalbox: its timers, the queued fires, the mailbox, and timers that have ended."""

from collections import Counter
from heapq import nsmallest

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.execution.globalbox.market import age_weight, clock_at
from trailboss.execution.globalbox.records import find_ended, mailbox_entries
from trailboss.governance.rules import Rules
from trailboss.mechanisms.globalbox.fires import position_of
from trailboss.model.configs import MarketKind, amount_of
from trailboss.model.globalbox import FRACTION_BITS, GlobalboxState, MailboxEntry, TimerStatus, bid_of, standing_of
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import Timer, terms_of
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.shared_fields import extended


class QueuedView(Struct, frozen=True, kw_only=True):
    """A fire in Globalbox, as its timer's record has it."""

    standing: int  # where it stands, in units of 2⁻⁹⁶: the greater comes first, and it never changes
    bucket: int  # priority bucket; the greater comes first among equal standings
    cursor: int  # round-robin place among its target's fires of one block; the lesser comes first after that
    hit_height: int  # height from which its age counts
    queued_at: int  # block that queued it
    matched_keys: tuple[bytes, ...]  # watched keys that were modified, ascending; empty for a height
    payload: bytes  # what it will be delivered with
    gas_limit: int  # likewise
    bid_fp: int  # likewise, Q32.96
    bid: int  # its whole part: the tip, base units per cycle


class GlobalboxTimer(Struct, frozen=True, kw_only=True):
    """What Globalbox keeps with a live timer. Spec: CIP-5old §5.1."""

    kind: str  # ``HEIGHT`` or ``STATE_WATCH``
    target: Address  # actor whose handler runs
    due_height: int | None  # at which it is due; None for a state watch
    watch_keys: tuple[bytes, ...]  # prefixes of the keys that it watches, ascending; empty for a height
    expiry_height: int  # last height at which it may fire
    bid_fp: int  # q32.96
    bid: int  # its whole part: the tip, base units per cycle
    client_nonce: bytes  # what its owner named it with; empty for nothing
    fire_seq: int  # fires materialized so far
    last_fire_height: int | None  # block of the last of them; None for none
    status: str  # ``ACTIVE``
    fire: QueuedView | None  # the one that waits in Globalbox, if any
    in_mailbox: int  # entries that wait in the mailbox


class FireView(Struct, frozen=True, kw_only=True):
    """A fire at its place in Globalbox. Spec: CIP-5old §8.2."""

    place: int  # in the order of all queued fires, from 1
    ahead_of_target: int  # how many before it are for the same target
    timer_id: Hash32  # whose fire
    fire_seq: int  # which one, from 0
    owner: Address  # who pays
    target: Address  # actor whose handler will run
    kind: str  # ``HEIGHT`` or ``STATE_WATCH``
    score: int  # in the next block, in units of 2⁻⁹⁶: its standing and the age clock
    fire: QueuedView  # what its timer's record has


class TriggerView(Struct, frozen=True, kw_only=True):
    """What made a timer fire: ``trigger_ctx`` of the draft. Spec: CIP-5old §9.1."""

    kind: str  # ``HEIGHT`` or ``STATE_WATCH``
    due_height: int | None  # at which it was due; None for a state watch
    matched_keys: tuple[bytes, ...]  # watched keys that were modified, ascending; empty for a height


class MailboxView(Struct, frozen=True, kw_only=True):
    """An entry that waits in the mailbox. Spec: CIP-5old §9.1."""

    deliver_id: Hash32  # 32 bytes, unique
    deliver_seq: int  # its place in the order of execution over the whole chain
    target: Address  # actor whose handler will run
    payload: bytes  # what the handler will get
    gas_limit: int  # cycles it may use
    bid_fp: int  # q32.96
    bid: int  # its whole part: the tip, base units per cycle
    trigger: TriggerView  # what made the timer fire
    timer_id: Hash32  # whose fire
    owner: Address  # who set the timer, and pays
    fire_seq: int  # which fire of the timer, from 0
    hit_height: int  # the due height, or that of the block whose change hit it
    materialized_at: int  # block that put it here
    reserved: int  # base units that its owner has paid for it; what it does not use returns when it has run


class EndedView(Struct, frozen=True, kw_only=True):
    """What is remembered of a timer that has ended. Spec: CIP-5old §14. Decision: D-64."""

    timer_id: Hash32  # its id, which is taken until this is collected
    owner: Address  # who had set it
    target: Address  # actor whose handler it called
    kind: str  # ``HEIGHT`` or ``STATE_WATCH``
    status: str  # ``CANCELLED`` if it was cancelled, ``COMPLETED`` otherwise
    fire_seq: int  # fires materialized
    last_fire_height: int | None  # block of the last of them; None for none
    ended_at: int  # block in which it ended
    collected_after: int  # last block, at least, in which it is remembered


def globalbox_timer(timer: Timer, terms: GlobalboxTerms) -> GlobalboxTimer:
    """Return what Globalbox keeps with a live timer, as people see it."""
    bid = bid_of(terms.bid)
    return extended(
        GlobalboxTimer,
        terms,
        kind=terms.kind.value,
        target=Address(terms.target),
        due_height=_due_height(timer, terms),
        expiry_height=timer.expires_at,
        bid_fp=bid,
        bid=bid >> FRACTION_BITS,
        last_fire_height=terms.last_fire_height or None,
        status=TimerStatus.ACTIVE.value,
        fire=None if terms.fire is None else _queued_view(terms.fire),
    )


def _mailbox_view(entry: MailboxEntry) -> MailboxView:
    timer, terms = entry.timer, terms_of(entry.timer, GlobalboxTerms)
    bid = bid_of(terms.bid)
    return extended(
        MailboxView,
        entry,
        deliver_id=Hash32(entry.deliver_id),
        target=Address(terms.target),
        payload=timer.payload,
        gas_limit=timer.gas_limit,
        bid_fp=bid,
        bid=bid >> FRACTION_BITS,
        trigger=TriggerView(
            kind=terms.kind.value, due_height=_due_height(timer, terms), matched_keys=entry.matched_keys
        ),
        timer_id=Hash32(timer.timer_id),
        owner=Address(timer.actor),
        reserved=amount_of(entry.reserved),
    )


def _due_height(timer: Timer, terms: GlobalboxTerms) -> int | None:
    return timer.height if terms.kind is Trigger.HEIGHT else None


def _queued_view(fire: QueuedFire) -> QueuedView:
    bid = bid_of(fire.bid)
    standing = standing_of(fire.standing)
    return extended(QueuedView, fire, standing=standing, bid_fp=bid, bid=bid >> FRACTION_BITS)


def _fire_view(timer: Timer, place: int, ahead: int, clock: int) -> FireView:
    terms = terms_of(timer, GlobalboxTerms)
    if terms.fire is None:
        raise InvariantError(f"timer {timer.timer_id.hex()} has no fire in Globalbox")
    view = _queued_view(terms.fire)
    return FireView(
        place=place,
        ahead_of_target=ahead,
        timer_id=Hash32(timer.timer_id),
        fire_seq=terms.fire_seq,
        owner=Address(timer.actor),
        target=Address(terms.target),
        kind=terms.kind.value,
        score=view.standing + clock,
        fire=view,
    )


class GlobalboxStatus(Struct, frozen=True, kw_only=True):
    """Globalbox after a block. Spec: CIP-5old §8."""

    queued: int  # fires that stand in it
    mailbox: int  # entries that wait in the mailbox
    next_deliver_seq: int  # number that the next entry of the mailbox gets
    ended_remembered: int  # ended timers that are remembered
    governance_epoch: int  # number of the next block's governance epoch
    next_governance_epoch_at: int  # first block of the one after it


def globalbox_status(rules: Rules) -> GlobalboxStatus | None:
    """Return the status of Globalbox by the rules of the next block, or None."""
    if rules.market.kind is not MarketKind.GLOBALBOX:
        return None
    state = rules.market.kept(GlobalboxState)
    length = rules.params.globalbox.epoch_blocks
    return GlobalboxStatus(
        queued=state.queued,
        mailbox=state.next - state.first,
        next_deliver_seq=state.next,
        ended_remembered=state.next_ended - state.first_ended,
        governance_epoch=rules.height // length,
        next_governance_epoch_at=(rules.height // length + 1) * length,
    )


def globalbox_of(chain: ChainReader, limit: int | None = None) -> list[FireView]:
    """Return the queued fires in their order, at most ``limit`` from the head of the queue. Spec: CIP-5old §8.2.

    Complexity: O(live timers + fires · log limit) if any fire is queued: the state keeps fires with their timers.

    Raises:
        Rejection: ``NOT_FOUND`` if the chain has no Globalbox.
    """
    state, rules = _state_of(chain), chain.rules()
    if not state.queued:
        return []
    rows = (
        (position_of(timer, timer.terms.fire), timer)
        for timer in chain.timers()
        if isinstance(timer.terms, GlobalboxTerms) and timer.terms.fire is not None
    )
    first = sorted(rows) if limit is None else nsmallest(limit, rows)
    clock, ahead, found = clock_at(state, rules.height, age_weight(rules)), Counter[bytes](), []
    for place, (_, timer) in enumerate(first, start=1):
        found.append(_fire_view(timer, place, ahead[timer.target], clock))
        ahead[timer.target] += 1
    return found


def mailbox_of(chain: ChainReader, target: bytes | None = None) -> list[MailboxView]:
    """Return the entries that wait in the mailbox, for one actor if given, in the order in which they will run.

    Spec: CIP-5old §9. Complexity: O(entries).

    Raises:
        Rejection: ``NOT_FOUND`` if the chain has no Globalbox.
    """
    _state_of(chain)
    entries = mailbox_entries(chain.store.read)
    return [_mailbox_view(entry) for entry in entries if target in (None, entry.timer.target)]


def ended_timer_of(chain: ChainReader, timer_id: bytes) -> EndedView | None:
    """Return what is remembered of a timer of Globalbox that has ended, or None. Decision: D-64."""
    found = find_ended(chain.store.read, timer_id)
    if found is None:
        return None
    return extended(
        EndedView,
        found,
        timer_id=Hash32(found.timer_id),
        owner=Address(found.owner),
        target=Address(found.target),
        kind=found.kind.value,
        status=found.status.value,
        last_fire_height=found.last_fire_height or None,
        collected_after=found.ended_at + chain.rules().params.globalbox.ended_kept_blocks,
    )


def key_words(key: bytes) -> str:
    """Return a watched key, or the beginning of several: the actor, and what follows of the slot's name."""
    address, slot = Address(key[: Address.WIDTH]), key[Address.WIDTH :]
    if not slot:
        return f"any slot of {address}"
    return f"slot {slot.decode()!r} of {address}" if slot.isascii() else f"slot 0x{slot.hex()} of {address}"


def bid_words(bid: bytes) -> str:
    """Return a bid of Globalbox in words; its whole part is the tip. Decision: D-63."""
    whole, fraction = divmod(bid_of(bid), 1 << FRACTION_BITS)
    return f"a bid of {whole:,} a cycle{' and a fraction' if fraction else ''}"


def _state_of(chain: ChainReader) -> GlobalboxState:
    market = chain.rules().market
    if market.kind is not MarketKind.GLOBALBOX:
        raise Rejection(RejectionReason.NOT_FOUND, "this chain has no Globalbox: another mechanism was chosen for it")
    return market.kept(GlobalboxState)
