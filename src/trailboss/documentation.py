"""The pages of the documentation, as they lie in the package: Markdown, with an index for agents."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from math import log2
from pathlib import Path
from typing import Final

from msgspec import Struct

INDEX: Final = "llms.txt"
ABOUT: Final = "A local chain for Cowboy actors: run, test, measure and explain protocol timers."
DECISIONS: Final = "decisions"
SECTIONS: Final[Mapping[str, str]] = {
    "": "Trailboss", "tutorial": "Tutorial", "cookbook": "Cookbook", "how-to": "How to", "concepts": "Concepts",
    "reference": "Reference", "studies": "Answers by simulation", "spec": "Sources", DECISIONS: "Optional",
}  # fmt: skip
"""What the folders are called, in order; readers may skip the last."""
FOUND_MAX: Final = 8  # pages that a search names
UNLIKELY: Final = 0.6  # what a page of decisions counts beside another
EXCERPT: Final = 400  # characters of each
_FENCE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^# .*$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_WORD: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"(.+?\.)(?:\s|$)", re.DOTALL)


class DocumentPage(Struct, frozen=True):
    """A page."""

    path: str  # as ``how-to/recurring-timers.md``
    text: str  # Markdown

    @property
    def folder(self) -> str:
        """The folder that it is in; empty for none."""
        return self.path.rpartition("/")[0]

    @property
    def title(self) -> str:
        """Its heading."""
        return next((line[2:] for line in self.text.splitlines() if line.startswith("# ")), self.path)

    @property
    def summary(self) -> str:
        """The first sentence of its first paragraph."""
        paragraphs = _FENCE.sub("", _HEADING.split(self.text, maxsplit=1)[-1]).split("\n\n")
        plain = (each for each in paragraphs if each.strip() and each.lstrip()[0] not in "#|-![`>")
        words = " ".join(_LINK.sub(r"\1", next(plain, "")).split())
        match = _SENTENCE.match(words)
        return match[1] if match else words


@cache
def document_pages() -> Mapping[str, DocumentPage]:
    """Return the pages by path, in the order of the index."""
    packaged = Path(str(files("trailboss"))) / "docs"
    # An editable installation has them in the repository.
    root = packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "docs"
    found = [
        DocumentPage(each.relative_to(root).as_posix(), each.read_text(encoding="utf-8")) for each in root.rglob("*.md")
    ]
    order = list(SECTIONS)
    found.sort(key=lambda page: (order.index(page.folder), page.path != "index.md", page.path))
    return {page.path: page for page in found}


def documents_index(prefix: str) -> str:
    """Return the index: a line for each page, with a link that begins with ``prefix``."""
    lines = ["# Trailboss", "", f"> {ABOUT}"]
    folder = None
    for page in document_pages().values():
        if page.folder != folder:
            folder = page.folder
            lines += ["", f"## {SECTIONS[folder]}", ""]
        lines.append(f"- [{page.title}]({prefix}{page.path}): {page.summary}")
    return "\n".join(lines) + "\n"


def search_documents(query: str) -> list[tuple[DocumentPage, str]]:
    """Return the pages that fit words best, best first, each with the beginning of the section that fits; at most 8.

    A word counts by how few pages have it, and twice in a heading.
    """
    pages = [(page, page.text.casefold()) for page in document_pages().values()]
    weights: dict[str, float] = {}
    for word in {word.casefold() for word in _WORD.findall(query)}:
        containing = sum(word in text for _, text in pages)
        if containing:
            weights[word] = log2(len(pages) / containing)
    best: dict[str, tuple[float, int, str]] = {}
    for page in document_pages().values():
        for section in _sections(page.text):
            rated = _rated(weights, section) + _rated(weights, f"{page.title} {section.splitlines()[0]}")
            if rated:
                # Decisions say why, and most readers want to know how.
                rated *= UNLIKELY if page.folder == DECISIONS else 1
                rank = (rated, -len(section), " ".join(section.split())[:EXCERPT])
                best[page.path] = max(best.get(page.path, rank), rank)
    paths = sorted(best, key=lambda path: best[path][:2], reverse=True)
    return [(document_pages()[path], best[path][2]) for path in paths[:FOUND_MAX]]


def _rated(weights: Mapping[str, float], text: str) -> float:
    folded = text.casefold()
    return sum(weight for word, weight in weights.items() if word in folded)


def _sections(text: str) -> list[str]:
    return [part for part in re.split(r"^(?=#{1,4} )", text, flags=re.MULTILINE) if part.strip()]
