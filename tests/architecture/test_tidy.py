"""The house lint finds every fault it is for, and finds none in the tree."""

import ast
from pathlib import Path

import pytest

from tools import tidy
from tools.tidy_names import type_faults

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = tidy.Documents({"CIP-5": ("6", "6.3"), "CIP-1v3": ("5",), "overview": ()}, frozenset({1, 9}))
CORE = "src/trailboss/fees.py"
SHELL = "src/trailboss/cli/main.py"

FAULTS = {
    "float": "RATE = 0.5\n",
    "division": "def f(a: int) -> int:\n    return a / 2\n",
    "async": "async def f() -> None:\n    return None\n",
    "call": "def f(a: str) -> int:\n    return hash(a)\n",
    "file": "def f() -> str:\n    return open('x').read()\n",
    "set-order": "def f(a: int) -> list[int]:\n    return [each for each in {a, 1}]\n",
    "bare-raise": "def f() -> None:\n    raise ValueError\n",
    "module-state": "cache = {}\n",
    "number": "def f(a: int) -> int:\n    return a * 7\n",
    "leftover": "a = 1  # TODO later\n",
    "comment-section": "a = 1  # as §6.3 says\n",
    "spec": '"""Text.\n\nSpec: CIP-5 §6.4\n"""\n',
    "decision": '"""Text.\n\nDecision: D-02\n"""\n',
    "mechanism": "def f(rules: Rules) -> bool:\n    return rules.auction is None\n",
    "private": "def f(a: Thing) -> int:\n    return a._size\n",
    "function-lines": "def f() -> None:\n" + "    print()\n" * 61,
    "module-lines": "a = 1\n" * 601,
}


def rules(source: str, path: str = CORE) -> list[str]:
    """Return the rules that a source breaks."""
    return [finding.rule for finding in tidy.module_findings(path, source, DOCUMENTS)]


@pytest.mark.parametrize("rule", FAULTS)
def test_tidy_names_the_rule_when_a_fault_is_planted(rule: str) -> None:
    """Each planted fault is found, by its own rule and no other."""
    assert rules(FAULTS[rule]) == [rule]


@pytest.mark.parametrize(
    "source",
    [
        "def f(seen: set[int]) -> None:\n    for each in seen:\n        print(each)\n",
        "def f(a: int) -> list[int]:\n    seen = {a}\n    return list(seen)\n",
        "def f(a: list[int]) -> list[int]:\n    return [each for each in set(a) - {1}]\n",
        "def f(a: list[int]) -> tuple[int, ...]:\n    return tuple(frozenset(a))\n",
    ],
)
def test_tidy_finds_set_iteration_when_the_set_has_a_name(source: str) -> None:
    """A set is recognized by its annotation and by what was assigned to it."""
    assert rules(source) == ["set-order"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(seen: set[int]) -> list[int]:\n    return sorted(seen)\n",
        "def f(seen: set[int]) -> bool:\n    return 1 in seen\n",
        "LIMIT: Final = 7\n",
        "TABLE: Final = {}\n",
        "def f(a: int) -> bytes:\n    return a.to_bytes(8, 'big')\n",
        "def f(a: int) -> int:\n    return a * 2**64 - 1\n",
        "def f() -> None:\n    try:\n        g()\n    except KeyError:\n        raise\n",
        "def f() -> None:\n    raise ValueError('height is 3, must be above 4')\n",
        "def f() -> None:\n" + "    print()\n" * 59,
        'def f() -> None:\n    """' + "line\n" * 61 + '    """\n    print()\n',
        '"""Text.\n\nSpec: CIP-5 §6, §6.3, CIP-1v3 §5, CIP-1 v3 §5, overview\nDecision: D-01, D-09\n"""\n',
        "a = 'TODO in a string is data'\n",
    ],
)
def test_tidy_finds_nothing_when_the_rule_is_kept(source: str) -> None:
    """What is allowed stays quiet."""
    assert rules(source) == []


