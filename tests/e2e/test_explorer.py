"""The explorer in Debian's Chromium, on a node of its own: pages, keyboard, colours, narrow screens, live numbers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tools.browser import CHROMIUM, FLAGS
from tools.explorer_scene import LIVELY, deploy_hostile, open_scene
from trailboss.explorer import links

playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
expect = playwright_api.expect

STEPS = 90
MAIN_PAGES = (
    links.OVERVIEW,
    links.BLOCKS,
    links.TIMERS,
    links.CALENDAR,
    links.ACCOUNTS,
    links.PAYERS,
    links.FEES,
    links.MECHANISM,
    links.EVENTS,
    links.MEMPOOL,
    links.SEARCH,
    links.search("nothing is called so"),
    f"{links.ROOT}/nowhere",
)
CONTRAST_MIN = 4.5
AUDIT = (Path(__file__).parent / "explorer_audit.js").read_text(encoding="utf-8")
"""What is wrong with a page for eyes and fingers, as a list of sentences."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="Chromium is not installed: apt-get install chromium"),
]


@dataclass
class Served:
    """A node that serves a scene.

    Attributes:
        base: Its address.
        paths: Pages of things that are there, by what they are.
        hostile: Pages that a hostile actor has a part in.
    """

    base: str
    paths: dict[str, str] = field(default_factory=dict)
    hostile: list[str] = field(default_factory=list)

    def post(self, path: str, **members: object) -> Any:
        """Return the answer to a request."""
        connection = HTTPConnection(self.base.removeprefix("http://"), timeout=30)
        connection.request("POST", path, json.dumps(members), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        assert answer.status == 200, body
        return body


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a node in manual pace over a chain on which much has happened."""
    folder = tmp_path_factory.mktemp("explorer")
    scene = open_scene("lane", STEPS, params=LIVELY, data_dir=folder / "chain")
    hostile = deploy_hostile(scene)
    chain = scene.chain.chain
    reverted = next(
        (block, receipt)
        for block in reversed(chain.blocks[1:])
        for receipt in block.receipts
        if receipt.error is not None and b"do not balance" in receipt.error.what.encode()
    )
    full = next(block for block in chain.blocks[1:] if block.decisions is not None and block.decisions.outranked)
    live = next(iter(chain.timers()))
    paths = {
        "block": links.block(full.height),
        "transaction": links.transaction(reverted[1].origin_hash),
        "timer": links.timer(live.timer_id),
        "actor": links.actor(scene.actors["heartbeat"].address),
        "account": links.account(scene.chain.accounts[8].address),
    }
    touched = {event.timer_id for event in scene.chain.events() if event.emitter == hostile.address and event.timer_id}
    blocks = {receipt.block_height for receipt in scene.chain.receipts(actor=hostile)}
    shouted = next(r for r in reversed(chain.head.receipts) if r.error is not None)
    bad = [links.actor(hostile.address), *map(links.timer, sorted(touched)), *map(links.block, sorted(blocks))]
    bad += [links.transaction(shouted.origin_hash), links.OVERVIEW, links.EVENTS, f"{links.TIMERS}?state=all"]
    scene.chain.close()
    arguments = ["dev", "--pace", "manual", "--port", "0", "--chain", str(folder / "chain"), "--json"]
    log = (folder / "log").open("wb")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    node = subprocess.Popen(
        [sys.executable, "-m", "trailboss", *arguments], stdout=subprocess.PIPE, stderr=log, env=environment, text=True
    )
    assert node.stdout is not None
    text = ""
    while not text.endswith("\n}\n"):
        line = node.stdout.readline()
        assert line, (folder / "log").read_text(encoding="utf-8")
        text += line
    document = json.loads(text)
    yield Served(f"http://{document['host']}:{document['port']}", paths, bad)
    node.terminate()
    node.stdout.close()
    assert node.wait(timeout=30) == 0
    log.close()
    assert "could not be built" not in (folder / "log").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Any]:
    """Start Chromium."""
    with playwright_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@dataclass
class Watched:
    """A page of the browser, and what it did.

    Attributes:
        page: Playwright's.
        complaints: Errors and warnings of its console, and of its scripts.
        requests: Addresses that it asked for.
        dialogs: What it has said in dialogs.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def go(self, served: Served, path: str) -> Any:
        """Open a page, and wait until all of it is drawn."""
        answer = self.page.goto(served.base + path)
        expect(self.page.locator("main h1")).to_be_visible()
        return answer

    def check_quiet(self, served: Served, *, errors: tuple[str, ...] = ()) -> None:
        """Check that nothing was asked for elsewhere, and nothing complained of."""
        assert [each for each in self.requests if not each.startswith((served.base, "data:"))] == []
        assert [each for each in self.complaints if not each.startswith(errors or "\0")] == []
        assert self.dialogs == []


def watch(browser: Any, **options: Any) -> Watched:
    """Return a fresh page that is watched."""
    watched = Watched(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page())
    page = watched.page
    page.on("console", lambda said: said.type in ("error", "warning") and watched.complaints.append(said.text))
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on("request", lambda request: watched.requests.append(request.url))
    page.on("websocket", lambda socket: watched.requests.append(socket.url))
    page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
    return watched


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """Open a page of the usual width."""
    opened = watch(browser, reduced_motion="reduce")
    yield opened
    opened.page.context.close()


def dark(page: Any) -> bool:
    """Return whether a page is light on dark."""
    return bool(page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 22)")


def keep_picture(page: Any, path: str, scheme: str) -> None:
    """Store a picture of a page in the folder that TRAILBOSS_SCREENSHOTS names, if it does."""
    folder = os.environ.get("TRAILBOSS_SCREENSHOTS")
    if folder:
        name = re.sub(r"[^a-z0-9]+", "-", path.removeprefix(links.ROOT).lower()).strip("-")[:40] or "overview"
        page.screenshot(path=Path(folder) / f"{name}-{scheme}.png", full_page=True)


def test_pages_are_whole_when_they_are_light_or_dark_and_wide_or_narrow(browser: Any, served: Served) -> None:
    """Each has its title and landmarks, text that can be read, names for what is used, and scrolls one way alone."""
    for scheme, width in (("light", 1280), ("dark", 390)):
        opened = watch(browser, color_scheme=scheme, viewport={"width": width, "height": 900})
        faults = []
        for path in (*MAIN_PAGES, links.search("f" * 64), *served.paths.values()):
            opened.go(served, path)
            faults += [f"{scheme} {width} {path}: {each}" for each in opened.page.evaluate(AUDIT, CONTRAST_MIN)]
            keep_picture(opened.page, path, scheme)
            title = opened.page.title()
            assert title.endswith(" · Trailboss"), path
            assert dark(opened.page) == (scheme == "dark"), path
        assert faults == []
        opened.check_quiet(served, errors=("Failed to load resource: the server responded with a status of 404",))
        opened.page.context.close()


def test_numbers_follow_the_chain_when_blocks_come(served: Served, watched: Watched) -> None:
    """Header, lists and charts change in place: the page is never loaded again."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    page.evaluate("window.same = 1")
    before = int(page.locator("[data-live=height]").inner_text())
    root = page.locator("footer [data-live=state-root]").inner_text()
    first = page.locator("#section-blocks").locator("xpath=../..").locator("tbody tr").first
    expect(first.locator("a").first).to_have_text(str(before))
    served.post("/dev/mine", blocks=3)
    expect(page.locator("[data-live=height]")).to_have_text(str(before + 3))
    expect(first.locator("a").first).to_have_text(str(before + 3))
    expect(page.locator("footer [data-live=state-root]")).not_to_have_text(root)
    assert page.evaluate("window.same") == 1
    watched.check_quiet(served)


def test_pages_read_without_scripts(browser: Any, served: Served) -> None:
    """All that a page says is there; what needs a script is not shown."""
    opened = watch(browser, java_script_enabled=False)
    for path in (*MAIN_PAGES, *served.paths.values()):
        opened.go(served, path)
        assert opened.page.locator(".section").count() > 0, path
    opened.go(served, links.FEES)
    assert opened.page.locator(".chart svg").count() == 5
    expect(opened.page.locator("#theme")).to_be_hidden()
    opened.page.locator("select[name=blocks]").select_option("all")
    opened.page.get_by_role("button", name="Show").click()
    expect(opened.page).to_have_url(re.compile("blocks=all$"))
    opened.page.context.close()


def test_chart_names_its_values(served: Served, watched: Watched) -> None:
    """Under the pointer, and at the point that the arrow keys lead to."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    chart, tip = page.locator(".chart").last, page.locator("#values")
    rows = chart.locator("xpath=..").locator("tbody tr")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".plot .background").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 5)
    expect(tip.locator("div").first).to_have_text(rows.last.locator("th").inner_text())
    page.mouse.move(box["x"] + 1, box["y"] + 5)
    expect(tip.locator("div").first).to_have_text(rows.first.locator("th").inner_text())
    page.mouse.move(1, 1)
    expect(tip).to_have_count(0)
    chart.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tip.locator("div").first).to_have_text(rows.nth(2).locator("th").inner_text())
    expect(tip.locator("div").nth(1)).to_have_text("Fires " + rows.nth(2).locator("td").first.inner_text())
    watched.check_quiet(served)


