"""Timers: the list by state, actor, payer, target and height; and one timer with its outlook, its life and its line."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from trailboss.explorer import cells, links, tables
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import FULL, HALF, bare, columns, numbers
from trailboss.explorer.failures import error_sections, missing_document, schedule_command
from trailboss.explorer.instructions import payload
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading
from trailboss.explorer.payer_runway import runway_alert, runway_facts
from trailboss.explorer.text import blocks_words, titled
from trailboss.index.answers.timers import SCANNED_MAX, TimerDetails, timer_details, timer_life, timer_page
from trailboss.index.records import Cause, IndexedTimer
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.life import TimerLife
from trailboss.views.mechanism.base import OutlookKind, StepKind
from trailboss.views.records import AGENT_FEES, TimerEntry, TimerView, printed_views
from trailboss.views.text import counted
from trailboss.views.timer_list import ALL, DEFERRED, DUE, ENDED, LIVE, TimerFilter, unknown_words

STATES: Final = (LIVE, DUE, DEFERRED, *ENDED, ALL)  # states that timers have under every mechanism
NONE_LIVE: Final = "No timer is scheduled. Deploy an actor that schedules timers, or schedule one without an actor:"
NONE_MATCHES: Final = "No timer matches. Choose another state, or leave the other fields empty."
LINE_ROWS: Final = 20  # timers of a line on one page
BLOCKS_SEARCHED: Final = 8
"""Of the last blocks in which something happened to it, those in which its last fire is searched for."""
STEPS_MAX: Final = 50  # steps of a life on one page
LINE_COLUMNS: Final = (
    numbers("Place") + bare("Timer") + numbers("Height") + bare("State") + columns("Handler", "Scheduled by")
)
WAY_COLUMNS: Final = numbers("Fire", "Hit at", "Queued in", "To the mailbox in", "Delivery", "Ran in") + bare("Outcome")
BID_COLUMNS: Final = numbers("Asked in", "Max fee", "Tip") + columns("Bid by")
STEP_TONES: Final = {
    **dict.fromkeys((StepKind.REVERTED, StepKind.UNFUNDED), "bad"),
    **dict.fromkeys((StepKind.EXPIRED, StepKind.WAITS), "warn"),
    StepKind.RAN: "good",
}
OUTLOOK_TONES: Final = {
    **dict.fromkeys((OutlookKind.REVERTS, OutlookKind.UNFUNDED), "bad"),
    **dict.fromkeys((OutlookKind.WAITS, OutlookKind.EXPIRES), "warn"),
    OutlookKind.RUNS: "good",
}


def timers(reading: Reading, query: Query, _subject: str) -> parts.Document:
    """Return the page."""
    views, height = reading.mechanism, reading.height
    states = {state: state for state in STATES} | {name: each.label for name, each in views.timer_states.items()}
    state = query.choice("state", states, LIVE)
    wanted = TimerFilter(
        state=state,
        actor=query.address("actor"),
        target=query.address("target"),
        payer=query.address("payer"),
        first=query.number("from", 0),
        last=query.number("to", U64_MAX),
    )
    if wanted.last < wanted.first:
        query.complaints.append(f"no height is from {wanted.first} to {wanted.last}: swap them")
    offset = (query.page() - 1) * PAGE_ROWS
    page = timer_page(reading.view, reading.node.index, wanted, offset, PAGE_ROWS)
    if tables.offset_of(query, page.total_count) != offset:
        # Beyond the end, as when timers have fired since: the last page there is.
        offset = tables.offset_of(query, page.total_count)
        page = timer_page(reading.view, reading.node.index, wanted, offset, PAGE_ROWS)
    is_empty = not page.live and state == LIVE
    note = f"{counted(page.live, 'timer')} live after block {height}"
    if page.total_count >= SCANNED_MAX:
        note += f"; the first {SCANNED_MAX:,} were examined"
    table = parts.PageTable(
        "timers",
        f"Timers: {states[state]}",
        tables.TIMER_COLUMNS + tables.mechanism_columns(views.timer_columns),
        tuple(_row(entry, reading) for entry in page.timers),
        NONE_LIVE if is_empty else NONE_MATCHES,
        command=schedule_command(reading) if is_empty else "",
        pager=tables.pager_of(query, page.total_count),
        filters=_filters(query, states, state, has_targets=views.has_targets),
        note=note,
    )
    return parts.Document("Timers", "Timers", (table,))


def _row(entry: TimerEntry, reading: Reading) -> parts.Row:
    row, views = tables.timer_row(entry, reading), reading.mechanism
    own = tables.mechanism_cells(views.timer_columns, views.timer_cells(entry), reading.names)
    return parts.Row(row.cells + own, row.key, "warn" if entry.priced_out else "")


def _filters(query: Query, states: dict[str, str], state: str, *, has_targets: bool) -> tuple[parts.Filter, ...]:
    addresses = ("actor", "target", "payer") if has_targets else ("actor", "payer")
    return (
        parts.Filter("state", "State", state, options=tuple(states.items())),
        *(parts.Filter(name, name.capitalize(), query.text(name), hint="0x…") for name in addresses),
        parts.Filter("from", "From height", query.text("from"), numeric=True),
        parts.Filter("to", "To height", query.text("to"), numeric=True),
    )


def timer(reading: Reading, query: Query, subject: str) -> parts.Document:
    """Return the page of a timer, live or ended."""
    timer_id = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    found = timer_details(reading.view, reading.node.index, timer_id)
    if found is None:
        return missing_document(titled(unknown_words(reading.view, str(timer_id))))
    title, badge = f"Timer {str(timer_id)[:10]}", tables.state_badge(found.state, reverted=found.reverted)
    try:
        node = reading.node
        life = timer_life(reading.view, node.index, timer_id, node.try_timer, node.workbench.beside)
    except Rejection as rejection:
        # It has ended, and was scheduled before this node joined the network.
        notice = parts.Notice("joined", "Its story is not here", cells.text(f"{titled(rejection.what)}."))
        left = (_facts(reading, found), notice)
        return parts.Document(title, "Timer", left, subject=(*cells.root(timer_id), *badge))
    fires = tuple(_last_fires(reading, timer_id, life))
    printed = [line for height, fire in fires for line in printed_views(fire.printed, height)]
    failure: Iterable[parts.Section] = ()
    if fires and (error := fires[0][1].error) is not None:
        failure = error_sections(error, reading, fires[0][1].actor or fires[0][1].sender)
    sections = (
        *_outlook(reading, found, life),
        _facts(reading, found, has_fired=bool(fires)),
        *_payer(reading, found),
        *failure,
        *tables.printed_sections(printed, reading.names),
        _life(reading, query, life),
        *_fires(life),
        *_bids(query, life),
        *_line(reading, query, timer_id),
    )
    return parts.Document(title, "Timer", sections, subject=(*cells.root(timer_id), *badge))


def _outlook(reading: Reading, found: TimerDetails, life: TimerLife) -> Iterator[parts.Section]:
    """Yield what comes next, and in how many blocks."""
    if life.outlook_kind is None:
        return
    said = f"{titled(life.outlook)}." + (f" By the forecast it {life.forecast}." if life.forecast else "")
    title, words = "Next", cells.sentence(said, reading.names)
    if found.live is not None and found.height > reading.height and found.height != U64_MAX:
        title = f"Due {blocks_words(found.height - reading.height)}"
    yield parts.Notice("outlook", title, words, tone=OUTLOOK_TONES[life.outlook_kind])


def _facts(reading: Reading, found: TimerDetails, *, has_fired: bool = False) -> parts.Facts:
    names, live = reading.names, found.live
    height = cells.future(found.height, now=reading.height)
    if live is not None:
        height += cells.text(f" {blocks_words(found.height - reading.height)}", kind="dim")
    remembered = found.remembered
    rows = {
        "State": _state(found),
        "Actor": cells.address(found.actor, names),
        "Handler": cells.said(found.handler),
        "Payer": cells.address(found.fee_payer, names),
        "Target": cells.address(found.target, names) if found.target != found.actor else None,
        "Height": height if live is None or not live.is_watch else None,
        "Expires after": "never" if found.expires_at == U64_MAX else str(found.expires_at),
        "Gas limit": f"{found.gas_limit:,} cycles",
        "Scheduled": None
        if found.cause is None
        else cells.line(_cause(found.cause), " in block ", cells.block(found.cause.height)),
        **({} if live is None else _live_facts(reading, live)),
        "Trace": cells.link("Its latest fire, frame by frame", links.trace(found.timer_id)) if has_fired else None,
        "Remembered": None if remembered is None else f"until block {remembered.collected_after} at least",
    }
    return cells.facts("facts", "What it is", rows, span=HALF if live is not None else FULL)


def _state(found: TimerDetails) -> parts.Content:
    badge, live = tables.state_badge(found.state, reverted=found.reverted), found.live
    if found.ended_at is not None:
        return cells.line(badge, " in block ", cells.block(found.ended_at))
    if live is None or (live.tier == "due" and not live.deferred_for):
        return badge
    why = f" waits: {live.deferred_for}" if live.deferred_for else f" in the {live.tier}"
    return (*badge, *cells.text(why, kind="dim"))


def _cause(cause: Cause) -> parts.Content:
    if cause.timer_id is not None:
        return cells.line("by the fire of ", cells.without_copy(cells.timer(cause.timer_id)))
    if cause.transaction is not None:
        return cells.line("by transaction ", cells.without_copy(cells.transaction(cause.transaction)))
    return cells.text("by a message")


def _live_facts(reading: Reading, live: TimerView) -> dict[str, Words]:
    deferred: Words = None
    if live.deferrals:
        deferred = cells.text(f"in {counted(live.deferrals, 'block')} so far", kind="warn")
    offers: Words = "what its agent answers when it is due" if live.fees == AGENT_FEES else None
    if live.max_fee_per_cycle is not None and live.max_priority_fee_per_cycle is not None:
        offer = f"up to {live.max_fee_per_cycle:,} a cycle, {live.max_priority_fee_per_cycle:,} of it as a tip"
        offers = cells.line(offer, cells.text(f" ({live.fees})", kind="dim"))
    own = cells.mechanism_facts(reading.mechanism.timer_facts(live), reading.names)
    facts = {"Payload": payload(live.payload), "Deferred": deferred, "Offers": offers}
    return {**facts, **own, "Sequence": live.sequence}


def _payer(reading: Reading, found: TimerDetails) -> Iterator[parts.Section]:
    """Yield whether its payer can pay for it and for the payer's other timers."""
    if found.live is not None:
        runway = reading.runway(found.fee_payer)
        rows = {"Payer": cells.address(found.fee_payer, reading.names), **runway_facts(runway)}
        yield cells.facts("balance", "Whether its payer can pay", rows, span=HALF)
        yield from runway_alert(runway, reading)


