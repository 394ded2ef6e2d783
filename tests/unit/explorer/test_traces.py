"""The pages of traces: made when asked for, linked from what they are about, and safe whatever an actor says."""

import re

from tests.unit.explorer.standin import StandIn, ask, look, section
from tests.unit.explorer.test_pages import built
from trailboss.explorer import links
from trailboss.explorer.documents import CallTree, Notice
from trailboss.explorer.pages import PAGES
from trailboss.explorer.pages.blocks import block, transaction
from trailboss.explorer.pages.timers import timer
from trailboss.explorer.pages.traces import trace
from trailboss.explorer.renderer import section_html
from trailboss.explorer.routes import build_document
from trailboss.model.transactions import transaction_hash


def test_page_shows_the_tree_and_no_markup_of_an_actor(hostile: StandIn) -> None:
    """Every block, transaction and fire: folded lines of text, of which a browser obeys none."""
    shown_as_text = 0
    for found in hostile.view.blocks.eventful(1):
        fires = [receipt.timer_id for receipt in found.receipts if receipt.timer_id]
        for subject in (
            str(found.height),
            *(f"0x{each.hex()}" for each in (*map(transaction_hash, found.transactions), *fires)),
        ):
            for show in ("calls", "frames", "lines"):
                tree = section(built(trace(look(hostile), ask(show=show), subject)), "tree")
                assert isinstance(tree, CallTree)
                html = section_html(tree)
                assert html.count("<details") == html.count("</details>") > 0
                assert not re.search("<(img|script|iframe)|[\u202e\x1b]", html)
                shown_as_text += "&lt;img src=x" in html
    assert shown_as_text


def test_pages_lead_to_the_trace_of_what_they_show(hostile: StandIn) -> None:
    """A transaction's, a block's, and a timer's once it has fired."""
    found = next(each for each in hostile.view.blocks.eventful(1) if each.transactions)
    tx_hash = transaction_hash(found.transactions[0])
    fire = next(each for block in hostile.view.blocks.eventful() for each in block.receipts if each.timer_id)
    for document, subject in (
        (transaction(look(hostile), ask(), str(tx_hash)), tx_hash),
        (block(look(hostile), ask(), str(found.height)), found.height),
        (timer(look(hostile), ask(), f"0x{fire.timer_id.hex()}"), fire.timer_id),
    ):
        html = "".join(map(section_html, built(document).sections))
        assert f'href="{links.trace(subject)}"' in html


def test_page_says_why_when_there_is_no_trace(hostile: StandIn) -> None:
    """An unknown id; and while another trace is made, how to try again."""
    page = next(page for page in PAGES if page.build is trace)
    [notice] = built(build_document(page, ask(), "ab" * 32, lambda: look(hostile))).sections
    assert "no block holds a transaction" in notice.title
    hostile.traces._kept.clear()
    with hostile.traces._one:
        document = built(trace(look(hostile), ask(), "1"))
    [busy] = document.sections
    assert document.status == 503
    assert isinstance(busy, Notice)
