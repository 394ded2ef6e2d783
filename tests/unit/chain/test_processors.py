"""How many processors a process may use."""

import os
from pathlib import Path

import pytest

from trailboss.chain import processors
from trailboss.chain.processors import usable_processors


@pytest.mark.parametrize(("share", "most"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", 64)])
def test_container_has_no_more_processors_than_its_share(
    share: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least one; without a share those of the machine."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr(processors, "CONTAINER_SHARE", tmp_path / "cpu.max")
    assert usable_processors() == 64
    (tmp_path / "cpu.max").write_text(f"{share}\n", encoding="ascii")
    assert usable_processors() == most
