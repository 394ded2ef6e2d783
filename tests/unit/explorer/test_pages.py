"""Every page under every mechanism: it is built, says what the chain says, and leads to pages of its own alone."""

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.unit.explorer.standin import StandIn, ask, cells_of, look, section, words
from trailboss.explorer import links
from trailboss.explorer.documents import Chart, Document, HeatMap, PageTable
from trailboss.explorer.page_context import Redirect
from trailboss.explorer.pages import NOWHERE, PAGES
from trailboss.explorer.pages.accounts import account, actor, payers
from trailboss.explorer.pages.blocks import block, transaction
from trailboss.explorer.pages.calendar import calendar
from trailboss.explorer.pages.fees import fees
from trailboss.explorer.pages.mechanism import mechanism as mechanism_page
from trailboss.explorer.pages.overview import overview
from trailboss.explorer.pages.search import search
from trailboss.explorer.pages.timers import timer, timers
from trailboss.explorer.renderer import section_html
from trailboss.explorer.routes import build_document
from trailboss.index.answers.timers import timer_page
from trailboss.model.blocks import Origin
from trailboss.model.transactions import transaction_hash
from trailboss.views.timer_list import TimerFilter

MECHANISMS = ("fifo", "lane", "auction", "globalbox")
PLAIN_PAGES = [page for page in PAGES if "{" not in page.path]
Scenes = Callable[[str], StandIn]


def routes() -> list[re.Pattern[str]]:
    """Return what the paths of pages look like."""
    return [re.compile(page.path.replace("{subject}", "[^/?#]+") + r"([?#].*)?") for page in PAGES]


def check_links(document: Document) -> None:
    """Check that a page leads to pages, and shows nothing that a browser would obey or hide."""
    known = routes()
    for part in document.sections:
        for cell in cells_of(part):
            assert cell.text.isprintable(), cell
            assert cell.note.isprintable(), cell
            if cell.href:
                assert any(route.fullmatch(cell.href) for route in known), cell.href
                # An address that is put there as bytes is no address any more.
                values = parse_qsl(urlsplit(cell.href).query, strict_parsing=True) if "?" in cell.href else []
                assert all(value.isprintable() for _, value in values), cell.href


def built(document: Document | Redirect) -> Document:
    """Return a document that is one, fit to be sent."""
    assert isinstance(document, Document)
    assert len({part.key for part in document.sections}) == len(document.sections)
    for part in document.sections:
        assert section_html(part)
    check_links(document)
    return document


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("page", PLAIN_PAGES, ids=lambda page: page.path)
def test_page_is_built_when_the_chain_is_lively(mechanism: str, page: object, scenes: Scenes) -> None:
    """Every main page stands under every mechanism, without a defect and without a link that leads astray."""
    node = scenes(mechanism)
    document = build_document(page, ask(page.path), "", lambda: look(node))  # type: ignore[attr-defined,arg-type]
    assert built(document).status == 200


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_page_is_built_when_a_timer_is_in_any_state(mechanism: str, scenes: Scenes) -> None:
    """Live ones and all that ended have a page with their life."""
    node = scenes(mechanism)
    found = timer_page(node.view, node.index, TimerFilter(state="all"), 0, 10_000).timers
    by_state = {entry.state: entry for entry in found}
    assert {"live", "fired"} <= set(by_state)
    for entry in by_state.values():
        document = built(timer(look(node), ask("/explorer/timer/x"), str(entry.timer_id)))
        assert section(document, "life").steps
        assert entry.handler in words(tuple(cells_of(section(document, "facts"))))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_block_and_transaction_pages_are_built_for_every_block(mechanism: str, scenes: Scenes) -> None:
    """Whatever a block holds can be shown, by height and by hash."""
    node = scenes(mechanism)
    for found in node.view.blocks[-25:]:
        document = built(block(look(node), ask("/explorer/block/1"), str(found.height)))
        assert document == built(block(look(node), ask("/explorer/block/1"), str(found.hash)))
        for each in found.transactions[:2]:
            built(transaction(look(node), ask("/"), str(transaction_hash(each))))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_actor_pages_are_built_for_every_actor(mechanism: str, scenes: Scenes) -> None:
    """Each actor of the scene has its page, and the account's page leads to it."""
    node = scenes(mechanism)
    for handle in node.scene.actors.values():
        document = built(actor(look(node), ask("/"), str(handle.address)))
        assert section(document, "code").lines
        assert account(look(node), ask("/"), str(handle.address)) == Redirect(links.actor(handle.address))
    person = node.scene.chain.accounts[8].address
    assert section(built(account(look(node), ask("/"), str(person))), "receipts").rows
    assert actor(look(node), ask("/"), str(person)) == Redirect(links.account(person))


