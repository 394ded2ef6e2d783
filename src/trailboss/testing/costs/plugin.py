"""The options ``--trailboss-costs…`` of pytest: record what handlers cost, save it, compare it, draw it."""

import json
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError
from trailboss.testing.costs.baseline import (
    Baseline,
    Comparison,
    baseline_of,
    compare,
    other_prices,
    read_baseline,
    write_baseline,
)
from trailboss.testing.costs.flame import Stack
from trailboss.testing.costs.recorder import CostRecorder
from trailboss.testing.costs.report import comparison_text, table_text
from trailboss.testing.costs.table import CostTable
from trailboss.testing.local_chain import LocalChain
from trailboss.testing.plugin import PATHS_FIRST
from trailboss.views.text import counted

NAME: Final = "trailboss_costs"  # of the plugin, and of what a worker hands over
WIDTH_MAX: Final = 120
SUFFIX: Final = ".json"


class CostOptions(Struct, frozen=True):
    """What the command line asks for."""

    shown: str  # ``handlers`` or ``lines``; empty for no table
    save: Path | None
    check: Path | None
    tolerance: Fraction
    speedscope: Path | None


class WorkerCosts(Struct):
    """What a worker of pytest-xdist hands over."""

    table: CostTable
    stacks: list[tuple[Stack, int]]
    varying: list[str]


def read_options(config: pytest.Config) -> CostOptions | None:
    """Return what the command line asks for; None for nothing.

    Raises:
        pytest.UsageError: For options that exclude one another, a file that does not end in ``.json``, and a tolerance
            that is no percentage.
    """
    given = {name: config.getoption(f"--trailboss-costs{name}") for name in _SUFFIXES}
    if given["-tolerance"] is not None and given["-check"] is None:
        raise pytest.UsageError("--trailboss-costs-tolerance: give --trailboss-costs-check with it")
    if given["-save"] is not None and given["-check"] is not None:
        raise pytest.UsageError("--trailboss-costs-save and --trailboss-costs-check: give one of the two")
    if not any(given.values()):
        return None
    root = config.rootpath
    paths = {name: None if given[name] is None else root / given[name] for name in ("-save", "-check")}
    for name in ("-save", "-check", "-speedscope"):
        if given[name] is not None and not given[name].endswith(SUFFIX):
            # Or a test, taken for the file, would be written over.
            what = f"--trailboss-costs{name} {given[name]}: the file's name must end in {SUFFIX}"
            raise pytest.UsageError(f"{what}; {PATHS_FIRST}")
    flames = given["-speedscope"]
    return CostOptions(
        shown=given[""] or "",
        save=paths["-save"],
        check=paths["-check"],
        tolerance=read_tolerance(given["-tolerance"] or "0%"),
        speedscope=None if flames is None else config.invocation_params.dir / flames,
    )


_SUFFIXES: Final = ("", "-save", "-check", "-tolerance", "-speedscope")


def read_tolerance(text: str) -> Fraction:
    """Return a tolerance, given in percent, as a share.

    >>> read_tolerance("2%"), read_tolerance("0.5")
    (Fraction(1, 50), Fraction(1, 200))
    """
    try:
        found = Fraction(text.strip().removesuffix("%").strip()) / 100
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if found < 0:
        raise pytest.UsageError(f"--trailboss-costs-tolerance {text}: give a percentage of 0 or more, as 2%")
    return found