def _last_fires(reading: Reading, timer_id: Hash32, life: TimerLife) -> Iterator[tuple[int, ReceiptRecord]]:
    """Yield the fires in the last blocks in which something happened to it, each with its height, the latest first."""
    blocks = reading.view.blocks
    heights = dict.fromkeys(step.block_height for step in reversed(life.steps) if step.block_height >= blocks.base)
    for height in islice(heights, BLOCKS_SEARCHED):
        yield from ((height, each) for each in blocks[height].receipts if each.timer_id == timer_id)


def _life(reading: Reading, query: Query, life: TimerLife) -> parts.Steps:
    """Return its life as `trailboss timer explain` shows it; what comes next is at the top of the page."""
    lines = [line for line in life.lines() if line[0] not in ("next", "forecast")]
    tones = {(f"block {step.block_height}", step.story): STEP_TONES.get(step.kind, "") for step in life.steps}
    offset = tables.offset_of(query, len(lines), rows=STEPS_MAX, name="steps")
    steps = []
    for label, words in lines[offset : offset + STEPS_MAX]:
        height = label.removeprefix("block ")
        when = cells.link(label, links.block(int(height))) if height.isdecimal() else cells.text(label)
        steps.append(parts.Step(when, cells.sentence(words, reading.names), tone=tones.get((label, words), "")))
    pager = tables.pager_of(query, len(lines), rows=STEPS_MAX, name="steps") if len(lines) > STEPS_MAX else None
    return parts.Steps("life", "Its life", tuple(steps), pager=pager)


