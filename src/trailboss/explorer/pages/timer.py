"""One timer: what comes next, whether it can pay, its whole life, and the line of timers that it stands in."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.documents import (
    HALF,
    Column,
    Content,
    Document,
    Fact,
    Facts,
    Notice,
    Row,
    Section,
    Step,
    Steps,
    Table,
)
from trailboss.explorer.error_trace import error_sections
from trailboss.explorer.failures import missing_document
from trailboss.explorer.instructions import payload
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, page_of, pager_of, printed_sections, state_badge
from trailboss.explorer.payer_runway import purse_facts, purse_sections
from trailboss.explorer.query import Query, parse_id
from trailboss.explorer.text import blocks_words
from trailboss.index.answers.timers import TimerDetails, timer_details, timer_life
from trailboss.index.records import Cause, IndexedTimer, Lineage
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.globalbox import format_bid
from trailboss.model.terms import Trigger
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.fires import FirePath
from trailboss.views.explain.life import TimerLife
from trailboss.views.mechanism.globalbox_records import key_words
from trailboss.views.records import AGENT_FEES, TimerView, printed_views
from trailboss.views.text import counted

LINE_ROWS: Final = 20
"""Timers of a line on one page."""
BLOCKS_SEARCHED: Final = 8
"""Of the last blocks in which something happened to it, those in which its last fire is looked for."""
STEPS_MAX: Final = 50
"""Steps of a life on one page."""
LINE_COLUMNS: Final = (
    Column("Place", right=True),
    Column("Timer", bare=True),
    Column("Height", right=True),
    Column("State", bare=True),
    Column("Handler"),
    Column("Scheduled by"),
)
FIRE_COLUMNS: Final = (
    Column("Fire", right=True),
    Column("Hit at", right=True),
    Column("Queued in", right=True),
    Column("To the mailbox in", right=True),
    Column("Delivery", right=True),
    Column("Ran in", right=True),
    Column("Outcome", bare=True),
)
BID_COLUMNS: Final = (
    Column("Asked in", right=True),
    Column("Max fee", right=True),
    Column("Tip", right=True),
    Column("Bid by"),
)


def timer(reading: Reading, query: Query, subject: str) -> Document:
    """Return the page of a timer, live or ended."""
    timer_id = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    found = timer_details(reading.view, reading.node.index, timer_id)
    if found is None:
        return missing_document(f"No block of this chain scheduled a timer {timer_id}")
    life = timer_life(reading.view, reading.node.index, timer_id, reading.node.try_timer)
    sections = (
        *_outlook(reading, found, life),
        _facts(reading, found),
        *_purse(reading, found),
        *_failure(reading, timer_id, life),
        *_printed(reading, timer_id, life),
        *_life(reading, query, life),
        *_fires(life),
        *_bids(query, life),
        *_line(reading, query, timer_id),
    )
    title, badge = f"Timer {str(timer_id)[:10]}", state_badge(found.state, reverted=found.reverted)
    return Document(title, "Timer", sections, subject=(*cells.root(timer_id), *badge))


def _outlook(reading: Reading, found: TimerDetails, life: TimerLife) -> Iterator[Section]:
    """Yield what comes next, and in how many blocks."""
    if not life.outlook:
        return
    words = life.outlook
    tone = "good" if words.startswith(("fires", "competes", "enters", "delivery", "its fire")) else "warn"
    if words.startswith("removed") or life.failure is not None:
        tone = "bad"
    title = "Next"
    if found.live is not None and found.height > reading.height and found.height != U64_MAX:
        title = f"Due {blocks_words(found.height - reading.height)}"
    yield Notice("outlook", title, content=cells.sentence(f"{words[0].upper()}{words[1:]}.", reading.names), tone=tone)


def _facts(reading: Reading, found: TimerDetails) -> Facts:
    names, now = reading.names, reading.height
    rows = [
        Fact("State", _state(found)),
        Fact("Actor", cells.address(found.actor, names)),
        Fact("Handler", cells.said(found.handler)),
        Fact("Payer", cells.address(found.fee_payer, names)),
        *((Fact("Target", cells.address(found.target, names)),) if found.target != found.actor else ()),
        *((Fact("Height", _height(found, now)),) if not _is_watch(found) else ()),
        Fact("Expires after", cells.text("never" if found.expires_at == U64_MAX else found.expires_at)),
        Fact("Gas limit", cells.text(f"{found.gas_limit:,} cycles")),
        Fact("Scheduled", (*_cause(found.cause), *cells.text(" in block "), *cells.block(found.cause.height))),
    ]
    if found.live is not None:
        rows += _live_facts(reading, found.live)
    if found.remembered is not None:
        rows.append(Fact("Remembered", cells.text(f"until block {found.remembered.collected_after} at least")))
    return Facts("facts", "What it is", tuple(rows), span=HALF if found.live is not None else "full")


def _is_watch(found: TimerDetails) -> bool:
    box = None if found.live is None else found.live.globalbox
    return box is not None and box.kind == Trigger.STATE_WATCH


def _state(found: TimerDetails) -> Content:
    badge = state_badge(found.state, reverted=found.reverted)
    if found.ended_at is not None:
        return (*badge, *cells.text(" in block "), *cells.block(found.ended_at))
    live = found.live
    if live is None:
        return badge
    why = f" waits: {live.deferred_for}" if live.deferred_for else f" in the {live.tier}" if live.tier != "due" else ""
    return (*badge, *cells.text(why, kind="dim")) if why else badge


def _height(found: TimerDetails, now: int) -> Content:
    where = cells.future(found.height, now=now)
    return (
        (*where, *cells.text(f" {blocks_words(found.height - now)}", kind="dim")) if found.live is not None else where
    )


def _cause(cause: Cause) -> Content:
    if cause.timer_id is not None:
        return (*cells.text("by the fire of "), *cells.without_copy(cells.timer(cause.timer_id)))
    if cause.transaction is not None:
        return (*cells.text("by transaction "), *cells.without_copy(cells.transaction(cause.transaction)))
    return cells.text("by a message")


def _live_facts(reading: Reading, live: TimerView) -> Iterator[Fact]:
    yield Fact("Payload", payload(live.payload))
    if live.deferrals:
        yield Fact("Deferred", cells.text(f"in {counted(live.deferrals, 'block')} so far", kind="warn"))
    if live.max_fee_per_cycle is not None and live.max_priority_fee_per_cycle is not None:
        offer = f"up to {live.max_fee_per_cycle:,} a cycle, {live.max_priority_fee_per_cycle:,} of it as a tip"
        yield Fact("Offers", (*cells.text(offer), *cells.text(f" ({live.fees})", kind="dim")))
    elif live.fees == AGENT_FEES:
        yield Fact("Offers", cells.text("what its agent answers when it is due"))
        if live.auction is None and live.gas_bidding_agent is not None:
            yield Fact("Agent", cells.address(live.gas_bidding_agent, reading.names))
    if live.auction is not None:
        found = live.auction
        yield Fact("Agent", cells.address(found.agent, reading.names))
        asked = cells.text("not yet") if found.asked_at is None else cells.block(found.asked_at)
        yield Fact("Asked in", asked)
        if found.is_late:
            yield Fact(
                "Late", cells.text(f"by {counted(found.delay_count, 'block')}, and has been told so", kind="warn")
            )
    if live.globalbox is not None:
        box = live.globalbox
        yield Fact("Kind", cells.text(box.kind.lower().replace("_", " ")))
        if box.watch_keys:
            yield Fact("Watches", cells.sentence(", ".join(key_words(key) for key in box.watch_keys), reading.names))
        yield Fact("Bid", cells.text(f"{format_bid(box.bid_fp)} a cycle"))
        yield Fact("Fires so far", cells.number(box.fire_seq))
        if box.in_mailbox:
            yield Fact("In the mailbox", cells.text(f"{box.in_mailbox:,} of its fires"))
    yield Fact("Sequence", cells.number(live.sequence))


def _purse(reading: Reading, found: TimerDetails) -> Iterator[Section]:
    """Yield whether its payer can pay for it and for the others."""
    if found.live is None:
        return
    runway = reading.runway(found.fee_payer)
    payer = Fact("Payer", cells.address(found.fee_payer, reading.names))
    yield Facts("purse", "Whether it can pay", (payer, *purse_facts(runway)), span=HALF)
    yield from (section for section in purse_sections(runway, reading) if section.key == "purse-alert")


def _last_fires(reading: Reading, timer_id: Hash32, life: TimerLife) -> Iterator[tuple[int, ReceiptRecord]]:
    """Yield the fires in the last blocks in which something happened to it, each with its height, the latest first."""
    heights = dict.fromkeys(step.block_height for step in reversed(life.steps))
    for height in islice(heights, BLOCKS_SEARCHED):
        yield from ((height, each) for each in reading.view.blocks[height].receipts if each.timer_id == timer_id)


def _failure(reading: Reading, timer_id: Hash32, life: TimerLife) -> Iterator[Section]:
    """Yield why its last fire reverted, if it did."""
    for _, last in islice(_last_fires(reading, timer_id, life), 1):
        if last.error is not None:
            yield from error_sections(last.error, reading, last.actor or last.sender)


def _printed(reading: Reading, timer_id: Hash32, life: TimerLife) -> tuple[Section, ...]:
    """Return what its last fires have printed."""
    fires = _last_fires(reading, timer_id, life)
    lines = [line for height, fire in fires for line in printed_views(fire.printed, height)]
    return printed_sections(lines, reading.names)


def _life(reading: Reading, query: Query, life: TimerLife) -> Iterator[Steps]:
    """Yield its life as `trailboss timer explain` tells it; what comes next stands at the top of the page."""
    lines = [line for line in life.lines() if line[0] != "next"]
    names = {f"block {step.block_height}": step.event.name for step in life.steps}
    offset = offset_of(query, len(lines), rows=STEPS_MAX, name="steps")
    steps = []
    for label, words in lines[offset : offset + STEPS_MAX]:
        height = label.removeprefix("block ")
        when = cells.link(label, links.block(int(height))) if height.isdecimal() else cells.text(label)
        steps.append(Step(when, cells.sentence(words, reading.names), tone=_tone(words, names.get(label, ""))))
    pager = pager_of(query, len(lines), rows=STEPS_MAX, name="steps") if len(lines) > STEPS_MAX else None
    yield Steps("life", "Its life", tuple(steps), pager=pager)


def _tone(words: str, event: str) -> str:
    if words.startswith("fired and reverted") or " reverts" in words or event == "TimerCancelledInsufficientFunds":
        return "bad"
    if words.startswith("fired") or " runs as delivery" in words:
        return "good"
    is_waiting = words.startswith(("expired", "late")) or ", deferred" in words
    return "warn" if is_waiting or event in ("TimerExpired", "timer.deferred") else ""


def _fires(life: TimerLife) -> Iterator[Table]:
    if life.fires:
        rows = tuple(_fire_row(path) for path in reversed(life.fires))
        yield Table("fires", "Its fires through Globalbox", FIRE_COLUMNS, rows[:STEPS_MAX], "")


def _fire_row(path: FirePath) -> Row:
    def block(height: int | None) -> Content:
        return cells.NOTHING if height is None else cells.block(height)

    drawn = (
        cells.number(path.fire_seq),
        cells.text(path.hit_height, kind="number"),
        block(path.queued_at),
        block(path.materialized_at),
        cells.number(path.deliver_seq),
        block(path.ended_at),
        cells.text(path.outcome),
    )
    return Row(drawn, str(path.fire_seq))


def _bids(query: Query, life: TimerLife) -> Iterator[Table]:
    if not life.bids:
        return
    rows = [
        Row(
            (
                cells.block(bid.height),
                cells.number(bid.max_fee),
                cells.number(bid.max_priority_fee),
                cells.text("default" if bid.is_default else "its agent", kind="warn" if bid.is_default else ""),
            ),
            str(bid.height),
        )
        for bid in reversed(life.bids)
    ]
    pager = pager_of(query, len(rows), rows=LINE_ROWS, name="bids") if len(rows) > LINE_ROWS else None
    shown = page_of(rows, query, rows=LINE_ROWS, name="bids")
    yield Table("bids", "What its agent bid", BID_COLUMNS, shown, "", pager=pager)


def _line(reading: Reading, query: Query, timer_id: Hash32) -> Iterator[Section]:
    """Yield the line that it stands in: by default the page of the list on which it is."""
    index, upto = reading.node.index, reading.height
    lineage = index.lineage(timer_id, upto)
    if lineage is None or lineage.family_size <= 1:
        return
    if not query.text("line"):
        query = Query(query.path, {**query.parameters, "line": str(lineage.place // LINE_ROWS + 1)}, query.complaints)
    offset = offset_of(query, lineage.family_size, rows=LINE_ROWS, name="line")
    family = index.family(timer_id, upto, offset, LINE_ROWS)
    rows = tuple(_line_row(item, offset + at, timer_id, reading) for at, item in enumerate(family.items))
    pager = pager_of(query, lineage.family_size, rows=LINE_ROWS, name="line", first_is_told=True)
    yield Table("line", "Its line of re-schedules", LINE_COLUMNS, rows, "", pager=pager, note=_line_words(lineage))


def _line_words(lineage: Lineage) -> str:
    children = f"; its fires scheduled {counted(lineage.children, 'timer')}" if lineage.children else ""
    return f"it is number {lineage.place + 1:,} of {lineage.family_size:,}{children}"


def _line_row(item: IndexedTimer, place: int, timer_id: Hash32, reading: Reading) -> Row:
    cause = item.cause
    by: Content = cells.text("a message")
    if cause.origin is Origin.TIMER and cause.timer_id is not None:
        by = cells.timer(cause.timer_id)
    elif cause.transaction is not None:
        by = (*cells.text("transaction "), *cells.transaction(cause.transaction))
    state = state_badge(item.state, reverted=item.reverted)
    if item.ended_at is not None:
        state += (*cells.text(" in "), *cells.block(item.ended_at))
    drawn = (
        cells.number(place + 1),
        cells.timer(item.timer_id),
        cells.future(item.height, now=reading.height),
        state,
        cells.said(item.handler),
        by,
    )
    return Row(drawn, str(place), tone="now" if item.timer_id == timer_id else "")
