"""The page about `trailboss check` has a section for each rule, with what it finds and what it lets pass."""

import re
from pathlib import Path

import pytest

from trailboss.lint import RULES, LintTerms, lint_source
from trailboss.params import load_params

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/check.md"
SECTION = re.compile(r"^### (\w+) ([\w-]+) \{ #(\w+) \}\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = {match[1]: match for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}


def test_page_has_a_section_for_each_rule_and_no_others():
    """With the name and the anchor that the findings refer to."""
    assert list(SECTIONS) == list(RULES)
    assert [(match[2], match[3]) for match in SECTIONS.values()] == [
        (each.name, each.rule.lower()) for each in RULES.values()
    ]


@pytest.mark.parametrize("rule", RULES)
def test_rule_finds_the_first_example_and_not_the_second(rule):
    """The page shows what is wrong, then how it is right."""
    terms = LintTerms(load_params("public"), {"tick": "1 live timer calls"} if rule == "TB009" else None)
    bad, good = ({each.rule for each in lint_source(text.encode(), terms)} for text in FENCE.findall(SECTIONS[rule][4]))
    assert rule in bad
    assert rule not in good
    assert good <= {"TB003", "TB012"}, "the good example has findings of its own"
