"""Pages are made once for all, the stream reports changes, and what goes wrong is a page."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Response
from starlette.applications import Starlette

from tests.unit.explorer.standin import StandIn, ask, look, section, stand_in, words
from trailboss.explorer import explorer_routes, links, routes
from trailboss.explorer.documents import Document
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Page, Reading, Redirect
from trailboss.explorer.renderer import assets
from trailboss.explorer.routes import PAGES_KEPT, Explorer, build_document
from trailboss.primitives.errors import Rejection, RejectionReason, ViewGoneError


@pytest.fixture
def node() -> Any:
    """Return a stand-in that may be moved."""
    made = stand_in("fifo", 2)
    yield made
    made.close()


def answers(node: StandIn, *paths: str) -> list[Response]:
    """Return what the routes answer to each path, without following where an answer leads."""

    async def ask_all() -> list[Response]:
        transport = ASGITransport(Starlette(routes=explorer_routes(node)))  # type: ignore[arg-type]
        async with AsyncClient(transport=transport, base_url="http://node") as client:
            return [await client.get(path) for path in paths]

    return asyncio.run(ask_all())


def test_routes_answer_with_pages_and_their_assets(node: StandIn) -> None:
    """Whole pages with their status, files that may be kept for ever, and nothing from anywhere else."""
    actor = next(iter(node.scene.actors.values())).address
    paths = ("/", links.BLOCKS, links.block(1), f"{links.ROOT}/nowhere", links.block(9_999), links.account(actor))
    overview, blocks, block, nowhere, missing, account = answers(node, *paths)
    assert [each.status_code for each in (overview, blocks, block, nowhere, missing)] == [200, 200, 200, 404, 404]
    assert "<h1>Blocks</h1>" in blocks.text
    assert "<title>Block 1 · Trailboss</title>" in block.text
    assert (account.status_code, account.headers["location"]) == (307, links.actor(actor))
    for each in (overview, nowhere):
        assert "default-src 'self'" in each.headers["content-security-policy"]
        assert "script-src" not in each.headers["content-security-policy"]
        assert each.headers["cache-control"] == "no-store"
    style, script, icon = answers(node, assets()["explorer.css"][0], assets()["explorer.js"][0], links.FAVICON)
    for each, kind in ((style, "text/css"), (script, "text/javascript"), (icon, "image/svg+xml")):
        assert each.status_code == 200
        assert each.headers["content-type"].startswith(kind)
        assert "immutable" in each.headers["cache-control"]
    assert [each.status_code for each in answers(node, f"{links.ASSETS}/old-explorer.js", links.ROOT)] == [404, 404]


def test_page_is_made_once_when_several_ask_for_the_same(node: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one block, one query and one subject there is one page, until the chain goes on; few are kept."""
    made: list[tuple[str, int]] = []

    def build(page: Page, query: Query, subject: str, look: Any) -> Document:
        made.append((query.path, look().height))
        return Document("t", subject, ())

    async def ask_around() -> int:
        explorer = Explorer(node)  # type: ignore[arg-type]
        await asyncio.gather(*(explorer.page("/", {}) for _ in range(20)))
        await explorer.page("/", {"page": "2"})
        node.step()
        await explorer.page("/", {})
        for number in range(2 * PAGES_KEPT):
            await explorer.page("/", {"page": str(number)})
        return len(explorer._pages)

    monkeypatch.setattr(routes, "build_document", build)
    assert asyncio.run(ask_around()) == PAGES_KEPT
    assert made[:3] == [("/", node.view.height - 1)] * 2 + [("/", node.view.height)]


def test_stream_reports_a_mark_when_pages_change_until_the_node_stops(
    node: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent twice, a comment keeps a quiet connection, and the mark is the one of the page."""
    monkeypatch.setattr(routes, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(routes, "SILENT_LOOKS", 3)

    async def listen() -> list[str]:
        explorer = Explorer(node)  # type: ignore[arg-type]
        stream: AsyncIterator[str] = explorer.changes()
        heard = [await anext(stream), await anext(stream)]
        page = await explorer.page("/", {})
        assert not isinstance(page, Redirect)
        assert f'data-mark="{explorer.mark()}"' in page.html
        node.step()
        heard += [await anext(stream), explorer.mark()]
        node.feed.close("stopping")
        assert [each async for each in stream] == []
        return heard

    first, silence, second, mark = asyncio.run(listen())
    assert silence == ":\n\n"
    assert first != second
    assert second == f"data: {mark}\n\n"


def test_page_shows_why_the_node_failed(node: StandIn) -> None:
    """The header has the reason, whatever the page is."""
    node.health.status, node.health.reason = "failed", 'the "disk" is full'
    (page,) = answers(node, links.BLOCKS)
    assert 'data-state="failed"' in page.text
    assert "the &quot;disk&quot; is full" in page.text


def test_page_is_read_again_when_the_chain_went_back(node: StandIn) -> None:
    """Once; a chain that goes back faster than it can be read has a page that says so."""
    looks = []

    def build(reading: Reading, _query: Query, _subject: str) -> Document:
        looks.append(reading)
        if len(looks) == 1:
            raise ViewGoneError(reading.height, 0)
        return Document("t", "read", ())

    found = build_document(Page("/", build, "/"), ask(), "", lambda: look(node))
    assert isinstance(found, Document)
    assert (found.heading, len(looks)) == ("read", 2)

    def never(reading: Reading, _query: Query, _subject: str) -> Document:
        raise ViewGoneError(reading.height, 0)

    gone = build_document(Page("/", never, "/"), ask(), "", lambda: look(node))
    assert isinstance(gone, Document)
    assert gone.status == 503


def test_defect_is_a_page_and_a_line_of_the_log(node: StandIn, caplog: pytest.LogCaptureFixture) -> None:
    """One page that fails is no node that fails."""

    def broken(_reading: Reading, _query: Query, _subject: str) -> Document:
        raise KeyError("<b>x</b>\x1b")

    found = build_document(Page("/x", broken, "/"), ask(), "", lambda: look(node))
    assert isinstance(found, Document)
    assert found.status == 500
    assert "KeyError" in words(section(found, "defect").content)
    assert words(section(found, "defect").content).isprintable()
    assert "/x could not be built" in caplog.text


def test_refusal_is_a_page_with_its_rule(node: StandIn) -> None:
    """The page of a refusal has the chain's own words."""

    def refuse(_reading: Reading, _query: Query, _subject: str) -> Document:
        raise Rejection(RejectionReason.NOT_FOUND, "this chain has no auction")

    found = build_document(Page("/x", refuse, "/"), ask(), "", lambda: look(node))
    assert isinstance(found, Document)
    assert found.status == 400
    assert section(found, "refused").title == "this chain has no auction"


def test_redirect_passes_when_a_page_is_another(node: StandIn) -> None:
    """A page may say that another one is right."""
    page = Page("/x", lambda *_: Redirect("/"), "/")
    assert build_document(page, ask(nonsense="1"), "", lambda: look(node)) == Redirect("/")
