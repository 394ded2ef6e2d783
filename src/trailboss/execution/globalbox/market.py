"""Globalbox around the deliveries, and a fire's way: into Globalbox, into the mailbox, out of it.

Spec: CIP-5old §5.3, CIP-5old §9, CIP-5old §10
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from trailboss.crypto.digest import domain_digest
from trailboss.execution.globalbox.records import (
    change_globalbox,
    collect_ended,
    mailbox_entries,
    read_globalbox,
    write_globalbox,
)
from trailboss.execution.session import BlockSession, OpenMarket, timer_event
from trailboss.execution.timers import load_timer, remove_timer
from trailboss.governance.markets import CARRIED_HITS_KEY
from trailboss.governance.parameters import Read
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Decision, Rest
from trailboss.mechanisms.context import GlobalboxMarket
from trailboss.model.blocks import ReceiptRecord
from trailboss.model.configs import amount_octets, amount_of, encode_record, stored
from trailboss.model.events import TIMER_FIRE_RECEIPT, TIMER_MATERIALIZED, TIMER_QUEUED, EventRecord
from trailboss.model.globalbox import (
    CarriedHit,
    CarriedHits,
    GlobalboxState,
    MailboxEntry,
    bid_octets,
    bid_of,
    encode_entry,
    standing_octets,
    standing_of,
)
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
    the prices of this block, into an escrow account. Spec: CIP-5old §9.1, CIP-5old §9.2. Decision: D-63.
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
    # CHECK
    first = read_globalbox(session.overlay.read).first
    if entry.deliver_seq != first:
        raise InvariantError(f"fire {entry.deliver_seq} is taken out of a mailbox that begins with {first}")
    # RUN
    session.overlay.delete(fire_key(first))
    change_globalbox(session, first=1)
    session.ledger.debit(escrow_address(session), amount_of(entry.reserved))
    timer = session.read_timer(entry.timer.height, entry.timer.timer_id)
    # A client nonce may have named a new timer since.
    if timer is None or timer.sequence != entry.timer.sequence:
        return
    terms = terms_of(timer, GlobalboxTerms)
    timer = _rewrite(session, timer, terms, in_mailbox=terms.in_mailbox - 1)
    if entry.is_last:
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
    """Return what the record of an examined timer shows in addition: score and number of its fire, and its entry."""
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


def _load(session: BlockSession, timer: Timer) -> tuple[Timer, GlobalboxTerms]:
    """Return a timer's present record and its terms."""
    present = load_timer(session, timer.height, timer.timer_id)
    return present, terms_of(present, GlobalboxTerms)


def _rewrite(session: BlockSession, timer: Timer, terms: GlobalboxTerms, **changes: Any) -> Timer:
    rewritten = replace(timer, terms=replace(terms, **changes))
    session.write_timer(rewritten)
    session.follower.replace(rewritten)
    return rewritten


AGE_WEIGHT_SHIFT: Final = 64
"""From units of 2⁻³², in which W_age is governed, to those of 2⁻⁹⁶, in which scores are counted."""


def open_globalbox(session: BlockSession) -> OpenMarket:
    """Open Globalbox: the age clock, what is modified, and what the block may materialize.

    Spec: CIP-5old §7.1, CIP-5old §8, CIP-5old §13. Decision: D-61, D-65
    """
    rules = session.context.rules
    params, weight = rules.params.globalbox, age_weight(rules)
    # As of now: the block's transactions have cancelled timers and set others.
    state = read_globalbox(session.overlay.read)
    if weight != bid_of(state.age_weight):
        state = replace(
            state,
            clock=standing_octets(clock_at(state, rules.height, weight)),
            clock_height=rules.height,
            age_weight=bid_octets(weight),
        )
        write_globalbox(session, state)
    # Slots that change from here on count in the next block.
    mark = session.overlay.mark()
    market = GlobalboxMarket(
        max_cycles_per_fire=rules.timer.max_cycles_per_fire,
        age_weight=weight,
        bid_weight=params.bid_weight,
        clock=clock_at(state, rules.height, weight),
        max_fires=params.max_fires_per_block,
        max_fires_per_target=params.max_fires_per_target,
        hits_max=params.hits_max,
        modified=_merged(
            read_carried(session.overlay.read), (CarriedHit(key, 0, rules.height) for key in _changed_keys(session, 0))
        ),
        timer_of=partial(load_timer, session),
        entries=partial(mailbox_entries, session.overlay.read),
    )
    return OpenMarket(market, partial(close_globalbox, session, mark))


def close_globalbox(session: BlockSession, mark: int, rest: Rest) -> None:
    """Carry over what the next block counts as modified, and collect ended timers.

    Spec: CIP-5old §7.1, CIP-5old §14. Decision: D-31, D-64, D-65
    """
    height, is_watched = session.context.height, session.follower.is_watched
    carried = _merged(
        rest.carried, (CarriedHit(key, 0, height + 1) for key in _changed_keys(session, mark) if is_watched(key))
    )
    if carried:
        session.overlay.write(CARRIED_HITS_KEY, encode_record(CarriedHits(carried)))
    elif session.overlay.read(CARRIED_HITS_KEY) is not None:
        session.overlay.delete(CARRIED_HITS_KEY)
    collect_ended(session)


def globalbox_rests(rules: Rules, read: Read) -> bool:
    """Return whether a block without transactions leaves Globalbox as it is while nothing falls due."""
    state = read_globalbox(read)
    is_empty = state.queued == 0 and state.first == state.next and not read_carried(read)
    return is_empty and age_weight(rules) == bid_of(state.age_weight)


def age_weight(rules: Rules) -> int:
    """Return W_age, as in force in a block, in units of 2⁻⁹⁶ a block. Spec: CIP-5old §8.1."""
    return rules.params.globalbox.age_weight << AGE_WEIGHT_SHIFT


def clock_at(state: GlobalboxState, height: int, weight: int) -> int:
    """Return the age clock in a block: the sum of the W_age of all blocks up to it, in units of 2⁻⁹⁶. Decision: D-61.

    The state has the clock as of the last change of W_age, or as of this block; ``weight`` is W_age in this block.
    """
    clock, passed = standing_of(state.clock), height - state.clock_height
    return clock + (bid_of(state.age_weight) * (passed - 1) + weight if passed else 0)


def read_carried(read: Read) -> tuple[CarriedHit, ...]:
    """Return the keys that also count as modified in the next block, ascending."""
    return (stored(read, CARRIED_HITS_KEY, CarriedHits) or CarriedHits()).hits


def _changed_keys(session: BlockSession, mark: int) -> list[bytes]:
    """Return the keys, address and slot name, whose values have changed since a mark, ascending."""
    return [address + name for address, name in session.overlay.changed_slots(mark)]


def _merged(old: Iterable[CarriedHit], new: Iterable[CarriedHit]) -> tuple[CarriedHit, ...]:
    """Return both, ascending by key; a key modified again hits all its watches."""
    by_key = {hit.key: hit for hit in old} | {hit.key: hit for hit in new}
    return tuple(by_key[key] for key in sorted(by_key))
