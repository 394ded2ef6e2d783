"""The pytest plugin: the fixture ``chain`` and the marker ``trailboss``.

Nothing of the package is imported before a test asks for it, or coverage would not see the imports.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trailboss.testing import LocalChain


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", "trailboss(mechanism=, preset=, params=): how the fixture `chain` is started; see LocalChain"
    )


@pytest.fixture
def chain(request: pytest.FixtureRequest) -> "Iterator[LocalChain]":
    """A fresh local chain; ``@pytest.mark.trailboss(preset="minimal")`` starts it otherwise."""
    from trailboss.testing import LocalChain

    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("trailboss"))):
        if marker.args:
            pytest.fail(f"@pytest.mark.trailboss takes keywords only, got {marker.args!r}")
        options.update(marker.kwargs)
    with LocalChain(**options) as local_chain:  # type: ignore[arg-type]  # LocalChain checks them
        yield local_chain
