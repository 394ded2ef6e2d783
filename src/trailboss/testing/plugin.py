"""The pytest plugin: the fixture ``chain``, the marker ``trailboss``, and the options ``--trailboss-…``.

Nothing of the package is imported before a test asks for it, or coverage would not see the imports.
"""

import warnings
from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

COSTS_FILE: Final = "costs.json"
PATHS_FIRST: Final = "give what to test before this option, or its value with ="
"""A value of these options may be left out, so pytest takes a path that follows for one."""

if TYPE_CHECKING:
    from trailboss.testing import LocalChain


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the engine of every local chain, and those about costs."""
    add = parser.getgroup("trailboss").addoption
    what = "engine of every LocalChain that names none: native (in this process), or sandbox (in WebAssembly)"
    add("--trailboss-vm", choices=("native", "sandbox"), default="native", help=what)
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
    options = "mechanism=, preset=, params=, accounts=, data_dir=, vm="
    how = f"trailboss({options}): how the fixture `chain` is started; see LocalChain"
    config.addinivalue_line("markers", how)
    if any(name.startswith("trailboss_costs") and value is not None for name, value in vars(config.option).items()):
        from trailboss.testing.costs.plugin import NAME, CostPlugin, read_options

        asked = read_options(config)
        if asked is not None:
            config.pluginmanager.register(CostPlugin(asked, config), NAME)


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