def test_tidy_leaves_numbers_and_floats_alone_when_outside_the_core() -> None:
    """The shell shows percentages and sleeps; only its lengths and citations are checked."""
    assert rules(FAULTS["float"] + FAULTS["division"] + FAULTS["number"] + FAULTS["async"], SHELL) == []
    assert rules(FAULTS["function-lines"], SHELL) == ["function-lines"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Spec: somewhere", "no clause in 'somewhere'; write for example CIP-5 §6.3"),
        ("Spec: CIP-9 §1", "CIP-9 is not in docs/spec/pins.toml"),
        ("Spec: CIP-5 §6, §9.9", "CIP-5 §9.9 is not in docs/spec/pins.toml"),
        ("Decision: see there", "no decision in 'Decision: see there'; write for example D-09"),
        ("Decision: D-44", "D-44 is not in docs/decisions"),
    ],
)
def test_tidy_says_what_is_unknown_when_a_citation_is_wrong(line: str, message: str) -> None:
    """The message names the document, section or decision that is not there."""
    findings = tidy.module_findings(SHELL, f'"""Text.\n\n{line}\n"""\n', DOCUMENTS)
    assert [(finding.line, finding.message) for finding in findings] == [(3, message)]


def test_tidy_wants_every_parameter_explained_when_the_module_is_in_params() -> None:
    """A field without a word about it is found; three ways of explaining are accepted."""
    source = (
        "class A:\n    silent: int\n\n"
        "class B:\n    behind: int  # blocks\n    # Blocks.\n    below: int\n    fees: FeeParams\n\n"
        'class D:\n    """Each field is a price in cycles."""\n\n    one: int\n    two: int\n'
    )
    findings = tidy.module_findings("src/trailboss/params/records.py", source, DOCUMENTS)
    assert [finding.message for finding in findings] == ["A.silent has no unit, reason or clause"]


def test_allowance_hides_a_finding_when_rule_path_and_name_agree() -> None:
    """An allowance with a reason covers its finding; one line more than allowed is found again."""
    long = tidy.Finding(CORE, 1, "function-lines", "f has 70 lines", "f", 70)
    entry = {"rule": "function-lines", "path": CORE, "name": "f", "most": 70, "reason": "reads top to bottom"}
    assert tidy.allowed([long], [entry]) == []
    grown = tidy.Finding(CORE, 1, "function-lines", "f has 71 lines", "f", 71)
    assert tidy.allowed([grown], [entry])[0] == grown


def test_allowance_is_a_finding_when_it_covers_nothing_or_gives_no_reason() -> None:
    """The list only shrinks, and every entry says why it is there."""
    unused = tidy.allowed([], [{"rule": "float", "path": CORE, "reason": "none left"}])
    assert [finding.message for finding in unused] == [
        f"entry 1 (float, {CORE}) covers nothing; remove it or correct its limit"
    ]
    found = tidy.Finding(CORE, 1, "float", "float literal")
    silent = tidy.allowed([found], [{"rule": "float", "path": CORE, "reason": " "}])
    assert [finding.message for finding in silent] == ["entry 1 gives no reason"]


def test_tree_is_tidy() -> None:
    """The project keeps its own rules."""
    assert [str(finding) for finding in tidy.check_tree(ROOT)] == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a = chain.mechanism.name == 'lane'\n", "== 'lane'"),
        ("a = rules.globalbox is not None\n", "globalbox is None"),
        ("a = isinstance(terms, AuctionTerms | GlobalboxTerms)\n", "isinstance AuctionTerms"),
        ("match terms:\n    case GlobalboxTerms():\n        pass\n", "case GlobalboxTerms"),
    ],
)
def test_mechanism_is_named_in_its_rooms_alone(source: str, said: str) -> None:
    """What asks which mechanism it is stands in a mechanism's room, or is a finding."""
    for path, expected in ((SHELL, [said]), ("src/trailboss/views/mechanism/auction.py", [])):
        found = tidy.module_findings(path, source, DOCUMENTS)
        assert [finding.name for finding in found if finding.rule == "mechanism"] == expected


def test_private_name_is_a_finding_when_another_module_has_it() -> None:
    """A module may touch its own privates, and those of a NamedTuple, which are public."""
    own = "class A:\n    def __init__(self, other: A) -> None:\n        self._size = other._size\n"
    assert rules(own, SHELL) == []
    assert rules("from uvicorn.config import _loop\n", SHELL) == ["private"]
    assert rules("a = pair._replace(left=1)\n", SHELL) == []


def test_module_is_a_finding_when_its_name_is_a_participle() -> None:
    """Modules are named by nouns."""
    assert rules("a = 1\n", "src/trailboss/node/building.py") == ["participle"]
    assert rules("a = 1\n", "src/trailboss/timer_queue/ring.py") == []


def test_type_is_a_finding_when_another_module_has_its_name() -> None:
    """One name, one type; a private class may have any."""
    trees = {path: ast.parse("class Place: ...\nclass _Entry: ...\n") for path in ("a.py", "b.py")}
    assert [(path, name) for path, _, _, name in type_faults(trees)] == [("b.py", "Place")]
