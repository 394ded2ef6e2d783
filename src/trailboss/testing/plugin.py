"""The pytest plugin: the fixture ``chain`` and the marker ``trailboss``.

Nothing of the package is imported before a test asks for it, or coverage would not see the imports.
"""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trailboss.testing import LocalChain


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    options = "mechanism=, preset=, params=, accounts=, data_dir="
    how = f"trailboss({options}): how the fixture `chain` is started; see LocalChain"
    config.addinivalue_line("markers", how)


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
