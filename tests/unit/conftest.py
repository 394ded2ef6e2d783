"""One engine for the tests of programs: loading the SDK into each anew would take most of their time."""

import pytest

from tests.golden.world import World
from trailboss.params import load_params
from trailboss.testing import LocalChain


@pytest.fixture(scope="session")
def engine():
    """The engine that worlds share; frames leave nothing behind in it, which these tests rely on and check."""
    return World().engine


@pytest.fixture
def world(engine):
    """An empty world."""
    return World(engine=engine)


@pytest.fixture(scope="session")
def free_engine():
    """An engine whose prices for size are all 0."""
    if LocalChain.default_vm != "native":
        pytest.skip("the sandbox's image has one table of prices")
    sizes = "item visit text_visit items_copied items_moved sort_steps characters_copied characters_compared"
    sizes += " characters_scanned characters_hashed search_steps pattern_character digits digit_products"
    sizes += " digit_squares decimal_squares class_made frame_allocation_bytes_max"
    return World(load_params("mainnet", {f"source.{name}": 0 for name in sizes.split()})).engine


@pytest.fixture
def free_world(free_engine):
    """An empty world without prices for size."""
    return World(engine=free_engine)
