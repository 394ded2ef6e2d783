"""A page in a browser follows the chain while somebody looks at it, and leaves nothing behind."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.explorer.standin import StandIn, ask, stand_in
from trailboss.explorer import client as client_module
from trailboss.explorer.client import PageClient
from trailboss.explorer.documents import Document
from trailboss.explorer.page_builder import Page
from trailboss.explorer.page_context import Reading
from trailboss.explorer.page_service import Explorer
from trailboss.explorer.query import Query


class Shown:
    """Takes note of what it is to show."""

    def __init__(self) -> None:
        self.states: list[Any] = []

    def show(self, state: Any) -> None:
        """Take note."""
        self.states.append(state)


def height_page(reading: Reading, query: Query, _subject: str) -> Document:
    """Return a page of the height, and of what was asked for."""
    return Document("t", f"{reading.height} {query.text('page')}", ())


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in that may be moved, with pages that need not rest."""
    monkeypatch.setattr(client_module, "REFRESH_SECONDS", 0)
    monkeypatch.setattr(client_module, "REST_FACTOR", 0)
    made = stand_in("fifo", 2)
    yield made
    made.close()


def opened(node: StandIn, *, is_live: bool = True) -> tuple[PageClient, Explorer, Shown, Shown]:
    """Return a page as if a browser had it open, what it shows, and what its header does."""
    explorer = Explorer(node)  # type: ignore[arg-type]
    page = Page("/", height_page, "/", is_live=is_live)
    browser: Any = SimpleNamespace(is_deleted=False)
    made = PageClient(explorer, page, ask(), "", browser)
    made._view = view = Shown()  # type: ignore[assignment]
    made._shell = shell = Shown()  # type: ignore[assignment]
    return made, explorer, view, shell


async def until(condition: Any) -> None:
    """Let others run until something holds."""
    while not condition():
        await asyncio.sleep(0)


def test_page_follows_the_chain_until_it_is_closed(node: StandIn) -> None:
    """Each block that it hears of is shown once; after the end nothing is."""

    async def use() -> None:
        made, explorer, view, shell = opened(node)
        made.begin()
        made.begin()
        await until(lambda: view.states)
        node.step()
        await until(lambda: len(view.states) == 2)
        assert [state.heading for state in view.states] == [f"{node.view.height - 1} ", f"{node.view.height} "]
        assert shell.states[-1]["height"] == node.view.height
        made.end()
        made.end()
        node.step()
        await asyncio.sleep(0.01)
        assert len(view.states) == 2
        assert (len(explorer.wakes), len(node.feed)) == (0, 0)

    asyncio.run(use())


def test_page_leaves_its_body_alone_when_it_never_changes(node: StandIn) -> None:
    """The header goes on with the chain, whatever the page is about."""

    async def use() -> None:
        made, _, view, shell = opened(node, is_live=False)
        made.begin()
        await until(lambda: shell.states)
        node.step()
        await until(lambda: len(shell.states) == 2)
        made.end()
        assert view.states == []

    asyncio.run(use())


def test_page_shows_what_was_asked_for_last_when_it_is_turned(node: StandIn) -> None:
    """Whoever turns a page while another one is read sees the one that was wanted."""

    async def use() -> None:
        made, _, view, _ = opened(node)
        turns = [made._on_go(SimpleNamespace(args=f"?page={number}")) for number in (2, 3)]  # type: ignore[arg-type]
        await asyncio.gather(*turns)
        assert [state.heading.split()[1] for state in view.states] == ["3"]

    asyncio.run(use())


def test_page_ends_whenever_it_is_told_to(node: StandIn) -> None:
    """No moment is the wrong one, not even that in which a block has just come."""

    async def use() -> None:
        for moment in range(60):
            made, _, _, _ = opened(node)
            made.begin()
            task = made._task
            assert task is not None
            for turn in range(moment):
                if turn % 3 == 1:
                    made._flag.set()
                await asyncio.sleep(0)
            made._flag.set()
            made.end()
            done, _ = await asyncio.wait([task], timeout=5)
            assert task in done, moment

    asyncio.run(use())