def test_focus_and_selection_stay_when_blocks_come(served: Served, watched: Watched) -> None:
    """What is in both states of a page is the same node."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    link = page.locator("[data-key=section-blocks] tbody a").first
    height = link.inner_text()
    link.focus()
    served.post("/dev/mine", blocks=2)
    expect(page.locator("[data-live=height]")).not_to_have_text(height)
    expect(page.locator("[data-key=section-blocks] tbody a").nth(2)).to_be_focused()
    assert page.evaluate("document.activeElement.textContent") == height


def test_page_rests_in_the_background(served: Served, watched: Watched) -> None:
    """In the background nothing is sent; in the foreground again it is what it would have been."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    height = page.locator("[data-live=height]")
    before = int(height.inner_text()) + 1
    served.post("/dev/mine", blocks=1)
    expect(height).to_have_text(str(before))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    # What the browser sent before this is handled before this is answered.
    watcher = watch(page.context.browser)
    watcher.go(served, links.OVERVIEW)
    served.post("/dev/mine", blocks=2)
    expect(watcher.page.locator("[data-live=height]")).to_have_text(str(before + 2))
    assert height.inner_text() == str(before)
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {configurable: true, get: () => false});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    expect(height).to_have_text(str(before + 2))
    watcher.page.context.close()


