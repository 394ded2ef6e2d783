"""The page of the mechanism: the timer lane, the auction's weights, or Globalbox with its mailbox."""

from collections.abc import Iterator
from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import (
    HALF,
    Chart,
    Column,
    Content,
    Document,
    Fact,
    Facts,
    Row,
    Section,
    Table,
)
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, pager_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.explorer.text import share_words
from trailboss.model.blocks import Block
from trailboss.model.markets import MarketKind
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.auction_records import AuctionView, auction_of
from trailboss.views.mechanism.globalbox_records import FireView, MailboxView, globalbox_of, mailbox_of
from trailboss.views.mechanism.lane_records import lane_cap
from trailboss.views.status import MechanismView, mechanism_view
from trailboss.views.text import counted, decimal_text

RECENT: Final = 120
SHOWN: Final = 20
PERCENT: Final = 100
DELIVERS: Final = {
    "after_transactions": "after the block's transactions",
    "before_transactions": "before the block's transactions",
}
CHARGES: Final = {
    "all_first": "all payers of a block before the first fire",
    "in_turn": "one payer after the other, each when its turn comes",
}
BLOCK_COLUMNS: Final = (
    Column("Block", right=True),
    Column("Examined", right=True),
    Column("Fired", right=True),
    Column("Used", right=True),
    Column("Cut-off", right=True),
    Column("Outranked", right=True),
    Column("Priced out", right=True),
    Column("Over cap", right=True),
    Column("Yet to join", right=True),
)
WEIGHT_COLUMNS: Final = (
    Column("Actor", bare=True),
    Column("Weight", right=True),
    Column("Waiting", right=True),
    Column("Fires", right=True),
    Column("Deferrals", right=True),
    Column("Longest wait", right=True),
    Column("Highest tip", right=True),
    Column("Cycles", right=True),
)
QUEUE_COLUMNS: Final = (
    Column("Place", right=True),
    Column("Timer", bare=True),
    Column("Fire", right=True),
    Column("Target"),
    Column("Before it for the target", right=True),
    Column("Bid", right=True),
    Column("Gas limit", right=True),
    Column("In since", right=True),
)
MAILBOX_COLUMNS: Final = (
    Column("Delivery", right=True),
    Column("Timer", bare=True),
    Column("Target"),
    Column("Because of"),
    Column("Gas limit", right=True),
    Column("CBY taken", right=True),
    Column("In since", right=True),
)


