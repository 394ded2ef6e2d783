"""One suite for all four mechanisms, and for a fifth one: every chain is checked after every block."""

from collections.abc import Iterator

import pytest

from tests.conformance.mechanisms.doer import MECHANISMS, open_chain
from tests.conformance.mechanisms.lifo import registered
from trailboss.chain import Chain
from trailboss.testing import LocalChain


@pytest.fixture(autouse=True)
def fifth_mechanism() -> Iterator[None]:
    """Register the toy for as long as a test runs."""
    with registered():
        yield


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    """Return each mechanism's name in turn."""
    return str(request.param)


@pytest.fixture
def chain(mechanism: str) -> Iterator[LocalChain]:
    """Yield a chain under each mechanism in turn."""
    with open_chain(mechanism) as local:
        yield local


@pytest.fixture(autouse=True)
def invariants_after_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check money, timers, queue and store whenever a block is built."""
    build = Chain.build

    def checked(chain, *arguments, **keywords):
        applied = build(chain, *arguments, **keywords)
        chain.check_invariants()
        return applied

    monkeypatch.setattr(Chain, "build", checked)