def test_overview_counts_what_the_chain_has(lane: StandIn) -> None:
    """The numbers at the top are those of the view."""
    document = built(overview(look(lane), ask(), ""))
    stats = {item.label: words(item.content) for item in section(document, "stats").items}
    assert stats["Live timers"] == f"{lane.view.timer_count():,}"
    assert stats["Fires"] == f"{lane.view.fire_count():,}"
    heights = [words(row.cells[0]) for row in section(document, "blocks").rows]
    assert heights == [str(lane.view.height - back) for back in range(10)]


def test_timers_page_holds_every_live_timer_once_when_it_is_turned_to_the_end(lane: StandIn) -> None:
    """The pages of the list together are the list, in order of height."""
    seen: list[str] = []
    for page in range(1, 100):
        table = section(built(timers(look(lane), ask(links.TIMERS, page=page), "")), "timers")
        seen += [row.key for row in table.rows]
        if not table.pager.following:
            break
    assert seen == [each.timer_id.hex() for each in lane.view.timers()]


def test_timers_page_shows_the_last_page_when_a_later_one_is_asked_for(lane: StandIn) -> None:
    """A page that has gone as timers fired is no empty one."""
    table = section(built(timers(look(lane), ask(links.TIMERS, page=9_999), "")), "timers")
    assert table.rows
    assert not table.pager.following


def test_timers_page_complains_when_a_filter_is_no_value(lane: StandIn) -> None:
    """The page names what it cannot read, and shows the list without it."""
    query = ask(links.TIMERS, actor="0x12", state="undead", **{"from": "-3"})
    page = next(page for page in PAGES if page.path == links.TIMERS)
    document = built(build_document(page, query, "", lambda: look(lane)))
    complaints = words(section(document, "complaints").content)
    assert "no state 'undead'" in complaints
    assert "actor: Address must be 40 hexadecimal digits" in complaints
    assert "from is a whole number" in complaints
    assert section(document, "timers").rows


def test_calendar_counts_every_timer_once(lane: StandIn) -> None:
    """Ring, epochs and overflow divide the live timers among them, and each cell leads to those it counts."""
    document = built(calendar(look(lane), ask(links.CALENDAR), ""))
    maps = {part.key: part for part in document.sections if isinstance(part, HeatMap)}
    assert set(maps) == {"next", "ring", "epochs"}
    counts = {key: sum(cell.count for cell in found.cells) for key, found in maps.items()}
    assert counts["ring"] + counts["epochs"] + lane.view.due_count() == lane.view.timer_count()
    hottest = max(maps["next"].cells, key=lambda cell: cell.level)
    where = {"from": hottest.first, "to": hottest.last}
    table = section(built(timers(look(lane), ask(links.TIMERS, **where), "")), "timers")
    assert len(table.rows) == hottest.count > 0
    assert maps["next"].now == maps["next"].cells[0].first == lane.view.height + 1


def test_transaction_page_marks_the_line_when_it_reverted(lane: StandIn) -> None:
    """An exception has its rule, its lines and the source around them."""
    found = next(
        each
        for each in reversed(lane.view.blocks[1:])
        if any(receipt.error is not None and receipt.origin is Origin.TRANSACTION for receipt in each.receipts)
    )
    receipt = next(receipt for receipt in found.receipts if receipt.error is not None)
    document = built(transaction(look(lane), ask("/"), receipt.origin_hash.hex()))
    assert "do not balance" in words(section(document, "error").content)
    source = section(document, "source")
    marked = {source.lines[number - source.first].strip() for number in source.marked}
    assert (
        'raise ValueError("line %d: debit %d and credit %d do not balance" % (entry["line"], debit, credit))' in marked
    )
    assert [step.tone for step in section(document, "traceback").steps][-1] == "bad"
    assert {fact.label for fact in section(document, "error-facts").rows} >= {"Why", "What to do"}


