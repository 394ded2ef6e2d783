from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.network.nodes import Member, network_genesis


@pytest.fixture
def new_member() -> Iterator[Callable[..., Member]]:
    """Return what makes members of one network, and close them after the test."""
    members: list[Member] = []

    def make(directory: Path | None = None) -> Member:
        members.append(Member(network_genesis(), directory))
        return members[-1]

    yield make
    for member in members:
        member.close()


@pytest.fixture
def member(new_member: Callable[..., Member]) -> Member:
    """Return one member, in memory."""
    return new_member()
