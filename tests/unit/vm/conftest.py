"""One engine for the tests of this folder: loading the SDK into each anew would take most of their time."""

import pytest

from tests.golden.world import World


@pytest.fixture(scope="session")
def engine():
    """The engine that worlds share; frames leave nothing behind in it, which these tests rely on and check."""
    return World().engine


@pytest.fixture
def world(engine):
    """An empty world."""
    return World(engine=engine)