def test_block_page_tells_who_waited_when_a_lane_was_full(lane: StandIn) -> None:
    """The decision record stands with ranks, outcomes and the reason why the others could not run."""
    found = next(each for each in lane.view.blocks[1:] if each.decisions is not None and each.decisions.outranked)
    document = built(block(look(lane), ask("/"), str(found.height)))
    outcomes = [words(row.cells[-1]) for row in section(document, "due").rows]
    assert outcomes[0] == "fired"
    assert outcomes[-1] == "waits: outranked"
    assert "outranked: the lane had" in words(section(document, "waiting-0").content)


def test_payers_page_warns_when_a_balance_runs_dry(lane: StandIn) -> None:
    """Who soon cannot pay stands at the top, with when and for what."""
    document = built(payers(look(lane), ask(links.PAYERS), ""))
    table = section(document, "payers")
    assert {words(row.cells[0]).split("…")[0] for row in table.rows} >= {"HeartbeatActor", "Ledger", "Planner"}
    alerts = [part for part in document.sections if part.key.startswith("alert-")]
    assert alerts
    assert all("a timer needs" in words(part.content) for part in alerts)
    # A balance that is already empty is no alert any more: its timers are among the ends.
    assert isinstance(section(document, "ends"), PageTable)


def test_fees_page_draws_as_many_points_as_fit_when_all_blocks_are_asked_for(lane: StandIn) -> None:
    """Every block is in one of the points of each chart."""
    document = built(fees(look(lane), ask(links.FEES, blocks="all"), ""))
    charts = [part for part in document.sections if isinstance(part, Chart)]
    assert len(charts) == 5
    for chart in charts:
        assert len(chart.points) == len(chart.series[0][1])
        assert chart.label


@pytest.mark.parametrize(
    ("mechanism", "key"),
    [("lane", "weights"), ("auction", "weights"), ("globalbox", "queue"), ("globalbox", "mailbox")],
)
def test_lane_page_has_what_the_mechanism_keeps(mechanism: str, key: str, scenes: Scenes) -> None:
    """Weights in the lane and under the auction, the queue and the mailbox under Globalbox."""
    document = built(mechanism_page(look(scenes(mechanism)), ask(links.MECHANISM), ""))
    assert section(document, key).columns


def test_search_leads_to_the_page_when_one_thing_is_called_so(lane: StandIn) -> None:
    """Whole ids, heights and names of accounts need no list."""
    live = next(iter(lane.view.timers()))
    person = lane.scene.chain.accounts[3].address
    asked = {
        str(lane.view.head.hash): links.block(lane.view.head.hash),
        f"0x{live.timer_id.hex()}": links.timer(live.timer_id),
        live.timer_id.hex()[:14].upper(): links.timer(live.timer_id),
        str(person): links.account(person),
        "Account 3": links.account(person),
        f"{person.hex()[:12]}": links.account(person),
    }
    for text, where in asked.items():
        assert search(look(lane), ask(links.SEARCH, q=text), "") == Redirect(where)


def test_search_says_how_when_nothing_is_called_so(lane: StandIn) -> None:
    """What is not there is no empty page."""
    document = built(search(look(lane), ask(links.SEARCH, q="<script>alert(1)</script>"), ""))
    assert document.status == 404
    assert "first digits" in words(section(document, "nothing").content)
    assert built(search(look(lane), ask(links.SEARCH), "")).status == 200


@pytest.mark.parametrize(
    ("build", "subject", "status"),
    [
        (block, "999999", 404),
        (block, "0x" + "ab" * 32, 404),
        (block, "0x12", 400),
        (block, "-1", 400),
        (timer, "ab" * 32, 404),
        (timer, "../../etc/passwd", 400),
        (transaction, "cd" * 32, 404),
        (actor, "0x" + "ef" * 20, 404),
        (account, "0x", 400),
    ],
)
def test_page_says_so_when_its_subject_is_not_there(build: object, subject: str, status: int, lane: StandIn) -> None:
    """Nothing that a visitor types makes a defect."""
    page = next(page for page in (*PAGES, NOWHERE) if page.build is build)
    document = built(build_document(page, ask("/"), subject, lambda: look(lane)))
    assert document.status == status


def test_account_page_says_how_to_fund_it_when_the_chain_has_none(lane: StandIn) -> None:
    """An address without an account has a page, not an error."""
    document = built(account(look(lane), ask("/"), "0x" + "ef" * 20))
    assert "trailboss faucet 0x" in words(section(document, "empty").content)
