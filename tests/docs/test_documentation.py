"""The pages for agents: an index with a line each, on a node, on the site, in the wheel."""

import asyncio
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from httpx import ASGITransport, AsyncClient
from starlette.applications import Starlette

from tools.markdown_site import on_post_build
from trailboss.api.documents import document_routes
from trailboss.documentation import document_pages, documents_index, search_documents

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)


def nav_pages(nav):
    """Yield the pages of a navigation."""
    for entry in nav:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, str):
                yield target
            else:
                yield from nav_pages(target)


def site_nav():
    """Return the pages that the site lists."""
    # The file has tags of Python's, which the safe loader refuses.
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return list(nav_pages(yaml.safe_load(text[text.index("\nnav:") : text.index("\n# The records")])["nav"]))


def test_index_has_every_page_of_the_site_with_a_sentence():
    """And every page of the site is in it."""
    entries = {path: (title, summary) for title, path, summary in ENTRY.findall(documents_index(""))}
    assert {*site_nav()} <= {*entries} == {*document_pages()}
    assert all(title and len(summary) > 10 for title, summary in entries.values())


def test_every_link_between_pages_resolves():
    """As Markdown, where no site helps; files that are no pages lie beside them on the site alone."""
    for page in document_pages().values():
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+\.md)", page.text):
            path = (ROOT / "docs" / page.folder / target).resolve().relative_to(ROOT / "docs").as_posix()
            assert path in document_pages(), f"{page.path} links to {target}"


def test_node_answers_with_index_and_pages():
    """Every link of its index leads to a page; what is no page is not found."""

    async def ask():
        transport = ASGITransport(Starlette(routes=document_routes()))
        async with AsyncClient(transport=transport, base_url="http://node") as client:
            index = await client.get("/llms.txt")
            pages = [await client.get(path) for _, path, _ in ENTRY.findall(index.text)]
            return index, pages, [await client.get(f"/docs/{path}") for path in ("none.md", "../pyproject.toml", "")]

    index, pages, missing = asyncio.run(ask())
    assert (index.status_code, index.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert len(pages) == len(document_pages())
    assert {(each.status_code, each.headers["content-type"]) for each in pages} == {
        (200, "text/markdown; charset=utf-8")
    }
    assert [each.status_code for each in missing] == [404, 404, 404]


def test_site_has_index_and_pages(tmp_path):
    """Beside the HTML, so that the links of the index are relative."""
    for page in document_pages().values():
        (tmp_path / page.folder).mkdir(parents=True, exist_ok=True)
    on_post_build({"site_dir": str(tmp_path)})
    for _, path, _ in ENTRY.findall((tmp_path / "llms.txt").read_text(encoding="utf-8")):
        assert (tmp_path / path).read_text(encoding="utf-8") == document_pages()[path].text


@pytest.mark.slow
def test_wheel_has_the_pages_and_not_the_pictures(tmp_path):
    """An agent reads them without the repository."""
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    packaged = {name.removeprefix("trailboss/docs/") for name in ZipFile(wheel).namelist() if "/docs/" in name}
    assert packaged == {*document_pages()}


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("breakpoint debugger", "how-to/debug-in-an-editor.md"),
        ("timer unfunded payer without money", "tutorial/watchtower.md"),
        ("run every N blocks recurring", "how-to/recurring-timers.md"),
        ("qwertyuiop", None),
    ],
)
def test_search_finds_the_page(query, page):
    """Among the first ones; nothing for words that no page has."""
    found = [each.path for each, _ in search_documents(query)]
    assert page in found[:4] if page else not found