def test_timer_counts_down_when_blocks_come(served: Served, watched: Watched) -> None:
    """A timer's page shows in how many blocks it is due, and then that it has fired."""
    page = watched.page
    watched.go(served, f"{links.TIMERS}?state=live")
    ring = page.locator("tbody tr").first
    height = int(ring.locator("td").nth(1).inner_text())
    ring.locator("a").first.click()
    now = int(page.locator("[data-live=height]").inner_text())
    ahead = height - now
    expect(page.locator(".notice h2").first).to_have_text(f"Due in {ahead} block{'' if ahead == 1 else 's'}")
    served.post("/dev/mine", blocks=ahead)
    expect(page.locator(".head .badge")).to_have_text("fired")
    expect(page.locator("#section-life").locator("xpath=../..")).to_contain_text("fired at rank")


def test_everything_is_reached_by_keyboard(served: Served, watched: Watched) -> None:
    """Skip link, search, navigation and the maps of the calendar, each with a focus that is seen."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(re.compile("Block 7|Search"))

    watched.go(served, links.CALENDAR)
    tile = page.locator(".tile[tabindex='0']").first
    tile.focus()
    style = tile.evaluate("node => getComputedStyle(node).outlineStyle + getComputedStyle(node).outlineWidth")
    assert style == "solid2px"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    focused = page.locator(".tile:focus")
    label = focused.get_attribute("aria-label")
    assert page.locator(".heat .tile").nth(61).get_attribute("aria-label") == label
    expect(page.locator(".tip").first).to_have_text(label)
    assert page.locator(".tile[tabindex='0']").count() == page.locator(".heat").count()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Timers")
    where = re.match(r"height (\d+):", label)[1]
    assert f"from={where}&to={where}" in page.url
    watched.check_quiet(served)


def test_lists_turn_in_place_and_the_address_remembers(served: Served, watched: Watched) -> None:
    """Pages and filters are in the address, which back, forward and a reload go by."""
    page = watched.page
    watched.go(served, links.TIMERS)
    page.evaluate("window.same = 1")
    first = page.locator("tbody tr a").first.inner_text()
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator(".pager .words")).to_have_text(re.compile(r"^51 to "))
    assert page.url.endswith("/explorer/timers?page=2")
    second = page.locator("tbody tr a").first.inner_text()
    assert second != first
    page.get_by_label("State").select_option("fired")
    expect(page.locator("h2").first).to_have_text("Timers: fired")
    assert page.url.endswith("/explorer/timers?state=fired")
    page.go_back()
    expect(page.locator("tbody tr a").first).to_have_text(second)
    expect(page.get_by_label("State")).to_have_value("live")
    page.go_back()
    expect(page.locator("tbody tr a").first).to_have_text(first)
    page.go_forward()
    expect(page.locator("tbody tr a").first).to_have_text(second)
    assert page.evaluate("window.same") == 1
    page.reload()
    expect(page.locator("tbody tr a").first).to_have_text(second)
    page.get_by_label("From height").fill("1000")
    page.keyboard.press("Enter")
    expect(page.locator(".pager .words")).to_have_text(re.compile(r"^1 to "))
    assert page.url.endswith("from=1000")
    watched.check_quiet(served)


def test_links_of_lists_open_pages_and_the_way_back(served: Served, watched: Watched) -> None:
    """From a block to its parent's neighbour, to a transaction, to its actor, and back again."""
    page = watched.page
    watched.go(served, served.paths["transaction"])
    expect(page.locator(".notice.bad h2")).to_have_text("E1210 pvm_error")
    expect(page.locator(".code li.marked .text").last).to_contain_text("raise ValueError")
    page.get_by_role("link", name="Whole source").click()
    expect(page.locator("h1")).to_have_text("Actor")
    expect(page.locator("#section-code")).to_be_in_viewport()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Transaction")
    watched.go(served, served.paths["block"])
    expect(page.locator("#section-due")).to_be_visible()
    page.get_by_role("link", name="Next →").click()
    height = int(served.paths["block"].rpartition("/")[2])
    expect(page.locator("h1")).to_have_text(f"Block {height + 1}")
    watched.check_quiet(served)