def _fires(life: TimerLife) -> Iterator[parts.PageTable]:
    rows = []
    for each in islice(reversed(life.fires), STEPS_MAX):
        queued, boxed, ended = map(cells.block, (each.queued_at, each.materialized_at, each.ended_at))
        shown = (cells.height(each.hit_height), queued, boxed, each.deliver_seq, ended, each.outcome)
        rows.append(cells.row(each.fire_seq, each.fire_seq, *shown))
    if rows:
        yield parts.PageTable("fires", "The way of each of its fires", WAY_COLUMNS, tuple(rows))


def _bids(query: Query, life: TimerLife) -> Iterator[parts.PageTable]:
    bids = life.bids[::-1]

    def row(at: int) -> parts.Row:
        bid = bids[at]
        by = cells.text("default", kind="warn") if bid.is_default else "its agent"
        return cells.row(bid.height, cells.block(bid.height), bid.max_fee, bid.max_priority_fee, by)

    if bids:
        yield tables.paged_table("bids", "What its agent bid", BID_COLUMNS, len(bids), row, query=query, rows=LINE_ROWS)


def _line(reading: Reading, query: Query, timer_id: Hash32) -> Iterator[parts.Section]:
    """Yield the line of timers that it belongs to: by default the page of the list on which it is."""
    index, upto = reading.node.index, reading.height
    lineage = index.lineage(timer_id, upto)
    if lineage is None or lineage.family_size <= 1:
        return
    if not query.text("line"):
        query = Query(query.path, {**query.parameters, "line": str(lineage.place // LINE_ROWS + 1)}, query.complaints)
    offset = tables.offset_of(query, lineage.family_size, rows=LINE_ROWS, name="line")
    family = index.family(timer_id, upto, offset, LINE_ROWS)
    rows = tuple(_line_row(item, offset + at, timer_id, reading) for at, item in enumerate(family.items))
    pager = tables.pager_of(query, lineage.family_size, rows=LINE_ROWS, name="line", names_first=True)
    children = f"; its fires scheduled {counted(lineage.children, 'timer')}" if lineage.children else ""
    note = f"it is number {lineage.place + 1:,} of {lineage.family_size:,}{children}"
    yield parts.PageTable("line", "Its line of re-schedules", LINE_COLUMNS, rows, pager=pager, note=note)


def _line_row(item: IndexedTimer, place: int, timer_id: Hash32, reading: Reading) -> parts.Row:
    cause = item.cause
    by: Words = "a message" if cause is not None else f"a block up to {reading.view.blocks.base}"
    if cause is None:
        pass
    elif cause.origin is Origin.TIMER and cause.timer_id is not None:
        by = cells.timer(cause.timer_id)
    elif cause.transaction is not None:
        by = cells.line("transaction ", cells.transaction(cause.transaction))
    state = tables.state_badge(item.state, reverted=item.reverted)
    if item.ended_at is not None:
        state += cells.line(" in ", cells.block(item.ended_at))
    shown = (cells.timer(item.timer_id), cells.future(item.height, now=reading.height), state, cells.said(item.handler))
    return cells.row(place, place + 1, *shown, by, tone="now" if item.timer_id == timer_id else "")
