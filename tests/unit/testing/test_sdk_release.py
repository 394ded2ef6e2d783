"""Another release of the public SDK than the one measured may be installed; a warning names it."""

import importlib.metadata

import pytest

from trailboss.testing import sdk_release
from trailboss.testing.sdk_release import DISTRIBUTION, MEASURED, release_warning


def test_measured_release_is_installed_where_cycles_are_pinned() -> None:
    """The environment of the tests has it, so nothing is said."""
    assert sdk_release.installed_release() == MEASURED
    assert release_warning() == ""


def test_another_release_can_be_installed_beside() -> None:
    """No exact pin: a project may bring a later 0.1 of its own."""
    [wanted] = [each for each in importlib.metadata.requires("trailboss") or () if each.startswith(DISTRIBUTION)]
    assert "==" not in wanted
    assert MEASURED in wanted


def test_warning_names_both_releases_when_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it means for cycles and for replaying is said with it."""
    monkeypatch.setattr(sdk_release, "version", lambda _: "0.1.9")
    assert f"{DISTRIBUTION} 0.1.9 is installed" in release_warning()
    assert f"measured with {MEASURED}" in release_warning()
