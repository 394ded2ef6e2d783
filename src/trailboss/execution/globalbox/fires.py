"""A fire's way: into Globalbox, into the mailbox, out of it. Spec: CIP-5old §5.3, CIP-5old §9, CIP-5old §10."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from trailboss.crypto.digest import domain_digest
from trailboss.execution.globalbox.records import change_globalbox, read_globalbox
from trailboss.execution.session import BlockSession, timer_event
from trailboss.execution.timers import find_record, load_timer, remove_timer, write_timer
from trailboss.mechanisms.base import Decision
from trailboss.model.blocks import ReceiptRecord
from trailboss.model.configs import amount_octets, amount_of
from trailboss.model.events import TIMER_FIRE_RECEIPT, TIMER_MATERIALIZED, TIMER_QUEUED, EventRecord
from trailboss.model.globalbox import MailboxEntry, encode_entry, standing_of
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import Timer, TimerEnd, terms_of
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.primitives.units import Cells, Height
from trailboss.state.keys import fire_key

DELIVER_ID: Final = b"globalbox-deliver-v1"


def enqueue_fire(session: BlockSession, decision: Decision) -> None:
    """Insert a candidate's fire where ``decision.fire`` says. Spec: CIP-5old §5.3, CIP-5old §8.3."""
    # CHECK
    timer, terms = _load(session, decision.timer)
    if decision.fire is None or terms.fire is not None:
        raise InvariantError(f"fire {terms.fire_seq} of timer {Hash32(timer.timer_id)} cannot enter Globalbox again")
    # RUN
    _rewrite(session, timer, terms, fire=decision.fire)
    change_globalbox(session, queued=1)
    facts = {"fire_seq": terms.fire_seq, "hit_height": decision.fire.hit_height, "standing": decision.fire.standing}
    session.emit(TIMER_QUEUED, timer, facts)


def materialize_fire(session: BlockSession, decision: Decision) -> None:
    """Move a queued fire to the end of the mailbox, with its own id and number; no actor's storage is touched.

    The timer's record gives the fire up, so none is materialized twice. The owner pays the most that it may cost, at
    the prices of this block, into an escrow account.

    Spec: CIP-5old §9.1, CIP-5old §9.2. Decision: D-63
    """
    # CHECK
    timer, terms = _load(session, decision.timer)
    fire = terms.fire
    if fire is None or fire != decision.fire:
        raise InvariantError(f"timer {Hash32(timer.timer_id)} has no such fire in Globalbox to be materialized")
    # CHARGE
    session.ledger.transfer(timer.fee_payer, escrow_address(session), decision.max_cost)
    # RUN
    height = session.context.height
    entry = MailboxEntry(
        deliver_id=deliver_id(height, session.context.parent_state_root, timer.timer_id, terms.fire_seq),
        deliver_seq=read_globalbox(session.overlay.read).next,
        timer=_delivered(timer, terms, fire),
        fire_seq=terms.fire_seq,
        hit_height=fire.hit_height,
        matched_keys=fire.matched_keys,
        materialized_at=Height(height),
        reserved=amount_octets(decision.max_cost),
        cycle_basefee=amount_octets(decision.prices.cycle_basefee),
        cell_basefee=amount_octets(decision.prices.cell_basefee),
        cells_limit=session.context.rules.timer.max_cells_per_fire,
    )
    session.overlay.write(fire_key(entry.deliver_seq), encode_entry(entry))
    _rewrite(
        session,
        timer,
        terms,
        fire=None,
        fire_seq=terms.fire_seq + 1,
        last_fire_height=height,
        in_mailbox=terms.in_mailbox + 1,
    )
    change_globalbox(session, queued=-1, next=1)
    facts = {
        "deliver_id": entry.deliver_id,
        "deliver_seq": entry.deliver_seq,
        "fire_seq": entry.fire_seq,
        "target": terms.target,
        "reserved": decision.max_cost,
    }
    session.emit(TIMER_MATERIALIZED, timer, facts)


def take_fire(session: BlockSession, decision: Decision) -> Cells:
    """Take the entry of a fire out of the mailbox; it has been paid for when it was materialized. Decision: D-63."""
    entry = _entry_of(decision)
    take_entry(session, entry)
    return entry.cells_limit


def take_entry(session: BlockSession, entry: MailboxEntry) -> None:
    """Take the mailbox's first entry out, with its escrow, and its timer if that ends.

    Spec: CIP-5old §10. Decision: D-31, D-63
    """
    timer = _take(session, entry)
    session.ledger.debit(escrow_address(session), amount_of(entry.reserved))
    if timer is not None and entry.is_last:
        remove_timer(session, timer, TimerEnd.FIRED)
        session.take_out(timer)


