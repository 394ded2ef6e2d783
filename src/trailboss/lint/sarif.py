"""Findings as a SARIF log, version 2.1.0, the form in which code hosts and editors read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from trailboss.lint.catalogue import RULES
from trailboss.lint.records import LintFinding

VERSION: Final = "2.1.0"
SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif_log(findings: Sequence[LintFinding], version: str, page: str) -> dict[str, Any]:
    """Return a log with one run.

    Args:
        findings: Of all files.
        version: Of this program.
        page: Address of the page that explains the rules; each has a section by its id in small letters.
    """
    places = {rule: index for index, rule in enumerate(RULES)}
    rules = [
        {
            "id": each.rule,
            "name": each.name,
            "shortDescription": {"text": each.summary},
            "helpUri": f"{page}#{each.rule.lower()}",
            "defaultConfiguration": {"level": str(each.severity)},
        }
        for each in RULES.values()
    ]
    driver = {"name": "trailboss check", "semanticVersion": version, "informationUri": page, "rules": rules}
    results = [_result(each, places[each.rule]) for each in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(finding: LintFinding, place: int) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    location = {"artifactLocation": {"uri": _address(finding.path)}, "region": region}
    return {
        "ruleId": finding.rule,
        "ruleIndex": place,
        "level": str(finding.severity),
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": location}],
    }


def _address(path: str) -> str:
    """Return the address of a file: relative to where the log is read, unless the path is absolute."""
    given = Path(path)
    return given.as_uri() if given.is_absolute() else quote(given.as_posix())
