"""What an actor chooses is shown as text, whatever it is."""

import re

from tests.unit.explorer.standin import StandIn, ask, look, section, words
from tests.unit.explorer.test_pages import built
from trailboss.explorer.documents import (
    Cell,
    Chart,
    Code,
    Document,
    Facts,
    Filter,
    HeatCell,
    HeatMap,
    Notice,
    PageColumn,
    PageFact,
    Pager,
    PageTable,
    Row,
    Stat,
    Stats,
    Step,
    Steps,
)
from trailboss.explorer.pages import PAGES
from trailboss.explorer.pages.accounts import actor
from trailboss.explorer.pages.blocks import block, events, transaction
from trailboss.explorer.pages.overview import overview
from trailboss.explorer.pages.timers import timer, timers
from trailboss.explorer.renderer import page_html, section_html
from trailboss.index.answers.timers import timer_page
from trailboss.model.transactions import transaction_hash
from trailboss.views.timer_list import TimerFilter

PAGE_BYTES_MAX = 400_000


def test_pages_show_text_alone_when_an_actor_is_hostile(hostile: StandIn) -> None:
    """Lists, blocks, timers and transactions hold markup as the text that it is, and none of it turns or hides."""
    reading = look(hostile)
    documents = [overview(reading, ask(), ""), events(reading, ask(), ""), timers(reading, ask(state="all"), "")]
    for found in hostile.view.blocks:
        documents.append(block(reading, ask(), str(found.height)))
        documents += [transaction(reading, ask(), str(transaction_hash(each))) for each in found.transactions]
    for entry in timer_page(hostile.view, hostile.index, TimerFilter(state="all"), 0, 100).timers:
        documents.append(timer(reading, ask(), str(entry.timer_id)))
    shown_as_text = 0
    for document in documents:
        shown = built(document)
        assert shown.title.isprintable()
        html = "".join(map(section_html, shown.sections))
        shown_as_text += "&lt;img src=x" in html
        assert not re.search("<(img|script|iframe)|[\u202e\x1b]", html)
    assert shown_as_text > len(documents) // 3


def test_timer_page_tells_why_when_its_fire_reverted(hostile: StandIn) -> None:
    """A fire has no page of its own: what its handler raised, and where, stands on the timer's."""
    raised = [
        receipt
        for found in hostile.view.blocks
        for receipt in found.receipts
        if receipt.timer_id and receipt.error is not None
    ]
    assert raised
    for receipt in raised:
        document = built(timer(look(hostile), ask(), receipt.timer_id.hex()))
        assert section(document, "error").title == f"E{receipt.error.code} {receipt.error.slug}"
        assert words(section(document, "error").content).isprintable()


def test_actor_page_stays_small_when_a_slot_is_huge(hostile: StandIn) -> None:
    """Of a value of 200,000 bytes its beginning and its length are shown."""
    document = built(actor(look(hostile), ask(), str(hostile.scene.actors["hostile"].address)))
    assert sum(len(section_html(part)) for part in document.sections) < PAGE_BYTES_MAX
    values = {words(row.cells[0]): words(row.cells[1]) for row in section(document, "storage").rows}
    assert values["huge"] == f"{'A' * 64}… (200,000 bytes)"
    code = section(document, "code")
    assert all(line.isprintable() for line in code.lines)
    assert document.subject[-1].text == "Script_alert_1_"


def test_page_escapes_every_text_and_every_attribute(hostile: StandIn) -> None:
    """Whatever a cell, a filter, a pager, a chart or the search box holds, it is text."""
    bad = "\"><script>alert('1')</script>"
    cell = (Cell(bad, href=bad, copy=bad, note=bad, kind=bad), Cell(bad, copy=bad), Cell(bad))
    pager = Pager(bad, first=bad, last=bad)
    filters = (Filter(bad, bad, bad, hint=bad), Filter(bad, bad, bad, options=((bad, bad),)))
    columns = (PageColumn(bad), PageColumn(bad, bare=True))
    sections = (
        Facts(bad, bad, (PageFact(bad, cell),), note=bad, more=cell[0], copy=bad),
        PageTable(bad, bad, columns, (Row((cell, cell), bad),), pager=pager, filters=filters),
        PageTable(bad, bad, (), (), bad, command=bad),
        Chart(bad, bad, bad, [bad], [(bad, [1]), (bad, [2])]),
        HeatMap(bad, bad, 1, (HeatCell(1, 1, 1, 1),), ((1, bad),), 1),
        Code(bad, bad, (bad,), marked=(1,)),
        Steps(bad, bad, (Step(cell, cell),), pager=pager),
        Notice(bad, bad, cell),
        Stats(bad, bad, (Stat(bad, cell, cell, 5),)),
    )
    document = Document(bad, bad, sections, subject=cell)
    html = page_html(document, PAGES[0], look(hostile), bad, bad)
    assert html.count("<script") == 1
    assert html.count("</script>") == 1
    assert bad not in html
    assert "alert(&#x27;1&#x27;)" in html
