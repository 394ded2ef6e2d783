"""Building blocks up to the next fire, on the command line."""

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Run
from trailboss.cli.directory_chain import DirectoryChain
from trailboss.model.blocks import Block


def test_fire_counts_when_the_chain_has_gone_on_since(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a node does, which builds blocks at an interval meanwhile."""

    def build_more(self: DirectoryChain, height: int) -> Iterator[Block]:
        return iter([*advance_to(self, height), *advance_to(self, height + 2)])

    advance_to = DirectoryChain.advance_to
    run("init", "--vm", "native")
    run("schedule", "--height", 5)
    monkeypatch.setattr(DirectoryChain, "advance_to", build_more)
    shown = run("next").stdout.splitlines()
    assert shown[0].split() == ["height", "1", "to", "7"]
    assert "1 fired" in shown[1]
