"""A baseline of costs: a file to keep beside tests, and what has changed since. Decision: D-109."""

import json
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.testing.costs.table import CostedSource, CostTable, HandlerCosts, line_text
from trailboss.testing.sdk_release import DISTRIBUTION, installed_release
from trailboss.vm.trace import NO_LINE

LAYOUT: Final = 1
FRAME_ROW: Final = "(frame)"  # key of the base price of the frames, among the texts of lines
OUTSIDE_ROW: Final = "(outside its lines)"
DIGEST_DIGITS: Final = 16

Calls = tuple[int, int]  # calls of a handler in one test, and the cycles of all of them, nested frames not included


class HandlerBaseline(Struct, forbid_unknown_fields=True):
    """What a handler cost."""

    tests: dict[str, Calls]
    lines: dict[str, int]  # cycles of a call, rounded down, by the text of the line; equal texts are numbered


class Baseline(Struct, forbid_unknown_fields=True, kw_only=True):
    """What handlers cost when the file was written."""

    layout: int
    prices: str  # digest of the prices of host calls and of constructs
    sdk: str  # release of the public SDK
    sources: dict[str, dict[str, HandlerBaseline]]  # by name of the source and handler


class CostChange(Struct, frozen=True):
    """A handler in one test, with its calls and cycles before and now."""

    source: str
    handler: str
    test: str
    before: Calls
    now: Calls

    @property
    def ratio(self) -> Fraction:
        """Cycles of a call now, to those before; to one cycle if they were none."""
        return Fraction(self.now[1] * self.before[0], (self.before[1] or 1) * self.now[0])


class Comparison(Struct):
    """What has changed since a baseline, by source and handler; of each handler the test in which it changed most."""

    grown: list[CostChange] = field(default_factory=list)
    shrunk: list[CostChange] = field(default_factory=list)
    new: list[tuple[str, str]] = field(default_factory=list)  # that the baseline does not have
    unrun: list[tuple[str, str]] = field(default_factory=list)  # of the baseline, in no test that ran
    tests_unrun: int = 0  # tests of the baseline that did not run, or called nothing
    # Of each handler that grew, its lines that did, by their text: cycles of a call before and now. None if other tests
    # called it than those of the baseline.
    lines: dict[tuple[str, str], dict[str, tuple[int, int]] | None] = field(default_factory=dict)


def prices_digest() -> str:
    """Return a digest of the prices of host calls and of constructs."""
    params = load_params("mainnet", {})
    return sha256(msgspec.json.encode([params.costs, params.source], order="sorted")).hexdigest()[:DIGEST_DIGITS]


def baseline_of(table: CostTable, left_out: frozenset[str] = frozenset()) -> Baseline:
    """Return the baseline of a table, without tests whose inputs vary from run to run."""
    sources: dict[str, dict[str, HandlerBaseline]] = {}
    for name, handlers in _by_name(table, left_out).items():
        sources[name] = {handler: _handler_baseline(rows) for handler, rows in sorted(handlers.items())}
    return Baseline(layout=LAYOUT, prices=prices_digest(), sdk=installed_release(), sources=sources)


Rows = list[tuple[CostedSource, str, HandlerCosts]]  # of one handler: a version of its source, a test, and costs


def _by_name(table: CostTable, left_out: frozenset[str]) -> dict[str, dict[str, Rows]]:
    """Return the rows of each handler, of all versions of a source together."""
    found: dict[str, dict[str, Rows]] = {}
    for name, code_hash in table.by_name():
        for handler, tests in table.handlers[code_hash].items():
            for test, costs in sorted(tests.items()):
                if test not in left_out:
                    rows = found.setdefault(name, {}).setdefault(handler, [])
                    rows.append((table.sources[code_hash], test, costs))
    return found


