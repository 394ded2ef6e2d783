"""Decision records and the clause list agree with each other and with the index."""

import re
import tomllib
from pathlib import Path

import pytest

from tools import spec, tidy

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
HEADINGS = ["Context", "Choice", "What else was possible", "How to undo", "Parameters"]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_record_has_every_part_and_known_citations(path: Path) -> None:
    """A record has its number, its five parts, and cites clauses that exist."""
    text = path.read_text(encoding="utf-8")
    title, spec_line, clause_line, *_ = [line for line in text.splitlines() if line]
    assert title.startswith(f"# D-{int(path.name[:4]):02}: ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert list(tidy.citation_faults(spec_line.removeprefix("Spec: "), tidy.load_documents(ROOT))) == []
    named = set(clause_line.removeprefix("Clauses: ").split(", "))
    assert named - set(spec.load_clauses(ROOT)) == set()


def test_index_lists_every_record() -> None:
    """The index page has one row for each record, with its title."""
    index = (ROOT / "docs/decisions/index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[D-(\d+)\]\((\S+)\) \| (.+) \|$", index, re.MULTILINE)
    titles = [path.read_text(encoding="utf-8").splitlines()[0] for path in RECORDS]
    expected = [(f"# D-{number}: {title}", name) for number, name, title in rows]
    assert expected == list(zip(titles, [path.name for path in RECORDS], strict=True))


def test_clauses_cite_pinned_sections_and_decisions_are_recorded_when_built() -> None:
    """Each clause's source exists; the decisions of the sections that must be proven are recorded."""
    documents = tidy.load_documents(ROOT)
    for name, clause in spec.load_clauses(ROOT).items():
        assert list(tidy.citation_faults(clause.source, documents)) == [], name
        assert {int(each.removeprefix("D-")) for each in clause.decisions} <= documents.decisions, name


def test_parameters_named_in_records_exist() -> None:
    """A record names parameters as presets spell them."""
    preset = tomllib.loads((ROOT / "src/trailboss/params/presets/mainnet.toml").read_text(encoding="utf-8"))
    known = {f"{section}.{name}" for section, fields in preset.items() for name in fields} | set(preset)
    for path in RECORDS:
        parameters = path.read_text(encoding="utf-8").split("## Parameters")[1]
        named = set(re.findall(r"`([a-z_.]+)`", parameters)) - {"system_deployers"}
        assert named - known == set(), path.name
