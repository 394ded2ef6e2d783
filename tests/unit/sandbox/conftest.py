"""The sandbox of this machine; without it, every test here is skipped with one line."""

import pytest

from tests.golden.world import World
from trailboss.params import load_params
from trailboss.sandbox import cache
from trailboss.sandbox.engines import new_engine


@pytest.fixture(scope="session")
def runtime():
    """The loaded image."""
    if not cache.is_built():
        pytest.skip("the sandbox is not built: run make sandbox")
    return cache.load_runtime(cache.released_digest())


@pytest.fixture
def engine(runtime):
    return new_engine(load_params("mainnet"), runtime.digest)


@pytest.fixture
def world(engine):
    return World(engine=engine)