def escrow_address(session: BlockSession) -> Address:
    """Return the account that keeps what waiting entries have been paid. Decision: D-63."""
    return system_address(session.context.rules.params.governance.escrow_actor)


def ends_with(decision: Decision) -> bool:
    """Return whether a timer ends with a fire: a height timer does, a watch does not."""
    return _entry_of(decision).is_last


def fire_receipt(decision: Decision, receipt: ReceiptRecord) -> tuple[EventRecord]:
    """Return the TimerFireReceipt of an entry that has run. Spec: CIP-5old §9.2."""
    entry = _entry_of(decision)
    timer, kind = entry.timer, Trigger.HEIGHT if entry.is_last else Trigger.STATE_WATCH
    facts = {
        "deliver_id": entry.deliver_id,
        "deliver_seq": entry.deliver_seq,
        "fire_seq": entry.fire_seq,
        "target": timer.target,
        "kind": str(kind),
        "due_height": entry.hit_height if kind is Trigger.HEIGHT else 0,
        "matched_keys": entry.matched_keys,
        "status": str(receipt.status),
        "cycles_used": receipt.cycles_used,
    }
    return (timer_event(TIMER_FIRE_RECEIPT, timer, facts),)


def delivery_facts(decision: Decision) -> dict[str, object]:
    """Return the facts of its delivery that a fire finds in ``context()``: plain values, new ones for each call.

    Spec: CIP-5old §9.1, CIP-5old §14. Decision: D-83
    """
    entry = _entry_of(decision)
    trigger = {
        "kind": (Trigger.HEIGHT if entry.is_last else Trigger.STATE_WATCH).value,
        "due_height": entry.hit_height if entry.is_last else None,
        "matched_keys": list(entry.matched_keys),
    }
    return {"deliver_id": entry.deliver_id, "trigger_ctx": trigger}


def examined_facts(decision: Decision) -> Mapping[str, int]:
    """Return what the record of an examined timer shows besides: score and number of its fire, and its entry."""
    facts = {}
    if decision.fire is not None:
        facts = {
            "standing": standing_of(decision.fire.standing),
            "fire_seq": terms_of(decision.timer, GlobalboxTerms).fire_seq,
        }
    if decision.entry is not None:
        facts |= {"fire_seq": decision.entry.fire_seq, "deliver_seq": decision.entry.deliver_seq}
    return facts


def deliver_id(height: int, parent_state_root: bytes, timer_id: bytes, fire_seq: int) -> bytes:
    """Return the id of a delivery, 32 bytes, by the height and parent state root of its block. Spec: CIP-5old §9.1."""
    return domain_digest(
        DELIVER_ID, height.to_bytes(8, "big"), parent_state_root, timer_id, fire_seq.to_bytes(8, "big")
    )


def _entry_of(decision: Decision) -> MailboxEntry:
    if decision.entry is None:
        raise InvariantError(f"timer {Hash32(decision.timer.timer_id)} fires without an entry of the mailbox")
    return decision.entry


def _delivered(timer: Timer, terms: GlobalboxTerms, fire: QueuedFire) -> Timer:
    """Return the timer as this fire of it runs: with what it was queued with."""
    return replace(
        timer,
        handler=fire.handler,
        payload=fire.payload,
        gas_limit=fire.gas_limit,
        terms=replace(terms, bid=fire.bid, fire=None),
    )


def _take(session: BlockSession, entry: MailboxEntry) -> Timer | None:
    """Take the mailbox's first entry out; return its timer's record, if that is still there."""
    # CHECK
    first = read_globalbox(session.overlay.read).first
    if entry.deliver_seq != first:
        raise InvariantError(f"fire {entry.deliver_seq} is taken out of a mailbox that begins with {first}")
    # RUN
    session.overlay.delete(fire_key(first))
    change_globalbox(session, first=1)
    timer = find_record(session, entry.timer.height, entry.timer.timer_id)
    # A client nonce may have named a new timer since.
    if timer is None or timer.sequence != entry.timer.sequence:
        return None
    terms = terms_of(timer, GlobalboxTerms)
    return _rewrite(session, timer, terms, in_mailbox=terms.in_mailbox - 1)


def _load(session: BlockSession, timer: Timer) -> tuple[Timer, GlobalboxTerms]:
    """Return a timer's present record and its terms."""
    present = load_timer(session, timer.height, timer.timer_id)
    return present, terms_of(present, GlobalboxTerms)


def _rewrite(session: BlockSession, timer: Timer, terms: GlobalboxTerms, **changes: Any) -> Timer:
    rewritten = replace(timer, terms=replace(terms, **changes))
    write_timer(session, rewritten)
    session.follower.replace(rewritten)
    return rewritten
