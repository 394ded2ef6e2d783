"""Every scenario is checked after every block: money, timers, queue and store agree."""

import pytest

from trailboss.chain import Chain


@pytest.fixture(autouse=True)
def invariants_after_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the chain's sums whenever a block is built; a block sealed as idle changes nothing and is left out."""
    build = Chain.build

    def checked(chain, *arguments, **keywords):
        applied = build(chain, *arguments, **keywords)
        chain.check_invariants()
        return applied

    monkeypatch.setattr(Chain, "build", checked)
