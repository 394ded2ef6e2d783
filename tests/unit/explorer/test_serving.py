"""Documents are read once for all, clients hear of blocks, and what goes wrong is a page."""

import asyncio
from typing import Any

import pytest

from tests.unit.explorer.standin import StandIn, ask, look, section, stand_in, words
from trailboss.explorer.documents import Document
from trailboss.explorer.page_builder import Page, Redirect, build_document
from trailboss.explorer.page_context import Reading
from trailboss.explorer.page_service import Explorer
from trailboss.explorer.query import Query
from trailboss.explorer.refresh_signals import Wakes
from trailboss.primitives.errors import Rejection, RejectionReason, ViewGoneError


@pytest.fixture
def node() -> Any:
    """Return a stand-in that may be moved."""
    made = stand_in("fifo", 2)
    yield made
    made.close()


class Counted:
    """A page that counts how often it is built."""

    def __init__(self) -> None:
        self.times = 0
        self.page = Page("/", self.build, "/")

    def build(self, reading: Reading, _query: Query, subject: str) -> Document:
        """Return a page of the height."""
        self.times += 1
        return Document("t", f"{subject} {reading.height}", ())


def test_document_is_read_once_when_several_ask_for_the_same(node: StandIn) -> None:
    """Of one block, one query and one subject there is one document, until the chain goes on."""

    async def ask_around() -> list[str]:
        explorer, counted = Explorer(node), Counted()
        same = await asyncio.gather(*(explorer.document(counted.page, ask(), "a") for _ in range(20)))
        other = await explorer.document(counted.page, ask(page=2), "a")
        assert counted.times == 2
        node.step()
        later = await explorer.document(counted.page, ask(), "a")
        assert counted.times == 3
        return [found.heading for found in (*same, other, later) if isinstance(found, Document)]

    headings = asyncio.run(ask_around())
    assert headings[:21] == [f"a {node.view.height - 1}"] * 21
    assert headings[21] == f"a {node.view.height}"


def test_documents_are_forgotten_when_there_are_too_many(node: StandIn) -> None:
    """What nobody asks for again does not stay."""

    async def fill() -> int:
        explorer, counted = Explorer(node), Counted()
        for number in range(200):
            await explorer.document(counted.page, ask(page=number), "a")
        return len(explorer._documents)

    assert asyncio.run(fill()) <= 64


def test_flags_are_set_with_every_block_while_somebody_looks(node: StandIn) -> None:
    """One subscription serves all; nobody looking, there is none."""

    async def watch() -> None:
        wakes, flags = Wakes(node.feed), [asyncio.Event() for _ in range(50)]
        assert len(node.feed) == 0
        for flag in flags:
            wakes.add(flag)
        await asyncio.sleep(0)
        assert (len(node.feed), len(wakes)) == (1, 50)
        node.step()
        await asyncio.gather(*(flag.wait() for flag in flags))
        for flag in flags[1:]:
            flag.clear()
            wakes.remove(flag)
        assert (len(node.feed), len(wakes)) == (1, 1)
        wakes.remove(flags[0])
        wakes.remove(flags[0])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (len(node.feed), len(wakes)) == (0, 0)
        wakes.add(flags[0])
        await asyncio.sleep(0)
        assert len(node.feed) == 1
        node.feed.close("stopping")
        flags[0].clear()
        await flags[0].wait()

    asyncio.run(watch())


def test_page_is_read_again_when_the_chain_went_back(node: StandIn) -> None:
    """Once; a chain that goes back faster than it can be read is told."""
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
    """What the chain refuses is told in its words."""

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
