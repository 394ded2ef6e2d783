"""The pytest plugin: the fixture ``chain``, the marker ``trailboss``, and the options ``--trailboss-…``.

Nothing of the package is imported before a test asks for it, or coverage would not see the imports.
"""

import sys
import warnings
from argparse import ArgumentTypeError
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pytest

COSTS_FILE: Final = "costs.json"
PATHS_FIRST: Final = "give what to test before this option, or its value with ="
"""A value of these options may be left out, so pytest takes a path that follows for one."""

if TYPE_CHECKING:
    from trailboss.testing import LocalChain

IN_TERMINAL: Final = sys.stdin is not None and sys.stdin.isatty()
"""Whether the standard input was a terminal before pytest captured it; `trailboss.testing.debugger` wants to know."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options ``--trailboss-…``."""
    add = parser.getgroup("trailboss").addoption
    what = "engine of every LocalChain that names none: native (in this process), or sandbox (in WebAssembly)"
    add("--trailboss-vm", choices=("native", "sandbox"), default="native", help=what)
    what = "do not show the last reverted execution of the fixture `chain` when a test fails"
    add("--trailboss-no-trace", action="store_true", help=what)
    what = "each ActorMachine begins new rounds until so many seconds are over; the last round is finished"
    add("--trailboss-campaign", type=float, default=0, metavar="SECONDS", help=what)
    what = "show cycles, cells and CBY by handler at the end; with =lines also by line"
    add("--trailboss-costs", nargs="?", type=_read_shown, const="handlers", metavar="lines", help=what)
    what = f"save what each handler costs in each test (default: {COSTS_FILE} beside the configuration of pytest)"
    add("--trailboss-costs-save", nargs="?", const=COSTS_FILE, metavar="FILE", help=what)
    what = "fail if a handler costs more cycles a call than in the file that was saved"
    add("--trailboss-costs-check", nargs="?", const=COSTS_FILE, metavar="FILE", help=what)
    what = "with --trailboss-costs-check: growth that is allowed, as 2%% (default: none)"
    add("--trailboss-costs-tolerance", metavar="PERCENT", help=what)
    add("--trailboss-costs-speedscope", metavar="FILE", help="write a flame graph of all cycles, for speedscope")


def _read_shown(text: str) -> str:
    if text not in ("handlers", "lines"):
        raise ArgumentTypeError(f"{text!r} is neither handlers nor lines: {PATHS_FIRST}")
    return text


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, choose the engine, and record costs if an option asks for it."""
    if config.getoption("--trailboss-vm") != "native":
        from trailboss.testing import LocalChain

        LocalChain.default_vm = config.getoption("--trailboss-vm")
    seconds = config.getoption("--trailboss-campaign")
    if not seconds >= 0:
        raise pytest.UsageError(f"--trailboss-campaign {seconds}: at least 0 seconds")
    if seconds:
        from trailboss.testing import ActorMachine

        ActorMachine.campaign_seconds = seconds
    options = "mechanism=, preset=, params=, accounts=, data_dir=, vm="
    how = f"trailboss({options}): how the fixture `chain` is started; see LocalChain"
    config.addinivalue_line("markers", how)
    if any(name.startswith("trailboss_costs") and value is not None for name, value in vars(config.option).items()):
        from trailboss.testing.costs.plugin import NAME, CostPlugin, read_options

        asked = read_options(config)
        if asked is not None:
            config.pluginmanager.register(CostPlugin(asked, config), NAME)


def _end_at_test(call: pytest.CallInfo[None]) -> None:
    """End the traceback of a refusal, or of an expectation, at the line of the test."""
    if call.excinfo is None:
        return
    steps: list[TracebackType] = []
    step = call.excinfo.tb
    while step is not None:
        steps.append(step)
        step = step.tb_next  # type: ignore[assignment]  # None behind the last one
    names = [str(each.tb_frame.f_globals.get("__name__", "")) for each in steps]
    end = len(names)
    # `LocalChain.one_block` runs in a frame of contextlib.
    while end and (names[end - 1].startswith("trailboss.") or names[end - 1] == "contextlib"):
        end -= 1
    if 0 < end < len(names) and _is_refusal(call.excinfo.value, names[-1]):
        steps[end - 1].tb_next = None


def _is_refusal(error: BaseException, module: str) -> bool:
    """Return whether an error is about what the test asks for: a faulty chain shows where it breaks."""
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "trailboss.primitives.errors"}
    return "InvariantError" not in kinds if kinds else module.startswith("trailboss.testing.")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show how two receipts, events or timers differ, field by field."""
    if op != "==" or type(left) is not type(right) or not type(left).__module__.startswith("trailboss.views"):
        return None
    from msgspec import Struct

    from trailboss.testing.differences import compared_records

    return compared_records(left, right) if isinstance(left, Struct) and isinstance(right, Struct) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that failures were written as."""
    regression = sys.modules.get("trailboss.testing.regression")
    if regression is not None and regression.WRITTEN:
        terminalreporter.section("tests of failures")
        for line in regression.WRITTEN:
            terminalreporter.write_line(line)


@pytest.fixture
def chain(request: pytest.FixtureRequest) -> "Iterator[LocalChain]":
    """A fresh local chain; ``@pytest.mark.trailboss(preset="minimal")`` starts it otherwise.

    A relative ``data_dir`` is a directory within the test's ``tmp_path``.
    """
    from trailboss.testing import LocalChain
    from trailboss.testing.sdk_release import release_warning

    warning = release_warning()
    if warning:
        warnings.warn(warning, stacklevel=1)
    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("trailboss"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.trailboss takes keywords only, got {marker.args!r}")
        options.update(marker.kwargs)
    if options.get("data_dir") is not None:
        # Within the test's own directory: another test, or another worker, has another chain.
        options["data_dir"] = request.getfixturevalue("tmp_path") / options["data_dir"]
    with LocalChain(**options) as local_chain:  # type: ignore[arg-type]  # LocalChain checks them
        yield local_chain


@pytest.hookimpl(hookwrapper=True)  # as versions of pytest before 8 have it too
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Report a failed test by its own line, and by what reverted last on the fixture ``chain``.

    ``--full-trace`` shows the lines of the package too.
    """
    if not item.config.getoption("fulltrace"):
        _end_at_test(call)
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    chain = getattr(item, "funcargs", {}).get("chain")
    has_failed = call.when == "call" and report.failed and chain is not None
    if has_failed and not item.config.getoption("--trailboss-no-trace"):
        from trailboss.testing import LocalChain
        from trailboss.testing.traces import last_reverted

        try:
            shown = last_reverted(chain) if isinstance(chain, LocalChain) else ""
        # Whatever it is, such as a chain that the test has closed: the test's own failure is what must be shown.
        except Exception as error:  # noqa: BLE001
            shown = f"it cannot be traced: {error}"
        if shown:
            report.sections.append(("trailboss: last reverted execution", shown))
