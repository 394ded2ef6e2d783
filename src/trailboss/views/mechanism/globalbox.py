"""What people see under Globalbox: bids, state watches, the queue of fires and the mailbox."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.execution.globalbox.records import is_executing
from trailboss.fees import Prices
from trailboss.governance.rules import Rules
from trailboss.mechanisms import globalbox
from trailboss.mechanisms.base import Verdict
from trailboss.model import events as names
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.globalbox import FRACTION_BITS, bid_of, format_bid
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import Timer, terms_of
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Price, format_cby
from trailboss.views.mechanism import base
from trailboss.views.mechanism import globalbox_records as records
from trailboss.views.mechanism.globalbox_records import bid_words, key_words
from trailboss.views.records import BID_FEES, DecisionRow, DecisionView, Event, TimerEntry, TimerView
from trailboss.views.text import counted

FIRE: Final = base.Column("fire_seq", "fire", base.ValueKind.NUMBER)
OWNER: Final = base.Column("owner", "owner", base.ValueKind.ADDRESS, extra=True)
BECAUSE: Final = base.Column("because", "because of", least=12)
TIMER_COLUMNS: Final = (
    base.Column("kind", "kind", extra=True),
    base.TARGET,
    base.Column("bid", "bid", base.ValueKind.NUMBER, extra=True),
    base.Column("fires", "fires", base.ValueKind.NUMBER),
    base.Column("in_mailbox", "in mailbox", base.ValueKind.NUMBER, extra=True),
)
DECISION_COLUMNS: Final = (
    base.RANK,
    base.TIMER,
    FIRE,
    base.TARGET,
    base.Column("deliver_seq", "deliver seq", base.ValueKind.NUMBER),
    base.TIP,
    *base.LIMITS,
)
FIRE_COLUMNS: Final = (  # of a fire, wherever it waits
    base.TIMER,
    FIRE,
    replace(base.TARGET, extra=False),
    BECAUSE,
    base.Column("bid", "bid", base.ValueKind.NUMBER),
    base.LIMITS[0],
)
QUEUE_COLUMNS: Final = (
    base.Column("place", "place", base.ValueKind.NUMBER),
    *FIRE_COLUMNS,
    base.Column("ahead_of_target", "ahead for the target", base.ValueKind.NUMBER, extra=True),
    base.Column("since", "since", base.ValueKind.HEIGHT, extra=True),
    base.Column("bucket", "bucket", base.ValueKind.NUMBER, extra=True),
    OWNER,
)
MAILBOX_COLUMNS: Final = (
    base.Column("deliver_seq", "deliver seq", base.ValueKind.NUMBER),
    *FIRE_COLUMNS,
    base.Column("reserved", "reserved CBY", base.ValueKind.MONEY),
    base.Column("since", "since", base.ValueKind.HEIGHT, extra=True),
    OWNER,
    base.Column("deliver_id", "deliver id", base.ValueKind.HASH, extra=True),
)


def queue_table(fires: Iterable[records.FireView]) -> base.Table:
    """Return queued fires as a table."""
    rows = [
        (
            each.place,
            each.timer_id,
            each.fire_seq,
            each.target,
            _because(None if each.fire.matched_keys else each.fire.hit_height, len(each.fire.matched_keys)),
            format_bid(each.fire.bid_fp),
            each.fire.gas_limit,
            each.ahead_of_target or None,
            each.fire.queued_at,
            each.fire.bucket,
            each.owner,
        )
        for each in fires
    ]
    empty = "No fire stands in Globalbox: all that fell due has gone on to the mailbox."
    return base.Table("queue", "Globalbox: the queue of fires", QUEUE_COLUMNS, rows, empty)


def mailbox_table(entries: Iterable[records.MailboxView]) -> base.Table:
    """Return entries of the mailbox as a table."""
    rows = [
        (
            each.deliver_seq,
            each.timer_id,
            each.fire_seq,
            each.target,
            _because(each.trigger.due_height, len(each.trigger.matched_keys)),
            format_bid(each.bid_fp),
            each.gas_limit,
            each.reserved,
            each.materialized_at,
            each.owner,
            each.deliver_id,
        )
        for each in entries
    ]
    empty = "Nothing waits in the mailbox: every delivery has run."
    return base.Table("mailbox", "Mailbox: deliveries in their order", MAILBOX_COLUMNS, rows, empty)


def _because(due_height: int | None, keys: int) -> str:
    return f"height {due_height}" if due_height is not None else counted(keys, "changed key")


def _tables(chain: ChainReader) -> tuple[base.Table, ...]:
    return queue_table(records.globalbox_of(chain)), mailbox_table(records.mailbox_of(chain))


def _timer_cells(entry: TimerEntry) -> tuple[base.Value, ...]:
    found = entry.globalbox
    if found is None:
        return (None,) * len(TIMER_COLUMNS)
    kind = found.kind.lower().replace("_", " ")
    return kind, found.target, format_bid(found.bid_fp), found.fire_seq, found.in_mailbox or None


def _timer_facts(live: TimerView) -> Iterator[base.Fact]:
    box = live.globalbox
    if box is None:
        return
    yield base.Fact("kind", "kind", box.kind.lower().replace("_", " "))
    if box.watch_keys:
        yield base.Fact("watches", "watches", ", ".join(map(key_words, box.watch_keys)))
    yield base.Fact("bid", "bid", f"{format_bid(box.bid_fp)} a cycle")
    yield base.Fact("fires", "fires so far", box.fire_seq, base.ValueKind.NUMBER)
    if box.in_mailbox:
        yield base.Fact("in_mailbox", "in the mailbox", f"{box.in_mailbox:,} of its fires")


def _is_queued(entry: TimerEntry | TimerView) -> bool:
    return entry.globalbox is not None and entry.globalbox.fire is not None


def _is_in_mailbox(entry: TimerEntry | TimerView) -> bool:
    return entry.globalbox is not None and entry.globalbox.in_mailbox > 0


def _decision_cells(row: DecisionRow) -> tuple[base.Value, ...]:
    return row.rank, row.timer_id, row.fire_seq, row.target, row.deliver_seq, row.tip, *base.limit_cells(row)


def _decision_facts(view: DecisionView) -> Iterator[base.Fact]:
    after = f"{counted(view.queued or 0, 'fire')} in Globalbox, {view.in_mailbox or 0:,} in the mailbox"
    yield base.Fact("after", "after it", after)


def _decision_sentences(record: DecisionRecord) -> Iterator[str]:
    if record.in_mailbox:
        waits, why = "entry waits" if record.in_mailbox == 1 else "entries wait", ""
        if record.stopped is Stop.LANE_FULL:
            left = base.cycles_left(record)
            why = f": the block had {left:,} cycles left, and the first of them may use {record.smallest_gas:,}"
        elif record.stopped is Stop.CELLS_FULL:
            why = f": {base.CELLS_SPENT}"
        elif record.stopped is Stop.EXAMINED_MAX:
            why = ": one block runs no more of them"
        yield f"{record.in_mailbox:,} {waits} in the mailbox{why}"
    if record.carried:
        verb = "key was" if record.carried == 1 else "keys were"
        yield f"{record.carried:,} modified {verb} carried over: they hit more watches than one block queues"


def _status_facts(found: records.GlobalboxStatus) -> Iterator[base.Fact]:
    epoch = f"{found.governance_epoch:,}, the next one begins at height {found.next_governance_epoch_at}"
    yield base.Fact("queued", "queued", counted(found.queued, "fire"))
    yield base.Fact("mailbox", "mailbox", f"{found.mailbox:,} waiting, the next delivery is {found.next_deliver_seq:,}")
    yield base.Fact("remembered", "remembered", counted(found.ended_remembered, "ended timer"))
    yield base.Fact("governance_epoch", "governance epoch", epoch)


def _outlook(chain: ChainReader, timer: Timer, _: base.Trial | None) -> base.Outlook:
    """Return where a timer's fires stand, what is before them and whether the next one can be paid for.

    Spec: CIP-5old §8.3, CIP-5old §10. Complexity: O(live timers + entries of the mailbox).
    """
    terms, rules, parts, kind = terms_of(timer, GlobalboxTerms), chain.rules(), [], base.OutlookKind.RUNS
    if terms.in_mailbox:
        parts.append(_in_mailbox(rules, timer, records.mailbox_of(chain)))
    if terms.fire is not None:
        parts.append(_in_queue(chain, rules, timer, terms.fire))
    if not parts:
        to_come = _to_come(chain, rules, timer, terms)
        kind = to_come.kind
        parts.append(to_come.text)
    if is_executing(timer):
        parts.append(f"it has been paid for, and what it does not use returns to {Address(timer.fee_payer)}")
    else:
        parts.append(_money_words(chain, rules, timer, terms))
    return base.Outlook(kind, "; ".join(parts))


def _in_mailbox(rules: Rules, timer: Timer, entries: Sequence[records.MailboxView]) -> str:
    own = [entry.deliver_seq for entry in entries if entry.timer_id == timer.timer_id]
    ahead = [entry for entry in entries if entry.deliver_seq < own[0]]
    cycles = sum(entry.gas_limit for entry in ahead)
    which = f"delivery {own[0]}" if len(own) == 1 else f"{len(own):,} deliveries, the first of them {own[0]},"
    behind = f"behind {len(ahead):,} with up to {cycles:,} cycles" if ahead else "as the first"
    return (
        f"{which} waits in the mailbox {behind}: they run strictly in order, and one block has "
        f"{rules.timer_cycles_max():,} cycles for them"
    )


def _in_queue(chain: ChainReader, rules: Rules, timer: Timer, fire: QueuedFire) -> str:
    views, box = records.globalbox_of(chain), rules.params.globalbox
    own = next(view for view in views if view.timer_id == timer.timer_id)
    blocks = max(-(-own.place // box.max_fires_per_block), own.ahead_of_target // box.max_fires_per_target + 1)
    hit = f", hit by a change of {', '.join(map(key_words, fire.matched_keys))}" if fire.matched_keys else ""
    return (
        f"its fire {own.fire_seq}{hit}, stands at place {own.place:,} of {len(views):,} in Globalbox since block "
        f"{fire.queued_at}, {own.ahead_of_target:,} of those before it for the same target: a block moves at most "
        f"{box.max_fires_per_block:,} to the mailbox, {box.max_fires_per_target:,} for one target, so that it leaves "
        f"in block {chain.height + blocks} if no fire comes before it"
    )


def _to_come(chain: ChainReader, rules: Rules, timer: Timer, terms: GlobalboxTerms) -> base.Outlook:
    if timer.expires_at < rules.height:
        text = f"is removed as expired: it could fire up to height {timer.expires_at}"
        return base.Outlook(base.OutlookKind.EXPIRES, text)
    if terms.kind is Trigger.STATE_WATCH:
        keys = ", ".join(map(key_words, terms.watch_keys))
        return base.Outlook(base.OutlookKind.RUNS, f"fires when {keys} changes, up to height {timer.expires_at}")
    if timer.expires_at < timer.height:
        end = timer.expires_at + 1
        text = f"expires unfired at height {end}: it may fire up to {timer.expires_at}, and is due at {timer.height}"
        return base.Outlook(base.OutlookKind.EXPIRES, text)
    if timer.height > chain.height:
        return base.Outlook(base.OutlookKind.RUNS, f"enters Globalbox at height {timer.height}")
    return base.Outlook(
        base.OutlookKind.WAITS, "is due and enters Globalbox in a later block: one block takes only a limited number"
    )


def _money_words(chain: ChainReader, rules: Rules, timer: Timer, terms: GlobalboxTerms) -> str:
    bid, gas_limit = (terms.bid, timer.gas_limit) if terms.fire is None else (terms.fire.bid, terms.fire.gas_limit)
    prices = Prices(*rules.timer_basefees(), cycle_tip=Price(bid_of(bid) >> FRACTION_BITS))
    money = base.money_for(chain, timer, gas_limit, prices)
    return f"{money.words}{', too little: at its turn the timer would end' if money.is_short else ''}"


def _is_watch(timer: Timer) -> bool:
    return isinstance(timer.terms, GlobalboxTerms) and timer.terms.kind is Trigger.STATE_WATCH


def _next_fire(_: Rules, timer: Timer) -> Timer:
    fire = terms_of(timer, GlobalboxTerms).fire
    if fire is None:
        return timer
    return replace(timer, handler=fire.handler, payload=fire.payload, gas_limit=fire.gas_limit)


def _can_fire(timer: Timer) -> bool:
    return not _is_watch(timer) or terms_of(timer, GlobalboxTerms).fire is not None


def _tip_at(_rules: Rules, timer: Timer, _cycle_basefee: int, _lane_basefee: int) -> int:
    """Return what a timer tips: the whole part of its bid. Decision: D-63."""
    terms = terms_of(timer, GlobalboxTerms)
    return bid_of(terms.bid if terms.fire is None else terms.fire.bid) >> FRACTION_BITS


def _runway_notes(_: Rules, timers: Sequence[Timer]) -> Iterator[str]:
    watches = sum(not _can_fire(timer) for timer in timers)
    if watches:
        yield f"{watches} of its timers watch the state: when a change hits them is not foreseen, so they are left out"


def _queued(it: base.Occurrence) -> str:
    facts, record = it.facts, it.block.decisions
    items = () if record is None else record.decided
    same = (item for item in items if item.timer_id == facts["timer_id"] and item.fire_seq == facts["fire_seq"])
    found = next((item for item in same if item.outcome == Verdict.ENQUEUE), None)
    place = ""
    if found is not None and record is not None:
        place = f" as number {found.rank:,} of the block's, {record.queued:,} stand there after it"
    return f"fire {facts['fire_seq']} enters Globalbox{place}: its age counts from height {facts['hit_height']}"


def _delivered(it: base.Occurrence) -> str:
    facts, receipt, how = it.facts, it.receipt, "runs"
    if receipt is not None and receipt.error is not None:
        how = f"runs and reverts (E{receipt.error.code} {receipt.error.slug}: {receipt.error.what})"
    is_watch, paid = facts["kind"] == Trigger.STATE_WATCH, ""
    why = f"height {facts['due_height']}"
    if is_watch:
        why = "a change of " + ", ".join(map(key_words, facts["matched_keys"]))
    if is_watch and receipt is not None:
        paid = f", {format_cby(receipt.fee_burned + receipt.tip)} CBY of {Address(receipt.payer)}"
    return (
        f"fire {facts['fire_seq']} {how} as delivery {facts['deliver_seq']}, at {Address(facts['target'])}, because of "
        f"{why}: {facts['cycles_used']:,} cycles{paid}"
    )


def _delivered_short(event: Event, shown: base.Shown) -> str:
    facts = event.data
    keys = len(facts["matched_keys"])
    how = "" if facts["status"] == "ok" else f"{facts['status']}, "
    return (
        f"{how}fire {facts['fire_seq']} as {facts['deliver_seq']} at {shown(facts['target'])}, "
        f"{_because(None if keys else facts['due_height'], keys)}, {facts['cycles_used']:,} cycles"
    )


SENTENCES: Final = {
    names.TIMER_QUEUED: base.Sentence(
        lambda event, _: f"fire {event.data['fire_seq']} in Globalbox, its age counts from {event.data['hit_height']}",
        _queued,
    ),
    names.TIMER_MATERIALIZED: base.Sentence(
        lambda event, shown: (
            f"fire {event.data['fire_seq']} in the mailbox as {event.data['deliver_seq']}, for "
            f"{shown(event.data['target'])}"
        ),
        lambda it: (
            f"fire {it.facts['fire_seq']} leaves Globalbox for the mailbox, as delivery {it.facts['deliver_seq']}, and "
            f"{format_cby(it.facts['reserved'])} CBY are taken for it"
        ),
    ),
    names.TIMER_UPDATED: base.Sentence(
        lambda event, _: (
            f"payload {event.data['payload_size']:,} bytes, at most {event.data['gas_limit']:,} cycles, bid "
            f"{format_bid(bid_of(event.data['bid']))}"
        ),
        lambda it: (
            f"updated: later fires have a payload of {it.facts['payload_size']:,} bytes, at most "
            f"{it.facts['gas_limit']:,} cycles and {bid_words(it.facts['bid'])}"
        ),
    ),
    names.TIMER_FIRE_RECEIPT: base.Sentence(_delivered_short, _delivered, base.StepKind.RAN),
}
VIEWS: Final = base.MechanismViews(
    name=globalbox.NAME,
    title="Globalbox",
    has_targets=True,
    has_mailbox=True,
    timer_columns=TIMER_COLUMNS,
    timer_cells=_timer_cells,
    timer_states={
        "in-mailbox": base.TimerState("in the mailbox", _is_in_mailbox, is_shown=True),
        "queued": base.TimerState("queued", _is_queued, is_shown=True),
    },
    timer_facts=_timer_facts,
    decision_columns=DECISION_COLUMNS,
    decision_cells=_decision_cells,
    decision_facts=_decision_facts,
    decision_fields=lambda record: {"queued": record.queued, "in_mailbox": record.in_mailbox},
    decision_sentences=_decision_sentences,
    outranked=lambda _: "in Globalbox, as one block moves only a limited number of its fires to the mailbox",
    frozen_fees=BID_FEES,
    default_fees=BID_FEES,
    timer_details=lambda timer, _: {"globalbox": records.globalbox_timer(timer, terms_of(timer, GlobalboxTerms))},
    is_watch=_is_watch,
    is_paid=is_executing,
    next_fire=_next_fire,
    outlook=_outlook,
    can_fire=_can_fire,
    tip_at=_tip_at,
    runway_notes=_runway_notes,
    status_field="globalbox",
    status_facts=_status_facts,
    tables=_tables,
    sentences=SENTENCES,
)