def test_colours_are_remembered_when_they_are_chosen(served: Served, watched: Watched) -> None:
    """A choice holds for every page and the next visit; the system's colours are followed until then."""
    page = watched.page
    watched.go(served, links.FEES)
    root = page.locator("html")
    assert not dark(page)
    page.emulate_media(color_scheme="dark")
    assert dark(page)
    page.get_by_label("Colours").select_option("light")
    assert not dark(page)
    watched.go(served, links.BLOCKS)
    assert not dark(page)
    expect(page.get_by_label("Colours")).to_have_value("light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")
    assert not dark(page)
    watched.check_quiet(served)


def test_id_is_copied_whole_when_its_button_is_pressed(served: Served, watched: Watched) -> None:
    """What is shown short is copied in full, and the button says that it has done so."""
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.go(served, served.paths["timer"])
    button = page.locator(".head .copy")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-label", "Copied")
    assert page.evaluate("navigator.clipboard.readText()") == served.paths["timer"].rpartition("/")[2]


def test_search_leads_on_or_says_how(served: Served, watched: Watched) -> None:
    """One thing found is its page; nothing found is a page of its own."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    page.locator("#search").fill(served.paths["timer"].rpartition("/")[2][:16])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Timer")
    page.locator("#search").fill("account 3")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Account")
    assert watched.go(served, links.search("<b>x</b>")).status == 404
    expect(page.locator("#search")).to_have_value("<b>x</b>")
    expect(page.locator(".notice h2")).to_have_text("Nothing is called <b>x</b>")


def test_hostile_actor_is_text_alone(served: Served, watched: Watched) -> None:
    """Markup, templates, marks that turn the writing and huge values do nothing but stand there."""
    page = watched.page
    seen = 0
    for path in served.hostile:
        watched.go(served, path)
        assert page.evaluate("window.pwned") is None, path
        assert page.locator("main script, main img, main iframe, main b").count() == 0, path
        text = page.locator("body").inner_text()
        assert not re.search("[\u200b\u202a-\u202e\u2066-\u2069\x1b\x00]", text), path
        assert "NaN" not in text
        seen += "<img src=x" in text
    assert seen >= 5
    watched.check_quiet(served)


def test_page_comes_back_when_the_connection_was_lost(served: Served, watched: Watched) -> None:
    """The stream may break: the page says so, and goes on by itself."""
    page = watched.page
    watched.go(served, links.OVERVIEW)
    before = int(page.locator("[data-live=height]").inner_text())
    page.route(f"**{links.STREAM}", lambda route: route.abort())
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("html")).to_have_attribute("data-lost", "", timeout=15_000)
    served.post("/dev/mine", blocks=1)
    page.unroute(f"**{links.STREAM}")
    expect(page.locator("html")).not_to_have_attribute("data-lost", "", timeout=15_000)
    expect(page.locator("[data-live=height]")).to_have_text(str(before + 1))


def test_api_keeps_its_own_answers_beside_the_explorer(served: Served) -> None:
    """Paths that are not the explorer's are refused by the API, in its form."""
    connection = HTTPConnection(served.base.removeprefix("http://"), timeout=30)
    for method, path, status, kind in (
        ("GET", "/nowhere", 404, "application/json"),
        ("GET", "/submit", 405, "application/json"),
        ("GET", "/explorer/nowhere", 404, "text/html"),
        ("GET", "/", 200, "text/html"),
    ):
        connection.request(method, path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, path
        assert answer.headers["Content-Type"].startswith(kind), path
    connection.close()
