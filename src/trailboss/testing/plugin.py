"""The pytest plugin: the fixture ``chain``, the marker ``trailboss``, and the options that begin with ``--trailboss``.

Nothing of the package is imported before a test asks for it, or coverage would not see the imports.
"""

import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trailboss.testing import LocalChain


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: the engine of every local chain, and how long each `ActorMachine` goes on."""
    what = "engine of every LocalChain that names none: native (in this process), or sandbox (in WebAssembly)"
    group = parser.getgroup("trailboss")
    group.addoption("--trailboss-vm", choices=("native", "sandbox"), default="native", help=what)
    what = "each ActorMachine begins new rounds until so many seconds are over; the last round is finished"
    group.addoption("--trailboss-campaign", type=float, default=0, metavar="SECONDS", help=what)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and choose the engine."""
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that were written of failures."""
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