class CostPlugin:
    """Records the costs of a session, and reports them at its end."""

    def __init__(self, options: CostOptions, config: pytest.Config) -> None:
        """Record from now on.

        Raises:
            pytest.UsageError: If there is no baseline to compare with.
        """
        self.options = options
        self.is_worker = hasattr(config, "workerinput")
        self.recorder = CostRecorder(config.rootpath, with_flames=options.speedscope is not None)
        self.varying: set[str] = set()  # tests whose inputs vary from run to run
        self.baseline: Baseline | None = None
        self.comparison: Comparison | None = None
        self.errors: list[str] = []
        self._root = config.rootpath
        self.notes: list[str] = []
        if options.check is not None:
            try:
                self.baseline = read_baseline(options.check)
            except ConfigurationError as error:
                raise pytest.UsageError(str(error)) from None
        self._chain_class = LocalChain.chain_class
        LocalChain.chain_class = self.recorder.chain_class()

    def pytest_unconfigure(self) -> None:
        """Record no longer."""
        LocalChain.chain_class = self._chain_class

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note which test runs."""
        self.recorder.test = item.nodeid
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            self.varying.add(item.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker of pytest-xdist hands over."""
        handed = getattr(node, "workeroutput", {}).get(NAME)
        if handed is None:
            self.errors.append("a worker ended without its costs: they are not complete")
            return
        costs = msgspec.json.decode(handed, type=WorkerCosts)
        self.recorder.table.merge(costs.table)
        self.varying.update(costs.varying)
        if self.recorder.flames is not None:
            self.recorder.flames.merge(costs.stacks)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Hand over the costs, or save and compare them; the run fails if they grew."""
        table = self.recorder.table
        table.check()
        if self.is_worker:
            flames = self.recorder.flames
            stacks = [] if flames is None else list(flames.stacks.items())
            handed = msgspec.json.encode(WorkerCosts(table, stacks, sorted(self.varying))).decode()
            session.config.workeroutput[NAME] = handed  # type: ignore[attr-defined]  # pytest-xdist sets it
            return
        if self.options.save is not None:
            self._save(self.options.save, exitstatus)
        if self.baseline is not None and self.options.check is not None:
            self._compare(self.baseline, self.options.check)
        if self.options.speedscope is not None:
            self._draw(self.options.speedscope)
        if exitstatus == pytest.ExitCode.OK and (self.errors or (self.comparison and self.comparison.grown)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _save(self, path: Path, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.OK or self.errors:
            self.errors.append(f"{self._shown(path)} is not saved: save a baseline of a run that passes")
            return
        if not self.recorder.table.executions:
            self.errors.append(f"{self._shown(path)} is not saved: no test ran anything on a LocalChain")
            return
        baseline = baseline_of(self.recorder.table, frozenset(self.varying))
        try:
            write_baseline(path, baseline)
        except ConfigurationError as error:
            self.errors.append(str(error))
            return
        tests = {test for handlers in baseline.sources.values() for each in handlers.values() for test in each.tests}
        handlers = sum(map(len, baseline.sources.values()))
        self.notes.append(
            f"saved {counted(handlers, 'handler')} of {counted(len(tests), 'test')} in {self._shown(path)}"
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    def _compare(self, baseline: Baseline, path: Path) -> None:
        why = other_prices(baseline)
        if why:
            self.notes.append(f"not compared with {self._shown(path)}: {why}; save it again")
            return
        self.comparison = compare(self.recorder.table, baseline, self.options.tolerance, frozenset(self.varying))

    def _draw(self, path: Path) -> None:
        flames = self.recorder.flames
        if flames is not None:
            try:
                path.write_text(json.dumps(flames.document("tests")), encoding="utf-8")
            except OSError as error:
                self.errors.append(f"cannot write {path}: {error.strerror}")
                return
            self.notes.append(f"flame graph in {self._shown(path)}: open it at https://www.speedscope.app")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, the comparison, and what there is to note."""
        if self.is_worker:
            return
        writer = terminalreporter
        width = min(writer.config.get_terminal_writer().fullwidth, WIDTH_MAX)
        table = self.recorder.table
        if self.options.shown and table.executions:
            writer.section("costs", sep="=")
            for line in table_text(table, width, with_lines=self.options.shown == "lines"):
                writer.line(line)
        elif self.options.shown:
            self.notes.append("no test ran anything on a LocalChain")
        if self.comparison is not None:
            has_grown = bool(self.comparison.grown)
            writer.section("costs have grown" if has_grown else "costs compared", sep="=", red=has_grown)
            for line in comparison_text(self.comparison, width, self.options.tolerance):
                writer.line(line)
        if self.varying and (self.options.save or self.comparison):
            many = counted(len(self.varying), "test")
            self.notes.append(f"{many} by Hypothesis, whose inputs vary, in no baseline")
        if self.notes or self.errors:
            writer.section("notes on costs", sep="=")
        for note in self.notes + self.errors:
            for line in wrap(note, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False):
                writer.line(line, red=note in self.errors)