def _handler_baseline(rows: Rows) -> HandlerBaseline:
    tests: dict[str, Calls] = {}
    lines: dict[str, int] = {}
    for source, test, costs in rows:
        calls, cycles = tests.get(test, (0, 0))
        tests[test] = calls + len(costs.calls), cycles + costs.cycles
        for text, used in _lines(source, costs):
            lines[text] = lines.get(text, 0) + used
    calls = sum(each for each, _ in tests.values())
    return HandlerBaseline(dict(sorted(tests.items())), {text: used // calls for text, used in lines.items()})


def _lines(source: CostedSource, costs: HandlerCosts) -> Iterator[tuple[str, int]]:
    """Yield the text of each line with its cycles; by its text a line is found again after others moved it."""
    seen: dict[str, int] = {}
    yield FRAME_ROW, costs.base
    for line, cycles in sorted(costs.lines.items()):
        text = OUTSIDE_ROW if line == NO_LINE else line_text(source, line)
        seen[text] = seen.get(text, 0) + 1
        yield text if seen[text] == 1 else f"{text} ({seen[text]})", cycles


def compare(table: CostTable, baseline: Baseline, tolerance: Fraction, left_out: frozenset[str]) -> Comparison:
    """Return what has changed by more than a tolerance, a share of the cycles of a call.

    A test is compared with itself alone, so a test that is new changes no result.
    """
    now = baseline_of(table, left_out).sources
    found = Comparison()
    ran: set[str] = set()
    for source, handlers in now.items():
        for handler, costs in handlers.items():
            ran.update(costs.tests)
            before = baseline.sources.get(source, {}).get(handler)
            if before is None:
                found.new.append((source, handler))
                continue
            changes = [
                CostChange(source, handler, test, before.tests[test], calls)
                for test, calls in costs.tests.items()
                if test in before.tests
            ]
            if _judge(found, changes, tolerance):
                found.lines[source, handler] = _grown_lines(before, costs)
    wanted = {test for handlers in baseline.sources.values() for costs in handlers.values() for test in costs.tests}
    found.tests_unrun = len(wanted - ran)
    found.unrun = [
        (source, handler)
        for source, handlers in baseline.sources.items()
        for handler in handlers
        if handler not in now.get(source, {})
    ]
    return found


def _judge(found: Comparison, changes: list[CostChange], tolerance: Fraction) -> bool:
    """Note a handler by the test in which it changed most; return whether it grew, which it did if in any test."""
    if not changes:
        return False
    ratio = attrgetter("ratio")
    most, least = max(changes, key=ratio), min(changes, key=ratio)
    if most.ratio > 1 + tolerance:
        found.grown.append(most)
    elif least.ratio < 1 - tolerance:
        found.shrunk.append(least)
    return most.ratio > 1 + tolerance


def _grown_lines(before: HandlerBaseline, now: HandlerBaseline) -> dict[str, tuple[int, int]] | None:
    """Return the lines that cost more than before, in the order of the source."""
    if before.tests.keys() != now.tests.keys():
        return None
    pairs = {text: (before.lines.get(text, 0), cycles) for text, cycles in now.lines.items()}
    return {text: pair for text, pair in pairs.items() if pair[1] > pair[0]}


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a file with one handler's test, and one line, in each of its lines.

    Raises:
        ConfigurationError: If the file cannot be written.
    """
    try:
        path.write_text(_text(msgspec.to_builtins(baseline), 0) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write the baseline {path}: {error.strerror}") from None


def _text(value: Any, depth: int) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = " " * (depth + 1)
    rows = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_text(each, depth + 1)}" for key, each in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{' ' * depth}}}"


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in a file.

    Raises:
        ConfigurationError: If the file is not there, cannot be read, or holds no baseline.
    """
    again = "\nwrite one with: pytest --trailboss-costs-save"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except FileNotFoundError:
        raise ConfigurationError(f"there is no baseline of costs in {path}{again}") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the baseline {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no baseline of costs: {error}{again}") from None


def other_prices(baseline: Baseline) -> str:
    """Return why a baseline cannot be compared with what runs here; empty if it can."""
    here = {"layout": (baseline.layout, LAYOUT), "price list": (baseline.prices, prices_digest())}
    here[DISTRIBUTION] = baseline.sdk, installed_release()
    parts = [f"its {name} is {theirs}, here it is {ours}" for name, (theirs, ours) in here.items() if theirs != ours]
    return "; ".join(parts)