def lane(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page that fits the chain's mechanism."""
    found = mechanism_view(reading.view)
    sections: list[Section] = [_rules(reading, found), _state(reading, found)]
    if found.auction is not None:
        sections.append(_weights(reading, query, auction_of(reading.view)))
    if found.globalbox is not None:
        sections += [_queue(reading, query), _mailbox(reading, query)]
    blocks = reading.view.blocks[max(1, reading.height + 1 - RECENT) :]
    sections += [_use(reading, blocks), _blocks(blocks)]
    name = links.LANE_NAMES.get(found.mechanism, "Lane")
    return Document(name, name, tuple(sections), subject=cells.badge(found.mechanism))


def _rules(reading: Reading, found: MechanismView) -> Facts:
    rules = reading.view.rules()
    changed = f"{found.mechanism}, {found.first} before" if found.first != found.mechanism else found.mechanism
    examined = f"{counted(found.examined_max, 'due timer')} a block"
    joined = f"{counted(found.joined_max, 'due timer')} a block" if found.joined_max else "all due timers at once"
    return Facts(
        "rules",
        "How it chooses",
        (
            Fact("Mechanism", cells.text(changed)),
            Fact("Timers run", cells.text(DELIVERS[found.delivers])),
            Fact("Charges", cells.text(CHARGES[found.charges])),
            Fact("A block has", cells.text(f"{rules.timer_cycles_max():,} cycles for fires")),
            Fact(
                "One fire may use",
                cells.text(f"{_fire_cap(reading):,} cycles, {rules.timer.max_cells_per_fire:,} cells"),
            ),
            Fact("Looks at", cells.text(f"at most {examined}")),
            Fact("Join", cells.text(joined)),
        ),
        span=HALF,
    )


def _fire_cap(reading: Reading) -> int:
    rules = reading.view.rules()
    return rules.timer.max_cycles_per_fire if rules.market.kind is not MarketKind.LANE else lane_cap(rules)


def _state(reading: Reading, found: MechanismView) -> Facts:
    due = reading.view.due_count()
    rows = [Fact("After block", cells.block(found.height)), Fact("Due and waiting", cells.text(counted(due, "timer")))]
    rows += _lane_state(found) if found.auction is None and found.globalbox is None else ()
    if found.auction is not None:
        auction = found.auction
        rows += [
            Fact("Epoch", cells.text(f"{auction.epoch:,}, the next one begins at height {auction.next_epoch_at}")),
            Fact("Waiting", cells.text(counted(auction.waiting, "timer"))),
            Fact("Actors with a weight", cells.number(auction.actors)),
            Fact("Budget", cells.text(f"{auction.budget_cycles:,} cycles a block")),
        ]
    if found.globalbox is not None:
        box = found.globalbox
        epoch = f"{box.governance_epoch:,}, the next one begins at height {box.next_governance_epoch_at}"
        rows += [
            Fact("Queued", cells.text(counted(box.queued, "fire"))),
            Fact("Mailbox", cells.text(f"{box.mailbox:,} waiting, the next delivery is {box.next_deliver_seq:,}")),
            Fact("Remembered", cells.text(counted(box.ended_remembered, "ended timer"))),
            Fact("Governance epoch", cells.text(epoch)),
        ]
    return Facts("state", "How it stands", tuple(rows), span=HALF)


def _lane_state(found: MechanismView) -> Iterator[Fact]:
    lane = found.lane
    if lane.basefee is not None:
        yield Fact("Lane basefee", cells.text(f"{lane.basefee:,} base units a cycle"))
        yield Fact("Median tip", cells.text(f"{lane.previous_tip:,} a cycle in the last block"))
        yield Fact("Burned by it", cells.text(f"{format_cby(lane.burned)} CBY"))
    elif lane.activation_height is not None:
        yield Fact("Timer lane", cells.text(f"begins at height {lane.activation_height}"))
    else:
        yield Fact("Timer lane", cells.text("no height is set at which it begins"))


def _use(reading: Reading, blocks: list[Block]) -> Chart:
    lane_max = reading.view.rules().timer_cycles_max() or 1
    used = [block.header.timer_cycles_used * PERCENT / lane_max for block in blocks]
    mean = share_words(sum(block.header.timer_cycles_used for block in blocks), lane_max * max(1, len(blocks)))
    label = f"Use of the lane in the last {counted(len(blocks), 'block')}, {mean} in the mean."
    heights = [block.height for block in blocks]
    series = [("Use", [round(each, 2) for each in used])]
    note = f"percent, {mean} in the mean"
    return Chart("use", "Use of the lane", label, heights, series, bars=True, note=note)


def _blocks(blocks: list[Block]) -> Table:
    rows: list[Row] = []
    for block in reversed(blocks):
        record = block.decisions
        if record is None or len(rows) >= SHOWN:
            continue
        fired = sum(item.outcome == "fire" for item in record.decided)
        counts = (record.outranked, record.priced_out, record.over_cap, record.not_joined)
        drawn = (
            cells.block(block.height),
            cells.number(record.examined_count),
            cells.number(fired),
            cells.text(share_words(record.lane_cycles_used, record.lane_cycles_max), kind="number"),
            cells.number(record.cut_off or None),
            *(cells.number(count or None) for count in counts),
        )
        rows.append(Row(drawn, str(block.height)))
    note = f"of the last {counted(len(blocks), 'block')}, those with due timers"
    empty = "No timer has fallen due lately. A decision record appears here as soon as one does."
    return Table("decisions", "Decisions", BLOCK_COLUMNS, tuple(rows), empty, note=note, scrolls=True)


def _weights(reading: Reading, query: Query, found: AuctionView) -> Table:
    total = len(found.actors)
    offset = offset_of(query, total)
    ranked = sorted(found.actors, key=lambda actor: (-actor.weight, actor.actor))
    rows = tuple(
        Row(
            (
                cells.address(each.actor, reading.names),
                cells.text(decimal_text(each.weight, 1), kind="dim" if each.is_behind else "number"),
                cells.number(each.waiting or None),
                cells.number(each.fires or None),
                cells.number(each.deferrals or None),
                cells.number(each.longest_wait or None),
                cells.number(each.highest_tip or None),
                cells.number(each.cycles_used or None),
            ),
            each.actor.hex(),
        )
        for each in ranked[offset : offset + PAGE_ROWS]
    )
    empty = "No actor has taken part in the auction yet: a weight begins with the first timer that falls due."
    return Table("weights", "Weights", WEIGHT_COLUMNS, rows, empty, pager=pager_of(query, total))


def _queue(reading: Reading, query: Query) -> Table:
    fires = globalbox_of(reading.view)
    offset = offset_of(query, len(fires), name="queue")
    rows = tuple(_fire_row(each, reading) for each in fires[offset : offset + PAGE_ROWS])
    empty = "No fire stands in Globalbox: all that fell due has gone on to the mailbox."
    pager = pager_of(query, len(fires), name="queue")
    return Table("queue", "Globalbox: the queue of fires", QUEUE_COLUMNS, rows, empty, pager=pager)


def _fire_row(each: FireView, reading: Reading) -> Row:
    drawn = (
        cells.number(each.place),
        cells.timer(each.timer_id),
        cells.number(each.fire_seq),
        cells.address(each.target, reading.names),
        cells.number(each.ahead_of_target or None),
        cells.number(each.fire.bid),
        cells.number(each.fire.gas_limit),
        cells.block(each.fire.queued_at),
    )
    return Row(drawn, f"{each.timer_id.hex()}.{each.fire_seq}")


def _mailbox(reading: Reading, query: Query) -> Table:
    entries = mailbox_of(reading.view)
    offset = offset_of(query, len(entries), name="mailbox")
    rows = tuple(_entry_row(each, reading) for each in entries[offset : offset + PAGE_ROWS])
    empty = "Nothing waits in the mailbox: every delivery has run."
    pager = pager_of(query, len(entries), name="mailbox")
    return Table("mailbox", "Mailbox: deliveries in their order", MAILBOX_COLUMNS, rows, empty, pager=pager)


def _entry_row(each: MailboxView, reading: Reading) -> Row:
    drawn = (
        cells.number(each.deliver_seq),
        cells.timer(each.timer_id),
        cells.address(each.target, reading.names),
        _because(each),
        cells.number(each.gas_limit),
        cells.bare_money(each.reserved),
        cells.block(each.materialized_at),
    )
    return Row(drawn, str(each.deliver_seq))


def _because(each: MailboxView) -> Content:
    trigger = each.trigger
    if trigger.due_height is not None:
        return cells.text(f"height {trigger.due_height}")
    return cells.text(counted(len(trigger.matched_keys), "changed key")) if trigger.matched_keys else NOTHING
