"""Another release of the public SDK than the one measured may be installed; a warning names it."""

import importlib.metadata
from pathlib import Path

import pytest

from trailboss.testing.sdk_release import DISTRIBUTION, MEASURED, installed_release, release_warning


def test_measured_release_is_installed_where_cycles_are_pinned() -> None:
    """The environment of the tests has it, so nothing is said."""
    assert installed_release() == MEASURED
    assert release_warning() == ""


def test_another_release_can_be_installed_beside() -> None:
    """No exact pin: a project may bring a later 0.1 of its own."""
    [wanted] = [each for each in importlib.metadata.requires("trailboss") or () if each.startswith(DISTRIBUTION)]
    assert "==" not in wanted
    assert MEASURED in wanted


def test_release_is_the_one_that_the_package_index_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked for by name, or by the library that knows every place."""
    assert installed_release() == importlib.metadata.version(DISTRIBUTION)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    assert installed_release() == importlib.metadata.version(DISTRIBUTION)


def test_warning_names_both_releases_when_they_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it means for cycles and for replaying is said with it."""
    (tmp_path / "cowboy_actor_sdk-0.1.9.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert f"{DISTRIBUTION} 0.1.9 is installed" in release_warning()
    assert f"measured with {MEASURED}" in release_warning()
